//! Exclusive ors of equal numbers.

use crate::check::prove::vocabulary::Poly;
use crate::data::Scalar;
use crate::mutants::mutant;

/// Three integers of one type: each is the exclusive or of the other two.
#[derive(Clone, PartialEq)]
pub struct Exclusive {
    pub scalar: Scalar,
    pub members: [Poly; 3],
}

/// What is 0 as well: where two members of two triples are equal, so are the third ones.
pub fn consequences(triples: &[Exclusive]) -> Vec<Poly> {
    let mut found: Vec<Poly> = Vec::new();
    let mut equal = |left: &Poly, right: &Poly| {
        found.extend(right.subtract(left).filter(|difference| !difference.is_zero()));
    };
    for (at, one) in triples.iter().enumerate() {
        for [x, y, z] in turns(&one.members) {
            if x == y {
                equal(z, &Poly::default());
            }
            if x.is_zero() {
                equal(y, z);
            }
        }
        for other in triples[..at].iter().filter(|other| other.scalar == one.scalar) {
            for [x, y, z] in turns(&one.members) {
                for [u, v, w] in
                    turns(&other.members).into_iter().flat_map(|[u, v, w]| [[u, v, w], [v, u, w]])
                {
                    if mutant!("prove: exclusive ors with two values", x == u && y == v, x == u) {
                        equal(z, w);
                    }
                }
            }
        }
    }
    found
}

/// The three ways to take one of them last.
fn turns(members: &[Poly; 3]) -> [[&Poly; 3]; 3] {
    let [x, y, z] = members;
    [[x, y, z], [y, z, x], [z, x, y]]
}
