//! Loop-carried values: one register each, updated in every iteration. Copies are left out where the next
//! value can be computed into the register, and where the register of the first one can be taken over.

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use super::selector::{Selector, bits_type};
use crate::ir::entities::{Block, Value};
use crate::ir::kernel::{Definition, InstData, Payload};
use crate::ir::op::Opcode;

impl Selector<'_> {
    /// Registers for carried values, holding the initial ones; region parameters and results name them. `home` is the
    /// block that the loop stands in, where registers that nothing else will read may be taken over.
    pub(super) fn carry(
        &mut self,
        home: Option<Block>,
        initial: &[Value],
        results: &[Value],
        params: &[Value],
    ) -> Vec<(Reg, Type)> {
        let operands: Vec<Operand> = initial.iter().map(|value| self.operand(*value)).collect();
        let mut carried = Vec::with_capacity(operands.len());
        for (((operand, value), result), param) in operands.into_iter().zip(initial).zip(results).zip(params)
        {
            let ty = bits_type(self.scalar(*result));
            if let (Operand::Reg(reg), Some(home)) = (operand, home)
                && self.is_free(*value, home)
            {
                self.maps.values[*result] = Some(reg.into());
                self.maps.values[*param] = Some(reg.into());
                carried.push((reg, ty));
                continue;
            }
            let mut hint = self.hint(*param);
            if hint.is_empty() {
                hint = self.hint(*result);
            }
            let reg = self.builder.reg_for(ty, &hint);
            self.builder.emit(Mov { ty, dst: reg, a: operand });
            self.maps.values[*result] = Some(reg.into());
            self.maps.values[*param] = Some(reg.into());
            carried.push((reg, ty));
        }
        carried
    }

    /// All carried registers take their next values at once.
    pub(super) fn assign(&mut self, carried: &[(Reg, Type)], next: &[Operand]) {
        let mut next = next.to_vec();
        for at in 0..next.len() {
            // Most are computed in place.
            let stays = next[at] == Operand::Reg(carried[at].0);
            let overwritten = || carried[..at].iter().any(|(reg, _)| next[at] == Operand::Reg(*reg));
            if !stays && overwritten() {
                let ty = carried[at].1;
                let saved = self.temp(ty);
                self.builder.emit(Mov { ty, dst: saved, a: next[at] });
                next[at] = saved.into();
            }
        }
        // The copies above read before anything is written: they were emitted first.
        for ((reg, ty), operand) in carried.iter().zip(next) {
            self.copy(*reg, *ty, operand);
        }
    }

    /// Whether a value is read by one loop in `home` only, which may change its register: it is computed there, once for
    /// each time that the loop runs, into a register of its own.
    fn is_free(&self, value: Value, home: Block) -> bool {
        if self.maps.uses[value] != 1 {
            return false;
        }
        let kernel = self.kernel;
        match kernel.values[value].definition {
            Definition::Result(inst, _) => {
                let own = matches!(kernel.insts[inst].opcode, Opcode::For | Opcode::LoadVector);
                own && self.maps.home[inst].expand() == Some(home) && kernel.value_type(value).is_float()
            }
            Definition::Param(block, position) => {
                let owner = self.maps.owner[block].expand();
                let of_loop = owner.is_some_and(|owner| kernel.insts[owner].opcode == Opcode::For);
                of_loop && position > 0 && block == home && kernel.value_type(value).is_float()
            }
        }
    }

    /// Lets a float that a loop carries be computed into its register, where nothing reads the old value after that.
    pub(super) fn compute_in_place(&mut self, body: Block, carried: &[(Reg, Type)]) {
        let kernel = self.kernel;
        let params = &kernel.blocks[body].params[1..];
        let floats = || params.iter().filter(|param| kernel.value_type(**param).is_float());
        if floats().next().is_none() {
            return;
        }
        // Where each one is read last; what may give its register another name is no place to know that from.
        let until = &mut self.maps.read_until;
        floats().for_each(|param| until[*param] = 1);
        let mut read = |data: &InstData, at: usize| {
            let place = if reads_only(data.opcode) { at as u32 + 1 } else { u32::MAX };
            for value in &data.arguments {
                if until[*value] != 0 {
                    until[*value] = until[*value].max(place);
                }
            }
        };
        for (at, inst) in kernel.blocks[body].insts.iter().enumerate() {
            let data = &kernel.insts[*inst];
            read(data, at);
            for region in &data.regions {
                kernel.walk(*region, &mut |_, inst| read(&kernel.insts[inst], at));
            }
        }
        for ((value, param), (reg, _)) in kernel.yields(body).iter().zip(params).zip(carried) {
            let place = kernel.defining_inst(*value).filter(|inst| {
                is_one_instruction(kernel.insts[*inst].opcode) && self.maps.home[*inst].expand() == Some(body)
            });
            let last = self.maps.read_until[*param];
            if let Some(place) = place
                && last != 0
                && last <= self.maps.place[place] + 1
                && self.maps.preferred[*value].is_none()
            {
                self.maps.preferred[*value] = (*reg).into();
            }
        }
        floats().for_each(|param| self.maps.read_until[*param] = 0);
        self.sum_in_place(body, carried);
    }

    /// Where a carried float becomes its next value in several operations of the body, each of which is all that reads
    /// the one before, all of them are computed in its register.
    fn sum_in_place(&mut self, body: Block, carried: &[(Reg, Type)]) {
        let kernel = self.kernel;
        for inst in &kernel.blocks[body].insts {
            let data = &kernel.insts[*inst];
            let sums = match (&data.payload, data.outer_operands()) {
                (Payload::Mma { .. }, _) => data.arguments.split_last_chunk::<4>().map(|(_, sums)| &sums[..]),
                (_, outer) => outer.map(|(_, _, sums)| sums),
            };
            if let Some(sums) = sums {
                for (value, result) in sums.iter().zip(&data.results) {
                    if self.maps.uses[*value] == 1 {
                        self.maps.reader[*value] = (*result).into();
                    }
                }
            } else if is_one_instruction(data.opcode) && data.results.len() == 1 {
                for value in data.arguments.iter().filter(|value| self.maps.uses[**value] == 1) {
                    self.maps.reader[*value] = data.results[0].into();
                }
            }
        }
        let params = &kernel.blocks[body].params[1..];
        let mut chain = Vec::new();
        for ((last, param), (reg, _)) in kernel.yields(body).iter().zip(params).zip(carried) {
            if self.maps.preferred[*last].expand() != Some(*reg) {
                continue;
            }
            chain.clear();
            let mut value = *param;
            while value != *last && self.maps.uses[value] == 1 {
                let Some(next) = self.maps.reader[value].expand() else { break };
                value = next;
                chain.push(value);
            }
            if value != *last {
                continue;
            }
            for value in chain.iter().copied() {
                if self.maps.preferred[value].is_none()
                    && kernel.value_type(value) == kernel.value_type(*last)
                {
                    self.maps.preferred[value] = (*reg).into();
                }
            }
        }
    }
}

/// Ops that are selected as one instruction, or one a result, which reads its operands before it writes its result.
fn is_one_instruction(opcode: Opcode) -> bool {
    use Opcode::{Add, Fma, Load, LoadVector, Mma, Mul, OuterFma, Sub};
    matches!(opcode, Add | Sub | Mul | Fma | Load | LoadVector | OuterFma | Mma)
}

/// Ops of which no result shares a register with an operand.
fn reads_only(opcode: Opcode) -> bool {
    use Opcode::{Add, Fma, For, Mma, Mul, Outer, OuterFma, Store, StoreEach, StoreIf, StoreVector, Sub};
    let stores = matches!(opcode, Store | StoreEach | StoreIf | StoreVector);
    stores || matches!(opcode, Add | Sub | Mul | Fma | For | Outer | OuterFma | Mma)
}
