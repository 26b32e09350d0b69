//! Loads and launches compiled Krn modules, on CUDA through the driver API or on the emulator.
//!
//! [`Device::open`] gives the CUDA device if there is a driver, else the emulator; both run the same
//! [`CompiledModule`](krn_compiler::CompiledModule) through the same calls. [`kernels!`] makes functions of the kernels of
//! a file, whose arguments Rust checks; by way of [`Module`] arguments go by name, for files that only the run knows.
//! Every type, shape and `where` fact is checked before anything is launched.

// So that what the macros write finds this crate from within, too.
extern crate self as krn_runtime;

mod argument;
mod array;
mod backend;
mod binding;
mod convert;
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
mod lost;
mod memory;
mod module;
mod module_options;
mod modules;
pub mod npy;
pub mod npz;
mod order;
mod plan;
mod plans;
mod prepared;
pub mod profile;
mod record;
mod scratch;
mod shared;
mod storage;
mod stream;
mod strided;
mod timing;
mod typed;
pub mod verify;

pub use half::{bf16, f16};
pub use krn_compiler::data::{ElementType, HostArray, Leaf, Scalar};
pub use krn_compiler::manifest::Layout;
pub use krn_macros::{KrnStruct, kernels};

pub use argument::Argument;
pub use array::DeviceArray;
pub use backend::{DevicePtr, RawStream};
pub use binding::{Binding, DIMENSION_LIMIT, Given, bind, decode};
pub use device::{Device, Selection};
pub use element::{Element, Field, FieldType, struct_type, value};
pub use error::{BoundsFailure, Error, Result};
pub use graph::Graph;
pub use kernel::{Kernel, Outputs, scalar};
pub use launcher::{Launcher, Operand};
pub use lost::{LossCause, LostDevice};
pub use memory::Memory;
pub use module::Module;
pub use module_options::{CompileFailure, ModuleOptions};
pub use stream::{Event, Stream};
pub use timing::{Bound, Measured, TimingOptions, measure};
pub use typed::{
    Advice, Array, ArrayArgument, ArrayOptions, CopyError, Foreign, HostSlice, HostSliceMut, Pending, Pinned,
    Place, Readable, Static, TypedModule, View, ViewMut, Writable,
};
