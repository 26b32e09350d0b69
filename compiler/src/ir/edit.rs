//! Changes to a kernel: making values, instructions and blocks, and replacing uses.
//!
//! An instruction that no block lists is dead and costs nothing but its slot in the arena; printing and
//! parsing a kernel renumbers it densely.

use super::entities::{Block, Inst, Value};
use super::kernel::{Definition, InstData, Kernel, Payload, Regions, Short, ValueData};
use super::op::{Constant, Opcode};
use super::schedule::Schedule;
use super::specialization::Specialization;
use super::tiles::Tile;
use super::typing::{result_tile, result_type};
use crate::data::Scalar;
use crate::source::Span;
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap};

/// For each value, the one that takes its place.
pub type Substitution = SecondaryMap<Value, PackedOption<Value>>;

impl Kernel {
    /// A kernel without launches.
    pub fn new(name: impl Into<String>, span: Span) -> Kernel {
        Kernel {
            name: name.into(),
            span,
            arguments: Vec::new(),
            facts: Vec::new(),
            injections: Vec::new(),
            symbols: PrimaryMap::new(),
            buffers: PrimaryMap::new(),
            combiners: PrimaryMap::new(),
            sites: PrimaryMap::new(),
            launches: PrimaryMap::new(),
            past: Vec::new(),
            plan: Vec::new(),
            axes: PrimaryMap::new(),
            blocks: PrimaryMap::new(),
            insts: PrimaryMap::new(),
            values: PrimaryMap::new(),
            specialization: Specialization::default(),
            schedule: Schedule::default(),
        }
    }

    /// Makes room for about so many more instructions and values.
    pub fn reserve(&mut self, insts: usize, values: usize) {
        self.insts.reserve(insts);
        self.values.reserve(values);
    }

    /// A map from values, with room for all that there are.
    pub fn of_values<T: Clone + Default>(&self) -> SecondaryMap<Value, T> {
        let mut map = SecondaryMap::new();
        map.resize(self.values.len());
        map
    }

    /// A map from blocks, with room for all that there are.
    pub fn of_blocks<T: Clone + Default>(&self) -> SecondaryMap<Block, T> {
        let mut map = SecondaryMap::new();
        map.resize(self.blocks.len());
        map
    }

    /// A map from instructions, with room for all that there are.
    pub fn of_insts<T: Clone + Default>(&self) -> SecondaryMap<Inst, T> {
        let mut map = SecondaryMap::new();
        map.resize(self.insts.len());
        map
    }

    /// Appends a parameter to a block.
    pub fn add_param(&mut self, block: Block, ty: Scalar) -> Value {
        let position = self.blocks[block].params.len() as u16;
        let definition = Definition::Param(block, position);
        let value = self.values.push(ValueData { ty, tile: Tile::SCALAR, definition, name: None });
        self.blocks[block].params.push(value);
        value
    }

    /// Appends a result to an instruction.
    pub fn add_result(&mut self, inst: Inst, ty: Scalar) -> Value {
        let position = self.insts[inst].results.len() as u16;
        let definition = Definition::Result(inst, position);
        let value = self.values.push(ValueData { ty, tile: Tile::SCALAR, definition, name: None });
        self.insts[inst].results.push(value);
        value
    }

    /// Makes a value, of which no instruction is the definition any more, the last result of one.
    pub fn adopt_result(&mut self, inst: Inst, value: Value) {
        let position = self.insts[inst].results.len() as u16;
        self.values[value].definition = Definition::Result(inst, position);
        self.insts[inst].results.push(value);
    }

    /// Gives an instruction that has no results yet one for each of some values, of the same type.
    pub fn add_results_like(&mut self, inst: Inst, like: &[Value]) -> Vec<Value> {
        debug_assert!(self.insts[inst].results.is_empty(), "{inst} has results");
        if like.is_empty() {
            return Vec::new();
        }
        self.values.reserve(like.len());
        let results = like.iter().zip(0..).map(|(value, position)| {
            let ValueData { ty, tile, .. } = self.values[*value];
            self.values.push(ValueData {
                ty,
                tile,
                definition: Definition::Result(inst, position),
                name: None,
            })
        });
        let results: Vec<Value> = results.collect();
        self.insts[inst].results = Short::from_slice(&results);
        results
    }

    /// Makes an instruction without regions that no block lists yet; its result (if its op has one) is typed
    /// by the op table.
    pub fn make_inst(&mut self, opcode: Opcode, payload: Payload, arguments: &[Value], span: Span) -> Inst {
        self.make(opcode, payload, arguments, span).0
    }

    /// As [`make_inst`](Self::make_inst), with the result.
    pub fn make(
        &mut self,
        opcode: Opcode,
        payload: Payload,
        arguments: &[Value],
        span: Span,
    ) -> (Inst, Option<Value>) {
        // No more are asked for.
        let result = match *arguments {
            [] => result_type(self, opcode, &payload, &[]),
            [only] => result_type(self, opcode, &payload, &[self.values[only].ty]),
            [first, second, ..] => {
                let types = [first, second].map(|value| self.values[value].ty);
                result_type(self, opcode, &payload, &types)
            }
        };
        let result = result.map(|ty| {
            let tile = result_tile(self, &payload, arguments);
            let definition = Definition::Result(self.insts.next_key(), 0);
            self.values.push(ValueData { ty, tile, definition, name: None })
        });
        let results = Short::from_slice(result.as_slice());
        let arguments = Short::from_slice(arguments);
        let data = InstData { opcode, payload, arguments, results, regions: Regions::new(), span };
        (self.insts.push(data), result)
    }

    /// Appends so many results of one type to an instruction that has none.
    pub fn add_results(&mut self, inst: Inst, ty: Scalar, count: u16) -> Short<Value> {
        debug_assert!(self.insts[inst].results.is_empty(), "{inst} has results");
        let mut results = Short::new();
        for position in 0..count {
            let definition = Definition::Result(inst, position);
            results.push(self.values.push(ValueData { ty, tile: Tile::SCALAR, definition, name: None }));
        }
        self.insts[inst].results = Short::from_slice(&results);
        results
    }

    /// Turns an instruction without regions into another with the same result, in place: all uses see the new
    /// meaning. The new op must give the type of the old one's result.
    pub fn rewrite_inst(&mut self, inst: Inst, opcode: Opcode, payload: Payload, arguments: &[Value]) {
        let data = &mut self.insts[inst];
        data.opcode = opcode;
        data.payload = payload;
        data.arguments.clear();
        data.arguments.extend_from_slice(arguments);
    }

    /// Turns an instruction into a literal of its result's type, in place.
    pub fn rewrite_to_constant(&mut self, inst: Inst, constant: Constant) {
        self.rewrite_inst(inst, Opcode::Const, Payload::Constant(constant), &[]);
    }

    /// Puts the axes of a `forall` or of a reduction into another order: `order` has the place of each until now. The
    /// iterations of a `forall` have no order, and a reduction's terms none but for its result's roundings.
    pub fn reorder_axes(&mut self, inst: Inst, order: &[usize]) {
        let body = self.insts[inst].regions[0];
        let data = &mut self.insts[inst];
        let arguments = data.arguments.clone();
        data.arguments = order.iter().flat_map(|at| [arguments[2 * at], arguments[2 * at + 1]]).collect();
        if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &mut data.payload {
            *axes = order.iter().map(|at| axes[*at]).collect();
        }
        let params = self.blocks[body].params.clone();
        for (position, at) in order.iter().enumerate() {
            self.blocks[body].params[position] = params[*at];
            self.values[params[*at]].definition = Definition::Param(body, position as u16);
        }
    }

    /// Takes an axis whose index nothing uses out of a loop.
    pub fn drop_axis(&mut self, inst: Inst, at: usize) {
        let body = self.insts[inst].regions[0];
        self.insts[inst].arguments.drain(2 * at..2 * at + 2);
        if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &mut self.insts[inst].payload {
            axes.remove(at);
        }
        self.blocks[body].params.remove(at);
        for (position, param) in self.blocks[body].params.iter().enumerate() {
            self.values[*param].definition = Definition::Param(body, position as u16);
        }
    }

    /// Replaces every use according to the substitution, following chains. Values that replace others must not
    /// form a cycle.
    pub fn substitute(&mut self, substitution: &Substitution) {
        for data in self.insts.values_mut() {
            for argument in &mut data.arguments {
                while let Some(next) = substitution[*argument].expand() {
                    *argument = next;
                }
            }
        }
    }

    /// Replaces every use of one value by another.
    pub fn replace_uses(&mut self, from: Value, to: Value) {
        for data in self.insts.values_mut() {
            for argument in &mut data.arguments {
                if *argument == from {
                    *argument = to;
                }
            }
        }
    }
}
