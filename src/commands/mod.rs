//! One file a command.

pub mod bench;
pub mod bisect;
pub mod build;
pub mod check;
pub mod costs;
pub mod dap;
pub mod doctor;
pub mod explain;
pub mod fmt;
pub mod ladder;
pub mod lsp;
pub mod opt;
pub mod profile;
pub mod reduce;
pub mod report;
pub mod run;
pub mod test;
