//! PTX that somebody changed by hand, in the place of what the compiler made.

use crate::exit::{Failure, INPUT, Result};
use crate::files;
use krn_compiler::{CompiledModule, TARGETS, ptx};
use std::path::Path;

/// Puts the PTX of `path` in the place of the compiler's, whose manifest it is launched by. Refused where it cannot be read,
/// is for an unknown target or of a version without it, lacks an entry, or has one with other parameters.
pub fn replace(compiled: &mut CompiledModule, path: &Path) -> Result<()> {
    let refuse = |message: String| Failure::new(INPUT, format!("{}: {message}", path.display()));
    let text = String::from_utf8(files::read_source(path)?)
        .map_err(|_| refuse("it is not UTF-8 text".to_string()))?;
    let module =
        ptx::parse(&text).map_err(|error| Failure::new(INPUT, format!("{}:{error}", path.display())))?;
    let Some(target) = ptx::Target::find(&module.target) else {
        let known = TARGETS.join(", ");
        return Err(refuse(format!(
            "its `.target {}` is none that Krn knows; known are {known}",
            module.target
        )));
    };
    if module.version < target.version {
        return Err(refuse(format!(
            "`.target {target}` needs `.version {}`, and it says {}",
            target.version, module.version
        )));
    }
    for entry in &compiled.module.entries {
        let name = &entry.name;
        let Some(given) = module.entry(name) else {
            return Err(refuse(format!("it has no entry `{name}`, which the file's kernels launch")));
        };
        let bytes = |entry: &ptx::Entry| entry.params.values().map(|param| param.bytes()).collect::<Vec<_>>();
        if bytes(given) != bytes(entry) {
            return Err(refuse(format!(
                "`{name}` has other parameters than the compiler's: they cannot be filled in"
            )));
        }
    }
    (compiled.ptx, compiled.module) = (text, module);
    // Other sizes would be launched with code of the compiler's.
    compiled.origin = None;
    Ok(())
}
