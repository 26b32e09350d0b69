//! `bits_once`: bits that are the same for all elements of a tile are taken off what these combine to, not off each.

use krn_compiler::ir::entities::{Block, Inst, Value};
use krn_compiler::ir::kernel::{Kernel, Payload, Phase, Phases, Tile};
use krn_compiler::ir::op::{Combiner, Opcode};
use krn_compiler::passes::{Changed, Pass, PassContext};

/// A mask leaves a reduction by `or`.
///
/// ```text
/// v4: u32 {c} layout0 = and v2, v3              v6: u32 = reduce_along [or] c: v2
/// v5: u32 = reduce_along [or] c: v4      →      v5: u32 = and v6, v3
/// ```
///
/// `(a & m) | (b & m)` is `(a | b) & m`, to the bit; and where no element takes part, both are 0. An operation for each
/// element becomes one for the block.
pub struct BitsOnce;

impl Pass for BitsOnce {
    fn name(&self) -> &str {
        "bits_once"
    }

    fn reason(&self) -> &str {
        "masks what a tile combines to instead of each of its elements"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Tiled])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut found = Vec::new();
        kernel.walk_all(&mut |block, inst| {
            found.extend(masked(kernel, inst).map(|parts| (block, inst, parts)))
        });
        for (block, inst, parts) in &found {
            rewrite(kernel, *block, *inst, *parts);
        }
        Changed::from(!found.is_empty())
    }
}

/// The tile, and the mask of all its elements, that a reduction by `or` is of.
fn masked(kernel: &Kernel, inst: Inst) -> Option<[Value; 2]> {
    let data = &kernel.insts[inst];
    let Payload::Along { combiners, .. } = &data.payload else { return None };
    let is_or = combiners.len() == 1 && combiners[0] == Combiner::Or;
    let terms = kernel.definition_data(*data.arguments.first()?)?;
    let [left, right] = terms.arguments[..] else { return None };
    let is_scalar = |value: Value| kernel.tile(value) == Tile::SCALAR;
    let parts = if is_scalar(right) { [left, right] } else { [right, left] };
    (is_or && terms.opcode == Opcode::And && is_scalar(parts[1]) && !is_scalar(parts[0])).then_some(parts)
}

/// Puts the reduction of the tile in front, and the mask of that in its place.
fn rewrite(kernel: &mut Kernel, block: Block, inst: Inst, [tile, mask]: [Value; 2]) {
    let mut reduce = kernel.insts[inst].clone();
    let old = reduce.results[0];
    reduce.results.clear();
    reduce.arguments[0] = tile;
    let reduce = kernel.insts.push(reduce);
    // A value's tile says its axes and its layout: the result has those of the one that it stands for.
    let combined = kernel.clone_result(old, reduce);
    let insts = &mut kernel.blocks[block].insts;
    let at = insts.iter().position(|other| *other == inst).unwrap_or(insts.len());
    insts.insert(at, reduce);
    kernel.rewrite_inst(inst, Opcode::And, Payload::None, &[combined, mask]);
}
