//! Wrong versions of passes (`mutant!`, in the passes themselves): each must be caught by the quick set.
//!
//! `cargo test -p krn-compiler --lib mutants -- --nocapture` prints what caught each; `bench/mutants.py passes` counts them.

use super::quick::{Sample, after, complaint, pipeline, samples_of};
use crate::ir::kernel::Kernel;
use crate::ir::testing::Outcome;
use crate::mutants::with;
use crate::passes::Pipeline;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Mutants that no kernel of the quick set catches, each with the reason.
const EXEMPT: &[(&str, &str)] = &[
    (
        "licm: a load passes what may end the thread",
        "missed: no kernel of the set has a failing check before a load that is outside where the check fails",
    ),
    (
        "scalarize: stores in several blocks",
        "missed: the set's arrays with literal subscripts are stored to in one block",
    ),
    (
        "scalarize: the first store counts",
        "missed: the set's arrays with literal subscripts are stored to once",
    ),
];

/// The least number of wrong versions that a pass with any has.
const LEAST: usize = 3;

/// Passes without wrong versions, each with the reason.
const WITHOUT: &[(&str, &str)] = &[
    ("simplify", "it is `fold`"),
    ("map", "to be replaced"),
    ("narrow", "to be replaced"),
    ("normals", "to be replaced"),
    ("per_thread", "to be replaced"),
    ("privatize", "to be replaced"),
    ("reuse", "to be replaced"),
    ("rfactor", "to be replaced"),
    ("split_reductions", "to be replaced"),
    ("stage", "to be replaced"),
    ("threads", "to be replaced"),
];

/// The names of all mutants, as they stand in the source of the compiler.
fn names() -> Vec<&'static str> {
    let mut names = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the source") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                // Tests have none.
                folders.extend((!path.ends_with("tests")).then_some(path));
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source file");
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let code: String = code.flat_map(|line| [line, "\n"]).collect();
            for place in code.split("mutant!(").skip(1) {
                if let Some(name) =
                    place.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next())
                {
                    names.push(String::leak(name.to_string()) as &'static str);
                }
            }
        }
    }
    names.sort_unstable();
    names
}

/// Samples with what they compute before and after the right passes.
struct Set {
    samples: Vec<(Sample, Vec<Outcome>, Kernel)>,
    pipeline: Pipeline,
}

impl Set {
    fn new() -> Self {
        let pipeline = pipeline();
        let samples: Vec<Sample> =
            ["forms", "locals", "tapes", "programs"].into_iter().flat_map(samples_of).collect();
        let known = |sample: Sample| {
            let expected = sample.outcomes(&sample.kernel);
            let right = after(&sample, &pipeline).unwrap_or_else(|error| panic!("{}: {error}", sample.name));
            (sample, expected, right)
        };
        Self { samples: samples.into_par_iter().map(known).collect(), pipeline }
    }
}

/// What notices that a pipeline is wrong, and at which sample.
fn caught_by(set: &Set, sample: usize, pipeline: &Pipeline) -> Option<String> {
    let (sample, expected, right) = &set.samples[sample];
    let result = catch_unwind(AssertUnwindSafe(|| match after(sample, pipeline) {
        Err(error) => Some(format!("verifier: {}", error.to_string().lines().next().unwrap_or_default())),
        Ok(kernel) if kernel == *right => None,
        Ok(kernel) => complaint(sample, expected, &kernel),
    }));
    let found = result.unwrap_or_else(|_| Some("a panic".to_string()));
    found.map(|found| format!("{}: {found}", sample.name))
}

#[test]
fn the_right_passes_keep_what_the_quick_set_computes() {
    let set = Set::new();
    let wrong = |(sample, expected, right): &(Sample, Vec<Outcome>, Kernel)| {
        complaint(sample, expected, right).map(|found| format!("{}: {found}\n{}", sample.name, sample.text))
    };
    let wrong: Vec<String> = set.samples.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong[0]);
}

#[test]
fn every_mutant_is_caught() {
    let (set, names) = (Set::new(), names());
    let tried: Vec<(&str, Option<String>, u64)> = names
        .par_iter()
        .map(|name| {
            let (caught, reached) = with(name, || {
                (0..set.samples.len()).find_map(|sample| caught_by(&set, sample, &set.pipeline))
            });
            (*name, caught, reached)
        })
        .collect();
    let mut passes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missed = Vec::new();
    for (name, caught, reached) in &tried {
        let pass = name.split(':').next().unwrap_or_default();
        *passes.entry(pass).or_default() += 1;
        match caught {
            Some(caught) => println!("caught | {name} | {}", caught.chars().take(120).collect::<String>()),
            None => {
                println!("missed | {name} | reached {reached} times");
                missed.push(*name);
            }
        }
    }
    missed.retain(|name| EXEMPT.iter().all(|(known, _)| known != name));
    assert!(missed.is_empty(), "nothing notices {missed:?}");
    let stale: Vec<_> = EXEMPT.iter().filter(|(name, _)| !names.contains(name)).collect();
    assert!(stale.is_empty(), "no such mutants: {stale:?}");
    let mut standard: Vec<String> =
        Pipeline::for_target(&super::target()).names().map(str::to_string).collect();
    standard.retain(|pass| WITHOUT.iter().all(|(known, _)| known != pass));
    let few: Vec<&String> =
        standard.iter().filter(|pass| passes.get(pass.as_str()).is_none_or(|count| *count < LEAST)).collect();
    assert!(few.is_empty(), "fewer than {LEAST} mutants of {few:?}");
}
