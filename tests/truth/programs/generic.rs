/* SPDX-License-Identifier: MIT
 *
 * flags: -O
 * leak 160 hold<longs<top
 * leak 20 hold<bytes<top2
 */
trait Filled {
    fn filled() -> Self;
}

impl Filled for u64 {
    fn filled() -> u64 {
        1
    }
}

impl Filled for u8 {
    fn filled() -> u8 {
        1
    }
}

#[inline(always)]
fn hold<T: Filled + Clone>(count: usize) -> usize {
    let all = vec![T::filled(); std::hint::black_box(count)]; // <hold hold>
    std::mem::forget(std::hint::black_box(all));
    count
}

#[inline(never)]
fn longs() -> usize {
    hold::<u64>(20) // <longs longs>
}

#[inline(never)]
fn bytes() -> usize {
    hold::<u8>(20) // <bytes bytes>
}

fn main() {
    let mut sum = longs(); // <top main>
    sum += bytes(); // <top2 main>
    std::process::exit((sum != 40) as i32);
}
