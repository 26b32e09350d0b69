//! Tests of the evaluator on typed kernels built by hand.

mod bounds;
mod builder;
mod kernels;
mod launching;
