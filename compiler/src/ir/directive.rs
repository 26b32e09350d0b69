//! The directives of a schedule: what the user writes, and passes record what they chose as.

use crate::data::{CacheMode, Layout, Placement};
use std::fmt;

/// How a kernel shall be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Directive {
    /// `block 256`: threads of a block.
    Block(u32),
    /// `order i, j`: nesting of parallel axes, outermost first; the last one gets the lanes.
    Order(Vec<String>),
    /// `tile i: 32`: iterations of an axis that one block computes; of a reduced axis, one step.
    Tile { axis: String, size: u32 },
    /// `per_thread i: 4`: iterations of an axis that one thread computes side by side.
    PerThread { axis: String, count: u32 },
    /// `stage a pad 1 depth 2`: tiles of the array's elements go through shared memory.
    Stage { array: String, place: Option<Placement>, depth: Option<u32> },
    /// `unroll p: 4`: iterations of a serial loop that stand one after the other; `None` for all.
    Unroll { axis: String, factor: Option<u32> },
    /// `vectorize i: 4`: neighbours along an axis that one access brings; 1 for none.
    Vectorize { axis: String, width: u32 },
    /// `warps i: 4`: warps of a block along an axis.
    Warps { axis: String, count: u32 },
    /// `split p: 64`: pieces into which a reduction is cut over the grid; 1 for none.
    Split { axis: String, pieces: u32 },
    /// `atomic c`: the pieces of a reduction are combined in the array itself, in any order.
    Atomic { array: String },
    /// `fast_math`: approximate forms of f32 functions and divisions.
    FastMath,
    /// `tf32`: leave to round factors of sums of products of f32 to 10 bits behind the point, for matrix instructions.
    Tf32,
    /// `layout x: soa`. Carried out by lowering: stands here among the choices only.
    Layout { array: String, layout: Layout },
    /// `cache x: cs`, likewise.
    Cache { array: String, mode: CacheMode },
}

impl Directive {
    /// The directive's word.
    pub fn word(&self) -> &'static str {
        match self {
            Directive::Block(_) => "block",
            Directive::Order(_) => "order",
            Directive::Tile { .. } => "tile",
            Directive::PerThread { .. } => "per_thread",
            Directive::Stage { .. } => "stage",
            Directive::Unroll { .. } => "unroll",
            Directive::Vectorize { .. } => "vectorize",
            Directive::Warps { .. } => "warps",
            Directive::Split { .. } => "split",
            Directive::Atomic { .. } => "atomic",
            Directive::FastMath => "fast_math",
            Directive::Tf32 => "tf32",
            Directive::Layout { .. } => "layout",
            Directive::Cache { .. } => "cache",
        }
    }

    /// The axis or array that it is about, if it is about one.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Directive::Tile { axis, .. }
            | Directive::PerThread { axis, .. }
            | Directive::Unroll { axis, .. }
            | Directive::Vectorize { axis, .. }
            | Directive::Warps { axis, .. }
            | Directive::Split { axis, .. } => Some(axis),
            Directive::Stage { array, .. }
            | Directive::Atomic { array }
            | Directive::Layout { array, .. }
            | Directive::Cache { array, .. } => Some(array),
            Directive::Block(_) | Directive::Order(_) | Directive::FastMath | Directive::Tf32 => None,
        }
    }

    /// Whether it says something about an axis or an array.
    pub fn names(&self, name: &str) -> bool {
        match self {
            Directive::Order(names) => names.iter().any(|known| known == name),
            directive => directive.subject() == Some(name),
        }
    }

    /// Whether both say the same kind of thing about the same name.
    pub fn same_subject(&self, other: &Directive) -> bool {
        match (self, other) {
            (Directive::Order(one), Directive::Order(other)) => {
                one.len() == other.len() && one.iter().all(|name| other.contains(name))
            }
            _ => self.word() == other.word() && self.subject() == other.subject(),
        }
    }
}

impl fmt::Display for Directive {
    /// As it stands in a `schedule`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Directive::Block(threads) => write!(f, "block {threads}"),
            Directive::Order(names) => write!(f, "order {}", names.join(", ")),
            Directive::Tile { axis, size } => write!(f, "tile {axis}: {size}"),
            Directive::PerThread { axis, count } => write!(f, "per_thread {axis}: {count}"),
            Directive::Stage { array, place, depth } => {
                write!(f, "stage {array}")?;
                place.map_or(Ok(()), |place| write!(f, " {place}"))?;
                depth.map_or(Ok(()), |depth| write!(f, " depth {depth}"))
            }
            Directive::Unroll { axis, factor: Some(factor) } => write!(f, "unroll {axis}: {factor}"),
            Directive::Unroll { axis, factor: None } => write!(f, "unroll {axis}"),
            Directive::Vectorize { axis, width } => write!(f, "vectorize {axis}: {width}"),
            Directive::Warps { axis, count } => write!(f, "warps {axis}: {count}"),
            Directive::Split { axis, pieces } => write!(f, "split {axis}: {pieces}"),
            Directive::Atomic { array } => write!(f, "atomic {array}"),
            Directive::FastMath => f.write_str("fast_math"),
            Directive::Tf32 => f.write_str("tf32"),
            Directive::Layout { array, layout } => write!(f, "layout {array}: {layout}"),
            Directive::Cache { array, mode } => write!(f, "cache {array}: {}", mode.name()),
        }
    }
}
