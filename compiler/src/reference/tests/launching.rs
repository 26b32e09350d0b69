//! What a launch refuses, and how it says so.

use super::builder::*;
use crate::check::typed::*;
use crate::data::{HostArray, Scalar};
use crate::reference::{EvalError, Options, bind, initial_statics};
use crate::source::Span;

/// `kernel k(offset: i16, x: f32[n], z: f32[n]) -> y: f32[n - offset] where offset >= 0 { y[i] = x[i + offset] }`
fn shifted() -> Build {
    let mut b = Build::new();
    let offset = b.param("offset", Type::Scalar(Scalar::I16));
    let wide = || cast(offset.clone(), Scalar::I64);
    let (x, n) = b.vector("x", ArrayRole::Input, Type::F32, "n");
    b.array("z", ArrayRole::Input, Type::F32, vec![dim(n)]);
    let extent = || binary(BinaryOp::Sub, dim(n), wide());
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::F32, vec![extent()]);
    b.kernel.facts.push(Fact {
        condition: compare(CompareOp::GreaterEqual, wide(), int(0)),
        text: "offset >= 0".into(),
        span: Span::new(3, 9),
    });
    let i = b.index("i");
    let value = b.load(x, vec![binary(BinaryOp::Add, index(i), wide())]);
    let access = b.access(y, vec![index(i)]);
    b.store(vec![axis(i, int(0), extent())], access, None, value);
    b
}

fn offset(value: f64) -> (&'static str, HostArray) {
    ("offset", host(Scalar::I16, &[], &[value]))
}

#[test]
fn binds_dimensions_and_extents() {
    let b = shifted();
    let x = f32s(&[1.0, 2.0, 3.0]);
    let outputs = b.run(&[offset(1.0)], &[("x", &x), ("z", &x)]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [2.0, 3.0]);
    let statics = initial_statics(&b.program);
    let launch = bind(&b.inputs(&[offset(3.0)], &[("x", &x), ("z", &x)], &statics)).unwrap();
    assert_eq!(launch.dims, [3]);
    assert_eq!(launch.extents, [vec![3], vec![3], vec![0]]);
}

#[test]
fn refuses_what_does_not_fit_by_name() {
    let b = shifted();
    let (x, short) = (f32s(&[1.0, 2.0, 3.0]), f32s(&[1.0]));
    let refused = |params: &[(&str, HostArray)], arrays: &[(&str, &HostArray)]| {
        b.run(params, arrays).unwrap_err().to_string()
    };
    let mut torn = x.clone();
    torn.bytes.pop();
    let both = [("x", &x), ("z", &x)];
    let cases = [
        (refused(&[], &both), "parameter `offset` was not given"),
        (refused(&[offset(0.0)], &[("z", &x)]), "array `x` was not given"),
        (refused(&[offset(0.0)], &[("x", &x)]), "array `z` was not given"),
        (refused(&[offset(0.0)], &[("x", &x), ("z", &x), ("w", &x)]), "the kernel has no input called `w`"),
        (
            refused(&[offset(0.0)], &[("x", &x), ("z", &short)]),
            "axis 0 of `z` has extent 1 where the kernel takes 3",
        ),
        (
            refused(&[offset(0.0)], &[("x", &x), ("z", &host(Scalar::F32, &[3, 1], &[0.0; 3]))]),
            "`z` has 2 axes where the kernel takes 1",
        ),
        (
            refused(&[offset(0.0)], &[("x", &x), ("z", &host(Scalar::F64, &[3], &[0.0; 3]))]),
            "`z` holds `f64` where the kernel takes `f32`",
        ),
        (refused(&[offset(0.0)], &[("x", &x), ("z", &torn)]), "`z` has 11 bytes where its shape takes 12"),
        (refused(&[offset(4.0)], &both), "axis 0 of `y` has the negative extent -1"),
        (refused(&[offset(-1.0)], &both), "the fact `offset >= 0` does not hold"),
        (
            refused(&[("offset", host(Scalar::I32, &[], &[0.0]))], &both),
            "`offset` holds `i32` where the kernel takes `i16`",
        ),
        (
            refused(&[("offset", host(Scalar::I16, &[1], &[0.0]))], &both),
            "`offset` has 1 axes where the kernel takes 0",
        ),
    ];
    for (got, expected) in cases {
        assert_eq!(got, expected);
    }
    let statics = initial_statics(&b.program);
    let mut inputs = b.inputs(&[offset(0.0)], &both, &statics);
    inputs.dims.insert("n".into(), 5);
    let expected = EvalError::DimMismatch { name: "n".into(), expected: 5, got: 3 };
    assert_eq!(bind(&inputs).unwrap_err(), expected);
}

#[test]
fn refuses_to_take_too_much_memory() {
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::F32, "n");
    let huge = binary(BinaryOp::Mul, dim(n), int(1 << 40));
    b.array("y", ArrayRole::Result(ResultStart::Zero), Type::F32, vec![huge]);
    let _ = x;
    let x = f32s(&[1.0; 100]);
    let error = b.run_with(&[], &[("x", &x)], &Options::default()).unwrap_err();
    assert!(matches!(error, EvalError::MemoryLimit { .. }), "{error}");
}

#[test]
fn a_broken_proof_is_named_as_the_compilers_fault() {
    let mut b = shifted();
    let StmtKind::Store { axes, .. } = &mut b.kernel.body[0].kind else { panic!() };
    axes[0].high = int(100);
    let x = f32s(&[1.0, 2.0]);
    let error = b.run(&[offset(0.0)], &[("x", &x), ("z", &x)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "index 2 is outside axis 0 of `x`, which has extent 2 (the compiler had proved that it is inside: a \
         fault of the compiler)"
    );
}
