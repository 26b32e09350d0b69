//! Keeps negated integers out of `min` and `max`, where NVIDIA's assembler loses signs.
//!
//! For sm_90 and later, `ptxas` 13.0 (and the driver's own) makes one `VIMNMX3` of two `max.s32` (or `min.s32`) in a row.
//! Where the second operand of the inner one is a negated register, the negation is dropped: `max(max(a, -b), c)`
//! becomes `max(a, b, c)`. How the negation was written does not matter (`neg`, `0 - b`, `b * -1`, `a - (a + b)`,
//! `5 - b - 5`), since what counts is what the assembler makes of it. It does not look through a split into halves; so a value that it may know
//! to be a negation is split and put together again in front of each signed 32-bit `min` and `max`, for every
//! target, since PTX for older ones is assembled for new GPUs too. What comes of it is one `MOV`.

use super::super::builder::EntryBuilder;
use super::super::instruction::*;
use super::super::module::Statement;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use cranelift_entity::SecondaryMap;

/// Hides every operand of a signed 32-bit `min` or `max` that the assembler may know to be a negation.
pub(super) fn hide_signs(builder: &mut EntryBuilder) {
    let instructions = || builder.entry().body.iter().filter_map(instruction);
    if !instructions().any(|instruction| is_order(&instruction.op)) {
        return;
    }
    let known = Known::of(instructions);
    let body = std::mem::take(&mut builder.entry_mut().body);
    let mut places = Vec::with_capacity(body.len() + 1);
    for statement in body {
        places.push(builder.entry().body.len() as u32);
        let Statement::Instruction(mut instruction) = statement else {
            builder.entry_mut().body.push(statement);
            continue;
        };
        if is_order(&instruction.op)
            && let Op::IntBinary(binary) = &mut instruction.op
        {
            for operand in [&mut binary.a, &mut binary.b] {
                if let Operand::Reg(reg) = *operand
                    && known.negated[reg]
                {
                    *operand = hidden(builder, reg).into();
                }
            }
        }
        builder.push(instruction);
    }
    places.push(builder.entry().body.len() as u32);
    builder.entry_mut().move_bindings(|at| places[at as usize]);
}

/// The same value, as something that no assembler looks through.
fn hidden(builder: &mut EntryBuilder, reg: Reg) -> Reg {
    let halves = [(); 2].map(|()| builder.reg_for(Type::B16, ""));
    let parts = halves.map(Some).to_vec();
    builder.emit(Unpack { ty: Type::B32, parts, a: reg.into() });
    builder.remark("hides a sign that ptxas would lose");
    let dst = builder.reg_for(Type::B32, "");
    builder.emit(Pack { ty: Type::B32, dst, parts: halves.map(Operand::Reg).to_vec() });
    dst
}

fn instruction(statement: &Statement) -> Option<&Instruction> {
    match statement {
        Statement::Instruction(instruction) => Some(instruction),
        _ => None,
    }
}

/// Whether it is a signed 32-bit `min` or `max`.
fn is_order(op: &Op) -> bool {
    use IntBinaryOp::{Max, Min};
    matches!(op, Op::IntBinary(IntBinary { op: Min | Max, ty: Type::S32, .. }))
}

/// What the assembler may find out about registers, whichever instruction wrote them last.
#[derive(Default)]
struct Known {
    /// May be the negation of another value.
    negated: SecondaryMap<Reg, bool>,
    /// May be a constant, zero among them: it was computed, not loaded.
    computed: SecondaryMap<Reg, bool>,
    /// A constant other than zero less a value: what is added to it may leave a negation.
    nearly: SecondaryMap<Reg, bool>,
}

impl Known {
    fn of<'i, I: Iterator<Item = &'i Instruction>>(instructions: impl Fn() -> I) -> Self {
        let mut known = Self::default();
        for instruction in instructions().filter(|instruction| !is_opaque(&instruction.op)) {
            let nearly = is_constant_less(&instruction.op);
            instruction.op.each_register(|reg, written| {
                if written {
                    known.computed[reg] = true;
                    known.nearly[reg] |= nearly;
                }
            });
        }
        // Loops carry what later instructions compute.
        loop {
            let mut changed = false;
            for instruction in instructions() {
                let op = &instruction.op;
                if is_opaque(op) || !(known.makes_negation(op) || known.passes_on(op)) {
                    continue;
                }
                op.each_register(|reg, written| {
                    changed |= written && !known.negated[reg];
                    if written {
                        known.negated[reg] = true;
                    }
                });
            }
            if !changed {
                return known;
            }
        }
    }

    /// Whether the result may be the negation of an operand.
    fn makes_negation(&self, op: &Op) -> bool {
        let maybe_constant = |operand: &Operand| match operand {
            Operand::Reg(reg) => self.computed[*reg],
            _ => true,
        };
        // By a constant below zero, or by what the assembler may know to be one.
        let product = |a: &Operand, b: &Operand| match (a, b) {
            (Operand::Int(factor), _) | (_, Operand::Int(factor)) => *factor < 0,
            _ => maybe_constant(a) || maybe_constant(b),
        };
        match op {
            Op::IntUnary(unary) => unary.op == IntUnaryOp::Neg,
            Op::IntBinary(binary) => match binary.op {
                IntBinaryOp::Sub => match (&binary.a, &binary.b) {
                    (_, Operand::Int(_)) => false,
                    (Operand::Int(0), _) => true,
                    // What is computed may have the first operand in it: `a - (a + b)`.
                    (Operand::Int(_), less) => maybe_constant(less),
                    (from, less) => maybe_constant(from) || maybe_constant(less),
                },
                IntBinaryOp::Mul => product(&binary.a, &binary.b),
                IntBinaryOp::Div | IntBinaryOp::Rem => true,
                _ => false,
            },
            Op::IntMad(mad) => product(&mad.a, &mad.b),
            // One step from a negation: -x is !x + 1.
            Op::LogicUnary(_) | Op::Lop3(_) => true,
            Op::LogicBinary(binary) => binary.op == LogicBinaryOp::Xor,
            _ => false,
        }
    }

    /// Whether the result may be an operand that is a negation.
    fn passes_on(&self, op: &Op) -> bool {
        let ends = match op {
            Op::IntBinary(_) => is_order(op),
            Op::IntUnary(unary) => unary.op == IntUnaryOp::Abs,
            Op::Unpack(unpack) => unpack.ty == Type::B32,
            _ => false,
        };
        let mut negated = false;
        op.each_register(|reg, written| negated |= !written && (self.negated[reg] || self.nearly[reg]));
        negated && !ends
    }
}

/// Whether the result is a constant other than zero less a value.
fn is_constant_less(op: &Op) -> bool {
    matches!(op, Op::IntBinary(IntBinary { op: IntBinaryOp::Sub, a: Operand::Int(1.. | ..=-1), .. }))
}

/// Whether the assembler knows nothing of what the instruction gives: it comes from memory, or from another thread.
fn is_opaque(op: &Op) -> bool {
    matches!(op, Op::Ld(_) | Op::Atom(_) | Op::Shfl(_) | Op::Vote(_) | Op::Match(_) | Op::Redux(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::{parse, print_instruction};

    /// The instructions that stand in front of the last `max`, after `lines` on the loaded values %x, %y and %z.
    fn guarded(lines: &str) -> Vec<String> {
        let text = format!(
            ".version 7.8\n.target sm_90\n.address_size 64\n\n.visible .entry k(.param .u64 p)\n{{\n    \
             .reg .b64 %p;\n    .reg .b32 %x, %y, %z, %a, %b, %c, %d;\n    ld.param.u64 %p, [p];\n    \
             ld.global.b32 %x, [%p];\n    ld.global.b32 %y, [%p+4];\n    ld.global.b32 %z, [%p+8];\n    {lines}\n    \
             st.global.b32 [%p], %d;\n    ret;\n}}\n"
        );
        let module = parse(&text).expect("it is PTX");
        let mut builder = EntryBuilder::new("k");
        *builder.entry_mut() = module.entries[0].clone();
        hide_signs(&mut builder);
        let entry = builder.finish();
        let printed = |statement: &Statement| match statement {
            Statement::Instruction(instruction) => {
                Some(print_instruction(&entry, &module.variables, instruction))
            }
            _ => None,
        };
        entry.body.iter().filter_map(printed).filter(|line| line.contains("mov.b32")).collect()
    }

    #[test]
    fn whatever_may_be_a_negation_is_hidden() {
        for lines in [
            "neg.s32 %a, %x;  max.s32 %d, %y, %a;",
            "sub.s32 %a, 0, %x;  max.s32 %d, %y, %a;",
            "mul.lo.s32 %a, %x, -1;  min.s32 %d, %a, %y;",
            "mov.b32 %b, -1; mul.lo.s32 %a, %x, %b;  min.s32 %d, %a, %y;",
            "mov.b32 %b, 0; sub.s32 %a, %b, %x;  min.s32 %d, %a, %y;",
            "not.b32 %b, %x; add.s32 %a, %b, 1;  min.s32 %d, %a, %y;",
            "neg.s32 %b, %x; shl.b32 %a, %b, 3; max.s32 %d, %a, %y;",
            "neg.s32 %b, %x; mov.b32 %c, %b; max.s32 %d, %c, %y;",
            "add.s32 %b, %x, %y; sub.s32 %a, %x, %b; max.s32 %d, %z, %a;",
            "shl.b32 %b, %x, 1; sub.s32 %a, %x, %b; max.s32 %d, %y, %a;",
            "sub.s32 %b, 5, %x; sub.s32 %a, %b, 5; max.s32 %d, %y, %a;",
            "sub.s32 %b, 5, %x; add.s32 %a, %b, -5; max.s32 %d, %y, %a;",
            "add.s32 %b, %x, 5; sub.s32 %a, 5, %b; max.s32 %d, %y, %a;",
            // Carried round a loop.
            "mov.b32 %a, 7; TOP: max.s32 %d, %y, %a; neg.s32 %a, %x; bra TOP;",
        ] {
            let found = guarded(lines);
            let hides = found.iter().filter(|line| line.contains('{')).count();
            assert_eq!(hides, 2, "{lines}: {found:?}");
        }
    }

    #[test]
    fn other_values_stay_as_they_are() {
        for lines in [
            "max.s32 %d, %x, %y;",
            "add.s32 %a, %x, 5; max.s32 %b, %a, %y; max.s32 %d, %b, %z;",
            "sub.s32 %a, %x, %y; max.s32 %d, %a, %y;",
            "sub.s32 %a, 5, %x; max.s32 %d, %a, %y;",
            "mul.lo.s32 %a, %x, 3; max.s32 %d, %a, %y;",
            "neg.s32 %a, %x; abs.s32 %b, %a; max.s32 %d, %b, %y;",
            "neg.s32 %a, %x; max.u32 %d, %a, %y;",
            "neg.s32 %a, %x; add.s32 %d, %a, %y;",
        ] {
            assert!(guarded(lines).is_empty(), "{lines}");
        }
    }
}
