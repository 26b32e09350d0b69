//! Arrays in the memory that kernels use: who owns it, how elements lie in it.
//!
//! - `array.rs`: an array whose element type and rank the run knows.
//! - `storage.rs`: its memory, which parts and graphs share.
//! - `element.rs`: Rust types as elements.
//! - `layout.rs`: structs in the layouts of the device, and in the host's.
//! - `mapped.rs`: arrays of the host that the emulator uses where they are.
//! - `strided.rs`: padding and `bool`s of many elements.

pub(crate) mod array;
pub(crate) mod element;
pub(crate) mod layout;
pub(crate) mod mapped;
pub(crate) mod storage;
pub(crate) mod strided;
