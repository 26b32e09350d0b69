//! Random well-typed kernels: the checker accepts each, and the reference evaluator runs it without a broken
//! proof, a malformed tree or a panic.

use crate::support;
use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::diagnostic::{Diagnostics, Severity};
use krn_compiler::reference::{EvalError, Options};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileError, CompileOptions, check_source, compile};
use krn_generator::{Program, programs};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError};

fn holds(program: &Program) -> Result<(), TestCaseError> {
    let source = SourceFile::new("random.krn", program.source.as_str());
    let (typed, reports) = check_source(&source);
    if reports.has_errors() || typed.kernels.len() != 1 {
        // Warnings (of names that are never read) would bury the error.
        let mut errors = Diagnostics::new();
        reports.iter().filter(|r| r.severity == Severity::Error).for_each(|r| errors.push(r.clone()));
        return Err(TestCaseError::fail(render(&source, &errors, RenderOptions::default())));
    }
    let kernel = &typed.kernels[0];
    let dims: Vec<i64> = kernel
        .dims
        .values()
        .filter_map(|dim| program.dims.iter().find(|(name, _)| *name == dim.name).map(|(_, size)| *size))
        .collect();
    let options = Options { step_limit: 1 << 22, ..Options::default() };
    match support::run(&typed, kernel, &dims, program.seed % 1000, &options) {
        // Too much work for a test is no fault.
        Ok(_) | Err(EvalError::StepLimit { .. }) => Ok(()),
        Err(error) => Err(TestCaseError::fail(error.to_string())),
    }
}

/// It compiles as well: every pass keeps the IR's rules, everything can be said in PTX, and the PTX parses.
fn compiles(program: &Program) -> Result<(), TestCaseError> {
    let source = SourceFile::new("random.krn", program.source.as_str());
    let compiled = match compile(&source, &CompileOptions::default()) {
        Ok(compilation) => compilation.compiled,
        // Directives for which the kernel has no place.
        Err(CompileError::Diagnostics(refused)) if refused.iter().all(|r| r.code.0.starts_with("E05")) => {
            return compiles(&program.unscheduled());
        }
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    let parsed =
        krn_compiler::ptx::parse(&compiled.ptx).map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
    prop_assert!(parsed == compiled.module, "the PTX does not parse back to what was printed");
    Ok(())
}

/// `KRN_CASES=20000 cargo test -p krn-compiler --test all random_kernels::` looks harder.
fn cases() -> u32 {
    std::env::var("KRN_CASES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or_else(|| xtask::share_of_cases(300))
}

proptest! {
    #![proptest_config(Config {
        cases: cases(),
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    })]

    #[test]
    fn check_and_evaluate(program in programs()) {
        holds(&program)?;
    }

    #[test]
    fn compile_to_ptx(program in programs()) {
        compiles(&program)?;
    }
}
