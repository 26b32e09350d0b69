//! Device memory of the emulator: a 64-bit address space with separate, named allocations.
//!
//! Every allocation starts on a multiple of [`ALIGNMENT`] and is followed by a gap at least as long as itself, so that
//! an index that runs past an array lands in no allocation and is reported instead of corrupting a neighbour.
//! Other state spaces are windows of the same address space (generic addressing): see the `*_WINDOW` constants.
//!
//! Blocks of one launch run on several host threads and may race in the emulated program. So that such a race is
//! not undefined behaviour on the host, every access during a launch is a relaxed atomic access (a plain `mov` on
//! the usual hosts).

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// An address in device memory. Zero is never valid.
pub type DevicePtr = u64;

/// Alignment of every allocation, in bytes.
pub const ALIGNMENT: u64 = 256;

/// Where kernel parameters appear in generic addressing.
pub const PARAM_WINDOW: u64 = 0x3000_0000_0000;
/// Where a thread's local memory appears in generic addressing.
pub const LOCAL_WINDOW: u64 = 0x4000_0000_0000;
/// Where a block's shared memory appears in generic addressing.
pub const SHARED_WINDOW: u64 = 0x5000_0000_0000;
/// Where constant memory appears in generic addressing; addresses in `.const` are offsets from here.
pub const CONST_WINDOW: u64 = 0x6000_0000_0000;
/// The first address given to global memory, whose generic and own addresses are equal.
pub const GLOBAL_BASE: u64 = 0x7000_0000_0000;
/// Every window is this long.
pub const WINDOW_BYTES: u64 = 0x1000_0000_0000;

/// Words after the end of every piece of memory: as much as the widest access, so that lanes that are switched off can be
/// pointed at its start.
pub const SLACK: usize = 8;

/// Memory of the host that is used in place has at least so many bytes: [`SLACK`] words start where it starts.
pub const MAPPED_BYTES: u64 = SLACK as u64 * 8;

/// The gap after an allocation is at least this long, in bytes.
const MINIMUM_GAP: u64 = 1 << 20;

/// NVIDIA's driver takes allocations from blocks of this length, one behind the other.
const BLOCK: u64 = 2 << 20;
/// Where they begin, in a block, is a multiple of this.
const STEP: u64 = 512;

/// What went wrong in a request to the memory from the host's side.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("cannot allocate {bytes} bytes for `{name}` on the emulator: the host has not so much memory")]
    OutOfMemory { name: String, bytes: u64 },
    #[error("no allocation starts at address {address:#x}")]
    NotAnAllocation { address: u64 },
    #[error("{bytes} bytes at address {address:#x} do not lie within one allocation")]
    OutOfRange { address: u64, bytes: u64 },
    #[error(
        "{bytes} bytes of the host at {host:#x} cannot be used in place: at least {MAPPED_BYTES} from a multiple of 8 can"
    )]
    NotMappable { host: usize, bytes: u64 },
}

/// One allocation.
pub struct Allocation {
    /// The address of its first byte.
    pub base: u64,
    /// Its length in bytes; zero is allowed, and then every access faults.
    pub size: u64,
    /// For messages: the user's name for the array.
    pub name: String,
    /// Stores from the device fault.
    pub read_only: bool,
    /// The bytes, in words so that accesses of up to eight bytes are aligned on the host.
    words: Words,
    /// For each byte whether anyone has written it, where that is tracked.
    written: Option<Box<[AtomicU8]>>,
}

/// Words on the heap that stay where they are when their owner moves: the host may have pointers to them.
struct Words {
    start: NonNull<AtomicU64>,
    count: usize,
    /// Whether somebody else frees them.
    borrowed: bool,
}

// SAFETY: it owns its words, which are atomic.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    fn layout(count: usize) -> Option<std::alloc::Layout> {
        std::alloc::Layout::array::<AtomicU64>(count).ok().filter(|layout| layout.size() > 0)
    }

    fn zeroed(count: usize) -> Option<Self> {
        // SAFETY: the layout is not empty; zero bytes are valid atomic words.
        let start = unsafe { std::alloc::alloc_zeroed(Self::layout(count)?) };
        NonNull::new(start.cast()).map(|start| Self { start, count, borrowed: false })
    }
}

impl std::ops::Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: so many words were given, and live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.count).filter(|_| !self.borrowed) {
            // SAFETY: given by `zeroed` with this layout, freed once.
            unsafe { std::alloc::dealloc(self.start.as_ptr().cast(), layout) };
        }
    }
}

impl std::fmt::Debug for Allocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {:#x}, {} bytes", self.name, self.base, self.size)
    }
}

impl Allocation {
    /// The host address of the first byte. Valid for atomic access: for `size` bytes, rounded up to eight where the memory
    /// is the emulator's own.
    pub fn host(&self) -> *mut u8 {
        self.words.start.as_ptr().cast()
    }

    /// Whether all of these bytes have been written by the host or by a kernel; true where that is not tracked.
    pub fn is_written(&self, offset: u64, bytes: u64) -> bool {
        self.marks(offset, bytes)
            .is_none_or(|marks| marks.iter().all(|mark| mark.load(Ordering::Relaxed) == 1))
    }

    pub(super) fn mark_written(&self, offset: u64, bytes: u64) {
        self.mark(offset, bytes, 1);
    }

    fn mark(&self, offset: u64, bytes: u64, to: u8) {
        self.marks(offset, bytes)
            .unwrap_or_default()
            .iter()
            .for_each(|mark| mark.store(to, Ordering::Relaxed));
    }

    fn marks(&self, offset: u64, bytes: u64) -> Option<&[AtomicU8]> {
        self.written.as_ref()?.get(offset as usize..(offset + bytes) as usize)
    }

    fn contains(&self, address: u64, bytes: u64) -> bool {
        address
            .checked_sub(self.base)
            .is_some_and(|offset| offset <= self.size && bytes <= self.size - offset)
    }

    fn bytes(&self, offset: u64, len: usize) -> &[AtomicU8] {
        debug_assert!(offset + len as u64 <= self.size);
        // SAFETY: the words hold at least `size` bytes, an `AtomicU8` has no alignment and any value, and the range
        // lies within (the callers check it, by `contains`). All access to the words is atomic.
        unsafe { std::slice::from_raw_parts(self.host().add(offset as usize) as *const AtomicU8, len) }
    }
}

/// All allocations, in the order of their addresses.
#[derive(Debug, Default)]
pub struct Memory {
    table: Vec<Allocation>,
    /// A multiple of [`BLOCK`].
    next_global: u64,
    /// How much of the driver's present block would be taken.
    taken: u64,
    next_const: u64,
    /// Whether further allocations keep track of what has been written.
    tracking: bool,
}

impl Memory {
    pub fn new() -> Self {
        Memory {
            table: Vec::new(),
            next_global: GLOBAL_BASE,
            taken: 0,
            next_const: CONST_WINDOW,
            tracking: false,
        }
    }

    /// Allocates `size` zeroed bytes of global memory.
    pub fn alloc(&mut self, size: u64, name: &str) -> Result<DevicePtr, MemoryError> {
        self.alloc_as(size, size, name)
    }

    /// Allocates `size` zeroed bytes of global memory, for which the runtime asks NVIDIA's driver for `length` bytes. The
    /// address is, within a block of 2 MiB, what the driver gives to a process that asks for the same lengths in the same
    /// order and frees nothing: some counters depend on that.
    pub fn alloc_as(&mut self, size: u64, length: u64, name: &str) -> Result<DevicePtr, MemoryError> {
        let length = length.clamp(1, BLOCK).next_multiple_of(STEP);
        let place = if self.taken + length > BLOCK { 0 } else { self.taken };
        let base = self.alloc_at(place, size, name)?;
        // A long one has blocks of its own.
        if length < BLOCK {
            self.taken = place + length;
        }
        Ok(base)
    }

    /// Gives an address to memory of the host, which is used where it is. [`free`](Self::free) takes the address back and
    /// leaves the memory alone.
    ///
    /// # Safety
    /// Until then, so many bytes are there, and nobody else writes them during launches that use them; nobody reads them
    /// during launches that write them.
    pub unsafe fn map(
        &mut self,
        host: *mut u8,
        size: u64,
        read_only: bool,
        name: &str,
    ) -> Result<DevicePtr, MemoryError> {
        let refused = MemoryError::NotMappable { host: host.addr(), bytes: size };
        let start = NonNull::new(host.cast::<AtomicU64>()).filter(|start| start.is_aligned());
        let Some(start) = start.filter(|_| (MAPPED_BYTES..GLOBAL_BASE).contains(&size)) else {
            return Err(refused);
        };
        let words = Words { start, count: (size / 8) as usize, borrowed: true };
        let base = self.next_global;
        self.next_global = (base + size + size.max(MINIMUM_GAP)).next_multiple_of(BLOCK);
        self.insert(Allocation { base, size, name: name.to_owned(), read_only, words, written: None });
        self.mark_written(base, size);
        Ok(base)
    }

    /// Allocates a module's variable: the driver takes these from elsewhere.
    pub(super) fn alloc_variable(&mut self, size: u64, name: &str) -> Result<DevicePtr, MemoryError> {
        self.alloc_at(0, size, name)
    }

    /// Allocates at a distance from a multiple of [`BLOCK`].
    fn alloc_at(&mut self, place: u64, size: u64, name: &str) -> Result<DevicePtr, MemoryError> {
        let base = self.next_global + place;
        let fits = size < GLOBAL_BASE && base < u64::MAX / 2;
        let allocation = if fits { allocate(base, size, name, false) } else { None };
        let allocation =
            allocation.ok_or_else(|| MemoryError::OutOfMemory { name: name.to_owned(), bytes: size })?;
        self.next_global = (base + size + size.max(MINIMUM_GAP)).next_multiple_of(BLOCK);
        self.insert(allocation);
        Ok(base)
    }

    /// Allocates constant memory, at its generic address. The device may not write it.
    pub(super) fn alloc_const(&mut self, size: u64, name: &str) -> Result<DevicePtr, MemoryError> {
        let base = self.next_const;
        let allocation = allocate(base, size, name, true)
            .ok_or_else(|| MemoryError::OutOfMemory { name: name.to_owned(), bytes: size })?;
        self.next_const = (base + size + MINIMUM_GAP).next_multiple_of(ALIGNMENT);
        self.insert(allocation);
        Ok(base)
    }

    /// Keeps track, for every further allocation, of which bytes have been written.
    pub(super) fn track(&mut self) {
        self.tracking = true;
    }

    /// Counts bytes as written.
    pub(super) fn mark_written(&self, address: u64, bytes: u64) {
        if let Ok((allocation, offset)) = self.range(address, bytes) {
            allocation.mark(offset, bytes, 1);
        }
    }

    /// Counts bytes as not written, whatever they hold.
    pub(super) fn forget(&self, address: u64, bytes: u64) {
        if let Ok((allocation, offset)) = self.range(address, bytes) {
            allocation.mark(offset, bytes, 0);
        }
    }

    fn insert(&mut self, mut allocation: Allocation) {
        if self.tracking {
            allocation.written = Some((0..allocation.size).map(|_| AtomicU8::new(0)).collect());
        }
        let at = self.table.partition_point(|other| other.base < allocation.base);
        self.table.insert(at, allocation);
    }

    /// Frees the allocation that starts at `address`.
    pub fn free(&mut self, address: DevicePtr) -> Result<(), MemoryError> {
        let at = self
            .table
            .binary_search_by_key(&address, |allocation| allocation.base)
            .map_err(|_| MemoryError::NotAnAllocation { address })?;
        self.table.remove(at);
        Ok(())
    }

    /// The allocations in the order of their addresses.
    pub fn allocations(&self) -> &[Allocation] {
        &self.table
    }

    /// The position in [`allocations`](Self::allocations) of the one that holds the byte at `address`.
    pub fn find(&self, address: u64) -> Option<usize> {
        let after = self.table.partition_point(|allocation| allocation.base <= address);
        let at = after.checked_sub(1)?;
        (address - self.table[at].base < self.table[at].size).then_some(at)
    }

    /// The allocation that starts nearest below `address`, or the first: for messages.
    pub fn nearest(&self, address: u64) -> Option<&Allocation> {
        let after = self.table.partition_point(|allocation| allocation.base <= address);
        self.table.get(after.saturating_sub(1))
    }

    fn range(&self, address: u64, bytes: u64) -> Result<(&Allocation, u64), MemoryError> {
        let after = self.table.partition_point(|allocation| allocation.base <= address);
        let allocation = after.checked_sub(1).map(|at| &self.table[at]);
        match allocation {
            Some(allocation) if allocation.contains(address, bytes) => {
                Ok((allocation, address - allocation.base))
            }
            _ => Err(MemoryError::OutOfRange { address, bytes }),
        }
    }

    /// That so many bytes at an address lie within one allocation.
    pub fn check(&self, at: DevicePtr, bytes: u64) -> Result<(), MemoryError> {
        self.range(at, bytes).map(|_| ())
    }

    /// Copies bytes from the host to the device.
    pub fn copy_in(&self, to: DevicePtr, from: &[u8]) -> Result<(), MemoryError> {
        let (allocation, offset) = self.range(to, from.len() as u64)?;
        allocation.mark(offset, from.len() as u64, 1);
        // Word by word where both ends allow: large arrays pass here.
        let bytes = allocation.bytes(offset, from.len());
        if offset.is_multiple_of(8) {
            let words = &allocation.words[(offset / 8) as usize..][..from.len() / 8];
            let (chunks, rest) = from.as_chunks::<8>();
            for (word, chunk) in words.iter().zip(chunks) {
                word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
            }
            copy_bytes_in(&bytes[from.len() - rest.len()..], rest);
        } else {
            copy_bytes_in(bytes, from);
        }
        Ok(())
    }

    /// Copies bytes from the device to the host.
    pub fn copy_out(&self, from: DevicePtr, to: &mut [u8]) -> Result<(), MemoryError> {
        let (allocation, offset) = self.range(from, to.len() as u64)?;
        let bytes = allocation.bytes(offset, to.len());
        let len = to.len();
        if offset.is_multiple_of(8) {
            let words = &allocation.words[(offset / 8) as usize..][..len / 8];
            let (chunks, rest) = to.as_chunks_mut::<8>();
            for (word, chunk) in words.iter().zip(chunks) {
                *chunk = word.load(Ordering::Relaxed).to_ne_bytes();
            }
            let start = len - rest.len();
            copy_bytes_out(&bytes[start..], rest);
        } else {
            copy_bytes_out(bytes, to);
        }
        Ok(())
    }

    /// Sets `len` bytes to `value`.
    pub fn fill(&self, at: DevicePtr, value: u8, len: u64) -> Result<(), MemoryError> {
        let (allocation, offset) = self.range(at, len)?;
        allocation.mark(offset, len, 1);
        // Word by word, as in `copy_in`.
        let whole = if offset.is_multiple_of(8) { len / 8 } else { 0 };
        let words = &allocation.words[(offset / 8) as usize..][..whole as usize];
        words.iter().for_each(|word| word.store(u64::from_ne_bytes([value; 8]), Ordering::Relaxed));
        for byte in allocation.bytes(offset + whole * 8, (len - whole * 8) as usize) {
            byte.store(value, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn copy_bytes_in(to: &[AtomicU8], from: &[u8]) {
    for (to, from) in to.iter().zip(from) {
        to.store(*from, Ordering::Relaxed);
    }
}

fn copy_bytes_out(from: &[AtomicU8], to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.load(Ordering::Relaxed);
    }
}

fn allocate(base: u64, size: u64, name: &str, read_only: bool) -> Option<Allocation> {
    let words = usize::try_from(size.div_ceil(8)).ok()?.checked_add(SLACK)?;
    let words = Words::zeroed(words)?;
    Some(Allocation { base, size, name: name.to_owned(), read_only, words, written: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_come_back_at_any_alignment() {
        let mut memory = Memory::new();
        let at = memory.alloc(100, "a").unwrap();
        let bytes: Vec<u8> = (0..77).collect();
        for start in [0, 1, 5, 8, 16] {
            memory.copy_in(at + start, &bytes).unwrap();
            let mut back = vec![0; 77];
            memory.copy_out(at + start, &mut back).unwrap();
            assert_eq!(back, bytes);
        }
    }

    #[test]
    fn a_fill_reaches_its_range_and_no_further() {
        let mut memory = Memory::new();
        let at = memory.alloc(64, "a").unwrap();
        for start in [0, 3, 8, 21] {
            for len in [0, 1, 7, 8, 19, 40] {
                memory.fill(at, 0, 64).unwrap();
                memory.fill(at + start, 0xA5, len).unwrap();
                let mut back = [0; 64];
                memory.copy_out(at, &mut back).unwrap();
                let wanted = |position| if (start..start + len).contains(&position) { 0xA5 } else { 0 };
                assert!((0..64).zip(back).all(|(position, byte)| byte == wanted(position)), "{start} {len}");
            }
        }
    }

    #[test]
    fn ranges_outside_are_refused() {
        let mut memory = Memory::new();
        let at = memory.alloc(16, "a").unwrap();
        let next = memory.alloc(16, "b").unwrap();
        assert!(next - at > MINIMUM_GAP && next.is_multiple_of(ALIGNMENT));
        assert_eq!(
            memory.copy_in(at + 9, &[0; 8]),
            Err(MemoryError::OutOfRange { address: at + 9, bytes: 8 })
        );
        assert!(memory.copy_in(at + 16, &[]).is_ok());
        assert!(memory.copy_in(at - 1, &[0]).is_err());
        memory.free(at).unwrap();
        assert!(memory.copy_in(at, &[0]).is_err());
        assert_eq!(memory.free(at), Err(MemoryError::NotAnAllocation { address: at }));
    }

    /// As read on an H200: `cuMemAlloc` of three arrays and 512 bytes, in processes of their own.
    #[test]
    fn allocations_lie_in_blocks_as_the_driver_places_them() {
        for (length, places) in [
            (262_144, [0, 0x40000, 0x80000, 0xc0000]),
            (81_920, [0, 0x14000, 0x28000, 0x3c000]),
            (20_480, [0, 0x5000, 0xa000, 0xf000]),
            (1_048_576, [0, 0x10_0000, 0, 0x10_0000]),
            (4_000_256, [0; 4]),
        ] {
            let mut memory = Memory::new();
            let lengths = [length, length, length, 512];
            let bases = lengths.map(|length| memory.alloc(length, "array").unwrap());
            assert_eq!(bases.map(|base| base % BLOCK), places, "{length} bytes");
            assert!(bases.windows(2).zip(lengths).all(|(pair, length)| pair[1] - pair[0] >= 2 * length));
        }
    }

    #[test]
    fn memory_of_the_host_is_used_in_place() {
        let mut memory = Memory::new();
        let mut host = vec![7u64; 9];
        let start: *mut u8 = host.as_mut_ptr().cast();
        // SAFETY: `host` lives until the end, and is looked at between the calls alone.
        let at = unsafe { memory.map(start, 70, false, "host") }.unwrap();
        memory.copy_in(at + 8, &[1; 8]).unwrap();
        assert!(memory.copy_in(at + 64, &[1; 7]).is_err());
        memory.free(at).unwrap();
        assert_eq!(host[..3], [7, 0x0101_0101_0101_0101, 7]);
        // SAFETY: as above.
        let small = unsafe { memory.map(start, MAPPED_BYTES - 1, false, "small") };
        assert!(matches!(small, Err(MemoryError::NotMappable { .. })));
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        let mut memory = Memory::new();
        assert!(matches!(memory.alloc(u64::MAX, "big"), Err(MemoryError::OutOfMemory { .. })));
        assert!(matches!(memory.alloc(1 << 46, "big"), Err(MemoryError::OutOfMemory { .. })));
    }
}
