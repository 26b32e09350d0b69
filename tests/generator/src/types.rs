//! The types that generated values and arrays have.

/// A type in which values are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wide {
    F32,
    I32,
    Bool,
    I64,
    U32,
    F64,
    U64,
}

pub const NUMBERS: [Wide; 6] = [Wide::F32, Wide::I32, Wide::I64, Wide::U32, Wide::F64, Wide::U64];
pub const INTEGERS: [Wide; 4] = [Wide::I32, Wide::I64, Wide::U32, Wide::U64];

impl Wide {
    pub fn name(self) -> &'static str {
        match self {
            Wide::F32 => "f32",
            Wide::I32 => "i32",
            Wide::Bool => "bool",
            Wide::I64 => "i64",
            Wide::U32 => "u32",
            Wide::F64 => "f64",
            Wide::U64 => "u64",
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Wide::F32 | Wide::F64)
    }

    pub fn is_integer(self) -> bool {
        !self.is_float() && self != Wide::Bool
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Wide::I32 | Wide::I64)
    }
}

/// A type as it is stored: its name, and the type in which it is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    pub name: &'static str,
    pub wide: Wide,
}

pub const STORED: [Stored; 13] = [
    Stored { name: "f32", wide: Wide::F32 },
    Stored { name: "i32", wide: Wide::I32 },
    Stored { name: "u8", wide: Wide::U32 },
    Stored { name: "f16", wide: Wide::F32 },
    Stored { name: "bool", wide: Wide::Bool },
    Stored { name: "i64", wide: Wide::I64 },
    Stored { name: "u32", wide: Wide::U32 },
    Stored { name: "f64", wide: Wide::F64 },
    Stored { name: "bf16", wide: Wide::F32 },
    Stored { name: "i8", wide: Wide::I32 },
    Stored { name: "i16", wide: Wide::I32 },
    Stored { name: "u16", wide: Wide::U32 },
    Stored { name: "u64", wide: Wide::U64 },
];

/// How long an axis is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// The dimension of this number.
    Dim(usize),
    Fixed(u32),
    /// Of results: `2 * n`, `n + m`, `n * m`.
    Twice(usize),
    Sum(usize, usize),
    Product(usize, usize),
    /// The range of a name that runs over no axis.
    Other,
}

/// The names of dimensions.
pub const DIMS: [&str; 3] = ["n", "m", "k"];

impl Extent {
    pub fn text(self) -> String {
        match self {
            Extent::Dim(dim) => DIMS[dim].to_string(),
            Extent::Fixed(extent) => extent.to_string(),
            Extent::Twice(dim) => format!("2 * {}", DIMS[dim]),
            Extent::Sum(left, right) => format!("{} + {}", DIMS[left], DIMS[right]),
            Extent::Product(left, right) => format!("{} * {}", DIMS[left], DIMS[right]),
            Extent::Other => "0".to_string(),
        }
    }
}
