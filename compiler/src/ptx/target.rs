//! The GPUs that Krn emits for: what they can do and where their limits are.

use super::module::Version;

/// A GPU architecture, as `.target` names it.
///
/// Limits are those of NVIDIA's table of technical specifications per compute capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// As in `.target sm_90a`.
    pub name: &'static str,
    /// The compute capability times ten: 90 for 9.0.
    pub sm: u32,
    /// Whether the name ends in `a`: instructions that exist on exactly this architecture are allowed, and
    /// the code runs on no other.
    pub exact: bool,
    /// The oldest PTX ISA version that knows the target.
    pub version: Version,
    /// Bytes of shared memory that a block can have after asking for more than [`SHARED_DEFAULT`].
    pub shared_opt_in: u32,
    /// Bytes of shared memory that the blocks on one multiprocessor share.
    pub shared_per_sm: u32,
    pub warps_per_sm: u32,
    pub blocks_per_sm: u32,
}

/// Lanes of a warp.
pub const WARP: u32 = 32;
/// Bytes of shared memory that a block can have without asking, and all that can be declared statically.
pub const SHARED_DEFAULT: u32 = 48 * 1024;
/// Bytes of each block's shared memory that the system keeps, on architectures from 8.0 on.
pub const SHARED_RESERVED: u32 = 1024;
/// Threads of one block, over all axes.
pub const THREADS_PER_BLOCK: u32 = 1024;
/// The largest block, axis by axis.
pub const BLOCK_EXTENT: [u32; 3] = [1024, 1024, 64];
/// The largest grid, axis by axis.
pub const GRID_EXTENT: [u32; 3] = [0x7fff_ffff, 0xffff, 0xffff];
/// 32-bit registers of one multiprocessor.
pub const REGISTERS_PER_SM: u32 = 64 * 1024;
/// 32-bit registers of one thread.
pub const REGISTERS_PER_THREAD: u32 = 255;
/// Registers are handed out to a warp in pieces of so many.
pub const REGISTER_UNIT: u32 = 256;
/// Bytes of constant variables of one module.
pub const CONST_BYTES: u32 = 64 * 1024;
/// Bytes of kernel parameters, before [`LARGE_PARAMS`].
pub const PARAM_BYTES: u32 = 4096;
/// Bytes of kernel parameters since [`LARGE_PARAMS`].
pub const LARGE_PARAM_BYTES: u32 = 32764;
/// The PTX version that allows [`LARGE_PARAM_BYTES`].
pub const LARGE_PARAMS: Version = Version::new(8, 1);

const fn target(
    name: &'static str,
    sm: u32,
    version: Version,
    [shared_opt_in, shared_per_sm]: [u32; 2],
    [warps_per_sm, blocks_per_sm]: [u32; 2],
) -> Target {
    let exact = name.as_bytes()[name.len() - 1] == b'a';
    Target {
        name,
        sm,
        exact,
        version,
        shared_opt_in: shared_opt_in * 1024,
        shared_per_sm: shared_per_sm * 1024,
        warps_per_sm,
        blocks_per_sm,
    }
}

/// Every target, oldest first.
pub const TARGETS: &[Target] = &[
    target("sm_75", 75, Version::new(6, 3), [64, 64], [32, 16]),
    target("sm_80", 80, Version::new(7, 0), [163, 164], [64, 32]),
    target("sm_86", 86, Version::new(7, 1), [99, 100], [48, 16]),
    target("sm_87", 87, Version::new(7, 4), [163, 164], [48, 16]),
    target("sm_89", 89, Version::new(7, 8), [99, 100], [48, 24]),
    target("sm_90", 90, Version::new(7, 8), [227, 228], [64, 32]),
    target("sm_90a", 90, Version::new(8, 0), [227, 228], [64, 32]),
    target("sm_100", 100, Version::new(8, 6), [227, 228], [64, 32]),
    target("sm_100a", 100, Version::new(8, 6), [227, 228], [64, 32]),
    target("sm_103", 103, Version::new(8, 8), [227, 228], [64, 32]),
    target("sm_103a", 103, Version::new(8, 8), [227, 228], [64, 32]),
    target("sm_120", 120, Version::new(8, 7), [99, 100], [48, 24]),
    target("sm_120a", 120, Version::new(8, 7), [99, 100], [48, 24]),
    target("sm_121", 121, Version::new(8, 8), [99, 100], [48, 24]),
    target("sm_121a", 121, Version::new(8, 8), [99, 100], [48, 24]),
];

impl Target {
    /// The target with that name.
    pub fn find(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// The best target for a device: code for it runs there. `major` and `minor` are the device's compute
    /// capability; `None` for devices older than every target.
    pub fn for_device(major: u32, minor: u32) -> Option<&'static Target> {
        let sm = major * 10 + minor;
        TARGETS.iter().filter(|target| target.sm <= sm && !target.exact).max_by_key(|target| target.sm)
    }

    /// Whether code for this target runs on a device of that compute capability.
    pub fn runs_on(&self, major: u32, minor: u32) -> bool {
        let sm = major * 10 + minor;
        if self.exact { sm == self.sm } else { sm >= self.sm }
    }

    /// Threads that one multiprocessor holds.
    pub const fn threads_per_sm(&self) -> u32 {
        self.warps_per_sm * WARP
    }

    /// Whether global memory can be copied to shared memory in the background (`cp.async`).
    pub const fn has_async_copy(&self) -> bool {
        self.sm >= 80
    }

    /// Whether a warp can reduce integers in one instruction (`redux.sync`).
    pub const fn has_redux(&self) -> bool {
        self.sm >= 80
    }

    /// Whether there is arithmetic on `bf16` beyond `fma`, `min` and `max`, and atomic addition of it.
    pub const fn has_bf16_arithmetic(&self) -> bool {
        self.sm >= 90
    }

    /// Whether `f32` can be rounded to `bf16` in one instruction.
    pub const fn has_bf16_conversion(&self) -> bool {
        self.sm >= 80
    }

    /// Whether blocks form clusters and share each other's memory.
    pub const fn has_clusters(&self) -> bool {
        self.sm >= 90
    }

    /// Whether one load moves 32 bytes a lane.
    pub const fn has_256_bit_loads(&self) -> bool {
        self.sm >= 100
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_that_is_offered_is_known() {
        for name in crate::targets::TARGETS {
            assert_eq!(
                Target::find(name).map(|target| target.sm),
                crate::targets::capability(name),
                "{name}"
            );
        }
    }

    #[test]
    fn devices_get_the_newest_target_that_runs_there() {
        let name = |major, minor| Target::for_device(major, minor).map(|target| target.name);
        assert_eq!(name(9, 0), Some("sm_90"));
        assert_eq!(name(8, 8), Some("sm_87"));
        assert_eq!(name(7, 0), None);
        assert_eq!(name(13, 0), Some("sm_121"));
        assert!(!Target::find("sm_90a").unwrap().runs_on(10, 0));
        assert!(Target::find("sm_90").unwrap().runs_on(10, 0));
    }
}
