//! Multiplications and stores that are like one that was sound: of the thousands of a product the grammar is asked about
//! one.
//!
//! What the grammar says of an instruction whose operands are registers depends on its modifiers and on the classes of
//! these registers, not on which registers they are, nor on how far from one of them an address lies.

use crate::ptx::instruction::{Fma, FmaWords, St, StoreWords};
use crate::ptx::module::Register;
use crate::ptx::operand::Reg;
use crate::ptx::types::RegClass;
use cranelift_entity::PrimaryMap;

/// All of an instruction on registers but which registers of their classes they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// With the classes of the result and the operands.
    Fma(FmaWords, [RegClass; 4]),
    /// With the classes of the address and the value.
    St(StoreWords, [RegClass; 2]),
}

impl Form {
    /// The form of an `fma` and its registers, the result first; none where some operand is no register, or one that is not
    /// declared.
    #[inline]
    pub fn of_fma(fma: &Fma, registers: &PrimaryMap<Reg, Register>) -> Option<(Self, [Reg; 4])> {
        let regs = fma.registers()?;
        Some((Self::Fma(fma.words(), classes(regs, registers)?), regs))
    }

    /// The form of an `st` of one value and its registers, the address first; none as above.
    #[inline]
    pub fn of_st(st: &St, registers: &PrimaryMap<Reg, Register>) -> Option<(Self, [Reg; 2])> {
        let regs = st.registers()?;
        Some((Self::St(st.words(), classes(regs, registers)?), regs))
    }
}

/// The classes of some registers; none where one is not declared.
#[inline]
fn classes<const COUNT: usize>(
    regs: [Reg; COUNT],
    registers: &PrimaryMap<Reg, Register>,
) -> Option<[RegClass; COUNT]> {
    let mut classes = [RegClass::Pred; COUNT];
    for (class, reg) in classes.iter_mut().zip(regs) {
        *class = registers.get(reg)?.class;
    }
    Some(classes)
}

#[cfg(test)]
mod tests {
    use crate::ptx::instruction::{Fma, Guard, Mov, St};
    use crate::ptx::module::Version;
    use crate::ptx::operand::{Address, Base, Operand};
    use crate::ptx::types::Space;
    use crate::ptx::{EntryBuilder, Module, Reg, RegClass, Type, verify};
    use smallvec::smallvec;

    /// What is wrong with an entry.
    fn messages(builder: EntryBuilder) -> Vec<String> {
        let mut module = Module::new(Version::new(8, 0), "sm_90");
        module.entries.push(builder.finish());
        verify(&module).into_iter().map(|problem| problem.message).collect()
    }

    /// What is wrong with some multiplications after one that is sound.
    fn problems(others: impl FnOnce([Reg; 3], Fma) -> Vec<Fma>) -> Vec<String> {
        let mut builder = EntryBuilder::new("k");
        let regs = [RegClass::F32, RegClass::F32, RegClass::F64].map(|class| builder.reg(class, "x"));
        let [x, ..] = regs;
        let sound = Fma { ty: Type::F32, dst: x, a: x.into(), b: x.into(), c: x.into(), ..Fma::default() };
        builder.emit(sound.clone());
        others(regs, sound).into_iter().for_each(|fma| builder.emit(fma));
        messages(builder)
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

    /// What is wrong with some stores after one that is sound, to an address in `[0]` of the value in `[1]`; `[2]` is a float
    /// of 64 bits, `[3]` a predicate that nothing writes.
    fn problems_of_stores(others: impl FnOnce([Reg; 4], St) -> Vec<(Option<Guard>, St)>) -> Vec<String> {
        let mut builder = EntryBuilder::new("k");
        let classes = [RegClass::B64, RegClass::F32, RegClass::F64, RegClass::Pred];
        let regs = classes.map(|class| builder.reg(class, "x"));
        let [base, value, wide, _] = regs;
        builder.emit(Mov { ty: Type::U64, dst: base, a: Operand::Int(0) });
        builder.emit(Mov { ty: Type::F32, dst: value, a: Operand::F32(0) });
        builder.emit(Mov { ty: Type::F64, dst: wide, a: Operand::F64(0) });
        let sound = St {
            space: Space::Global,
            ty: Type::F32,
            address: Address::new(Base::Reg(base), 0),
            src: smallvec![value.into()],
            ..St::default()
        };
        builder.emit(sound.clone());
        for (guard, st) in others(regs, sound) {
            match guard {
                Some(guard) => builder.emit_if(guard, st),
                None => builder.emit(st),
            }
        }
        messages(builder)
    }

    #[test]
    fn a_store_that_differs_is_looked_at_by_itself() {
        let found = problems_of_stores(|[_, value, _, _], sound| {
            let far = Address { offset: 1 << 20, ..sound.address };
            let no_address = Address::new(Base::Reg(value), 0);
            vec![
                (None, St { address: far, ..sound.clone() }),
                (None, St { address: no_address, ..sound.clone() }),
                (None, St { ty: Type::F64, ..sound.clone() }),
                (None, St { src: smallvec![value.into(); 3], ..sound }),
            ]
        });
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("cannot hold .b64"), "{found:?}");
        assert!(found[1].contains("cannot hold .f64"), "{found:?}");
        assert!(found[2].contains("2, 4 or 8 values"), "{found:?}");
    }

    #[test]
    fn guards_of_stores_that_are_alike_are_predicates_and_read() {
        let found = problems_of_stores(|[_, value, wide, pred], sound| {
            let guard = |reg| Some(Guard { reg, negated: false });
            let unread = St { src: smallvec![wide.into()], ty: Type::F64, ..sound.clone() };
            vec![(guard(value), sound.clone()), (guard(pred), sound), (None, unread)]
        });
        assert!(found.iter().any(|message| message.contains("not a predicate")), "{found:?}");
        assert!(found.iter().any(|message| message.contains("is read, but never written")), "{found:?}");
    }
}
