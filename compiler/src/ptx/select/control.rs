//! Regions become labels and branches; loop-carried values become registers.

use super::super::instruction::*;
use super::super::operand::{Operand, PredOperand, Reg};
use super::super::types::{RegClass, Type};
use super::SelectError;
use super::checks::EndsOnFailure;
use super::naming::is_free;
use super::selector::{Selector, bits_type};
use crate::data::Scalar;
use crate::ir::entities::{Axis, Block, Inst, Value};
use crate::ir::kernel::{Definition, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::mutants::mutant;

/// What is done with the operands that a loop's body yields, inside the innermost loop.
type Finish<'f, S> = &'f mut dyn FnMut(&mut S, Vec<Operand>) -> Result<(), SelectError>;

/// Instructions that are rather executed in vain than jumped over.
const CHEAP: usize = 4;

/// Copies of which each has a guard rather than that all are jumped over.
const MOST_COPIES: usize = 16;

impl Selector<'_> {
    /// Selects a block's instructions and returns the operands of its `yield`.
    pub fn block(&mut self, block: Block) -> Result<Vec<Operand>, SelectError> {
        // A block without a branch around it has others' checks before it.
        let outer = std::mem::take(&mut self.checks);
        let (draws, angles) = (self.draws.len(), self.angles.len());
        let yields = self.straight_block(block)?;
        self.draws.truncate(draws);
        self.angles.truncate(angles);
        self.checks = outer;
        Ok(yields)
    }

    fn straight_block(&mut self, block: Block) -> Result<Vec<Operand>, SelectError> {
        let kernel = self.kernel;
        let insts = &kernel.blocks[block].insts;
        self.bind_params(block);
        for (at, &inst) in insts.iter().enumerate() {
            let data = &kernel.insts[inst];
            match data.opcode {
                Opcode::Yield => {
                    self.settle_checks();
                    return Ok(data.arguments.iter().map(|value| self.operand(*value)).collect());
                }
                opcode if is_free(opcode) => {
                    self.bind_free(inst);
                    continue;
                }
                _ => {}
            }
            if self.maps.fused[inst] || self.is_deferred(inst) {
                continue;
            }
            self.locate(data.span);
            self.settle_checks_before(inst);
            match data.opcode {
                Opcode::Div if self.regular_quotient(inst) || self.quotients(&insts[at..]) => {}
                Opcode::And if self.in_range(inst) => {}
                Opcode::Forall => self.forall(inst)?,
                Opcode::Reduce => self.reduce(inst)?,
                Opcode::For => self.for_loop(inst)?,
                Opcode::While => self.while_loop(inst)?,
                Opcode::If => {
                    if !self.if_converted(inst)? {
                        self.if_else(inst)?;
                    }
                }
                Opcode::Load => self.load(inst)?,
                Opcode::LoadIf => self.load_if(inst)?,
                Opcode::Store => self.store(inst)?,
                Opcode::StoreIf => self.store_if(inst)?,
                Opcode::StoreEach => self.store_each(inst)?,
                Opcode::Atomic => self.atomic(inst)?,
                Opcode::Check => self.check(inst)?,
                Opcode::Print => self.print(inst)?,
                Opcode::LoadVector => self.load_vector(inst)?,
                Opcode::StoreVector => self.store_vector(inst)?,
                Opcode::Address => self.address_of(inst)?,
                Opcode::CopyAsync | Opcode::CopyAsyncIf => self.copy_async(inst)?,
                Opcode::CopyCommit => self.builder.emit(CpAsyncCommit {}),
                Opcode::CopyWait => self.copy_wait(inst),
                Opcode::Barrier => self.barrier(),
                Opcode::WarpBarrier => self.warp_barrier(),
                Opcode::ShuffleXor => self.shuffle(inst),
                Opcode::Outer | Opcode::OuterFma => self.outer(inst)?,
                Opcode::Pack => self.pack(inst)?,
                Opcode::LoadMatrix | Opcode::LoadMatrixTransposed => self.load_matrix(inst)?,
                Opcode::Mma => self.mma(inst)?,
                Opcode::BlockIndex | Opcode::GridSize | Opcode::ThreadIndex => self.position_in_grid(inst),
                _ => self.simple(inst)?,
            }
            self.bind_results(inst);
        }
        self.settle_checks();
        Ok(Vec::new())
    }

    /// Selects a region whose address arithmetic does not hold after it.
    fn region(&mut self, block: Block) -> Result<Vec<Operand>, SelectError> {
        let mark = self.offsets.mark();
        let yields = self.block(block)?;
        self.offsets.release(mark);
        Ok(yields)
    }

    fn bounds(&self, inst: Inst) -> Vec<(Value, Value)> {
        self.kernel.insts[inst].arguments.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
    }

    fn forall(&mut self, inst: Inst) -> Result<(), SelectError> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let Payload::Loop { axes } = &data.payload else {
            return Err(self.error(format!("{inst} has no axes")));
        };
        let bounds = self.bounds(inst);
        let failed = self.ends_on_failure(inst);
        self.serial_axes((axes, failed), &bounds, data.regions[0], &mut |_, _| Ok(()))
    }

    /// Nested sequential loops over all axes, which may end where a check has failed; `finish` gets what the body yields,
    /// inside the innermost loop.
    fn serial_axes(
        &mut self,
        (axes, failed): (&[Axis], Option<EndsOnFailure>),
        bounds: &[(Value, Value)],
        body: Block,
        finish: Finish<'_, Self>,
    ) -> Result<(), SelectError> {
        for axis in axes {
            let axis = &self.kernel.axes[*axis];
            if axis.factors.iter().any(|factor| factor.level.is_parallel()) {
                let name = &axis.name;
                return Err(self.error(format!(
                    "`{name}` is spread over threads: the pass `threads` makes them explicit, and has not run"
                )));
            }
        }
        let mark = self.offsets.mark();
        let mut open = Vec::new();
        for (at, axis) in axes.iter().enumerate() {
            let axis = &self.kernel.axes[*axis];
            let low = self.operand(bounds[at].0);
            let high = self.operand(bounds[at].1);
            let counter = self.builder.reg(RegClass::B64, &axis.name);
            open.push(self.open_loop(counter, (low, high, Operand::Int(1)), Type::S64, axis, failed));
            self.maps.values[self.kernel.blocks[body].params[at]] = Some(counter.into());
        }
        let yields = self.block(body)?;
        finish(self, yields)?;
        for opened in open.into_iter().rev() {
            self.close_loop(opened);
        }
        self.offsets.release(mark);
        Ok(())
    }

    fn reduce(&mut self, inst: Inst) -> Result<(), SelectError> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let Payload::Reduce { axes, combiners } = &data.payload else {
            return Err(self.error(format!("{inst} has no combiners")));
        };
        if let Some(own) = combiners.iter().find(|combiner| matches!(combiner, Combiner::Own(..))) {
            return Err(
                self.error(format!("{inst} reduces by `{own}`: the pass `threads` makes a loop of it"))
            );
        }
        let body = data.regions[0];
        let mut accumulators = Vec::new();
        let mut at = 0;
        for combiner in combiners {
            let scalar = self.scalar(data.results[at]);
            for (part, identity) in self.identity(*combiner, scalar).into_iter().enumerate() {
                let result = data.results[at + part];
                let ty = bits_type(self.scalar(result));
                let hint = self.hint(result);
                let reg = self.builder.reg_for(ty, if hint.is_empty() { "acc" } else { &hint });
                self.builder.emit(Mov { ty, dst: reg, a: identity });
                self.maps.values[result] = Some(reg.into());
                accumulators.push(reg);
            }
            at += combiner.width();
        }
        let products = self.fuse_products(body, combiners);
        let bounds = self.bounds(inst);
        let types: Vec<Scalar> = data.results.iter().map(|value| self.scalar(*value)).collect();
        let failed = self.ends_on_failure(inst);
        self.serial_axes((axes, failed), &bounds, body, &mut |selector, yields| {
            let mut at = 0;
            for (number, combiner) in combiners.iter().enumerate() {
                if let Some((a, b)) = products[number] {
                    let (a, b) = (selector.operand(a), selector.operand(b));
                    selector.builder.emit(Fma {
                        ty: bits_type(types[at]),
                        dst: accumulators[at],
                        a,
                        b,
                        c: accumulators[at].into(),
                        ..Default::default()
                    });
                } else if combiner.is_position() {
                    selector.combine_arg(
                        *combiner,
                        types[at],
                        &accumulators[at..at + 2],
                        &yields[at..at + 2],
                    );
                } else {
                    let reg = accumulators[at];
                    let result = selector.combined(*combiner, types[at], reg.into(), yields[at]);
                    selector.copy(reg, bits_type(types[at]), result);
                }
                at += combiner.width();
            }
            Ok(())
        })
    }

    /// A float sum of products accumulates by `fma`: the products that nothing else uses are not emitted alone.
    fn fuse_products(&mut self, body: Block, combiners: &[Combiner]) -> Vec<Option<(Value, Value)>> {
        let kernel = self.kernel;
        let Some(&last) = kernel.blocks[body].insts.last() else { return vec![None; combiners.len()] };
        let mut at = 0;
        let mut products = Vec::with_capacity(combiners.len());
        for combiner in combiners {
            let mut product = None;
            if let Some(&value) = kernel.insts[last].arguments.get(at)
                && *combiner == Combiner::Add
                && self.scalar(value).is_float()
                && self.maps.uses[value] == 1
                && let Definition::Result(inst, _) = kernel.values[value].definition
                && kernel.insts[inst].opcode == Opcode::Mul
                && kernel.blocks[body].insts.contains(&inst)
            {
                let arguments = &kernel.insts[inst].arguments;
                product = Some((arguments[0], arguments[1]));
                self.maps.fused[inst] = true;
                // `yield` asks for the operand of what was not emitted: any operand of the type will do.
                self.maps.values[value] = Some(Operand::Int(0));
            }
            products.push(product);
            at += combiner.width();
        }
        products
    }

    fn for_loop(&mut self, inst: Inst) -> Result<(), SelectError> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let body = data.regions[0];
        let (low, high) = (self.operand(data.arguments[0]), self.operand(data.arguments[1]));
        let step = self.operand(data.arguments[2]);
        let Payload::Loop { axes } = &data.payload else { return Err(self.error("a `for` without an axis")) };
        let axis = &kernel.axes[axes[0]];
        let home = self.maps.home[inst].expand();
        let carried = self.carry(home, &data.arguments[3..], &data.results, &kernel.blocks[body].params[1..]);
        self.compute_in_place(body, &carried);
        let mark = self.offsets.mark();
        let counter = self.builder.reg(RegClass::B64, &axis.name);
        let failed = self.ends_on_failure(inst);
        let open = self.open_loop(counter, (low, high, step), Type::S64, axis, failed);
        self.maps.values[kernel.blocks[body].params[0]] = Some(counter.into());
        let yields = self.block(body)?;
        self.assign(&carried, &yields);
        // The counter may wrap where the range ends near the type's end: then the loop is over.
        self.close_loop(open);
        self.offsets.release(mark);
        Ok(())
    }

    fn while_loop(&mut self, inst: Inst) -> Result<(), SelectError> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let (condition, body) = (data.regions[0], data.regions[1]);
        let carried = self.carry(None, &data.arguments, &data.results, &kernel.blocks[condition].params);
        for (param, (reg, _)) in kernel.blocks[body].params.iter().zip(&carried) {
            self.maps.values[*param] = Some((*reg).into());
        }
        let head = self.builder.label("while");
        let done = self.builder.label("end_while");
        let mark = self.offsets.mark();
        self.builder.place(head);
        let yields = self.block(condition)?;
        let test = self.in_register(yields[0], Type::Pred);
        let guard = PredOperand { reg: test, negated: true };
        self.builder.emit_if(guard, Bra { uni: false, target: done });
        if let Some(failed) = self.ends_on_failure(inst) {
            let failed = self.meet_on_failure(failed);
            self.builder.emit_if(failed, Bra { uni: false, target: done });
        }
        let next = self.block(body)?;
        self.assign(&carried, &next);
        self.builder.emit(Bra { uni: false, target: head });
        self.builder.place(done);
        self.offsets.release(mark);
        Ok(())
    }

    fn if_else(&mut self, inst: Inst) -> Result<(), SelectError> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let test = self.register(data.arguments[0]);
        if self.is_predicable(inst) {
            self.guard = mutant!("select: a store under an `if` has no guard", Some(test), None);
            self.block(data.regions[0])?;
            self.guard = None;
            return Ok(());
        }
        let results: Vec<(Reg, Type)> =
            data.results.iter().map(|value| (self.define(*value), bits_type(self.scalar(*value)))).collect();
        let (then, otherwise) = (data.regions[0], data.regions[1]);
        let has_else =
            kernel.blocks[otherwise].insts.iter().any(|i| kernel.insts[*i].opcode != Opcode::Yield)
                || !results.is_empty();
        let end = self.builder.label("end_if");
        let target = if has_else { self.builder.label("else") } else { end };
        let guard = PredOperand { reg: test, negated: true };
        self.builder.emit_if(guard, Bra { uni: false, target });
        let yields = self.region(then)?;
        for ((reg, ty), operand) in results.iter().zip(yields) {
            self.copy(*reg, *ty, operand);
        }
        if has_else {
            self.builder.emit(Bra { uni: false, target: end });
            self.builder.place(target);
            let yields = self.region(otherwise)?;
            for ((reg, ty), operand) in results.iter().zip(yields) {
                self.copy(*reg, *ty, operand);
            }
        }
        self.builder.place(end);
        Ok(())
    }

    /// Whether an `if` becomes predicated stores: all it does is to write memory, once or by some copies, and what it computes
    /// for that is cheap, and safe to compute in any case.
    fn is_predicable(&self, inst: Inst) -> bool {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let is_empty = |block: Block| kernel.blocks[block].insts.len() <= 1;
        let (mut cheap, mut stores, mut copies) = (0, 0, 0);
        for inst in &kernel.blocks[data.regions[0]].insts {
            match kernel.insts[*inst].opcode {
                Opcode::Const | Opcode::Symbol | Opcode::Yield => {}
                Opcode::Add | Opcode::Mul => cheap += 1,
                Opcode::Store | Opcode::StoreVector => stores += 1,
                Opcode::Atomic if self.is_one_red(*inst) => stores += 1,
                Opcode::CopyAsync | Opcode::CopyAsyncIf => copies += 1,
                _ => return false,
            }
        }
        let one = stores == 1 && copies == 0 && cheap <= CHEAP;
        let fits = one || (stores == 0 && (1..=MOST_COPIES).contains(&copies));
        fits && data.results.is_empty() && is_empty(data.regions[1]) && self.guard.is_none()
    }
}
