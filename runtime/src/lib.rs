//! Loads and launches compiled Krn modules, on CUDA through the driver API or on the emulator.
//!
//! [`Device::open`] gives the CUDA device if there is a driver, else the emulator; both run the same
//! [`CompiledModule`](krn_compiler::CompiledModule) through the same calls. [`kernels!`] makes functions of the kernels of
//! a file, whose arguments Rust checks; by way of [`Module`] arguments go by name, for files that only the run knows.
//! Every type, shape and `where` fact is checked before anything is launched.

// So that what the macros write finds this crate from within, too.
extern crate self as krn_runtime;

mod backend;
pub mod cuda;
mod device;
pub mod emulator;
mod error;
mod launch;
mod memory;
mod memory_kind;
pub mod npy;
pub mod npz;
mod order;
pub mod profile;
mod stream;
mod transfer;
mod typed;
pub mod verify;

pub use half::{bf16, f16};
pub use krn_compiler::data::{ElementType, HostArray, Leaf, Scalar};
pub use krn_compiler::manifest::{Layout, Value};
pub use krn_macros::{KrnStruct, kernels};

pub use backend::{DevicePtr, RawStream, UnderWay};
pub use device::watch::NewVariant;
pub use device::{Device, Selection};
pub use error::compile::CompileFailure;
pub use error::lost::{LossCause, LostDevice};
pub use error::{BoundsFailure, Error, InjectionFailure, Result};
pub use launch::argument::{Argument, scalar};
pub use launch::binding::{Binding, DIMENSION_LIMIT, Given, bind, decode};
pub use launch::kernel::Kernel;
pub use launch::launcher::Launcher;
pub use launch::module::Module;
pub use launch::module_options::ModuleOptions;
pub use launch::operand::Operand;
pub use launch::timing::{Bound, Measured, TimingOptions, measure};
pub use memory::array::DeviceArray;
pub use memory::element::{Element, Field, FieldType, struct_type, value};
pub use memory_kind::{Advice, Memory, Place};
pub use stream::graph::Graph;
pub use stream::{Event, Stream};
pub use transfer::run::Outputs;
pub use typed::{
    Array, ArrayArgument, ArrayOptions, CopyError, Foreign, HostSlice, HostSliceMut, Pending, Pinned,
    Readable, Static, TypedModule, View, ViewMut, Writable,
};
