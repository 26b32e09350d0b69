//! Loads and launches compiled Krn modules, on CUDA through the driver API or on the emulator.
//!
//! [`Device::open`] gives the CUDA device if there is a driver, else the emulator; both run the same
//! [`CompiledModule`](krn_compiler::CompiledModule) through the same calls. Arguments go by name; every name, type,
//! shape and `where` fact is checked before anything is launched.

mod array;
mod backend;
mod binding;
pub mod cuda;
mod device;
mod element;
pub mod emulator;
mod emulator_device;
mod error;
mod graph;
mod kernel;
mod launcher;
mod layout;
mod memory;
mod module;
pub mod npy;
mod order;
mod plan;
pub mod profile;
mod record;
mod scratch;
mod shared;
mod storage;
mod stream;
mod timing;
mod typed;
pub mod verify;

pub use krn_compiler::data::{ElementType, HostArray, Leaf, Scalar};
pub use krn_compiler::manifest::Layout;

pub use array::DeviceArray;
pub use backend::DevicePtr;
pub use binding::{Binding, DIMENSION_LIMIT, Given, bind, decode};
pub use device::{Device, Selection};
pub use element::{Element, value};
pub use error::{BoundsFailure, Error, Result};
pub use graph::Graph;
pub use kernel::{Argument, Kernel, Outputs, scalar};
pub use launcher::{Launcher, Operand};
pub use memory::Memory;
pub use module::Module;
pub use stream::{Event, Stream};
pub use timing::{Bound, Measured, TimingOptions, measure};
pub use typed::{
    Advice, Array, ArrayOptions, HostSlice, HostSliceMut, Pending, Pinned, Place, Static, View, ViewMut,
};
