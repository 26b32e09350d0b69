//! Why an evaluation stopped.

use crate::source::Span;
use std::fmt;

#[derive(Clone, PartialEq, Debug)]
pub enum EvalError {
    /// An array of the signature, or a static, was not given.
    MissingArray {
        name: String,
    },
    /// A scalar or struct parameter was not given.
    MissingParam {
        name: String,
    },
    /// A value was given for a name that the kernel does not have.
    NotAParameter {
        name: String,
    },
    /// The given elements are of another type.
    ElementMismatch {
        name: String,
        expected: String,
        got: String,
    },
    /// The given bytes are not `product(shape)` elements.
    SizeMismatch {
        name: String,
        expected: u128,
        got: u64,
    },
    RankMismatch {
        name: String,
        expected: usize,
        got: usize,
    },
    /// The given array's extent is not what the dimensions say.
    ExtentMismatch {
        name: String,
        axis: usize,
        expected: i64,
        got: u64,
    },
    /// A dimension was given as one number and an array's shape says another.
    DimMismatch {
        name: String,
        expected: i64,
        got: u64,
    },
    NegativeExtent {
        name: String,
        axis: usize,
        extent: i64,
    },
    FactFailed {
        text: String,
        span: Span,
    },
    /// A checked access was outside. `proved` means that the checker had claimed that it cannot be: a fault of
    /// the compiler.
    OutOfBounds {
        array: String,
        axis: usize,
        span: Span,
        /// As the source has it: an `i64` or a `u64`.
        index: i128,
        extent: u64,
        proved: bool,
    },
    /// Two elements of an array hold one value of a range in which a fact says that none are equal.
    NotInjective {
        array: String,
        value: i128,
        /// Row-major positions.
        first: u64,
        second: u64,
        /// The fact as the user wrote it.
        text: String,
        span: Span,
    },
    /// An assertion does not hold.
    AssertionFailed {
        /// The condition as the user wrote it.
        text: String,
        /// The index names around it with their values, outermost first.
        indices: Vec<(String, i64)>,
        span: Span,
    },
    /// A `for` step below 1, which the checker had claimed cannot be.
    BadStep {
        step: i64,
        span: Span,
    },
    StepLimit {
        limit: u64,
    },
    MemoryLimit {
        needed: u128,
        limit: u64,
    },
    /// The typed kernel breaks a rule of `typed.rs`: a fault of the compiler.
    Malformed {
        what: &'static str,
        span: Span,
    },
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::MissingArray { name } => write!(f, "array `{name}` was not given"),
            EvalError::MissingParam { name } => write!(f, "parameter `{name}` was not given"),
            EvalError::NotAParameter { name } => write!(f, "the kernel has no input called `{name}`"),
            EvalError::ElementMismatch { name, expected, got } => {
                write!(f, "`{name}` holds `{got}` where the kernel takes `{expected}`")
            }
            EvalError::SizeMismatch { name, expected, got } => {
                write!(f, "`{name}` has {got} bytes where its shape takes {expected}")
            }
            EvalError::RankMismatch { name, expected, got } => {
                write!(f, "`{name}` has {got} axes where the kernel takes {expected}")
            }
            EvalError::ExtentMismatch { name, axis, expected, got } => {
                write!(f, "axis {axis} of `{name}` has extent {got} where the kernel takes {expected}")
            }
            EvalError::DimMismatch { name, expected, got } => {
                write!(f, "dimension `{name}` was given as {expected} but its array has extent {got}")
            }
            EvalError::NegativeExtent { name, axis, extent } => {
                write!(f, "axis {axis} of `{name}` has the negative extent {extent}")
            }
            EvalError::FactFailed { text, .. } => write!(f, "the fact `{text}` does not hold"),
            EvalError::OutOfBounds { array, axis, index, extent, proved, .. } => {
                write!(f, "index {index} is outside axis {axis} of `{array}`, which has extent {extent}")?;
                if *proved {
                    f.write_str(" (the compiler had proved that it is inside: a fault of the compiler)")?;
                }
                Ok(())
            }
            EvalError::NotInjective { array, value, first, second, text, .. } => {
                write!(
                    f,
                    "`{array}` holds {value} at position {first} and at position {second}; the kernel says `where \
                     {text}`"
                )
            }
            EvalError::AssertionFailed { text, indices, .. } => {
                write!(f, "the assertion `{text}` does not hold")?;
                for (at, (name, value)) in indices.iter().enumerate() {
                    write!(f, "{} {name} = {value}", if at == 0 { " for" } else { "," })?;
                }
                Ok(())
            }
            EvalError::BadStep { step, .. } => write!(f, "a loop has the step {step}, which is below 1"),
            EvalError::StepLimit { limit } => write!(f, "the evaluation took more than {limit} steps"),
            EvalError::MemoryLimit { needed, limit } => {
                write!(f, "the evaluation needs {needed} bytes where {limit} are allowed")
            }
            EvalError::Malformed { what, .. } => write!(f, "the typed kernel is malformed: {what}"),
        }
    }
}

impl std::error::Error for EvalError {}
