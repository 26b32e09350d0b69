//! The IR's data structure. Construction goes through the builder; text through printer and parser.

pub use super::axis::{AxisData, Factor, Level};
use super::entities::{
    Axis, Block, Buffer, ConstantArray, Inst, Launch, OwnCombiner, Site, StaticArray, Symbol, Value,
};
use super::op::{Combiner, Constant, Opcode};
pub use super::phase::{Phase, Phases};
use super::schedule::Schedule;
use super::specialization::Specialization;
pub use super::tiles::{AxisSet, Tile, TileAxis, Tiling};
pub use crate::atoms::{Atom, FactorType};
pub use crate::data::CacheMode;
use crate::data::{ElementType, Scalar};
use crate::manifest;
use crate::source::Span;
use cranelift_entity::{EntityRef, PrimaryMap};
use smallvec::SmallVec;
use std::sync::Arc;

/// A list that is short nearly always: up to four of them are stored in place.
pub type Short<T> = SmallVec<[T; 4]>;

/// The regions of an instruction: two at most.
pub type Regions = SmallVec<[Block; 2]>;

/// The axes of a loop.
pub type Axes = SmallVec<[Axis; 2]>;

/// What a reduction combines with.
pub type Combiners = SmallVec<[Combiner; 2]>;

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Module {
    pub constants: PrimaryMap<ConstantArray, ArrayData>,
    pub statics: PrimaryMap<StaticArray, ArrayData>,
    pub kernels: Vec<Kernel>,
}

/// A constant or static array: C layout, row-major, little-endian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayData {
    pub name: String,
    pub element: ElementType,
    pub extents: Vec<u64>,
    pub bytes: Vec<u8>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    pub name: String,
    pub span: Span,
    /// The call signature, in order.
    pub arguments: Vec<ArgumentData>,
    /// Conditions that every launch has been checked for; passes may rely on them.
    pub facts: Vec<manifest::FactManifest>,
    /// Facts about the values of arrays. Passes may not rely on them: they are checked on the device.
    pub injections: Vec<manifest::InjectionManifest>,
    pub symbols: PrimaryMap<Symbol, SymbolData>,
    pub buffers: PrimaryMap<Buffer, BufferData>,
    pub sites: PrimaryMap<Site, SiteData>,
    /// Combiners of the user's own.
    pub combiners: PrimaryMap<OwnCombiner, CombinerData>,
    pub launches: PrimaryMap<Launch, LaunchData>,
    /// What launches do that are past the phases of the pass that runs, which finds nothing in them (`passes/past.rs`).
    pub past: Vec<Block>,
    pub plan: Vec<Step>,
    pub axes: PrimaryMap<Axis, AxisData>,
    pub blocks: PrimaryMap<Block, BlockData>,
    pub insts: PrimaryMap<Inst, InstData>,
    pub values: PrimaryMap<Value, ValueData>,
    /// The sizes that it is compiled for.
    pub specialization: Specialization,
    /// What the user's schedule says that passes carry out, and what they chose.
    pub schedule: Schedule,
}

/// One argument or result of the kernel.
#[derive(Clone, PartialEq, Debug)]
pub enum ArgumentData {
    /// A scalar or struct passed by value; its leaves that are used are symbols.
    Value { name: String, element: ElementType },
    /// An array: its buffer has this position and the direction.
    Array {
        buffer: Buffer,
        /// The caller's extents, where they are not the buffer's: axes that lie side by side can be one.
        shape: Option<Vec<manifest::Expr>>,
    },
}

impl ArgumentData {
    /// An array of the extents that its buffer has.
    pub fn array(buffer: Buffer) -> Self {
        Self::Array { buffer, shape: None }
    }
}

/// Uniform over a launch; expressions of the manifest name it by its index.
#[derive(Clone, PartialEq, Debug)]
pub struct SymbolData {
    /// `n`, `alpha`, `config.scale`.
    pub name: String,
    pub kind: manifest::SymbolKind,
    /// Storage type, in which it is passed; reading it gives the widened type.
    pub scalar: Scalar,
}

#[derive(Clone, PartialEq, Debug)]
pub struct BufferData {
    pub name: String,
    pub kind: BufferKind,
    pub element: ElementType,
    /// Over symbols.
    pub extents: Vec<manifest::Expr>,
    pub layout: manifest::Layout,
    /// From a `layout` directive: the SoA pass leaves it alone.
    pub layout_fixed: bool,
    /// From a `cache` directive.
    pub cache: Option<CacheMode>,
    /// Whether a subscript may run on behind the end of its axis, to the elements of the rows behind (`coalesce_axes`).
    pub runs_on: bool,
}

impl BufferData {
    /// An array of scalars that a pass makes for itself.
    pub fn temporary(
        name: impl Into<String>,
        kind: BufferKind,
        scalar: Scalar,
        extents: Vec<manifest::Expr>,
    ) -> Self {
        let (name, element, layout) = (name.into(), ElementType::scalar(scalar), manifest::Layout::Aos);
        Self { name, kind, element, extents, layout, layout_fixed: true, cache: None, runs_on: false }
    }

    /// How many elements there are, where literals say it.
    pub fn literal_elements(&self) -> Option<i64> {
        let mut extents = self.extents.iter();
        extents.try_fold(1i64, |all, extent| match extent {
            manifest::Expr::Int(extent) => all.checked_mul(*extent),
            _ => None,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferKind {
    /// An argument or result, by its position in the signature.
    Argument {
        position: usize,
        direction: manifest::Direction,
    },
    /// Provided by the runtime for one run of the plan.
    Scratch,
    Constant(ConstantArray),
    Static(StaticArray),
    /// One a thread, in local memory; extents are constants.
    Private,
    /// One a block, in shared memory; from phase `staged` on. Extents may be expressions of the launch.
    Shared,
}

#[derive(Clone, PartialEq, Debug)]
pub struct SiteData {
    pub span: Span,
    pub array: String,
    pub axis: usize,
    /// Whether the bits of the subscript, or of the array's value, are an unsigned number.
    pub unsigned: bool,
    /// The fact about the array's values that is checked, by its number; `None` where it is a subscript.
    pub injection: Option<usize>,
    /// What is asserted; `None` where it is a subscript or a fact.
    pub assertion: Option<manifest::AssertionManifest>,
    /// What is told, where it is a `print`: then nothing is checked.
    pub print: Option<manifest::PrintManifest>,
}

/// A combiner of the user's own. Its code is a kernel by itself (`combiner.rs`): passes, which look at launches, never
/// meet it, and a kernel's parts share it.
#[derive(Clone, PartialEq, Debug)]
pub struct CombinerData {
    /// As the user calls it.
    pub name: String,
    /// Of the values of one contribution, wide.
    pub types: Vec<Scalar>,
    /// What a reduction over nothing gives, of these types.
    pub identity: Vec<Constant>,
    /// Pure code: one launch, in phase `abstract`, whose root block has the values of two contributions for parameters
    /// and yields those of one.
    pub code: Arc<Kernel>,
}

impl CombinerData {
    /// The block of the code; `None` of a broken one.
    pub fn body(&self) -> Option<Block> {
        self.code.launches.values().next().map(|launch| launch.body)
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct LaunchData {
    /// The PTX entry's name: the kernel's, with `_1`, `_2` … where a kernel has several launches.
    pub name: String,
    pub phase: Phase,
    pub body: Block,
    /// Threads a block, once mapped.
    pub threads: Option<u32>,
    /// What a launch in phase `tiled` declares; `None` in all others.
    pub tiling: Option<Box<Tiling>>,
    /// Blocks in x, y and z of a launch whose threads are explicit (`block_index`, `thread_index`); `None` where
    /// the factors of its outer loop say it, or where one block is all.
    pub grid: Option<[manifest::Expr; 3]>,
    /// Conditions under which the plan reaches the launch; passes may rely on them, as on the kernel's facts.
    pub assume: Vec<manifest::Expr>,
    /// Blocks that a multiprocessor should be able to hold at once, if anybody has said: the assembler then keeps
    /// registers few enough.
    pub resident: Option<u32>,
    /// Arrays of which the launch accesses each element once: where nobody has said how they are cached, their lines
    /// make room first.
    pub streams: Vec<Buffer>,
}

impl Kernel {
    /// What passes may rely on in a launch, or in all where none is named: the kernel's facts, what its code relies on,
    /// and what the plan has found out before it comes to the launch.
    pub fn conditions(&self, launch: Option<Launch>) -> impl Iterator<Item = &manifest::Expr> {
        let assumed = launch.into_iter().flat_map(|launch| &self.launches[launch].assume);
        let facts = self.facts.iter().map(|fact| &fact.condition);
        facts.chain(&self.specialization.guard().relies_on).chain(assumed)
    }

    /// What a launch relies on that a symbol is: a literal.
    pub fn known_symbol(&self, launch: Launch, symbol: Symbol) -> Option<i64> {
        let parts = self.conditions(Some(launch)).flat_map(manifest::Expr::parts);
        parts.into_iter().find_map(|condition| match condition {
            manifest::Expr::Binary(manifest::BinaryOp::Equal, left, right) => match (&**left, &**right) {
                (manifest::Expr::Symbol(of), manifest::Expr::Int(value)) => {
                    (*of == symbol.index()).then_some(*value)
                }
                _ => None,
            },
            _ => None,
        })
    }
}

impl LaunchData {
    /// The one launch of a combiner's code.
    pub fn code(name: &str, body: Block) -> Self {
        Self {
            name: name.to_string(),
            phase: Phase::Abstract,
            body,
            threads: None,
            tiling: None,
            grid: None,
            assume: Vec::new(),
            resident: None,
            streams: Vec::new(),
        }
    }

    /// Whether the tiles of the launch have layouts.
    pub fn is_placed(&self) -> bool {
        self.tiling.as_ref().is_some_and(|tiling| !tiling.layouts.is_empty())
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    Launch(Launch),
    Repeat {
        symbol: Symbol,
        low: manifest::Expr,
        high: manifest::Expr,
        step: manifest::Expr,
        body: Vec<Step>,
    },
    Branch {
        condition: manifest::Expr,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
    /// Runs `test`, and while what that leaves in `condition` holds, `body` and `test` again. The condition is a scratch
    /// buffer of one `bool`.
    While {
        condition: Buffer,
        test: Vec<Step>,
        body: Vec<Step>,
    },
}

impl Step {
    /// The steps that this one runs, list by list: none where it is a launch.
    pub fn parts(&self) -> SmallVec<[&Vec<Step>; 2]> {
        match self {
            Step::Launch(_) => SmallVec::new(),
            Step::Repeat { body, .. } => [body].into_iter().collect(),
            Step::Branch { then, otherwise, .. } => [then, otherwise].into_iter().collect(),
            Step::While { test, body, .. } => [test, body].into_iter().collect(),
        }
    }

    /// The launches that it may run, in their order.
    pub fn launches(&self) -> Vec<Launch> {
        match self {
            Step::Launch(launch) => vec![*launch],
            step => step.parts().into_iter().flatten().flat_map(Step::launches).collect(),
        }
    }

    /// What [`parts`](Self::parts) gives, to be changed.
    pub fn parts_mut(&mut self) -> SmallVec<[&mut Vec<Step>; 2]> {
        match self {
            Step::Launch(_) => SmallVec::new(),
            Step::Repeat { body, .. } => [body].into_iter().collect(),
            Step::Branch { then, otherwise, .. } => [then, otherwise].into_iter().collect(),
            Step::While { test, body, .. } => [test, body].into_iter().collect(),
        }
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct BlockData {
    pub params: Short<Value>,
    pub insts: Vec<Inst>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ValueData {
    /// A wide scalar type: of the value, or of each of its elements. A tile may have a storage type, from where it is loaded
    /// or cast to the contraction that it is a factor of.
    pub ty: Scalar,
    /// Its shape; other than a scalar's in phase `tiled` alone.
    pub tile: Tile,
    pub definition: Definition,
    /// A readable name for the PTX register; from the source where there is one.
    pub name: Option<Arc<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Definition {
    Result(Inst, u16),
    Param(Block, u16),
}

#[derive(Clone, PartialEq, Debug)]
pub struct InstData {
    pub opcode: Opcode,
    pub payload: Payload,
    pub arguments: Short<Value>,
    pub results: Short<Value>,
    pub regions: Regions,
    pub span: Span,
}

/// What an instruction holds beside its operands; which kind an opcode takes is in the op table.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Payload {
    None,
    Constant(Constant),
    Symbol(Symbol),
    /// The storage type that a cast goes to (a narrow one rounds or wraps and widens again, unless the result is a tile of that
    /// type); that of the parts of a word.
    Cast(Scalar),
    /// Which leaf of which buffer; operands: one i64 a buffer axis, then one a leaf extent, then (store,
    /// atomic) the value.
    Access {
        buffer: Buffer,
        leaf: u32,
    },
    Atomic {
        buffer: Buffer,
        leaf: u32,
        op: Combiner,
    },
    Site(Site),
    Loop {
        axes: Axes,
    },
    Reduce {
        axes: Axes,
        combiners: Combiners,
    },
    /// A grid axis: 0 is x, 1 is y, 2 is z.
    Grid(u8),
    /// Which bits of the lane's number a shuffle flips: 1 to 31; how many groups of copies `copy_wait` leaves.
    Lanes(u8),
    /// How many of the operands are rows.
    Outer(u16),
    /// An axis of the launch's tiles, by its number.
    Index(u8),
    /// The axes that a reduction of tiles is along, and what it combines with.
    Along {
        axes: AxisSet,
        combiners: Combiners,
    },
    /// The axes that a contraction is along, and what it is made of.
    Contract {
        along: AxisSet,
        atom: Atom,
    },
    /// The types of the factors of a matrix instruction.
    Mma {
        left: FactorType,
        right: FactorType,
    },
}

impl Payload {
    /// The axes of a loop or of a reduction; none of other payloads.
    pub fn axes(&self) -> &[Axis] {
        match self {
            Payload::Loop { axes } | Payload::Reduce { axes, .. } => axes,
            _ => &[],
        }
    }
}
