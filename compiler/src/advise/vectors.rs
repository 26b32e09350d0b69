//! W0611: a thread takes neighbours one by one, since nobody says that they begin where a vector may.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::subject::Modelled;
use super::text::verb;
use crate::analysis::model::{AccessCost, LANES, Space};
use crate::diagnostic::codes;
use crate::manifest::SymbolKind;

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
    let known = |kind: &SymbolKind| !matches!(kind, SymbolKind::Counter);
    let symbols =
        modelled.kernel.symbols.values().filter(|symbol| symbol.scalar.is_integer() && known(&symbol.kind));
    let proposals = symbols.map(|symbol| Proposal::Fact(format!("{} % {width} == 0", symbol.name))).collect();
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
