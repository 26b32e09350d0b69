//! Another library's memory and streams: the CUDA driver's, called by hand; on the emulator, arrays stand for it.

use krn_runtime::{Array, Device, RawStream};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Where the other library gets its memory.
pub enum Theirs {
    Driver { library: *mut c_void },
    Emulator { device: Device, arrays: RefCell<Vec<Array<u8, 1>>> },
}

/// Calls a function of the driver by name, with these types of arguments, and checks that it succeeds.
macro_rules! call {
    ($library:expr, $name:literal, $($argument:expr => $ty:ty),*) => {{
        let name = CString::new($name).expect("no zeros");
        // SAFETY: the library is open, and its function of that name has these arguments.
        let code = unsafe {
            let found = dlsym($library, name.as_ptr());
            assert!(!found.is_null(), "the driver has no {}", $name);
            let function: unsafe extern "C" fn($($ty),*) -> c_int = std::mem::transmute(found);
            function($($argument),*)
        };
        assert_eq!(code, 0, "{}", $name);
    }};
}

impl Theirs {
    /// The driver's calls need a current context: that which `device` made current on this thread.
    pub fn new(device: &Device) -> Self {
        if device.is_emulator() {
            return Self::Emulator { device: device.clone(), arrays: RefCell::default() };
        }
        device.synchronize().expect("nothing was launched");
        const NOW: c_int = 2;
        // SAFETY: the runtime has opened it as well.
        let library = unsafe { dlopen(c"libcuda.so.1".as_ptr(), NOW) };
        assert!(!library.is_null(), "the driver is there");
        Self::Driver { library }
    }

    pub fn allocate(&self, bytes: usize) -> u64 {
        match self {
            Self::Driver { library } => {
                let mut pointer = 0u64;
                call!(*library, "cuMemAlloc_v2", &mut pointer => *mut u64, bytes => usize);
                pointer
            }
            Self::Emulator { device, arrays } => {
                let array = Array::<u8, 1>::zeros(device, [bytes]).expect("small");
                let pointer = array.pointers().next().expect("one");
                arrays.borrow_mut().push(array);
                pointer
            }
        }
    }

    pub fn free(&self, pointer: u64) {
        match self {
            Self::Driver { library } => call!(*library, "cuMemFree_v2", pointer => u64),
            Self::Emulator { arrays, .. } => {
                let before = arrays.borrow().len();
                arrays.borrow_mut().retain(|array| array.pointers().next() != Some(pointer));
                assert_eq!(arrays.borrow().len(), before - 1);
            }
        }
    }

    pub fn write(&self, to: u64, bytes: &[u8]) {
        match self {
            Self::Driver { library } => {
                call!(*library, "cuMemcpyHtoD_v2", to => u64, bytes.as_ptr() => *const u8, bytes.len() => usize);
            }
            Self::Emulator { arrays, .. } => {
                let mut arrays = arrays.borrow_mut();
                let array = arrays.iter_mut().find(|array| array.pointers().next() == Some(to));
                array.expect("theirs").write(bytes).expect("fits");
            }
        }
    }

    pub fn read(&self, from: u64, count: usize) -> Vec<u8> {
        match self {
            Self::Driver { library } => {
                let mut bytes = vec![0u8; count];
                call!(*library, "cuMemcpyDtoH_v2", bytes.as_mut_ptr() => *mut u8, from => u64, count => usize);
                bytes
            }
            Self::Emulator { arrays, .. } => {
                let arrays = arrays.borrow();
                let array = arrays.iter().find(|array| array.pointers().next() == Some(from));
                array.expect("theirs").to_vec().expect("there")
            }
        }
    }

    /// A copy from one address to another, on a stream.
    pub fn queue_copy(&self, stream: RawStream, to: u64, from: u64, count: usize) {
        match self {
            Self::Driver { library } => {
                call!(
                    *library, "cuMemcpyDtoDAsync_v2",
                    to => u64, from => u64, count => usize, stream => RawStream
                );
            }
            Self::Emulator { device, .. } => {
                // SAFETY: the caller's arrays are alive, and used here alone.
                let (from, mut to) = unsafe {
                    (
                        krn_runtime::View::<u8, 1>::from_raw(device, from, [count]).expect("theirs"),
                        krn_runtime::ViewMut::<u8, 1>::from_raw(device, to, [count]).expect("theirs"),
                    )
                };
                to.write(&from.to_vec().expect("there")).expect("fits");
            }
        }
    }

    /// A stream beside the default stream; the default stream on the emulator.
    pub fn open_stream(&self) -> RawStream {
        let mut stream: RawStream = std::ptr::null_mut();
        if let Self::Driver { library } = self {
            const NON_BLOCKING: c_uint = 1;
            call!(*library, "cuStreamCreate", &mut stream => *mut RawStream, NON_BLOCKING => c_uint);
        }
        stream
    }

    pub fn close_stream(&self, stream: RawStream) {
        if let Self::Driver { library } = self {
            call!(*library, "cuStreamDestroy_v2", stream => RawStream);
        }
    }
}
