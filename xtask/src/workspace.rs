//! Where the workspace is.

use std::path::PathBuf;

/// The folder that holds the workspace's `Cargo.toml`.
pub fn workspace_root() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.parent().map(PathBuf::from).unwrap_or(own)
}
