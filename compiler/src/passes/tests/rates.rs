//! How often passes do anything in random kernels: a pass that never does is not tested by them.

use super::quick::{SOURCES, Sample, samples_of, whatever_the_sizes};
use crate::analysis::model::representative_sizes;
use crate::ir::Specialization;
use crate::ir::kernel::{Kernel, Step};
use crate::passes::{Pipeline, PipelineOptions, PipelineReport};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Of how many kernels of the quick set a pass changes at least.
const FLOORS: &[(&str, usize)] = &[
    ("fold", 200),
    ("recognize_reductions", 60),
    ("parallelize", 20),
    ("promote_elements", 10),
    ("delinearize", 30),
    ("merge_axes", 20),
    ("fuse_launches", 20),
    ("fuse", 30),
    ("double_buffer", 10),
    ("collapse", 30),
    ("split_residues", 50),
    ("separate_windows", 3),
    ("matricize", 40),
    ("hoist_reductions", 15),
    ("sink_loads", 20),
    ("speculate", 3),
    ("join_branches", 60),
    ("reduce_atomics", 15),
    ("rfactor", 15),
    ("soa", 60),
    ("tile", 40),
    ("layouts", 40),
    ("lower_tiles", 40),
    ("map", 600),
    ("stage", 8),
    ("split_reductions", 120),
    ("privatize", 5),
    ("narrow", 4),
    ("unroll_short", 20),
    ("reuse", 6),
    ("per_thread", 120),
    ("threads", 600),
    ("unroll", 50),
    ("peel", 30),
    ("guards", 80),
    ("split_boundary", 3),
    ("simplify", 250),
    ("scalarize", 15),
    ("strength_reduce", 100),
    ("licm", 300),
    ("cse", 300),
    ("vectorize", 200),
    ("fuse_multiply_add", 20),
    ("dce", 300),
];

/// Passes without a floor, each with the reason.
const EXEMPT: &[(&str, &str)] = &[
    ("hoist_checks", "only reductions over ranges that memory decides; tests/kernels/accesses has them"),
    ("inline", "only temporaries that several places read; tests/kernels/locals/inline.krn has them"),
    (
        "moments",
        "only sums of squared deviations from a mean of the same walk; tests/kernels/moments has them",
    ),
    (
        "pin_windows",
        "only windows of unknown extents with 65536 results; tests/kernels/accesses/windows.krn has them",
    ),
    (
        "coalesce_axes",
        "only rows of odd lengths beside what moves along one axis alone; tests/kernels/accesses/odd_rows.krn has them",
    ),
    (
        "forward_stores",
        "only what an iteration stores and loads again; tests/kernels/locals/stored.krn has them",
    ),
    (
        "unroll_parts",
        "only indices that are compared with a half of their axis; tests/kernels/accesses/halves.krn has them",
    ),
    (
        "unroll_components",
        "only components of vectors that read each other; tests/kernels/accesses/components.krn has them",
    ),
    (
        "unroll_interleaved",
        "only arrays that end with two to eight elements; tests/kernels/accesses/interleaved.krn has them",
    ),
    (
        "unroll_and_jam",
        "only reductions of 16,384 terms and more; tests/kernels/reductions/few_at_once.krn has them",
    ),
    (
        "fuse_reductions",
        "only reductions of one thread over one range, which are rare; tests/kernels/reductions/one_walk.krn has them",
    ),
    (
        "concatenate_products",
        "only sums of several products that a matrix instruction takes; tests/kernels/stage/concatenated.krn has them",
    ),
    (
        "pack_operands",
        "only products of factors that a matrix instruction takes; tests/kernels/stage/packed.krn has them",
    ),
    (
        "sink_loops",
        "only loops at kernel level of single elements; tests/kernels/kernel_level/element_loops.krn has them",
    ),
    (
        "rebase_reductions",
        "only reductions that count from where an index stands; tests/kernels/reductions/rebased.krn has them",
    ),
    (
        "strip_mine",
        "only rows that another loop takes several elements at a time of; tests/kernels/reductions/packed_rows.krn has them",
    ),
    (
        "trim_reductions",
        "only reductions that a condition on their index cuts; tests/kernels/reductions/trimmed.krn has them",
    ),
    (
        "scan",
        "only long reductions up to an index or from there on; tests/kernels/reductions/scans.krn has them",
    ),
    ("normals", "only kernels with a square root in a loop, of a sum with a parameter; to be replaced"),
];

/// Of how many kernels the schedule says at least that something was chosen: forms, whichever pass makes them.
const FORMS: &[(&str, usize)] = &[
    ("layout soa", 60),
    ("order", 100),
    // Reductions of one's own, in the forms that reductions have.
    ("own", 120),
    ("own, layout soa", 40),
    ("own, per_thread several", 50),
    ("own, split several", 25),
    ("own, vectorize several", 80),
    ("per_thread several", 150),
    ("split several", 60),
    ("stage several", 6),
    ("unroll several", 5),
    ("vectorize several", 200),
    // Loops at kernel level that the device ends.
    ("while", 30),
];

/// What the passes say that they did to a kernel, what they made of it, and what it had of the language that has no pass of
/// its own.
fn changes(pipeline: &Pipeline, sample: Sample) -> (PipelineReport, Kernel, Vec<&'static str>) {
    let mut kernel = sample.kernel;
    let mut has = Vec::new();
    has.extend((!kernel.combiners.is_empty()).then_some("own"));
    has.extend(has_while(&kernel.plan).then_some("while"));
    // Small arrays have few forms.
    let values = representative_sizes(&kernel).unwrap_or_default().into_iter().map(Some).collect();
    kernel.specialization = Specialization::for_values(values);
    // Verified once, after the last pass.
    let options = PipelineOptions { verify: false, ..PipelineOptions::default() };
    let report = pipeline.run(&mut kernel, &options, &mut |_| {});
    (report.unwrap_or_else(|error| panic!("{}: {error}", sample.name)), kernel, has)
}

fn has_while(plan: &[Step]) -> bool {
    plan.iter().any(|step| match step {
        Step::Launch(_) => false,
        Step::Repeat { body, .. } => has_while(body),
        Step::Branch { then, otherwise, .. } => has_while(then) || has_while(otherwise),
        Step::While { .. } => true,
    })
}

#[test]
fn every_pass_and_form_occurs_in_random_kernels() {
    let pipeline = whatever_the_sizes(Pipeline::for_target(&super::target()));
    let mut rates: BTreeMap<String, [usize; SOURCES.len()]> = BTreeMap::new();
    let mut forms: BTreeMap<String, [usize; SOURCES.len()]> = BTreeMap::new();
    for (column, (source, _)) in SOURCES.iter().enumerate() {
        let changed: Vec<_> =
            samples_of(source).into_par_iter().map(|sample| changes(&pipeline, sample)).collect();
        for (report, kernel, has) in changed {
            for pass in report.passes.iter().filter(|pass| pass.changed) {
                rates.entry(pass.name.clone()).or_default()[column] += 1;
            }
            let mut chosen: Vec<String> =
                kernel.schedule.choices.iter().map(|choice| form(&choice.directive.to_string())).collect();
            chosen.sort_unstable();
            chosen.dedup();
            // Reductions of one's own have the forms of the built-in ones.
            let of_own: Vec<String> = chosen.iter().map(|form| format!("own, {form}")).collect();
            chosen.extend(if has.contains(&"own") { of_own } else { Vec::new() });
            chosen.extend(has.into_iter().map(str::to_string));
            for form in chosen {
                forms.entry(form).or_default()[column] += 1;
            }
        }
    }
    for (name, row) in rates.iter().chain(&forms) {
        println!("{name} | {row:?}");
    }
    let count = |rates: &BTreeMap<String, [usize; SOURCES.len()]>, name: &str| {
        rates.get(name).map_or(0, |row| row.iter().sum::<usize>())
    };
    let mut low = Vec::new();
    for (name, floor) in FLOORS {
        let found = count(&rates, name);
        low.extend((found < *floor).then(|| format!("`{name}` changes {found} kernels, not {floor}")));
    }
    for (name, floor) in FORMS {
        let found = count(&forms, name);
        low.extend((found < *floor).then(|| format!("{found} kernels have `{name}`, not {floor}")));
    }
    let known: Vec<&str> = FLOORS.iter().map(|row| row.0).chain(EXEMPT.iter().map(|row| row.0)).collect();
    let missing: Vec<&str> = pipeline.names().filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "passes without a floor: {missing:?}");
    assert!(low.is_empty(), "{}", low.join("\n"));
}

/// The word of a directive, with what tells that it does something: `per_thread >1`, `stage`, `layout soa`.
fn form(directive: &str) -> String {
    let word = directive.split_whitespace().next().unwrap_or_default();
    let last = directive.split_whitespace().last().unwrap_or_default();
    match last.parse::<u64>() {
        Ok(1) => format!("{word} 1"),
        Ok(_) => format!("{word} several"),
        Err(_) if word == "layout" => format!("layout {last}"),
        Err(_) => word.to_string(),
    }
}
