//! A PTX module: version and target, source files, module-level variables, and kernel entries.

use cranelift_entity::PrimaryMap;

use super::binding::{Binding, Tile};
use super::instruction::Instruction;
use super::operand::{EntryVariable, Label, ModuleVariable, ParamId, Reg, Symbol};
use super::types::{RegClass, Space, Type};

/// A PTX ISA version, as in `.version 7.8`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    pub const fn new(major: u32, minor: u32) -> Self {
        Version { major, minor }
    }

    /// The newest version that is known here.
    pub const NEWEST: Version = Version { major: 9, minor: 1 };

    /// Whether there is such a version, as far as is known here.
    pub fn is_known(self) -> bool {
        const LAST_MINORS: [(u32, u32); 9] =
            [(1, 5), (2, 3), (3, 2), (4, 3), (5, 0), (6, 5), (7, 8), (8, 8), (9, Version::NEWEST.minor)];
        LAST_MINORS.iter().any(|(major, minor)| self.major == *major && self.minor <= *minor)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// One PTX module. Addresses are always 64 bits wide.
#[derive(Clone, PartialEq, Debug)]
pub struct Module {
    /// Comment lines at the top of the text.
    pub header: Vec<String>,
    pub version: Version,
    /// The `.target` name, for example `sm_90a`.
    pub target: String,
    /// The `.file` table.
    pub files: Vec<SourceName>,
    /// `.global`, `.const` and `.extern .shared` variables.
    pub variables: PrimaryMap<ModuleVariable, Variable>,
    pub entries: Vec<Entry>,
}

impl Module {
    pub fn new(version: Version, target: impl Into<String>) -> Self {
        Module {
            header: Vec::new(),
            version,
            target: target.into(),
            files: Vec::new(),
            variables: PrimaryMap::new(),
            entries: Vec::new(),
        }
    }

    /// The entry with that name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The name of a source file in the `.file` table.
    pub fn file_name(&self, index: u32) -> Option<&str> {
        self.files.iter().find(|file| file.index == index).map(|file| file.name.as_str())
    }
}

/// PTX strings know no escapes: what would end the string early becomes harmless.
pub(super) fn quotable(name: &str) -> String {
    name.replace('"', "'").replace(['\n', '\r'], " ")
}

/// A row of the `.file` table; `.loc` lines refer to it by its index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceName {
    pub index: u32,
    pub name: String,
}

/// How many elements a variable or a parameter has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    Scalar,
    Array(u64),
    /// `name[]`: sized at launch. Only for `.extern .shared`.
    Unsized,
}

/// A variable in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    pub name: String,
    pub space: Space,
    /// The element type.
    pub ty: Type,
    /// Alignment in bytes, a power of two.
    pub align: u32,
    pub length: Length,
    /// The initial bytes, little-endian, exactly as many as the variable has; absent means all zero
    /// (global and constant) or unspecified (shared and local).
    pub init: Option<Vec<u8>>,
    /// Declared `.extern`: sized at launch.
    pub external: bool,
    /// Declared `.visible`: the host can look it up by name.
    pub visible: bool,
}

impl Variable {
    /// An array without initial value, aligned to its element.
    pub fn array(name: impl Into<String>, space: Space, ty: Type, elements: u64) -> Self {
        Variable {
            name: name.into(),
            space,
            ty,
            align: ty.bytes(),
            length: Length::Array(elements),
            init: None,
            external: false,
            visible: false,
        }
    }

    /// The size in bytes; zero where it is only known at launch.
    pub fn bytes(&self) -> u64 {
        let elements = match self.length {
            Length::Scalar => 1,
            Length::Array(elements) => elements,
            Length::Unsized => 0,
        };
        elements.saturating_mul(self.ty.bytes().into())
    }
}

/// What a pointer parameter points to (`.ptr .global .align 16`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pointer {
    pub space: Space,
    /// Alignment in bytes of what it points to.
    pub align: u32,
}

/// A kernel parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    pub name: String,
    pub ty: Type,
    /// Alignment in bytes where it is stated; otherwise that of the type.
    pub align: Option<u32>,
    pub pointer: Option<Pointer>,
    /// `Scalar`, or `Array` for a by-value aggregate.
    pub length: Length,
}

impl Param {
    pub fn scalar(name: impl Into<String>, ty: Type) -> Self {
        Param { name: name.into(), ty, align: None, pointer: None, length: Length::Scalar }
    }

    /// A 64-bit pointer into global memory.
    pub fn global_pointer(name: impl Into<String>, align: u32) -> Self {
        let pointer = Some(Pointer { space: Space::Global, align });
        Param { pointer, ..Param::scalar(name, Type::U64) }
    }

    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        match self.length {
            Length::Array(elements) => elements.saturating_mul(self.ty.bytes().into()),
            _ => self.ty.bytes().into(),
        }
    }

    /// The alignment in bytes within the parameter buffer.
    pub fn alignment(&self) -> u32 {
        self.align.unwrap_or(self.ty.bytes())
    }
}

/// A register of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// With its percent sign where it has one: `%row`.
    pub name: String,
    pub class: RegClass,
}

/// The name of a label, without the colon.
pub type LabelName = String;

/// What an entry promises about its launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadBounds {
    /// `.maxntid x, y, z`: at most so many threads.
    pub max: Option<[u32; 3]>,
    /// `.reqntid x, y, z`: exactly so many threads.
    pub required: Option<[u32; 3]>,
    /// `.minnctapersm`.
    pub min_blocks_per_sm: Option<u32>,
    /// `.maxnreg`.
    pub max_registers: Option<u32>,
}

/// A kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    pub name: String,
    /// Comment lines above the entry.
    pub header: Vec<String>,
    pub params: PrimaryMap<ParamId, Param>,
    pub bounds: ThreadBounds,
    pub registers: PrimaryMap<Reg, Register>,
    /// `.shared` and `.local` variables declared in the body.
    pub variables: PrimaryMap<EntryVariable, Variable>,
    pub labels: PrimaryMap<Label, LabelName>,
    pub body: Vec<Statement>,
    /// Where the source's names are, in the order of their places; none unless somebody asked for them
    /// ([`CompileOptions::names`](crate::CompileOptions::names)).
    pub bindings: Vec<Binding>,
    /// And its arrays in shared and local memory.
    pub tiles: Vec<Tile>,
}

impl Entry {
    pub fn new(name: impl Into<String>) -> Self {
        Entry {
            name: name.into(),
            header: Vec::new(),
            params: PrimaryMap::new(),
            bounds: ThreadBounds::default(),
            registers: PrimaryMap::new(),
            variables: PrimaryMap::new(),
            labels: PrimaryMap::new(),
            body: Vec::new(),
            bindings: Vec::new(),
            tiles: Vec::new(),
        }
    }

    /// Byte offset of each parameter in the parameter buffer, and the buffer's size.
    pub fn param_layout(&self) -> (Vec<u64>, u64) {
        let mut end = 0u64;
        let offsets = self
            .params
            .values()
            .map(|param| {
                let start = end.next_multiple_of(param.alignment().max(1).into());
                end = start.saturating_add(param.bytes());
                start
            })
            .collect();
        (offsets, end)
    }

    /// The instructions of the body, in order.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.body.iter().filter_map(|statement| match statement {
            Statement::Instruction(instruction) => Some(instruction),
            _ => None,
        })
    }

    /// The name that a symbol prints as.
    pub fn symbol_name<'a>(
        &'a self,
        module_variables: &'a PrimaryMap<ModuleVariable, Variable>,
        symbol: Symbol,
    ) -> Option<&'a str> {
        match symbol {
            Symbol::Param(param) => self.params.get(param).map(|param| param.name.as_str()),
            Symbol::Entry(variable) => self.variables.get(variable).map(|variable| variable.name.as_str()),
            Symbol::Module(variable) => module_variables.get(variable).map(|variable| variable.name.as_str()),
        }
    }
}

/// A place in a source file: the instructions after it come from there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Loc {
    /// Index into the `.file` table.
    pub file: u32,
    /// One-based.
    pub line: u32,
    /// One-based; zero where the column is unknown.
    pub column: u32,
}

/// One line of an entry's body.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    Label(Label),
    Instruction(Instruction),
    Loc(Loc),
    /// A comment on a line of its own, without the slashes.
    Comment(String),
    /// `.pragma "…";`
    Pragma(String),
    BlankLine,
}
