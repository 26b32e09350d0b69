//! Which elements a thread has, as code: coordinates and offsets from the numbers of its lane and its warp.

use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::Payload;
use crate::ir::op::Opcode;
use crate::layout::{Digit, Dimension, MemoryLayout, Stride, ValueLayout};

/// Threads of a warp.
pub const WARP: u32 = 32;

/// What a thread knows of itself.
pub struct Coordinates {
    warps: i64,
}

impl Coordinates {
    pub fn new(threads: u32) -> Self {
        Self { warps: i64::from(threads / WARP) }
    }

    /// All digits of a thread's number.
    pub fn all(&self) -> Vec<Digit> {
        let lanes = Digit { dimension: Dimension::Lane, position: 1, size: u64::from(WARP) };
        let warps = Digit { dimension: Dimension::Warp, position: 1, size: self.warps as u64 };
        [lanes, warps].into_iter().filter(|digit| digit.size > 1).collect()
    }

    /// The number of the thread's lane in its warp, or of its warp in the block.
    pub fn number(&self, emit: &mut Emit<'_>, dimension: Dimension) -> Value {
        if dimension != Dimension::Lane && (dimension != Dimension::Warp || self.warps == 1) {
            return emit.int(0);
        }
        let thread = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
        match dimension {
            Dimension::Lane if self.warps == 1 => thread,
            Dimension::Lane => emit.rem_by(thread, WARP.into()),
            _ => emit.div_by(thread, WARP.into()),
        }
    }

    /// A digit of the lane's or the warp's number.
    pub fn digit(&self, emit: &mut Emit<'_>, digit: Digit) -> Value {
        let number = self.number(emit, digit.dimension);
        let extent = match digit.dimension {
            Dimension::Lane => WARP.into(),
            _ => self.warps,
        };
        let upper = emit.div_by(number, digit.position as i64);
        // The highest digit needs no remainder.
        if (digit.position * digit.size) as i64 >= extent {
            upper
        } else {
            emit.rem_by(upper, digit.size as i64)
        }
    }

    /// Digits as one number, the first one lowest.
    pub fn mixed(&self, emit: &mut Emit<'_>, digits: &[Digit]) -> Value {
        let mut scale = 1;
        let mut sum = emit.int(0);
        for digit in digits {
            let value = self.digit(emit, *digit);
            let scaled = emit.mul_int(value, scale);
            sum = emit.add(sum, scaled);
            scale *= digit.size as i64;
        }
        sum
    }

    /// Whether the thread is at 0 in all of these digits; none where there are none.
    pub fn is_first(&self, emit: &mut Emit<'_>, digits: &[Digit]) -> Option<Value> {
        let mut all = None;
        for digit in digits {
            let (value, zero) = (self.digit(emit, *digit), emit.int(0));
            let first = emit.binary(Opcode::Eq, value, zero);
            all = Some(all.map_or(first, |all| emit.binary(Opcode::And, all, first)));
        }
        all
    }

    /// The coordinates along an axis of what some registers hold: a part of the thread's own, plus a literal.
    pub fn along(
        &self,
        emit: &mut Emit<'_>,
        layout: &ValueLayout,
        axis: &str,
        registers: &[u64],
    ) -> Vec<Value> {
        let digits = layout.digits(axis).unwrap_or_default();
        let mut base = emit.int(0);
        // Digits that a register and the thread make up together.
        let mut mixed = Vec::new();
        let literal = |sources: &[Digit], register: u64| {
            let own = sources.iter().filter(|source| source.dimension == Dimension::Register);
            own.fold(0, |bits, source| bits ^ (register / source.position % source.size)) as i64
        };
        for digit in &digits {
            let (own, threads): (Vec<Digit>, Vec<Digit>) =
                digit.sources.iter().partition(|source| source.dimension == Dimension::Register);
            let values: Vec<Value> = threads.iter().map(|source| self.digit(emit, *source)).collect();
            let Some(value) = values.into_iter().reduce(|left, right| emit.binary(Opcode::Xor, left, right))
            else {
                continue;
            };
            if own.is_empty() {
                let scaled = emit.mul_int(value, digit.position as i64);
                base = emit.add(base, scaled);
            } else {
                mixed.push((digit.position as i64, value, own));
            }
        }
        let coordinate = |register: &u64| {
            let pure = digits
                .iter()
                .filter(|digit| digit.sources.iter().all(|source| source.dimension == Dimension::Register));
            let known: i64 =
                pure.map(|digit| literal(&digit.sources, *register) * digit.position as i64).sum();
            let mut sum = base;
            for (position, value, own) in &mixed {
                let bits = emit.int(literal(own, *register));
                let bits = emit.binary(Opcode::Xor, *value, bits);
                let scaled = emit.mul_int(bits, *position);
                sum = emit.add(sum, scaled);
            }
            emit.add_int(sum, known)
        };
        registers.iter().map(coordinate).collect()
    }

    /// The offsets in memory, in elements, of what some registers hold. Strides are known, and multiples of an element's size.
    pub fn offsets(
        &self,
        emit: &mut Emit<'_>,
        (layout, memory): (&ValueLayout, &MemoryLayout),
        element_bits: u64,
        registers: &[u64],
    ) -> Vec<Value> {
        let bits = element_bits as i64;
        let Some(places) = layout.then(memory).filter(|_| memory.pad().is_none()) else {
            return registers
                .iter()
                .map(|register| self.walked(emit, (layout, memory), bits, *register))
                .collect();
        };
        let mut linear = emit.int(0);
        let mut crossed = emit.int(0);
        for dimension in [Dimension::Lane, Dimension::Warp] {
            for (position, digit) in places.digits(dimension.name()) {
                let source = Digit { dimension, position, size: digit.size };
                if let Stride::Known(stride) = digit.stride
                    && stride != 0
                {
                    let value = self.digit(emit, source);
                    let scaled = emit.mul_int(value, stride / bits);
                    linear = emit.add(linear, scaled);
                }
                if digit.xor != 0 {
                    let value = self.carryless(emit, source, digit.xor / element_bits);
                    crossed = emit.binary(Opcode::Xor, crossed, value);
                }
            }
        }
        let has_xor =
            Dimension::ALL.iter().any(|it| places.digits(it.name()).iter().any(|(_, it)| it.xor != 0));
        let offset = |register: &u64| {
            let [mut known, mut xor] = [0i64; 2];
            for (position, digit) in places.digits(Dimension::Register.name()) {
                let value = register / position % digit.size;
                if let Stride::Known(stride) = digit.stride {
                    known += stride / bits * value as i64;
                }
                for bit in (0..64).filter(|bit| value >> bit & 1 == 1) {
                    xor ^= ((digit.xor / element_bits) << bit) as i64;
                }
            }
            let sum = emit.add_int(linear, known);
            if !has_xor {
                return sum;
            }
            let xor = emit.int(xor);
            let both = emit.binary(Opcode::Xor, crossed, xor);
            emit.binary(Opcode::Xor, sum, both)
        };
        registers.iter().map(offset).collect()
    }

    /// The xor of `xor << bit` over the bits of a digit.
    fn carryless(&self, emit: &mut Emit<'_>, digit: Digit, xor: u64) -> Value {
        let number = self.digit(emit, digit);
        let mut sum: Option<Value> = None;
        for bit in (0..64).filter(|bit| xor >> bit & 1 == 1) {
            let amount = emit.int(bit);
            let moved = emit.binary(Opcode::Shl, number, amount);
            sum = Some(sum.map_or(moved, |sum| emit.binary(Opcode::Xor, sum, moved)));
        }
        sum.unwrap_or_else(|| emit.int(0))
    }

    /// An offset from the coordinates of the element, where the digits of hardware and memory have no common refinement, and
    /// where there is a pad.
    fn walked(
        &self,
        emit: &mut Emit<'_>,
        (layout, memory): (&ValueLayout, &MemoryLayout),
        bits: i64,
        register: u64,
    ) -> Value {
        let [mut linear, mut crossed] = [emit.int(0); 2];
        for (axis, _) in memory.axes() {
            let coordinate = self.along(emit, layout, axis, &[register])[0];
            for (position, digit) in memory.digits(axis) {
                let upper = emit.div_by(coordinate, position as i64);
                let value = emit.rem_by(upper, digit.size as i64);
                if let Stride::Known(stride) = digit.stride
                    && stride != 0
                {
                    let scaled = emit.mul_int(value, stride / bits);
                    linear = emit.add(linear, scaled);
                }
                for bit in (0..64).filter(|bit| ((digit.xor / bits as u64) >> bit) & 1 == 1) {
                    let amount = emit.int(bit);
                    let moved = emit.binary(Opcode::Shl, value, amount);
                    crossed = emit.binary(Opcode::Xor, crossed, moved);
                }
            }
        }
        let offset = emit.binary(Opcode::Xor, linear, crossed);
        match memory.pad() {
            Some(pad) => {
                let rows = emit.div_by(offset, pad.every as i64 / bits);
                let gap = emit.mul_int(rows, pad.bits as i64 / bits);
                emit.add(offset, gap)
            }
            None => offset,
        }
    }
}

/// The digits of lanes and warps that hold the same as others, which move nothing.
pub fn thread_replicas(layout: &ValueLayout) -> Vec<Digit> {
    let of_threads = |digit: &Digit| matches!(digit.dimension, Dimension::Lane | Dimension::Warp);
    layout.replicas().into_iter().filter(of_threads).collect()
}
