//! Contractions of two arrays whose axes are the indices of loops, each once.

use crate::analysis::contraction::{Class, Contraction, contractions};
use crate::analysis::written_buffers;
use crate::data::Scalar;
use crate::ir::entities::{Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::passes::rematerialize::{free_values, is_rematerializable};

/// Definitions between a value around a reduction and literals.
const DEPTH: u32 = 16;

/// An axis of the loop or of the reduction.
#[derive(Clone)]
pub struct Axis {
    pub name: String,
    pub index: Value,
    pub extent: Expr,
    pub class: Class,
}

/// An array of one side, of which an element is a factor.
pub struct Operand {
    pub buffer: Buffer,
    /// Loads of the same element: of one field each.
    pub loads: Vec<Inst>,
    pub subscripts: Vec<Value>,
}

/// A contraction that can be a product of matrices.
pub struct Found {
    pub forall: Inst,
    pub reduce: Inst,
    /// Those of the loop, then those of the reduction.
    pub axes: Vec<Axis>,
    /// Of the rows, and of the columns.
    pub operands: [Operand; 2],
    /// The subscripts of what is stored, where all of it lies at the same indices, each once.
    pub stored: Option<Vec<Value>>,
}

impl Found {
    /// The contractions of a launch some of whose classes have several axes.
    pub fn all(kernel: &Kernel, launch: Launch) -> Vec<Self> {
        let schedule = &kernel.schedule;
        if schedule.has_order() || schedule.block().is_some() {
            return Vec::new();
        }
        let root = kernel.launches[launch].body;
        let is_loop = |inst: &Inst| !kernel.insts[*inst].regions.is_empty();
        let loops: Vec<Inst> = kernel.blocks[root].insts.iter().copied().filter(is_loop).collect();
        let [forall] = loops[..] else { return Vec::new() };
        let body = kernel.insts[forall].regions[0];
        // One alone can be no contraction.
        if kernel.insts[forall].opcode != Opcode::Forall || kernel.blocks[body].params.len() < 2 {
            return Vec::new();
        }
        let all = contractions(kernel, launch);
        let here = all.iter().filter(|one| kernel.blocks[body].insts.contains(&one.reduce));
        here.filter_map(|one| Self::of(kernel, launch, forall, one)).collect()
    }

    fn of(kernel: &Kernel, launch: Launch, forall: Inst, one: &Contraction) -> Option<Self> {
        let reduce = one.reduce;
        let free = matches!(&kernel.insts[reduce].payload, Payload::Reduce { combiners, .. }
            if combiners.iter().all(|combiner| !combiner.is_position()));
        if kernel.insts[reduce].results.len() != 1 || !free || !one.has_reuse() || one.leaves_out() {
            return None;
        }
        let axes = axes(kernel, &[forall, reduce], one)?;
        let several = |class: Class| axes.iter().filter(|axis| axis.class == class).count() > 1;
        if ![Class::M, Class::N, Class::K].into_iter().any(several) {
            return None;
        }
        let elements = elements(kernel, reduce)?;
        let side = |own: Class| {
            let wanted = |axis: &&Axis| [own, Class::K, Class::Batch].contains(&axis.class);
            let indices: Vec<Value> = axes.iter().filter(wanted).map(|axis| axis.index).collect();
            let is_own = |operand: &&Operand| {
                operand.subscripts.len() == indices.len()
                    && indices.iter().all(|index| operand.subscripts.contains(index))
            };
            elements.iter().find(is_own)
        };
        let (rows, columns) = (side(Class::M)?, side(Class::N)?);
        let operands = [rows, columns].map(|one| Operand {
            loads: one.loads.clone(),
            subscripts: one.subscripts.clone(),
            ..*one
        });
        let written = written_buffers(kernel, kernel.launches[launch].body);
        let are_plain = operands.iter().all(|operand| {
            let name = &kernel.buffers[operand.buffer].name;
            let is_read = !written.contains(operand.buffer);
            !kernel.schedule.speaks_of(name)
                && is_read
                && is_whole(kernel, &axes, operand.buffer, &operand.subscripts)
        });
        if elements.len() != 2 || !are_plain {
            return None;
        }
        // What it is made of stands for itself in another launch.
        let around: Vec<Value> = axes.iter().map(|axis| axis.index).collect();
        let used = free_values(kernel, reduce).into_iter().chain(kernel.insts[reduce].arguments.to_vec());
        let is_free =
            |value: Value| around.contains(&value) || is_rematerializable(kernel, value, &[], DEPTH);
        if !used.into_iter().all(is_free) {
            return None;
        }
        let stored = stored(kernel, forall, &axes);
        Some(Self { forall, reduce, axes, operands, stored })
    }

    /// The axes of a class.
    pub fn of_class(&self, class: Class) -> Vec<Value> {
        self.axes.iter().filter(|axis| axis.class == class).map(|axis| axis.index).collect()
    }

    pub fn extent(&self, index: Value) -> Expr {
        let axis = self.axes.iter().find(|axis| axis.index == index);
        axis.map_or(Expr::Int(1), |axis| axis.extent.clone())
    }

    /// The product of extents.
    pub fn extents(&self, indices: &[Value]) -> Expr {
        let extents = indices.iter().map(|index| self.extent(*index));
        extents.reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right)).unwrap_or(Expr::Int(1))
    }

    /// Whether one axis of all of a class, made by quotients and remainders of its index, would do as well: neighbours of each
    /// array lie along the last axis of rows, columns or steps.
    pub fn runs_along_last(&self) -> bool {
        let is_last = |index: &Value| {
            let class = self.axes.iter().find(|axis| axis.index == *index).map(|axis| axis.class);
            let of_class = self.axes.iter().rfind(|axis| Some(axis.class) == class);
            of_class.is_some_and(|axis| axis.index == *index && axis.class != Class::Batch)
        };
        let operands = self.operands.iter().map(|operand| Some(&operand.subscripts));
        let mut all = operands.chain([self.stored.as_ref()]);
        all.all(|subscripts| subscripts.and_then(|all| all.last()).is_some_and(is_last))
    }
}

/// The axes, from 0 to what the host can compute, with what they are to a contraction; `None` where one is something else, or the
/// schedule speaks of it.
fn axes(kernel: &Kernel, loops: &[Inst], one: &Contraction) -> Option<Vec<Axis>> {
    let mut axes = Vec::new();
    for inst in loops {
        let params = &kernel.blocks[kernel.insts[*inst].regions[0]].params;
        for (param, (low, high)) in params.iter().zip(kernel.loop_bounds(*inst)) {
            let known = one.axes.iter().find(|axis| axis.index == *param)?;
            let extent = kernel.symbolic(high)?;
            let is_plain = matches!(known.class, Class::Batch | Class::M | Class::N | Class::K)
                && kernel.constant_of(low) == Some(Constant::Int(Scalar::I64, 0))
                && kernel.never_negative(&extent)
                && !kernel.schedule.speaks_of(&known.name);
            if !is_plain {
                return None;
            }
            axes.push(Axis { name: known.name.clone(), index: *param, extent, class: known.class });
        }
    }
    (axes.len() == one.axes.len()).then_some(axes)
}

/// The elements that the terms of a reduction are made of; `None` where there is something else than pure code.
fn elements(kernel: &Kernel, reduce: Inst) -> Option<Vec<Operand>> {
    let mut found: Vec<Operand> = Vec::new();
    for inst in &kernel.blocks[kernel.insts[reduce].regions[0]].insts {
        let data = &kernel.insts[*inst];
        match (data.opcode, &data.payload) {
            (Opcode::Load, Payload::Access { buffer, .. }) => {
                let subscripts = kernel.subscripts(data);
                let same = |known: &&mut Operand| known.buffer == *buffer && known.subscripts == subscripts;
                if let Some(known) = found.iter_mut().find(same) {
                    known.loads.push(*inst);
                    continue;
                }
                let subscripts = subscripts.to_vec();
                found.push(Operand { buffer: *buffer, loads: vec![*inst], subscripts });
            }
            (Opcode::Yield, _) => {}
            (opcode, _) if opcode.info().effect == Effect::Pure && data.regions.is_empty() => {}
            _ => return None,
        }
    }
    Some(found)
}

/// Whether subscripts are indices that run over all of an array in memory, whose elements are no arrays.
fn is_whole(kernel: &Kernel, axes: &[Axis], buffer: Buffer, subscripts: &[Value]) -> bool {
    let data = &kernel.buffers[buffer];
    let is_whole = |(index, extent): (&Value, &Expr)| {
        axes.iter().any(|axis| axis.index == *index && axis.extent == *extent)
    };
    matches!(data.kind, BufferKind::Argument { .. } | BufferKind::Scratch)
        && data.element.leaves.iter().all(|leaf| leaf.count() == 1)
        && data.extents.len() == subscripts.len()
        && subscripts.iter().zip(&data.extents).all(is_whole)
}

/// The subscripts of all stores of a loop's body, where they are the same indices, each once.
fn stored(kernel: &Kernel, forall: Inst, axes: &[Axis]) -> Option<Vec<Value>> {
    let body = kernel.insts[forall].regions[0];
    let mut found: Option<Vec<Value>> = None;
    for inst in &kernel.blocks[body].insts {
        let data = &kernel.insts[*inst];
        if data.opcode.info().effect != Effect::Write {
            continue;
        }
        let Payload::Access { buffer, .. } = data.payload else { return None };
        let subscripts = kernel.subscripts(data).to_vec();
        if !is_whole(kernel, axes, buffer, &subscripts) || found.as_ref().is_some_and(|it| *it != subscripts)
        {
            return None;
        }
        found = Some(subscripts);
    }
    let params = &kernel.blocks[body].params;
    found.filter(|found| found.len() == params.len() && params.iter().all(|index| found.contains(index)))
}
