//! What an editor says is to be debugged: its launch configuration.

use crate::arguments::{CompileArguments, KernelArguments};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A launch configuration. Editors add fields of their own.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Configuration {
    /// The `.krn` file.
    pub program: PathBuf,
    #[serde(default)]
    pub kernel: Option<String>,
    /// Dimensions, as `-D`.
    #[serde(default)]
    pub sizes: BTreeMap<String, u64>,
    /// Scalar parameters, as `--set`.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Inputs, as `--in`.
    #[serde(default)]
    pub inputs: BTreeMap<String, String>,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub target: Option<String>,
    /// Debug the code that a GPU would run; else that of no pass that can be left out.
    #[serde(default)]
    pub optimize: bool,
    /// Passes to leave out of it.
    #[serde(default)]
    pub without: Vec<String>,
    #[serde(default)]
    pub unchecked: bool,
    /// Tell what kernels print, once they have ended.
    #[serde(default)]
    pub prints: bool,
    /// Stop at races and at reads of what nobody has written.
    #[serde(default = "yes")]
    pub sanitize: bool,
    #[serde(default)]
    pub stop_on_entry: bool,
    /// Run without stopping.
    #[serde(default)]
    pub no_debug: bool,
    /// Where to stop; anywhere, if left out.
    #[serde(default)]
    pub block: Option<BlockChoice>,
    #[serde(default)]
    pub warp: Option<usize>,
    #[serde(default)]
    pub lane: Option<usize>,
}

/// A block, by its number or its place in the grid.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(untagged)]
pub enum BlockChoice {
    Number(u64),
    Position([u32; 3]),
}

fn yes() -> bool {
    true
}

impl Configuration {
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(arguments: &Value) -> Result<Self, String> {
        let parsed: Self = serde_json::from_value(arguments.clone())
            .map_err(|error| format!("the launch configuration: {error}"))?;
        if let Some(lane) = parsed.lane.filter(|lane| *lane > 31) {
            return Err(format!("the launch configuration: a warp has lanes 0 to 31, and no lane {lane}"));
        }
        Ok(parsed)
    }

    /// The same as words of the command line.
    pub fn kernel_arguments(&self) -> KernelArguments {
        let plain = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        KernelArguments {
            file: self.program.clone(),
            kernel: self.kernel.clone(),
            dims: self.sizes.iter().map(|(name, size)| format!("{name}={size}")).collect(),
            specialize: false,
            set: self.set.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect(),
            inputs: self.inputs.iter().map(|(name, what)| format!("{name}={what}")).collect(),
            seed: self.seed,
        }
    }

    pub fn compile_arguments(&self) -> CompileArguments {
        CompileArguments {
            target: self.target.clone(),
            unchecked: self.unchecked,
            prints: self.prints,
            without: self.without.clone(),
            ir: None,
        }
    }
}
