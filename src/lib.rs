#![doc = include_str!("../docs/host-guide.md")]

pub use krn_runtime::*;
