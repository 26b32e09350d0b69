//! The blocks of a range, and what their launches have in common.

use super::found::Found;
use super::worth::BLOCK;
use crate::analysis::block_count;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{BlockData, Kernel, Payload};
use crate::ir::op::Combiner;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::hoist_reductions::Along;
use crate::passes::insert::emitted;
use crate::passes::rematerialize::rematerialize;

/// What the host knows of the blocks of a range.
pub struct Blocks {
    pub zero: Value,
    /// The ends of the range of all terms.
    pub first: Value,
    pub last: Value,
    /// How many blocks there are.
    pub count: Value,
    /// How many blocks elements stand in.
    pub places: Value,
}

impl Blocks {
    pub fn of(kernel: &mut Kernel, found: &Found) -> Option<Blocks> {
        let range = &found.range;
        let host = kernel.blocks.push(BlockData::default());
        let span = kernel.insts[found.reduce].span;
        let mut emit = Emit::new(kernel, host, span);
        let zero = emit.int(0);
        let (first, last) = (emitted(&mut emit, &range.first)?, emitted(&mut emit, &range.last)?);
        let terms = emitted(&mut emit, &range.last.subtract(&range.first)?)?;
        let places = emitted(&mut emit, &range.places)?;
        let terms = blocks_of(emit.kernel, &emit.kernel.symbolic(terms)?);
        let places = emit.kernel.symbolic(places)?;
        // An element without terms stands in the first block.
        let places = match range.may_be_below {
            true => Expr::binary(BinaryOp::Max, places, Expr::Int(1)),
            false => places,
        };
        let places = blocks_of(emit.kernel, &places);
        let count = emit.expression(&terms);
        let places = if places == terms { count } else { emit.expression(&places) };
        Some(Blocks { zero, first, last, count, places })
    }

    /// The same, made where code is emitted.
    pub fn again(&self, emit: &mut Emit<'_>) -> Blocks {
        let mut map = ValueMap::default();
        let mut made = |value: Value| rematerialize(emit, value, &mut map);
        Blocks {
            zero: made(self.zero),
            first: made(self.first),
            last: made(self.last),
            count: made(self.count),
            places: made(self.places),
        }
    }
}

/// How many blocks so many terms are.
fn blocks_of(kernel: &Kernel, terms: &Expr) -> Expr {
    let divided = |terms: &Expr, by: i64| Expr::binary(BinaryOp::CeilDiv, terms.clone(), Expr::Int(by));
    // Blocks of blocks.
    if let Expr::Binary(BinaryOp::Div, sum, length) = terms
        && let (Expr::Binary(BinaryOp::Add, all, more), Expr::Int(length)) = (&**sum, &**length)
        && **more == Expr::Int(*length - 1)
        && kernel.never_negative(all)
    {
        return divided(all, *length * BLOCK);
    }
    if kernel.never_negative(terms) { divided(terms, BLOCK) } else { block_count(kernel, terms, BLOCK) }
}

/// Indices from 0, with another one for the one of these axes that is given.
pub fn places(emit: &mut Emit<'_>, axes: &[Along], along: Value, own: Value) -> Vec<Value> {
    let place = |axis: &Along| {
        if axis.index == along { own } else { emit.sub(axis.index, axis.low) }
    };
    axes.iter().map(place).collect()
}

/// What contributions of a reduction meet in.
pub fn combiners(kernel: &Kernel, reduce: Inst) -> Vec<Combiner> {
    match &kernel.insts[reduce].payload {
        Payload::Reduce { combiners, .. } => combiners.to_vec(),
        _ => Vec::new(),
    }
}
