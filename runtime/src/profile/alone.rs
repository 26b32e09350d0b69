//! Launches whose threads walk long loops by themselves, far longer than what they move takes: the net under the passes that make
//! teams and tiles. What falls through them all is told here, with the reason that is known.
//!
//! A launch whose time is at the bandwidth, or that computes as much as the time says, is not among them.

use super::gpu::Gpu;
use super::predicted::{LAUNCH, Work};
use krn_compiler::analysis::model::{LaunchCost, model};
use krn_compiler::analysis::{Alone, own_loops};
use krn_compiler::ir::kernel::Kernel;
use krn_compiler::manifest::Value;
use krn_compiler::source::{SourceFile, Span};

/// A launch takes far longer than it has to where it takes so many times as long.
const FAR: f64 = 4.0;
/// It computes as much as it can where it takes no longer than so many times what its instructions take.
const BUSY: f64 = 2.0;
/// What a launch loses matters where it is such a share of the whole kernel.
const MATTERS: f64 = 0.25;
/// Bytes of a sector, of which a lane that goes to a place of its own takes one.
const SECTOR: f64 = 32.0;
const LANES: f64 = 32.0;

/// A loop that each thread of a launch does by itself, which takes far longer than what it moves.
#[derive(Clone, PartialEq, Debug)]
pub struct Slow {
    /// The launch's name.
    pub launch: String,
    /// The loop.
    pub span: Span,
    /// What the launch is predicted to take, and what its memory or its instructions take at least.
    pub seconds: f64,
    pub least: f64,
    /// Why it is so.
    pub reason: String,
}

impl Slow {
    /// One line for a person.
    pub fn told(&self, source: &SourceFile) -> String {
        let (line, column) = source.line_column(self.span.start);
        let [seconds, least] = [self.seconds, self.least].map(time);
        format!(
            "{}: line {line}, column {column}: each thread walks `{}` by itself, {seconds} by estimate, and what is moved takes \
             {least}: {}",
            self.launch,
            self.text(source),
            self.reason
        )
    }

    /// How the loop begins.
    pub fn text(&self, source: &SourceFile) -> String {
        let text = source.slice(self.span);
        let line = text.lines().next().unwrap_or_default().trim_end();
        if line.len() < text.len() { format!("{line} …") } else { line.to_string() }
    }
}

/// A time as people write it.
fn time(seconds: f64) -> String {
    match seconds {
        ..1e-3 => format!("{:.0} us", seconds * 1e6),
        ..1.0 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

/// What the launches of a kernel do in long loops of one thread that should be shared, at sizes; nothing where they cannot be
/// modelled.
pub fn slow_loops(source: &SourceFile, kernel: &Kernel, sizes: &[Value], gpu: &Gpu) -> Vec<Slow> {
    let mut found: Vec<Slow> = Vec::new();
    let costs = model(kernel, sizes).unwrap_or_default();
    let all: f64 = costs.iter().map(|cost| Work::of_model(kernel, sizes, cost).seconds(gpu)).sum();
    for cost in costs {
        if cost.repeats == 0.0 || cost.block_count() == 0 {
            continue;
        }
        let loops = own_loops(kernel, cost.launch);
        // Of several the one with the most turns is not known: the first one stands for all.
        let Some(first) = loops.first() else { continue };
        let mut work = Work::of_model(kernel, sizes, &cost);
        // What memory decides about goes anywhere.
        let unknown: f64 = cost.accesses.iter().map(|access| access.unknown).sum();
        work.bytes += unknown * SECTOR * LANES;
        let launches = cost.repeats * LAUNCH;
        let (seconds, moving) = (work.seconds(gpu), work.moving(gpu));
        let (issuing, passing) = (work.issuing(gpu), work.passing(gpu));
        let least = (FAR * moving).max(BUSY * issuing) + FAR * launches;
        let rereads = passing > FAR * moving + launches && passing > issuing;
        if seconds <= least && !rereads || seconds - moving < MATTERS * all {
            continue;
        }
        let span = kernel.insts[first.inst].span;
        let launch = kernel.launches[cost.launch].name.clone();
        if found.iter().any(|known| known.launch == launch) {
            continue;
        }
        let reason = reason(source, kernel, &cost, *first, rereads, gpu);
        found.push(Slow { launch, span, seconds, least: moving + launches, reason });
    }
    found
}

/// Why threads do not share a loop.
fn reason(
    source: &SourceFile,
    kernel: &Kernel,
    cost: &LaunchCost,
    alone: Alone,
    rereads: bool,
    gpu: &Gpu,
) -> String {
    let launch = &kernel.launches[cost.launch].name;
    if let Some(refused) = kernel.schedule.refusal(launch) {
        return refused.to_string();
    }
    let text = source.slice(kernel.insts[alone.inst].span);
    if text.starts_with("while") {
        return "only its turns tell when it ends".to_string();
    }
    if text.starts_with("for") && !text.starts_with("forall") {
        return "its turns come in order; what `sum`, `min`, `max` or `forall` say, threads share"
            .to_string();
    }
    if alone.in_branch {
        return "memory decides whether it is done: a value that is selected behind it is computed together"
            .to_string();
    }
    if alone.is_uneven {
        return "it is longer in one thread than in another".to_string();
    }
    let threads = cost.block_count() * u64::from(cost.threads);
    let held = gpu.multiprocessor.threads * u64::from(gpu.multiprocessors);
    if threads < held {
        return format!("there are {threads} threads, of {held} that the GPU holds, and no team takes it");
    }
    if rereads {
        return "threads read the same elements again and again, and no tiles are found for them".to_string();
    }
    "neighbouring threads go far apart, and no team takes it".to_string()
}
