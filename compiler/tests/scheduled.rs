//! Schedules for some sizes: which one a variant follows, what its guard says, and what is made of a file.

use krn_compiler::manifest::{KernelManifest, Step, Value, Variant};
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileError};
use krn_compiler::{CompileOptions, CompiledModule, SymbolValues, Variants, compile, explain_schedules};

const BY_SIZE: &str = "
kernel k(x: f32[m, n]) -> y: f32[m, n] { y[i, j] = 2.0 * x[i, j] }
schedule k where m >= 100, n % 8 == 0 { block 64 }
schedule k { block 32 }
schedule k where m >= 4096 { block 128 }
schedule k for sm_80 where m >= 4096 { block 512 }
";

fn compiled(text: &str, target: &str, variants: Variants) -> Compilation {
    let options = CompileOptions { variants, ..CompileOptions::for_target(target) };
    compile(&SourceFile::new("k.krn", text), &options).unwrap_or_else(|error| panic!("{error}"))
}

fn blocks(variant: &Variant) -> i64 {
    let [Step::Launch(launch)] = &variant.plan[..] else { panic!("one launch: {:?}", variant.plan) };
    i64::from(launch.block[0])
}

fn for_sizes(target: &str, m: i128, n: i128) -> CompiledModule {
    let sizes = [("m", m), ("n", n)].map(|(name, size)| (name.to_string(), Value::Int(size)));
    compiled(BY_SIZE, target, Variants::For(SymbolValues::from(sizes))).compiled
}

fn words(kernel: &KernelManifest, variant: &Variant) -> String {
    variant.guard.in_words(&kernel.symbol_names())
}

#[test]
fn the_first_schedule_whose_condition_holds_counts() {
    for (m, n, threads) in [(100, 8, 64), (5000, 8, 64), (5000, 7, 128), (4095, 7, 32), (99, 8, 32)] {
        let made = for_sizes("sm_90", m, n);
        assert_eq!(blocks(&made.manifest.kernels[0].variants[0]), threads, "{m} x {n}");
    }
    // One for the target goes before those for all.
    for (m, n, threads) in [(5000, 8, 512), (4095, 8, 64), (4095, 7, 32)] {
        let made = for_sizes("sm_80", m, n);
        assert_eq!(blocks(&made.manifest.kernels[0].variants[0]), threads, "{m} x {n}");
    }
}

#[test]
fn each_schedule_has_a_variant_and_the_general_plan_takes_the_one_without_a_condition() {
    let manifest = compiled(BY_SIZE, "sm_90", Variants::default()).compiled.manifest;
    let kernel = &manifest.kernels[0];
    let general = kernel.general().expect("a general plan");
    assert_eq!(blocks(general), 32);
    assert!(general.guard.relies_on.is_empty());
    let made = |threads: i64| kernel.variants.iter().filter(move |variant| blocks(variant) == threads);
    let relied = |variant: &Variant| {
        let of = &variant.guard.relies_on;
        of.iter().map(|known| known.in_words(&kernel.symbol_names())).collect::<Vec<_>>()
    };
    for (threads, condition) in [(64, "m >= 100"), (128, "m >= 4096")] {
        let variants: Vec<&Variant> = made(threads).collect();
        assert!(!variants.is_empty(), "no variant of {threads} threads");
        for variant in variants {
            assert!(relied(variant).iter().any(|known| known == condition), "{}", words(kernel, variant));
        }
    }
    // Whatever runs, runs for one guard.
    for (m, n) in [(1, 1), (100, 8), (4096, 4096), (4096, 7), (99, 16), (1 << 20, 9)] {
        let values = [Value::Int(m), Value::Int(n)];
        let holding = kernel.variants.iter().filter(|variant| variant.guard.holds(&values)).count();
        assert!(holding <= 1, "{m} x {n}");
    }
}

#[test]
fn a_guard_says_why_a_schedule_does_not_count() {
    let made = for_sizes("sm_90", 4095, 7);
    let kernel = &made.manifest.kernels[0];
    let guard = words(kernel, &kernel.variants[0]);
    assert!(guard.contains("m < 4096"), "{guard}");
}

#[test]
fn explained_schedules_say_for_which_sizes_they_count() {
    let sizes = [("m".to_string(), Value::Int(5000)), ("n".to_string(), Value::Int(7))];
    let compilation = compiled(BY_SIZE, "sm_90", Variants::For(SymbolValues::from(sizes)));
    let text = &explain_schedules(&compilation)[0].text;
    assert!(text.starts_with("schedule k where m >= 4096 {"), "{text}");
    assert!(text.contains("block 128"), "{text}");
}

#[test]
fn a_directive_without_a_place_is_an_error_in_a_schedule_for_some_sizes_too() {
    let text =
        "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] }\nschedule k where n >= 5000 { split i: 4 }\n";
    let error =
        compile(&SourceFile::new("k.krn", text), &CompileOptions::for_target("sm_90")).expect_err("refused");
    let CompileError::Diagnostics(found) = error else { panic!("{error}") };
    let codes: Vec<&str> = found.iter().map(|diagnostic| diagnostic.code.0).collect();
    assert_eq!(codes, ["E0512"]);
}

#[test]
fn with_a_fixed_size_a_schedule_may_be_for_others() {
    let options = CompileOptions {
        sizes: [("m".to_string(), 5)].into_iter().collect(),
        ..CompileOptions::for_target("sm_90")
    };
    let made =
        compile(&SourceFile::new("k.krn", BY_SIZE), &options).unwrap_or_else(|error| panic!("{error}"));
    let kernel = &made.compiled.manifest.kernels[0];
    assert!(kernel.variants.iter().all(|variant| blocks(variant) == 32));
}
