//! W0601: neighbouring threads go far apart in global memory.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::subject::{Modelled, Site, number};
use super::text::verb;
use crate::analysis::model::Space;
use crate::diagnostic::codes;
use crate::manifest::{Expr, Layout};

/// Directives that say where lanes go.
pub(super) const LANES: &[&str] =
    &["order", "tile", "per_thread", "vectorize", "block", "warps", "stage", "split"];

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let sites = modelled.sites(Space::Global);
    sites.iter().filter(|site| is_strided(modelled, site)).map(|site| finding(modelled, site)).collect()
}

fn is_strided(modelled: &Modelled<'_>, site: &Site<'_>) -> bool {
    let Some(step) = site.step() else { return false };
    let data = modelled.buffer(site.buffer);
    // Fields of neighbouring structs are another matter.
    let of_structs = data.element.leaves.len() > 1
        && data.layout == Layout::Aos
        && step.unsigned_abs() == data.element.size;
    !site.atomic
        && site.known
        && !of_structs
        && step.unsigned_abs() > u64::from(site.access.width)
        && site.sectors > 1.5 * site.least_sectors
}

/// The bytes of one step along an axis of a buffer, as text over dimensions.
fn step_text(modelled: &Modelled<'_>, site: &Site<'_>, axis: usize) -> String {
    let data = modelled.buffer(site.buffer);
    let factors: Vec<String> = data.extents[axis + 1..]
        .iter()
        .filter_map(|extent| match extent {
            Expr::Symbol(symbol) => Some(modelled.kernel.symbols.values().nth(*symbol)?.name.clone()),
            Expr::Int(value) => Some(value.to_string()),
            _ => None,
        })
        .collect();
    let size = match data.layout {
        Layout::Soa => {
            let leaf = &data.element.leaves[site.access.leaf as usize];
            leaf.scalar.size() * leaf.count()
        }
        _ => data.element.size,
    };
    match factors.len() == data.extents.len() - axis - 1 && !factors.is_empty() {
        true => format!("{} * {size} bytes", factors.join(" * ")),
        false => format!("{size} bytes"),
    }
}

fn finding(modelled: &Modelled<'_>, site: &Site<'_>) -> Finding {
    let data = modelled.buffer(site.buffer);
    let (what, span, access) = modelled.named(site);
    let step = site.step().unwrap_or(0);
    let (first, next) = site.sample.neighbours().unwrap_or((0, 1));
    let moving: Vec<(usize, i64)> = (0..site.sample.subscripts.len())
        .map(|axis| (axis, site.sample.subscripts[axis][next] - site.sample.subscripts[axis][first]))
        .filter(|(_, by)| *by != 0)
        .collect();
    let label = match moving.as_slice() {
        [(axis, by)] if *axis < data.extents.len() => {
            let name = access.as_ref().and_then(|access| access.subscripts.get(*axis));
            let name = name.map_or_else(|| format!("subscript {}", axis + 1), |name| format!("`{name}`"));
            let each = step_text(modelled, site, *axis);
            let by = if *by == 1 { String::new() } else { format!(" by {by}") };
            format!("from thread to thread {name} steps{by}: {each} a step, {step} bytes apart")
        }
        _ => format!("from thread to thread {step} bytes apart"),
    };
    let ideal = site.least_sectors / site.requests;
    Finding {
        code: codes::W0601,
        place: site.span,
        span,
        about: data.name.clone(),
        message: format!(
            "{what} {} {} sectors of memory a request where {} hold what it wants",
            verb(site.writes),
            number(site.sectors_each()),
            number(ideal.max(1.0)),
        ),
        label,
        notes: Vec::new(),
        proposals: vec![Proposal::Rechoose(LANES)],
        gain: Gain::Sectors,
    }
}
