//! Layouts: maps between digits.
//!
//! An axis of a tile, and each dimension of the hardware, is a mixed-radix number. Its digits are bits, or
//! *counted* digits of any size at any place: 192 = 3·64, 12 warps = 3·4, 87 items a thread. A layout says
//! which digit of one side is which digit of the other. There are two kinds.
//!
//! - A [`ValueLayout`] maps digits of [`Dimension`]s (`register`, `lane`, `warp`, `cluster`) to elements of
//!   named axes. A digit that moves nothing is a replica. Every element is held somewhere. A digit of an axis
//!   may be the xor of digits of hardware, where all are bits.
//! - A [`MemoryLayout`] maps elements to an offset in *bits*. A digit adds a multiple of its stride, known or
//!   a multiple of a parameter; bits may be xored into bits that no sum carries across (a swizzle). Last
//!   comes the pad. A digit that does nothing is a broadcast.
//!
//! This room imports nothing and knows no target: banks, sectors, widths and costs are parameters. What it
//! cannot say in digits (radices without a common refinement, xors under sums that carry) is `None`, and is
//! counted place by place up to [`MOST_PLACES`] where a question has to be answered all the same. Axes may
//! exceed what is in them: a row of 7000 on 384 threads has 384·19 = 7296 places, and which of them count is
//! said by a mask elsewhere. Layouts of memory start at 0: what swizzles by the address (hardware does) needs
//! a base aligned to the span of the swizzle.
//!
//! # Text
//!
//! Factors, the most significant first. Factors of a dimension take its digits in reading order, the last one
//! the lowest; otherwise `@` says where a digit starts: `lane:8@4` is (lane / 4) % 8. `_` names what moves
//! nothing, `^` xors. A digit of memory is `size*stride^bits`; `$0` is parameter 0. `text.rs` has the
//! grammar.
//!
//! ```text
//! i = register:2 · lane:8, j = lane:4 · register:2            the result of mma.m16n8
//! i = register:2@2 · lane:8, p = register:2@4 · lane:4 · register:2@1      its left operand
//! _ = warp:4, i = warp:3 · lane:32                            12 warps: each element is held by 4
//! i = 8*8192 · 8*1024^128, j = 64*16                          rows of 128 bytes, 128-byte swizzle
//! i = 64*32$0, j = 64*32                                      rows of a dynamic pitch in words
//! i = 32*1024, j = 32*32, pad 32 after 1024                   rows of 33 words
//! ```
//!
//! # Example
//!
//! A tile of 64×64 words on 4 warps; each thread has 4 by 2 pieces of 4 neighbours, 32 registers:
//!
//! ```text
//! i = warp:4 · register:4 · lane:4, j = register:2 · lane:8 · register:4
//! ```
//!
//! Over rows (`i = 64*2048, j = 64*32`) an [`Access`] has vectors of 4 words, 8 of them a thread:
//! `register:4` adds 32 bits a step, and all other strides are multiples of 128. Eight lanes, which shared
//! memory with 32 banks serves at a time, have 128 bytes in a row: 4 warps · 8 vectors · 4 phases make 128
//! wavefronts, the least there can be. Composed with the memory ([`ValueLayout::then`]) it is
//!
//! ```text
//! register = 4*8192 · 2*1024 · 4*32, lane = 4*2048 · 8*128, warp = 4*32768, cluster = 1
//! ```
//!
//! Over columns (`i = 64*32, j = 64*2048`) vectors are of one word, and a request takes 8 wavefronts: 1024. A
//! sum along `j` meets in a warp; its result has the layout without `j`, where 8 lanes and 8 registers are
//! replicas.
//!
//! # Files
//!
//! | file | what |
//! |---|---|
//! | `digits` | dimensions, factors, the common refinement of radices |
//! | `map`, `gf2` | maps between digits: apply, compose, invert, enumerate; linear algebra over bits |
//! | `value` | layouts of values: equality, slice, merge, split, product, divide, replicas |
//! | `memory`, `stride`, `normal` | layouts of memory: offsets, pads, swizzles; the one form of each function |
//! | `text`, `error` | the text and its reader; what can be wrong |
//! | `compose`, `access` | from hardware to offsets; vectors, sectors, wavefronts |
//! | `linear` | the last two where offsets are xors of bits, quickly |
//! | `scope` | between which threads conversions and reductions move data |
//! | `convert`, `shuffle`, `staging` | the cheapest way between two layouts; inside a warp; through shared memory |
//! | `footprint` | what sums of axes read, and the layout of its copy |

mod access;
mod compose;
mod convert;
mod digits;
mod error;
mod footprint;
mod gf2;
mod linear;
mod map;
mod memory;
mod normal;
mod scope;
mod shuffle;
mod staging;
mod stride;
mod text;
mod value;

pub use access::{Access, Banks, Vectors, Wavefronts, sectors, wavefronts};
pub use convert::Conversion;
pub use digits::Dimension;
pub use error::Error;
pub use footprint::{Footprint, Subscript, footprint, staged};
pub use map::{DigitMap, MOST_PLACES};
pub use memory::{MemoryDigit, MemoryLayout, Offset, Pad};
pub use scope::Scope;
pub use shuffle::Round;
pub use staging::{Costs, Staged};
pub use stride::Stride;
pub use value::{AxisDigit, Digit, Place, ValueLayout};

#[cfg(test)]
mod tests;
