//! Atomics, alone and across blocks.

use super::{bench, f, g, kernel, run, table};
use crate::emulator::{ArgValue, LaunchConfig};

/// One atomic on one word that holds `start`; gives the old value that the thread saw and the new one in memory.
fn one(ty: &str, class: &str, op: &str, start: u64, operands: &[u64]) -> (u64, u64) {
    let list: Vec<String> = operands.iter().map(|operand| format!("{operand}")).collect();
    let bits = &class[1..];
    let regs: String = (0..operands.len()).map(|at| format!(".reg .{class} %o{at};\n")).collect();
    let moves: String =
        list.iter().enumerate().map(|(at, value)| format!("mov.b{bits} %o{at}, {value};\n")).collect();
    let moves = if class == "b16" { moves.replace("mov.b16", "mov.u16") } else { moves };
    let names: Vec<String> = (0..operands.len()).map(|at| format!("%o{at}")).collect();
    let extra = if ty == "f16" || ty == "bf16" { ".noftz" } else { "" };
    let body = format!(
        "{moves}atom.global.{op}{extra}.{ty} %old, [%out], {};\nst.global.b{bits} [%out+8], %old;",
        names.join(", ")
    );
    let text = kernel(&["out"], &format!("{regs}.reg .{class} %old;"), &body);
    let mut bench = bench(&text);
    let out = bench.alloc("out", &[start as u32, (start >> 32) as u32, 0, 0]);
    bench.launch(LaunchConfig::linear(1, 1), &[out]).unwrap_or_else(|error| panic!("{error}"));
    let words = bench.read(out, 4);
    let join = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
    (join(2), join(0))
}

#[test]
fn every_operation() {
    let u32s = |op, start, operands: &[u64]| one("u32", "b32", op, start, operands).1;
    assert_eq!(one("u32", "b32", "add", 5, &[7]), (5, 12));
    assert_eq!(u32s("min", 5, &[7]), 5);
    assert_eq!(u32s("max", 5, &[7]), 7);
    assert_eq!(u32s("inc", 5, &[7]), 6);
    assert_eq!(u32s("inc", 7, &[7]), 0);
    assert_eq!(u32s("dec", 5, &[7]), 4);
    assert_eq!(u32s("dec", 0, &[7]), 7);
    assert_eq!(u32s("dec", 9, &[7]), 7);
    assert_eq!(one("b32", "b32", "exch", 5, &[7]), (5, 7));
    assert_eq!(one("b32", "b32", "cas", 5, &[5, 9]), (5, 9));
    assert_eq!(one("b32", "b32", "cas", 6, &[5, 9]), (6, 6));
    assert_eq!(one("b32", "b32", "and", 6, &[5]), (6, 4));
    assert_eq!(one("b32", "b32", "or", 6, &[5]), (6, 7));
    assert_eq!(one("b32", "b32", "xor", 6, &[5]), (6, 3));
    assert_eq!(one("s32", "b32", "min", u32::MAX.into(), &[3]).1, u64::from(u32::MAX));
    assert_eq!(one("u64", "b64", "add", 1 << 40, &[1]), (1 << 40, (1 << 40) + 1));
    assert_eq!(one("s64", "b64", "max", u64::MAX, &[3]).1, 3);
    assert_eq!(one("b64", "b64", "cas", 5, &[5, 1 << 50]), (5, 1 << 50));
    assert_eq!(one("f32", "f32", "add", f(1.5), &[f(2.0)]), (f(1.5), f(3.5)));
    assert_eq!(one("f64", "f64", "add", g(1.5), &[g(2.0)]), (g(1.5), g(3.5)));
}

#[test]
fn lanes_add_up_in_global_and_shared_memory() {
    let body = "red.global.add.u32 [%out], %t;\nred.global.add.f32 [%out+4], 0f3F800000;
        red.shared.add.u32 [sum], 2;
        bar.sync 0;
        ld.shared.u32 %v, [sum];
        st.global.u32 [%out+8], %v;";
    let declarations = ".shared .align 4 .b8 sum[4];\n.reg .b32 %v;";
    let out = run(declarations, body, LaunchConfig::linear(1, 256), 3);
    assert_eq!(out, [255 * 128, 256f32.to_bits(), 512]);
}

#[test]
fn blocks_do_not_lose_updates() {
    let out = run("", "red.global.add.u32 [%out], 1;", LaunchConfig::linear(1000, 64), 1);
    assert_eq!(out, [64_000]);
}

#[test]
fn float_sums_across_blocks_are_the_same_every_time() {
    // 1/(i+1) over all threads: the order of the additions shows in the last bits.
    let body = "mov.u32 %w, %ctaid.x;
        mad.lo.u32 %w, %w, 32, %t;
        add.u32 %w, %w, 1;
        cvt.rn.f32.u32 %f, %w;
        rcp.rn.f32 %f, %f;
        red.global.add.f32 [%out], %f;";
    let declarations = ".reg .b32 %w; .reg .f32 %f;";
    let expected = (1..=200 * 32).fold(0f32, |sum, i| sum + 1.0 / i as f32);
    for _ in 0..10 {
        assert_eq!(run(declarations, body, LaunchConfig::linear(200, 32), 1), [expected.to_bits()]);
    }
}

#[test]
fn tickets_are_given_out_in_block_order() {
    let body = "atom.global.add.u32 %v, [%out], 1;
        mov.u32 %w, %ctaid.x;
        mad.wide.u32 %at, %w, 4, %out;
        st.global.u32 [%at+4], %v;";
    let declarations = ".reg .b32 %v, %w; .reg .b64 %at;";
    for _ in 0..10 {
        let out = run(declarations, body, LaunchConfig::linear(300, 1), 301);
        assert_eq!(out, std::iter::once(300).chain(0..300).collect::<Vec<u32>>());
    }
}

#[test]
fn sixteen_bit_floats() {
    let h = |value: f32| u64::from(half::f16::from_f32(value).to_bits());
    let (old, new) = one("f16", "b16", "add", h(1.5), &[h(2.0)]);
    assert_eq!((old, new), (h(1.5), h(3.5)));
    table(["b32"; 4], "mov.u32 %d, %a;", &[([1, 0, 0], 1)]);
}

#[test]
fn a_lock_free_maximum_of_floats() {
    // The loop that a compiler emits for operations without an instruction of their own.
    let body = "cvt.rn.f32.u32 %f, %t;
        ld.relaxed.gpu.global.u32 %seen, [%out];
        again: mov.b32 %g, %seen;
        max.f32 %g, %g, %f;
        mov.b32 %new, %g;
        atom.global.cas.b32 %found, [%out], %seen, %new;
        setp.ne.u32 %p, %found, %seen;
        mov.u32 %seen, %found;
        @%p bra again;";
    let declarations = ".reg .pred %p; .reg .f32 %f, %g; .reg .b32 %seen, %new, %found;";
    let text = kernel(&["out"], declarations, body);
    let mut bench = bench(&text);
    let out = bench.alloc("out", &[0]);
    let config = LaunchConfig::linear(20, 128);
    let reports: Vec<_> = (0..3)
        .map(|_| {
            bench.device.fill(out, 0, 4).unwrap();
            bench.device.launch(&bench.module, "k", &config, &[ArgValue::from(out)]).unwrap()
        })
        .collect();
    assert_eq!(bench.read(out, 1), [127f32.to_bits()]);
    // Even the number of rounds is the same every time.
    assert!(reports.iter().all(|report| *report == reports[0]));
}
