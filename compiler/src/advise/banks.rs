//! W0604: lanes wait for each other at one bank of shared memory.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::subject::{Modelled, Site, number};
use super::text::verb;
use crate::analysis::BANKS;
use crate::analysis::model::{LANES, Space};
use crate::diagnostic::codes;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let sites = modelled.sites(Space::Shared);
    let conflicting = |site: &&Site<'_>| site.known && site.conflicts > 0.25 * site.requests;
    sites.iter().filter(conflicting).map(|site| finding(modelled, site)).collect()
}

/// The bank with the most different words of a sample, and how many they are.
fn worst(site: &Site<'_>) -> (u64, usize) {
    let mut words: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
    for lane in (0..LANES).filter(|lane| site.sample.mask >> lane & 1 == 1) {
        let first = site.sample.offsets[lane];
        for word in first / 4..=(first + i64::from(site.access.width) - 1) / 4 {
            words.entry(word.unsigned_abs() % BANKS).or_default().insert(word);
        }
    }
    let worst = words.iter().max_by_key(|(bank, words)| (words.len(), std::cmp::Reverse(**bank)));
    worst.map_or((0, 0), |(bank, words)| (*bank, words.len()))
}

fn finding(modelled: &Modelled<'_>, site: &Site<'_>) -> Finding {
    let tile = &modelled.buffer(site.buffer).name;
    let array = tile.strip_suffix("_tile").unwrap_or(tile);
    let (bank, degree) = worst(site);
    let replaced = |place: &str| Proposal::Replace {
        word: "stage",
        about: array.to_string(),
        line: format!("stage {array} {place}"),
    };
    let step = site.step().unwrap_or(0);
    Finding {
        code: codes::W0604,
        place: site.span,
        span: site.span,
        about: tile.clone(),
        message: format!(
            "the tile of `{array}` in shared memory takes {} wavefronts a request where it {}",
            number(site.wavefronts_each()),
            verb(site.writes),
        ),
        label: format!(
            "{degree} words of a request lie in bank {bank}: from thread to thread {step} bytes, and every {} bytes the banks begin again",
            4 * BANKS
        ),
        notes: Vec::new(),
        proposals: vec![
            Proposal::Rechoose(&["stage"]),
            replaced("pad 1"),
            replaced("swizzle"),
            Proposal::Directive(format!("stage {array} pad 1")),
            Proposal::Rechoose(&["tile", "per_thread", "vectorize", "block"]),
        ],
        gain: Gain::Wavefronts,
    }
}
