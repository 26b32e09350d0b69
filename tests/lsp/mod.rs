//! `krn lsp`, asked by a client over the real protocol.

mod client;
mod edits;
mod features;
mod latency;
