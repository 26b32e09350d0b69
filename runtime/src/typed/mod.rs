//! The typed face of the runtime: arrays whose element type and rank Rust checks.

mod array;
mod copies;
mod host;
mod managed;
mod pinned;
mod statics;
mod view;

pub use array::{Array, ArrayOptions};
pub use copies::Pending;
pub use host::{HostSlice, HostSliceMut};
pub use managed::{Advice, Place};
pub use pinned::Pinned;
pub use statics::Static;
pub use view::{View, ViewMut};
