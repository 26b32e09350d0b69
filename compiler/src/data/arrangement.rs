//! How elements lie in memory and come out of it, as schedules say and the host and the device carry out.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How the elements of an array lie in device memory. The host converts from and to the C layout.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Elements one after the other, each in its C layout.
    Aos,
    /// Each leaf is a dense array of its own allocation (of `count` scalars an element, element-major).
    Soa,
    /// Groups of `w` elements (a power of two, at least 8); in a group, leaf after leaf in declaration order:
    /// leaf k starts at `sum over j < k of w * size_j * count_j` (always aligned, as `w` is at least 8) and holds
    /// element e's scalar c at `(e * count_k + c) * size_k`; a group takes the sum over all leaves. The last
    /// group is whole in memory, its unused part unspecified.
    Aosoa(u32),
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Aos => f.write_str("aos"),
            Layout::Soa => f.write_str("soa"),
            Layout::Aosoa(width) => write!(f, "aosoa({width})"),
        }
    }
}

/// The cache operator of an array's loads and, where it has one, stores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheMode {
    /// Cached at all levels.
    Ca,
    /// Cached in L2 only.
    Cg,
    /// Streaming: evict first.
    Cs,
    /// Read-only path; refused for arrays that the kernel writes.
    Nc,
}

impl CacheMode {
    const ALL: [CacheMode; 4] = [CacheMode::Ca, CacheMode::Cg, CacheMode::Cs, CacheMode::Nc];

    /// The operator's name in PTX, which is the word in a schedule.
    pub fn name(self) -> &'static str {
        match self {
            CacheMode::Ca => "ca",
            CacheMode::Cg => "cg",
            CacheMode::Cs => "cs",
            CacheMode::Nc => "nc",
        }
    }

    /// The operator of a name.
    pub fn from_name(name: &str) -> Option<CacheMode> {
        CacheMode::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// How a tile lies in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Scalars between the end of a row and the next one.
    Pad(u32),
    /// Places of a row exchanged by exclusive or with the row's number.
    Swizzle,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Pad(pad) => write!(f, "pad {pad}"),
            Placement::Swizzle => f.write_str("swizzle"),
        }
    }
}
