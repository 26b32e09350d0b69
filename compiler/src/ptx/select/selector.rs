//! The state of one entry under selection, and the helpers that every op family uses.

use super::super::builder::EntryBuilder;
use super::super::instruction::*;
use super::super::module::Loc;
use super::super::operand::{Operand, ParamId, Reg};
use super::super::types::{RegClass, Type};
use super::naming::readable;
use super::offsets::OffsetMemo;
use super::{Globals, SelectError, SelectOptions};
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Symbol, Value};
use crate::ir::kernel::{Definition, Kernel, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::source::{SourceFile, Span};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use std::borrow::Cow;

/// What is known of the values, instructions and blocks of a launch.
pub(super) struct Maps {
    pub values: SecondaryMap<Value, Option<Operand>>,
    /// What has been emitted ahead: multiplications as part of the `fma` that accumulates them, divisions in a group.
    pub fused: SecondaryMap<Inst, bool>,
    pub uses: SecondaryMap<Value, u32>,
    /// How many of those uses are subscripts of plain accesses.
    pub subscripts: SecondaryMap<Value, u32>,
    /// How many of those uses do the value's own operation as well, in the same block: stores narrow what they store, casts
    /// round.
    pub absorbed: SecondaryMap<Value, u32>,
    /// The block that each instruction stands in, and its place there.
    pub home: SecondaryMap<Inst, PackedOption<Block>>,
    pub place: SecondaryMap<Inst, u32>,
    /// The instruction that each region belongs to.
    pub owner: SecondaryMap<Block, PackedOption<Inst>>,
    /// Registers that values are to be computed into.
    pub preferred: SecondaryMap<Value, PackedOption<Reg>>,
    /// While a loop's body is looked at: the place after which its parameters are not read, from 1 on; 0 for all others.
    pub read_until: SecondaryMap<Value, u32>,
    /// Of values that are read once, by an instruction of one result in a loop's body: that result.
    pub reader: SecondaryMap<Value, PackedOption<Value>>,
    /// Of sums with literals: what they are sums of in the end, and all that is added to that.
    pub sums: SecondaryMap<Inst, (PackedOption<Value>, i64)>,
    /// A literal 0 of the kernel, for subscripts of which nothing is left.
    pub zero: PackedOption<Value>,
}

impl Maps {
    pub fn new(kernel: &Kernel) -> Self {
        Self {
            values: kernel.of_values(),
            fused: kernel.of_insts(),
            uses: kernel.of_values(),
            subscripts: kernel.of_values(),
            absorbed: kernel.of_values(),
            home: kernel.of_insts(),
            place: kernel.of_insts(),
            owner: kernel.of_blocks(),
            preferred: kernel.of_values(),
            read_until: kernel.of_values(),
            reader: kernel.of_values(),
            sums: kernel.of_insts(),
            zero: None.into(),
        }
    }

    /// A value as another one and a literal that is added to it.
    pub fn rooted(&self, kernel: &Kernel, value: Value) -> (Value, i64) {
        let Some(inst) = kernel.defining_inst(value) else { return (value, 0) };
        let (root, literal) = self.sums[inst];
        (root.expand().unwrap_or(value), literal)
    }
}

pub(super) struct Selector<'a> {
    pub kernel: &'a Kernel,
    pub globals: &'a Globals,
    pub source: &'a SourceFile,
    pub options: &'a SelectOptions,
    pub builder: EntryBuilder,
    pub maps: Maps,
    pub symbols: SecondaryMap<Symbol, Option<Operand>>,
    /// Base addresses: one an allocation (leaf) of the buffer.
    pub bases: SecondaryMap<Buffer, Vec<Option<Reg>>>,
    /// Extents of each buffer's axes but the first, as i64 operands; equal lists have equal numbers.
    pub extents: SecondaryMap<Buffer, (u32, Vec<Operand>)>,
    pub error_record: Option<Reg>,
    /// Whether a check of this thread has failed, where loops end on it.
    pub failed: Option<Reg>,
    /// Checks of the block that is being selected, whose branch is still to come.
    pub checks: super::checks::Pending,
    /// What is selected at the end of the entry.
    pub recordings: Vec<super::checks::Recording>,
    /// The condition of the predicated region that is being selected.
    pub load_guard: Option<Reg>,
    /// What is known of floats in the launch.
    pub launch: crate::ir::entities::Launch,
    /// What integers can be in the launch; made for the first division that asks.
    pub ranges: Option<crate::analysis::Ranges>,
    /// Blocks of random words that were computed in the block that is being selected, and those around it.
    pub draws: Vec<super::random::Draw>,
    /// What sines and cosines of a value, in half turns or not, have in common, computed likewise.
    pub angles: Vec<((Value, bool), super::super::math::KnownAngle)>,
    /// What stores and copies depend on.
    pub guard: Option<Reg>,
    pub offsets: OffsetMemo,
    /// Where the last instruction came from, and the line of that.
    pub last_span: Span,
    pub last_line: u32,
    pub params: Vec<(super::plan::EntryArgument, ParamId)>,
}

/// Which part of PTX's type system a wide scalar maps to.
pub(super) fn signed_type(scalar: Scalar) -> Type {
    match scalar {
        Scalar::Bool => Type::Pred,
        Scalar::I32 => Type::S32,
        Scalar::U32 => Type::U32,
        Scalar::I64 => Type::S64,
        Scalar::U64 => Type::U64,
        Scalar::F32 => Type::F32,
        Scalar::F64 => Type::F64,
        Scalar::I8 => Type::S8,
        Scalar::U8 => Type::U8,
        Scalar::I16 => Type::S16,
        Scalar::U16 => Type::U16,
        Scalar::F16 => Type::F16,
        Scalar::BF16 => Type::Bf16,
    }
}

/// The untyped form of a wide scalar's type, for moves, selections and bit operations.
pub(super) fn bits_type(scalar: Scalar) -> Type {
    match scalar {
        Scalar::Bool => Type::Pred,
        Scalar::F32 => Type::F32,
        Scalar::F64 => Type::F64,
        other if other.size() == 8 => Type::B64,
        _ => Type::B32,
    }
}

impl<'a> Selector<'a> {
    pub fn error(&self, message: impl Into<String>) -> SelectError {
        SelectError { kernel: self.kernel.name.clone(), message: message.into() }
    }

    pub fn scalar(&self, value: Value) -> Scalar {
        self.kernel.values[value].ty
    }

    /// A readable name for a register that holds this value.
    pub fn hint(&self, value: Value) -> Cow<'a, str> {
        let plain = |name: &'a str| {
            if name.contains('.') { Cow::Owned(name.replace('.', "_")) } else { Cow::Borrowed(name) }
        };
        if let Some(name) = &self.kernel.values[value].name {
            return plain(readable(name));
        }
        if let Definition::Result(inst, _) = self.kernel.values[value].definition {
            match &self.kernel.insts[inst].payload {
                Payload::Symbol(symbol) => return plain(&self.kernel.symbols[*symbol].name),
                Payload::Access { buffer, leaf } => {
                    let data = &self.kernel.buffers[*buffer];
                    let path = &data.element.leaves[*leaf as usize].path;
                    if path.is_empty() {
                        return plain(data.name.trim_end_matches('_'));
                    }
                    let whole = format!("{}_{}", data.name, path);
                    return Cow::Owned(whole.trim_end_matches('_').replace('.', "_"));
                }
                _ => {}
            }
        }
        Cow::Borrowed("")
    }

    /// The operand of a value that has been selected; constants are immediates.
    pub fn operand(&mut self, value: Value) -> Operand {
        match self.maps.values[value] {
            Some(operand) => operand,
            None => self.operand_of(value),
        }
    }

    /// As [`operand`](Self::operand), of a value that has none yet.
    fn operand_of(&mut self, value: Value) -> Operand {
        // Constants and symbols may stand anywhere: they cost nothing until they are used.
        if let Definition::Result(inst, _) = self.kernel.values[value].definition {
            match (&self.kernel.insts[inst].opcode, &self.kernel.insts[inst].payload) {
                (Opcode::Const, Payload::Constant(constant)) => {
                    let operand = match *constant {
                        Constant::Bool(flag) => return self.constant_predicate(flag),
                        Constant::Int(Scalar::U64, number) => Operand::Int(number as u64 as i64),
                        Constant::Int(_, number) => Operand::Int(number as i64),
                        Constant::F32(bits) => Operand::F32(bits),
                        Constant::F64(bits) => Operand::F64(bits),
                    };
                    self.maps.values[value] = Some(operand);
                    return operand;
                }
                (Opcode::Symbol, Payload::Symbol(symbol)) => {
                    if let Some(operand) = self.symbols[*symbol] {
                        return operand;
                    }
                }
                _ if self.is_deferred(inst) => return self.deferred(inst),
                _ => {}
            }
        }
        unreachable!("{value} is used before it is selected; the verifier checks dominance")
    }

    /// Whether an instruction is selected as part of those that use it: a cast that stores narrow anyway, a float that casts
    /// round; a sum with a literal that only addresses use, which take the literal as their offset, so that the sum is rarely
    /// needed.
    pub fn is_deferred(&self, inst: Inst) -> bool {
        let data = &self.kernel.insts[inst];
        if matches!(data.opcode, Opcode::Cast | Opcode::Floor | Opcode::Ceil | Opcode::Round | Opcode::Trunc)
        {
            let uses = |value: &Value| (self.maps.uses[*value], self.maps.absorbed[*value]);
            return data.results.iter().map(uses).any(|(uses, absorbed)| absorbed > 0 && absorbed == uses);
        }
        if !matches!(data.opcode, Opcode::Add | Opcode::Sub) || self.is_asked_for(inst) {
            return false;
        }
        let ([result], [_, literal]) = (&data.results[..], &data.arguments[..]) else { return false };
        self.scalar(*result) == Scalar::I64
            && self.maps.subscripts[*result] == self.maps.uses[*result]
            && self.constant_int(*literal).is_some()
    }

    /// The sum after all, where it is used: not to be used again elsewhere, since that place may not come after this.
    fn deferred(&mut self, inst: Inst) -> Operand {
        let data = &self.kernel.insts[inst];
        let op = if data.opcode == Opcode::Sub { IntBinaryOp::Sub } else { IntBinaryOp::Add };
        let (a, b) = (self.operand(data.arguments[0]), self.operand(data.arguments[1]));
        self.int(op, Type::S64, a, b).into()
    }

    fn constant_predicate(&mut self, flag: bool) -> Operand {
        let reg = self.builder.reg(RegClass::Pred, if flag { "true" } else { "false" });
        self.builder.emit(Mov { ty: Type::Pred, dst: reg, a: Operand::Int(if flag { -1 } else { 0 }) });
        reg.into()
    }

    /// The constant integer that a value is, if it is one.
    pub fn constant_int(&self, value: Value) -> Option<i128> {
        let Definition::Result(inst, _) = self.kernel.values[value].definition else { return None };
        match self.kernel.insts[inst].payload {
            Payload::Constant(Constant::Int(_, number)) => Some(number),
            _ => None,
        }
    }

    /// The value in a register: for the places where PTX takes no immediate.
    pub fn register(&mut self, value: Value) -> Reg {
        let operand = self.operand(value);
        self.in_register(operand, bits_type(self.scalar(value)))
    }

    pub fn in_register(&mut self, operand: Operand, ty: Type) -> Reg {
        match operand {
            Operand::Reg(reg) => reg,
            other => {
                let dst = self.builder.reg_for(ty, "");
                self.builder.emit(Mov { ty, dst, a: other });
                dst
            }
        }
    }

    /// A fresh register for a value, recorded as its operand.
    pub fn define(&mut self, value: Value) -> Reg {
        let reg = match self.maps.preferred[value].expand() {
            Some(reg) => reg,
            None => {
                let hint = self.hint(value);
                self.builder.reg_for(bits_type(self.scalar(value)), &hint)
            }
        };
        self.maps.values[value] = Some(reg.into());
        reg
    }

    pub fn temp(&mut self, ty: Type) -> Reg {
        self.builder.reg_for(ty, "")
    }

    pub fn pred(&mut self, hint: &str) -> Reg {
        self.builder.reg(RegClass::Pred, hint)
    }

    /// A `mov`, or the instruction that does it for predicates.
    pub fn copy(&mut self, dst: Reg, ty: Type, a: Operand) {
        if a != Operand::Reg(dst) {
            self.builder.emit(Mov { ty, dst, a });
        }
    }

    pub fn int(&mut self, op: IntBinaryOp, ty: Type, a: Operand, b: Operand) -> Reg {
        let dst = self.temp(ty);
        self.builder.emit(IntBinary { op, ty, dst, a, b, ..Default::default() });
        dst
    }

    pub fn logic(&mut self, op: LogicBinaryOp, ty: Type, a: Operand, b: Operand) -> Reg {
        let dst = self.temp(ty);
        self.builder.emit(LogicBinary { op, ty, dst, a, b });
        dst
    }

    pub fn shift(&mut self, op: ShiftOp, ty: Type, a: Operand, b: Operand) -> Reg {
        let dst = self.temp(ty);
        self.builder.emit(Shift { op, ty, dst, a, b });
        dst
    }

    pub fn setp(&mut self, compare: Compare, ty: Type, a: Operand, b: Operand) -> Reg {
        let p = self.pred("");
        self.builder.emit(Setp { compare, ty, p, a, b, ..Default::default() });
        p
    }

    pub fn selp(&mut self, ty: Type, p: Reg, a: Operand, b: Operand) -> Reg {
        let dst = self.temp(ty);
        self.builder.emit(Selp { ty, dst, a, b, p });
        dst
    }

    pub fn cvt(&mut self, rounding: Option<Rounding>, dst_ty: Type, src_ty: Type, a: Operand) -> Reg {
        let dst = self.temp(dst_ty);
        self.builder.emit(Cvt { rounding, dst_ty, src_ty, dst, a, ..Default::default() });
        dst
    }

    pub fn float(&mut self, op: FloatBinaryOp, ty: Type, a: Operand, b: Operand) -> Reg {
        let dst = self.temp(ty);
        self.float_into(op, ty, dst, a, b);
        dst
    }

    /// Rounding is always written: `add` and `mul` without it may be contracted behind our back.
    pub fn float_into(&mut self, op: FloatBinaryOp, ty: Type, dst: Reg, a: Operand, b: Operand) {
        let rounding = (!matches!(op, FloatBinaryOp::Min | FloatBinaryOp::Max)).then_some(Rounding::Rn);
        self.builder.emit(FloatBinary { op, rounding, ty, dst, a, b, ..Default::default() });
    }

    /// Marks where the following instructions come from: a `.loc`, and the source line as a comment the first
    /// time in a row that it is reached.
    pub fn locate(&mut self, span: Span) {
        if span == self.last_span || span == Span::default() {
            return;
        }
        self.last_span = span;
        let (line, column) = self.source.line_column(span.start);
        if line != self.last_line {
            self.last_line = line;
            let text = self.source.line_text(line).trim().to_string();
            self.builder.blank();
            self.builder.comment(&format!("{line}: {text}"));
        }
        self.builder.loc(Loc { file: 1, line, column });
    }
}
