//! `licm`: moves loop-invariant code out of loops.
//!
//! ```text
//! v9: f32 = reduce [add] axis1 "j" = v0..v1 (v5 "j": i64) {       v6: f32 = load buf0[v4]
//!     v6: f32 = load buf0[v4]                                →    v9: f32 = reduce [add] axis1 "j" = … {
//!     v7: f32 = load buf0[v5]                                         v7: f32 = load buf0[v5]
//! ```
//!
//! A pure instruction whose operands come from outside a loop moves in front of it: pure ops are total, so it
//! does no harm where the loop never runs. A load moves too if nothing in the loop writes its buffer and it
//! would not touch memory that the program does not: either the loop surely runs and reaches the load in its
//! first round, or every subscript is inside for another reason (the index of a loop from at least 0 to the
//! buffer's extent, a number in the extent's constant range, or no more than what an `if` around the loop compares with
//! the extent).
//!
//! A bounds check that is the same in each round is made once, in front of the loop, for where there are rounds.
//!
//! An `if` moves as a whole, where it is the same in each round and nothing stands in it but such code and other `if`s: a
//! load whose subscript was checked is one.
//!
//! # Limits
//!
//! What stands in an `if` that stays, stays there. Values of loops do not move.

use super::pass::{Changed, Pass, PassContext};
use crate::analysis::written_by;
use crate::analysis::{Affine, Known, Ranges, difference, polynomial_of};
use crate::ir::Owners;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{Definition, Kernel, Payload, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use cranelift_entity::{EntitySet, SecondaryMap};

pub struct Licm;

impl Pass for Licm {
    fn name(&self) -> &str {
        "licm"
    }

    fn reason(&self) -> &str {
        "moves loop-invariant code out of loops"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let (ranges, owners) = (Ranges::new(kernel), kernel.parents().owner_of);
        let depths = kernel.of_values();
        let around = Vec::new();
        let mut mover =
            Mover { kernel, ranges, owners, launch: None, known: None, around, depths, changed: false };
        for launch in mover.kernel.launches.keys().collect::<Vec<_>>() {
            (mover.launch, mover.known) = (Some(launch), None);
            mover.block(mover.kernel.launches[launch].body, 0);
        }
        mover.changed.into()
    }
}

struct Mover<'k> {
    kernel: &'k mut Kernel,
    ranges: Ranges,
    /// The instructions around where the pass is. Blocks keep their owners while instructions move.
    owners: Owners,
    /// The launch, and what is known of sizes there once somebody has asked.
    launch: Option<Launch>,
    known: Option<Known>,
    /// The blocks around where the pass is, from the outermost inwards.
    around: Vec<Block>,
    /// How many regions are around each value's definition.
    depths: SecondaryMap<Value, u16>,
    changed: bool,
}

impl Mover<'_> {
    /// Works on a block from the innermost loops outwards.
    fn block(&mut self, block: Block, depth: u16) {
        for value in &self.kernel.blocks[block].params {
            self.depths[*value] = depth;
        }
        self.around.push(block);
        let insts = std::mem::take(&mut self.kernel.blocks[block].insts);
        let mut done = Vec::with_capacity(insts.len());
        for inst in insts {
            let data = &self.kernel.insts[inst];
            let (opcode, regions) = (data.opcode, data.regions.len());
            for at in 0..regions {
                let region = self.kernel.insts[inst].regions[at];
                self.block(region, depth + 1);
            }
            if matches!(opcode, Opcode::Forall | Opcode::Reduce | Opcode::For | Opcode::While) {
                for at in 0..regions {
                    self.hoist(inst, self.kernel.insts[inst].regions[at], at, depth, &mut done);
                }
            }
            for value in &self.kernel.insts[inst].results {
                self.depths[*value] = depth;
            }
            done.push(inst);
            if opcode == Opcode::Reduce {
                let product: Option<Inst> =
                    mutant!("licm: a factor leaves a maximum", None, self.take_factor_out(inst, depth));
                done.extend(product);
            }
        }
        self.kernel.blocks[block].insts = done;
        self.around.pop();
    }

    /// A wrong version: `max(j: a * x[j])` becomes `a * max(j: x[j])`, which is another number where `a` is negative and
    /// where the products wrap around.
    #[cfg(test)]
    fn take_factor_out(&mut self, reduce: Inst, depth: u16) -> Option<Inst> {
        use crate::ir::op::Combiner;
        let data = &self.kernel.insts[reduce];
        let (body, result, span) = (data.regions[0], data.results[0], data.span);
        let Payload::Reduce { combiners, .. } = &data.payload else { return None };
        let term = self.kernel.yields(body)[0];
        let product = self.kernel.definition_data(term)?;
        if combiners[..] != [Combiner::Max]
            || product.opcode != Opcode::Mul
            || !self.kernel.value_type(term).is_integer()
        {
            return None;
        }
        let at = product.arguments.iter().position(|value| self.depths[*value] <= depth)?;
        let (factor, rest) = (product.arguments[at], product.arguments[1 - at]);
        let last = self.kernel.terminator(body)?;
        self.kernel.insts[last].arguments[0] = rest;
        let scaled = self.kernel.make_inst(Opcode::Mul, Payload::None, &[factor, rest], span);
        self.kernel.replace_uses(result, self.kernel.insts[scaled].results[0]);
        self.kernel.insts[scaled].arguments[1] = result;
        self.depths[self.kernel.insts[scaled].results[0]] = depth;
        self.changed = true;
        Some(scaled)
    }

    /// Moves what is invariant from a region of a loop to the end of `outside`.
    fn hoist(&mut self, owner: Inst, region: Block, position: usize, depth: u16, outside: &mut Vec<Inst>) {
        let surely_runs = self.surely_runs(owner, position);
        let written = written_by(self.kernel, owner);
        let count = self.kernel.blocks[region].insts.len();
        let mut stay = Vec::with_capacity(count);
        let counted = self.kernel.insts[owner].opcode != Opcode::While;
        for at in 0..count {
            let inst = self.kernel.blocks[region].insts[at];
            let data = &self.kernel.insts[inst];
            let invariant = data.arguments.iter().all(|value| {
                self.depths[*value]
                    <= mutant!("licm: what depends on the index leaves the loop", depth, depth + 1)
            });
            if data.opcode == Opcode::Check && invariant && counted {
                self.check_before(owner, inst, depth, outside);
                self.changed = true;
                continue;
            }
            let safe = match (data.opcode.info().effect, &data.payload) {
                (Effect::Pure, _) => true,
                (Effect::Read, Payload::Access { buffer, .. }) if invariant => {
                    let unwritten = !written.contains(*buffer);
                    self.load_may_move(inst, unwritten, surely_runs)
                }
                (Effect::Regions, _) if invariant && data.opcode == Opcode::If => {
                    self.branch_may_move(inst, &written, surely_runs, depth)
                }
                _ => false,
            };
            if invariant && safe {
                let moved = self.kernel.insts[inst].results.clone();
                moved.into_iter().for_each(|value| self.depths[value] = depth);
                outside.push(inst);
                self.changed = true;
            } else {
                stay.push(inst);
            }
        }
        self.kernel.blocks[region].insts = stay;
    }

    /// Whether a load that is the same in each round may be done before a loop: what the loop does not write, where the loop surely
    /// comes to it or it lies inside anyway.
    fn load_may_move(&mut self, load: Inst, unwritten: bool, surely_runs: bool) -> bool {
        let reached = surely_runs || self.inside(load);
        mutant!("licm: a load leaves a loop that writes its buffer", unwritten, true)
            && mutant!("licm: a load leaves a loop that may not run", reached, true)
    }

    /// Whether all that stands in a branch is the same in each round of a loop around it, does nothing but read, and may be done
    /// where the loop does not run. `depth` is that of what is around the loop: what is deeper than its body is the branch's own.
    fn branch_may_move(
        &mut self,
        branch: Inst,
        written: &EntitySet<Buffer>,
        surely_runs: bool,
        depth: u16,
    ) -> bool {
        self.kernel.insts[branch].regions.clone().into_iter().all(|region| {
            self.around.push(region);
            let may_move = self.kernel.blocks[region].insts.clone().into_iter().all(|inst| {
                let data = &self.kernel.insts[inst];
                let invariant = data.arguments.iter().all(|value| self.depths[*value] != depth + 1);
                invariant
                    && match (data.opcode.info().effect, &data.payload) {
                        (Effect::Pure | Effect::Terminator, _) => true,
                        (Effect::Read, Payload::Access { buffer, .. }) => {
                            let unwritten = !written.contains(*buffer);
                            mutant!(
                                "licm: a branch leaves a loop whatever it reads",
                                self.load_may_move(inst, unwritten, surely_runs),
                                true
                            )
                        }
                        (Effect::Regions, _) if data.opcode == Opcode::If => {
                            self.branch_may_move(inst, written, surely_runs, depth)
                        }
                        _ => false,
                    }
            });
            self.around.pop();
            may_move
        })
    }

    /// Makes a check that is the same in each round before the loop, for where there are rounds.
    fn check_before(&mut self, owner: Inst, check: Inst, depth: u16, outside: &mut Vec<Inst>) {
        let span = self.kernel.insts[check].span;
        for (low, high) in self.kernel.loop_bounds(owner) {
            if self.kernel.int_of(low).zip(self.kernel.int_of(high)).is_some_and(|(low, high)| low < high) {
                continue;
            }
            let holds = self.kernel.insts[check].arguments[0];
            let none = self.kernel.make_inst(Opcode::Ge, Payload::None, &[low, high], span);
            let none_or = [self.kernel.insts[none].results[0], holds];
            let either = self.kernel.make_inst(Opcode::Or, Payload::None, &none_or, span);
            for made in [none, either] {
                let result = self.kernel.insts[made].results[0];
                self.depths[result] = depth;
                outside.push(made);
            }
            self.kernel.insts[check].arguments[0] = self.kernel.insts[either].results[0];
        }
        outside.push(check);
    }

    /// Whether the first round of a loop's region surely begins.
    fn surely_runs(&self, inst: Inst, position: usize) -> bool {
        if self.kernel.insts[inst].opcode == Opcode::While {
            return position == 0;
        }
        self.kernel.loop_bounds(inst).into_iter().all(|(low, high)| {
            self.kernel.int_of(low).zip(self.kernel.int_of(high)).is_some_and(|(low, high)| low < high)
        })
    }

    /// Whether every subscript of a load is inside its extent wherever the block that the pass is in is reached.
    fn inside(&mut self, inst: Inst) -> bool {
        let kernel = &*self.kernel;
        let Payload::Access { buffer, leaf } = kernel.insts[inst].payload else { return false };
        let data = &kernel.buffers[buffer];
        let inner = data.element.leaves[leaf as usize].extents.iter().map(|extent| Expr::Int(*extent as i64));
        let extents: Vec<Expr> = data.extents.iter().cloned().chain(inner).collect();
        let indices = kernel.insts[inst].arguments.clone();
        indices.iter().zip(&extents).all(|(index, extent)| {
            let interval = self.ranges.of(self.kernel, *index);
            if interval.low < 0 && !self.guarded_from_zero(*index) {
                return false;
            }
            let is_below = match extent {
                Expr::Int(extent) => interval.high < i128::from(*extent),
                extent => {
                    self.below_extent(*index, extent)
                        // Of literals alone: what a loop over rows holds of others would be many registers.
                        || interval.low == interval.high && self.is_known_below(interval.high, extent)
                }
            };
            is_below || self.guarded(*index, extent)
        })
    }

    /// Whether the facts, or what the launch assumes, say that an extent is above a number.
    fn is_known_below(&mut self, number: i128, extent: &Expr) -> bool {
        let Ok(number) = i64::try_from(number) else { return false };
        let kernel = &*self.kernel;
        let known = self.known.get_or_insert_with(|| Known::new(kernel, self.launch));
        known.holds(kernel, &Expr::binary(BinaryOp::Greater, extent.clone(), Expr::Int(number)))
    }

    /// Whether an `if` around the block says that a value, or more than it, is below the extent or less.
    fn guarded(&mut self, index: Value, extent: &Expr) -> bool {
        let Some(extent) = polynomial_of(extent) else { return false };
        self.said_around(Opcode::Lt).into_iter().any(|(low, high)| {
            let left = extent.constant_left(&Affine::new(self.kernel).form(high));
            left.is_some_and(|left| left >= 0) && self.is_at_most(index, low)
        })
    }

    /// Whether an `if` around the block says that a value, or less than it, is at least 0 or more.
    fn guarded_from_zero(&mut self, index: Value) -> bool {
        self.said_around(Opcode::Ge).into_iter().any(|(value, least)| {
            self.kernel.int_of(least).is_some_and(|least| least >= 0) && self.is_at_most(value, index)
        })
    }

    /// Both sides of each comparison that holds where the block is reached, as an `if` around it says.
    fn said_around(&self, comparison: Opcode) -> Vec<(Value, Value)> {
        let kernel = &*self.kernel;
        let guards = self.around.iter().filter_map(|block| {
            let data = &kernel.insts[self.owners[*block].expand()?];
            (data.opcode == Opcode::If && data.regions[0] == *block).then(|| data.arguments[0])
        });
        let (mut conditions, mut found): (Vec<Value>, _) = (guards.collect(), Vec::new());
        while let Some(condition) = conditions.pop() {
            let Some(data) = kernel.definition_data(condition) else { continue };
            match &data.arguments[..] {
                both if data.opcode == Opcode::And => conditions.extend(both),
                [left, right] if data.opcode == comparison => found.push((*left, *right)),
                _ => {}
            }
        }
        found
    }

    /// Whether a value is another one, or a literal less.
    fn is_at_most(&mut self, less: Value, more: Value) -> bool {
        let kernel = &*self.kernel;
        less == more
            || difference(kernel, &mut Affine::new(kernel), &mut self.ranges, less, more)
                .and_then(|left| left.as_wrapped())
                .is_some_and(|left| left >= 0)
    }

    /// Whether a value is the index of a loop that ends at the extent or before it.
    fn below_extent(&self, index: Value, extent: &Expr) -> bool {
        let Definition::Param(block, position) = self.kernel.values[index].definition else { return false };
        let Some(owner) = self.owners[block].expand() else { return false };
        let Some((_, high)) = self.kernel.loop_bounds(owner).get(usize::from(position)).copied() else {
            return false;
        };
        let high = self.kernel.symbolic(high).and_then(|high| polynomial_of(&high));
        let left = polynomial_of(extent).zip(high).and_then(|(extent, high)| extent.constant_left(&high));
        left.is_some_and(|left| left >= 0)
    }
}
