//! W0602: neighbouring threads are neighbours in global memory, but a request starts in the middle of a sector.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::strided::LANES;
use super::subject::{Modelled, Site, number};
use super::text::verb;
use crate::analysis::SECTOR_BYTES;
use crate::analysis::model::Space;
use crate::diagnostic::codes;
use crate::manifest::SymbolKind;

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let sites = modelled.sites(Space::Global);
    sites.iter().filter(|site| is_misaligned(site)).map(|site| finding(modelled, site)).collect()
}

fn is_misaligned(site: &Site<'_>) -> bool {
    let together = site.step() == Some(site.access.width.into());
    !site.atomic && site.known && together && site.sectors_each() > site.least_sectors / site.requests + 0.2
}

fn finding(modelled: &Modelled<'_>, site: &Site<'_>) -> Finding {
    let data = modelled.buffer(site.buffer);
    let (what, span, _) = modelled.named(site);
    let sector = SECTOR_BYTES as i64;
    let first = site.sample.neighbours().map_or(0, |(first, _)| site.sample.offsets[first]);
    let scalar = data.element.leaves[site.access.leaf as usize].scalar.size();
    let mut proposals = vec![Proposal::Rechoose(LANES), Proposal::Rechoose(&["layout"])];
    // A parameter that shifts the whole array.
    for symbol in modelled.kernel.symbols.values() {
        if matches!(symbol.kind, SymbolKind::Parameter { .. })
            && symbol.scalar.is_integer()
            && scalar < SECTOR_BYTES
            && !modelled.is_factor(&symbol.name)
        {
            proposals.push(Proposal::Fact(format!("{} % {} == 0", symbol.name, SECTOR_BYTES / scalar)));
        }
    }
    Finding {
        code: codes::W0602,
        place: site.span,
        span,
        about: data.name.clone(),
        message: format!(
            "{what} {} {} sectors of memory a request where {} hold what it wants",
            verb(site.writes),
            number(site.sectors_each()),
            number(site.least_sectors / site.requests),
        ),
        label: format!(
            "a request starts {} bytes behind the start of a sector of {sector} bytes",
            first.rem_euclid(sector)
        ),
        notes: Vec::new(),
        proposals,
        gain: Gain::Sectors,
    }
}
