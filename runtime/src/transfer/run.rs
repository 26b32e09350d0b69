//! Kernels on arrays of the host.

use crate::error::Result;
use crate::launch::argument::Argument;
use crate::launch::kernel::Kernel;
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, Direction};
use std::time::Duration;

/// What a run on host arrays gives back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outputs {
    /// `inout` arguments and results, by name, in the order of the signature.
    pub arrays: Vec<(String, HostArray)>,
    /// Time on the device, without copies.
    pub elapsed: Duration,
}

impl Kernel<'_> {
    /// Runs on host arrays: uploads inputs, runs, downloads `inout` arguments and results.
    ///
    /// # Errors
    /// Everything in [`Error`].
    pub fn run(&self, inputs: &[(&str, &HostArray)]) -> Result<Outputs> {
        let mut arrays = Vec::new();
        for argument in &self.manifest().arguments {
            if let ArgumentKind::Array { buffer, .. } = &argument.kind
                && let Some((_, host)) = inputs.iter().find(|(name, _)| *name == argument.name)
            {
                arrays.push((argument.name.as_str(), self.device().upload(host, buffer.layout)?));
            }
        }
        let mut arguments: Vec<(&str, Argument<'_>)> =
            arrays.iter().map(|(name, array)| (*name, Argument::Array(array))).collect();
        for (name, value) in inputs {
            if !arguments.iter().any(|(known, _)| known == name) {
                arguments.push((name, Argument::Value(value)));
            }
        }
        let (results, elapsed) = self.launch_timed(&arguments)?;
        let mut outputs = Outputs { arrays: Vec::new(), elapsed };
        for argument in &self.manifest().arguments {
            let ArgumentKind::Array { direction, .. } = &argument.kind else { continue };
            if *direction == Direction::In {
                continue;
            }
            let made = results.iter().find(|(name, _)| *name == argument.name).map(|(_, array)| array);
            let given = arrays.iter().find(|(name, _)| *name == argument.name).map(|(_, array)| array);
            if let Some(array) = made.or(given) {
                outputs.arrays.push((argument.name.clone(), array.download()?));
            }
        }
        Ok(outputs)
    }
}
