//! Transfers between host and device.
//!
//! - `copies.rs`: arrays of the host up, and back.
//! - `convert.rs`: arrays of structs from one layout to another, by kernels.
//! - `run.rs`: a kernel on arrays of the host.

pub(crate) mod convert;
pub(crate) mod copies;
pub(crate) mod run;
