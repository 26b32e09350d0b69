//! What kernels compute: reductions, private arrays, loops, structs, combining, sampling.

use super::builder::*;
use crate::check::typed::*;
use crate::data::{ElementType, HostArray, Leaf, Scalar};
use crate::reference::{EvalError, Options, SampleSpec, can_sample, evaluate, initial_statics};
use crate::syntax::ast::ReduceOp;

/// `kernel k(x: ty[n]) -> y: result { y = op(i: x[i]) }`
fn reduction(op: ReduceOp, ty: Scalar, result: Scalar, values: &[f64]) -> (f64, f64) {
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::Scalar(ty), "n");
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::Scalar(result), vec![]);
    let i = b.index("i");
    let body = b.load(x, vec![index(i)]);
    let value = reduce(op, vec![axis(i, int(0), dim(n))], body, Type::Scalar(result.widened()));
    let access = b.access(y, vec![]);
    b.store(vec![], access, None, value);
    let outputs = b.run(&[], &[("x", &host(ty, &[values.len() as u64], values))]).unwrap();
    (numbers(&outputs, "y")[0], outputs.arrays["y"].bounds[0])
}

#[test]
fn reductions() {
    use ReduceOp::*;
    use Scalar::*;
    let nan = f64::NAN;
    let table: &[(ReduceOp, Scalar, Scalar, &[f64], f64)] = &[
        (Sum, F32, F32, &[1.0, 2.0, 3.5], 6.5),
        (Sum, F32, F32, &[], 0.0),
        (Sum, F32, F32, &[16_777_216.0, 1.0, 1.0, -16_777_216.0], 2.0),
        (Sum, F64, F64, &[1e16, 1.0, -1e16], 1.0),
        (Sum, I32, I32, &[2_147_483_647.0, 1.0], -2_147_483_648.0),
        (Sum, I8, I32, &[100.0, 100.0], 200.0),
        (Sum, U8, U32, &[255.0, 255.0], 510.0),
        (Sum, F16, F32, &[1.0, 0.5], 1.5),
        (Sum, F32, F32, &[f64::INFINITY, f64::NEG_INFINITY], nan),
        (Prod, F32, F32, &[], 1.0),
        (Prod, I32, I32, &[], 1.0),
        (Prod, F32, F32, &[2.0, -3.0], -6.0),
        (Min, F32, F32, &[], f64::INFINITY),
        (Max, F32, F32, &[], f64::NEG_INFINITY),
        (Min, I32, I32, &[], 2_147_483_647.0),
        (Max, U32, U32, &[], 0.0),
        (Max, F32, F32, &[1.0, nan, 3.0], nan),
        (Min, F32, F32, &[1.0, -2.0, 3.0], -2.0),
        (ArgMax, F32, I64, &[1.0, 5.0, 5.0], 1.0),
        (ArgMax, F32, I64, &[1.0, nan, 9.0, nan], 1.0),
        (ArgMin, F32, I64, &[1.0, nan, -9.0], 1.0),
        (ArgMin, I32, I64, &[3.0, 1.0, 1.0], 1.0),
        (ArgMin, F32, I64, &[0.0, -0.0, 0.0, -0.0], 1.0),
        (ArgMax, F32, I64, &[-0.0, 0.0, -0.0, 0.0], 1.0),
        (ArgMin, F32, I64, &[], -1.0),
        (Any, Bool, Bool, &[], 0.0),
        (All, Bool, Bool, &[], 1.0),
        (Any, Bool, Bool, &[0.0, 1.0], 1.0),
        (All, Bool, Bool, &[0.0, 1.0], 0.0),
        (Count, Bool, I64, &[1.0, 0.0, 1.0], 2.0),
        (Count, Bool, I64, &[], 0.0),
    ];
    for (op, ty, result, values, expected) in table {
        let (got, bound) = reduction(*op, *ty, *result, values);
        assert!(got == *expected || got.is_nan() && expected.is_nan(), "{op:?} of {ty} {values:?}: {got}");
        assert!(bound.is_finite(), "{op:?} of {ty} {values:?}");
    }
}

#[test]
fn prefix_sum_ranges_depend_on_outer_names() {
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::F32, "n");
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::F32, vec![dim(n)]);
    let (i, j) = (b.index("i"), b.index("j"));
    let upto = binary(BinaryOp::Add, index(i), int(1));
    let value = reduce(ReduceOp::Sum, vec![axis(j, int(0), upto)], b.load(x, vec![index(j)]), Type::F32);
    let access = b.access(y, vec![index(i)]);
    b.store(vec![axis(i, int(0), dim(n))], access, None, value);
    let outputs = b.run(&[], &[("x", &f32s(&[1.0, 2.0, 3.0, 4.0]))]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [1.0, 3.0, 6.0, 10.0]);
    assert_eq!(outputs.arrays["y"].bounds, [0.0; 4], "sums of small whole numbers are exact in any order");
}

#[test]
fn argmax_over_two_names_is_the_row_major_position() {
    let mut b = Build::new();
    let x = b.array("x", ArrayRole::Input, Type::F32, vec![]);
    let (m, n) = (b.dim("m", x, 0), b.dim("n", x, 1));
    b.kernel.arrays[x].extents = vec![dim(m), dim(n)];
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::I64, vec![]);
    let (i, j) = (b.index("i"), b.index("j"));
    let axes = vec![axis(i, int(0), dim(m)), axis(j, int(0), dim(n))];
    let value = reduce(ReduceOp::ArgMax, axes, b.load(x, vec![index(i), index(j)]), Type::I64);
    let access = b.access(y, vec![]);
    b.store(vec![], access, None, value);
    let x = host(Scalar::F32, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 9.0, 5.0]);
    assert_eq!(numbers(&b.run(&[], &[("x", &x)]).unwrap(), "y"), [4.0]);
}

/// Softmax over rows, with a private array.
fn softmax() -> Build {
    let mut b = Build::new();
    let x = b.array("x", ArrayRole::Input, Type::F32, vec![]);
    let (rows, cols) = (b.dim("rows", x, 0), b.dim("cols", x, 1));
    b.kernel.arrays[x].extents = vec![dim(rows), dim(cols)];
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::F32, vec![dim(rows), dim(cols)]);
    let e = b.array("e", ArrayRole::Private, Type::F32, vec![dim(cols)]);
    let [r, c0, c1, c2, c3] = ["r", "c", "c", "c", "c"].map(|name| b.index(name));
    let (peak, total) = (b.local("peak", Type::F32), b.local("total", Type::F32));
    let over = |c| vec![axis(c, int(0), dim(cols))];
    let highest = reduce(ReduceOp::Max, over(c0), b.load(x, vec![index(r), index(c0)]), Type::F32);
    let shifted = binary(BinaryOp::Sub, b.load(x, vec![index(r), index(c1)]), b.use_local(peak));
    let sum = reduce(ReduceOp::Sum, over(c2), b.load(e, vec![index(c2)]), Type::F32);
    let quotient = binary(BinaryOp::Div, b.load(e, vec![index(c3)]), b.use_local(total));
    let body = block(vec![
        stmt(StmtKind::Let { local: peak, value: highest }),
        stmt(StmtKind::DefineArray {
            array: e,
            axes: over(c1),
            value: call(Builtin::Math(MathFunction::Exp), vec![shifted], Type::F32),
        }),
        stmt(StmtKind::Let { local: total, value: sum }),
        store(over(c3), b.access(y, vec![index(r), index(c3)]), None, quotient),
    ]);
    b.kernel.body.push(stmt(StmtKind::Forall { axes: vec![axis(r, int(0), dim(rows))], body }));
    b
}

#[test]
fn softmax_rows_sum_to_one_and_sampled_rows_agree_with_all() {
    let b = softmax();
    let values: Vec<f64> = (0..200 * 3).map(|i| f64::from(i * 37 % 101) / 10.0).collect();
    let x = host(Scalar::F32, &[200, 3], &values);
    let full = b.run(&[], &[("x", &x)]).unwrap();
    for row in numbers(&full, "y").chunks(3) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    }
    assert!(full.arrays["y"].bounds.iter().all(|bound| *bound > 0.0 && *bound < 1e-5));

    assert!(can_sample(&b.kernel));
    let options = Options { sample: Some(SampleSpec { iterations: 10, seed: 3 }), ..Options::default() };
    let sampled = b.run_with(&[], &[("x", &x)], &options).unwrap();
    let chosen = sampled.arrays["y"].evaluated.clone().unwrap();
    assert!(chosen.len() <= 30 && chosen.len() >= 18, "{}", chosen.len());
    assert!(chosen.contains(&0) && chosen.contains(&599), "the corners are among them");
    let (all, some) = (numbers(&full, "y"), numbers(&sampled, "y"));
    for (position, element) in chosen.iter().enumerate() {
        assert_eq!(all[*element as usize], some[position]);
        assert_eq!(full.arrays["y"].bounds[*element as usize], sampled.arrays["y"].bounds[position]);
    }
    assert!(sampled.steps * 5 < full.steps);
}

#[test]
fn what_writes_wanted_elements_is_evaluated_and_nothing_else() {
    let b = softmax();
    let values: Vec<f64> = (0..200 * 3).map(|i| f64::from(i * 37 % 101) / 10.0).collect();
    let x = host(Scalar::F32, &[200, 3], &values);
    let full = b.run(&[], &[("x", &x)]).unwrap();
    // A row writes three elements.
    let elements = Some([("y".to_string(), vec![4, 596])].into());
    let options = Options { elements, ..Options::default() };
    let some = b.run_with(&[], &[("x", &x)], &options).unwrap();
    assert_eq!(some.arrays["y"].evaluated.clone().unwrap(), [3, 4, 5, 594, 595, 596]);
    let all = numbers(&full, "y");
    assert_eq!(numbers(&some, "y"), [&all[3..6], &all[594..597]].concat());
    assert!(some.steps * 5 < full.steps);
    // Of a sample, which has the first row and the last one.
    let sample = Some(SampleSpec { iterations: 2, seed: 0 });
    let elements = Some([("y".to_string(), vec![0, 300])].into());
    let options = Options { sample, elements, ..Options::default() };
    let some = b.run_with(&[], &[("x", &x)], &options).unwrap();
    assert_eq!(some.arrays["y"].evaluated.clone().unwrap(), [0, 1, 2]);
}

#[test]
fn an_inout_can_be_sampled_and_a_combined_result_cannot() {
    let mut b = Build::new();
    let (y, n) = b.vector("y", ArrayRole::InOut, Type::I32, "n");
    let i = b.index("i");
    let doubled = binary(BinaryOp::Mul, b.load(y, vec![index(i)]), int_of(2, Type::I32));
    let access = b.access(y, vec![index(i)]);
    b.store(vec![axis(i, int(0), dim(n))], access, None, doubled);
    assert!(can_sample(&b.kernel));
    let values: Vec<f64> = (0..1000).map(f64::from).collect();
    let options = Options { sample: Some(SampleSpec { iterations: 20, seed: 1 }), ..Options::default() };
    let outputs = b.run_with(&[], &[("y", &host(Scalar::I32, &[1000], &values))], &options).unwrap();
    let chosen = outputs.arrays["y"].evaluated.clone().unwrap();
    let expected: Vec<f64> = chosen.iter().map(|element| 2.0 * *element as f64).collect();
    assert_eq!(numbers(&outputs, "y"), expected);

    // A second statement that reads what the first wrote; and one that combines.
    let again = b.kernel.body[0].clone();
    b.kernel.body.push(again);
    assert!(!can_sample(&b.kernel));
    b.kernel.body.truncate(1);
    let StmtKind::Store { combine, .. } = &mut b.kernel.body[0].kind else { panic!() };
    *combine = Some(Combine { op: CombineOp::Add, may_meet: false });
    assert!(!can_sample(&b.kernel));
}

#[test]
fn histogram_combines_and_results_start_from_the_identity() {
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::Scalar(Scalar::U8), "n");
    let start = |op| ArrayRole::Result(ResultStart::Identity(op));
    let h = b.array("h", start(CombineOp::Add), Type::U32, vec![int(4)]);
    let low = b.array("low", start(CombineOp::Min), Type::Scalar(Scalar::I8), vec![]);
    let i = b.index("i");
    let bin = cast(b.load(x, vec![index(i)]), Scalar::I64);
    let access = b.checked(h, vec![bin]);
    b.store(vec![axis(i, int(0), dim(n))], access, Some(CombineOp::Add), int_of(1, Type::U32));
    let access = b.access(low, vec![]);
    let negative = expr(ExprKind::Negate(Box::new(cast(b.load(x, vec![index(i)]), Scalar::I32))), Type::I32);
    b.store(vec![axis(i, int(0), dim(n))], access, Some(CombineOp::Min), negative);
    let run = |values: &[f64]| b.run(&[], &[("x", &host(Scalar::U8, &[values.len() as u64], values))]);
    let outputs = run(&[0.0, 3.0, 3.0, 1.0, 3.0]).unwrap();
    assert_eq!(numbers(&outputs, "h"), [1.0, 1.0, 0.0, 3.0]);
    assert_eq!(numbers(&outputs, "low"), [-3.0]);
    let empty = run(&[]).unwrap();
    assert_eq!(numbers(&empty, "h"), [0.0; 4]);
    assert_eq!(numbers(&empty, "low"), [127.0], "the largest i8");
    let Err(EvalError::OutOfBounds { array, axis, index, extent, proved, .. }) = run(&[4.0]) else {
        panic!("outside");
    };
    assert_eq!((array.as_str(), axis, index, extent, proved), ("h", 0, 4, 4, false));
}

#[test]
fn while_loops_run_and_are_limited() {
    // Collatz steps of x[i].
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::I32, "n");
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::I32, vec![dim(n)]);
    let i = b.index("i");
    let (at, count) = (b.local("at", Type::I32), b.local("count", Type::I32));
    let one = || int_of(1, Type::I32);
    let now = || b.use_local(at);
    let odd = compare(CompareOp::Equal, binary(BinaryOp::And, now(), one()), one());
    let tripled = binary(BinaryOp::Add, binary(BinaryOp::Mul, now(), int_of(3, Type::I32)), one());
    let halved = binary(BinaryOp::Div, now(), int_of(2, Type::I32));
    let next = expr(
        ExprKind::If { condition: Box::new(odd), then: value_block(tripled), otherwise: value_block(halved) },
        Type::I32,
    );
    let set = |local, value| stmt(StmtKind::Assign { local, path: vec![], value });
    let body = block(vec![
        stmt(StmtKind::Let { local: at, value: b.load(x, vec![index(i)]) }),
        stmt(StmtKind::Let { local: count, value: int_of(0, Type::I32) }),
        stmt(StmtKind::While {
            condition: compare(CompareOp::NotEqual, now(), one()),
            body: block(vec![set(at, next), set(count, binary(BinaryOp::Add, b.use_local(count), one()))]),
        }),
        store(vec![], b.access(y, vec![index(i)]), None, b.use_local(count)),
    ]);
    b.kernel.body.push(stmt(StmtKind::Forall { axes: vec![axis(i, int(0), dim(n))], body }));
    let x = host(Scalar::I32, &[4], &[1.0, 2.0, 7.0, 27.0]);
    assert_eq!(numbers(&b.run(&[], &[("x", &x)]).unwrap(), "y"), [0.0, 1.0, 16.0, 111.0]);
    let endless = host(Scalar::I32, &[1], &[0.0]);
    let options = Options { step_limit: 10_000, ..Options::default() };
    let stopped = b.run_with(&[], &[("x", &endless)], &options);
    assert_eq!(stopped.unwrap_err(), EvalError::StepLimit { limit: 10_000 });
}

/// `struct P { x: f16, taps: f32[2], n: u8 }`: offsets 0, 4, 12; 16 bytes.
fn particle(b: &mut Build) -> StructId {
    let leaf = |path: &str, scalar, offset, extents: Vec<u64>| Leaf {
        path: path.into(),
        scalar,
        offset,
        strides: extents.iter().map(|_| 4).collect(),
        extents,
    };
    let leaves = vec![
        leaf("x", Scalar::F16, 0, vec![]),
        leaf("taps", Scalar::F32, 4, vec![2]),
        leaf("n", Scalar::U8, 12, vec![]),
    ];
    let element = ElementType { name: "P".into(), leaves, size: 16, align: 4 };
    let taps = Type::Array(Box::new(Type::F32), 2);
    let fields = [("x", Type::Scalar(Scalar::F16)), ("taps", taps), ("n", Type::Scalar(Scalar::U8))];
    b.structure("P", &fields, element)
}

#[test]
fn structs_are_read_updated_rounded_and_written() {
    let mut b = Build::new();
    let p = Type::Struct(particle(&mut b));
    let (x, n) = b.vector("x", ArrayRole::InOut, p.clone(), "n");
    let total = b.array("total", ArrayRole::Result(ResultStart::Written), p.clone(), vec![]);
    let i = b.index("i");
    let q = b.local("q", p.clone());
    let project = |path| expr(ExprKind::Project { base: Box::new(b.use_local(q)), path }, Type::F32);
    let tap = |at| Projection::Element { index: int(at), check: BoundsCheck::Proved };
    let swapped = expr(
        ExprKind::StructLiteral {
            fields: vec![
                binary(BinaryOp::Add, project(vec![Projection::Field(0)]), float(2048.0)),
                expr(
                    ExprKind::ArrayLiteral(vec![
                        project(vec![Projection::Field(1), tap(1)]),
                        project(vec![Projection::Field(1), tap(0)]),
                    ]),
                    Type::Array(Box::new(Type::F32), 2),
                ),
                int_of(300, Type::U32),
            ],
        },
        p.clone(),
    );
    let assign = |path, value| stmt(StmtKind::Assign { local: q, path, value });
    let body = block(vec![
        stmt(StmtKind::Let { local: q, value: b.load(x, vec![index(i)]) }),
        assign(vec![], swapped),
        assign(vec![Projection::Field(1), tap(0)], float(9.0)),
        store(vec![], b.access(x, vec![index(i)]), None, b.use_local(q)),
    ]);
    b.kernel.body.push(stmt(StmtKind::Forall { axes: vec![axis(i, int(0), dim(n))], body }));
    let sum = reduce(ReduceOp::Sum, vec![axis(i, int(0), dim(n))], b.load(x, vec![index(i)]), p.clone());
    let access = b.access(total, vec![]);
    b.store(vec![], access, None, sum);

    let mut array = HostArray::zeros(b.element(&p), vec![2]).unwrap();
    let mut put = |at: usize, bytes: &[u8]| array.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &half::f16::from_f32(1.0).to_le_bytes());
    put(4, &1.5f32.to_le_bytes());
    put(8, &2.5f32.to_le_bytes());
    put(16, &half::f16::from_f32(2.0).to_le_bytes());
    let outputs = b.run(&[], &[("x", &array)]).unwrap();
    let x = &outputs.arrays["x"].bytes;
    // 1 + 2048 rounds to 2048 in f16; 300 wraps to 44; the taps were swapped, then the first set.
    assert_eq!(half::f16::from_le_bytes([x[0], x[1]]).to_f32(), 2048.0);
    assert_eq!(f32::from_le_bytes(x[4..8].try_into().unwrap()), 9.0);
    assert_eq!(f32::from_le_bytes(x[8..12].try_into().unwrap()), 1.5);
    assert_eq!(x[12], 44);
    let total = &outputs.arrays["total"].bytes;
    assert_eq!(half::f16::from_le_bytes([total[0], total[1]]).to_f32(), 4096.0 + 2.0 - 2.0);
    assert_eq!(f32::from_le_bytes(total[4..8].try_into().unwrap()), 18.0);
    assert_eq!(total[12], 88);
    assert_eq!(outputs.arrays["x"].bounds.len(), 2 * 4);
}

#[test]
fn guarded_access_takes_the_other_value_outside() {
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::F32, "n");
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::F32, vec![dim(n)]);
    let i = b.index("i");
    let mut access = b.access(x, vec![binary(BinaryOp::Sub, index(i), int(1))]);
    access.checks = vec![BoundsCheck::Guarded];
    let value =
        expr(ExprKind::Load { access, path: vec![], otherwise: Some(Box::new(float(-7.0))) }, Type::F32);
    let access = b.access(y, vec![index(i)]);
    b.store(vec![axis(i, int(0), dim(n))], access, None, value);
    let outputs = b.run(&[], &[("x", &f32s(&[1.0, 2.0, 3.0]))]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [-7.0, 1.0, 2.0]);
}

#[test]
fn sequential_loops_see_what_earlier_turns_wrote_and_statics_persist() {
    let mut b = Build::new();
    let (y, n) = b.vector("y", ArrayRole::InOut, Type::I32, "n");
    let id = b.program.statics.push(Static {
        name: "hits".into(),
        element: ElementType::scalar(Scalar::U32),
        ty: Type::U32,
        extents: vec![],
        bytes: 40u32.to_le_bytes().to_vec(),
        span: Default::default(),
    });
    let hits = b.array("hits", ArrayRole::Static(id), Type::U32, vec![]);
    let (t, i) = (b.index("t"), b.index("i"));
    let doubled = binary(BinaryOp::Add, b.load(y, vec![index(i)]), b.load(y, vec![index(i)]));
    let body = block(vec![
        store(vec![axis(i, int(0), dim(n))], b.access(y, vec![index(i)]), None, doubled),
        store(vec![], b.access(hits, vec![]), Some(CombineOp::Add), int_of(1, Type::U32)),
    ]);
    b.kernel.body.push(stmt(StmtKind::For {
        goes_on: None,
        index: t,
        low: int(0),
        high: int(5),
        ends: Ends::written(false),
        step: int(2),
        body,
    }));
    let outputs = b.run(&[], &[("y", &host(Scalar::I32, &[2], &[1.0, 3.0]))]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [8.0, 24.0]);
    assert_eq!(numbers(&outputs, "hits"), [43.0]);
}

#[test]
fn logical_operators_are_lazy() {
    // y[i] = i + 1 < n && x[i + 1] > 0, whose access must not happen in the last iteration.
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::F32, "n");
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::BOOL, vec![dim(n)]);
    let i = b.index("i");
    let next = || binary(BinaryOp::Add, index(i), int(1));
    let access = b.checked(x, vec![next()]);
    let inside = compare(CompareOp::Less, next(), dim(n));
    let positive = compare(CompareOp::Greater, b.load_of(access), float(0.0));
    let both =
        expr(ExprKind::Logical { and: true, left: Box::new(inside), right: Box::new(positive) }, Type::BOOL);
    let access = b.access(y, vec![index(i)]);
    b.store(vec![axis(i, int(0), dim(n))], access, None, both);
    let outputs = b.run(&[], &[("x", &f32s(&[1.0, 2.0, -3.0]))]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [1.0, 0.0, 0.0]);
}

#[test]
fn the_estimate_is_near_the_count() {
    let b = softmax();
    let x = host(Scalar::F32, &[7, 33], &vec![1.0; 7 * 33]);
    let statics = initial_statics(&b.program);
    let inputs = b.inputs(&[], &[("x", &x)], &statics);
    let launch = crate::reference::bind(&inputs).unwrap();
    let cost = crate::reference::estimate_cost(&inputs, &launch);
    let steps = u128::from(evaluate(&inputs, &Options::default()).unwrap().steps);
    assert_eq!(cost.iterations, 7);
    assert!(cost.total < steps * 3 / 2 && steps < cost.total * 3 / 2, "{} for {steps}", cost.total);
}
