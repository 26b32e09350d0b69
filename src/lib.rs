#![doc = include_str!("../docs/host-guide.md")]

// The command-line tool, which the program `krn` and the Python package run.
#[cfg(feature = "tool")]
mod arguments;
#[cfg(feature = "tool")]
mod array_files;
#[cfg(feature = "tool")]
mod changed_ptx;
#[cfg(feature = "tool")]
mod commands;
#[cfg(feature = "tool")]
mod cuda_tools;
#[cfg(feature = "tool")]
mod dap;
#[cfg(feature = "tool")]
mod exit;
#[cfg(feature = "tool")]
mod files;
#[cfg(feature = "tool")]
mod formula;
#[cfg(feature = "tool")]
mod framing;
#[cfg(feature = "tool")]
mod interrupt;
#[cfg(feature = "tool")]
mod lsp;
#[cfg(feature = "tool")]
mod measuring;
#[cfg(feature = "tool")]
mod memory;
#[cfg(feature = "tool")]
mod messages;
#[cfg(feature = "tool")]
mod numbers;
#[cfg(feature = "tool")]
mod progress;
#[cfg(feature = "tool")]
mod ptxas;
#[cfg(feature = "tool")]
mod request;
#[cfg(feature = "tool")]
mod sass;
#[cfg(feature = "tool")]
mod subject;
#[cfg(feature = "tool")]
mod table;
#[cfg(feature = "tool")]
mod tool;
#[cfg(feature = "tool")]
mod unfinished;
#[cfg(feature = "tool")]
mod verdict;

pub use krn_runtime::*;
#[cfg(feature = "tool")]
#[doc(hidden)]
pub use tool::tool;
