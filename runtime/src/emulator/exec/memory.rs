//! Loads and stores: addresses are checked for all lanes at once, then each lane's value is moved.
//!
//! The quick check takes the allocation that the same instruction hit last time and asks of all lanes together
//! whether they lie in it and are aligned. Only when it fails are lanes looked at one by one, which finds the right
//! allocations, or the lane to blame.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::lanes::{FULL, LANES, Registers, lanes_of, write};
use super::{Outcome, fault, multiversioned};
use crate::emulator::fault::{AccessKind, FaultKind, Near};
use crate::emulator::memory::{
    CONST_WINDOW, GLOBAL_BASE, LOCAL_WINDOW, Memory, PARAM_WINDOW, SHARED_WINDOW, SLACK, WINDOW_BYTES,
};
use crate::emulator::opcodes::{LoadForm, MemorySpace, StoreForm};
use crate::emulator::program::Inst;

#[cfg(target_endian = "big")]
compile_error!("the emulator moves device bytes as they are and needs a little-endian host");

/// A stretch of addresses that lies in one piece on the host.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    host: *mut u8,
    base: u64,
    size: u64,
    /// How far apart the lanes' own copies lie (local memory); else zero.
    lane_stride: usize,
    read_only: bool,
}

impl Region {
    const NONE: Region =
        Region { host: std::ptr::null_mut(), base: 0, size: 0, lane_stride: 0, read_only: false };
}

/// Memory with slack at its end, so that lanes that are switched off can be pointed at its start.
#[derive(Debug, Default)]
pub struct Arena {
    words: Vec<AtomicU64>,
    size: u64,
}

impl Arena {
    pub fn new(size: u64) -> Self {
        let words = (size.div_ceil(8) as usize) + SLACK;
        Arena { words: (0..words).map(|_| AtomicU64::new(0)).collect(), size }
    }

    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut arena = Arena::new(bytes.len() as u64);
        for (word, chunk) in arena.words.iter_mut().zip(bytes.chunks(8)) {
            let mut full = [0; 8];
            full[..chunk.len()].copy_from_slice(chunk);
            *word.get_mut() = u64::from_le_bytes(full);
        }
        arena
    }

    pub fn clear(&mut self) {
        for word in &mut self.words {
            *word.get_mut() = 0;
        }
    }

    /// A value of up to eight bytes at an aligned offset, extended to 64 bits.
    pub fn read(&self, offset: u32, bytes: u32, signed: bool) -> u64 {
        let word = self.words.get(offset as usize / 8).map_or(0, |word| word.load(Relaxed));
        let cut = 64 - 8 * bytes;
        let value = word >> (8 * (offset % 8)) << cut;
        if signed { ((value as i64) >> cut) as u64 } else { value >> cut }
    }

    /// Some bytes of it.
    pub fn bytes(&self, offset: u64, count: usize) -> Option<Vec<u8>> {
        let end = offset.checked_add(count as u64).filter(|end| *end <= self.size)?;
        let byte = |at: u64| (self.words[at as usize / 8].load(Relaxed) >> (8 * (at % 8))) as u8;
        Some((offset..end).map(byte).collect())
    }

    fn host(&self) -> *mut u8 {
        self.words.as_ptr() as *mut u8
    }
}

/// All memory that one block sees.
pub struct View<'a> {
    pub memory: &'a Memory,
    pub shared: Arena,
    /// Local memory of all threads: warp after warp, lane after lane.
    pub local: Arena,
    /// Bytes of local memory of one thread, a multiple of 16.
    pub local_stride: u64,
    pub params: &'a Arena,
    /// For each instruction, the region that it hit last.
    cache: Vec<Region>,
}

/// Where each lane's bytes are on the host. Lanes that are switched off point at something valid.
pub type Pointers = [*mut u8; LANES];

/// What an access asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub pc: usize,
    pub warp: usize,
    pub space: MemorySpace,
    pub access: AccessKind,
    pub bytes: u32,
}

/// The addresses of all lanes.
#[inline(always)]
pub fn addresses(r: &Registers, column: u32, wide: bool, offset: i64) -> [u64; LANES] {
    let mut out = [0; LANES];
    if wide {
        let base = r.c64(column);
        for lane in 0..LANES {
            out[lane] = base[lane].wrapping_add(offset as u64);
        }
    } else {
        let base = r.c32(column);
        for lane in 0..LANES {
            // Addresses of 32 bits wrap as such.
            out[lane] = u64::from(base[lane].wrapping_add(offset as u32));
        }
    }
    out
}

impl<'a> View<'a> {
    pub fn new(
        memory: &'a Memory,
        params: &'a Arena,
        shared_bytes: u64,
        local_bytes: u64,
        threads: u64,
        instructions: usize,
    ) -> Self {
        let local_stride = local_bytes.next_multiple_of(16);
        View {
            memory,
            shared: Arena::new(shared_bytes),
            local: Arena::new(local_stride * threads.next_multiple_of(LANES as u64)),
            local_stride,
            params,
            cache: vec![Region::NONE; instructions],
        }
    }

    /// Finds every lane's bytes, or the fault of the lowest lane that has one.
    #[inline(always)]
    pub fn locate(&mut self, request: Request, addresses: &[u64; LANES], mask: u32) -> Outcome<Pointers> {
        let region = self.cache[request.pc];
        let limit = (region.size as i64).wrapping_sub(i64::from(request.bytes));
        let mut offsets = [0u64; LANES];
        if mask == FULL {
            for lane in 0..LANES {
                offsets[lane] = addresses[lane].wrapping_sub(region.base);
            }
        } else {
            for lane in 0..LANES {
                let offset = addresses[lane].wrapping_sub(region.base);
                offsets[lane] = if mask >> lane & 1 == 1 { offset } else { 0 };
            }
        }
        // Sizes stay below 2^63, so the sign bit of either tells an offset outside.
        let (mut outside, mut low) = (0u64, 0u64);
        for offset in &offsets {
            outside |= offset | limit.wrapping_sub(*offset as i64) as u64;
            low |= offset;
        }
        let aligned = low & u64::from(request.bytes - 1) == 0;
        if (outside as i64) < 0 || !aligned || region.host.is_null() || region.lane_stride != 0 {
            return self.locate_each(request, addresses, mask);
        }
        let mut pointers = [region.host; LANES];
        for lane in 0..LANES {
            pointers[lane] = region.host.wrapping_add(offsets[lane] as usize);
        }
        Ok(pointers)
    }

    /// Lane by lane: after the quick check failed.
    #[inline(never)]
    fn locate_each(&mut self, request: Request, addresses: &[u64; LANES], mask: u32) -> Outcome<Pointers> {
        let writes = request.access != AccessKind::Load;
        let size = u64::from(request.bytes);
        let mut pointers = [self.shared.host(); LANES];
        let mut region = Region::NONE;
        for lane in lanes_of(mask) {
            let address = addresses[lane];
            let inside = |region: &Region| {
                address >= region.base
                    && address - region.base + size <= region.size
                    && !region.host.is_null()
            };
            if !inside(&region) {
                region = self.region(request.space, request.warp, address);
                if region.read_only && writes {
                    let kind = FaultKind::ReadOnly { memory: request.space.kind(), address };
                    return fault(1 << lane, kind);
                }
                if !inside(&region) {
                    return fault(1 << lane, self.out_of_bounds(request, address));
                }
                self.cache[request.pc] = region;
            }
            let offset = address - region.base;
            if offset & (size - 1) != 0 {
                let (access, memory) = (request.access, request.space.kind());
                let kind = FaultKind::Misaligned { access, memory, address, bytes: request.bytes };
                return fault(1 << lane, kind);
            }
            pointers[lane] = region.host.wrapping_add(offset as usize + lane * region.lane_stride);
        }
        Ok(pointers)
    }

    /// The region of an address; an empty one where there is none.
    fn region(&self, space: MemorySpace, warp: usize, address: u64) -> Region {
        match space {
            MemorySpace::Shared => self.shared_region(0),
            MemorySpace::Local => self.local_region(warp, 0),
            MemorySpace::Param => self.param_region(0),
            MemorySpace::Const => {
                let region = self.allocated(address.wrapping_add(CONST_WINDOW), true);
                Region { base: region.base.wrapping_sub(CONST_WINDOW), ..region }
            }
            MemorySpace::Global => self.allocated(address, false),
            MemorySpace::Generic => match address / WINDOW_BYTES * WINDOW_BYTES {
                SHARED_WINDOW => self.shared_region(SHARED_WINDOW),
                LOCAL_WINDOW => self.local_region(warp, LOCAL_WINDOW),
                PARAM_WINDOW => self.param_region(PARAM_WINDOW),
                CONST_WINDOW => self.allocated(address, true),
                _ => self.allocated(address, false),
            },
        }
    }

    fn shared_region(&self, base: u64) -> Region {
        Region { host: self.shared.host(), base, size: self.shared.size, ..Region::NONE }
    }

    fn param_region(&self, base: u64) -> Region {
        Region { host: self.params.host(), base, size: self.params.size, read_only: true, ..Region::NONE }
    }

    fn local_region(&self, warp: usize, base: u64) -> Region {
        let stride = self.local_stride as usize;
        let host = self.local.host().wrapping_add(warp * LANES * stride);
        Region { host, base, size: self.local_stride, lane_stride: stride, read_only: false }
    }

    fn allocated(&self, address: u64, constant: bool) -> Region {
        let found = self.memory.find(address).map(|at| &self.memory.allocations()[at]);
        match found {
            // Constant memory has addresses of its own, below all others.
            Some(allocation) if (allocation.base < GLOBAL_BASE) == constant => Region {
                host: allocation.host(),
                base: allocation.base,
                size: allocation.size,
                lane_stride: 0,
                read_only: allocation.read_only,
            },
            _ => Region::NONE,
        }
    }

    #[cold]
    fn out_of_bounds(&self, request: Request, address: u64) -> FaultKind {
        let own = |name: &str, size| Some(Near { name: name.to_owned(), base: 0, size });
        let nearest = |address| {
            self.memory.nearest(address).map(|allocation| Near {
                name: allocation.name.clone(),
                base: allocation.base,
                size: allocation.size,
            })
        };
        let near = match request.space {
            MemorySpace::Shared => own("shared memory", self.shared.size),
            MemorySpace::Local => own("local memory", self.local_stride),
            MemorySpace::Param => own("parameters", self.params.size),
            MemorySpace::Const => nearest(address.wrapping_add(CONST_WINDOW))
                .map(|near| Near { base: near.base.wrapping_sub(CONST_WINDOW), ..near }),
            MemorySpace::Global | MemorySpace::Generic => nearest(address),
        };
        let (access, memory) = (request.access, request.space.kind());
        FaultKind::OutOfBounds { access, memory, address, bytes: request.bytes, near }
    }
}

/// An element in memory.
trait Element: Copy {
    /// # Safety
    /// `from` is aligned and valid for atomic access.
    unsafe fn load(from: *mut u8) -> Self;
    /// # Safety
    /// `to` is aligned and valid for atomic access.
    unsafe fn store(self, to: *mut u8);
}

macro_rules! element {
    ($ty:ty, $atomic:ty) => {
        impl Element for $ty {
            #[inline(always)]
            unsafe fn load(from: *mut u8) -> $ty {
                // SAFETY: the caller's.
                unsafe { <$atomic>::from_ptr(from.cast()) }.load(Relaxed)
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: the caller's.
                unsafe { <$atomic>::from_ptr(to.cast()) }.store(self, Relaxed);
            }
        }
    };
}
element!(u8, AtomicU8);
element!(u16, AtomicU16);
element!(u32, AtomicU32);
element!(u64, AtomicU64);

#[inline(always)]
fn gather<T: Element, D: super::lanes::Lane>(
    r: &mut Registers,
    column: u32,
    mask: u32,
    pointers: &Pointers,
    offset: usize,
    extend: impl Fn(T) -> D,
) {
    let mut out = [D::default(); LANES];
    for lane in 0..LANES {
        // SAFETY: `locate` checked the active lanes for range and alignment, and points the others at the start of
        // memory that has at least `SLACK` words.
        out[lane] = extend(unsafe { T::load(pointers[lane].wrapping_add(offset)) });
    }
    write(r, column, mask, &out);
}

#[inline(always)]
fn scatter<T: Element, S: super::lanes::Lane>(
    r: &Registers,
    column: u32,
    mask: u32,
    pointers: &Pointers,
    offset: usize,
    cut: impl Fn(S) -> T,
) {
    let values = &S::columns(r)[column as usize].0;
    if mask == FULL {
        for lane in 0..LANES {
            // SAFETY: `locate` checked all lanes for range and alignment.
            unsafe { cut(values[lane]).store(pointers[lane].wrapping_add(offset)) };
        }
    } else {
        for lane in lanes_of(mask) {
            // SAFETY: `locate` checked the active lanes for range and alignment.
            unsafe { cut(values[lane]).store(pointers[lane].wrapping_add(offset)) };
        }
    }
}

multiversioned! {
    /// Runs a load.
    pub fn load(form: LoadForm, r: &mut Registers, view: &mut View<'_>, lists: &[u32], i: &Inst, mask: u32, pc: usize, warp: usize) -> Outcome {
        let bytes = u32::from(form.width) * u32::from(form.count);
        let request = Request { pc, warp, space: form.space, access: AccessKind::Load, bytes };
        let pointers = view.locate(request, &addresses(r, i.a, form.wide_base, i.imm), mask)?;
        if form.width == 4 && form.count == 1 && !form.wide {
            gather(r, i.d, mask, &pointers, 0, |v: u32| v);
            return Ok(());
        }
        for element in 0..usize::from(form.count) {
            let d = if form.count == 1 { i.d } else { lists[i.d as usize + element] };
            let at = element * usize::from(form.width);
            match (form.width, form.signed, form.wide) {
                (1, false, false) => gather(r, d, mask, &pointers, at, |v: u8| u32::from(v)),
                (1, true, false) if form.half => {
                    gather(r, d, mask, &pointers, at, |v: u8| u32::from(v as i8 as u16));
                }
                (1, true, false) => gather(r, d, mask, &pointers, at, |v: u8| v as i8 as u32),
                (2, true, false) if !form.half => gather(r, d, mask, &pointers, at, |v: u16| v as i16 as u32),
                (2, _, false) => gather(r, d, mask, &pointers, at, |v: u16| u32::from(v)),
                (4, _, false) => gather(r, d, mask, &pointers, at, |v: u32| v),
                (1, false, true) => gather(r, d, mask, &pointers, at, |v: u8| u64::from(v)),
                (1, true, true) => gather(r, d, mask, &pointers, at, |v: u8| v as i8 as u64),
                (2, false, true) => gather(r, d, mask, &pointers, at, |v: u16| u64::from(v)),
                (2, true, true) => gather(r, d, mask, &pointers, at, |v: u16| v as i16 as u64),
                (4, false, true) => gather(r, d, mask, &pointers, at, |v: u32| u64::from(v)),
                (4, true, true) => gather(r, d, mask, &pointers, at, |v: u32| v as i32 as u64),
                _ => gather(r, d, mask, &pointers, at, |v: u64| v),
            }
        }
        Ok(())
    }
}

multiversioned! {
    /// Runs a store.
    pub fn store(form: StoreForm, r: &mut Registers, view: &mut View<'_>, lists: &[u32], i: &Inst, mask: u32, pc: usize, warp: usize) -> Outcome {
        let bytes = u32::from(form.width) * u32::from(form.count);
        let request = Request { pc, warp, space: form.space, access: AccessKind::Store, bytes };
        let pointers = view.locate(request, &addresses(r, i.a, form.wide_base, i.imm), mask)?;
        for element in 0..usize::from(form.count) {
            let b = if form.count == 1 { i.b } else { lists[i.b as usize + element] };
            let at = element * usize::from(form.width);
            match (form.width, form.wide) {
                (1, false) => scatter(r, b, mask, &pointers, at, |v: u32| v as u8),
                (2, false) => scatter(r, b, mask, &pointers, at, |v: u32| v as u16),
                (4, false) => scatter(r, b, mask, &pointers, at, |v: u32| v),
                (1, true) => scatter(r, b, mask, &pointers, at, |v: u64| v as u8),
                (2, true) => scatter(r, b, mask, &pointers, at, |v: u64| v as u16),
                (4, true) => scatter(r, b, mask, &pointers, at, |v: u64| v as u32),
                _ => scatter(r, b, mask, &pointers, at, |v: u64| v),
            }
        }
        Ok(())
    }
}

/// Eight elements of two bytes.
///
/// # Safety
/// The pointer is aligned to 16 bytes and valid for as many, for atomic access.
pub unsafe fn read_row(from: *mut u8) -> [u16; 8] {
    // SAFETY: the caller's.
    std::array::from_fn(|at| unsafe { u16::load(from.wrapping_add(2 * at)) })
}

/// Copies `read` bytes and zeroes the rest of `bytes`.
///
/// # Safety
/// Both pointers are aligned to `bytes` (4, 8 or 16) and valid for as many bytes, for atomic access.
pub unsafe fn copy_bytes(to: *mut u8, from: *mut u8, bytes: usize, read: usize) {
    for word in (0..bytes).step_by(4) {
        let valid = read.saturating_sub(word).min(4);
        let value = if valid == 0 {
            0
        } else {
            // SAFETY: the caller's; `word` is a multiple of four below `bytes`.
            let value = unsafe { u32::load(from.wrapping_add(word)) };
            if valid == 4 { value } else { value & ((1 << (8 * valid)) - 1) }
        };
        // SAFETY: as above.
        unsafe { value.store(to.wrapping_add(word)) };
    }
}
