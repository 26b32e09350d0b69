use super::Spacing;
use crate::ir::entities::Launch;
use crate::ir::text::parse_kernel;
use cranelift_entity::EntityRef;

/// The unit and the most of the last of some lines, in which `v0` is a byte, `v1` a float from memory and `v2` the byte as one.
fn spacing(lines: &str) -> Option<(i32, i32)> {
    let text = format!(
        "kernel \"k\" {{
    buffer buf0 \"x\" u8 [1] argument 0 in, aos
    buffer buf1 \"y\" f32 [1] argument 1 in, aos
    argument buf0
    argument buf1
    launch launch0 \"k\" abstract {{
        v100: i64 = const 0
        v0: u8 = load buf0[v100]
        v1: f32 = load buf1[v100]
        v2: f32 = cast f32 v0
        {lines}
    }}
    plan {{ launch0 }}
}}"
    );
    let kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}"));
    let last = kernel.blocks[kernel.launches[Launch::new(0)].body].insts.last().copied();
    let value = kernel.insts[last.expect("some lines")].results[0];
    Spacing::of(&kernel, value).map(|spacing| (spacing.unit, spacing.most))
}

#[test]
fn integers_and_constants_have_units() {
    assert_eq!(spacing("v3: f32 = const 0.5\n v4: f32 = add v2, v3"), Some((-1, 9)));
    assert_eq!(spacing("v3: f32 = const -0.75\n v4: f32 = sub v2, v3"), Some((-2, 9)));
    assert_eq!(spacing("v3: f32 = mul v2, v2"), Some((0, 16)));
    assert_eq!(spacing("v3: f32 = const 0.5\n v4: f32 = fma v2, v3, v2"), Some((-1, 9)));
    assert_eq!(spacing("v3: f32 = const 0.0\n v4: f32 = max v2, v3"), Some((0, 8)));
}

#[test]
fn what_may_be_minus_zero_or_infinite_has_none() {
    assert_eq!(spacing("v3: f32 = const -2.0\n v4: f32 = mul v2, v3"), None);
    assert_eq!(spacing("v3: f32 = const -0.0\n v4: f32 = add v2, v3"), None);
    assert_eq!(spacing("v3: f32 = neg v2"), None);
    assert_eq!(spacing("v3: f32 = add v1, v2"), None);
    assert_eq!(spacing("v3: f32 = const 1e30\n v4: f32 = mul v2, v3"), None);
}
