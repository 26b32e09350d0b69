//! DLPack 1.x as C has it: tensors, who owns them, and the table by which a library exchanges them without Python calls.

use std::ffi::{c_char, c_int, c_void};

/// The major version of this file. A library with another one has other structs.
pub const MAJOR: u32 = 1;

pub const CPU: i32 = 1;
pub const CUDA: i32 = 2;
pub const CUDA_HOST: i32 = 3;
pub const CUDA_MANAGED: i32 = 13;

/// Of [`ManagedTensorVersioned::flags`]: the memory must not be written.
pub const READ_ONLY: u64 = 1;

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    pub kind: i32,
    pub number: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device: Device,
    pub rank: i32,
    pub data_type: DataType,
    pub shape: *mut i64,
    /// In elements; null for row-major order without gaps.
    pub strides: *mut i64,
    pub byte_offset: u64,
}

impl Tensor {
    pub const EMPTY: Tensor = Tensor {
        data: std::ptr::null_mut(),
        device: Device { kind: 0, number: 0 },
        rank: 0,
        data_type: DataType { code: 0, bits: 0, lanes: 0 },
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
}

/// As libraries gave tensors away before version 1.
#[repr(C)]
pub struct ManagedTensor {
    pub tensor: Tensor,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

#[repr(C)]
pub struct ManagedTensorVersioned {
    pub version: Version,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut ManagedTensorVersioned)>,
    pub flags: u64,
    pub tensor: Tensor,
}

/// Told of an error: its context, the name of the exception, the message.
pub type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

#[repr(C)]
pub struct ExchangeHeader {
    pub version: Version,
    pub previous: *mut ExchangeHeader,
}

/// What `__dlpack_c_exchange_api__` of a type points to, which stays for good. Each call gives 0, or -1 with a Python
/// exception set (the allocator by [`SetError`]).
#[repr(C)]
pub struct Exchange {
    pub header: ExchangeHeader,
    pub allocate:
        unsafe extern "C" fn(*mut Tensor, *mut *mut ManagedTensorVersioned, *mut c_void, SetError) -> c_int,
    pub from_object: unsafe extern "C" fn(*mut c_void, *mut *mut ManagedTensorVersioned) -> c_int,
    pub to_object: unsafe extern "C" fn(*mut ManagedTensorVersioned, *mut *mut c_void) -> c_int,
    /// Absent in some libraries.
    pub tensor_of_object: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    pub current_stream: unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int,
}
