//! Everything that can go wrong between a host program and a kernel.

pub(crate) mod compile;
pub(crate) mod lost;

use crate::error::compile::CompileFailure;
use crate::error::lost::{LostDevice, write_in_flight};
use crate::memory_kind::Memory;
use krn_compiler::fat::FatError;
use krn_compiler::manifest::Layout;
use std::fmt;

/// An error of the runtime. Its `Display` is one readable message that names the user's things.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No CUDA driver, or it has no device of that number.
    #[error("{0}")]
    NoDevice(String),
    /// The driver refused something; which call, for which launch, and what it said. Where it waited for launches, those
    /// that were not known to be done.
    #[error("CUDA: {call} failed: {message}{}", Launches(.in_flight))]
    Driver { call: String, message: String, in_flight: Vec<String> },
    /// A fault after which the device cannot be used by this process; every later call on it says so again.
    #[error("{0}")]
    DeviceLost(Box<LostDevice>),
    /// The driver is older than what it was given.
    #[error(
        "the CUDA driver is too old: {needs} is needed, but it is {has}; update the driver, or compile for an older \
         target"
    )]
    DriverTooOld { needs: String, has: String },
    /// The driver could not compile the PTX; its log follows.
    #[error("the CUDA driver refused the PTX: {message}\n{log}")]
    Jit { message: String, log: String },
    /// Device memory ran out.
    #[error("out of device memory: {asked} bytes asked for `{what}`{}", free_text(*.free))]
    OutOfMemory { what: String, asked: u64, free: Option<u64> },
    /// A file cannot be read.
    #[error("cannot read `{path}`: {message}")]
    File { path: String, message: String },
    /// A file does not compile; its mistakes are drawn.
    #[error("{0}")]
    Compile(Box<CompileFailure>),
    /// A document with modules for several targets is damaged, or has none for the device.
    #[error(transparent)]
    Document(FatError),
    /// The module has no kernel of this name.
    #[error("the module has no kernel `{name}`; it has {}", list(.known))]
    UnknownKernel { name: String, known: Vec<String> },
    /// The module has no static of this name.
    #[error("the module has no static `{name}`; it has {}", list(.known))]
    UnknownStatic { name: String, known: Vec<String> },
    /// The arguments do not fit the kernel's signature: name, type, rank, extent, fact.
    #[error("kernel `{kernel}`: {message}")]
    Argument { kernel: String, message: String },
    /// An array has another extent than the signature says; `because` is where that comes from: `k = 70, from axis 1 of
    /// `a``.
    #[error(
        "kernel `{kernel}`: axis {axis} of `{argument}` must have extent {expected}{}, but an array with extent {given} \
         was given", in_brackets(.because)
    )]
    Extent { kernel: String, argument: String, axis: usize, expected: u64, given: u64, because: String },
    /// The structs of an array lie in another way than the kernel was compiled for.
    #[error(
        "kernel `{kernel}`: `{argument}` must have the layout `{wanted}`, but an array with the layout `{given}` was given; make \
         it for the kernel, or convert it with `to_layout`"
    )]
    Layout { kernel: String, argument: String, wanted: Layout, given: Layout },
    /// As many elements were asked for by a shape, but another number was given.
    #[error("{what} has {expected} elements, but {given} were given")]
    Length { what: String, expected: u64, given: u64 },
    /// An array on the host has another shape than the one on the device.
    #[error("an array of shape {expected:?} was expected, but one of shape {given:?} was given")]
    Shape { expected: Vec<usize>, given: Vec<usize> },
    /// An array or a static has another element type or rank than the Rust type says.
    #[error("{given} is no {expected}")]
    ArrayType { expected: String, given: String },
    /// A part of an array that cannot be: outside of it, or not aligned as kernels need it.
    #[error("{0}")]
    View(String),
    /// A raw pointer that no array can be borrowed from: not the device's, or not aligned as kernels need it.
    #[error("{0}")]
    RawPointer(String),
    /// Something was asked of an array that only another kind of memory can do.
    #[error("{what} needs {wanted}, but the array lies in {given}")]
    WrongMemory { what: String, wanted: Memory, given: Memory },
    /// On a stream that is captured nothing is compiled, and no code loaded: the code for these sizes has to be there.
    #[error(
        "kernel `{kernel}`: its code for {sizes} is not loaded, and a stream that is captured compiles and loads nothing; \
         call `prepare` with these sizes before the capture, or launch the kernel once"
    )]
    NotPrepared { kernel: String, sizes: String },
    /// A stream was used in a way that it cannot be.
    #[error("{0}")]
    Stream(String),
    /// The host has a slice of the array that something else would change or read meanwhile.
    #[error("{0}")]
    HostAccess(String),
    /// Things of two devices were brought together.
    #[error("{what} is on another device ({there}) than {other} ({here})")]
    WrongDevice { what: String, there: String, other: String, here: String },
    /// A byte of a `bool` came back from a device as neither 0 nor 1.
    #[error("element {index} has a bool whose byte is {byte}: neither 0 (false) nor 1 (true)")]
    InvalidBool { index: u64, byte: u8 },
    /// An access outside an array, found on the device.
    #[error("{0}")]
    Bounds(Box<BoundsFailure>),
    /// Two elements of an array are equal that a fact says are not, found on the device.
    #[error("{0}")]
    NotInjective(Box<InjectionFailure>),
    /// A condition does not hold that the kernel asserts, found on the device.
    #[error("{0}")]
    Assertion(Box<AssertionFailure>),
    /// A `while` at kernel level has had as many turns as the device lets it have.
    #[error(
        "kernel `{kernel}`: a `while` at kernel level still goes on after {turns} turns, which is the device's limit; should \
         it have ended, let its condition count turns too; else raise the limit (`--turns`, `Device::limit_turns`)"
    )]
    Endless { kernel: String, turns: u64 },
    /// The emulator stopped the kernel.
    #[error("{0}")]
    Fault(String),
    /// The run was cancelled.
    #[error("interrupted")]
    Interrupted,
}

/// What the device reports of an access outside its array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoundsFailure {
    pub kernel: String,
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub array: String,
    /// Counted from 0.
    pub axis: usize,
    /// As the source has it: an `i64` or a `u64`.
    pub index: i128,
    pub extent: i64,
}

impl fmt::Display for BoundsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, file, line, column, array, axis, index, extent } = self;
        write!(
            f,
            "{file}:{line}:{column}: kernel `{kernel}`: index {index} is outside axis {axis} of `{array}`, whose \
             extent is {extent}"
        )
    }
}

/// What the device reports of an array with equal elements where `where injective(…)` says that there are none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InjectionFailure {
    pub kernel: String,
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub array: String,
    /// The value that both elements hold.
    pub value: i128,
    /// Their positions, in row-major order.
    pub first: i64,
    pub second: i64,
    /// The fact as the user wrote it.
    pub fact: String,
}

impl fmt::Display for InjectionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, file, line, column, array, value, first, second, fact } = self;
        write!(
            f,
            "{file}:{line}:{column}: kernel `{kernel}`: `{array}` holds {value} at position {first} and at position \
             {second}; the kernel says `where {fact}`"
        )
    }
}

/// What the device reports of an `assert` that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AssertionFailure {
    pub kernel: String,
    pub file: String,
    pub line: u32,
    pub column: u32,
    /// The condition as the user wrote it.
    pub condition: String,
    /// The index names around it with their values, outermost first.
    pub indices: Vec<(String, i64)>,
}

impl fmt::Display for AssertionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, file, line, column, condition, indices } = self;
        write!(f, "{file}:{line}:{column}: kernel `{kernel}`: the assertion `{condition}` does not hold")?;
        for (at, (name, value)) in indices.iter().enumerate() {
            write!(f, "{} {name} = {value}", if at == 0 { " for" } else { "," })?;
        }
        Ok(())
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_string(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

fn in_brackets(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

struct Launches<'a>(&'a [String]);

impl fmt::Display for Launches<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in_flight(f, self.0)
    }
}

fn free_text(free: Option<u64>) -> String {
    free.map(|free| format!(", {free} are free")).unwrap_or_default()
}

pub type Result<T> = std::result::Result<T, Error>;
