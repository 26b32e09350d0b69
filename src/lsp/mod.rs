//! The language server: the protocol alone, over the compiler. One file a feature.
//!
//! The main thread answers from the text as it is (`server.rs`); what is known of that is worked out once for all who ask
//! (`analysis.rs`). Another thread checks each text meanwhile (`checking.rs`). What needs code generation is made by a third
//! one (`background.rs`), which gives up on a text that has changed since.

mod actions;
mod analysis;
mod background;
mod capabilities;
mod checking;
mod commands;
mod completion;
mod context;
mod diagnostics;
mod document;
mod extract;
mod folding;
mod formatting;
mod generated;
mod hints;
mod hover;
mod lenses;
mod navigation;
mod positions;
mod rename;
mod semantic;
mod server;
mod signature;
mod symbols;
mod transport;
mod typed;
mod words;

pub use server::serve;
