/* SPDX-License-Identifier: MIT
 *
 * flags: -O
 * leak 96 make<top
 */
#[inline(never)]
fn make() -> u64 {
    let leaked = Box::leak(Box::new([7u64; 12])); // <make make>
    leaked[std::hint::black_box(3)]
}

fn main() {
    std::process::exit((make() != 7) as i32); // <top main>
}
