//! The IR's text form, `.kir`: what `krn build --emit ir` prints, pass tests are written in and `krn opt` reads.
//!
//! ```text
//! kernel "scale" {
//!     symbol sym0 "n" i64 dim 1 0
//!     symbol sym1 "alpha" f32 parameter 0 0 0
//!     buffer buf0 "x" f32 [sym0] argument 1 inout, aos
//!     argument "alpha" f32
//!     argument buf0
//!     launch launch0 "scale" abstract {
//!         v0: i64 = const 0
//!         v1: i64 = symbol sym0
//!         v2: f32 = symbol sym1
//!         forall axis0 "i" = v0..v1 [grid:*, warp:8, lane:32] (v3 "i": i64) {
//!             v4: f32 = load buf0[v3] @20..24
//!             v5 "scaled": f32 = mul v2, v4
//!             store buf0[v3], v5
//!             yield
//!         }
//!     }
//!     plan { launch0 }
//! }
//! ```
//!
//! Everything of a kernel is in its text. `@start..end` is a span in the `.krn` source; spans, value names,
//! factors and threads are left out where there are none. `buf0.pos.x[v3]` accesses a leaf by its path. A
//! comment runs from `//` to the end of the line.
//!
//! Symbols, buffers, sites and launches are numbered from 0 in order. Values and axes may have any numbers:
//! the parser renumbers them in the order of the text (results of an instruction with regions after what is
//! inside), which is the order in which the builder makes them. So `parse(print(k)) == k` for a kernel from
//! the builder, and `== k.compacted()` for one that passes have changed.

mod compact;
mod cursor;
mod error;
mod expression;
mod lexer;
mod parse_body;
mod parser;
mod print_body;
mod printer;
mod schedule;
mod span;

pub use error::ParseError;
pub use parser::{parse_kernel, parse_module};
pub use printer::{print_expression, print_inst, print_kernel, print_module};
pub use span::PrintOptions;

#[cfg(test)]
mod tests;
