//! Whether there is a driver, and what its version means: which PTX it takes, and whether it has all calls.

use super::errors::driver_message;
use crate::error::Error;
use cudarc::driver::result::DriverError;
use cudarc::driver::sys::{self, CUresult};
use krn_compiler::ptx::Module;
use krn_compiler::ptx::module::Version;

/// The calls that the runtime makes, the bindings' own among them.
pub(super) const CALLS: &[&str] = &[
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncSetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGraphAddKernelNode_v2",
    "cuGraphCreate",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuInit",
    "cuLaunchKernelEx",
    "cuMemAdvise",
    "cuMemAllocManaged",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemHostGetDevicePointer_v2",
    "cuMemPrefetchAsync",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyPeer",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleGetGlobal_v2",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuPointerGetAttribute",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamGetCaptureInfo_v2",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuStreamSynchronize",
    "cuStreamUpdateCaptureDependencies",
    "cuStreamWaitEvent",
];

/// Those that graphs with loops need, and nothing else.
const LOOP_CALLS: &[&str] = &["cuGraphAddNode_v2", "cuGraphConditionalHandleCreate"];

/// Whether a CUDA driver library can be loaded at all.
pub fn driver_present() -> bool {
    // SAFETY: opens the driver's library and closes it again; its initialisers are NVIDIA's.
    unsafe { sys::is_culib_present() }
}

/// The PTX versions that CUDA versions brought, oldest first.
const PTX_OF_CUDA: &[((u32, u32), Version)] = &[
    ((10, 0), Version::new(6, 3)),
    ((10, 1), Version::new(6, 4)),
    ((10, 2), Version::new(6, 5)),
    ((11, 0), Version::new(7, 0)),
    ((11, 1), Version::new(7, 1)),
    ((11, 2), Version::new(7, 2)),
    ((11, 3), Version::new(7, 3)),
    ((11, 4), Version::new(7, 4)),
    ((11, 5), Version::new(7, 5)),
    ((11, 6), Version::new(7, 6)),
    ((11, 7), Version::new(7, 7)),
    ((11, 8), Version::new(7, 8)),
    ((12, 0), Version::new(8, 0)),
    ((12, 1), Version::new(8, 1)),
    ((12, 2), Version::new(8, 2)),
    ((12, 3), Version::new(8, 3)),
    ((12, 4), Version::new(8, 4)),
    ((12, 5), Version::new(8, 5)),
    ((12, 7), Version::new(8, 6)),
    ((12, 8), Version::new(8, 7)),
    ((12, 9), Version::new(8, 8)),
    ((13, 0), Version::new(9, 0)),
];

/// The first of the calls that the driver lacks. One that is missing would end the program when it is made.
pub(super) fn missing_call() -> Option<&'static str> {
    missing(CALLS)
}

/// The first of the calls that graphs with loops need and the driver lacks.
pub(super) fn missing_loop_call() -> Option<&'static str> {
    missing(LOOP_CALLS)
}

fn missing(calls: &[&'static str]) -> Option<&'static str> {
    calls.iter().copied().find(|name| {
        // SAFETY: the symbol is looked up and never called.
        unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_err()
    })
}

/// The CUDA version that the driver is of: `(12, 4)`.
fn driver_version() -> Option<(u32, u32)> {
    let mut version = 0;
    // SAFETY: the number is written where the driver is told.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().ok()?;
    let version = u32::try_from(version).ok()?;
    Some((version / 1000, version % 1000 / 10))
}

fn newest_ptx((major, minor): (u32, u32)) -> Option<Version> {
    PTX_OF_CUDA.iter().rev().find(|(cuda, _)| *cuda <= (major, minor)).map(|(_, ptx)| *ptx)
}

/// `PTX 8.4 (CUDA 12.4)`.
fn ptx_text(version: Version) -> String {
    match PTX_OF_CUDA.iter().find(|(_, ptx)| *ptx >= version) {
        Some(((major, minor), _)) => format!("PTX {version} (CUDA {major}.{minor})"),
        None => format!("PTX {version}"),
    }
}

/// `CUDA 12.4, which takes PTX up to 8.4`.
pub(super) fn driver_text() -> String {
    let driver = driver_version();
    match (driver, driver.and_then(newest_ptx)) {
        (Some((major, minor)), Some(ptx)) => format!("CUDA {major}.{minor}, which takes PTX up to {ptx}"),
        (Some((major, minor)), None) => format!("CUDA {major}.{minor}"),
        (None, _) => "of unknown version".to_string(),
    }
}

/// A failed load of a module whose PTX (or what was made of it) the driver does not take: whether it is too old for it,
/// or the device is another one.
pub(super) fn load_error(error: DriverError, module: &Module, device: &str, log: String) -> Error {
    let newest = driver_version().and_then(newest_ptx);
    let needs = ptx_text(module.version);
    let has = driver_text();
    let message = driver_message(error);
    let older = newest.is_some_and(|newest| newest < module.version);
    let about_versions =
        matches!(error.0, CUresult::CUDA_ERROR_INVALID_PTX | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
    if error.0 == CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION || about_versions && older {
        return Error::DriverTooOld { needs, has };
    }
    let message = match about_versions {
        true => format!(
            "{message}; the code is {needs} for {}, the driver is {has}, the device is {device}",
            module.target
        ),
        false => message,
    };
    Error::Jit { message, log }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_go_up_together() {
        assert!(PTX_OF_CUDA.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        assert_eq!(newest_ptx((12, 6)), Some(Version::new(8, 5)));
        assert_eq!(newest_ptx((9, 2)), None);
        assert_eq!(newest_ptx((99, 0)), Some(Version::new(9, 0)));
        assert_eq!(ptx_text(Version::new(7, 8)), "PTX 7.8 (CUDA 11.8)");
        // Of every target that there is code for.
        for target in krn_compiler::ptx::target::TARGETS {
            assert!(ptx_text(target.version).contains("CUDA"), "{}", target.name);
        }
    }

    #[test]
    fn every_call_is_in_the_list() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cuda");
        let mut found = 0;
        for entry in std::fs::read_dir(folder).expect("this folder") {
            let text = std::fs::read_to_string(entry.expect("a file").path()).expect("text");
            for (at, prefix) in text.match_indices(concat!("sys", "::cu")) {
                let rest = &text[at + prefix.len() - 2..];
                let name =
                    rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
                // `culib` is the bindings' own.
                if name != "culib" {
                    assert!(CALLS.contains(&name) || LOOP_CALLS.contains(&name), "{name}");
                    found += 1;
                }
            }
        }
        assert!(found > 10);
        assert!(CALLS.is_sorted());
    }
}
