//! Multiplications and stores printed like the last one: those of a product are thousands that differ in their registers.

use super::{Names, OPERAND_COLUMN, push_guard, push_offset};
use crate::ptx::instruction::{FmaWords, Instruction, Op, StoreWords};
use crate::ptx::module::Statement;
use crate::ptx::name::Short;
use crate::ptx::operand::Reg;
use crate::ptx::text::{LINE, Piece, Text};

/// What the last instruction on registers of its kind said in front of its operands.
pub(super) enum Head {
    /// A multiplication: all of its line, and what the mnemonic says.
    Fma(Piece<32>, FmaWords),
    /// A store of one value: its mnemonic.
    St(Piece<32>, StoreWords),
}

// The line of a multiplication: its head, four names and what stands behind each.
const _: () = assert!(LINE >= Piece::<32>::MOST + 4 * (Short::MOST + 2));

impl Head {
    /// What instructions like this one begin with, whose line up to the operands is given.
    pub fn of(instruction: &Instruction, line: &str) -> Option<Self> {
        match &instruction.op {
            Op::Fma(fma) if instruction.guard.is_none() => {
                fma.registers()?;
                Some(Self::Fma(Piece::new(line)?, fma.words()))
            }
            Op::St(st) => {
                st.registers()?;
                let mnemonic = line.split_ascii_whitespace().last()?;
                Some(Self::St(Piece::new(mnemonic)?, st.words()))
            }
            _ => None,
        }
    }

    /// Prints the statements that begin like this, from the first one on. How many those are.
    pub fn print(&self, text: &mut Text, names: &Names<'_>, statements: &[Statement]) -> usize {
        let alike = statements.iter();
        match self {
            Self::Fma(head, words) => {
                alike.take_while(|statement| fma(text, names, (head, *words), statement)).count()
            }
            Self::St(mnemonic, words) => {
                alike.take_while(|statement| store(text, names, (mnemonic, *words), statement)).count()
            }
        }
    }
}

/// Prints a multiplication of these words. Whether it could: not where names are long.
#[inline(always)]
fn fma(
    text: &mut Text,
    names: &Names<'_>,
    (head, words): (&Piece<32>, FmaWords),
    statement: &Statement,
) -> bool {
    let Statement::Instruction(Instruction { guard: None, op: Op::Fma(fma), comment: None }) = statement
    else {
        return false;
    };
    let (Some(registers), true) = (fma.registers(), fma.words() == words) else { return false };
    let name = |reg: Reg| names.entry.registers.get(reg).and_then(|register| register.name.short());
    let [result, operands @ ..] = registers;
    text.push_line(|line| {
        let mut end = line.put(0, head);
        end = line.put(end, name(result)?);
        for operand in operands {
            end = line.put_two(end, *b", ");
            end = line.put(end, name(operand)?);
        }
        Some(line.put_two(end, *b";\n"))
    })
}

/// Prints a store of these words. Whether it could.
#[inline(always)]
fn store(
    text: &mut Text,
    names: &Names<'_>,
    (mnemonic, words): (&Piece<32>, StoreWords),
    statement: &Statement,
) -> bool {
    let Statement::Instruction(Instruction { guard, op: Op::St(st), comment: None }) = statement else {
        return false;
    };
    let (Some([base, value]), true) = (st.registers(), st.words() == words) else { return false };
    text.push_str("    ");
    let start = text.len();
    push_guard(text, names, *guard);
    text.push_piece(mnemonic);
    text.push_blanks(start + OPERAND_COLUMN);
    text.push_str("[");
    names.push_reg(text, base);
    push_offset(text, st.address.offset);
    text.push_str("], ");
    names.push_reg(text, value);
    text.push_str(";\n");
    true
}
