//! The derived bounds admit what a device may lawfully compute, and catch what it may not.

use super::builder::*;
use crate::check::typed::*;
use crate::data::{HostArray, Scalar, tf32_from_f32};
use crate::reference::{CompareReport, Options, compare as hold_against};
use crate::syntax::ast::ReduceOp;

fn noise(count: usize, seed: u64) -> Vec<f32> {
    (0..count as u64).map(|at| crate::builtins::random::uniform(seed, at) * 2.0 - 1.0).collect()
}

/// `y = sum(i: a[i] * b[i])`
fn dot() -> Build {
    let mut b = Build::new();
    let (x, n) = b.vector("a", ArrayRole::Input, Type::F32, "n");
    let z = b.array("b", ArrayRole::Input, Type::F32, vec![dim(n)]);
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::F32, vec![]);
    let i = b.index("i");
    let product = binary(BinaryOp::Mul, b.load(x, vec![index(i)]), b.load(z, vec![index(i)]));
    let value = reduce(ReduceOp::Sum, vec![axis(i, int(0), dim(n))], product, Type::F32);
    let access = b.access(y, vec![]);
    b.store(vec![], access, None, value);
    b
}

fn check_scalar(build: &Build, arrays: &[(&str, &HostArray)], got: f32) -> CompareReport {
    let outputs = build.run(&[], arrays).unwrap();
    hold_against(&outputs.arrays["y"], &host(Scalar::F32, &[], &[f64::from(got)])).unwrap()
}

#[test]
fn a_dot_product_in_any_order_and_with_fused_products_is_inside() {
    let b = dot();
    for count in [1, 2, 31, 1000] {
        let (x, z) = (noise(count, 1), noise(count, 2));
        let (hx, hz) = (f32s(&x), f32s(&z));
        let forward = x.iter().zip(&z).fold(0f32, |sum, (a, b)| sum + a * b);
        let fused = x.iter().zip(&z).rev().fold(0f32, |sum, (a, b)| a.mul_add(*b, sum));
        let lanes = (0..32)
            .map(|lane| (lane..count).step_by(32).fold(0f32, |sum, at| x[at].mul_add(z[at], sum)))
            .fold(0f32, |sum, part| sum + part);
        for device in [forward, fused, lanes] {
            let report = check_scalar(&b, &[("a", &hx), ("b", &hz)], device);
            assert!(report.agrees(), "{count}: {report:?}");
        }
        // A lost term is outside.
        let lost = forward - x[0] * z[0];
        assert!(!check_scalar(&b, &[("a", &hx), ("b", &hz)], lost).agrees(), "{count}");
        assert!(!check_scalar(&b, &[("a", &hx), ("b", &hz)], f32::NAN).agrees(), "{count}");
    }
}

#[test]
fn factors_of_tf32_are_inside_where_they_are_allowed_and_no_wrong_sum_is() {
    let mut options = Options::default();
    options.model.tf32 = true;
    let b = dot();
    let agrees = |x: &[f32], z: &[f32], got: f32, options: &Options| {
        let (x, z) = (f32s(x), f32s(z));
        let outputs = b.run_with(&[], &[("a", &x), ("b", &z)], options).unwrap();
        hold_against(&outputs.arrays["y"], &host(Scalar::F32, &[], &[f64::from(got)])).unwrap().agrees()
    };
    let sum = |x: &[f32], z: &[f32], round: fn(f32) -> f32| {
        x.iter().zip(z).fold(0f32, |sum, (a, b)| round(*a).mul_add(round(*b), sum))
    };
    let cut: fn(f32) -> f32 = |number| f32::from_bits(number.to_bits() & !0x1fff);
    for count in [1, 2, 31, 400] {
        let (x, z) = (noise(count, 1), noise(count, 2));
        let rounded = sum(&x, &z, tf32_from_f32);
        assert!(
            agrees(&x, &z, rounded, &options) && agrees(&x, &z, sum(&x, &z, |it| it), &options),
            "{count}"
        );
        // What many additions may lose is more.
        let is_seen = !agrees(&x, &z, rounded, &Options::default());
        assert!(is_seen || count > 100, "{count}: nobody may round");
        assert!(!agrees(&x, &z, rounded - x[0] * z[0], &options), "{count}: a lost term");
        // Just below numbers of 10 bits behind the point.
        let x: Vec<f32> = noise(count, 3).iter().map(|it| cut(*it + 2.0).next_down()).collect();
        assert!(agrees(&x, &x, sum(&x, &x, tf32_from_f32), &options), "{count}");
        assert!(!agrees(&x, &x, sum(&x, &x, cut), &options), "{count}: cut off");
        // Of these nothing is rounded.
        let x: Vec<f32> = noise(count, 4).iter().map(|it| (it * 1000.0).round()).collect();
        let exact = sum(&x, &x, |it| it);
        assert!(
            agrees(&x, &x, exact, &options) && !agrees(&x, &x, exact * 1.0001, &options),
            "{count}: exact"
        );
    }
    // What is rounded away meets an infinity; what is rounded up becomes one.
    assert!(agrees(&[f32::INFINITY], &[1e-44], f32::NAN, &options));
    assert!(!agrees(&[f32::INFINITY], &[1.3], f32::NAN, &options));
    assert!(agrees(&[f32::MAX], &[1.0], f32::INFINITY, &options));
    assert!(!agrees(&[1e38], &[1.0], f32::INFINITY, &options));
}

/// `y = sum(i: …)`, of what is made of the elements of three arrays.
fn sum_of(term: impl Fn([Expr; 3]) -> Expr) -> Build {
    let mut b = Build::new();
    let (x, n) = b.vector("a", ArrayRole::Input, Type::F32, "n");
    let [z, w] = ["b", "c"].map(|name| b.array(name, ArrayRole::Input, Type::F32, vec![dim(n)]));
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::F32, vec![]);
    let i = b.index("i");
    let term = term([x, z, w].map(|array| b.load(array, vec![index(i)])));
    let value = reduce(ReduceOp::Sum, vec![axis(i, int(0), dim(n))], term, Type::F32);
    let access = b.access(y, vec![]);
    b.store(vec![], access, None, value);
    b
}

#[test]
fn products_of_a_term_may_join_the_sum_one_by_one_and_nothing_else_may() {
    let tiny = |share: f32| share * f32::powi(2.0, -24);
    let (mut a, mut c) = (vec![2.0f32], vec![1.0f32]);
    a.extend([tiny(1.2); 20]);
    c.extend([tiny(0.9); 20]);
    let ones = vec![1.0f32; a.len()];
    let one_by_one = a.iter().zip(&c).fold(0f32, |sum, (a, c)| (sum + a) - c);
    let (ha, hb, hc) = (f32s(&a), f32s(&ones), f32s(&c));
    let agrees = |b: &Build| check_scalar(b, &[("a", &ha), ("b", &hb), ("c", &hc)], one_by_one).agrees();
    let times = |a: &Expr, b: &Expr| binary(BinaryOp::Mul, a.clone(), b.clone());
    assert!(agrees(&sum_of(|[a, b, c]| binary(BinaryOp::Sub, times(&a, &b), times(&c, &b)))));
    assert!(!agrees(&sum_of(|[a, _, c]| binary(BinaryOp::Sub, a, c))));
    assert!(!agrees(&sum_of(|[a, b, c]| binary(BinaryOp::Sub, times(&a, &b), c))));
}

#[test]
fn infinite_sums_are_certain_unless_the_order_or_contraction_matters() {
    let b = dot();
    let max = f32::MAX;
    let bound = |x: &[f32], z: &[f32]| {
        let outputs = b.run(&[], &[("a", &f32s(x)), ("b", &f32s(z))]).unwrap();
        outputs.arrays["y"].bounds[0]
    };
    let inf = f32::INFINITY;
    assert_eq!(bound(&[inf, 3.0], &[1.0, -7.0]), 0.0);
    assert_eq!(bound(&[inf, -inf, 3.0], &[1.0, 1.0, 7.0]), 0.0);
    // Finite terms first overflow, then meet an infinity: NaN in one order, infinite in another.
    assert_eq!(bound(&[max, max, -inf], &[1.0, 1.0, 1.0]), f64::INFINITY);
    // -max * 3 overflows, but not where it is fused with the sum.
    assert_eq!(bound(&[inf, -max], &[1.0, 3.0]), f64::INFINITY);
    assert_eq!(bound(&[f32::NAN, max, max], &[1.0, 3.0, 1.0]), 0.0);
}

#[test]
fn a_product_keeps_the_sign_of_zero() {
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::F32, "n");
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::F32, vec![]);
    let i = b.index("i");
    let factor = b.load(x, vec![index(i)]);
    let value = reduce(ReduceOp::Prod, vec![axis(i, int(0), dim(n))], factor, Type::F32);
    let access = b.access(y, vec![]);
    b.store(vec![], access, None, value);
    let outputs = b.run(&[], &[("x", &f32s(&[-2.0, 0.0, 3.0]))]).unwrap();
    assert!(numbers(&outputs, "y")[0].is_sign_negative());
}

#[test]
fn whole_numbers_must_agree_exactly() {
    let b = dot();
    let x: Vec<f32> = (0..100).map(|i| (i % 10) as f32).collect();
    let array = f32s(&x);
    let exact: f32 = x.iter().map(|x| x * x).sum();
    assert!(check_scalar(&b, &[("a", &array), ("b", &array)], exact).agrees());
    let off = check_scalar(&b, &[("a", &array), ("b", &array)], exact + 1.0);
    assert_eq!(off.mismatches, 1);
    assert_eq!(off.worst.unwrap().bound, 0.0);
}

#[test]
fn combining_floats_admits_every_order() {
    for (scalar, count) in [(Scalar::F32, 500usize), (Scalar::F16, 50), (Scalar::F64, 500)] {
        let mut b = Build::new();
        let (x, n) = b.vector("x", ArrayRole::Input, Type::Scalar(scalar), "n");
        let identity = ResultStart::Identity(CombineOp::Add);
        let y = b.array("y", ArrayRole::Result(identity), Type::Scalar(scalar), vec![]);
        let i = b.index("i");
        let value = b.load(x, vec![index(i)]);
        let access = b.access(y, vec![]);
        b.store(vec![axis(i, int(0), dim(n))], access, Some(CombineOp::Add), value);
        let values: Vec<f64> =
            noise(count, 5).iter().map(|x| f64::from(half::f16::from_f32(*x).to_f32())).collect();
        let x = host(scalar, &[count as u64], &values);
        let outputs = b.run(&[], &[("x", &x)]).unwrap();
        let round = |x: f64| crate::reference::bound::Format::of(scalar).unwrap().round(x);
        let forward = values.iter().fold(0.0, |sum, x| round(sum + x));
        let backward = values.iter().rev().fold(0.0, |sum, x| round(sum + x));
        for device in [forward, backward] {
            let report = hold_against(&outputs.arrays["y"], &host(scalar, &[], &[device])).unwrap();
            assert!(report.agrees(), "{scalar}: {report:?}");
        }
        let exact: f64 = values.iter().sum();
        assert!((numbers(&outputs, "y")[0] - exact).abs() <= round(1.0 + f64::EPSILON * 4.0) * 5e-4);
    }
}

#[test]
fn one_narrow_sum_may_be_rounded_twice() {
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::F32, "n");
    let y = b.array("y", ArrayRole::InOut, Type::Scalar(Scalar::F16), vec![dim(n)]);
    let i = b.index("i");
    let value = b.load(x, vec![index(i)]);
    let access = b.access(y, vec![index(i)]);
    b.store(vec![axis(i, int(0), dim(n))], access, Some(CombineOp::Add), value);
    // 1 + (a half and a little) of a step: in f32 the little is lost, and what is left is a tie.
    let x = f32s(&[(-11f32).exp2() + (-30f32).exp2(), 0.25]);
    let start = host(Scalar::F16, &[2], &[1.0, 1.0]);
    let outputs = b.run(&[], &[("x", &x), ("y", &start)]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [1.0 + (-10f64).exp2(), 1.25]);
    assert_eq!(outputs.arrays["y"].bounds, [(-10f64).exp2(), 0.0]);
}

#[test]
fn combining_infinities_is_certain_unless_the_order_matters() {
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::F32, "n");
    let identity = ResultStart::Identity(CombineOp::Add);
    let y = b.array("y", ArrayRole::Result(identity), Type::F32, vec![]);
    let i = b.index("i");
    let value = b.load(x, vec![index(i)]);
    let access = b.access(y, vec![]);
    b.store(vec![axis(i, int(0), dim(n))], access, Some(CombineOp::Add), value);
    let (max, inf) = (f32::MAX, f32::INFINITY);
    assert_eq!(bounds(&b, &[1.0, inf, -2.0]), [0.0]);
    assert_eq!(bounds(&b, &[inf, -inf, 2.0]), [0.0]);
    assert_eq!(bounds(&b, &[-inf, max, max]), [f64::INFINITY]);
    assert_eq!(bounds(&b, &[max, f32::NAN, max, -inf]), [0.0]);
}

/// `y[i] = f(exp(x[i]))`, with an inexact intermediate.
fn after_exp(f: impl FnOnce(&mut Build, Expr) -> Expr, result: Type) -> Build {
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::F32, "n");
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), result, vec![dim(n)]);
    let i = b.index("i");
    let e = call(Builtin::Math(MathFunction::Exp), vec![b.load(x, vec![index(i)])], Type::F32);
    let value = f(&mut b, e);
    let access = b.access(y, vec![index(i)]);
    b.store(vec![axis(i, int(0), dim(n))], access, None, value);
    b
}

fn bounds(b: &Build, x: &[f32]) -> Vec<f64> {
    b.run(&[], &[("x", &f32s(x))]).unwrap().arrays["y"].bounds.clone()
}

#[test]
fn what_hangs_on_a_close_comparison_is_uncertain_and_the_rest_is_not() {
    let test = after_exp(|_, e| compare(CompareOp::GreaterEqual, e, float(1.0)), Type::BOOL);
    assert_eq!(bounds(&test, &[0.0, 1.0, -1.0]), [f64::INFINITY, 0.0, 0.0]);
    let truncated = after_exp(|_, e| cast(e, Scalar::I32), Type::I32);
    assert_eq!(bounds(&truncated, &[0.0, 1.0]), [f64::INFINITY, 0.0]);
    // A continuous choice stays bounded: relu(exp(x) - 1) near its kink.
    let relu = after_exp(
        |_, e| {
            let shifted = binary(BinaryOp::Sub, e, float(1.0));
            let positive = compare(CompareOp::Greater, shifted.clone(), float(0.0));
            expr(
                ExprKind::If {
                    condition: Box::new(positive),
                    then: value_block(shifted),
                    otherwise: value_block(float(0.0)),
                },
                Type::F32,
            )
        },
        Type::F32,
    );
    let bound = bounds(&relu, &[0.0, 1.0]);
    assert!(bound[0] > 0.0 && bound[0] < 5e-6 && bound[1] < 5e-6, "{bound:?}");
}

#[test]
fn a_store_to_an_uncertain_place_makes_the_array_uncertain() {
    let mut b = after_exp(|_, e| e, Type::F32);
    let StmtKind::Store { access, value, .. } = &mut b.kernel.body[0].kind else { panic!() };
    let place = binary(BinaryOp::Sub, cast(value.clone(), Scalar::I64), int(1));
    access.subscripts = vec![place];
    assert_eq!(bounds(&b, &[0.0, 0.5]), [f64::INFINITY; 2]);
}

#[test]
fn an_uncertain_statement_taints_what_either_branch_assigns() {
    // var v = 5; if exp(x[i]) > 1 { v = 6 }; y[i] = v
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::F32, "n");
    let y = b.array("y", ArrayRole::Result(ResultStart::Written), Type::I32, vec![dim(n)]);
    let (i, v) = (b.index("i"), b.local("v", Type::I32));
    let e = call(Builtin::Math(MathFunction::Exp), vec![b.load(x, vec![index(i)])], Type::F32);
    let body = block(vec![
        stmt(StmtKind::Let { local: v, value: int_of(5, Type::I32) }),
        stmt(StmtKind::If {
            condition: compare(CompareOp::Greater, e, float(1.0)),
            then: block(vec![stmt(StmtKind::Assign { local: v, path: vec![], value: int_of(6, Type::I32) })]),
            otherwise: block(vec![]),
        }),
        store(vec![], b.access(y, vec![index(i)]), None, b.use_local(v)),
    ]);
    b.kernel.body.push(stmt(StmtKind::Forall { axes: vec![axis(i, int(0), dim(n))], body }));
    let outputs = b.run(&[], &[("x", &f32s(&[0.0, 1.0, -1.0]))]).unwrap();
    assert_eq!(numbers(&outputs, "y"), [5.0, 6.0, 5.0]);
    assert_eq!(outputs.arrays["y"].bounds, [f64::INFINITY, 0.0, 0.0]);
    assert_eq!(outputs.arrays["y"].uncertain(), 1);
    let device = host(Scalar::I32, &[3], &[6.0, 6.0, 5.0]);
    let report = hold_against(&outputs.arrays["y"], &device).unwrap();
    assert_eq!((report.compared, report.uncertain, report.mismatches), (2, 1, 0));
    let wrong = host(Scalar::I32, &[3], &[5.0, 6.0, 7.0]);
    let report = hold_against(&outputs.arrays["y"], &wrong).unwrap();
    let worst = report.worst.unwrap();
    assert_eq!(
        (report.mismatches, worst.index, worst.expected, worst.got),
        (1, vec![2], "5".into(), "7".into())
    );
}

#[test]
fn an_uncertain_store_taints_its_own_element_alone() {
    // if exp(x[i]) > 1 { y[i] = 6 }, from zero
    let mut b = Build::new();
    let (x, n) = b.vector("x", ArrayRole::Input, Type::F32, "n");
    let y = b.array("y", ArrayRole::Result(ResultStart::Zero), Type::I32, vec![dim(n)]);
    let i = b.index("i");
    let e = call(Builtin::Math(MathFunction::Exp), vec![b.load(x, vec![index(i)])], Type::F32);
    let body = block(vec![stmt(StmtKind::If {
        condition: compare(CompareOp::Greater, e, float(1.0)),
        then: block(vec![store(vec![], b.access(y, vec![index(i)]), None, int_of(6, Type::I32))]),
        otherwise: block(vec![]),
    })]);
    b.kernel.body.push(stmt(StmtKind::Forall { axes: vec![axis(i, int(0), dim(n))], body }));
    assert_eq!(bounds(&b, &[1.0, 0.0, -1.0]), [0.0, f64::INFINITY, 0.0]);
}

#[test]
fn narrow_results_are_exact_until_a_rounding_boundary_is_near() {
    let half = after_exp(|_, e| e, Type::Scalar(Scalar::F16));
    let bound = bounds(&half, &[0.3, 0.0]);
    assert_eq!(bound[0], 0.0);
    let step = |exponent: i32| f64::from(exponent).exp2();
    assert!(bound.iter().all(|bound| *bound <= step(-10)));
}

#[test]
fn comparing_other_shapes_or_elements_is_refused() {
    let b = dot();
    let x = f32s(&[1.0]);
    let outputs = b.run(&[], &[("a", &x), ("b", &x)]).unwrap();
    let refused = |device: &HostArray| hold_against(&outputs.arrays["y"], device).unwrap_err().to_string();
    assert_eq!(refused(&f32s(&[1.0])), "the array has shape [1] instead of []");
    assert_eq!(refused(&host(Scalar::F64, &[], &[1.0])), "the array holds `f64` instead of `f32`");
}

#[test]
fn a_lawful_evaluation_rounds_as_a_device_does_and_stays_inside_the_bound() {
    use crate::reference::rounding::{Rounding, fusable_sites};
    let b = dot();
    assert_eq!(fusable_sites(&b.kernel), 1);
    let (x, z) = (noise(1000, 3), noise(1000, 5));
    let (hx, hz) = (f32s(&x), f32s(&z));
    let evaluated = |rounding| {
        let mut options = Options::default();
        options.model.rounding = Some(rounding);
        let outputs = b.run_with(&[], &[("a", &hx), ("b", &hz)], &options).unwrap();
        assert_eq!(outputs.arrays["y"].bounds[0], 0.0);
        numbers(&outputs, "y")[0] as f32
    };
    let forward = x.iter().zip(&z).fold(0f32, |sum, (a, b)| sum + a * b);
    let fused = x.iter().zip(&z).fold(0f32, |sum, (a, b)| a.mul_add(*b, sum));
    assert_ne!(forward, fused);
    assert_eq!(evaluated(Rounding::Fused(0)), forward);
    assert_eq!(evaluated(Rounding::Fused(1)), fused);
    let by_chance: Vec<f32> = (1..5).map(|seed| evaluated(Rounding::Chance(seed))).collect();
    assert_eq!(by_chance, (1..5).map(|seed| evaluated(Rounding::Chance(seed))).collect::<Vec<_>>());
    assert!(by_chance.iter().any(|value| *value != by_chance[0]), "{by_chance:?}");
    for value in by_chance {
        assert!(check_scalar(&b, &[("a", &hx), ("b", &hz)], value).agrees(), "{value}");
    }
}
