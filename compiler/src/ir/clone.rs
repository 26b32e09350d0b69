//! Copies of instructions and regions within a kernel.

use super::entities::{Block, Inst, Value};
use super::kernel::{BlockData, InstData, Kernel, Payload, Regions, Short};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What stands for a value in the copy; values that are not in it stand for themselves.
pub type ValueMap = FxHashMap<Value, Value>;

/// The value's stand-in.
pub fn mapped(map: &ValueMap, value: Value) -> Value {
    map.get(&value).copied().unwrap_or(value)
}

/// What stands between a name and the definition that a value is of, where lowering writes that behind names.
pub const TAG: char = '#';

impl Kernel {
    /// Appends a copy of an instruction, with its regions, to a block. Its results are added to the map.
    pub fn clone_inst(&mut self, inst: Inst, to: Block, map: &mut ValueMap) -> Inst {
        let InstData { opcode, payload, arguments, results, regions, span } = &self.insts[inst];
        let (opcode, span) = (*opcode, *span);
        let (mut arguments, results) = (Short::from_slice(arguments), Short::from_slice(results));
        arguments.iter_mut().for_each(|value| *value = mapped(map, *value));
        let (payload, regions) = (payload.clone(), Short::from_slice(regions));
        let payload = self.clone_payload(payload);
        let data =
            InstData { opcode, payload, arguments, results: Short::new(), regions: Regions::new(), span };
        let copy = self.insts.push(data);
        self.blocks[to].insts.push(copy);
        for region in regions {
            let region = self.clone_block(region, map);
            self.insts[copy].regions.push(region);
        }
        for result in results {
            let value = self.clone_result(result, copy);
            map.insert(result, value);
        }
        copy
    }

    /// A copy of a block with its parameters; those and the results inside are added to the map.
    pub fn clone_block(&mut self, block: Block, map: &mut ValueMap) -> Block {
        let copy = self.blocks.push(BlockData::default());
        for param in self.blocks[block].params.clone() {
            let value = self.add_param(copy, self.values[param].ty);
            self.take_after(value, param);
            map.insert(param, value);
        }
        for inst in self.blocks[block].insts.clone() {
            self.clone_inst(inst, copy, map);
        }
        copy
    }

    /// The payload for a copy: a loop's axes are its own.
    pub fn clone_payload(&mut self, payload: Payload) -> Payload {
        match payload {
            Payload::Loop { mut axes } => {
                for axis in &mut axes {
                    *axis = self.axes.push(self.axes[*axis].clone());
                }
                Payload::Loop { axes }
            }
            Payload::Reduce { mut axes, combiners } => {
                for axis in &mut axes {
                    *axis = self.axes.push(self.axes[*axis].clone());
                }
                Payload::Reduce { axes, combiners }
            }
            other => other,
        }
    }

    /// A result of `inst` like another instruction's, with its name.
    pub fn clone_result(&mut self, like: Value, inst: Inst) -> Value {
        let value = self.add_result(inst, self.values[like].ty);
        self.take_after(value, like);
        value
    }

    /// A value stands in the place of a parameter from here on. What a debugger knows the parameter by goes on.
    pub fn stand_in(&mut self, value: Value, param: Value) {
        let tagged = |value: Value| self.values[value].name.as_deref().is_some_and(|name| name.contains(TAG));
        if tagged(param) && !tagged(value) {
            self.values[value].name = self.values[param].name.clone();
        }
    }

    /// A value's name, for reading alone.
    pub fn readable(&self, value: Value) -> Option<Arc<str>> {
        let name = self.values[value].name.as_ref()?;
        Some(name.split_once(TAG).map_or_else(|| name.clone(), |(name, _)| name.into()))
    }

    /// Gives a value the name and the shape of another one.
    fn take_after(&mut self, value: Value, like: Value) {
        self.values[value].name = self.values[like].name.clone();
        self.values[value].tile = self.values[like].tile;
    }
}
