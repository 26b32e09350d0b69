//! Decoding of matrix instructions.

use krn_compiler::atoms::FactorType;
use krn_compiler::ptx::instruction::*;
use krn_compiler::ptx::{Operand, Reg, Space, Type};

use super::decoder::{Decoded, Decoder};
use crate::emulator::opcodes::{MatrixForm, MmaForm};
use crate::emulator::program::{Code, Inst};

fn factor(ty: Type) -> Decoded<FactorType> {
    Ok(match ty {
        Type::F16 => FactorType::F16,
        Type::Bf16 => FactorType::Bf16,
        Type::Tf32 => FactorType::Tf32,
        Type::S8 => FactorType::I8,
        Type::U8 => FactorType::U8,
        other => return Err(format!("no matrix instruction has factors of type .{other}")),
    })
}

impl Decoder<'_> {
    /// Appends the columns of registers to the lists.
    fn listed(&mut self, registers: &[Reg], count: usize, writes: bool) -> Decoded<()> {
        if registers.len() != count {
            return Err(format!("an operand has {} registers, not {count}", registers.len()));
        }
        for register in registers {
            let column =
                if writes { self.dst(*register, 32)? } else { self.src(Operand::Reg(*register), 32)? };
            self.program.lists.push(column);
        }
        Ok(())
    }

    pub(super) fn mma(&mut self, op: &Mma) -> Decoded {
        let form = MmaForm { left: factor(op.left)?, right: factor(op.right)? };
        let start = self.program.lists.len() as u32;
        self.listed(&op.d, 4, true)?;
        self.listed(&op.a, 4, false)?;
        self.listed(&op.b, 2, false)?;
        self.listed(&op.c, 4, false)?;
        Ok(Inst::with(Code::Mma(form), start, [0; 3]))
    }

    pub(super) fn ld_matrix(&mut self, op: &LdMatrix) -> Decoded {
        let start = self.program.lists.len() as u32;
        let count = op.count.registers();
        self.listed(&op.dst, count, true)?;
        let place = self.address(Space::Shared, op.address)?;
        let form = MatrixForm {
            space: place.space,
            count: count as u8,
            transposed: op.transposed,
            wide_base: place.wide,
        };
        Ok(Inst { imm: place.offset, ..Inst::with(Code::LoadMatrix(form), start, [place.base, 0, 0]) })
    }
}
