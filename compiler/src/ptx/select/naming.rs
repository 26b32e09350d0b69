//! Where the source's names are, for debuggers: noted as values are selected.

use super::super::binding::Tile;
use super::super::operand::{Operand, Symbol};
use super::selector::Selector;
use crate::ir::clone::TAG;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::Payload;
use crate::ir::op::{Constant, Opcode};
use crate::manifest::Expr;

/// A name without its definition.
pub(super) fn readable(name: &str) -> &str {
    name.split_once(TAG).map_or(name, |(name, _)| name)
}

impl Selector<'_> {
    /// The parameters of a block that is about to be selected: they are there.
    pub(super) fn bind_params(&mut self, block: Block) {
        if self.options.names {
            let kernel = self.kernel;
            kernel.blocks[block].params.iter().for_each(|param| self.note_value(*param));
        }
    }

    /// The results of an instruction that has been selected.
    pub(super) fn bind_results(&mut self, inst: Inst) {
        if self.options.names {
            let kernel = self.kernel;
            kernel.insts[inst].results.iter().for_each(|result| self.note_value(*result));
        }
    }

    /// The value of an instruction that is selected where it is used: a constant or a symbol.
    pub(super) fn bind_free(&mut self, inst: Inst) {
        if !self.options.names {
            return;
        }
        let data = &self.kernel.insts[inst];
        let operand = match &data.payload {
            Payload::Constant(Constant::Bool(flag)) => Some(Operand::Int(i64::from(*flag))),
            Payload::Constant(Constant::Int(_, number)) => Some(Operand::Int(*number as i64)),
            Payload::Constant(Constant::F32(bits)) => Some(Operand::F32(*bits)),
            Payload::Constant(Constant::F64(bits)) => Some(Operand::F64(*bits)),
            Payload::Symbol(symbol) => self.symbols[*symbol],
            _ => None,
        };
        if let (Some(operand), Some(result)) = (operand, data.results.first()) {
            self.note_operand(*result, operand);
        }
    }

    /// Whether a debugger asks for an instruction's result.
    pub(super) fn is_asked_for(&self, inst: Inst) -> bool {
        let asked =
            |value: &Value| self.kernel.values[*value].name.as_deref().is_some_and(|it| it.contains(TAG));
        self.options.names && self.kernel.insts[inst].results.iter().any(asked)
    }

    /// Where an array in shared or local memory is. One whose extents depend on sizes is not known.
    pub(super) fn note_tile(&mut self, buffer: Buffer, variable: Symbol, offset: u64) {
        let data = &self.kernel.buffers[buffer];
        let extent = |extent: &Expr| extent.evaluate_int(&[]).and_then(|extent| u64::try_from(extent).ok());
        let extents: Option<Vec<u64>> = data.extents.iter().map(extent).collect();
        if let Some(extents) = extents.filter(|_| self.options.names) {
            let (name, element, layout) = (data.name.clone(), data.element.clone(), data.layout);
            let tile = Tile { name, variable, offset, element, extents, layout };
            self.builder.entry_mut().tiles.push(tile);
        }
    }

    fn note_value(&mut self, value: Value) {
        if let Some(operand) = self.maps.values[value] {
            self.note_operand(value, operand);
        }
    }

    fn note_operand(&mut self, value: Value, operand: Operand) {
        let data = &self.kernel.values[value];
        let known = matches!(operand, Operand::Reg(_) | Operand::Int(_) | Operand::F32(_) | Operand::F64(_));
        if let Some(name) = data.name.as_ref().filter(|name| known && name.contains(TAG)) {
            self.builder.bind(name.clone(), data.ty, operand);
        }
    }
}

/// Whether an instruction is free, and selected where it is used.
pub(super) fn is_free(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Const | Opcode::Symbol)
}
