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
mod sequence;
mod stream;
mod transfer;
mod typed;
pub mod verify;

pub use half::{bf16, f16};
pub use krn_compiler::data::{ElementType, HostArray, Leaf, Scalar};
pub use krn_compiler::manifest::{Layout, Value};

pub use backend::{DevicePtr, RawStream, UnderWay};
pub use device::prints::{Print, Printed, Prints, grouped};
pub use device::watch::NewVariant;
pub use device::{Device, Selection};
pub use error::compile::CompileFailure;
pub use error::lost::{LossCause, LostDevice};
pub use error::{AssertionFailure, BoundsFailure, Error, InjectionFailure, Result};
pub use launch::argument::{Argument, scalar};
pub use launch::binding::{Binding, DIMENSION_LIMIT, Given, bind, decode};
pub use launch::guest::{GuestLayout, GuestPlan};
pub use launch::kernel::Kernel;
pub use launch::launcher::Launcher;
pub use launch::module::Module;
pub use launch::module_options::ModuleOptions;
pub use launch::operand::Operand;
pub use launch::timing::{Bound, Measured, TimingOptions, measure};
pub use memory::array::DeviceArray;
pub use memory::element::{Element, Field, FieldType, struct_type, value};
pub use memory::mapped::HostMapping;
pub use memory_kind::{Advice, Memory, Place};
pub use stream::graph::Graph;
pub use stream::{Event, Stream};
pub use transfer::run::Outputs;
pub use typed::{
    Array, ArrayArgument, ArrayOptions, CopyError, Foreign, HostSlice, HostSliceMut, Pending, Pinned,
    Readable, Static, TypedModule, View, ViewMut, Writable,
};

/// Makes the struct an element of arrays and an argument of kernels: implements `Element`.
///
/// The struct is `#[repr(C)]` and `Copy`; its fields are scalars (`bool`, `i8` … `u64`, `f16`, `bf16`, `f32`, `f64`),
/// other such structs, and fixed arrays of these. Names and order of the fields are those of the struct in the `.krn`
/// file; `#[krn(name = "self")]` gives a field a name there that Rust does not allow.
///
/// ```
/// use krn_runtime::{Array, Device, KrnStruct, Selection};
///
/// #[repr(C)]
/// #[derive(Clone, Copy, PartialEq, Debug, KrnStruct)]
/// struct Particle {
///     position: [f32; 3],
///     alive: bool,
/// }
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let particles = [Particle { position: [1.0, 2.0, 3.0], alive: true }; 10];
/// let array = Array::from_slice(&device, [10], &particles)?;
/// assert_eq!(array.to_vec()?, particles);
/// # Ok::<(), krn_runtime::Error>(())
/// ```
pub use krn_macros::KrnStruct;

/// Compiles a `.krn` file when the program is compiled, and makes functions of its kernels.
///
/// `kernels!("gravity.krn")` writes a module `gravity`. The path is relative to the file that it stands in (where the
/// compiler does not say which, as in documentation tests, to the folder of `Cargo.toml`). Mistakes in the `.krn` file
/// are errors of the Rust compiler, and its warnings are warnings; a changed file is compiled again.
///
/// ```text
/// kernels!("gravity.krn");
/// kernels!("gravity.krn", name = small, sizes = { n: 64 }, targets = ["sm_80", "sm_90"]);
/// kernels!("gravity.krn", for = [{ n: 4096 }, { n: 64, eps: 1e-5 }]);
/// kernels!("gravity.krn", prints = true);
/// kernels!("gravity.krn", structs = { Body: crate::Body });
/// ```
///
/// - `name`: of the module, instead of the file's.
/// - `sizes`: dimensions that are known now. Code is made for them, and a launch with others is refused.
/// - `for`: sizes and parameters that code is made for now, beside the usual ones. Any others are compiled when they come,
///   from the text of the file, which the program keeps.
/// - `targets`: what to compile for, instead of `sm_75`, `sm_80` and `sm_90`. A device takes the newest that runs there.
/// - `prints`: has `print` tell values ([`Device::watch_prints`]). Without it prints are left out, and cost nothing.
/// - `structs`: types with `#[derive(KrnStruct)]` to use instead of new ones.
///
/// # What the module holds
///
/// - A struct for each of the file's: `#[repr(C)]`, `Clone, Copy, Debug, PartialEq, KrnStruct`, all fields public.
/// - `Kernels`: the loaded module. `Kernels::load(&device)` loads it, to launch on a stream of its own;
///   `on(&stream)` gives the same kernels on another stream. `prepare("matmul", &[("m", 4096.into())])` has code for sizes
///   compiled and loaded ahead of the first launch.
/// - A method for each kernel, which queues a launch and returns. Its arguments are those of the signature, in order:
///   scalars and structs by value, arrays as `&Array<T, RANK>` (a `View` is one too), `inout` arrays as `&mut Array` or
///   `&mut ViewMut`. Results are allocated and returned: an array (without axes for a single value), or a tuple.
/// - `NAME_into` for each kernel with results: it takes arrays for them, after the other arguments.
/// - `NAME()` and `set_NAME(…)` for each `static`: a value, or a `Vec` and a slice.
/// - A module for each kernel, with an `ArrayArgument` for each of its arrays, in capitals: `kernels.upload(advance::BODY,
///   [n], &bodies)` and `kernels.zeros(…)` make arrays that lie as the kernel wants them. For arrays of scalars there
///   is one layout only, and `Array::from_slice` does as well.
///
/// A Rust keyword as a name is written as `r#match`. Where a name is taken (`load`, `on`, `stream`, `device`, `module`,
/// `prepare`, `upload`, `zeros`), an underscore is appended: `load_`.
///
/// ```
/// krn_runtime::kernels!("../examples/struct_update.krn");
/// use krn_runtime::{Device, Selection};
/// use struct_update::{Kernels, Particle, one_field_soa};
///
/// let kernels = Kernels::load(&Device::open_as(Selection::Emulator)?)?;
/// let particles = [Particle { position: 1.0, velocity: 2.0 }; 100];
/// let mut p = kernels.upload(one_field_soa::P, [100], &particles)?;
/// kernels.one_field_soa(&mut p, 3.0)?;
/// assert_eq!(p.to_vec()?[99], Particle { position: 1.0, velocity: 6.0 });
/// # Ok::<(), krn_runtime::Error>(())
/// ```
///
/// Wrong arguments are type errors:
///
/// ```compile_fail,E0308
/// krn_runtime::kernels!("../examples/vector_add.krn");
/// use krn_runtime::{Array, Device, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let kernels = vector_add::Kernels::load(&device)?;
/// let (a, b) = (Array::<f32, 1>::zeros(&device, [8])?, Array::<f64, 1>::zeros(&device, [8])?);
/// kernels.vector_add(&a, &b)?; // `b` is not of `f32`
/// # Ok::<(), krn_runtime::Error>(())
/// ```
///
/// An array that is gone cannot be given, and what a kernel writes cannot be lent to somebody else meanwhile:
///
/// ```compile_fail,E0382
/// krn_runtime::kernels!("../examples/vector_add.krn");
/// use krn_runtime::{Array, Device, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let kernels = vector_add::Kernels::load(&device)?;
/// let a = Array::<f32, 1>::zeros(&device, [8])?;
/// drop(a);
/// kernels.vector_add(&a, &a)?; // `a` was moved
/// # Ok::<(), krn_runtime::Error>(())
/// ```
///
/// ```compile_fail,E0502
/// krn_runtime::kernels!("../examples/vector_add.krn");
/// use krn_runtime::{Array, Device, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let kernels = vector_add::Kernels::load(&device)?;
/// let mut a = Array::<f32, 1>::zeros(&device, [8])?;
/// kernels.vector_add_into(&a, &a, &mut a)?; // `a` is read
/// # Ok::<(), krn_runtime::Error>(())
/// ```
///
/// ```compile_fail,E0277
/// krn_runtime::kernels!("../examples/vector_add.krn");
/// use krn_runtime::{Array, Device, Selection};
///
/// let device = Device::open_as(Selection::Emulator)?;
/// let kernels = vector_add::Kernels::load(&device)?;
/// let a = Array::<f32, 1>::zeros(&device, [8])?;
/// let mut sum = Array::<f32, 2>::zeros(&device, [8, 1])?;
/// kernels.vector_add_into(&a, &a, &mut sum)?; // an array of one axis is written
/// # Ok::<(), krn_runtime::Error>(())
/// ```
///
/// Places of arguments belong to their module:
///
/// ```compile_fail,E0308
/// krn_runtime::kernels!("../examples/n_body.krn");
/// krn_runtime::kernels!("../examples/n_body.krn", name = other);
/// use krn_runtime::{Device, Selection};
///
/// let kernels = n_body::Kernels::load(&Device::open_as(Selection::Emulator)?)?;
/// kernels.zeros(other::gravity::BODY, [8])?; // of `other`
/// # Ok::<(), krn_runtime::Error>(())
/// ```
///
/// Mistakes in the file, and files that are not there, are errors of the Rust compiler:
///
/// ```compile_fail
/// krn_runtime::kernels!("no_such_file.krn");
/// ```
pub use krn_macros::kernels;
