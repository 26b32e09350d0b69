//! Wrong versions of lowering, passes and selection (`mutant!`, where the right ones are): each must be caught by the quick set.
//! Those of passes by what the IR computes before and after them (`quick.rs`), the others by what the whole way from text to
//! numbers gives (`whole.rs`). What no random kernel reaches is caught by a kernel of its own (`apart.rs`).
//!
//! `cargo test -p krn-compiler --lib mutants -- --nocapture` prints what caught each; `bench/mutants.py passes` counts them.

use super::apart;
use super::deviations::deviations;
use super::matrices;
use super::quick::{Sample, after, complaint, pipeline, programs_of, samples_of};
use super::whole::Whole;
use crate::ir::kernel::Kernel;
use crate::ir::testing::Outcome;
use crate::mutants::{reached_by, with};
use crate::passes::{Pipeline, lower_tiles};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

/// Mutants that no kernel is known to catch, each with what was tried. They do not count, and as all kernels are tried for
/// them in vain, that is done where tests run in full.
const EXEMPT: &[(&str, &str)] = &[
    (
        "layouts: a value without some axes lies as others",
        "permuted copies that add an array of fewer axes reach it and give the same",
    ),
    (
        "tile: an array in place changes its layout",
        "permuted copies into an array in place, and onto one, reach it and give the same",
    ),
    (
        "hoist_reductions: what the launch writes is read",
        "the quick set reaches it and computes the same; of tests/kernels/locals nothing reaches it",
    ),
];

/// The least number of wrong versions that lowering, selection, and a pass with any has.
const LEAST: usize = 3;

/// Passes of which fewer are caught, each with the reason.
const FEW: &[(&str, &str)] = &[("layouts", "two are: the third is exempt, above")];

/// What has mutants beside passes: what is held against the reference, from text to numbers.
const WHOLE: [&str; 2] = ["lower", "select"];

/// What is held against tile programs, which no random kernel becomes yet.
const TILES: &str = "lower_tiles";

/// What is held against products from text to numbers (`matrices.rs`): no random kernel is one of factors that a matrix
/// instruction takes.
const MATRICES: &str = "tile contraction";

/// What is held against convolutions, likewise: `stage` makes one axis of several.
const CONVOLUTIONS: &str = "flatten";

/// What is held against sums of squared deviations, likewise (`deviations.rs`).
const MOMENTS: &str = "moments";

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
    // Those of the checker's proofs are tried by its own tests.
    names.retain(|name| owner(name) != "prove");
    names.sort_unstable();
    names
}

/// A sample with what it computes before and after the right passes.
struct Known {
    sample: Sample,
    expected: Vec<Outcome>,
    right: Kernel,
    /// The mutants whose places are reached on the way.
    reached: BTreeSet<&'static str>,
}

struct Set {
    samples: Vec<Known>,
    pipeline: Pipeline,
}

impl Set {
    /// Made once for all tests.
    fn known() -> &'static Self {
        static SET: OnceLock<Set> = OnceLock::new();
        SET.get_or_init(Self::new)
    }

    fn new() -> Self {
        let pipeline = pipeline();
        let sources = [
            "forms",
            "spaces",
            "locals",
            "tapes",
            "programs",
            "permutations",
            "columns",
            "steps",
            "strides",
            "loops",
            "contractions",
            "folds",
            "branches",
        ];
        let samples: Vec<Sample> = sources.into_iter().flat_map(samples_of).collect();
        let known = |sample: Sample| {
            let expected = sample.outcomes(&sample.kernel);
            let (right, reached) = reached_by(|| after(&sample, &pipeline));
            let right = right.unwrap_or_else(|error| panic!("{}: {error}", sample.name));
            Known { sample, expected, right, reached }
        };
        Self { samples: samples.into_par_iter().map(known).collect(), pipeline }
    }
}

/// What notices that a pipeline is wrong, and at which sample.
fn caught_by(known: &Known, pipeline: &Pipeline) -> Option<String> {
    let Known { sample, expected, right, .. } = known;
    let result = catch_unwind(AssertUnwindSafe(|| match after(sample, pipeline) {
        Err(error) => Some(format!("verifier: {}", error.to_string().lines().next().unwrap_or_default())),
        Ok(kernel) if kernel == *right => None,
        Ok(kernel) => complaint(sample, expected, &kernel),
    }));
    let found = result.unwrap_or_else(|_| Some("a panic".to_string()));
    found.map(|found| format!("{}: {found}", sample.name))
}

/// What a mutant is a wrong version of.
fn owner(name: &str) -> &str {
    name.split(':').next().unwrap_or_default()
}

/// Kernels that are compiled and run as a whole: as many as catch what there is to catch, for each takes some milliseconds.
fn whole_set() -> &'static [Whole] {
    static SET: OnceLock<Vec<Whole>> = OnceLock::new();
    SET.get_or_init(|| {
        let numbered = |(source, count): (&'static str, usize)| {
            let programs = programs_of(source).into_iter().take(count).enumerate();
            programs.map(move |(number, program)| (format!("{source} {number}"), program))
        };
        // Of each kind in turn: most mutants are caught by one of the first of a kind.
        let kinds = [("forms", 250), ("programs", 40), ("locals", 80)].map(|kind| numbered(kind).enumerate());
        let mut programs: Vec<_> = kinds.into_iter().flatten().collect();
        programs.sort_by_key(|(number, _)| *number);
        let programs: Vec<_> = programs.into_iter().map(|(_, program)| program).collect();
        let made = side_by_side(&programs, |(name, program)| Whole::of(name.clone(), program));
        made.into_iter().flatten().collect()
    })
}

/// What the work on each job gives, in the order of the jobs. On threads of their own: a thread of rayon's that waits for the emulator
/// does another job meanwhile, which has another mutant.
pub fn side_by_side<J: Sync, R: Send>(jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(jobs.len())));
    let worker = || {
        while let Some((at, job)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(at).map(|job| (at, job))
        } {
            let result = work(job);
            done.lock().expect("no worker panics").push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
    let mut done = done.into_inner().expect("no worker panics");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

pub fn caught_from_text_to_numbers(whole: &Whole) -> Option<String> {
    let result = catch_unwind(AssertUnwindSafe(|| whole.complaint()));
    let found = result.unwrap_or_else(|_| Some("a panic".to_string()));
    found.map(|found| format!("{}: {found}", whole.name))
}

#[test]
fn the_right_compiler_agrees_with_the_reference_from_text_to_numbers() {
    let whole = whole_set();
    let wrong = |whole: &Whole| {
        let found = whole.difference_of_the_right()?;
        Some(format!("{}: {found}\n{}", whole.name, whole.text))
    };
    let wrong: Vec<String> = whole.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong[0]);
    assert!(whole.len() > 200, "only {} kernels were judged", whole.len());
}

#[test]
fn the_right_passes_keep_what_the_quick_set_computes() {
    let set = Set::known();
    let wrong = |Known { sample, expected, right, .. }: &Known| {
        complaint(sample, expected, right).map(|found| format!("{}: {found}\n{}", sample.name, sample.text))
    };
    let wrong: Vec<String> = set.samples.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong[0]);
}

#[test]
fn every_mutant_is_caught() {
    let (set, mut names) = (Set::known(), names());
    let all = names.clone();
    let elsewhere: BTreeSet<&str> = apart::names().collect();
    let unknown: Vec<_> = elsewhere.iter().filter(|name| !all.contains(name)).collect();
    assert!(unknown.is_empty(), "no mutants: {unknown:?}");
    names.retain(|name| !elsewhere.contains(name));
    let exempt = |name: &&str| EXEMPT.iter().any(|(known, _)| known == name);
    let unknown: Vec<_> = EXEMPT.iter().map(|(name, _)| name).filter(|name| !all.contains(name)).collect();
    assert!(unknown.is_empty(), "no mutants: {unknown:?}");
    names.retain(|name| xtask::tests_run_in_full() || !exempt(name));
    let (of_tiles, names): (Vec<&'static str>, Vec<&'static str>) =
        names.iter().copied().partition(|name| owner(name) == TILES);
    let (of_matrices, names): (Vec<&'static str>, Vec<&'static str>) =
        names.iter().copied().partition(|name| owner(name) == MATRICES);
    let (of_convolutions, names): (Vec<&'static str>, Vec<&'static str>) =
        names.iter().copied().partition(|name| owner(name) == CONVOLUTIONS);
    let (of_moments, names): (Vec<&'static str>, Vec<&'static str>) =
        names.iter().copied().partition(|name| owner(name) == MOMENTS);
    let (of_the_whole, of_passes): (Vec<&'static str>, Vec<&'static str>) =
        names.iter().copied().partition(|name| WHOLE.contains(&owner(name)));
    let mut tried: Vec<(&'static str, Option<String>, u64)> = of_passes
        .par_iter()
        .map(|name| {
            // The others become what the right passes make of them.
            let mut samples = set.samples.iter().filter(|known| known.reached.contains(name));
            let (caught, reached) = with(name, || samples.find_map(|known| caught_by(known, &set.pipeline)));
            (*name, caught, reached)
        })
        .collect();
    tried.extend(side_by_side(&of_tiles, |name| {
        let (caught, reached) = with(name, lower_tiles::tests::caught);
        (*name, caught, reached)
    }));
    let texts = [
        (of_matrices, matrices::products()),
        (of_convolutions, matrices::convolutions()),
        (of_moments, deviations()),
    ];
    for (names, texts) in texts {
        tried.extend(side_by_side(&names, |name| {
            let mut texts = texts.iter().filter(|whole| whole.reaches(name));
            let (caught, reached) = with(name, || texts.find_map(caught_from_text_to_numbers));
            (*name, caught, reached)
        }));
    }
    let whole = whole_set();
    tried.extend(side_by_side(&of_the_whole, |name| {
        let mut whole = whole.iter().filter(|whole| whole.reaches(name));
        let (caught, reached) = with(name, || whole.find_map(caught_from_text_to_numbers));
        (*name, caught, reached)
    }));
    tried.extend(apart::tried());
    let mut passes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missed = Vec::new();
    for (name, caught, reached) in &tried {
        match caught {
            Some(caught) => {
                *passes.entry(owner(name)).or_default() += 1;
                println!("caught | {name} | {}", caught.chars().take(120).collect::<String>());
            }
            None => {
                println!("missed | {name} | reached {reached} times");
                missed.push(*name);
            }
        }
    }
    let is_caught = |name: &str| tried.iter().any(|(tried, caught, _)| *tried == name && caught.is_some());
    let stale: Vec<_> = EXEMPT.iter().filter(|(name, _)| is_caught(name)).collect();
    missed.retain(|name| !exempt(name));
    assert!(missed.is_empty(), "nothing notices {missed:?}");
    assert!(stale.is_empty(), "caught: {stale:?}");
    let mut standard: Vec<String> =
        Pipeline::for_target(&super::target()).names().map(str::to_string).collect();
    standard.retain(|pass| WITHOUT.iter().all(|(known, _)| known != pass));
    standard.extend(WHOLE.map(str::to_string));
    standard.extend([MATRICES, CONVOLUTIONS].map(str::to_string));
    standard.retain(|pass| FEW.iter().all(|(known, _)| known != pass));
    let few: Vec<&String> =
        standard.iter().filter(|pass| passes.get(pass.as_str()).is_none_or(|count| *count < LEAST)).collect();
    assert!(few.is_empty(), "fewer than {LEAST} mutants of {few:?}");
}
