/* SPDX-License-Identifier: MIT
 *
 * flags: -O
 * leak 4096 fill<top
 */
#[inline(never)]
fn fill(count: usize) -> usize {
    let mut numbers: Vec<u64> = Vec::new();
    for i in 0..count as u64 {
        numbers.push(std::hint::black_box(i)); // <fill fill>
    }
    let length = numbers.len();
    std::mem::forget(numbers);
    length
}

fn main() {
    std::process::exit((fill(512) != 512) as i32); // <top main>
}
