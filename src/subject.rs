//! One kernel of a compiled file, as the command line asks for it: what `krn profile`, `krn ladder` and `krn report` are
//! about.

use crate::arguments::{KernelArguments, MeasureArguments};
use crate::exit::{Failure, INPUT, Result};
use crate::request::pick;
use krn_compiler::check::typed::Kernel;
use krn_compiler::manifest::KernelManifest;
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileOptions};

#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub source: &'a SourceFile,
    pub compilation: &'a Compilation,
    /// What it was compiled with.
    pub compile: &'a CompileOptions,
    pub kernel: &'a KernelArguments,
    pub measure: &'a MeasureArguments,
}

impl<'a> Subject<'a> {
    /// The kernel that is asked for, and how it is launched.
    ///
    /// # Errors
    /// There is none, or several to pick from.
    pub fn pick(&self) -> Result<(&'a Kernel, &'a KernelManifest)> {
        let typed = pick(&self.compilation.program, self.kernel)?;
        let manifests = &self.compilation.compiled.manifest.kernels;
        let manifest = manifests.iter().find(|known| known.name == typed.name);
        let missing = || Failure::new(INPUT, format!("kernel `{}` was not compiled", typed.name));
        Ok((typed, manifest.ok_or_else(missing)?))
    }

    pub fn seed(&self) -> u64 {
        self.kernel.seed
    }
}
