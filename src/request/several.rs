//! A command line about several kernels of a file: what it says goes to those kernels that have what it names.

use crate::arguments::KernelArguments;
use crate::exit::{Failure, Result, USAGE};
use krn_compiler::manifest::{ArgumentKind, Direction, KernelManifest, SymbolKind};

/// What concerns one kernel.
pub struct Share {
    pub kernel: KernelArguments,
    /// Of the form name=file.
    pub outputs: Vec<String>,
}

/// One share a kernel. Of a single kernel all is said, right or wrong.
///
/// # Errors
/// Something that no kernel has, or a result that several would write to one file.
pub fn shares(
    options: &KernelArguments,
    outputs: &[String],
    kernels: &[&KernelManifest],
) -> Result<Vec<Share>> {
    if kernels.len() == 1 {
        return Ok(vec![Share { kernel: options.clone(), outputs: outputs.to_vec() }]);
    }
    known("-D", "a dimension", &options.dims, kernels, has_dim)?;
    known("--set", "a scalar parameter", &options.set, kernels, has_value)?;
    known("--in", "an input", &options.inputs, kernels, has_input)?;
    known("--out", "an output", outputs, kernels, has_output)?;
    for text in outputs {
        let owners: Vec<String> = kernels
            .iter()
            .filter(|kernel| has_output(kernel, name_of(text)))
            .map(|kernel| format!("`{}`", kernel.name))
            .collect();
        if owners.len() > 1 {
            let owners = owners.join(", ");
            let message = format!("--out {text}: {owners} have such an output; pick one of them by --kernel");
            return Err(Failure::new(USAGE, message));
        }
    }
    let share = |kernel: &&KernelManifest| {
        let of = |texts: &[String], has: fn(&KernelManifest, &str) -> bool| {
            texts.iter().filter(|text| has(kernel, name_of(text))).cloned().collect::<Vec<_>>()
        };
        Share {
            kernel: KernelArguments {
                dims: of(&options.dims, has_dim),
                set: of(&options.set, has_value),
                inputs: of(&options.inputs, has_input),
                ..options.clone()
            },
            outputs: of(outputs, has_output),
        }
    };
    Ok(kernels.iter().map(share).collect())
}

/// That each text names what some kernel has.
fn known(
    option: &str,
    what: &str,
    texts: &[String],
    kernels: &[&KernelManifest],
    has: fn(&KernelManifest, &str) -> bool,
) -> Result<()> {
    let nobodys = texts.iter().find(|text| !kernels.iter().any(|kernel| has(kernel, name_of(text))));
    match nobodys {
        Some(text) => {
            let message = format!("{option} {text}: no kernel of the file has {what} `{}`", name_of(text));
            Err(Failure::new(USAGE, message))
        }
        None => Ok(()),
    }
}

/// The name in `name=value` or `name.field=value`.
fn name_of(text: &str) -> &str {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    name.split_once('.').map_or(name, |(name, _)| name).trim()
}

fn has_dim(kernel: &KernelManifest, name: &str) -> bool {
    let is_dim = |kind: &_| matches!(kind, SymbolKind::Dim { .. });
    kernel.symbols.iter().any(|symbol| is_dim(&symbol.kind) && symbol.name == name)
}

fn has_value(kernel: &KernelManifest, name: &str) -> bool {
    let is_value = |kind: &_| matches!(kind, ArgumentKind::Value { .. });
    kernel.arguments.iter().any(|argument| is_value(&argument.kind) && argument.name == name)
}

fn has_array(kernel: &KernelManifest, name: &str, wanted: fn(Direction) -> bool) -> bool {
    kernel.arguments.iter().any(|argument| match argument.kind {
        ArgumentKind::Array { direction, .. } => argument.name == name && wanted(direction),
        ArgumentKind::Value { .. } => false,
    })
}

fn has_input(kernel: &KernelManifest, name: &str) -> bool {
    has_array(kernel, name, |direction| direction != Direction::Out)
}

fn has_output(kernel: &KernelManifest, name: &str) -> bool {
    has_array(kernel, name, |direction| direction != Direction::In)
}
