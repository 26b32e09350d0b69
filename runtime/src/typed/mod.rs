//! The typed face of the runtime: arrays whose element type and rank Rust checks.

mod array;
mod host;
mod view;

pub use array::{Array, ArrayOptions};
pub use host::{HostSlice, HostSliceMut};
pub use view::{View, ViewMut};
