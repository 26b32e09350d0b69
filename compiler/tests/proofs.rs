//! Whatever the checker claims of a kernel is held against brute force: random small kernels are checked, and
//! each accepted one is run over all small sizes by an interpreter that believes nothing. It finds a subscript
//! outside that was proved inside, two iterations that meet where no race was reported (or where a combination
//! was not made an atomic), a result read before it is written, and an element left out of a result that is
//! said to be written everywhere.

mod families;
mod generate;
mod trace;

use krn_compiler::check_source;
use krn_compiler::diagnostic::Severity;
use krn_compiler::source::SourceFile;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;

/// Checks the text, and runs its kernel over all small sizes. `Ok(false)` where it was refused.
fn held_to_brute_force(text: &str) -> Result<bool, String> {
    let (program, diagnostics) = check_source(&SourceFile::new("random.krn", text));
    if let Some(first) = diagnostics.iter().find(|one| one.severity == Severity::Error) {
        // Refusing is always allowed; what is refused for its syntax or its types is a fault of the generator.
        let code = first.code.0;
        return match code.starts_with("E03") || code.starts_with("E04") {
            true => Ok(false),
            false => Err(format!("{code}: {}", first.message)),
        };
    }
    for m in 0..4 {
        for n in 0..5 {
            for s in -2..4 {
                trace::run(&program, &program.kernels[0], &[("m", m), ("n", n), ("s", s)])?;
            }
        }
    }
    Ok(true)
}

#[test]
fn claims_about_random_kernels_are_true() {
    let (accepted, refused) = (Cell::new(0), Cell::new(0));
    let cases = xtask::share_of_cases(1500);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&generate::kernels(), |text| match held_to_brute_force(&text) {
        Ok(true) => {
            accepted.set(accepted.get() + 1);
            Ok(())
        }
        Ok(false) => {
            refused.set(refused.get() + 1);
            Ok(())
        }
        Err(what) => Err(TestCaseError::fail(format!("{what}\n{text}"))),
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    // A generator whose kernels are all refused would show nothing.
    assert!(
        accepted.get() * 7 > cases && refused.get() * 7 > cases,
        "{} accepted, {} refused",
        accepted.get(),
        refused.get()
    );
}
