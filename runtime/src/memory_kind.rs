//! The kinds of memory that an array can lie in, and what can be said of managed memory.

/// Where the elements of an array are. Kernels take arrays of every kind alike; what differs is the way of the bytes.
///
/// Page-locked ("pinned") host memory, the host's end of fast copies, is no kind of array: it is a buffer of its own,
/// [`Pinned`](crate::Pinned). Kernels never see it, so the host may use it as a slice at any time, without waiting.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Memory {
    /// The device's own memory: the fastest for kernels. The host copies to and from it.
    #[default]
    Device,
    /// Page-locked host memory that kernels read and write over the bus ("zero-copy"). No copies; right for data that
    /// a kernel touches once, wrong for data that it touches again and again.
    Mapped,
    /// Memory whose pages move between host and device to where they are touched ("unified").
    Managed,
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Memory::Device => "device memory",
            Memory::Mapped => "mapped host memory",
            Memory::Managed => "managed memory",
        })
    }
}

/// What is known of an array in managed memory. It changes the speed of accesses, never their meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Advice {
    /// It is read far more often than written: host and device may each keep a copy of a page until one writes it.
    ReadMostly,
    /// The same no longer.
    NotReadMostly,
    /// Pages stay in the device's memory where they can.
    PreferDevice,
    /// Pages stay in the host's memory where they can; the device reads them over the bus.
    PreferHost,
    /// Pages go to where they are touched.
    NoPreference,
}

/// Where pages can go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// The host's memory.
    Host,
    /// The memory of the array's device.
    Device,
}
