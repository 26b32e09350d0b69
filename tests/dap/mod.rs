//! `krn dap`, driven by a client over the real protocol.

mod client;
mod names;
mod protocol;
mod session;
