//! What a launch is given and what it gives back.

use std::sync::atomic::AtomicBool;

use super::fault::Fault;

/// Instructions that one warp may execute in one block, unless the launch says otherwise: enough for minutes of
/// honest work, so that only a loop without end gets there.
pub const DEFAULT_INSTRUCTION_LIMIT: u64 = 1 << 32;

/// Grid, block, and how to run them.
#[derive(Clone, Copy)]
pub struct LaunchConfig<'a> {
    /// Blocks, x y z.
    pub grid: [u32; 3],
    /// Threads of a block, x y z.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// What `%gridid` is: which launch it is.
    pub number: u64,
    /// Instructions that one warp may execute in one block before that counts as a runaway loop.
    pub instruction_limit: u64,
    /// Host threads to use at most; zero for all.
    pub threads_at_most: usize,
    /// Set by anyone to give the launch up.
    pub cancel: Option<&'a AtomicBool>,
    /// Called now and then with the number of blocks that are done, from several threads.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
}

impl std::fmt::Debug for LaunchConfig<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "grid {:?}, block {:?}, {} bytes shared", self.grid, self.block, self.shared_bytes)
    }
}

impl<'a> LaunchConfig<'a> {
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        LaunchConfig {
            grid,
            block,
            shared_bytes: 0,
            number: 1,
            instruction_limit: DEFAULT_INSTRUCTION_LIMIT,
            threads_at_most: 0,
            cancel: None,
            progress: None,
        }
    }

    /// Blocks and threads along x only.
    pub fn linear(blocks: u32, threads: u32) -> Self {
        LaunchConfig::new([blocks, 1, 1], [threads, 1, 1])
    }

    pub fn shared(self, shared_bytes: u32) -> Self {
        LaunchConfig { shared_bytes, ..self }
    }

    /// Threads of one block.
    pub fn threads(&self) -> u64 {
        self.block.iter().map(|extent| u64::from(*extent)).product()
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().fold(1u64, |product, extent| product.saturating_mul(u64::from(*extent)))
    }

    /// Where the block with that number is; numbers count x first.
    pub fn block_position(&self, block: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(|extent| u64::from(extent).max(1));
        [(block % x) as u32, (block / x % y) as u32, (block / x / y) as u32]
    }

    /// Where the thread with that number in its block is.
    pub fn thread_position(&self, thread: u32) -> [u32; 3] {
        let [x, y, _] = self.block.map(|extent| extent.max(1));
        [thread % x, thread / x % y, thread / x / y]
    }
}

/// The bytes of one kernel argument, little-endian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArgValue(pub Vec<u8>);

macro_rules! arg_from {
    ($($ty:ty),*) => {$(
        impl From<$ty> for ArgValue {
            fn from(value: $ty) -> Self {
                ArgValue(value.to_le_bytes().to_vec())
            }
        }
    )*};
}
arg_from!(i8, u8, i16, u16, i32, u32, i64, u64, f32, f64);

impl From<&[u8]> for ArgValue {
    fn from(bytes: &[u8]) -> Self {
        ArgValue(bytes.to_vec())
    }
}

/// What a finished launch says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LaunchReport {
    pub blocks: u64,
    /// Instructions executed, counted once a warp.
    pub warp_instructions: u64,
    /// The same, counted once for each lane for which the guard held.
    pub lane_instructions: u64,
}

/// Why a launch gave no result.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum LaunchError {
    /// The launch itself is impossible: nothing ran.
    #[error("cannot launch `{entry}`: {reason}")]
    Refused { entry: String, reason: String },
    #[error(transparent)]
    Fault(Box<Fault>),
    /// Given up on request.
    #[error("the launch of `{entry}` was cancelled")]
    Cancelled { entry: String },
}
