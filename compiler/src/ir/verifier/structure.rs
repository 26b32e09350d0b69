//! Blocks, ownership, definitions before uses, payload kinds.

use super::Verifier;
use crate::ir::entities::{Axis, Block, Inst, Value};
use crate::ir::kernel::{Definition, Payload};
use crate::ir::op::{Opcode, PayloadKind};
use cranelift_entity::SecondaryMap;

/// What the walk has met.
struct Seen {
    blocks: SecondaryMap<Block, bool>,
    insts: SecondaryMap<Inst, bool>,
    axes: SecondaryMap<Axis, bool>,
    /// Whether a value is in scope where the walk is.
    in_scope: SecondaryMap<Value, bool>,
}

impl Verifier<'_> {
    pub(super) fn structure(&mut self) {
        let mut seen = Seen {
            blocks: self.kernel.of_blocks(),
            insts: self.kernel.of_insts(),
            axes: SecondaryMap::new(),
            in_scope: self.kernel.of_values(),
        };
        for (launch, data) in &self.kernel.launches {
            let Some(block) = self.kernel.blocks.get(data.body) else {
                self.report(|| format!("`{launch}`"), "its body does not exist");
                continue;
            };
            if !block.params.is_empty() {
                self.report(|| format!("`{launch}`"), "a launch's root block has no parameters");
            }
            if let Some(last) = block.insts.last()
                && self.kernel.insts.get(*last).is_some_and(|data| data.opcode == Opcode::Yield)
            {
                self.fail(*last, "a launch's root block ends without `yield`");
            }
            self.block(data.body, None, &mut seen);
        }
    }

    /// Checks a block and what is inside; afterwards its values are out of scope again.
    fn block(&mut self, block: Block, owner: Option<Inst>, seen: &mut Seen) {
        let kernel = self.kernel;
        let Some(data) = kernel.blocks.get(block) else {
            if let Some(owner) = owner {
                self.fail(owner, format!("its region `{block}` does not exist"));
            }
            return;
        };
        let place = || format!("`{block}`");
        if std::mem::replace(&mut seen.blocks[block], true) {
            self.report(place, "two instructions share this block");
            return;
        }
        let mut defined = data.params.to_vec();
        for (at, param) in data.params.iter().enumerate() {
            let definition = kernel.values.get(*param).map(|value| value.definition);
            if definition != Some(Definition::Param(block, at as u16)) {
                self.report(place, format!("its parameter `{param}` does not know that it is one"));
            }
            self.define(*param, true, seen);
        }
        for (at, inst) in data.insts.iter().enumerate() {
            let Some(inst_data) = kernel.insts.get(*inst) else {
                self.report(place, format!("it lists `{inst}`, which does not exist"));
                continue;
            };
            if std::mem::replace(&mut seen.insts[*inst], true) {
                self.fail(*inst, "the instruction is listed twice");
                continue;
            }
            self.inst(*inst, seen);
            inst_data.results.iter().for_each(|result| self.define(*result, true, seen));
            defined.extend(&inst_data.results);
            if inst_data.opcode == Opcode::Yield && at + 1 != data.insts.len() {
                self.fail(*inst, "`yield` ends its block: nothing may follow");
            }
        }
        if let Some(owner) = owner
            && data.insts.last().and_then(|inst| kernel.insts.get(*inst)).map(|data| data.opcode)
                != Some(Opcode::Yield)
        {
            self.fail(owner, "its region does not end in `yield`");
        }
        defined.into_iter().for_each(|value| self.define(value, false, seen));
    }

    /// Brings a value into scope, or out of it.
    fn define(&self, value: Value, in_scope: bool, seen: &mut Seen) {
        if self.kernel.values.is_valid(value) {
            seen.in_scope[value] = in_scope;
        }
    }

    /// Checks an instruction and what is inside.
    fn inst(&mut self, inst: Inst, seen: &mut Seen) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        for operand in &data.arguments {
            match kernel.values.get(*operand) {
                None => self.fail(inst, format!("`{operand}` does not exist")),
                Some(_) if seen.in_scope[*operand] => {}
                Some(_) => {
                    self.fail(inst, format!("`{operand}` is not defined before this, here or around it"));
                }
            }
        }
        for (at, result) in data.results.iter().enumerate() {
            let definition = kernel.values.get(*result).map(|value| value.definition);
            if definition != Some(Definition::Result(inst, at as u16)) {
                self.fail(inst, format!("its result `{result}` does not know that it is one"));
            }
        }
        self.payload(inst, seen);
        let regions = match data.opcode {
            Opcode::Forall | Opcode::Reduce | Opcode::For => 1,
            Opcode::While | Opcode::If => 2,
            _ => 0,
        };
        if data.regions.len() != regions {
            self.fail(inst, format!("it has {} regions, not {regions}", data.regions.len()));
        }
        for region in &data.regions {
            self.block(*region, Some(inst), seen);
        }
    }

    fn payload(&mut self, inst: Inst, seen: &mut Seen) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let kind = match &data.payload {
            Payload::None => PayloadKind::None,
            Payload::Constant(_) => PayloadKind::Constant,
            Payload::Symbol(_) => PayloadKind::Symbol,
            Payload::Cast(_) => PayloadKind::Cast,
            Payload::Access { .. } => PayloadKind::Access,
            Payload::Atomic { .. } => PayloadKind::Atomic,
            Payload::Site(_) => PayloadKind::Site,
            Payload::Loop { .. } => PayloadKind::Loop,
            Payload::Reduce { .. } => PayloadKind::Reduce,
            Payload::Grid(_) => PayloadKind::Grid,
            Payload::Lanes(_) => PayloadKind::Lanes,
            Payload::Outer(_) => PayloadKind::Outer,
            Payload::Index(_) => PayloadKind::Index,
            Payload::Along { .. } => PayloadKind::Along,
            Payload::Contract { .. } => PayloadKind::Contract,
            Payload::Mma { .. } => PayloadKind::Mma,
        };
        let wanted = data.opcode.info().payload;
        if kind != wanted {
            self.fail(inst, format!("its payload is {kind:?}, the op table says {wanted:?}"));
            return;
        }
        match &data.payload {
            Payload::Symbol(symbol) if kernel.symbols.get(*symbol).is_none() => {
                self.fail(inst, format!("`{symbol}` is not declared"));
            }
            Payload::Site(site) if kernel.sites.get(*site).is_none() => {
                self.fail(inst, format!("`{site}` is not declared"));
            }
            Payload::Access { buffer, leaf } | Payload::Atomic { buffer, leaf, .. } => {
                match kernel.buffers.get(*buffer) {
                    None => self.fail(inst, format!("`{buffer}` is not declared")),
                    Some(data) if data.element.leaves.len() <= *leaf as usize => {
                        self.fail(inst, format!("`{buffer}` has no leaf {leaf}"));
                    }
                    Some(_) => {}
                }
            }
            Payload::Loop { axes } | Payload::Reduce { axes, .. } => {
                if axes.is_empty() || (data.opcode == Opcode::For && axes.len() != 1) {
                    self.fail(inst, format!("a loop over {} axes", axes.len()));
                }
                for axis in axes {
                    if kernel.axes.get(*axis).is_none() {
                        self.fail(inst, format!("`{axis}` does not exist"));
                    } else if std::mem::replace(&mut seen.axes[*axis], true) {
                        self.fail(inst, format!("`{axis}` belongs to another loop already"));
                    }
                }
            }
            _ => {}
        }
    }
}
