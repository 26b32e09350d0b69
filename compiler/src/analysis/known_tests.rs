//! What follows from conditions on sizes, against all sizes that satisfy them; and what must not be lost.

use super::{DIMENSION_LIMIT, Interval, Known, Ranges};
use crate::data::Scalar;
use crate::ir::kernel::{Kernel, SymbolData};
use crate::ir::text::parse_kernel;
use crate::manifest::{BinaryOp, Expr, FactManifest, SymbolKind, Value};
use crate::source::Span;
use proptest::prelude::*;
use rustc_hash::FxHashMap;

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::binary(op, left, right)
}

fn is_multiple(value: Expr, of: i64) -> Expr {
    binary(BinaryOp::Equal, binary(BinaryOp::Rem, value, Expr::Int(of)), Expr::Int(0))
}

fn equal(left: Expr, right: Expr) -> Expr {
    binary(BinaryOp::Equal, left, right)
}

fn times(factor: i64, value: Expr) -> Expr {
    binary(BinaryOp::Mul, Expr::Int(factor), value)
}

const W: Expr = Expr::Symbol(0);
const H: Expr = Expr::Symbol(1);
const G: Expr = Expr::Symbol(2);

/// A kernel of three dimensions `w`, `h` and `g` with facts.
fn kernel(facts: &[Expr]) -> Kernel {
    let mut kernel = Kernel::new("k", Span::default());
    for (axis, name) in ["w", "h", "g"].into_iter().enumerate() {
        let kind = SymbolKind::Dim { argument: 0, axis, extent: Default::default() };
        kernel.symbols.push(SymbolData { name: name.to_string(), kind, scalar: Scalar::I64 });
    }
    let fact = |condition: &Expr| FactManifest { condition: condition.clone(), text: String::new(), line: 1 };
    kernel.facts = facts.iter().map(fact).collect();
    kernel
}

fn divisor(facts: &[Expr], symbol: usize) -> u64 {
    Known::new(&kernel(facts), None).divisor(symbol, &FxHashMap::default())
}

#[test]
fn equalities_and_multiples_combine_in_any_order() {
    let facts = [equal(W, times(2, H)), is_multiple(H, 8)];
    let back = [facts[1].clone(), facts[0].clone()];
    assert_eq!([divisor(&facts, 0), divisor(&facts, 1)], [16, 8]);
    assert_eq!([divisor(&back, 0), divisor(&back, 1)], [16, 8]);
    // From the whole to its half.
    let whole = [is_multiple(W, 16), equal(W, times(2, H))];
    assert_eq!([divisor(&whole, 0), divisor(&whole, 1)], [16, 8]);
    // Two multiples of one size: the larger power of two.
    assert_eq!(divisor(&[is_multiple(W, 4), is_multiple(W, 16)], 0), 16);
    assert_eq!(divisor(&[is_multiple(W, 16), is_multiple(W, 4)], 0), 16);
    assert_eq!(divisor(&[equal(W, binary(BinaryOp::Mul, H, G)), is_multiple(G, 4)], 0), 4);
    assert_eq!(divisor(&[], 0), 1);
}

#[test]
fn what_is_supposed_of_a_size_holds_of_those_that_it_determines() {
    let known = Known::new(&kernel(&[equal(W, times(2, H))]), None);
    assert_eq!(known.divisor(0, &FxHashMap::from_iter([(1, 4)])), 8);
}

#[test]
fn ranges_follow_from_several_facts() {
    let at_most = |left: Expr, right: Expr| binary(BinaryOp::LessEqual, left, right);
    let facts = [at_most(H, Expr::Int(100)), equal(W, times(2, H)), at_most(G, W)];
    let known = Known::new(&kernel(&facts), None);
    assert_eq!(known.range(0), Some(Interval::new(0, 200)));
    assert_eq!(known.range(2), Some(Interval::new(0, 200)));
    // No launch passes these: nothing is said.
    let never = [at_most(W, Expr::Int(3)), at_most(Expr::Int(5), W)];
    assert_eq!(Known::new(&kernel(&never), None).range(0), None);
}

#[test]
fn conditions_that_follow_hold() {
    let kernel = kernel(&[equal(W, times(2, H)), is_multiple(H, 8), binary(BinaryOp::Less, G, H)]);
    let mut known = Known::new(&kernel, None);
    let mut holds = |condition: Expr| known.holds(&kernel, &condition);
    assert!(holds(is_multiple(W, 16)));
    assert!(holds(binary(BinaryOp::And, is_multiple(W, 4), is_multiple(H, 4))));
    assert!(!holds(is_multiple(W, 32)));
    assert!(!holds(is_multiple(G, 2)));
    assert!(holds(binary(BinaryOp::Less, times(2, G), W)));
    assert!(holds(binary(BinaryOp::GreaterEqual, H, Expr::Int(8))), "more than g, and a multiple of 8");
    assert!(!holds(binary(BinaryOp::Less, W, H)));
}

#[test]
fn a_difference_that_facts_keep_from_being_negative_is_a_size() {
    let text = |facts: &str| {
        format!(
            "kernel \"k\" {{ symbol sym0 \"n\" i64 dim 0 0 symbol sym1 \"offset\" i64 parameter 1 0 0 {facts} \
             launch launch0 \"k\" abstract {{ v0: i64 = symbol sym0 v1: i64 = symbol sym1 v2: i64 = sub v0, v1 }} \
             plan {{ launch0 }} }}"
        )
    };
    let range = |facts: &str| {
        let kernel = parse_kernel(&text(facts)).expect("a kernel");
        let difference = kernel.values.keys().next_back().expect("three values");
        Ranges::new(&kernel).of(&kernel, difference)
    };
    let positive = "fact \"offset >= 0\" line 1: sym1 >= 0";
    let inside = "fact \"offset <= n\" line 1: sym1 <= sym0";
    assert_eq!(range(&format!("{positive} {inside}")), Interval::new(0, DIMENSION_LIMIT.into()));
    assert!(range(positive).low < 0);
}

fn size() -> impl Strategy<Value = Expr> {
    let literal = (1i64..9).prop_map(Expr::Int);
    let leaf = prop_oneof![Just(W), Just(H), Just(G), literal];
    leaf.prop_recursive(2, 6, 2, |inner| {
        let op = prop_oneof![
            Just(BinaryOp::Add),
            Just(BinaryOp::Sub),
            Just(BinaryOp::Mul),
            Just(BinaryOp::Div),
            Just(BinaryOp::Rem),
            Just(BinaryOp::CeilDiv),
        ];
        (op, inner.clone(), inner).prop_map(|(op, left, right)| binary(op, left, right))
    })
}

fn condition() -> impl Strategy<Value = Expr> {
    let op = prop_oneof![
        Just(BinaryOp::Equal),
        Just(BinaryOp::Less),
        Just(BinaryOp::LessEqual),
        Just(BinaryOp::Greater),
        Just(BinaryOp::GreaterEqual),
    ];
    let multiple = (size(), 1i64..9).prop_map(|(value, of)| is_multiple(value, of));
    prop_oneof![multiple, (op, size(), size()).prop_map(|(op, left, right)| binary(op, left, right))]
}

/// Whether the host finds that a condition holds.
fn is_true(condition: &Expr, sizes: &[Value]) -> bool {
    condition.evaluate(sizes) == Some(Value::Bool(true))
}

proptest! {
    #[test]
    fn what_is_known_is_true(
        facts in proptest::collection::vec(condition(), 0..4),
        goals in proptest::collection::vec(condition(), 6),
    ) {
        let kernel = kernel(&facts);
        let mut known = Known::new(&kernel, None);
        let held: Vec<bool> = goals.iter().map(|goal| known.holds(&kernel, goal)).collect();
        for at in 0..12i64 * 12 * 12 {
            let sizes = [at % 12, at / 12 % 12, at / 144];
            let values = sizes.map(|size| Value::Int(size.into()));
            if !facts.iter().all(|fact| is_true(fact, &values)) {
                continue;
            }
            for (symbol, size) in sizes.into_iter().enumerate() {
                let divisor = known.divisor(symbol, &FxHashMap::default());
                prop_assert_eq!(size % divisor as i64, 0, "{} does not divide {:?}", divisor, sizes);
                let range = known.range(symbol).unwrap_or(Interval::ALL);
                prop_assert!(range.low <= size.into() && i128::from(size) <= range.high, "{range:?} {sizes:?}");
            }
            for (goal, held) in goals.iter().zip(&held) {
                prop_assert!(!held || is_true(goal, &values), "{goal:?} does not hold of {sizes:?}");
            }
        }
    }
}
