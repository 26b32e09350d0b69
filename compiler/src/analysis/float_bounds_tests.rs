use super::{FloatBounds, least_normal};
use crate::ir::entities::{Launch, Symbol, Value};
use crate::ir::kernel::Kernel;
use crate::ir::text::parse_kernel;
use cranelift_entity::EntityRef;

/// A kernel with one launch, in which `v0` is `x[0]` and `v1` a parameter `p` of which a fact says `p > 0.5`.
fn kernel(lines: &str) -> Kernel {
    let text = format!(
        "kernel \"k\" {{
    symbol sym0 \"p\" f32 parameter 1 0 0
    symbol sym1 \"q\" f32 parameter 2 0 0
    buffer buf0 \"x\" f32 [1] argument 0 in, aos
    argument buf0
    argument \"p\" f32
    argument \"q\" f32
    fact \"p > 0.5\" line 1: sym0 > 0.5
    launch launch0 \"k\" abstract {{
        v100: i64 = const 0
        v0: f32 = load buf0[v100]
        v1: f32 = symbol sym0
        v2: f32 = symbol sym1
        {lines}
    }}
    plan {{ launch0 }}
}}"
    );
    parse_kernel(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// What the last value of some lines is at least.
fn least(lines: &str) -> f64 {
    let kernel = kernel(lines);
    let last = kernel.blocks[kernel.launches[Launch::new(0)].body].insts.last().copied();
    let value: Value = kernel.insts[last.expect("some lines")].results[0];
    FloatBounds::new(&kernel, Launch::new(0)).least(value)
}

#[test]
fn squares_and_facts_bound_sums() {
    assert_eq!(least("v3: f32 = mul v0, v0"), 0.0);
    assert_eq!(least("v3: f32 = mul v0, v0\n v4: f32 = add v3, v1"), 0.5);
    assert_eq!(least("v3: f32 = fma v0, v0, v1"), 0.5);
    assert_eq!(least("v3: f32 = abs v0\n v4: f32 = add v3, v3"), 0.0);
    assert_eq!(least("v3: f32 = const 2.5"), 2.5);
}

#[test]
fn nothing_follows_from_what_may_be_negative() {
    let unknown = f64::NEG_INFINITY;
    assert_eq!(least("v3: f32 = neg v1"), unknown);
    assert_eq!(least("v3: f32 = mul v0, v1"), unknown);
    assert_eq!(least("v3: f32 = add v0, v1"), 0.5f64.min(unknown));
    assert_eq!(least("v3: f32 = sub v1, v0"), unknown);
    assert_eq!(least("v3: f32 = mul v0, v0\n v4: f32 = add v3, v2"), unknown);
    // A NaN beside 0.5 leaves the other.
    assert_eq!(least("v3: f32 = max v0, v1"), unknown);
}

#[test]
fn suppositions_count_as_facts() {
    let kernel = kernel("v3: f32 = mul v0, v0\n v4: f32 = add v3, v2");
    let last = kernel.blocks[kernel.launches[Launch::new(0)].body].insts.last().copied();
    let value = kernel.insts[last.expect("some lines")].results[0];
    let mut bounds = FloatBounds::new(&kernel, Launch::new(0));
    bounds.suppose(Symbol::new(1), least_normal());
    assert_eq!(bounds.least(value), least_normal());
}
