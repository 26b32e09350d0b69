//! The entries of a kernel: which of them ran, and under what conditions the plan takes each.

use super::listing::Listing;
use crate::commands::profile::found::Profile;
use krn_compiler::ir::kernel::{Kernel, Module};
use krn_compiler::ir::text::print_expression;
use krn_compiler::manifest::{BinaryOp, Expr};

pub struct Variant {
    /// Launches of it at the sizes of the page.
    pub launches: usize,
    /// What must hold at launch, each a line; the dimensions by their names.
    pub conditions: Vec<String>,
}

/// In the order of the listing.
pub fn variants(ir: &Module, listing: &Listing<'_>, profile: &Profile<'_>) -> Vec<Variant> {
    let variant = |name: &str| {
        let known = ir.kernels.iter().find_map(|kernel| {
            let launch = kernel.launches.values().find(|launch| launch.name == name)?;
            Some((kernel, launch))
        });
        let mut conditions = Vec::new();
        if let Some((kernel, launch)) = known {
            let guard = kernel.specialization.guard();
            let all = guard.relies_on.iter().chain(&guard.chosen_by).chain(&launch.assume);
            all.for_each(|condition| flatten(kernel, condition, &mut conditions));
        }
        let launches = profile.launches.iter().filter(|launch| launch.counted.entry == name).count();
        Variant { launches, conditions }
    };
    listing.entries.iter().map(|entry| variant(entry.name)).collect()
}

/// The parts of a conjunction.
fn flatten(kernel: &Kernel, condition: &Expr, lines: &mut Vec<String>) {
    if let Expr::Binary(BinaryOp::And, left, right) = condition {
        flatten(kernel, left, lines);
        flatten(kernel, right, lines);
    } else {
        let line = named(kernel, &print_expression(condition));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
}

/// An expression's text with the names of symbols in the place of their numbers.
pub fn named(kernel: &Kernel, text: &str) -> String {
    let names: Vec<&str> = kernel.symbols.values().map(|symbol| symbol.name.as_str()).collect();
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("sym") {
        let digits: String = rest[at + 3..].chars().take_while(char::is_ascii_digit).collect();
        out.push_str(&rest[..at]);
        match digits.parse::<usize>().ok().and_then(|number| names.get(number)) {
            Some(name) => out.push_str(name),
            None => out.push_str(&rest[at..at + 3 + digits.len()]),
        }
        rest = &rest[at + 3 + digits.len()..];
    }
    out + rest
}
