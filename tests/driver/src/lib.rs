//! A CUDA driver without a GPU, for tests of what happens when the driver fails: the calls that the runtime makes, with
//! the host's memory as the device's and launches that do nothing. [`plan`] says what goes wrong.

#![allow(non_snake_case, clippy::missing_safety_doc)]

mod plan;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

type Handle = *mut c_void;

const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const INVALID_HANDLE: c_int = 400;
const NOT_FOUND: c_int = 500;

/// The handle of a stream that counts as captured.
const CAPTURED: usize = 0xCA0;

/// Bytes of the device's memory where nothing else is said.
const MEMORY: i64 = 1 << 30;

macro_rules! calls {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(unused_variables)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
                if let Some(error) = plan::begin(stringify!($name)) {
                    return error;
                }
                $body
            }
        )*
    };
}

/// Gives a value to the caller.
///
/// # Safety
/// The place is the caller's.
unsafe fn give<T>(place: *mut T, value: T) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    0
}

/// Handles that differ, and are no addresses of anything.
fn handle() -> Handle {
    static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
    std::ptr::without_provenance_mut(NEXT.fetch_add(16, Ordering::Relaxed))
}

fn allocations() -> MutexGuard<'static, HashMap<usize, Layout>> {
    static ALL: OnceLock<Mutex<HashMap<usize, Layout>>> = OnceLock::new();
    ALL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

fn free_bytes() -> usize {
    let used: usize = allocations().values().map(Layout::size).sum();
    (plan::number("memory", MEMORY) as usize).saturating_sub(used)
}

unsafe fn allocate(place: *mut *mut u8, bytes: usize) -> c_int {
    let Ok(layout) = Layout::from_size_align(bytes, 256) else { return INVALID_VALUE };
    if bytes == 0 || bytes > free_bytes() {
        return if bytes == 0 { INVALID_VALUE } else { OUT_OF_MEMORY };
    }
    // SAFETY: not of size 0.
    let start = unsafe { alloc_zeroed(layout) };
    allocations().insert(start.addr(), layout);
    // SAFETY: the caller's promise.
    unsafe { give(place, start) }
}

unsafe fn free(start: *mut u8) -> c_int {
    let Some(layout) = allocations().remove(&start.addr()) else { return INVALID_VALUE };
    // SAFETY: given by `allocate` with that layout, freed once.
    unsafe { dealloc(start, layout) };
    0
}

/// # Safety
/// Both places have so many bytes.
unsafe fn copy(to: *mut c_void, from: *const c_void, bytes: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), bytes) };
    0
}

fn at(pointer: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(pointer as usize)
}

/// The driver's names, with texts of their own.
fn error_text(error: c_int) -> Option<(&'static [u8], &'static [u8])> {
    Some(match error {
        1 => (b"CUDA_ERROR_INVALID_VALUE\0", b"invalid argument\0"),
        2 => (b"CUDA_ERROR_OUT_OF_MEMORY\0", b"out of memory\0"),
        209 => (b"CUDA_ERROR_NO_BINARY_FOR_GPU\0", b"no kernel image is available\0"),
        214 => (b"CUDA_ERROR_ECC_UNCORRECTABLE\0", b"uncorrectable ECC error encountered\0"),
        218 => (b"CUDA_ERROR_INVALID_PTX\0", b"a PTX JIT compilation failed\0"),
        222 => (b"CUDA_ERROR_UNSUPPORTED_PTX_VERSION\0", b"the PTX was compiled with another toolchain\0"),
        400 => (b"CUDA_ERROR_INVALID_HANDLE\0", b"invalid resource handle\0"),
        500 => (b"CUDA_ERROR_NOT_FOUND\0", b"named symbol not found\0"),
        700 => (b"CUDA_ERROR_ILLEGAL_ADDRESS\0", b"an illegal memory access was encountered\0"),
        701 => (b"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES\0", b"too many resources requested for launch\0"),
        702 => (b"CUDA_ERROR_LAUNCH_TIMEOUT\0", b"the launch timed out and was terminated\0"),
        719 => (b"CUDA_ERROR_LAUNCH_FAILED\0", b"unspecified launch failure\0"),
        _ => return None,
    })
}

/// For [`cuDeviceGetAttribute`]: major and minor compute capability, and bytes of the L2 cache.
const MAJOR: c_int = 75;
const MINOR: c_int = 76;
const CACHE: c_int = 38;

/// The driver's number for launches that may start before the one in front of them is done.
const EARLY: c_uint = 6;

/// Another library's.
const OTHER_CONTEXT: usize = 0x900;
static LAUNCHES: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// The context that is current on the thread; 0: none.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The context that each kernel is in.
fn functions() -> MutexGuard<'static, HashMap<usize, usize>> {
    static ALL: OnceLock<Mutex<HashMap<usize, usize>>> = OnceLock::new();
    ALL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// The driver's, as far as it is read.
#[repr(C)]
pub struct LaunchConfig {
    sizes: [c_uint; 7],
    stream: Handle,
    attributes: *const LaunchAttribute,
    attribute_count: c_uint,
}

/// The driver's: a union of 64 bytes, of which the first number is read.
#[repr(C)]
pub struct LaunchAttribute {
    id: c_uint,
    pad: [u8; 4],
    value: c_int,
    rest: [c_int; 15],
}

calls! {
    fn cuInit(flags: c_uint) { 0 }
    fn cuDriverGetVersion(version: *mut c_int) {
        unsafe { give(version, plan::number("version", 12040) as c_int) }
    }
    fn cuGetErrorName(error: c_int, text: *mut *const c_char) {
        match error_text(error) {
            Some((name, _)) => unsafe { give(text, name.as_ptr().cast()) },
            None => INVALID_VALUE,
        }
    }
    fn cuGetErrorString(error: c_int, text: *mut *const c_char) {
        match error_text(error) {
            Some((_, words)) => unsafe { give(text, words.as_ptr().cast()) },
            None => INVALID_VALUE,
        }
    }
    fn cuDeviceGetCount(count: *mut c_int) { unsafe { give(count, plan::number("devices", 1) as c_int) } }
    fn cuDeviceGet(device: *mut c_int, number: c_int) { unsafe { give(device, number) } }
    fn cuDeviceGetName(name: *mut c_char, bytes: c_int, device: c_int) {
        let text = b"Fake GPU\0";
        if (bytes as usize) < text.len() { INVALID_VALUE } else { unsafe { copy(name.cast(), text.as_ptr().cast(), text.len()) } }
    }
    fn cuDeviceGetAttribute(value: *mut c_int, which: c_int, device: c_int) {
        let found = match which {
            MAJOR => plan::number("capability", 90) / 10,
            MINOR => plan::number("capability", 90) % 10,
            CACHE => 1 << 20,
            _ => 0,
        };
        unsafe { give(value, found as c_int) }
    }
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int) {
        unsafe { give(context, std::ptr::without_provenance_mut(0x100 + device as usize)) }
    }
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) { 0 }
    fn cuCtxSetCurrent(context: Handle) {
        CURRENT.set(context.addr());
        0
    }
    fn cuCtxGetCurrent(context: *mut Handle) {
        unsafe { give(context, std::ptr::without_provenance_mut(CURRENT.get())) }
    }
    fn cuCtxSynchronize() { 0 }

    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        unsafe { give(free, free_bytes()) + give(total, plan::number("memory", MEMORY) as usize) }
    }
    fn cuMemAlloc_v2(pointer: *mut u64, bytes: usize) { unsafe { allocate(pointer.cast(), bytes) } }
    fn cuMemAllocManaged(pointer: *mut u64, bytes: usize, flags: c_uint) {
        unsafe { allocate(pointer.cast(), bytes) }
    }
    fn cuMemFree_v2(pointer: u64) { unsafe { free(at(pointer).cast()) } }
    fn cuMemHostAlloc(host: *mut Handle, bytes: usize, flags: c_uint) {
        unsafe { allocate(host.cast(), bytes) }
    }
    fn cuMemHostGetDevicePointer_v2(pointer: *mut u64, host: Handle, flags: c_uint) {
        unsafe { give(pointer, host.expose_provenance() as u64) }
    }
    fn cuMemFreeHost(host: Handle) { unsafe { free(host.cast()) } }
    fn cuMemAdvise(pointer: u64, bytes: usize, advice: c_int, device: c_int) { 0 }
    fn cuMemPrefetchAsync(pointer: u64, bytes: usize, device: c_int, stream: Handle) { 0 }

    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) { unsafe { copy(at(to), from, bytes) } }
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) { unsafe { copy(to, at(from), bytes) } }
    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: Handle) {
        unsafe { copy(at(to), from, bytes) }
    }
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: Handle) {
        unsafe { copy(to, at(from), bytes) }
    }
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Handle) {
        unsafe { copy(at(to), at(from), bytes) }
    }
    fn cuMemcpyPeer(to: u64, here: Handle, from: u64, there: Handle, bytes: usize) {
        unsafe { copy(at(to), at(from), bytes) }
    }
    fn cuMemsetD8Async(to: u64, byte: u8, bytes: usize, stream: Handle) {
        unsafe { at(to).cast::<u8>().write_bytes(byte, bytes) };
        0
    }

    fn cuStreamCreate(stream: *mut Handle, flags: c_uint) { unsafe { give(stream, handle()) } }
    fn cuStreamDestroy_v2(stream: Handle) { 0 }
    fn cuStreamSynchronize(stream: Handle) { 0 }
    fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) { 0 }
    fn cuEventCreate(event: *mut Handle, flags: c_uint) { unsafe { give(event, handle()) } }
    fn cuEventDestroy_v2(event: Handle) { 0 }
    fn cuEventRecord(event: Handle, stream: Handle) { 0 }
    fn cuEventSynchronize(event: Handle) { 0 }
    fn cuEventQuery(event: Handle) { 0 }
    fn cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) {
        unsafe { give(milliseconds, 0.5) }
    }

    // Whether it lies in an allocation.
    fn cuPointerGetAttribute(data: *mut c_uint, attribute: c_int, pointer: u64) {
        let inside = |(start, layout): (&usize, &Layout)| (*start..start + layout.size()).contains(&(pointer as usize));
        // The kind of memory is a device's; any other attribute that is asked for is the device's number.
        const MEMORY_TYPE: c_int = 2;
        let value = if attribute == MEMORY_TYPE { 2 } else { 0 };
        if allocations().iter().any(inside) { unsafe { give(data, value) } } else { INVALID_VALUE }
    }
    fn cuStreamIsCapturing(stream: Handle, status: *mut c_uint) {
        let capturing = stream.addr() == CAPTURED;
        unsafe { give(status, capturing.into()) }
    }
    fn cuStreamGetCaptureInfo_v2(
        stream: Handle,
        status: *mut c_uint,
        number: *mut u64,
        graph: *mut Handle,
        after: *mut *const Handle,
        count: *mut usize,
    ) {
        unsafe { give(status, 0) }
    }
    fn cuStreamUpdateCaptureDependencies(stream: Handle, nodes: *mut Handle, count: usize, flags: c_uint) { 0 }
    fn cuStreamGetCtx(stream: Handle, context: *mut Handle) {
        unsafe { give(context, std::ptr::without_provenance_mut(0x100)) }
    }

    fn cuModuleLoadDataEx(
        module: *mut Handle,
        image: *const c_void,
        count: c_uint,
        options: *mut c_int,
        values: *mut Handle,
    ) {
        // Machine code starts with a byte that no text has.
        if unsafe { image.cast::<u8>().read() } != 0x7f {
            let text = unsafe { CStr::from_ptr(image.cast()) }.to_string_lossy();
            if text.contains("griddepcontrol.wait") {
                plan::note("  griddepcontrol.wait");
            }
            for entry in text.split(".entry ").skip(1) {
                let name = entry.split('(').next().unwrap_or_default();
                plan::note(&format!("  .entry {name}"));
            }
        }
        unsafe { give(module, handle()) }
    }
    fn cuModuleUnload(module: Handle) { 0 }
    fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) {
        let made = handle();
        functions().insert(made.addr(), CURRENT.get());
        unsafe { give(function, made) }
    }
    fn cuModuleGetGlobal_v2(pointer: *mut u64, bytes: *mut usize, module: Handle, name: *const c_char) {
        NOT_FOUND
    }
    fn cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int) { 0 }
    fn cuLaunchKernelEx(config: *const LaunchConfig, function: Handle, params: *mut Handle, extra: *mut Handle) {
        if plan::is_quick() {
            return 0;
        }
        if LAUNCHES.fetch_add(1, Ordering::Relaxed) + 1 == plan::number("stolen", 0) {
            CURRENT.set(OTHER_CONTEXT);
        }
        if functions().get(&function.addr()) != Some(&CURRENT.get()) {
            return INVALID_HANDLE;
        }
        let config = unsafe { &*config };
        for at in 0..config.attribute_count as usize {
            let attribute = unsafe { &*config.attributes.add(at) };
            if attribute.id == EARLY && attribute.value == 1 {
                plan::note("  starts early");
            }
        }
        0
    }

    fn cuGraphCreate(graph: *mut Handle, flags: c_uint) { unsafe { give(graph, handle()) } }
    fn cuGraphAddKernelNode_v2(
        node: *mut Handle,
        graph: Handle,
        after: *const Handle,
        count: usize,
        params: *const c_void,
    ) {
        unsafe { give(node, handle()) }
    }
    fn cuGraphInstantiateWithFlags(executable: *mut Handle, graph: Handle, flags: u64) {
        unsafe { give(executable, handle()) }
    }
    fn cuGraphLaunch(executable: Handle, stream: Handle) { 0 }
    fn cuGraphDestroy(graph: Handle) { 0 }
    fn cuGraphExecDestroy(executable: Handle) { 0 }
}
