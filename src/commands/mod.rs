//! One file a command.

pub mod bench;
pub mod build;
pub mod check;
pub mod explain;
pub mod opt;
pub mod run;
pub mod test;
