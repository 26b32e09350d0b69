//! Guards of variants: what they promise, held against random sizes for all examples.

use crate::support::examples;
use krn_compiler::data::Scalar;
use krn_compiler::manifest::{Guard, KernelManifest, Step, SymbolKind, Value};
use krn_compiler::{CompileOptions, CompiledModule, Origin, compile};

/// Sizes for a kernel: for a full run as many as the promise is about, else many for a quarter of the kernels.
fn count(kernel: &str) -> usize {
    match xtask::is_in_share(kernel, 4) {
        _ if xtask::tests_run_in_full() => 10_000,
        true => 500,
        false => 100,
    }
}
/// Variants of a kernel at most, and of the kernel in the middle. Most have k-means, whose points are added up along an axis
/// that may be short beside what finds their centres; and products of halves: shapes of tiles for matrix instructions, by
/// how their factors come, and those of the code for few rows. A loop with loops inside and a short last axis adds a question.
const MOST: usize = 96;
/// Where terms of a reduction, or a product in an iteration, have a launch of their own, the choices for the one and the other
/// multiply: tiles and rows for the distances from centres, rows of all lengths for the nearest one; tiles for the scores of an
/// attention and for its results.
const MOST_WITH_TERMS: usize = 288;
const MEDIAN: usize = 8;
/// Of so many sizes that a known guard covers one is compiled again.
fn compiled_again() -> usize {
    if xtask::tests_run_in_full() { 200 } else { 50 }
}

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below.max(1)
    }

    /// Log-uniform from 1 to 2^20, half of them multiples of a power of two.
    fn size(&mut self) -> i128 {
        let bits = self.next(21);
        let size = (1u64 << bits) + self.next(1 << bits);
        let unit = 1u64 << self.next(bits + 1);
        i128::from(if self.next(2) == 0 { size } else { size.div_ceil(unit) * unit }.min(1 << 20))
    }

    fn value(&mut self, kind: &SymbolKind, scalar: Scalar) -> Option<Value> {
        match kind {
            SymbolKind::Counter => None,
            SymbolKind::Dim { .. } => Some(Value::Int(self.size())),
            SymbolKind::Parameter { .. } if scalar.is_integer() => Some(Value::Int(self.next(9).into())),
            SymbolKind::Parameter { .. } if scalar == Scalar::Bool => Some(Value::Bool(self.next(2) == 0)),
            SymbolKind::Parameter { .. } => {
                Some(Value::Float([0.0, 1e-40, 1e-6, 0.5, 1.0, 3.0][self.next(6) as usize]))
            }
        }
    }
}

/// The guard of a module's only variant.
fn guard(module: &CompiledModule) -> &Guard {
    &module.manifest.kernels[0].variants[0].guard
}

/// Calls back for each kernel of the examples, with its module.
fn each_kernel(mut each: impl FnMut(&CompiledModule, &Origin, &KernelManifest)) {
    for source in examples() {
        let compiled = compile(&source, &CompileOptions::for_target("sm_90")).expect("it compiles").compiled;
        let origin = compiled.origin.as_ref().expect("it is kept");
        compiled.manifest.kernels.iter().for_each(|kernel| each(&compiled, origin, kernel));
    }
}

/// The variants that the sizes come to, by the names of their entries.
fn variants(origin: &Origin, kernel: &KernelManifest, numbers: &mut Numbers) -> Vec<String> {
    let mut known: Vec<CompiledModule> = Vec::new();
    for round in 0..count(&kernel.name) {
        let given: Vec<Option<Value>> =
            kernel.symbols.iter().map(|symbol| numbers.value(&symbol.kind, symbol.scalar)).collect();
        let values: Vec<Value> = given.iter().map(|value| value.unwrap_or(Value::Int(0))).collect();
        if !kernel.facts.iter().all(|fact| fact.condition.holds(&values)) {
            continue;
        }
        let fitting: Vec<_> = known.iter().filter(|made| guard(made).holds(&values)).collect();
        assert!(fitting.len() <= 1, "{}: two guards hold for {values:?}", kernel.name);
        if !fitting.is_empty() && !round.is_multiple_of(compiled_again()) {
            continue;
        }
        let made = origin.specialize(&kernel.name, &given).expect("it compiled before");
        assert!(guard(&made).holds(&values), "{}: {:?} for {values:?}", kernel.name, guard(&made));
        match fitting.first() {
            Some(same) => {
                assert_eq!(guard(&made), guard(same), "{} for {values:?}", kernel.name);
                assert!(made.ptx == same.ptx, "{} for {values:?}", kernel.name);
            }
            None => known.push(made),
        }
    }
    let entries = |made: &CompiledModule| {
        let parts = made.ptx.split(".entry ").skip(1);
        let names: Vec<&str> = parts.filter_map(|part| part.split('(').next()).collect();
        names.join(" ")
    };
    let mut names: Vec<String> = known.iter().map(entries).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_guard_says_which_sizes_give_the_same_code() {
    let mut numbers = Numbers(7);
    let mut counts = Vec::new();
    each_kernel(|_, origin, kernel| {
        let variants = variants(origin, kernel, &mut numbers);
        let count = variants.len();
        let most =
            if variants.iter().any(|entries| entries.contains("_terms") || entries.contains("_product")) {
                MOST_WITH_TERMS
            } else {
                MOST
            };
        assert!(count <= most, "{}: {count} variants:\n{}", kernel.name, variants.join("\n"));
        counts.push((count, kernel.name.clone()));
    });
    counts.sort_unstable();
    println!("{counts:?}");
    let (median, _) = &counts[counts.len() / 2];
    assert!(*median <= MEDIAN, "{counts:?}");
    assert!(counts.iter().filter(|(count, _)| *count > 1).count() > 10, "sizes matter: {counts:?}");
}

/// The entries that a plan launches for these sizes, without what tells variants apart.
fn launched(steps: &[Step], values: &[Value], entries: &mut Vec<String>) {
    for step in steps {
        match step {
            // Code for all sizes cuts no product into pieces.
            Step::Launch(launch) if launch.entry.contains("_sums") => {}
            Step::Launch(launch) => entries.push(launch.entry.replace("_general", "")),
            Step::Branch { condition, then, otherwise } => {
                launched(if condition.holds(values) { then } else { otherwise }, values, entries);
            }
            _ => {}
        }
    }
}

/// The code for all sizes has two shapes of tiles; where it says that it is the one to take, another one would not be taken.
#[test]
fn code_for_all_sizes_is_taken_where_its_tiles_are_the_best() {
    let mut numbers = Numbers(5);
    let mut taken = 0;
    each_kernel(|_, origin, kernel| {
        let Some(general) = kernel.variants.last().filter(|last| last.guard.relies_on.is_empty()) else {
            return;
        };
        // Each size that is taken is compiled for.
        for _ in 0..count(&kernel.name) / 4 {
            let given: Vec<Option<Value>> =
                kernel.symbols.iter().map(|symbol| numbers.value(&symbol.kind, symbol.scalar)).collect();
            let values: Vec<Value> = given.iter().map(|value| value.unwrap_or(Value::Int(0))).collect();
            let mut own = Vec::new();
            launched(&general.plan, &values, &mut own);
            if !general.guard.holds(&values) || !own.iter().any(|entry| entry.contains("_tiled")) {
                continue;
            }
            taken += 1;
            let made = origin.specialize(&kernel.name, &given).expect("it compiled before");
            let mut others = Vec::new();
            launched(&made.manifest.kernels[0].variants[0].plan, &values, &mut others);
            assert_eq!(own, others, "{} for {values:?}", kernel.name);
        }
    });
    assert!(taken > 20, "{taken} sizes only");
}

/// Signature, facts, sites, layouts and symbols are those of the kernel, whatever it is compiled for.
#[test]
fn variants_share_what_a_launch_is_checked_against() {
    let mut numbers = Numbers(11);
    each_kernel(|compiled, origin, kernel| {
        let given: Vec<Option<Value>> =
            kernel.symbols.iter().map(|symbol| numbers.value(&symbol.kind, symbol.scalar)).collect();
        let made = origin.specialize(&kernel.name, &given).expect("it compiled before");
        let [other] = &made.manifest.kernels[..] else { panic!("one kernel") };
        let shared = KernelManifest { variants: kernel.variants.clone(), ..other.clone() };
        assert_eq!(&shared, kernel);
        assert_eq!(made.manifest.statics, compiled.manifest.statics);
    });
}
