//! The machine code of `min` and `max` of negated integers keeps every sign (`ptx/select/signs.rs`): NVIDIA's assembler for
//! sm_90 and later loses one where it makes one instruction of two.

use crate::support::compiled_for;
use xtask::ptxas::Assembler;

/// The machine code that ptxas makes of a program.
fn machine_code(text: &str, target: &str) -> String {
    let assembler = Assembler::find().unwrap_or_else(|error| panic!("{error}"));
    let done = compiled_for(text, target, &[]);
    assembler.machine_code(&done.compiled.ptx, target).unwrap_or_else(|error| panic!("{error}"))
}

/// How often a register is read negated.
fn negations(code: &str) -> usize {
    code.match_indices("-R")
        .filter(|(at, _)| code[at + 2..].starts_with(|next: char| next.is_ascii_digit()))
        .count()
}

#[test]
fn every_sign_reaches_the_machine_code() {
    let all = xtask::tests_run_in_full();
    for (expression, signs) in [
        ("max(max(-x[i], -y[i]), -z[i])", 3),
        ("min(min(-x[i], -y[i]), z[i])", 2),
        ("max(max(x[i], 0 - y[i]), z[i])", 1),
        ("min(z[i], min(x[i], y[i] * -1))", 1),
        ("max(max(x[i], x[i] - (x[i] + y[i])), z[i])", 1),
        ("max(max(x[i], (5 - y[i]) - 5), z[i])", 1),
        ("max(max(x[i], 5 - (y[i] + 5)), z[i])", 1),
    ] {
        // One element a thread, so that each entry has the expression once.
        let text = format!(
            "kernel k(x: i32[n], y: i32[n], z: i32[n]) -> o: i32[n] {{\n    o[i] = {expression}\n}}\n\
             schedule k {{\n    vectorize i: 1\n    per_thread i: 1\n}}\n"
        );
        for target in ["sm_90", "sm_100", "sm_120"].into_iter().filter(|target| all || *target == "sm_90") {
            let code = machine_code(&text, target);
            let entries = code.matches("\t.section\t.text.").count();
            assert_eq!(negations(&code), signs * entries, "{expression} for {target}\n{code}");
        }
    }
}
