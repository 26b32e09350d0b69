//! Contractions: reductions whose terms are made of two sides, of which each lacks axes of the other one.
//!
//! ```text
//! c[i, j] = sum(p: a[i, p] * b[p, j])                      i is m, j is n, p is k
//! y[s, o, h] = sum(c, r: x[s, c, h + r] * w[o, c, r])      s and h are m, o is n, c and r are k
//! d[i, j] = min(p: a[i, p] + b[p, j])                      the same classes, and no product
//! ```
//!
//! - `parts.rs`: what a contraction is made of.
//! - `bits.rs`: sets of axes.
//! - `axes.rs`: the axes around a reduction and its own, and with which of them a value moves.
//! - `terms.rs`: the sides of what is summed up: chains of products, or operands of other code.
//! - `exact.rs`: the types that hold a value exactly.
//! - `shared.rs`: contractions of one loop that have an operand in common.
//! - `text.rs`: a contraction in a line.
//!
//! Each axis is classified by what the sides depend on: `m` is the left one's alone, `n` the right one's, a batch is both's,
//! `k` is reduced. Several axes may share a class. A side is any pure code: casts, scales, activations, guarded and gathered
//! loads, fields of structs. Nothing is rewritten here: what a side is worth to an atom, its type says ([`Side::exact`]).
//!
//! Of launches in phase `abstract`; other code than pure one and loads in a term makes it none.

mod axes;
mod bits;
mod exact;
mod parts;
mod shared;
mod terms;
mod text;

use crate::ir::entities::{Inst, Launch};
use crate::ir::kernel::{Kernel, Payload};
pub use axes::Moves;
use axes::loops;
pub use bits::AxisBits;
pub use exact::Exact;
pub use parts::{Class, Contraction, ContractionAxis, Product, Range, Side, Terms};
pub use shared::shared;
pub use terms::{adds_nothing, common_mask, masked_by};

/// Rows, and columns, of the least tile that a product is computed in.
pub const LEAST_SIDE: i64 = 16;

/// The contractions of a launch, in the order of their reductions.
pub fn contractions(kernel: &Kernel, launch: Launch) -> Vec<Contraction> {
    let mut reduces = Vec::new();
    loops(kernel, kernel.launches[launch].body, &mut Vec::new(), &mut |inst, around| {
        reduces.push((inst, around.to_vec()));
    });
    reduces.iter().flat_map(|(inst, around)| of_reduction(kernel, *inst, around)).collect()
}

/// The contractions that a reduction is, one a result of it, in loops whose axes are given.
fn of_reduction(kernel: &Kernel, reduce: Inst, around: &[Inst]) -> Vec<Contraction> {
    let Payload::Reduce { combiners, .. } = &kernel.insts[reduce].payload else { return Vec::new() };
    let mut moves = Moves::new(kernel, around, reduce);
    let yields = kernel.yields(kernel.insts[reduce].regions[0]);
    let mut found = Vec::new();
    let mut at = 0;
    for combiner in combiners {
        let (term, result) = (yields.get(at), kernel.insts[reduce].results.get(at));
        at += combiner.width();
        let (Some(term), Some(result)) = (term, result) else { continue };
        let Some((terms, masks)) = terms::split(&mut moves, *term, *combiner) else { continue };
        let axes = moves.axes(&terms);
        found.push(Contraction { reduce, result: *result, combiner: *combiner, axes, terms, masks });
    }
    found
}
