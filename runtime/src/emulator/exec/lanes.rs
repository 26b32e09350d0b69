//! The registers of one warp, and loops over its lanes.

use crate::emulator::program::Inst;

pub const LANES: usize = 32;
/// The mask of a warp with all its lanes.
pub const FULL: u32 = u32::MAX;

/// One register of all lanes.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Column<T>(pub [T; LANES]);

impl<T: Copy + Default> Default for Column<T> {
    fn default() -> Self {
        Column([T::default(); LANES])
    }
}

/// The registers of one warp.
#[derive(Clone, Debug, Default)]
pub struct Registers {
    pub w32: Vec<Column<u32>>,
    pub w64: Vec<Column<u64>>,
    pub predicates: Vec<u32>,
}

impl Registers {
    #[inline(always)]
    pub fn c32(&self, column: u32) -> &[u32; LANES] {
        &self.w32[column as usize].0
    }

    #[inline(always)]
    pub fn c64(&self, column: u32) -> &[u64; LANES] {
        &self.w64[column as usize].0
    }

    #[inline(always)]
    pub fn predicate(&self, column: u32) -> u32 {
        self.predicates[column as usize]
    }

    /// Writes the lanes in `mask` of a predicate.
    #[inline(always)]
    pub fn set_predicate(&mut self, column: u32, mask: u32, bits: u32) {
        let to = &mut self.predicates[column as usize];
        *to = (*to & !mask) | (bits & mask);
    }
}

/// What a column can hold.
pub trait Lane: Copy + Default {
    fn columns(registers: &Registers) -> &[Column<Self>];
    fn columns_mut(registers: &mut Registers) -> &mut [Column<Self>];
}

impl Lane for u32 {
    #[inline(always)]
    fn columns(registers: &Registers) -> &[Column<u32>] {
        &registers.w32
    }

    #[inline(always)]
    fn columns_mut(registers: &mut Registers) -> &mut [Column<u32>] {
        &mut registers.w32
    }
}

impl Lane for u64 {
    #[inline(always)]
    fn columns(registers: &Registers) -> &[Column<u64>] {
        &registers.w64
    }

    #[inline(always)]
    fn columns_mut(registers: &mut Registers) -> &mut [Column<u64>] {
        &mut registers.w64
    }
}

/// Writes the lanes in `mask` of a column.
#[inline(always)]
pub fn write<D: Lane>(registers: &mut Registers, column: u32, mask: u32, from: &[D; LANES]) {
    let to = &mut D::columns_mut(registers)[column as usize].0;
    if mask == FULL {
        *to = *from;
    } else {
        for lane in 0..LANES {
            to[lane] = if mask >> lane & 1 == 1 { from[lane] } else { to[lane] };
        }
    }
}

#[inline(always)]
pub fn map1<D: Lane, A: Lane>(registers: &mut Registers, inst: &Inst, mask: u32, f: impl Fn(A) -> D) {
    let mut out = [D::default(); LANES];
    let a = &A::columns(registers)[inst.a as usize].0;
    for lane in 0..LANES {
        out[lane] = f(a[lane]);
    }
    write(registers, inst.d, mask, &out);
}

#[inline(always)]
pub fn map2<D: Lane, A: Lane, B: Lane>(
    registers: &mut Registers,
    inst: &Inst,
    mask: u32,
    f: impl Fn(A, B) -> D,
) {
    let mut out = [D::default(); LANES];
    let a = &A::columns(registers)[inst.a as usize].0;
    let b = &B::columns(registers)[inst.b as usize].0;
    for lane in 0..LANES {
        out[lane] = f(a[lane], b[lane]);
    }
    write(registers, inst.d, mask, &out);
}

#[inline(always)]
pub fn map3<D: Lane, A: Lane, B: Lane, C: Lane>(
    registers: &mut Registers,
    inst: &Inst,
    mask: u32,
    f: impl Fn(A, B, C) -> D,
) {
    let mut out = [D::default(); LANES];
    let a = &A::columns(registers)[inst.a as usize].0;
    let b = &B::columns(registers)[inst.b as usize].0;
    let c = &C::columns(registers)[inst.c as usize].0;
    for lane in 0..LANES {
        out[lane] = f(a[lane], b[lane], c[lane]);
    }
    write(registers, inst.d, mask, &out);
}

/// The lanes in which `f` holds, as a mask.
#[inline(always)]
pub fn test1<A: Lane>(registers: &Registers, a: u32, f: impl Fn(A) -> bool) -> u32 {
    let a = &A::columns(registers)[a as usize].0;
    let mut bits = 0;
    for (lane, a) in a.iter().enumerate() {
        bits |= u32::from(f(*a)) << lane;
    }
    bits
}

/// The lanes in which `f` holds, as a mask.
#[inline(always)]
pub fn test2<A: Lane>(registers: &Registers, a: u32, b: u32, f: impl Fn(A, A) -> bool) -> u32 {
    let a = &A::columns(registers)[a as usize].0;
    let b = &A::columns(registers)[b as usize].0;
    let mut bits = 0;
    for lane in 0..LANES {
        bits |= u32::from(f(a[lane], b[lane])) << lane;
    }
    bits
}

/// The set bits of a mask, from the lowest: for work that should not be done for inactive lanes.
#[inline(always)]
pub fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            lane
        })
    })
}
