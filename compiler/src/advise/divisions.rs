//! W0610: indices are divided in 64 bits, since nobody says that they fit in 32.
//!
//! Where every index that is divided is below 2^31 as soon as each size is, the compiler makes a variant of the launch by
//! itself. What is left are products: of two sizes below 2^31 the product need not be.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::subject::Modelled;
use crate::diagnostic::codes;
use crate::ir::FoundOwners;
use crate::ir::entities::{Inst, Symbol};
use crate::ir::kernel::{Definition, Payload, SymbolData};
use crate::manifest::SymbolKind;

/// Bounds that are proposed: of two and of three sizes so large the product is below 2^31.
const BOUNDS: [u32; 2] = [32768, 1024];

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for launch in &modelled.launches {
        for division in &launch.divisions {
            let place = modelled.kernel.insts[division.inst].span;
            let symbols = symbols(modelled, division.inst);
            if symbols.is_empty() || found.iter().any(|known| known.place == place) {
                continue;
            }
            found.push(Finding {
                code: codes::W0610,
                place,
                span: place,
                about: String::new(),
                message: "an index is divided in 64 bits, which takes some hundred instructions".to_string(),
                label: "in 32 bits it would take about twenty, but nothing says that the index fits"
                    .to_string(),
                notes: Vec::new(),
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

/// The sizes and parameters that the operands of a division are computed from, in the order of the signature; of a loop's index
/// those of its bounds.
fn symbols(modelled: &Modelled<'_>, division: Inst) -> Vec<Symbol> {
    let kernel = modelled.kernel;
    let mut owners = FoundOwners::default();
    let mut open = kernel.insts[division].arguments.to_vec();
    let (mut seen, mut found) = (Vec::new(), Vec::new());
    while let Some(value) = open.pop() {
        if seen.contains(&value) {
            continue;
        }
        seen.push(value);
        match kernel.values[value].definition {
            Definition::Result(inst, _) => match kernel.insts[inst].payload {
                Payload::Symbol(symbol) => found.push(symbol),
                _ => open.extend(kernel.insts[inst].arguments.iter().copied()),
            },
            Definition::Param(block, position) => {
                let bounds = owners.of(kernel, block).map(|inst| kernel.loop_bounds(inst));
                let bounds = bounds.and_then(|bounds| bounds.get(usize::from(position)).copied());
                open.extend(bounds.into_iter().flat_map(|(low, high)| [low, high]));
            }
        }
    }
    found.retain(|symbol| {
        let data = &kernel.symbols[*symbol];
        data.scalar.is_integer() && matches!(data.kind, SymbolKind::Dim { .. } | SymbolKind::Parameter { .. })
    });
    found.sort();
    found.dedup();
    found
}
