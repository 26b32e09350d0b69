//! Multiplications that are like one that was sound: of the thousands of a product the grammar is asked about one.
//!
//! What the grammar says of an instruction whose operands are registers depends on its modifiers and on the classes of
//! these registers, not on which registers they are.

use crate::ptx::instruction::{Fma, Rounding};
use crate::ptx::module::Register;
use crate::ptx::operand::Reg;
use crate::ptx::types::{RegClass, Type};
use cranelift_entity::PrimaryMap;

/// All of an `fma` on registers but which registers of their classes they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Form {
    words: (Rounding, [bool; 3], Type),
    /// Of the result and the operands.
    classes: [RegClass; 4],
}

impl Form {
    /// The form of an `fma` and its registers, the result first; none where some operand is no register, or one that is not
    /// declared.
    #[inline]
    pub fn of(fma: &Fma, registers: &PrimaryMap<Reg, Register>) -> Option<(Self, [Reg; 4])> {
        let regs = fma.registers()?;
        let mut classes = [RegClass::Pred; 4];
        for (class, reg) in classes.iter_mut().zip(regs) {
            *class = registers.get(reg)?.class;
        }
        Some((Self { words: fma.words(), classes }, regs))
    }
}

#[cfg(test)]
mod tests {
    use crate::ptx::instruction::Fma;
    use crate::ptx::module::Version;
    use crate::ptx::{EntryBuilder, Module, Reg, RegClass, Type, verify};

    /// What is wrong with some multiplications after one that is sound.
    fn problems(others: impl FnOnce([Reg; 3], Fma) -> Vec<Fma>) -> Vec<String> {
        let mut builder = EntryBuilder::new("k");
        let regs = [RegClass::F32, RegClass::F32, RegClass::F64].map(|class| builder.reg(class, "x"));
        let [x, ..] = regs;
        let sound = Fma { ty: Type::F32, dst: x, a: x.into(), b: x.into(), c: x.into(), ..Fma::default() };
        builder.emit(sound.clone());
        others(regs, sound).into_iter().for_each(|fma| builder.emit(fma));
        let mut module = Module::new(Version::new(8, 0), "sm_90");
        module.entries.push(builder.finish());
        verify(&module).into_iter().map(|problem| problem.message).collect()
    }

    #[test]
    fn one_that_differs_is_looked_at_by_itself() {
        let class = problems(|[x, _, wide], sound| {
            vec![
                Fma { a: wide.into(), ..sound.clone() },
                Fma { dst: x, ..sound.clone() },
                Fma { c: wide.into(), ..sound },
            ]
        });
        assert_eq!(
            class.iter().filter(|message| message.contains("cannot hold .f32")).count(),
            2,
            "{class:?}"
        );
        let modifier = problems(|_, sound| vec![Fma { relu: true, ..sound }]);
        assert!(modifier.iter().any(|message| message.contains(".relu")), "{modifier:?}");
    }

    #[test]
    fn registers_of_one_that_is_alike_are_read_and_written() {
        let unwritten = |[_, y, _]: [Reg; 3], sound: Fma| vec![Fma { b: y.into(), ..sound }];
        let found = problems(unwritten);
        assert!(
            found.iter().any(|message| message.contains("`%x2` is read, but never written")),
            "{found:?}"
        );
        let written = |[_, y, _]: [Reg; 3], sound: Fma| {
            vec![Fma { dst: y, ..sound.clone() }, Fma { b: y.into(), ..sound }]
        };
        assert_eq!(problems(written), Vec::<String>::new());
    }
}
