//! One axis a class: the axes along which only one side of a contraction moves become one, as do those that it is reduced
//! over.
//!
//! ```text
//! forall s, u, i, j { y[s, u, i, j] = sum(k, p, q: f[u, k, p, q] * x[s, k, i + p, j + q]) }        before
//! forall u, j { y[…] = sum(q: f[u, …] * x[…]) }                                                    after
//!     j is all of s, i, j: their places are j's quotients and remainders; q is all of k, p, q
//! ```
//!
//! A convolution is then a product: the filters' rows by columns of neighbourhoods, which exist in no memory.
//! Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning" (2014), section 3.

use super::super::numbers::quotient;
use super::canonical::Sum;
use super::pattern::LoopAxis;
use super::times;
use crate::analysis::contraction::{Class, Contraction, contractions};
use crate::analysis::{Conditions, block_count};
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Axis, Block, Inst, Launch, Value};
use crate::ir::kernel::{BlockData, InstData, Kernel, Payload, Regions, Short};
use crate::manifest::{self, BinaryOp, Expr};
use crate::mutants::mutant;

/// The most places along a new axis.
const MOST: i64 = i32::MAX as i64;

/// Axes of a loop that become one, or one that stays: their positions, the outermost first.
type Group = Vec<usize>;

/// A body for the launch with one axis a class, and what must hold for it. `None` where it has those already, or is no
/// contraction that has rows and columns, or the schedule says something of the axes. Sums are added up as before.
pub fn flattened(
    kernel: &mut Kernel,
    launch: Launch,
    position: usize,
    sum: Sum,
) -> Option<(Block, Conditions, Sum)> {
    let root = kernel.launches[launch].body;
    let forall = kernel.blocks[root].insts[position];
    let body = kernel.insts[forall].regions[0];
    let has_several =
        |inst: &Inst| matches!(&kernel.insts[*inst].payload, Payload::Reduce { axes, .. } if axes.len() > 1);
    let reduce = kernel.blocks[body].insts.iter().copied().find(has_several)?;
    let found = contractions(kernel, launch);
    // Each value of the reduction is one; of all of them the axes are rows, columns or steps alike.
    let (contraction, others) = found.split_first()?;
    let classes = |one: &Contraction| one.axes.iter().map(|axis| axis.class).collect::<Vec<_>>();
    let is_alike = |other: &Contraction| other.reduce == reduce && classes(other) == classes(contraction);
    if contraction.reduce != reduce || !contraction.has_reuse() || !others.iter().all(is_alike) {
        return None;
    }
    let mut outer = LoopAxis::of(kernel, forall)?;
    let mut inner = LoopAxis::of(kernel, reduce)?;
    if outer.iter().chain(&inner).any(|axis| is_scheduled(kernel, &axis.name)) {
        return None;
    }
    let groups = groups(contraction, &outer)?;
    let all_shared = contraction.axes.iter().all(|axis| !axis.is_reduced || axis.class == Class::K);
    if !all_shared {
        return None;
    }
    // Ranges that end before they begin are empty, however many there are.
    for at in groups.iter().filter(|group| group.len() > 1).flatten() {
        outer[*at].extent = block_count(kernel, &outer[*at].extent, 1);
    }
    for axis in &mut inner {
        axis.extent = block_count(kernel, &axis.extent, 1);
    }
    let flat = Flat { forall, reduce, outer, inner, groups };
    let conditions = flat.conditions();
    let (body, map) = flat.body(kernel, root, position);
    Some((body, conditions, Sum { start: sum.start.map(|start| mapped(&map, start)), ..sum }))
}

/// Whether the schedule says of an axis what holds for it alone.
pub fn is_scheduled(kernel: &Kernel, axis: &str) -> bool {
    let schedule = &kernel.schedule;
    schedule.tile(axis).is_some()
        || schedule.per_thread(axis).is_some()
        || schedule.warps(axis).is_some()
        || schedule.split(axis).is_some()
        || schedule.unroll(axis).is_some()
}

/// The axes of the loop around by class, where the last one of each stands; `None` where one moves no side.
fn groups(contraction: &Contraction, outer: &[LoopAxis]) -> Option<Vec<Group>> {
    let class = |axis: &LoopAxis| {
        contraction.axes.iter().find(|known| known.index == axis.index).map(|known| known.class)
    };
    let classes: Vec<Class> = outer.iter().map(class).collect::<Option<_>>()?;
    let mut groups = Vec::new();
    for (at, own) in classes.iter().enumerate() {
        match own {
            Class::Batch => groups.push(vec![at]),
            Class::M | Class::N if classes[at + 1..].contains(own) => {}
            Class::M | Class::N => groups.push((0..=at).filter(|known| classes[*known] == *own).collect()),
            _ => return None,
        }
    }
    Some(groups)
}

struct Flat {
    forall: Inst,
    reduce: Inst,
    outer: Vec<LoopAxis>,
    inner: Vec<LoopAxis>,
    groups: Vec<Group>,
}

impl Flat {
    /// What holds nearly always, and must for the numbers of places to be divided in 32 bits.
    fn conditions(&self) -> Conditions {
        let numbers = |axes: &[LoopAxis], group: &Group| product(group.iter().map(|at| &axes[*at].extent));
        let of_results = self.groups.iter().filter(|group| group.len() > 1);
        let of_results = of_results.map(|group| numbers(&self.outer, group));
        let of_steps = product(self.inner.iter().map(|axis| &axis.extent));
        let fit = |number| Expr::binary(BinaryOp::LessEqual, number, Expr::Int(MOST));
        let conditions = of_results.chain([of_steps]).map(fit);
        let open = conditions.filter(|fits| fits.evaluate(&[]) != Some(manifest::Value::Bool(true)));
        open.fold(Conditions::new(), Conditions::expects)
    }

    /// The launch's body, in which the loop at a position and the reduction have an axis a group, and what stands there for
    /// values of the other one.
    fn body(&self, kernel: &mut Kernel, root: Block, position: usize) -> (Block, ValueMap) {
        let block = kernel.blocks.push(BlockData::default());
        let insts = kernel.blocks[root].insts.clone();
        let mut map = ValueMap::default();
        for inst in &insts[..position] {
            kernel.clone_inst(*inst, block, &mut map);
        }
        let region = kernel.insts[self.forall].regions[0];
        self.loop_of(
            kernel,
            block,
            self.forall,
            (&self.outer, &self.groups),
            &mut map,
            |kernel, into, map| {
                for inst in kernel.blocks[region].insts.clone() {
                    if inst != self.reduce {
                        kernel.clone_inst(inst, into, map);
                        continue;
                    }
                    let groups = [(0..self.inner.len()).collect()];
                    let region = kernel.insts[inst].regions[0];
                    self.loop_of(kernel, into, inst, (&self.inner, &groups), map, |kernel, into, map| {
                        for inst in kernel.blocks[region].insts.clone() {
                            kernel.clone_inst(inst, into, map);
                        }
                    });
                }
            },
        );
        for inst in &insts[position + 1..] {
            kernel.clone_inst(*inst, block, &mut map);
        }
        (block, map)
    }

    /// Appends a loop, or reduction, like another one with an axis a group.
    fn loop_of(
        &self,
        kernel: &mut Kernel,
        into: Block,
        like: Inst,
        (axes, groups): (&[LoopAxis], &[Group]),
        map: &mut ValueMap,
        fill: impl FnOnce(&mut Kernel, Block, &mut ValueMap),
    ) {
        let InstData { opcode, payload, span, results, .. } = kernel.insts[like].clone();
        let mut emit = Emit::new(kernel, into, span);
        let mut bounds = Vec::new();
        for group in groups {
            let (low, extent) = match group.as_slice() {
                [one] => (axes[*one].low.clone(), axes[*one].extent.clone()),
                several => (Expr::Int(0), product(several.iter().map(|at| &axes[*at].extent))),
            };
            let low = emit.expression(&low);
            let extent = emit.expression(&extent);
            bounds.extend([low, emit.add(low, extent)]);
        }
        let region = emit.kernel.blocks.push(BlockData::default());
        let of_groups = |kernel: &mut Kernel, known: &[Axis]| {
            let mut fresh = Vec::new();
            for group in groups {
                let mut data = kernel.axes[known[group[group.len() - 1]]].clone();
                let mut factors = group.iter().rev().map(|at| &kernel.axes[known[*at]].factors);
                let spread = factors.find(|all| all.iter().any(|factor| factor.level.is_parallel()));
                data.factors = spread.unwrap_or(&data.factors).clone();
                fresh.push(kernel.axes.push(data));
            }
            fresh
        };
        let payload = match payload {
            Payload::Loop { axes } => Payload::Loop { axes: of_groups(emit.kernel, &axes).into() },
            Payload::Reduce { axes, combiners } => {
                Payload::Reduce { axes: of_groups(emit.kernel, &axes).into(), combiners }
            }
            other => other,
        };
        let inst = emit.bare_inst(opcode, payload, Short::from_slice(&bounds));
        emit.kernel.insts[inst].regions = Regions::from_slice(&[region]);
        for group in groups {
            let last = axes[group[group.len() - 1]].index;
            let param = emit.kernel.add_param(region, emit.kernel.values[last].ty);
            emit.kernel.values[param].name = emit.kernel.values[last].name.clone();
            map.insert(last, param);
        }
        let mut emit = Emit::new(kernel, region, span);
        for (at, group) in groups.iter().enumerate().filter(|(_, group)| group.len() > 1) {
            let index = emit.kernel.blocks[region].params[at];
            digits(&mut emit, index, &group.iter().map(|at| &axes[*at]).collect::<Vec<_>>(), map);
        }
        fill(kernel, region, map);
        for result in results {
            let copy = kernel.clone_result(result, inst);
            map.insert(result, copy);
        }
    }
}

/// Emits the places along the axes, of which `index` counts all, the last one fastest.
fn digits(emit: &mut Emit<'_>, index: Value, axes: &[&LoopAxis], map: &mut ValueMap) {
    let mut rest = index;
    for (at, axis) in axes.iter().enumerate().rev() {
        let digit = if at == 0 {
            rest
        } else {
            // A remainder by its quotient, so that what lies side by side along all axes is seen to.
            let extent = emit.expression(&axis.extent);
            let quotient = quotient(emit, rest, extent);
            let whole = emit.mul(quotient, extent);
            let whole = mutant!("flatten: a remainder is the number itself", whole, emit.int(0));
            let digit = emit.sub(rest, whole);
            rest = quotient;
            digit
        };
        let low = emit.expression(&axis.low);
        let place = emit.add(low, digit);
        map.insert(axis.index, place);
    }
}

fn product<'e>(extents: impl Iterator<Item = &'e Expr>) -> Expr {
    extents.cloned().reduce(times).unwrap_or(Expr::Int(1))
}
