//! A pass of one's own, added to the compiler's pipeline. `docs/add-a-pass.md` leads here step by step; `docs/ir.md`
//! tells of the IR that it works on.

mod bits_once;
mod doubling;

pub use bits_once::BitsOnce;
pub use doubling::Doubling;

use krn_compiler::passes::{Pipeline, PipelineError, TargetFacts};

/// The compiler's pipeline with the pass in it: after `fuse_multiply_add`, because a product that can be fused into a
/// sum is better off there, and before `dce`, which clears up.
///
/// # Errors
/// The target's pipeline has no `fuse_multiply_add`.
pub fn pipeline(target: &TargetFacts) -> Result<Pipeline, PipelineError> {
    Pipeline::for_target(target).after("fuse_multiply_add", Doubling)
}
