//! Chores of the workspace, as a library: tests use it to reach NVIDIA's own tools.

pub mod chromium;
pub mod cuda_tools;
pub mod ptxas;

use std::path::PathBuf;

/// The folder that holds the workspace's `Cargo.toml`.
pub fn workspace_root() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.parent().map(PathBuf::from).unwrap_or(own)
}
