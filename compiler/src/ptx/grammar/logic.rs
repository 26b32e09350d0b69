//! The grammar of moves, bit operations, comparison and selection.

use super::{Family, PLAIN, Range, Slot, Step, Walk, is_bf16, is_narrow, needs, part_type};
use crate::ptx::instruction::*;
use crate::ptx::types::{Modifier, Type};

const BITS: &[Type] = &[Type::B16, Type::B32, Type::B64];
const BITS_OR_PRED: &[Type] = &[Type::Pred, Type::B16, Type::B32, Type::B64];
const WIDE_BITS: &[Type] = &[Type::B32, Type::B64, Type::B128];
const FIELDS: &[Type] = &[Type::U32, Type::U64, Type::S32, Type::S64];

impl Family for Mov {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        const TYPES: &[Type] = &[
            Type::Pred,
            Type::B16,
            Type::B32,
            Type::B64,
            Type::B128,
            Type::U16,
            Type::U32,
            Type::U64,
            Type::S16,
            Type::S32,
            Type::S64,
            Type::F32,
            Type::F64,
        ];
        walk.word("mov")?;
        walk.choice(&mut self.ty, TYPES)?;
        if self.ty == Type::B128 {
            walk.needs("128-bit registers", needs(75, 8, 3))?;
        }
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::SourceAny(&mut self.a, self.ty))
    }
}

impl Family for Pack {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("mov")?;
        walk.choice(&mut self.ty, WIDE_BITS)?;
        if self.ty == Type::B128 {
            walk.needs("128-bit registers", needs(75, 8, 3))?;
        }
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::SourceParts(&mut self.parts, self.ty))?;
        walk.rule(part_type(self.ty, self.parts.len()).is_some(), "the parts do not add up to the whole")
    }
}

impl Family for Unpack {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("mov")?;
        walk.choice(&mut self.ty, WIDE_BITS)?;
        if self.ty == Type::B128 {
            walk.needs("128-bit registers", needs(75, 8, 3))?;
        }
        walk.operand(Slot::WriteParts(&mut self.parts, self.ty))?;
        walk.rule(part_type(self.ty, self.parts.len()).is_some(), "the parts do not add up to the whole")?;
        walk.rule(self.parts.iter().any(Option::is_some), "at least one part must be kept")?;
        walk.operand(Slot::Source(&mut self.a, self.ty))
    }
}

impl Family for LogicBinary {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.choice(&mut self.op, LogicBinaryOp::ALL)?;
        walk.choice(&mut self.ty, BITS_OR_PRED)?;
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::Source(&mut self.b, self.ty))
    }
}

impl Family for LogicUnary {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.choice(&mut self.op, LogicUnaryOp::ALL)?;
        let legal = if self.op == LogicUnaryOp::Not { BITS_OR_PRED } else { BITS };
        walk.choice(&mut self.ty, legal)?;
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))
    }
}

impl Family for Shift {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        const RIGHT: &[Type] = &[
            Type::B16,
            Type::B32,
            Type::B64,
            Type::U16,
            Type::U32,
            Type::U64,
            Type::S16,
            Type::S32,
            Type::S64,
        ];
        walk.choice(&mut self.op, ShiftOp::ALL)?;
        walk.choice(&mut self.ty, if self.op == ShiftOp::Left { BITS } else { RIGHT })?;
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::Source(&mut self.b, Type::U32))
    }
}

impl Family for FunnelShift {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("shf")?;
        walk.choice(&mut self.direction, FunnelDirection::ALL)?;
        walk.choice(&mut self.mode, FunnelMode::ALL)?;
        walk.word("b32")?;
        walk.operand(Slot::Write(&mut self.dst, Type::B32))?;
        walk.operand(Slot::Source(&mut self.lo, Type::B32))?;
        walk.operand(Slot::Source(&mut self.hi, Type::B32))?;
        walk.operand(Slot::Source(&mut self.amount, Type::U32))
    }
}

impl Family for BitCount {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.choice(&mut self.op, BitCountOp::ALL)?;
        if self.op == BitCountOp::Bfind {
            walk.flag("shiftamt", &mut self.shift_amount)?;
            walk.choice(&mut self.ty, FIELDS)?;
        } else {
            walk.rule(!self.shift_amount, "only bfind has .shiftamt")?;
            walk.choice(&mut self.ty, &[Type::B32, Type::B64])?;
        }
        let result = if self.op == BitCountOp::Brev { self.ty } else { Type::U32 };
        walk.operand(Slot::Write(&mut self.dst, result))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))
    }
}

impl Family for BitExtract {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("bfe")?;
        walk.choice(&mut self.ty, FIELDS)?;
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::SourceRange(&mut self.position, Range::upto(255)))?;
        walk.operand(Slot::SourceRange(&mut self.length, Range::upto(255)))
    }
}

impl Family for BitInsert {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("bfi")?;
        walk.choice(&mut self.ty, &[Type::B32, Type::B64])?;
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::Source(&mut self.b, self.ty))?;
        walk.operand(Slot::SourceRange(&mut self.position, Range::upto(255)))?;
        walk.operand(Slot::SourceRange(&mut self.length, Range::upto(255)))
    }
}

impl Family for Prmt {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("prmt")?;
        walk.word("b32")?;
        walk.option(&mut self.mode, PrmtMode::ALL)?;
        walk.operand(Slot::Write(&mut self.dst, Type::B32))?;
        walk.operand(Slot::Source(&mut self.a, Type::B32))?;
        walk.operand(Slot::Source(&mut self.b, Type::B32))?;
        walk.operand(Slot::Source(&mut self.selector, Type::U32))
    }
}

impl Family for Lop3 {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("lop3")?;
        walk.word("b32")?;
        walk.operand(Slot::Write(&mut self.dst, Type::B32))?;
        walk.operand(Slot::Source(&mut self.a, Type::B32))?;
        walk.operand(Slot::Source(&mut self.b, Type::B32))?;
        walk.operand(Slot::Source(&mut self.c, Type::B32))?;
        let mut table = u32::from(self.table);
        walk.operand(Slot::Number(&mut table, &[]))?;
        self.table = (table & 0xff) as u8;
        Ok(())
    }
}

/// The types that can be compared.
const COMPARED: &[Type] = &[
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F16,
    Type::Bf16,
    Type::F32,
    Type::F64,
];

/// Whether values of the type can be compared that way.
fn compares(compare: Compare, ty: Type) -> bool {
    use Compare::*;
    match compare {
        Eq | Ne => true,
        Lt | Le | Gt | Ge => !ty.is_bits(),
        Lo | Ls | Hi | Hs => ty.is_unsigned(),
        Equ | Neu | Ltu | Leu | Gtu | Geu | Num | Nan => ty.is_float(),
    }
}

/// The part of the mnemonic that `setp` and `set` share, up to the type of the result.
fn comparison<W: Walk>(
    walk: &mut W,
    compare: &mut Compare,
    combine: &mut Option<Combine>,
    ftz: &mut bool,
) -> Step {
    walk.choice(compare, Compare::ALL)?;
    let mut op = combine.map(|combine| combine.op);
    walk.option(&mut op, BoolOp::ALL)?;
    *combine =
        op.map(|op| Combine { op, with: combine.map_or_else(Default::default, |combine| combine.with) });
    walk.flag("ftz", ftz)
}

/// The rules that `setp` and `set` share.
fn comparison_rules<W: Walk>(walk: &mut W, compare: Compare, ftz: bool, ty: Type) -> Step {
    walk.rule(compares(compare, ty), "the type cannot be compared that way")?;
    walk.rule(!ftz || matches!(ty, Type::F32 | Type::F16), ".ftz needs .f32 or .f16")?;
    if is_bf16(ty) {
        walk.needs("comparison of bf16", needs(90, 7, 8))?;
    }
    Ok(())
}

impl Family for Setp {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("setp")?;
        comparison(walk, &mut self.compare, &mut self.combine, &mut self.ftz)?;
        walk.choice(&mut self.ty, COMPARED)?;
        comparison_rules(walk, self.compare, self.ftz, self.ty)?;
        walk.operand(Slot::WritePair(&mut self.p, Type::Pred, &mut self.q))?;
        walk.rule(self.q.is_none() || !is_narrow(self.ty), "setp on narrow floats yields one predicate")?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::Source(&mut self.b, self.ty))?;
        match &mut self.combine {
            Some(combine) => walk.operand(Slot::Pred(&mut combine.with)),
            None => Ok(()),
        }
    }
}

impl Family for Set {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("set")?;
        comparison(walk, &mut self.compare, &mut self.combine, &mut self.ftz)?;
        walk.choice(&mut self.dst_ty, &[Type::U32, Type::S32, Type::F32])?;
        walk.choice(&mut self.ty, COMPARED)?;
        comparison_rules(walk, self.compare, self.ftz, self.ty)?;
        walk.rule(
            !matches!(self.ty, Type::F16 | Type::Bf16) || self.dst_ty != Type::F32,
            "set on narrow floats yields .u32 or .s32",
        )?;
        if self.ty == Type::F16 {
            walk.needs("set on f16", needs(75, 6, 5))?;
        }
        walk.operand(Slot::Write(&mut self.dst, self.dst_ty))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::Source(&mut self.b, self.ty))?;
        match &mut self.combine {
            Some(combine) => walk.operand(Slot::Pred(&mut combine.with)),
            None => Ok(()),
        }
    }
}

impl Family for Selp {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("selp")?;
        walk.choice(&mut self.ty, PLAIN)?;
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::Source(&mut self.b, self.ty))?;
        walk.operand(Slot::Read(&mut self.p, Type::Pred))
    }
}

impl Family for Slct {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("slct")?;
        walk.flag("ftz", &mut self.ftz)?;
        walk.choice(&mut self.ty, PLAIN)?;
        walk.choice(&mut self.c_ty, &[Type::S32, Type::F32])?;
        walk.rule(!self.ftz || self.c_ty == Type::F32, ".ftz needs .f32")?;
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::Source(&mut self.b, self.ty))?;
        walk.operand(Slot::Source(&mut self.c, self.c_ty))
    }
}
