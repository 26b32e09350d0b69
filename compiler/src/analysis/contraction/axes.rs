//! The axes around a reduction and its own, and with which of them values move.

use super::super::code::code;
use super::bits::{AxisBits, MEMORY, OTHER};
use super::parts::{Class, ContractionAxis, Range, Terms};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{Definition, Kernel};
use crate::ir::op::{Effect, Opcode};
use rustc_hash::FxHashMap;

/// Calls back for each reduction, with the parallel loops and the reductions around it.
pub fn loops(kernel: &Kernel, block: Block, around: &mut Vec<Inst>, visit: &mut impl FnMut(Inst, &[Inst])) {
    for inst in &kernel.blocks[block].insts {
        let data = &kernel.insts[*inst];
        if data.opcode == Opcode::Reduce {
            visit(*inst, around);
        }
        let is_around = matches!(data.opcode, Opcode::Forall | Opcode::Reduce);
        if is_around {
            around.push(*inst);
        }
        for region in &data.regions {
            loops(kernel, *region, around, visit);
        }
        if is_around {
            around.pop();
        }
    }
}

/// With which axes values move.
pub struct Moves<'k> {
    pub kernel: &'k Kernel,
    /// Name, index, bounds, and whether it is reduced.
    axes: Vec<(String, Value, (Value, Value), bool)>,
    known: FxHashMap<Value, AxisBits>,
}

impl<'k> Moves<'k> {
    pub fn new(kernel: &'k Kernel, around: &[Inst], reduce: Inst) -> Self {
        let mut axes = Vec::new();
        for inst in around.iter().chain([&reduce]) {
            let data = &kernel.insts[*inst];
            let params = &kernel.blocks[data.regions[0]].params;
            let bounds = kernel.loop_bounds(*inst);
            for ((axis, index), bounds) in data.payload.axes().iter().zip(params).zip(bounds) {
                axes.push((kernel.axes[*axis].name.clone(), *index, bounds, *inst == reduce));
            }
        }
        let known = axes.iter().enumerate().map(|(at, (_, index, ..))| (*index, AxisBits::one(at)));
        Self { kernel, known: known.collect(), axes }
    }

    /// The reduced axes.
    pub fn reduced(&self) -> AxisBits {
        let axes = self.axes.iter().enumerate().filter(|(_, (.., is_reduced))| *is_reduced);
        axes.fold(AxisBits::NONE, |all, (at, _)| all.union(AxisBits::one(at)))
    }

    /// What a value moves with.
    pub fn of(&mut self, value: Value) -> AxisBits {
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        // What is carried by a loop inside comes here again.
        self.known.insert(value, AxisBits::NONE);
        let kernel = self.kernel;
        let found = match kernel.values[value].definition {
            // Of a loop inside the term, or around everything.
            Definition::Param(..) => AxisBits::NONE,
            Definition::Result(inst, _) => self.of_inst(inst),
        };
        self.known.insert(value, found);
        found
    }

    fn of_inst(&mut self, inst: Inst) -> AxisBits {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let own = match data.opcode.info().effect {
            Effect::Pure | Effect::Terminator | Effect::Regions => AxisBits::NONE,
            Effect::Read => MEMORY,
            _ => OTHER,
        };
        let arguments = data.arguments.iter().fold(own, |all, value| all.union(self.of(*value)));
        let regions = data.regions.iter().flat_map(|region| &kernel.blocks[*region].insts);
        regions.fold(arguments, |all, inst| all.union(self.of_inst(*inst)))
    }

    /// Whether a subscript in the code of a value comes from memory, and whether a load of it has a condition.
    pub fn loads(&mut self, value: Value) -> (bool, bool) {
        let kernel = self.kernel;
        let [mut gathered, mut guarded] = [false; 2];
        code(kernel, value, &mut |inst, in_branch| {
            let data = &kernel.insts[inst];
            if data.opcode.is_load() {
                gathered |= kernel.subscripts(data).iter().any(|subscript| self.of(*subscript).reads());
                guarded |= in_branch || data.opcode == Opcode::LoadIf;
            }
        });
        (gathered, guarded)
    }

    /// The axes with their classes.
    pub fn axes(&mut self, terms: &Terms) -> Vec<ContractionAxis> {
        let union = |all: AxisBits, one: AxisBits| all.union(one);
        let [left, right] = match terms {
            Terms::Plain { left, right } => [left.moves, right.moves],
            Terms::Products(products) => [
                products.iter().map(|product| product.left.moves).fold(AxisBits::NONE, union),
                products.iter().map(|product| product.right.moves).fold(AxisBits::NONE, union),
            ],
        };
        let mut axes = Vec::new();
        for (at, (name, index, (low, high), is_reduced)) in self.axes.clone().into_iter().enumerate() {
            let class = match (is_reduced, left.contains(at), right.contains(at)) {
                (false, true, true) => Class::Batch,
                (false, true, false) => Class::M,
                (false, false, true) => Class::N,
                (false, false, false) => Class::Free,
                (true, true, true) => Class::K,
                (true, true, false) => Class::OfLeft,
                (true, false, true) => Class::OfRight,
                (true, false, false) => Class::Times,
            };
            let bounds = self.of(low).union(self.of(high));
            let range = match (bounds.reads(), bounds.count()) {
                (true, _) => Range::Memory,
                (false, 0) => Range::Host,
                (false, _) => Range::Indices,
            };
            axes.push(ContractionAxis { name, index, is_reduced, range, class });
        }
        axes
    }
}
