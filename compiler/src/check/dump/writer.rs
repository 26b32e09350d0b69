//! The text as far as it is written.

use crate::check::typed::{Kernel, Program};
use rustc_hash::FxHashMap;
use std::fmt::Write;

#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Shows what was proved and what is checked at run time.
    pub proofs: bool,
}

pub(super) struct Writer<'a> {
    pub(super) program: &'a Program,
    pub(super) kernel: &'a Kernel,
    pub(super) options: Options,
    /// How many locals and parameters have this name.
    pub(super) counts: FxHashMap<&'a str, u32>,
    pub(super) out: String,
    pub(super) depth: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(program: &'a Program, kernel: &'a Kernel, options: Options) -> Self {
        let mut counts = FxHashMap::default();
        let locals = kernel.locals.values().map(|local| local.name.as_str());
        for name in locals.chain(kernel.params.values().map(|param| param.name.as_str())) {
            *counts.entry(name).or_insert(0) += 1;
        }
        Self { program, kernel, options, counts, out: String::new(), depth: 0 }
    }

    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{:indent$}{text}", "", indent = 2 * self.depth);
    }
}
