//! Blocks, ownership, definitions before uses, payload kinds.

use super::Verifier;
use super::plain::Scope;
use crate::ir::entities::{Axis, Block, Inst, Value};
use crate::ir::kernel::{Definition, InstData, Payload};
use crate::ir::op::{Opcode, PayloadKind};
use cranelift_entity::SecondaryMap;

/// Whether a value is a result of an instruction, by its position.
#[inline(always)]
fn is_result(definition: Definition, inst: Inst, position: usize) -> bool {
    matches!(definition, Definition::Result(by, at) if by == inst && usize::from(at) == position)
}

/// What the walk has met.
pub(super) struct Seen {
    blocks: SecondaryMap<Block, bool>,
    insts: SecondaryMap<Inst, bool>,
    axes: SecondaryMap<Axis, bool>,
    scope: Scope,
    /// Instructions whose types have not been seen to be sound, in the order of the text.
    pub doubtful: Vec<Inst>,
    /// By launch, the instructions that have regions, in the order of the text: each with how many others are around it.
    pub nested: Vec<Vec<(u32, Inst)>>,
    /// How many instructions are around where the walk is.
    depth: u32,
}

impl Verifier<'_> {
    /// Checks the structure; what is left to be checked is in what the walk has seen.
    pub(super) fn structure(&mut self) -> Seen {
        let mut seen = Seen {
            blocks: self.kernel.of_blocks(),
            insts: self.kernel.of_insts(),
            axes: SecondaryMap::new(),
            scope: Scope::new(self.kernel),
            doubtful: Vec::with_capacity(self.kernel.insts.len() / 4),
            nested: Vec::with_capacity(self.kernel.launches.len()),
            depth: 0,
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
            seen.nested.push(Vec::new());
            self.block(data.body, None, &mut seen);
        }
        seen
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
        let around = seen.scope.len();
        for (at, param) in data.params.iter().enumerate() {
            let definition = kernel.values.get(*param).map(|value| value.definition);
            if definition != Some(Definition::Param(block, at as u16)) {
                self.report(place, format!("its parameter `{param}` does not know that it is one"));
            }
            self.define(seen, *param);
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
            self.inst(*inst, inst_data, seen);
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
        seen.scope.truncate(around);
    }

    /// Checks an instruction and what is inside; afterwards its results are in scope.
    #[inline]
    fn inst(&mut self, inst: Inst, data: &InstData, seen: &mut Seen) {
        let results = data.results.as_slice();
        if !data.regions.is_empty() {
            seen.doubtful.push(inst);
            let depth = seen.depth;
            seen.nested.last_mut().into_iter().for_each(|nested| nested.push((depth, inst)));
            seen.depth += 1;
            self.not_plain(inst, seen);
            seen.depth = depth;
            results.iter().for_each(|result| self.define(seen, *result));
            return;
        }
        let ty = self.plain(data, results.len(), &seen.scope);
        let (mut sound, around) = (ty.is_some(), seen.scope.len());
        for (at, result) in results.iter().enumerate() {
            if let Some(value) = self.kernel.values.get(*result) {
                sound &= Some(value.ty) == ty && is_result(value.definition, inst, at);
                seen.scope.define(*result, value.ty);
            } else {
                sound = false;
            }
        }
        if !sound {
            seen.doubtful.push(inst);
            // Its results are not in scope for itself.
            seen.scope.truncate(around);
            self.not_plain(inst, seen);
            results.iter().for_each(|result| self.define(seen, *result));
        }
    }

    fn define(&self, seen: &mut Seen, value: Value) {
        if let Some(data) = self.kernel.values.get(value) {
            seen.scope.define(value, data.ty);
        }
    }

    /// Rule by rule.
    fn not_plain(&mut self, inst: Inst, seen: &mut Seen) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        self.operands(inst, &data.arguments, &seen.scope);
        for (at, result) in data.results.iter().enumerate() {
            let definition = kernel.values.get(*result).map(|value| value.definition);
            if !definition.is_some_and(|definition| is_result(definition, inst, at)) {
                self.fail(inst, format!("its result `{result}` does not know that it is one"));
            }
        }
        self.payload_and_regions(inst, seen);
    }

    fn operands(&mut self, inst: Inst, operands: &[Value], scope: &Scope) {
        for operand in operands {
            if scope.ty(*operand).is_some() {
                continue;
            }
            match self.kernel.values.get(*operand) {
                None => self.fail(inst, format!("`{operand}` does not exist")),
                Some(_) => {
                    self.fail(inst, format!("`{operand}` is not defined before this, here or around it"));
                }
            }
        }
    }

    fn payload_and_regions(&mut self, inst: Inst, seen: &mut Seen) {
        self.payload(inst, seen);
        let data = &self.kernel.insts[inst];
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
