//! The tests of the whole compiler, as modules of one program: built one by one, each would link the whole
//! compiler, which takes longer than most of them run. What needs a process of its own stands alone in `Cargo.toml`.

mod advice;
mod barriers;
mod contractions;
mod damage;
mod diagnostics;
mod explain;
mod format;
mod guards;
mod launches;
mod math_functions;
mod names;
mod parser;
mod passes;
mod products;
mod programs;
mod proofs;
mod ptx_snapshots;
mod random_kernels;
mod reference;
mod rows;
mod scheduled;
mod select;
mod signs;
mod sizes;
mod spills;
mod support;
mod tensor;
mod typed;
mod variants;
mod work;
