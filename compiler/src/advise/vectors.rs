//! W0611: a thread takes neighbours one by one, since nobody says that they begin where a vector may.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::subject::Modelled;
use super::text::verb;
use crate::analysis::model::{AccessCost, LANES, Space};
use crate::diagnostic::codes;
use crate::ir::entities::Symbol;
use crate::ir::kernel::SymbolData;
use crate::manifest::SymbolKind;
use cranelift_entity::EntityRef;

/// Bytes of the widest access.
const VECTOR: u64 = 16;

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for launch in &modelled.launches {
        for (at, access) in launch.accesses.iter().enumerate() {
            let span = modelled.kernel.insts[access.inst].span;
            let neighbour = |other: &AccessCost| {
                (other.buffer, other.writes) == (access.buffer, access.writes)
                    && modelled.kernel.insts[other.inst].span == span
                    && follows(access, other)
            };
            if access.space != Space::Global
                || access.atomic
                || found
                    .iter()
                    .any(|known| known.place == span && known.about == modelled.buffer(access.buffer).name)
                || !launch.accesses[at + 1..].iter().any(neighbour)
            {
                continue;
            }
            found.extend(finding(modelled, access));
        }
    }
    found
}

/// Whether in every lane one access begins where the other ends.
fn follows(first: &AccessCost, second: &AccessCost) -> bool {
    let (Some(one), Some(other)) = (&first.sample, &second.sample) else { return false };
    one.mask == other.mask
        && (0..LANES)
            .filter(|lane| one.mask >> lane & 1 == 1)
            .all(|lane| other.offsets[lane] - one.offsets[lane] == i64::from(first.width))
}

fn finding(modelled: &Modelled<'_>, access: &AccessCost) -> Option<Finding> {
    let data = modelled.buffer(access.buffer);
    let sites = modelled.sites(Space::Global);
    let place = modelled.kernel.insts[access.inst].span;
    let site = sites.iter().find(|site| site.span == place && site.buffer == access.buffer)?;
    let (what, span, _) = modelled.named(site);
    let scalar = data.element.leaves[access.leaf as usize].scalar.size();
    let width = VECTOR.checked_div(scalar).filter(|width| *width > 1)?;
    let proposals = placing(modelled, access)
        .map(|symbol| Proposal::Fact(format!("{} % {width} == 0", modelled.kernel.symbols[symbol].name)))
        .collect();
    Some(Finding {
        code: codes::W0611,
        place,
        span,
        about: data.name.clone(),
        message: format!(
            "a thread {} neighbours of {what} one by one, {} bytes each",
            verb(access.writes),
            access.width
        ),
        label: format!(
            "a vector of {width} must begin at a multiple of {VECTOR} bytes, and nothing says that it does"
        ),
        notes: Vec::new(),
        proposals,
        gain: Gain::Requests,
    })
}

/// The sizes and parameters that say where an access begins: those of its subscripts and of the array's extents.
fn placing(modelled: &Modelled<'_>, access: &AccessCost) -> impl Iterator<Item = Symbol> {
    let mut of_extents: Vec<usize> = Vec::new();
    for extent in &modelled.buffer(access.buffer).extents {
        extent.each_symbol(&mut |symbol| of_extents.push(symbol));
    }
    let of_subscripts = modelled.symbols(modelled.subscripts(access));
    let is_parameter = |data: &SymbolData| matches!(data.kind, SymbolKind::Parameter { .. });
    let symbols = modelled.kernel.symbols.iter().filter(move |(_, data)| {
        data.scalar.is_integer() && !(is_parameter(data) && modelled.is_factor(&data.name))
    });
    let places =
        move |symbol: &Symbol| of_extents.contains(&symbol.index()) || of_subscripts.contains(symbol);
    symbols.map(|(symbol, _)| symbol).filter(places)
}
