//! Which sizes stand for all others where a kernel's facts leave few, and what guards say where none are found.

use krn_compiler::manifest::Value;
use krn_compiler::source::SourceFile;
use krn_compiler::{
    CompileError, CompileOptions, CompiledModule, SymbolValues, Variants, compile, explain_sizes,
};

/// What a kernel is compiled to, also for these sizes.
fn compiled(text: &str, sizes: &[&[(&str, i64)]]) -> Result<CompiledModule, CompileError> {
    let values = |sizes: &&[(&str, i64)]| -> SymbolValues {
        sizes.iter().map(|(name, value)| (name.to_string(), Value::from(*value))).collect()
    };
    let variants = Variants::With(sizes.iter().map(values).collect());
    let options = CompileOptions { variants, ..CompileOptions::for_target("sm_90") };
    Ok(compile(&SourceFile::new("sizes.krn", text), &options)?.compiled)
}

/// The representative sizes of the only kernel, as its PTX tells them.
fn representative(text: &str) -> String {
    let ptx = compiled(text, &[]).unwrap_or_else(|error| panic!("{text}: {error}")).ptx;
    let line = ptx.lines().find_map(|line| line.split_once("representative sizes "));
    line.map_or("none", |(_, sizes)| sizes).to_string()
}

const ONE: &str = "(x: f32[n]) -> y: f32";
const ROWS: &str = "(x: f32[h, w]) -> y: f32[h]";
const HEADS: &str = "(x: f32[n, h, d]) -> y: f32[n]";
const NEXT: &str = "(x: f32[n], z: f32[m]) -> y: f32";

fn kernel(signature: &str, fact: &str) -> String {
    let body = match signature {
        ONE => "y = sum(i: x[i])",
        ROWS => "y[i] = sum(j: x[i, j])",
        HEADS => "y[i] = sum(j, k: x[i, j, k])",
        _ => "y = sum(i: x[i]) + sum(j: z[j])",
    };
    format!("kernel k{signature} where {fact} {{ {body} }}")
}

#[test]
fn sizes_are_large_and_hold_with_odd_facts() {
    for (signature, fact, sizes) in [
        (ONE, "n >= 1", "n = 16777216"),
        (ONE, "n % 1000 == 0", "n = 16777000"),
        (ONE, "n % 10 == 1", "n = 16777211"),
        (ONE, "n % 1000 == 0, n % 48 == 0", "n = 16776000"),
        (ONE, "n <= 1000", "n = 512"),
        (ONE, "n < 1000, n % 7 == 0", "n = 994"),
        (ONE, "n == 5", "n = 5"),
        (ROWS, "w % 3 == 0", "h = 4096, w = 4095"),
        (ROWS, "w >= 10000, w % 100 == 0", "h = 4096, w = 10000"),
        (ROWS, "w > 10000, w % 100 == 0", "h = 4096, w = 10100"),
        (ROWS, "h == 2 * w + 1", "h = 4097, w = 2048"),
        (ROWS, "h * w == 6144", "h = 256, w = 24"),
        (HEADS, "h * d == 768", "n = 4096, h = 32, d = 24"),
        (NEXT, "n == m + 1, m % 16 == 0", "n = 4097, m = 4096"),
        ("(x: f32[n], z: f32[n], s: f32) -> y: f32", "s > 1000.0", "n = 16777216, s = 2000.0"),
    ] {
        let text = kernel(signature, fact).replace("sum(j: z[j])", "s * sum(j: z[j])");
        let text = if signature.contains("s: f32") { text } else { kernel(signature, fact) };
        assert_eq!(representative(&text), sizes, "{text}");
    }
    let text = "kernel k(x: f32[n], s: i32) -> y: f32[n] where s == 77 { y[i] = x[i] * s as f32 }";
    assert_eq!(representative(text), "n = 16777216, s = 77");
}

/// Of these the search finds none.
const NOWHERE: &str = "n % 101 == 50, n % 103 == 51";

#[test]
fn guards_of_odd_facts_exclude_each_other() {
    for (signature, fact, sizes) in [
        (ONE, "n % 1000 == 0", &[&[("n", 1000)][..], &[("n", 8_000_000)]][..]),
        (ROWS, "w >= 10000, w % 100 == 0", &[&[("h", 7), ("w", 10_100)], &[("h", 4096), ("w", 20_000)]]),
        (ONE, NOWHERE, &[&[("n", 5201)], &[("n", 1_003_889)]]),
    ] {
        let text = kernel(signature, fact);
        let made = compiled(&text, sizes).unwrap_or_else(|error| panic!("{text}: {error}"));
        let known = &made.manifest.kernels[0];
        let general = known.general().expect("a plan");
        assert!(!general.guard.chosen_by.is_empty(), "{text}: passes preferred some sizes");
        for sizes in sizes {
            let values: Vec<Value> = sizes.iter().map(|(_, value)| Value::from(*value)).collect();
            let facts = known.facts.iter().all(|fact| fact.condition.holds(&values));
            assert!(facts, "{text}: {sizes:?} are none of its sizes");
            let holding = known.variants.iter().filter(|variant| variant.guard.holds(&values)).count();
            assert_eq!(holding, 1, "{text}: {:?} for {sizes:?}", known.variants);
        }
    }
    assert_eq!(representative(&kernel(ONE, NOWHERE)), "none", "else the case says nothing");
}

#[test]
fn sizes_that_break_a_fact_are_refused() {
    let refused =
        |text: &str, sizes: &[(&str, i64)]| compiled(text, &[sizes]).err().map(|error| error.to_string());
    let rows = kernel(ROWS, "w >= 1, h <= 4 * w");
    assert_eq!(
        refused(&rows, &[("w", 0)]).as_deref(),
        Some("kernel `k`: `where w >= 1` does not hold (w = 0)")
    );
    assert_eq!(
        refused(&rows, &[("h", 9), ("w", 2)]).as_deref(),
        Some("kernel `k`: `where h <= 4 * w` does not hold (h = 9, w = 2)")
    );
    // What is not said is chosen to go with it, also where that is far from what it mostly is.
    for sizes in [&[("w", 2)][..], &[("h", 8), ("w", 2)], &[("h", 0)], &[("h", 1_000_000)]] {
        assert_eq!(refused(&rows, sizes), None, "{sizes:?}");
    }
}

/// What is said of a kernel's code for these sizes.
fn explained(text: &str, kernel: &str, sizes: &[(&str, i64)]) -> Vec<String> {
    let values = sizes.iter().map(|(name, value)| (name.to_string(), Value::from(*value)));
    let variants = Variants::For(values.collect());
    let options = CompileOptions { variants, ..CompileOptions::for_target("sm_90") };
    let made = compile(&SourceFile::new("sizes.krn", text), &options).expect("it compiles");
    explain_sizes(&made, kernel)
}

/// Shapes of rows are asked for length by length: the others are no advice.
#[test]
fn faster_code_is_none_for_other_lengths() {
    let softmax = include_str!("../../examples/softmax.krn");
    for cols in [4096, 1_000_000] {
        let lines = explained(softmax, "softmax", &[("cols", cols)]);
        assert!(lines.iter().any(|line| line.starts_with("relies on cols")), "{lines:?}");
        assert!(!lines.iter().any(|line| line.starts_with("faster")), "{lines:?}");
    }
    let lines = explained(softmax, "softmax", &[("cols", 100_001)]);
    assert!(lines.iter().any(|line| line.starts_with("faster code would rely on cols % ")), "{lines:?}");
}

#[test]
fn long_conditions_have_lines_of_their_own() {
    let lines = explained(include_str!("../../examples/matmul.krn"), "matmul", &[("m", 1)]);
    let chosen = lines.iter().position(|line| line.starts_with("chosen by")).expect("there are such");
    let long: Vec<&String> = lines[chosen + 1..].iter().take_while(|line| line.starts_with("    ")).collect();
    assert!(long.len() > 1, "{lines:#?}");
    // What estimates come to says more than their formulas.
    assert!(
        long.iter().all(|line| line.ends_with(": estimates for these sizes, in cycles or bytes")),
        "{lines:#?}"
    );
    assert!(!long.iter().any(|line| line.contains("ceildiv(") || line.len() > 120), "{lines:#?}");
}

/// Passes weigh code by how often it runs: a number that no integer holds is a large one.
#[test]
fn loops_that_run_more_often_than_integers_count_compile() {
    let most = i64::MAX;
    for (term, around) in [
        ("x[i, j] * sqrt(x[i, c]) / (1.0 + a as f32)", "for"),
        ("sqrt(x[i, c]) / (1.0 + a as f32)", "for"),
        ("x[i, j] * x[i, c]", "sum"),
    ] {
        let body = match around {
            "for" => {
                let inside = format!("for b in {most} {{ for c in m {{ t += {term} }} }}");
                format!("var t = 0.0\nfor a in {most} {{ {inside} }}\ny[i, j] = t")
            }
            _ => format!("y[i, j] = sum(a in 0..{most}, b in 0..{most}, c in 0..m: {term})"),
        };
        let text =
            format!("kernel k(x: f32[n, m]) -> y: f32[n, m] {{\nforall i in n, j in m {{\n{body}\n}}\n}}");
        compiled(&text, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}
