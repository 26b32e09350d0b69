//! W0603: fields are fetched with others beside them that the request does not use.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::subject::{Modelled, Site, number, whole_bytes};
use super::text::verb;
use crate::analysis::SECTOR_BYTES;
use crate::analysis::model::Space;
use crate::diagnostic::codes;
use crate::manifest::Layout;

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let sites = modelled.sites(Space::Global);
    sites.iter().filter(|site| wastes(modelled, site)).map(|site| finding(modelled, site)).collect()
}

fn wastes(modelled: &Modelled<'_>, site: &Site<'_>) -> bool {
    let data = modelled.buffer(site.buffer);
    let structs = data.element.leaves.len() > 1 && data.layout == Layout::Aos;
    let apart = site.step().is_some_and(|step| {
        step != 0
            && step.unsigned_abs().is_multiple_of(data.element.size)
            && step.unsigned_abs() > site.access.width.into()
    });
    structs && apart && site.known && site.sectors > 1.5 * site.least_sectors && leaves_some(modelled, site)
}

/// Whether the launches that have the site use but a part of a struct's bytes. Fields that they use all, one after the other,
/// come out of the cache.
fn leaves_some(modelled: &Modelled<'_>, site: &Site<'_>) -> bool {
    let element = &modelled.buffer(site.buffer).element;
    let mut used = vec![false; element.leaves.len()];
    for launch in &modelled.launches {
        let own = || launch.accesses.iter().filter(|access| access.buffer == site.buffer);
        if !own().any(|access| modelled.kernel.insts[access.inst].span == site.span) {
            continue;
        }
        for access in own() {
            let start = element.leaves[access.leaf as usize].offset;
            for (at, leaf) in element.leaves.iter().enumerate() {
                // A vector goes on with the leaves that follow, and from the last one with those of the next element.
                let behind = (leaf.offset + element.size - start) % element.size;
                used[at] |= behind < u64::from(access.width).max(1);
            }
        }
    }
    used.contains(&false)
}

fn finding(modelled: &Modelled<'_>, site: &Site<'_>) -> Finding {
    let data = modelled.buffer(site.buffer);
    let (what, span, _) = modelled.named(site);
    Finding {
        code: codes::W0603,
        place: site.span,
        span,
        about: data.name.clone(),
        message: format!(
            "{what} {} {} sectors of memory a request and uses {:.0} of {}",
            verb(site.writes),
            number(site.sectors_each()),
            site.bytes / site.requests,
            whole_bytes(site.sectors_each() * SECTOR_BYTES as f64),
        ),
        label: format!(
            "`{}` is an array of structs of {} bytes, of which a lane takes {}",
            data.name, data.element.size, site.access.width
        ),
        notes: Vec::new(),
        proposals: vec![
            Proposal::Rechoose(&["layout"]),
            Proposal::Directive(format!("layout {}: soa", data.name)),
        ],
        gain: Gain::Sectors,
    }
}
