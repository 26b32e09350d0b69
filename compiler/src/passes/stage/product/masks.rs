//! Which steps of a tile have terms, where masks say so by the place along the reduced axis: `p <= i`, `j <= p`.
//!
//! Chunks in which no result of the tile has a term are left out; where all results have all terms, masks are not asked.

use super::super::code::slice;
use super::{BlockCode, Product};
use crate::analysis::code;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::Kernel;
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;

/// A mask that asks whether a step lies at a place or behind it (`from`), or in front of it.
#[derive(Clone, Copy)]
struct Limit {
    from: bool,
    place: Value,
    /// What is added to the place.
    offset: i64,
}

/// Steps of a tile, counted from 0 on the reduced axis; `None` for no limit.
#[derive(Clone, Copy, Default)]
pub struct Span {
    pub low: Option<Value>,
    pub high: Option<Value>,
}

/// Steps that have terms.
#[derive(Clone, Copy, Default)]
pub struct Terms {
    /// Outside of these no result of the tile has one.
    pub some: Span,
    /// In these all results have all; `None` where that is not known of any.
    pub all: Option<Span>,
}

impl Limit {
    /// `None` where a mask asks something else.
    fn of(kernel: &Kernel, index: Value, mask: Value) -> Option<Self> {
        let data = kernel.definition_data(mask)?;
        let [left, right] = data.arguments[..] else { return None };
        let (from, place, offset) = match (data.opcode, left == index, right == index) {
            (Opcode::Ge, true, false) => (true, right, 0),
            (Opcode::Gt, true, false) => (true, right, 1),
            (Opcode::Lt, true, false) => (false, right, 0),
            (Opcode::Le, true, false) => (false, right, 1),
            (Opcode::Le, false, true) => (true, left, 0),
            (Opcode::Lt, false, true) => (true, left, 1),
            (Opcode::Gt, false, true) => (false, left, 0),
            (Opcode::Ge, false, true) => (false, left, 1),
            _ => return None,
        };
        let mut is_pure = true;
        code(kernel, place, &mut |inst, _| {
            is_pure &= kernel.insts[inst].opcode.info().effect == Effect::Pure
        });
        (is_pure && !follows(kernel, place, &[index])).then_some(Self { from, place, offset })
    }
}

/// Whether a value is one of these, or computed from one.
fn follows(kernel: &Kernel, value: Value, from: &[Value]) -> bool {
    let mut follows = from.contains(&value);
    code(kernel, value, &mut |inst, _| {
        follows |= kernel.insts[inst].arguments.iter().any(|argument| from.contains(argument));
    });
    follows
}

impl Product {
    fn limits(&self, kernel: &Kernel) -> Vec<Option<Limit>> {
        self.masks.iter().map(|mask| Limit::of(kernel, self.inner.index, *mask)).collect()
    }
}

impl BlockCode<'_> {
    /// Emits which steps of the tile have terms.
    pub fn terms(&self, emit: &mut Emit<'_>) -> Terms {
        let mut terms = Terms { all: Some(Span::default()), ..Terms::default() };
        for limit in self.plan.limits(emit.kernel) {
            let ends = limit.and_then(|limit| {
                let least = self.extreme(emit, limit.place, false)?;
                let most = self.extreme(emit, limit.place, true)?;
                Some((limit.from, [least, most].map(|end| emit.add_int(end, limit.offset))))
            });
            let Some((from, [least, most])) = ends else {
                terms.all = None;
                continue;
            };
            let tighter = |emit: &mut Emit<'_>, known: Option<Value>, other: Value| {
                let opcode = if from { Opcode::Max } else { Opcode::Min };
                Some(known.map_or(other, |known| emit.binary(opcode, known, other)))
            };
            if from {
                terms.some.low = tighter(emit, terms.some.low, least);
            } else {
                terms.some.high = tighter(emit, terms.some.high, most);
            }
            if let Some(mut all) = terms.all {
                let end = mutant!(
                    "product: masks are asked in no chunk",
                    if from { most } else { least },
                    if from { least } else { most }
                );
                let known = if from { &mut all.low } else { &mut all.high };
                *known = tighter(emit, *known, end);
                terms.all = Some(all);
            }
        }
        terms
    }

    /// The greatest value, or the least one, that an integer has for the rows and columns of the tile; `None` where its code
    /// does not say.
    fn extreme(&self, emit: &mut Emit<'_>, value: Value, most: bool) -> Option<Value> {
        let plan = self.plan;
        let axes = [plan.blocks.y.0.index, plan.blocks.x.0.index];
        if let Some(side) = axes.iter().position(|axis| *axis == value) {
            let first = self.starts[side];
            if !most {
                return Some(first);
            }
            let last = emit.add_int(first, plan.shape.tile[side] - 1);
            let end = emit.add_int(self.ends[side], -1);
            return Some(emit.min(last, end));
        }
        if !follows(emit.kernel, value, &axes) {
            let mut map: ValueMap = self.map.clone();
            return Some(slice(emit, value, &mut map));
        }
        let data = emit.kernel.definition_data(value)?;
        let opcode = data.opcode;
        let [left, right] = data.arguments[..] else { return None };
        let of_right = match opcode {
            Opcode::Add | Opcode::Min | Opcode::Max => most,
            Opcode::Sub => !most,
            _ => return None,
        };
        let left = self.extreme(emit, left, most)?;
        let right = self.extreme(emit, right, of_right)?;
        Some(emit.binary(opcode, left, right))
    }

    /// Whether all results have all terms of the chunk that begins at a step; `None` where that is never asked.
    pub fn has_all(&self, emit: &mut Emit<'_>, terms: &Terms, first: Value) -> Option<Value> {
        let Span { low, high } = terms.all.filter(|_| !self.plan.masks.is_empty())?;
        let end = emit.add_int(first, self.plan.shape.depth);
        let low = low.map(|low| emit.binary(Opcode::Ge, first, low));
        let high = high.map(|high| emit.binary(Opcode::Le, end, high));
        match (low, high) {
            (Some(low), Some(high)) => Some(emit.binary(Opcode::And, low, high)),
            (one, other) => one.or(other),
        }
    }
}
