//! Chores of the workspace, as a library: tests use it to reach NVIDIA's own tools.

pub mod chromium;
pub mod cuda_tools;
pub mod ptxas;
mod workspace;

pub use workspace::workspace_root;
