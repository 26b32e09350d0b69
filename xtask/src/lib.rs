//! Chores of the workspace, as a library: tests use it to reach NVIDIA's own tools.

pub mod chromium;
pub mod cuda_tools;
pub mod node;
pub mod ptxas;
pub mod python;
pub mod torch;
mod workspace;

pub use workspace::workspace_root;

/// Says to tests that all of them shall run in full: `cargo xtask test --all` sets it.
pub const ALL: &str = "KRN_TEST_ALL";

/// Whether tests shall take their time: every target, every row on the emulator, every share whole.
pub fn tests_run_in_full() -> bool {
    std::env::var_os(ALL).is_some()
}

/// Whether a test looks at something of which it has a great many: the same one in so many every time, chosen by a hash of its
/// name, or all where [tests run in full](tests_run_in_full).
pub fn is_in_share(name: &str, one_in: u64) -> bool {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    tests_run_in_full() || (hash >> 20) % one_in == 0
}

/// Whether a test that has others beside it compiles a program, by its path in the repository: all examples, one in four test
/// kernels and one in twelve benchmarks. Every program that is no benchmark is compiled, assembled and run by some test.
pub fn is_program_in_share(path: &str) -> bool {
    path.starts_with("examples/") || is_in_share(path, if path.starts_with("bench/") { 12 } else { 4 })
}

/// So many of what is random, or a quarter of it but where [tests run in full](tests_run_in_full).
pub fn share_of_cases(full: u32) -> u32 {
    if tests_run_in_full() { full } else { full.div_ceil(4) }
}

/// Of the targets, oldest first, those that tests compile and assemble for: the oldest one and the one with the most
/// features, or all where [tests run in full](tests_run_in_full).
pub fn tested_targets(all: &'static [&'static str]) -> Vec<&'static str> {
    let is_quick = |target: &&&str| tests_run_in_full() || ["sm_75", "sm_90a"].contains(*target);
    all.iter().filter(is_quick).copied().collect()
}
