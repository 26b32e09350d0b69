//! What the pass on tiles makes of a tile program, and that the program stays the same.

use krn_compiler::ir::text::{PrintOptions, parse_module, print_module};
use krn_compiler::passes::{Pipeline, PipelineOptions, TargetFacts, diff};
use own_pass::BitsOnce;

const KERNEL: &str = r#"
kernel "bits" {
    symbol sym0 "rows" i64 dim 0 0
    symbol sym1 "cols" i64 dim 0 1
    symbol sym2 "mask" u32 parameter 1 0 0
    buffer buf0 "x" u32 [sym0, sym1] argument 0 in, aos
    buffer buf1 "y" u32 [sym0] argument 2 out, aos
    argument buf0
    argument "mask" u32
    argument buf1
    launch launch0 "bits" tiled threads 128 grid [sym0, 1, 1] axes [c: 128] layouts ["c = warp:4 · lane:32"] {
        v0: i64 = block_index 0
        v1: i64 {c} layout0 = index c
        v2: i64 = symbol sym1
        v3: bool {c} layout0 = lt v1, v2
        v4: u32 {c} layout0 = load_if buf0[v0, v1], v3
        v5: u32 = symbol sym2
        v6: u32 {c} layout0 = and v4, v5
        v7: u32 = reduce_along [or] c: v6, v3
        store buf1[v0], v7
    }
    plan { launch0 }
}
"#;

#[test]
fn a_mask_leaves_the_reduction() {
    let mut module = parse_module(KERNEL).expect("the text is well-formed");
    let before = print_module(&module, PrintOptions::default());
    let pipeline = Pipeline::empty(&TargetFacts::new(90)).then(BitsOnce).expect("it fits a tile program");
    let options = PipelineOptions { verify: true, ..PipelineOptions::default() };
    pipeline.run(&mut module.kernels[0], &options, &mut |_| {}).expect("it leaves a valid kernel");
    let after = print_module(&module, PrintOptions::default());
    let changes = diff(&before, &after);
    let changed = changes.lines().filter(|line| line.starts_with(['-', '+']));
    let words: Vec<String> =
        changed.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "- v7: u32 = reduce_along [or] c: v6, v3",
        "+ v8: u32 = reduce_along [or] c: v4, v3",
        "+ v7: u32 = and v8, v5",
    ];
    assert_eq!(words, expected, "{changes}");
}

#[test]
fn it_has_its_place_in_the_pipeline() {
    let mut module = parse_module(KERNEL).expect("the text is well-formed");
    let target = TargetFacts::new(90);
    let pipeline = Pipeline::for_target(&target).before("lower_tiles", BitsOnce).expect("tiles are there");
    let options = PipelineOptions { verify: true, ..PipelineOptions::default() };
    pipeline.run(&mut module.kernels[0], &options, &mut |_| {}).expect("threads are left");
}
