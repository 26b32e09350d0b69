//! The search against brute force: whatever it claims to prove holds for every assignment that satisfies the
//! facts. And the proofs that must not be lost.

use super::testing::Plain;
use super::{Atom, Function, Interval, Key, Polynomial};
use proptest::prelude::*;

type Facts = super::Facts<Plain>;
type Poly = Polynomial<Atom>;

/// Four plain atoms of small ranges, then quotients and a choice over them.
const PLAIN: [(i128, i128); 4] = [(0, 3), (0, 4), (-2, 3), (-3, 2)];

/// One term: coefficient, and up to three atoms by position.
type Term = (i128, Vec<usize>);

fn terms() -> impl Strategy<Value = Vec<Term>> {
    proptest::collection::vec((-4i128..=4, proptest::collection::vec(0usize..7, 0..=2)), 1..=4)
}

#[derive(Debug, Clone)]
struct Setup {
    quotients: [(Vec<Term>, Vec<Term>); 2],
    choice: (Vec<Term>, Vec<Term>, Vec<Term>),
    facts: Vec<Vec<Term>>,
    goals: Vec<Vec<Term>>,
}

/// Terms that use only the plain atoms.
fn plain(terms: Vec<Term>) -> Vec<Term> {
    terms
        .into_iter()
        .map(|(value, atoms)| (value, atoms.into_iter().map(|at| at % PLAIN.len()).collect()))
        .collect()
}

fn setups() -> impl Strategy<Value = Setup> {
    (
        [(terms(), terms()), (terms(), terms())],
        (terms(), terms(), terms()),
        proptest::collection::vec(terms(), 0..6),
        proptest::collection::vec(terms(), 8),
    )
        .prop_map(|(quotients, choice, facts, goals)| Setup {
            quotients: quotients.map(|(a, b)| (plain(a), plain(b))),
            choice: (plain(choice.0), plain(choice.1), plain(choice.2)),
            facts,
            goals,
        })
}

fn poly(terms: &[Term], atoms: &[Poly]) -> Poly {
    terms.iter().fold(Poly::default(), |sum, (value, factors)| {
        let term = factors
            .iter()
            .fold(Poly::constant(*value), |product, at| product.multiply(&atoms[*at % atoms.len()]).unwrap());
        sum.add(&term).unwrap()
    })
}

fn value(terms: &[Term], atoms: &[i128]) -> i128 {
    terms
        .iter()
        .map(|(value, factors)| factors.iter().fold(*value, |product, at| product * atoms[*at % atoms.len()]))
        .sum()
}

/// The values of all seven atoms for one assignment of the plain ones.
fn extend(setup: &Setup, plain: &[i128]) -> Vec<i128> {
    let mut all = plain.to_vec();
    for (dividend, divisor) in &setup.quotients {
        all.push(value(dividend, plain).checked_div(value(divisor, plain)).unwrap_or(0));
    }
    let (condition, then, otherwise) = &setup.choice;
    all.push(if value(condition, plain) >= 0 { value(then, plain) } else { value(otherwise, plain) });
    all
}

fn assignments() -> Vec<Vec<i128>> {
    PLAIN.iter().fold(vec![Vec::new()], |all, (low, high)| {
        all.into_iter()
            .flat_map(|one| (*low..=*high).map(move |value| [one.clone(), vec![value]].concat()))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn what_is_proved_is_true(setup in setups()) {
        let mut facts = Facts::default();
        let plain: Vec<Poly> =
            PLAIN.iter().map(|(low, high)| Poly::atom(facts.atoms.name(Interval::new(*low, *high)))).collect();
        let mut atoms = plain.clone();
        for (dividend, divisor) in &setup.quotients {
            let quotient = facts.atoms.quotient(&poly(dividend, &plain), &poly(divisor, &plain));
            atoms.push(quotient);
        }
        let condition = poly(&setup.choice.0, &plain);
        let negated = condition.negate().unwrap().add_constant(-1).unwrap();
        let arguments = vec![poly(&setup.choice.1, &plain), poly(&setup.choice.2, &plain), condition, negated];
        atoms.push(facts.atoms.apply(Function::Choice { then: 1 }, arguments, Interval::ALL));

        for fact in &setup.facts {
            facts.assume(poly(fact, &atoms));
        }
        let possible: Vec<Vec<i128>> = assignments()
            .iter()
            .map(|plain| extend(&setup, plain))
            .filter(|all| setup.facts.iter().all(|fact| value(fact, all) >= 0))
            .collect();
        prop_assert!(!facts.is_contradictory() || possible.is_empty(), "a contradiction that is none");
        for goal in &setup.goals {
            if facts.proves(&poly(goal, &atoms)) {
                for all in &possible {
                    prop_assert!(value(goal, all) >= 0, "{goal:?} fails at {all:?}");
                }
            }
        }
    }
}

/// `low <= name < high`.
fn index(facts: &mut Facts, low: Poly, high: Poly) -> Poly {
    let name = Poly::atom(facts.atoms.name(Interval::of(crate::data::Scalar::I64)));
    facts.assume(name.subtract(&low).unwrap());
    facts.assume(high.subtract(&name).unwrap().add_constant(-1).unwrap());
    name
}

fn dimension(facts: &mut Facts) -> Poly {
    Poly::atom(facts.atoms.name(Interval::new(0, (1 << 48) - 1)))
}

fn constant(value: i128) -> Poly {
    Poly::constant(value)
}

fn inside(facts: &mut Facts, index: &Poly, extent: &Poly) -> bool {
    facts.proves(index) && facts.proves(&extent.subtract(index).unwrap().add_constant(-1).unwrap())
}

#[test]
fn flattened_subscripts_are_inside() {
    let mut facts = Facts::default();
    let (m, n, k) = (dimension(&mut facts), dimension(&mut facts), dimension(&mut facts));
    let i = index(&mut facts, constant(0), m.clone());
    let j = index(&mut facts, constant(0), n.clone());
    let p = index(&mut facts, constant(0), k.clone());
    let two = i.multiply(&n).and_then(|row| row.add(&j)).unwrap();
    assert!(inside(&mut facts, &two, &m.multiply(&n).unwrap()));
    let three = two.multiply(&k).and_then(|row| row.add(&p)).unwrap();
    assert!(inside(&mut facts, &three, &m.multiply(&n).and_then(|part| part.multiply(&k)).unwrap()));
    assert!(!inside(&mut facts, &two.add_constant(1).unwrap(), &m.multiply(&n).unwrap()));
}

#[test]
fn flat_names_unflatten() {
    let mut facts = Facts::default();
    let (m, n) = (dimension(&mut facts), dimension(&mut facts));
    let t = index(&mut facts, constant(0), m.multiply(&n).unwrap());
    let row = facts.atoms.quotient(&t, &n);
    let column = t.subtract(&row.multiply(&n).unwrap()).unwrap();
    assert!(inside(&mut facts, &row, &m));
    assert!(inside(&mut facts, &column, &n));
    assert!(!inside(&mut facts, &column, &n.add_constant(-1).unwrap()));
}

#[test]
fn ranges_depend_and_tile() {
    let mut facts = Facts::default();
    let n = dimension(&mut facts);
    let i = index(&mut facts, constant(0), n.clone());
    let j = index(&mut facts, constant(0), i.add_constant(1).unwrap());
    assert!(inside(&mut facts, &i.subtract(&j).unwrap(), &n));
    // n = 32 q, steps of 32 from 0: the last one is whole.
    let q = dimension(&mut facts);
    let whole = q.scale(32).unwrap();
    let t = Poly::atom(facts.atoms.name(Interval::new(0, i64::MAX as i128)));
    let start = t.scale(32).unwrap();
    facts.assume(whole.subtract(&start).unwrap().add_constant(-1).unwrap());
    let lane = index(&mut facts, constant(0), constant(32));
    assert!(inside(&mut facts, &start.add(&lane).unwrap(), &whole));
}

#[test]
fn forgetting_restores_everything() {
    let mut facts = Facts::default();
    let n = dimension(&mut facts);
    let mark = facts.mark();
    facts.assume(constant(3).subtract(&n).unwrap());
    assert!(facts.proves(&constant(4).subtract(&n).unwrap()));
    facts.assume(n.add_constant(-7).unwrap());
    assert!(facts.is_contradictory());
    facts.forget_since(mark);
    assert!(!facts.is_contradictory());
    assert!(!facts.proves(&constant(4).subtract(&n).unwrap()));
    let atom: Option<Atom> = n.as_atom();
    assert!(atom.is_some_and(|atom| matches!(facts.atoms.get(atom).key, Key::Name(_))));
}
