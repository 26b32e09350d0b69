//! A contraction in a line.

use super::parts::{Class, Contraction, Range, Side, Terms};
use crate::analysis::code::code;
use crate::ir::kernel::{Kernel, Payload};

impl Contraction {
    /// The classes of the axes, and the sides: `m i, n j, k p: a bf16 · b bf16`.
    pub fn text(&self, kernel: &Kernel) -> String {
        let classes = [
            (Class::Batch, "batch"),
            (Class::M, "m"),
            (Class::N, "n"),
            (Class::Free, "free"),
            (Class::K, "k"),
            (Class::OfLeft, "k of the left"),
            (Class::OfRight, "k of the right"),
            (Class::Times, "times"),
        ];
        let mut parts = Vec::new();
        for (class, word) in classes {
            let names: Vec<String> = self.of(class).map(|axis| named(&axis.name, axis.range)).collect();
            if !names.is_empty() {
                parts.push(format!("{word} {}", names.join(" ")));
            }
        }
        let terms = match &self.terms {
            Terms::Plain { left, right } => {
                format!(
                    "{} of {} and {}",
                    self.combiner.name(),
                    of_side(kernel, left),
                    of_side(kernel, right)
                )
            }
            Terms::Products(products) => {
                let mut text = String::new();
                for (at, product) in products.iter().enumerate() {
                    text += match (at, product.is_negative) {
                        (0, false) => "",
                        (0, true) => "-",
                        (_, false) => " + ",
                        (_, true) => " - ",
                    };
                    text +=
                        &format!("{} · {}", of_side(kernel, &product.left), of_side(kernel, &product.right));
                    if !product.outside.is_empty() {
                        text += &format!(" · {} outside", product.outside.len());
                    }
                }
                text
            }
        };
        let masked = if self.masks.is_empty() { "" } else { ", masked" };
        format!("{}: {terms}{masked}", parts.join(", "))
    }
}

fn named(name: &str, range: Range) -> String {
    match range {
        Range::Host => name.to_string(),
        Range::Indices => format!("{name} (triangular)"),
        Range::Memory => format!("{name} (by data)"),
    }
}

/// The arrays that a side is loaded from, and the smallest type that holds it.
fn of_side(kernel: &Kernel, side: &Side) -> String {
    let mut names: Vec<String> = Vec::new();
    for value in &side.values {
        code(kernel, *value, &mut |inst, _| {
            let data = &kernel.insts[inst];
            let Payload::Access { buffer, leaf } = data.payload else { return };
            let buffer = &kernel.buffers[buffer];
            let path = &buffer.element.leaves[leaf as usize].path;
            let name = if path.is_empty() { buffer.name.clone() } else { format!("{}.{path}", buffer.name) };
            if data.opcode.is_load() && !names.contains(&name) {
                names.push(name);
            }
        });
    }
    names.sort();
    let ty = side.exact.smallest().map_or("?", |scalar| scalar.name());
    let gathered = if side.is_gathered { " gathered" } else { "" };
    let guarded = if side.is_guarded { " guarded" } else { "" };
    format!("{} {ty}{gathered}{guarded}", names.join("*"))
}
