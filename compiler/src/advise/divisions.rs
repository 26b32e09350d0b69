//! W0610: indices are divided in 64 bits, since nobody says that they fit in 32.
//!
//! Where every index that is divided is below 2^31 as soon as each size is, or as soon as each is below 2^15, the compiler makes
//! a variant of the launch by itself. What is left are products of more than two sizes, and of parameters that may be negative.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::subject::Modelled;
use crate::check::typed::{self, BinaryOp, Expr, ExprKind, Type};
use crate::check::walk::{Node, walk_statements};
use crate::diagnostic::codes;
use crate::ir::entities::Symbol;
use crate::ir::kernel::SymbolData;
use crate::manifest::SymbolKind;
use crate::source::Span;

/// Bounds that are proposed: of two and of three sizes so large the product is below 2^31.
const BOUNDS: [u32; 2] = [32768, 1024];

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for launch in &modelled.launches {
        for division in &launch.divisions {
            let place = modelled.kernel.insts[division.inst].span;
            let symbols = modelled.symbols(&modelled.kernel.insts[division.inst].arguments);
            if symbols.is_empty() || found.iter().any(|known| known.place == place) {
                continue;
            }
            let written = modelled.typed.and_then(|typed| written(typed, place));
            let what = match written {
                Some(_) => "an index is divided in 64 bits",
                None => "the compiler divides an index here, to find its parts, in 64 bits",
            };
            let names = symbols.iter().map(|symbol| format!("`{}`", modelled.kernel.symbols[*symbol].name));
            found.push(Finding {
                code: codes::W0610,
                place,
                span: written.unwrap_or(place),
                about: String::new(),
                message: format!("{what}, which takes some hundred instructions"),
                label: "in 32 bits it would take about twenty, but nothing says that the index fits"
                    .to_string(),
                notes: vec![format!(
                    "the index is computed from {}; a product of two numbers up to {}, or of three up to {}, fits in 32 \
                     bits",
                    names.collect::<Vec<_>>().join(", "),
                    BOUNDS[0],
                    BOUNDS[1]
                )],
                proposals: proposals(modelled, &symbols),
                gain: Gain::Divisions,
            });
        }
    }
    found
}

/// Of extents, which are never negative, and of parameters too.
fn proposals(modelled: &Modelled<'_>, symbols: &[Symbol]) -> Vec<Proposal> {
    let symbols = || symbols.iter().map(|symbol| &modelled.kernel.symbols[*symbol]);
    let is_dim = |symbol: &&SymbolData| matches!(symbol.kind, SymbolKind::Dim { .. });
    let mut proposals = Vec::new();
    for bound in BOUNDS {
        let most: Vec<String> =
            symbols().filter(is_dim).map(|symbol| format!("{} <= {bound}", symbol.name)).collect();
        if !most.is_empty() {
            proposals.push(Proposal::Fact(most.join(", ")));
        }
        let others = symbols().filter(|symbol| !is_dim(symbol));
        let others: Vec<String> =
            others.map(|symbol| format!("{0} >= 0, {0} <= {bound}", symbol.name)).collect();
        if !others.is_empty() {
            proposals.push(Proposal::Fact([most, others].concat().join(", ")));
        }
    }
    proposals
}

/// The first division of integers that is written within a span.
fn written(typed: &typed::Kernel, within: Span) -> Option<Span> {
    let mut found: Option<Span> = None;
    walk_statements(&typed.body, &mut |node| {
        if let Node::Expr(Expr { kind: ExprKind::Binary { op: BinaryOp::Div | BinaryOp::Rem, .. }, ty, span }) =
            node
            && matches!(ty, Type::Scalar(scalar) if scalar.is_integer())
            && within.start <= span.start
            && span.end <= within.end
            && found.is_none_or(|known| span.start < known.start)
        {
            found = Some(*span);
        }
    });
    found
}
