//! What names are at the place where a kernel stands still, in each lane: a value that is there, or why there is none.

use super::program::Program;
use krn_compiler::check::typed::{Definition, Type};
use krn_compiler::data::{HostArray, Scalar};
use krn_compiler::scopes::{self, Known, Visible};
use krn_runtime::emulator::debug::{Holding, Moment};
use std::fmt;

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Shown {
    Int(i128),
    F32(f32),
    F64(f64),
    Bool(bool),
    /// Of a struct's type: its parts, by their ways.
    Parts(String, Vec<(String, Shown)>),
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shown::Int(value) => write!(f, "{value}"),
            Shown::F32(value) => write!(f, "{value:?}"),
            Shown::F64(value) => write!(f, "{value:?}"),
            Shown::Bool(value) => write!(f, "{value}"),
            Shown::Parts(name, parts) => {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|(way, value)| format!("{}: {value}", way.trim_start_matches('.')))
                    .collect();
                write!(f, "{name} {{ {} }}", parts.join(", "))
            }
        }
    }
}

/// The value of a scalar's bits.
pub fn of_bits(scalar: Scalar, bits: u64) -> Shown {
    match scalar {
        Scalar::F32 => Shown::F32(f32::from_bits(bits as u32)),
        Scalar::F64 => Shown::F64(f64::from_bits(bits)),
        other => of_bytes(other, &bits.to_le_bytes()[..other.size() as usize]),
    }
}

/// The value of a scalar in memory.
pub fn of_bytes(scalar: Scalar, bytes: &[u8]) -> Shown {
    use krn_compiler::manifest::Value;
    match krn_runtime::decode(scalar, bytes) {
        Value::Int(value) => Shown::Int(value),
        Value::Bool(value) => Shown::Bool(value),
        Value::Float(value) if scalar == Scalar::F64 => Shown::F64(value),
        Value::Float(value) => Shown::F32(value as f32),
    }
}

/// The names that are visible where a moment is, the last of each name; in the order of the source.
pub fn names(program: &Program, moment: &Moment<'_>) -> Vec<Visible> {
    names_at(program, moment, moment.pc)
}

/// As [`names`], for the place that another instruction comes from.
pub fn names_at(program: &Program, moment: &Moment<'_>, pc: usize) -> Vec<Visible> {
    let Some(location) = moment.launch.location(pc) else { return Vec::new() };
    let offset = program.offset(location.line, location.column.max(1));
    let all = scopes::visible(program.kernel(), &program.numbers, offset);
    let hidden = |at: usize| all[at + 1..].iter().any(|later| later.name == all[at].name);
    let kept: Vec<bool> = (0..all.len()).map(|at| !hidden(at)).collect();
    all.into_iter().zip(kept).filter_map(|(name, keep)| keep.then_some(name)).collect()
}

/// The value of a name in a lane.
///
/// # Errors
/// Why there is none.
pub fn value(program: &Program, moment: &Moment<'_>, name: &Visible, lane: usize) -> Result<Shown, String> {
    if moment.active >> lane & 1 == 0 {
        return Err("the lane is not on this path".to_string());
    }
    match &name.is {
        Known::Int(value) => Ok(Shown::Int(*value)),
        Known::Float(value) if name.ty == Type::F64 => Ok(Shown::F64(*value)),
        Known::Float(value) => Ok(Shown::F32(*value as f32)),
        Known::Bool(value) => Ok(Shown::Bool(*value)),
        Known::Dim(dim) => {
            let dim = &program.kernel().dims[*dim].name;
            let size = program.sizes.dims.get(dim).ok_or_else(|| format!("`{dim}` is not known"))?;
            Ok(Shown::Int((*size).into()))
        }
        Known::Param(param) => {
            let param = &program.kernel().params[*param].name;
            let given = program.case.params.get(param).ok_or_else(|| format!("`{param}` is not known"))?;
            Ok(given_value(given))
        }
        Known::Counter => {
            let bytes = moment.launch.argument(&format!("p_{}", name.name));
            let bytes: Option<[u8; 8]> = bytes.and_then(|bytes| bytes.try_into().ok());
            let bytes = bytes.ok_or("this launch does not take it")?;
            Ok(Shown::Int(i64::from_le_bytes(bytes).into()))
        }
        Known::Unknown(reason) => Err((*reason).to_string()),
        Known::Defined { definition, once } => {
            let leaves = scopes::leaves(program.typed(), &name.ty);
            let mut parts = Vec::with_capacity(leaves.len());
            for (leaf, (way, scalar)) in leaves.iter().enumerate() {
                parts.push((way.clone(), part(program, moment, *definition, once, (leaf, *scalar), lane)?));
            }
            match (&name.ty, parts.pop()) {
                (Type::Scalar(_), Some((_, only))) => Ok(only),
                (Type::Struct(id), Some(last)) => {
                    parts.push(last);
                    Ok(Shown::Parts(program.struct_name(*id).to_string(), parts))
                }
                _ => Err("it has no parts".to_string()),
            }
        }
    }
}

/// One scalar of a definition.
fn part(
    program: &Program,
    moment: &Moment<'_>,
    definition: Definition,
    once: &[Definition],
    (leaf, scalar): (usize, Scalar),
    lane: usize,
) -> Result<Shown, String> {
    let names = moment.launch.names();
    let name = tagged(program, definition, leaf);
    for other in once {
        if names.copies_beside(&tagged(program, *other, leaf), &name, moment.pc) != 1 {
            return Err("gone here: the code runs several rounds of the loop as one".to_string());
        }
    }
    match names.holding(moment.pc, &name) {
        Holding::Here(operand, ty) => {
            let bits = moment.bits(operand).ok_or("gone here: it has no register")?[lane];
            Ok(match (scalar, of_bits(ty, bits)) {
                // Indices may be computed in 32 bits.
                (Scalar::Bool, Shown::Int(value)) => Shown::Bool(value != 0),
                (_, shown) => shown,
            })
        }
        Holding::Elsewhere => {
            Err("gone here: not computed yet, or its register holds something else".to_string())
        }
        Holding::Several(count) => Err(format!("gone here: the code has {count} copies of it side by side")),
        Holding::Nowhere => Err("gone: the code does not have it".to_string()),
    }
}

/// What a definition's value is called in the compiled code.
fn tagged(program: &Program, definition: Definition, leaf: usize) -> String {
    let kernel = program.kernel();
    let readable = match definition {
        Definition::Index(index) => &kernel.indices[index].name,
        Definition::Local { local, .. } | Definition::Launch(local) => &kernel.locals[local].name,
    };
    definition.name(readable, leaf)
}

/// The value of a parameter.
pub fn given_value(given: &HostArray) -> Shown {
    element(&given.element, &given.bytes)
}

/// The value of an element in its C layout.
pub fn element(ty: &krn_compiler::data::ElementType, bytes: &[u8]) -> Shown {
    let mut parts = Vec::new();
    for leaf in &ty.leaves {
        for at in 0..leaf.count() {
            let start = leaf.offset_of(at) as usize;
            let bytes = &bytes[start..start + leaf.scalar.size() as usize];
            let way =
                if leaf.extents.is_empty() { leaf.path.clone() } else { format!("{}[{at}]", leaf.path) };
            parts.push((way, of_bytes(leaf.scalar, bytes)));
        }
    }
    match (ty.as_scalar(), parts.pop()) {
        (Some(_), Some((_, only))) => only,
        (_, last) => {
            parts.extend(last);
            Shown::Parts(ty.name.clone(), parts)
        }
    }
}
