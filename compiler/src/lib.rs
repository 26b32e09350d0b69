//! The Krn compiler: `.krn` text to PTX text and a launch manifest.
//!
//! This crate is pure: it does no IO and knows no GPU. The rooms, in the only order in which they may
//! import each other, are listed in `ARCHITECTURE.md`; this file alone joins them.

pub mod check;
pub mod data;
pub mod diagnostic;
pub mod ptx;
pub mod source;
pub mod syntax;
