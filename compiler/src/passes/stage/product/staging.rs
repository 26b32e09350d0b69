//! What all plans of a shape have, whether they take vectors or not: tiles of the operands, and what vectors need.

use super::cost::{self, Cost};
use super::found::Found;
use super::neutral::Fill;
use super::operand::{self, Operand};
use super::shape::Shape;
use super::{GROUP, MOST_SHARING, is_large, share};
use crate::analysis::contraction::LEAST_SIDE;
use crate::analysis::{GRID_LIMITS, Stride, block_count};
use crate::ir::entities::Inst;
use crate::ir::kernel::Kernel;
use crate::ir::op::{Combiner, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::passes::TargetFacts;
use crate::passes::stage::pattern::{LoopAxis, Pattern};
use crate::passes::stage::{Blocks, times};
use cranelift_entity::EntitySet;

/// What all plans of a shape have, whether they take vectors or not.
pub struct Staging {
    pub reduce: Inst,
    pub combiners: Vec<Combiner>,
    pub inner: LoopAxis,
    pub shape: Shape,
    pub blocks: Blocks,
    pub operands: [Vec<Operand>; 2],
    pub fill: Option<Fill>,
    pub group: i64,
    pub vector_stores: EntitySet<Inst>,
    /// What must hold for vectors, and whether there are any.
    pub needed: Vec<Expr>,
    pub any: bool,
    /// All loads lie along the reduced axis, so that a team of lanes could sum up a result.
    pub along: bool,
}

impl Staging {
    /// None where the target has no room for the shape, or a load does not fit it.
    pub fn new(
        pattern: &mut Pattern<'_>,
        found: &Found,
        shape: &Shape,
        target: &TargetFacts,
    ) -> Option<Self> {
        shape.check(target).ok()?;
        let kernel = pattern.kernel;
        let reduce = pattern.reduce.as_ref()?;
        let (inst, inner) = (reduce.inst, reduce.axis.clone());
        let combiners = reduce.combiners.clone();
        let [rows, columns] = found.axes;
        let blocks = Blocks::new(pattern, (columns, shape.tile[1]), (rows, shape.tile[0]), GROUP);
        let outer = [blocks.y.0.clone(), blocks.x.0.clone()];

        let mut needed: Vec<Expr> = Vec::new();
        let fill = Fill::new(pattern, found, &combiners);
        let mut shape = shape.clone();
        if fill.is_none() {
            shape.unroll = 1;
        }
        let mut walks = [0, 1].map(|side| {
            let indices = [outer[side].index, inner.index];
            found.loads[side]
                .iter()
                .map(|source| operand::walk(pattern, *source, indices))
                .collect::<Vec<_>>()
        });
        if !target.async_copies {
            walks.iter_mut().flatten().for_each(|walk| *walk = None);
        }
        let operands = loop {
            let mut operands = [Vec::new(), Vec::new()];
            for (side, sources) in found.loads.iter().enumerate() {
                for (source, walk) in sources.iter().zip(&walks[side]) {
                    let axes = (&outer[side], &inner);
                    operands[side].push(Operand::new(pattern, *source, axes, (&shape, side), *walk)?);
                }
            }
            let bytes: i64 = operands.iter().flatten().map(|operand| operand.bytes(shape.stages)).sum();
            if bytes <= i64::from(target.shared_bytes) {
                break operands;
            }
            // Shared memory that holds shorter chunks only.
            shape.depth /= 2;
            shape.unroll = shape.unroll.min(shape.depth);
            shape.check(target).ok()?;
        };
        operands.iter().flatten().for_each(|operand| needed.extend(operand.aligned.clone()));
        let any = operands.iter().flatten().any(|operand| operand.vector.is_some());
        let along = found.loads.iter().flatten().all(|source| {
            let width = pattern.width(source.load) as i64;
            pattern.stride(source.load, inner.index) == Stride::Bytes(width)
        });
        let top = &kernel.blocks[pattern.body].insts;
        let stores: Vec<Inst> =
            top.iter().copied().filter(|inst| kernel.insts[*inst].opcode == Opcode::Store).collect();
        let widest = pattern.stores().into_iter().map(|store| pattern.width(store)).max()?;
        let mut group = (16 / widest as i64).min(shape.piece(1));
        if is_large(&shape) {
            group = 1;
        }
        let mut vector_stores = EntitySet::new();
        for store in stores.iter().filter(|_| group > 1) {
            if let Some(conditions) = pattern.vector_condition(*store, &outer[1], group as u64) {
                needed.extend(conditions);
                vector_stores.insert(*store);
            }
        }
        if vector_stores.is_empty() {
            group = 1;
        }
        let mut different = Vec::with_capacity(needed.len());
        for condition in needed {
            if !different.contains(&condition) {
                different.push(condition);
            }
        }
        let needed = different;
        Some(Self {
            reduce: inst,
            combiners,
            inner,
            shape,
            blocks,
            operands,
            fill,
            group,
            vector_stores,
            needed,
            any: any || group > 1,
            along,
        })
    }

    /// What holds nearly always, and must: that there is something to add up, and that a grid can have the blocks of all
    /// tiles, and those that share. The same for all shapes, none of which has smaller tiles, unless the schedule says so.
    pub fn usual(&self, kernel: &Kernel) -> impl Iterator<Item = Expr> + use<> {
        let [limit, ..] = GRID_LIMITS;
        let mut blocks = self.blocks.clone();
        blocks.x.1 = blocks.x.1.min(LEAST_SIDE);
        blocks.y.1 = blocks.y.1.min(LEAST_SIDE);
        let fits = Expr::binary(BinaryOp::LessEqual, blocks.tiles(kernel), Expr::Int(limit - MOST_SHARING));
        let some = Expr::binary(BinaryOp::GreaterEqual, self.inner.extent.clone(), Expr::Int(1));
        [some, fits].into_iter()
    }

    /// What must hold where the blocks lie within the results.
    pub fn fills(&self) -> Vec<Expr> {
        let axes = [&self.blocks.y.0, &self.blocks.x.0].into_iter().zip(self.shape.tile);
        let fills = axes
            .map(|(axis, least)| Expr::binary(BinaryOp::GreaterEqual, axis.extent.clone(), Expr::Int(least)));
        if self.shape.inside { fills.collect() } else { Vec::new() }
    }

    /// That the shape is the best one, and fits: one question for both, as the answer to one of them alone chooses nothing.
    pub fn is_best(&self, is_cheapest: Expr) -> Expr {
        let not = |all: Expr, part: Expr| Expr::binary(BinaryOp::Or, all, part.negated(true));
        let misses = self.fills().into_iter().fold(is_cheapest.negated(true), not);
        misses.negated(true)
    }

    /// What a launch with tiles of the shape costs.
    pub fn cost(&self, kernel: &Kernel, target: &TargetFacts) -> Cost {
        let chunks = share::chunks(&self.inner, &self.shape);
        Cost::new(&self.blocks.tiles(kernel), &chunks, &self.shape, i64::from(target.multiprocessors))
    }

    /// What it costs without: one thread a result, or a team where the loads lie along the reduced axis.
    pub fn without(&self, kernel: &Kernel, target: &TargetFacts) -> Expr {
        let Blocks { x, y, others, .. } = &self.blocks;
        let extents = others.iter().chain([&y.0, &x.0]).map(|axis| block_count(kernel, &axis.extent, 1));
        let results = extents.reduce(times).unwrap_or(Expr::Int(1));
        let cost = if self.along { cost::teams } else { cost::plain };
        cost(&results, &self.inner.extent, i64::from(target.multiprocessors))
    }
}
