//! Matrix instructions: fragments from shared memory, words packed from elements, products.

use super::super::instruction::*;
use super::super::operand::Reg;
use super::super::types::{Space, Type};
use super::SelectError;
use super::selector::Selector;
use crate::atoms::{FactorType, MatrixAtom};
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::Payload;
use crate::ir::op::Opcode;

/// As matrix instructions name the type of a factor.
fn factor_type(factor: FactorType) -> Type {
    match factor {
        FactorType::F16 => Type::F16,
        FactorType::Bf16 => Type::Bf16,
        FactorType::Tf32 => Type::Tf32,
        FactorType::I8 => Type::S8,
        FactorType::U8 => Type::U8,
    }
}

impl Selector<'_> {
    /// Elements of a storage type as a word.
    pub fn pack(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let Payload::Cast(scalar) = data.payload else {
            return Err(self.error(format!("{inst} has no type of elements")));
        };
        let (_, words) = self.packed(scalar, &data.arguments);
        let [word] = words[..] else {
            return Err(self.error(format!("{inst} is no word of {scalar}")));
        };
        self.bind(data.results[0], word);
        Ok(())
    }

    pub fn load_matrix(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let (Payload::Access { buffer, leaf }, Some(count)) =
            (&data.payload, MatrixCount::for_registers(data.results.len()))
        else {
            return Err(self.error(format!("{inst} loads no matrices")));
        };
        let (space, address) = self.address(*buffer, *leaf, &data.arguments)?;
        if space != Space::Shared {
            return Err(self.error(format!("{inst} does not load from shared memory")));
        }
        let dst = data.results.iter().map(|value| self.define(*value)).collect();
        let transposed = data.opcode == Opcode::LoadMatrixTransposed;
        self.builder.emit(LdMatrix { count, transposed, dst, address });
        Ok(())
    }

    pub fn mma(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let Payload::Mma { left, right } = data.payload else {
            return Err(self.error(format!("{inst} has no factors")));
        };
        let Some(atom) = MatrixAtom::find(left, right) else {
            return Err(self.error(format!(
                "no instruction multiplies {} and {}",
                left.name(),
                right.name()
            )));
        };
        if self.options.capability < atom.capability {
            let (shape, needed) = (atom.shape(), atom.capability);
            return Err(self.error(format!("the matrix instruction {shape} needs sm_{needed}")));
        }
        let registers = |selector: &mut Self, values: &[Value]| -> Registers {
            values.iter().map(|value| selector.register(*value)).collect()
        };
        let [rows, columns, _] = atom.words();
        let (a, rest) = data.arguments.split_at(rows);
        let (b, c) = rest.split_at(columns);
        let [a, b, c] = [a, b, c].map(|values| registers(self, values));
        let d: Registers = data.results.iter().map(|value| self.define(*value)).collect::<Vec<Reg>>().into();
        let shape = match atom.steps {
            8 => MmaShape::M16n8k8,
            16 => MmaShape::M16n8k16,
            _ => MmaShape::M16n8k32,
        };
        let sum = if left.is_float() { Type::F32 } else { Type::S32 };
        let (left, right) = (factor_type(left), factor_type(right));
        self.builder.emit(Mma { shape, sum, left, right, d, a, b, c });
        Ok(())
    }
}
