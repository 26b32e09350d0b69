//! The typed face of the runtime: arrays whose element type and rank Rust checks.

mod array;
mod view;

pub use array::{Array, ArrayOptions};
pub use view::{View, ViewMut};
