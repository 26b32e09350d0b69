//! The grammar of matrix instructions.

use super::{Family, Slot, Step, Walk, needs};
use crate::ptx::instruction::*;
use crate::ptx::operand::Reg;
use crate::ptx::types::{Modifier, Space, Type};

/// So many registers of an operand.
fn group<W: Walk>(walk: &mut W, registers: &mut Registers, count: usize) -> Step {
    if walk.fills() {
        registers.resize(count, Reg::default());
    }
    walk.rule(registers.len() == count, "an operand has another number of registers")
}

impl Family for Mma {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("mma")?;
        walk.word("sync")?;
        walk.word("aligned")?;
        walk.choice(&mut self.shape, MmaShape::ALL)?;
        walk.word("row")?;
        walk.word("col")?;
        walk.choice(&mut self.sum, &[Type::F32, Type::S32])?;
        let floats = self.sum == Type::F32;
        let legal: &[Type] = match self.shape {
            MmaShape::M16n8k16 => &[Type::F16, Type::Bf16],
            MmaShape::M16n8k8 => &[Type::Tf32],
            MmaShape::M16n8k32 => &[Type::S8, Type::U8],
        };
        walk.rule(floats == (self.shape != MmaShape::M16n8k32), "sums of that type have another shape")?;
        walk.choice(&mut self.left, legal)?;
        walk.choice(&mut self.right, if floats { std::slice::from_ref(&self.left) } else { legal })?;
        walk.word(if floats { "f32" } else { "s32" })?;
        walk.needs("mma.sync of these types", needs(80, 7, 0))?;
        group(walk, &mut self.d, 4)?;
        group(walk, &mut self.a, 4)?;
        group(walk, &mut self.b, 2)?;
        group(walk, &mut self.c, 4)?;
        let sums = if floats { Type::F32 } else { Type::U32 };
        walk.operand(Slot::WriteGroup(&mut self.d, sums))?;
        // Registers of floats do not hold packed factors.
        walk.operand(Slot::ReadGroup(&mut self.a, Type::U32))?;
        walk.operand(Slot::ReadGroup(&mut self.b, Type::U32))?;
        walk.operand(Slot::ReadGroup(&mut self.c, sums))
    }
}

impl Family for LdMatrix {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("ldmatrix")?;
        walk.word("sync")?;
        walk.word("aligned")?;
        walk.word("m8n8")?;
        walk.choice(&mut self.count, MatrixCount::ALL)?;
        walk.flag("trans", &mut self.transposed)?;
        walk.word("shared")?;
        walk.word("b16")?;
        walk.needs("ldmatrix", needs(75, 6, 5))?;
        group(walk, &mut self.dst, self.count.registers())?;
        walk.operand(Slot::WriteGroup(&mut self.dst, Type::U32))?;
        walk.operand(Slot::Address(&mut self.address, Space::Shared))
    }
}
