//! ptxas for the warnings that only it can tell.

use krn_compiler::Assembler;
use krn_compiler::advise::read_log;
use std::sync::Arc;

pub fn assembler() -> Assembler {
    let ptxas = xtask::ptxas::Assembler::find().unwrap_or_else(|error| panic!("{error}"));
    Arc::new(move |ptx, target| {
        let report = ptxas.optimise(ptx, target).unwrap_or_else(|error| panic!("{error}"));
        Some(read_log(&report.log))
    })
}
