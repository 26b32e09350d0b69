//! Between host and device.

pub(crate) mod convert;
