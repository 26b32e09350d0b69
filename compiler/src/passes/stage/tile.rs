//! A tile of what one load of the source reads, in shared memory: which thread brings which part of it, and where that
//! part lies. `copier.rs` emits the code.

use crate::analysis::{least_wavefronts, wavefronts};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::{BufferData, BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::ir::placement::SharedTile;
use crate::ir::schedule::Placement;
use crate::manifest::Expr;

/// One of the two axes of a tile.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// The index in the source's loop.
    pub index: Value,
    /// Iterations in the tile: a power of two.
    pub size: i64,
}

/// Something that is read for what a tile holds: a load, or a branch around some.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    pub inst: Inst,
    /// The type of the values that are read.
    pub scalar: Scalar,
    /// Neighbours along the fast side that are read at once; 1 too where it is the same for all of them.
    pub lanes: i64,
}

/// The shape of a tile, all of it powers of two except the pitch.
#[derive(Clone, Debug)]
pub struct Tile {
    pub load: Inst,
    /// What gives what the tile holds: the load, or code that it is part of.
    pub given: Inst,
    /// What is read for it: the load alone, unless more is computed.
    pub leaves: Vec<Leaf>,
    pub scalar: Scalar,
    /// Along which neighbours lie side by side in global memory.
    pub fast: Side,
    pub slow: Side,
    /// Scalars that a thread loads at once along the fast side.
    pub lanes: i64,
    /// Threads side by side along the fast side.
    pub across: i64,
    pub threads: i64,
    /// Whether the fast side is the contiguous one in shared memory too.
    pub straight: bool,
    /// Scalars from one row to the next in shared memory.
    pub pitch: i64,
    /// Places within a row are exchanged by exclusive or with this many low bits of the row's number; never beside
    /// padding.
    pub swizzle: Option<u32>,
}

impl Tile {
    /// A tile that the threads of a block copy, `lanes` scalars at a time where that does not leave threads idle. They
    /// bring `piece` bytes of a row before they go to the next one. `None` where the tile has too few elements for them.
    pub fn new(
        (load, scalar): (Inst, Scalar),
        (fast, slow): (Side, Side),
        (lanes, threads): (i64, i64),
        straight: bool,
        piece: i64,
    ) -> Option<Self> {
        let mut lanes = lanes.min(fast.size);
        while lanes > 1 && fast.size * slow.size < threads * lanes {
            lanes /= 2;
        }
        let line = (piece / (scalar.size() as i64 * lanes)).max(1);
        let mut across = (fast.size / lanes).min(line).min(threads);
        while threads / across > slow.size {
            across *= 2;
        }
        let whole = across * lanes <= fast.size
            && fast.size % (across * lanes) == 0
            && slow.size % (threads / across).max(1) == 0;
        let minor = if straight { fast.size } else { slow.size };
        whole.then_some(Self {
            load,
            given: load,
            leaves: vec![Leaf { inst: load, scalar, lanes }],
            scalar,
            fast,
            slow,
            lanes,
            across,
            threads,
            straight,
            pitch: minor,
            swizzle: None,
        })
    }

    /// Whether it holds more than what a load gives.
    pub fn is_computed(&self) -> bool {
        self.given != self.load
    }

    pub fn bytes(&self) -> i64 {
        self.scalar.size() as i64
    }

    /// Scalars of one copy of the tile.
    pub fn elements(&self) -> i64 {
        self.pitch * if self.straight { self.slow.size } else { self.fast.size }
    }

    /// Offsets of the parts that one thread brings, as (fast, slow), the thread's own place left out.
    pub fn parts(&self) -> Vec<(i64, i64)> {
        let (columns, rows) = (self.across * self.lanes, self.threads / self.across);
        let mut parts = Vec::new();
        for slow in (0..self.slow.size).step_by(rows as usize) {
            for fast in (0..self.fast.size).step_by(columns as usize) {
                parts.push((fast, slow));
            }
        }
        parts
    }

    /// Where an element lies in shared memory.
    pub fn place(&self, fast: i64, slow: i64) -> i64 {
        let (row, column) = if self.straight { (slow, fast) } else { (fast, slow) };
        row * self.pitch + (column ^ (row & self.mask()))
    }

    /// The bits of a row's number that its places are exchanged by.
    fn mask(&self) -> i64 {
        self.swizzle.map_or(0, |bits| (1 << bits) - 1)
    }

    /// Emits where an element lies, for any way of placing.
    pub fn emit_place(&self, emit: &mut Emit<'_>, fast: Value, slow: Value) -> Value {
        let (row, column) = if self.straight { (slow, fast) } else { (fast, slow) };
        let start = emit.mul_int(row, self.pitch);
        let mask = emit.int(self.mask());
        let bits = emit.binary(Opcode::And, row, mask);
        let column = emit.binary(Opcode::Xor, column, bits);
        emit.add(start, column)
    }

    /// The name of the array that the tile is of.
    pub fn array(&self, kernel: &Kernel) -> String {
        match kernel.insts[self.load].payload {
            Payload::Access { buffer, .. } => kernel.buffers[buffer].name.clone(),
            _ => String::new(),
        }
    }

    /// How it lies, as a schedule says it.
    pub fn placement(&self) -> Placement {
        let minor = if self.straight { self.fast.size } else { self.slow.size };
        match self.swizzle {
            Some(_) => Placement::Swizzle,
            None => Placement::Pad((self.pitch - minor) as u32),
        }
    }

    /// The tile with so many scalars between its rows.
    pub fn with_pad(mut self, pad: i64) -> Self {
        self.pitch += pad;
        self
    }

    /// The tile with its rows' places exchanged, so that neighbours along either side lie in different banks.
    pub fn swizzled(mut self) -> Self {
        let minor = if self.straight { self.fast.size } else { self.slow.size };
        self.swizzle = Some(minor.min(32).ilog2());
        self
    }

    /// Whether a thread can store its part with one instruction.
    pub fn stores_vectors(&self) -> bool {
        self.straight && self.pitch % self.lanes == 0 && (self.swizzle.is_none() || self.lanes == 1)
    }

    /// Wavefronts in which one warp stores one part.
    pub fn store_cost(&self) -> u32 {
        let at = |lane: i64, step: i64| {
            let (fast, slow) = (lane % self.across * self.lanes + step, lane / self.across);
            (self.place(fast, slow) * self.bytes()) as u64
        };
        if self.stores_vectors() {
            let addresses: [u64; 32] = std::array::from_fn(|lane| at(lane as i64, 0));
            return wavefronts(&addresses, (self.lanes * self.bytes()) as u64);
        }
        let cost = |step| {
            wavefronts(&std::array::from_fn::<u64, 32, _>(|lane| at(lane as i64, step)), self.bytes() as u64)
        };
        (0..self.lanes).map(cost).sum()
    }

    /// What no pitch makes [`store_cost`](Self::store_cost) less than.
    fn least_store_cost(&self) -> u32 {
        let (lanes, bytes) = (self.lanes as u64, self.bytes() as u64);
        least_wavefronts(lanes * bytes).min(lanes as u32 * least_wavefronts(bytes))
    }

    /// Widens the pitch, by at most 16 bytes and a multiple of `align` scalars, to what makes the copy and the reads
    /// cheapest. `reads` says what a tile's reads cost, in wavefronts.
    pub fn pad(&mut self, align: i64, reads: impl Fn(&Self) -> u32) {
        let minor = self.pitch;
        let most = (32 / self.bytes()).max(align);
        let least = self.least_store_cost();
        let mut best: Option<(u32, i64)> = None;
        for pad in (0..=most).step_by(align as usize) {
            let tile = Self { pitch: minor + pad, ..self.clone() };
            let cost = tile.store_cost() + reads(&tile);
            if best.is_none_or(|(known, _)| cost < known) {
                best = Some((cost, tile.pitch));
            }
            if cost <= least {
                break;
            }
        }
        if let Some((_, pitch)) = best {
            self.pitch = pitch;
        }
    }

    /// The shared buffer for `copies` tiles: its axes are the copy and the place.
    pub fn allocate(&self, kernel: &mut Kernel, copies: i64) -> Buffer {
        let Payload::Access { buffer, .. } = kernel.insts[self.load].payload else {
            unreachable!("a tile is of a load")
        };
        let name = format!("{}_tile", kernel.buffers[buffer].name);
        let buffer = kernel.buffers.push(BufferData::temporary(
            name,
            BufferKind::Shared,
            self.scalar,
            vec![Expr::Int(copies), Expr::Int(self.elements())],
        ));
        let row = if self.straight { self.fast.size } else { self.slow.size };
        kernel.schedule.tiles.push(SharedTile {
            buffer,
            row: row as u64,
            pitch: self.pitch as u64,
            swizzle: self.mask() as u64,
        });
        buffer
    }
}
