//! The whole compiler on input that nobody would write: bytes, heaps of words, and real and random programs with
//! some tokens removed, doubled, swapped or replaced. It may refuse them in any way that it has for mistakes; it may
//! not panic, go on for ever, break its own IR, or print PTX that is none.
//!
//! The ordinary run takes a second and is the same every time. `KRN_FUZZ_SECONDS=600 cargo test --release -p
//! krn-compiler --test fuzz -- --nocapture` looks longer, at input that `KRN_FUZZ_SEED` picks (else the clock).
//! What fails is made small and printed.

mod mutate;
mod programs;
mod shrink;

use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileError, CompileOptions, TARGETS, compile};
use mutate::Material;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Inputs of the ordinary run.
const CASES: u64 = 500;

/// For one input of a few kilobytes, in any build.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a compilation may end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Compiled,
    Refused,
}

/// What is wrong with the compiler, as this text and target show; or how it ended.
fn outcome(text: &str, target: &str) -> Result<End, String> {
    let start = Instant::now();
    let end = catch_unwind(AssertUnwindSafe(|| compiled(text, target))).unwrap_or_else(|panic| {
        let message =
            panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", message.unwrap_or("without a message")))
    });
    let slow = start.elapsed() > PATIENCE;
    if slow && end.is_ok() { Err("too slow".to_string()) } else { end }
}

fn compiled(text: &str, target: &str) -> Result<End, String> {
    let source = SourceFile::new("fuzz.krn", text);
    match compile(&source, &CompileOptions::for_target(target)) {
        Ok(done) => {
            let module = krn_compiler::ptx::parse(&done.compiled.ptx)
                .map_err(|error| format!("bad PTX: {error:?}"))?;
            if module != done.compiled.module {
                return Err("the PTX does not parse back to what was printed".to_string());
            }
            Ok(End::Compiled)
        }
        Err(CompileError::Diagnostics(diagnostics)) => {
            if !diagnostics.has_errors() {
                return Err("refused without an error".to_string());
            }
            for report in diagnostics.iter() {
                for label in std::iter::once(&report.primary).chain(&report.secondary) {
                    let (from, to) = (label.span.start as usize, label.span.end as usize);
                    if from > to || to > text.len() {
                        return Err(format!("a label outside of the text: {}", report.message));
                    }
                }
            }
            render(&source, &diagnostics, RenderOptions::default());
            Ok(End::Refused)
        }
        Err(error) => Err(format!("neither compiled nor refused: {error}")),
    }
}

/// The input that is being compiled, and since when.
type Current = Arc<Mutex<Option<(Instant, String)>>>;

/// Ends the process, naming the input, where the compiler does not come back.
fn watch(current: &Current) {
    let current = Arc::clone(current);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let input = current.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if let Some((_, text)) = input.as_ref().filter(|(since, _)| since.elapsed() > 6 * PATIENCE) {
                eprintln!("the compiler does not come back from\n{text}");
                std::process::exit(1);
            }
        }
    });
}

fn input(rng: &mut impl Rng, material: &Material) -> String {
    match rng.random_range(0..20) {
        0 => {
            let bytes: Vec<u8> = (0..rng.random_range(0..300)).map(|_| rng.random()).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        1 => mutate::soup(rng, material),
        2..=6 => {
            let program = programs::random(rng);
            mutate::mutated(rng, &program, material)
        }
        _ => {
            let program = &material.programs[rng.random_range(0..material.programs.len())];
            mutate::mutated(rng, program, material)
        }
    }
}

#[test]
fn no_input_breaks_the_compiler() {
    let seconds =
        std::env::var("KRN_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let seed = std::env::var("KRN_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| match seconds {
        Some(_) => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64),
        None => 1,
    });
    let material = Material::new(programs::real());
    let current = Current::default();
    watch(&current);
    let start = Instant::now();
    let (mut cases, mut compiled) = (0u64, 0u64);
    let goes_on = |cases: u64| seconds.map_or(cases < CASES, |seconds| start.elapsed() < seconds);
    while goes_on(cases) {
        // A generator of its own, so that an input can be had again without those before.
        let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_add(cases));
        let text = input(&mut rng, &material);
        let target = TARGETS[rng.random_range(0..TARGETS.len())];
        *current.lock().unwrap() = Some((Instant::now(), text.clone()));
        match outcome(&text, target) {
            Ok(end) => compiled += u64::from(end == End::Compiled),
            Err(message) => {
                *current.lock().unwrap() = None;
                let hook = std::panic::take_hook();
                std::panic::set_hook(Box::new(|_| {}));
                let small =
                    shrink::shrink(&text, |text| outcome(text, target).err().as_ref() == Some(&message));
                std::panic::set_hook(hook);
                panic!("for {target}, KRN_FUZZ_SEED={}: {message}\n{small}", seed.wrapping_add(cases));
            }
        }
        cases += 1;
    }
    *current.lock().unwrap() = None;
    println!("{cases} inputs from seed {seed}, of which {compiled} compiled");
    // Input that never gets past the parser tests little.
    assert!(compiled * 20 > cases, "only {compiled} of {cases} inputs compile");
}
