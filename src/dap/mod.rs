//! `krn dap`: the Debug Adapter Protocol over the emulator. The protocol alone: what runs and what can be seen of it is
//! the runtime's ([`krn_runtime::emulator::debug`]); which name counts where is the compiler's
//! ([`krn_compiler::scopes`]).
//!
//! The main thread reads requests (`server.rs`). The kernel runs on a thread of its own, which stands still inside the
//! emulator while somebody looks (`session.rs`): what the main thread wants to know is asked of that thread.
//!
//! | file | what |
//! |---|---|
//! | `transport.rs` | messages over standard input and output |
//! | `configuration.rs`, `program.rs` | what is to be debugged; compiled, with its data |
//! | `session.rs`, `stops.rs` | the thread that runs; where it stops |
//! | `values.rs`, `arrays.rs`, `expression.rs` | what names and arrays are, and expressions over them |
//! | `variables.rs`, `listing.rs` | the same for the protocol; the PTX |

mod arrays;
mod configuration;
mod expression;
mod listing;
mod program;
mod server;
mod session;
mod stops;
mod transport;
mod values;
mod variables;

pub use server::serve;
