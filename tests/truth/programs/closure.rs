/* SPDX-License-Identifier: MIT
 *
 * flags: -O
 * leak 300 body<apply<top
 */
#[inline(never)]
fn apply(action: &dyn Fn(usize) -> usize) -> usize {
    let mut sum = 0;
    for _ in 0..3 {
        sum += action(100); // <apply apply>
    }
    sum
}

fn main() {
    let action = |size: usize| {
        let text = "x".repeat(std::hint::black_box(size)); // <body closure>
        Box::leak(text.into_boxed_str()).len()
    };
    std::process::exit((apply(&action) != 300) as i32); // <top main>
}
