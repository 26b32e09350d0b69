//! What is looked at: a kernel, modelled at sizes, with its accesses put together by place in the text.

use super::assembled::{Usage, Usages};
use super::text::{Accessed, accessed};
use crate::analysis::model::{
    AccessCost, LANES, LaunchCost, Request, Space, model, representative_sizes, spell_sizes,
};
use crate::analysis::{Multiprocessor, warps_by_registers};
use crate::check::typed::{self, BinaryOp, Expr, ExprKind};
use crate::check::walk::{Node, walk_expr, walk_statements};
use crate::data::Scalar;
use crate::ir::FoundOwners;
use crate::ir::entities::{Buffer, Symbol, Value};
use crate::ir::kernel::{BufferData, Definition, Kernel, Module, Payload};
use crate::manifest::{self, SymbolKind};
use crate::source::{SourceFile, Span};
use rustc_hash::FxHashSet;

/// Asks the assembler about entries of a kernel, given its text and its module.
pub type Assemble<'a> = dyn Fn(&SourceFile, &Module, &Kernel, &[&str]) -> Option<Usages> + 'a;

/// A kernel after the last pass, and where it comes from.
pub struct Subject<'a> {
    pub source: &'a SourceFile,
    pub typed: &'a typed::Kernel,
    /// With the kernel's constants and statics.
    pub module: &'a Module,
    pub kernel: &'a Kernel,
    /// `sm_90`
    pub target: &'a str,
    /// 90
    pub capability: u32,
    /// What the assembler says of the entries of these names, where there is one.
    pub assemble: Option<&'a Assemble<'a>>,
}

/// A kernel with what it costs at model sizes.
pub(crate) struct Modelled<'a> {
    pub source: &'a SourceFile,
    pub kernel: &'a Kernel,
    pub capability: u32,
    pub sizes: Vec<manifest::Value>,
    pub launches: Vec<LaunchCost>,
    /// Of the launches' entries, where the assembler was asked.
    pub usages: Option<Usages>,
    /// The kernel as it was checked; `None` in a trial.
    pub typed: Option<&'a typed::Kernel>,
}

/// The accesses of one place in the text to one array, over all launches and copies of the code.
pub(crate) struct Site<'m> {
    pub span: Span,
    pub buffer: Buffer,
    pub writes: bool,
    pub requests: f64,
    pub sectors: f64,
    pub least_sectors: f64,
    pub bytes: f64,
    pub wavefronts: f64,
    pub conflicts: f64,
    /// Whether every request of it has known addresses.
    pub known: bool,
    /// Whether all requests cost the same.
    pub even: bool,
    pub atomic: bool,
    /// The access with the most requests, and one request of it.
    pub access: &'m AccessCost,
    pub sample: &'m Request,
}

impl Site<'_> {
    /// Sectors of a request, on average.
    pub fn sectors_each(&self) -> f64 {
        self.sectors / self.requests.max(1e-9)
    }

    pub fn wavefronts_each(&self) -> f64 {
        self.wavefronts / self.requests.max(1e-9)
    }

    /// Bytes from the first lane's place to the next lane's.
    pub fn step(&self) -> Option<i64> {
        let (first, next) = self.sample.neighbours()?;
        Some(self.sample.offsets[next] - self.sample.offsets[first])
    }
}

impl<'a> Modelled<'a> {
    pub fn new(subject: &Subject<'a>) -> Option<Self> {
        let sizes = representative_sizes(subject.kernel)?;
        let modelled = Self::at(subject.source, subject.kernel, subject.capability, sizes)?;
        Some(Self { typed: Some(subject.typed), ..modelled })
    }

    pub fn at(
        source: &'a SourceFile,
        kernel: &'a Kernel,
        capability: u32,
        sizes: Vec<manifest::Value>,
    ) -> Option<Self> {
        let launches = model(kernel, &sizes)?;
        Some(Self { source, kernel, capability, sizes, launches, usages: None, typed: None })
    }

    /// Asks the assembler, where there is one, about the entries that are launched.
    pub fn assembled(&self, subject: &Subject<'_>, module: &Module) -> Option<Usages> {
        let name = |cost: &LaunchCost| self.kernel.launches[cost.launch].name.as_str();
        let mut names: Vec<&str> = self.launches.iter().map(name).collect();
        names.sort_unstable();
        names.dedup();
        subject.assemble.and_then(|assemble| assemble(self.source, module, self.kernel, &names))
    }

    /// What the assembler said of a launch's entry.
    pub fn usage(&self, launch: &LaunchCost) -> Option<&Usage> {
        self.usages.as_ref()?.get(&self.kernel.launches[launch.launch].name)
    }

    /// The size of a buffer at the model's sizes.
    pub fn bytes(&self, buffer: Buffer) -> Option<u64> {
        let data = &self.kernel.buffers[buffer];
        let extents = data.extents.iter().map(|extent| u64::try_from(extent.evaluate_int(&self.sizes)?).ok());
        extents.product::<Option<u64>>()?.checked_mul(data.element.size)
    }

    /// The subscripts of an access: of the array's axes, then of the element's.
    pub fn subscripts(&self, access: &AccessCost) -> &'a [Value] {
        let rank = self.kernel.rank(access.buffer, access.leaf);
        self.kernel.insts[access.inst].arguments.get(..rank).unwrap_or(&[])
    }

    /// The sizes and integer parameters that values are computed from, in the order of the signature; of a loop's index those
    /// of its bounds.
    pub fn symbols(&self, values: &[Value]) -> Vec<Symbol> {
        let kernel = self.kernel;
        let mut owners = FoundOwners::default();
        let mut open = values.to_vec();
        let (mut seen, mut found) = (FxHashSet::default(), Vec::new());
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
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
            data.scalar.is_integer()
                && matches!(data.kind, SymbolKind::Dim { .. } | SymbolKind::Parameter { .. })
        });
        found.sort();
        found.dedup();
        found
    }

    pub fn buffer(&self, buffer: Buffer) -> &'a BufferData {
        &self.kernel.buffers[buffer]
    }

    /// Whether an integer parameter is a factor of something: it says what is computed then, and not where an array begins.
    pub fn is_factor(&self, parameter: &str) -> bool {
        let names = |expr: &Expr| {
            let mut found = false;
            walk_expr(expr, &mut |node| {
                found |= matches!(node, Node::Expr(part) if matches!(part.kind, ExprKind::Param(_))
                    && self.source.slice(part.span) == parameter);
            });
            found
        };
        let is_literal = |expr: &Expr| matches!(expr.kind, ExprKind::Int(_));
        let mut is_factor = false;
        walk_statements(self.typed.map_or(&[], |typed| &typed.body), &mut |node| {
            let Node::Expr(Expr { kind: ExprKind::Binary { op, left, right }, ty, .. }) = node else {
                return;
            };
            let scales = matches!(op, BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl)
                && ty.as_scalar().is_some_and(Scalar::is_integer);
            is_factor |= scales && !is_literal(left) && !is_literal(right) && (names(left) || names(right));
        });
        is_factor
    }

    /// The sizes that numbers hold for.
    pub fn note(&self) -> String {
        match spell_sizes(self.kernel, &self.sizes) {
            sizes if sizes.is_empty() => {
                "computed from layouts and subscripts; `krn profile` counts the same".into()
            }
            sizes => {
                format!("computed from layouts and subscripts, for {sizes}; `krn profile` counts the same")
            }
        }
    }

    /// The accesses to one kind of memory by place, in the order of the text. Places with no known address are left out.
    pub fn sites(&self, space: Space) -> Vec<Site<'_>> {
        let mut sites: Vec<Site<'_>> = Vec::new();
        for access in self.launches.iter().flat_map(|launch| &launch.accesses) {
            let Some(sample) = access.sample.as_ref().filter(|_| access.space == space) else { continue };
            let span = self.kernel.insts[access.inst].span;
            let known = sites
                .iter_mut()
                .find(|site| (site.span, site.buffer, site.writes) == (span, access.buffer, access.writes));
            let Some(site) = known else {
                sites.push(Site {
                    span,
                    buffer: access.buffer,
                    writes: access.writes,
                    requests: access.requests,
                    sectors: access.sectors,
                    least_sectors: access.least_sectors,
                    bytes: access.bytes,
                    wavefronts: access.wavefronts,
                    conflicts: access.conflicts,
                    known: access.unknown == 0.0,
                    even: access.even,
                    atomic: access.atomic,
                    access,
                    sample,
                });
                continue;
            };
            let each = |access: &AccessCost| access.sectors / access.requests;
            site.even &= access.even && (each(access) - each(site.access)).abs() < 0.01;
            if access.requests > site.access.requests {
                (site.access, site.sample) = (access, sample);
            }
            site.requests += access.requests;
            site.sectors += access.sectors;
            site.least_sectors += access.least_sectors;
            site.bytes += access.bytes;
            site.wavefronts += access.wavefronts;
            site.conflicts += access.conflicts;
            site.known &= access.unknown == 0.0;
        }
        sites.sort_by_key(|site| (site.span, site.writes, site.buffer));
        sites
    }

    /// What the accesses to an array cost that begin at a place of the text.
    pub fn at_place(&self, start: u32, about: &str) -> AtPlace {
        let mut sums = AtPlace::default();
        for access in self.launches.iter().flat_map(|launch| &launch.accesses) {
            let span = self.kernel.insts[access.inst].span;
            if span.start == start && self.kernel.buffers[access.buffer].name == about {
                sums.requests += access.requests;
                sums.sectors += access.sectors;
                sums.bytes += access.bytes;
                sums.wavefronts += access.wavefronts;
                sums.width += access.requests * f64::from(access.width);
            }
        }
        sums.width /= sums.requests.max(1.0);
        for branch in self.launches.iter().flat_map(|launch| &launch.branches) {
            if self.kernel.insts[branch.inst].span.start == start {
                sums.lost += branch.lost;
            }
        }
        for division in self.launches.iter().flat_map(|launch| &launch.divisions) {
            if self.kernel.insts[division.inst].span.start == start {
                sums.divisions += division.runs;
            }
        }
        for usage in self.launches.iter().filter_map(|launch| self.usage(launch)) {
            sums.spill_bytes = sums.spill_bytes.max(usage.spill_bytes);
            sums.array_bytes = sums.array_bytes.max(usage.array_bytes());
        }
        sums.blocks = self.launches.iter().map(LaunchCost::block_count).min().unwrap_or(0);
        let warps = self.launches.iter().map(|launch| resident(self, launch).0);
        sums.warps = warps.min().unwrap_or(0);
        sums
    }

    /// What a site is called, and where its text stands: the access itself where it can be found.
    pub fn named(&self, site: &Site<'_>) -> (String, Span, Option<Accessed>) {
        let name = &self.buffer(site.buffer).name;
        match accessed(self.source, site.span, name) {
            Some(access) => (format!("`{}`", self.source.slice(access.span)), access.span, Some(access)),
            None => (format!("`{name}`"), site.span, None),
        }
    }
}

/// What accesses cost together.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct AtPlace {
    pub requests: f64,
    pub sectors: f64,
    pub bytes: f64,
    pub wavefronts: f64,
    /// Bytes of a lane in a request, on average.
    pub width: f64,
    /// Instructions that waiting lanes miss, at branches there.
    pub lost: f64,
    /// Divisions of 64 bits there.
    pub divisions: f64,
    /// What the assembler leaves in memory, of the launch with the most.
    pub spill_bytes: u32,
    pub array_bytes: u32,
    /// Of the launch with the fewest, and of that of which a multiprocessor holds the fewest warps.
    pub blocks: u64,
    pub warps: u64,
}

/// A number as people write it: whole ones without a point.
pub(crate) fn number(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    if rounded.fract() == 0.0 { format!("{rounded:.0}") } else { format!("{rounded:.1}") }
}

/// Bytes as people write them: there are whole ones alone.
pub(crate) fn whole_bytes(value: f64) -> String {
    format!("{value:.0} byte{}", if value.round() == 1.0 { "" } else { "s" })
}

/// Warps that a multiprocessor holds of a launch, of how many, and what limits them.
pub(super) fn resident(modelled: &Modelled<'_>, launch: &LaunchCost) -> (u64, u64, &'static str) {
    let multiprocessor = Multiprocessor::of(modelled.capability);
    let lanes = LANES as u64;
    let warps = u64::from(launch.threads).div_ceil(lanes).max(1);
    let by_registers =
        modelled.usage(launch).map_or(u64::MAX, |usage| warps_by_registers(usage.registers) / warps);
    let by_shared = match launch.shared_bytes {
        0 => u64::MAX,
        bytes => multiprocessor.blocks_by_shared(bytes),
    };
    let limits = [
        (by_shared, "shared memory"),
        (multiprocessor.blocks_by_threads(warps), "threads"),
        (multiprocessor.blocks, "blocks"),
        (by_registers, "registers"),
    ];
    let (most, what) =
        limits.into_iter().min_by_key(|(count, _)| *count).unwrap_or((multiprocessor.blocks, "blocks"));
    (most * warps, multiprocessor.threads / lanes, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_that_people_write() {
        assert_eq!([number(12.0), number(15.66), number(0.04)], ["12", "15.7", "0"]);
        assert_eq!(
            [whole_bytes(15.66), whole_bytes(0.9), whole_bytes(512.0)],
            ["16 bytes", "1 byte", "512 bytes"]
        );
    }
}
