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

/// Whether tests shall take their time: every target, every row on the emulator.
pub fn tests_run_in_full() -> bool {
    std::env::var_os(ALL).is_some()
}

/// Of the targets, oldest first, those that tests compile and assemble for: the oldest one and the one with the most features, or
/// all where [tests run in full](tests_run_in_full).
pub fn tested_targets(all: &'static [&'static str]) -> Vec<&'static str> {
    let is_quick = |target: &&&str| tests_run_in_full() || ["sm_75", "sm_90a"].contains(*target);
    all.iter().filter(is_quick).copied().collect()
}
