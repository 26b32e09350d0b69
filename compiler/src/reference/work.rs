//! What a launch must do at the least, whatever its code looks like: bytes to and from memory, and floating-point
//! operations. What a measured time is held against.

use super::cost::{count_operations, estimate_cost};
use super::error::EvalError;
use super::launch::{Launch, shapes};
use super::{Inputs, Options};
use crate::check::typed::*;
use crate::check::walk::{Node, walk_statements};
use crate::data::Leaf;
use std::collections::BTreeMap;

/// The least work of one launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Every field that is read of an input counts once, every field that is written of a result once, of an `inout`
    /// array both; temporaries count nothing.
    pub bytes: u128,
    /// Each addition, subtraction, multiplication, division and function of floats counts as one operation, `fma` as
    /// two, and each term of a float sum or product as one more; of two branches the longer one counts. `None` where
    /// the number hangs on data.
    pub flops: Option<u128>,
    /// Steps that the reference evaluator would take: an estimate of the work of kernels without floats as well.
    pub steps: u128,
}

/// Fields of an array that a kernel touches, one a leaf.
#[derive(Clone, Default)]
struct Touched {
    read: Vec<bool>,
    written: Vec<bool>,
}

/// Counts the work of a launch with these dimensions (by [`DimId`]) and the inputs' parameters; the inputs' arrays
/// are not needed.
///
/// # Errors
/// A fact that does not hold, a negative extent, a parameter that is missing.
pub fn estimate_work(inputs: &Inputs<'_>, dims: &[i64]) -> Result<Work, EvalError> {
    let kernel = inputs.kernel;
    let extents = shapes(inputs, dims)?;
    let mut bytes = 0u128;
    for (id, touched) in touched(inputs.program, kernel) {
        let array = &kernel.arrays[id];
        let count: u128 = extents[id].iter().map(|extent| u128::from(*extent)).product();
        let size = |flags: &[bool]| -> u128 {
            let chosen = array.element.leaves.iter().zip(flags).filter(|(_, touched)| **touched);
            chosen.map(|(leaf, _)| u128::from(leaf.scalar.size() * leaf.count())).sum()
        };
        bytes += match array.role {
            ArrayRole::Input => count * size(&touched.read),
            ArrayRole::Result(_) => count * size(&touched.written),
            ArrayRole::InOut => count * (size(&touched.read) + size(&touched.written)),
            _ => 0,
        };
    }
    let params = super::launch::bind_params(inputs).map_err(|error| *error)?;
    let launch = Launch { dims: dims.to_vec(), params, extents: Vec::new() };
    let options = Options::default();
    let flops = count_operations(inputs, &launch, &options);
    Ok(Work { bytes, flops, steps: estimate_cost(inputs, &launch).total })
}

fn touched(program: &Program, kernel: &Kernel) -> BTreeMap<ArrayId, Touched> {
    let mut found: BTreeMap<ArrayId, Touched> = BTreeMap::new();
    let mut mark = |access: &Access, path: &[Projection], read: bool, written: bool| {
        let array = &kernel.arrays[access.array];
        let prefix = prefix(program, &array.ty, path);
        let none = || vec![false; array.element.leaves.len()];
        let touched = found.entry(access.array).or_insert_with(|| Touched { read: none(), written: none() });
        for (number, leaf) in array.element.leaves.iter().enumerate() {
            if below(leaf, &prefix) {
                touched.read[number] |= read;
                touched.written[number] |= written;
            }
        }
    };
    walk_statements(&kernel.body, &mut |node| match node {
        Node::Stmt(Stmt { kind: StmtKind::Store { access, path, combine, .. }, .. }) => {
            mark(access, path, combine.is_some(), true);
        }
        Node::Expr(Expr { kind: ExprKind::Load { access, path, .. }, .. }) => {
            mark(access, path, true, false);
        }
        _ => {}
    });
    found
}

/// The path of the leaves below a projection (`pos.x`); elements of fixed arrays stay together.
fn prefix(program: &Program, ty: &Type, path: &[Projection]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut ty = ty;
    for step in path {
        match (ty, step) {
            (Type::Struct(id), Projection::Field(field)) => {
                let field = &program.structs[*id].fields[*field];
                names.push(&field.name);
                ty = &field.ty;
            }
            (Type::Array(element, _), Projection::Element { .. }) => ty = element,
            _ => break,
        }
    }
    names.join(".")
}

fn below(leaf: &Leaf, prefix: &str) -> bool {
    prefix.is_empty()
        || leaf.path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
