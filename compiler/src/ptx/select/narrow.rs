//! Values as memory holds them: narrowed where they are stored, several of them in a word.
//!
//! ```text
//! v1: bf16 = cast bf16 v0      store y[i], v1      →      cvt.rn.bf16.f32 h, f      st.global.b16 [y], h
//! ```
//!
//! A cast that only stores use is not selected: they narrow what it is a cast of, so that nothing is rounded, or held to a
//! range, twice.

use super::super::instruction::*;
use super::super::operand::{Address, Operand, Reg};
use super::super::types::{Space, Type};
use super::memory::store_cache;
use super::selector::{Selector, bits_type, signed_type};
use crate::data::{CacheMode, Scalar};
use crate::ir::entities::{Inst, Value};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use smallvec::smallvec;

impl Selector<'_> {
    /// What is narrowed in place of a value, and its type.
    fn before_cast(&self, value: Value) -> (Scalar, Value) {
        let is_cast =
            |inst: &Inst| self.kernel.insts[*inst].opcode == Opcode::Cast && self.is_deferred(*inst);
        let cast = self.kernel.defining_inst(value).filter(is_cast);
        let source = cast.map_or(value, |cast| self.kernel.insts[cast].arguments[0]);
        (self.scalar(source), source)
    }

    /// Narrows a wide value to a storage type and stores it.
    pub(super) fn store_narrow(
        &mut self,
        space: Space,
        address: Address,
        scalar: Scalar,
        cache: Option<CacheMode>,
        value: Value,
    ) {
        let (ty, source) = match scalar {
            Scalar::Bool => {
                let p = self.register(value);
                let byte = self.selp(Type::B16, p, Operand::Int(1), Operand::Int(0));
                (Type::U8, byte.into())
            }
            Scalar::F16 | Scalar::BF16 => (Type::B16, self.half(scalar, value).into()),
            Scalar::I8 | Scalar::U8 => (Type::U8, self.low_bits(scalar, value).into()),
            Scalar::I16 | Scalar::U16 => (Type::U16, self.low_bits(scalar, value).into()),
            other => (signed_type(other), self.operand(value)),
        };
        let cache = cache.and_then(store_cache);
        self.emit_guarded(St { space, cache, ty, address, src: smallvec![source], ..Default::default() });
    }

    /// A value of a 16-bit float type, in a 16-bit register.
    fn half(&mut self, scalar: Scalar, value: Value) -> Reg {
        let (from, source) = self.before_cast(value);
        let from = from.widened();
        let a = self.operand(source);
        self.narrow_float(scalar, from, a)
    }

    /// A word that has a value of a narrow integer type in its lowest bits, and anything above them.
    fn low_bits(&mut self, scalar: Scalar, value: Value) -> Reg {
        let (from, source) = self.before_cast(value);
        let is_word = from.is_integer() && from.size() <= 4;
        let word = if is_word || source == value { self.operand(source) } else { self.cast(source, scalar) };
        self.in_register(word, Type::B32)
    }

    /// Narrow values as 32-bit words, or as one 16-bit word of two bytes.
    pub(super) fn packed(&mut self, scalar: Scalar, values: &[Value]) -> (Type, Vec<Operand>) {
        if scalar.size() == 2 {
            let words = values.chunks(2).map(|pair| self.pair(scalar, pair).into()).collect();
            return (Type::B32, words);
        }
        let words = values.chunks(4).map(|bytes| self.bytes(scalar, bytes).into()).collect();
        (if values.len() >= 4 { Type::B32 } else { Type::U16 }, words)
    }

    /// Two values of 16 bits as a word.
    fn pair(&mut self, scalar: Scalar, values: &[Value]) -> Reg {
        let dst = self.temp(Type::B32);
        let [low, high] = mutant!("select: halves of a word change places", [0, 1], [1, 0]);
        let [low, high] = [values[low], values[high]];
        if matches!(scalar, Scalar::F16 | Scalar::BF16) {
            let is_single = |value| self.before_cast(value).0.widened() == Scalar::F32;
            if self.options.capability >= 80 && is_single(low) && is_single(high) {
                let [a, b] = [high, low].map(|value| {
                    let source = self.before_cast(value).1;
                    self.register(source).into()
                });
                let dst_ty = if scalar == Scalar::F16 { Type::F16x2 } else { Type::Bf16x2 };
                self.builder.emit(CvtPack { rounding: Rounding::Rn, relu: false, dst_ty, dst, a, b });
            } else {
                let parts = [low, high].map(|value| self.half(scalar, value).into()).to_vec();
                self.builder.emit(Pack { ty: Type::B32, dst, parts });
            }
            return dst;
        }
        let [a, b] = [low, high].map(|value| self.low_bits(scalar, value).into());
        self.choose(dst, a, b, 0x5410);
        dst
    }

    /// Two or four bytes as a word.
    fn bytes(&mut self, scalar: Scalar, values: &[Value]) -> Reg {
        if self.options.capability >= 72 && values.iter().all(|value| self.before_cast(*value).0.is_float()) {
            return self.saturated(scalar, values);
        }
        if scalar == Scalar::Bool {
            return self.flags(values);
        }
        let bytes: Vec<Operand> = values.iter().map(|value| self.low_bits(scalar, *value).into()).collect();
        let pairs: Vec<Operand> = bytes
            .chunks(2)
            .map(|pair| {
                let dst = self.temp(Type::B32);
                self.choose(dst, pair[0], pair[1], 0x0040);
                dst.into()
            })
            .collect();
        let dst = self.temp(Type::B32);
        match pairs[..] {
            [low, high] => self.choose(dst, low, high, 0x5410),
            _ => self.builder.emit(Mov { ty: Type::B32, dst, a: pairs[0] }),
        }
        dst
    }

    /// Truth values as bytes of a word.
    fn flags(&mut self, values: &[Value]) -> Reg {
        let mut word: Option<Reg> = None;
        for (at, value) in values.iter().enumerate() {
            let p = self.register(*value);
            let byte = self.selp(Type::B32, p, Operand::Int(1 << (8 * at)), Operand::Int(0));
            word = Some(match word {
                Some(word) => self.logic(LogicBinaryOp::Or, Type::B32, word.into(), byte.into()),
                None => byte,
            });
        }
        self.in_register(word.map_or(Operand::Int(0), Operand::from), Type::B32)
    }

    /// Floats as bytes of a word: toward zero, and the nearest one of the range.
    fn saturated(&mut self, scalar: Scalar, values: &[Value]) -> Reg {
        let dst_ty = if scalar == Scalar::I8 { Type::S8 } else { Type::U8 };
        let mut word = Operand::Int(0);
        // The highest ones first: two more move what is there upwards.
        for pair in values.chunks(2).rev() {
            let [b, a] = [0, 1].map(|at| {
                let (from, source) = self.before_cast(pair[at]);
                let rounded = self.before_rounding(source);
                self.float_to_wide(from.widened(), Scalar::I32, rounded)
            });
            let dst = self.temp(Type::B32);
            self.builder.emit(CvtPackBytes { dst_ty, dst, a, b, c: word });
            word = dst.into();
        }
        self.in_register(word, Type::B32)
    }

    /// Four bytes out of two words, by the nibbles of a number.
    fn choose(&mut self, dst: Reg, a: Operand, b: Operand, selector: i64) {
        self.builder.emit(Prmt { mode: None, dst, a, b, selector: Operand::Int(selector) });
    }

    /// The narrow form of a wide value as a number in a 32- or 64-bit register, for combining in place.
    pub fn storage_bits(&mut self, scalar: Scalar, value: Operand) -> Operand {
        match scalar {
            Scalar::Bool => {
                let p = self.in_register(value, Type::Pred);
                self.selp(Type::B32, p, Operand::Int(1), Operand::Int(0)).into()
            }
            Scalar::F16 | Scalar::BF16 => {
                let half = self.narrow_float(scalar, Scalar::F32, value);
                self.cvt(None, Type::U32, Type::U16, half.into()).into()
            }
            Scalar::F32 | Scalar::F64 => {
                let ty = if scalar == Scalar::F64 { Type::B64 } else { Type::B32 };
                let float = self.in_register(value, bits_type(scalar));
                let word = self.temp(ty);
                self.builder.emit(Mov { ty, dst: word, a: float.into() });
                word.into()
            }
            _ => value,
        }
    }
}
