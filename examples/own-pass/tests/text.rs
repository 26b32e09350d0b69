//! What the pass makes of IR in text form.

use krn_compiler::ir::text::{PrintOptions, parse_module, print_module};
use krn_compiler::passes::{Pipeline, PipelineOptions, TargetFacts, diff};
use own_pass::Doubling;

const KERNEL: &str = r#"
kernel "k" {
    symbol sym0 "n" i64 dim 0 0
    buffer buf0 "x" f32 [sym0] argument 0 in, aos
    buffer buf1 "y" f32 [sym0] argument 1 out, aos
    argument buf0
    argument buf1
    launch launch0 "k" abstract {
        v0: i64 = const 0
        v1: i64 = symbol sym0
        v2: f32 = const 2.0
        forall axis0 "i" = v0..v1 (v3 "i": i64) {
            v4: f32 = load buf0[v3]
            v5: f32 = mul v2, v4
            v6: f32 = mul v5, v4
            store buf1[v3], v6
            yield
        }
    }
    plan { launch0 }
}
"#;

#[test]
fn a_product_with_two_is_a_sum() {
    let mut module = parse_module(KERNEL).expect("the text is well-formed");
    let before = print_module(&module, PrintOptions::default());
    let pipeline = Pipeline::empty(&TargetFacts::new(90)).then(Doubling).expect("it fits anywhere");
    let options = PipelineOptions { verify: true, ..PipelineOptions::default() };
    pipeline.run(&mut module.kernels[0], &options, &mut |_| {}).expect("it leaves a valid kernel");
    let after = print_module(&module, PrintOptions::default());
    let changes = diff(&before, &after);
    let changed: Vec<&str> = changes.lines().filter(|line| line.starts_with(['-', '+'])).collect();
    let words: Vec<String> =
        changed.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(words, ["- v5: f32 = mul v2, v4", "+ v5: f32 = add v4, v4"], "{changes}");
}
