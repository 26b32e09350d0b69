//! Launches by position: what typed kernels are made of.

use crate::array::DeviceArray;
use crate::element::{self, Element};
use crate::error::{Error, Result};
use crate::kernel::{Argument, Kernel};
use crate::module::Module;
use crate::stream::Stream;
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, Direction, KernelManifest, Layout};
use std::borrow::Cow;
use std::sync::Arc;

/// An argument or result of a launch, by its place in the signature.
pub enum Operand<'a> {
    /// A scalar or struct by value: its bytes in the C layout. See [`Operand::value`].
    Value(Cow<'a, [u8]>),
    Array(&'a DeviceArray),
    /// A result that is allocated for the launch.
    Absent,
}

impl<'a> Operand<'a> {
    pub fn value<T: Element>(value: &'a T) -> Self {
        Self::Value(element::bytes_of(std::slice::from_ref(value)))
    }
}

/// A kernel of a loaded module that keeps the module alive, for callers who know its signature: the code that
/// `kernels!` writes.
#[derive(Clone)]
pub struct Launcher {
    module: Arc<Module>,
    position: usize,
}

impl Launcher {
    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`].
    pub fn new(module: &Arc<Module>, kernel: &str) -> Result<Self> {
        let position = module.kernel_position(kernel)?;
        Ok(Self { module: Arc::clone(module), position })
    }

    pub fn manifest(&self) -> &KernelManifest {
        &self.module.manifest.kernels[self.position]
    }

    /// The layout that the argument or result at that place wants; [`Layout::Aos`] for values.
    pub fn layout(&self, argument: usize) -> Layout {
        match self.manifest().arguments.get(argument).map(|argument| &argument.kind) {
            Some(ArgumentKind::Array { buffer, .. }) => buffer.layout,
            _ => Layout::Aos,
        }
    }

    /// Queues a launch on a stream. The results that are [`Operand::Absent`] are allocated and returned, in the order of
    /// the signature.
    ///
    /// # Errors
    /// As for [`Kernel::launch_on`].
    pub fn launch(&self, stream: &Stream, operands: &[Operand<'_>]) -> Result<Vec<DeviceArray>> {
        let manifest = self.manifest();
        let count = manifest.arguments.len();
        if operands.len() != count {
            return Err(Error::Argument {
                kernel: manifest.name.clone(),
                message: format!("takes {count} arguments and results, but {} were given", operands.len()),
            });
        }
        let mut values = Vec::new();
        for (argument, operand) in manifest.arguments.iter().zip(operands) {
            if let (ArgumentKind::Value { element }, Operand::Value(bytes)) = (&argument.kind, operand) {
                let host = HostArray { element: element.clone(), shape: Vec::new(), bytes: bytes.to_vec() };
                values.push((argument.name.as_str(), host));
            }
        }
        let mut arguments: Vec<(&str, Argument<'_>)> =
            values.iter().map(|(name, value)| (*name, Argument::Value(value))).collect();
        for (argument, operand) in manifest.arguments.iter().zip(operands) {
            if let Operand::Array(array) = operand {
                arguments.push((&argument.name, Argument::Array(array)));
            }
        }
        let results = Kernel::new(&self.module, self.position).launch_on(stream, &arguments)?;
        Ok(results.into_iter().map(|(_, array)| array).collect())
    }

    /// Whether the argument at that place is written.
    pub fn writes(&self, argument: usize) -> bool {
        let argument = self.manifest().arguments.get(argument);
        argument.is_some_and(|argument| match &argument.kind {
            ArgumentKind::Array { direction, .. } => *direction != Direction::In,
            ArgumentKind::Value { .. } => false,
        })
    }
}
