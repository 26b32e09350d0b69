//! The typed face of the runtime: arrays whose element type and rank Rust checks, and what `kernels!` builds on.

mod argument;
mod array;
mod copies;
mod foreign;
mod host;
mod managed;
mod module;
#[cfg(feature = "ndarray")]
mod ndarray;
mod pinned;
mod raw;
mod statics;
mod view;

pub use argument::{ArrayArgument, Readable, Writable};
pub use array::{Array, ArrayOptions};
pub use copies::{CopyError, Pending};
pub use foreign::Foreign;
pub use host::{HostSlice, HostSliceMut};
pub use module::TypedModule;
pub use pinned::Pinned;
pub use statics::Static;
pub use view::{View, ViewMut};
