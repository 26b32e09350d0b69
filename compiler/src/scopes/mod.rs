//! What a debugger asks about a place in the source: which names are visible there, and which definition of each counts.
//!
//! A `var` is another value after each assignment and in each round of a loop ([`Definition`](crate::check::typed::Definition)); compiled code says of its
//! registers which of these they hold. So a debugger shows a value where the code holds the definition that counts at the
//! place, and never one that counted before.

mod known;
mod walk;

use crate::check::typed::{Kernel, Numbers, Program, Type};
use crate::data::Scalar;
pub use known::{Known, Visible};
use walk::Walk;

/// The names that are visible at a place, by its byte offset; of several of one name the last counts.
pub fn visible(kernel: &Kernel, numbers: &Numbers, offset: u32) -> Vec<Visible> {
    Walk::new(kernel, numbers, offset).names()
}

/// The scalars that a value is made of, with the way to each: as lowering has them.
pub fn leaves(program: &Program, ty: &Type) -> Vec<(String, Scalar)> {
    let mut found = Vec::new();
    collect(program, ty, String::new(), &mut found);
    found
}

fn collect(program: &Program, ty: &Type, path: String, found: &mut Vec<(String, Scalar)>) {
    match ty {
        Type::Scalar(scalar) => found.push((path, scalar.widened())),
        Type::Struct(id) => {
            for field in &program.structs[*id].fields {
                collect(program, &field.ty, format!("{path}.{}", field.name), found);
            }
        }
        Type::Array(element, extent) => {
            for index in 0..*extent {
                collect(program, element, format!("{path}[{index}]"), found);
            }
        }
    }
}

#[cfg(test)]
mod tests;
