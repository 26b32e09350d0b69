//! What operations are that are no sums and products: those that wrap around, and those on bits.

use super::exclusive::Exclusive;
use super::system::System;
use crate::check::prove::vocabulary::{Atom, Function, Interval, Key, Operation, Poly};
use crate::check::typed::BinaryOp;
use crate::data::Scalar;
use crate::mutants::mutant;

impl System<'_> {
    /// Adds the definitions of operations on bits; whether there were any.
    pub fn define_bits(&mut self) -> bool {
        let before = self.equations.len();
        for (atom, function, arguments) in self.operations() {
            if let Function::Operation(Operation::Wrapped(op, scalar)) = function
                && matches!(op, BinaryOp::Xor | BinaryOp::And | BinaryOp::Or)
                && self.defined.insert(atom)
            {
                self.define_of_bits(atom, op, scalar, &arguments);
            }
        }
        self.equations.len() > before
    }

    /// Adds the definitions of operations that stand somewhere; whether there were any.
    pub fn define(&mut self) -> bool {
        let of_bits = self.define_bits();
        let before = self.equations.len();
        for (atom, function, arguments) in self.operations() {
            self.defined.insert(atom);
            match function {
                Function::Operation(Operation::Wrapped(op, scalar)) => {
                    self.define_wrapped(atom, op, scalar, &arguments);
                }
                Function::Operation(Operation::Cast(to)) => {
                    self.define_modulo(atom, Some(arguments[0].clone()), to);
                }
                _ => {}
            }
        }
        of_bits || self.equations.len() > before
    }

    /// Every operation that stands somewhere and was not defined, in the order of the atoms.
    fn operations(&self) -> Vec<(Atom, Function, Vec<Poly>)> {
        let atoms = &self.facts.atoms;
        let mut found = Vec::new();
        for poly in self.equations.iter().chain(&self.known) {
            atoms.any(poly, &mut |atom, key| {
                if let Key::Apply(function @ Function::Operation(_), arguments) = key
                    && !self.defined.contains(&atom)
                {
                    found.push((atom, *function, arguments.clone()));
                }
                false
            });
        }
        found.sort_unstable_by_key(|(atom, ..)| *atom);
        found.dedup_by_key(|(atom, ..)| *atom);
        found
    }

    fn define_wrapped(&mut self, atom: Atom, op: BinaryOp, scalar: Scalar, arguments: &[Poly]) {
        let (left, right) = (&arguments[0], &arguments[1]);
        let count = right.as_constant().filter(|count| (0..bits(scalar) as i128).contains(count));
        match (op, count) {
            (BinaryOp::Add, _) => self.define_modulo(atom, left.add(right), scalar),
            (BinaryOp::Sub, _) => self.define_modulo(atom, left.subtract(right), scalar),
            (BinaryOp::Mul, _) => self.define_modulo(atom, left.multiply(right), scalar),
            (BinaryOp::Shl, Some(count)) => self.define_modulo(atom, left.scale(1 << count), scalar),
            (BinaryOp::Shr, Some(count)) => {
                // Rounded down: left = 2^count * atom + rest.
                let rest = self.facts.atoms.name(Interval::new(0, (1 << count) - 1));
                let whole = Poly::atom(atom).scale(1 << count).and_then(|whole| whole.add(&Poly::atom(rest)));
                self.equations.extend(whole.and_then(|whole| whole.subtract(left)));
            }
            _ => {}
        }
    }

    /// The atom is `ideal`, but for a multiple of 2 to the number of bits.
    fn define_modulo(&mut self, atom: Atom, ideal: Option<Poly>, scalar: Scalar) {
        let turns = Poly::atom(self.facts.atoms.name(Interval::ALL));
        let exact = ideal.and_then(|ideal| ideal.subtract(&Poly::atom(atom)));
        let modulus = 1i128 << bits(scalar);
        self.equations.extend(exact.and_then(|exact| exact.add_scaled(&turns, modulus)));
    }

    /// `a ^ b = a + b - 2*(a & b)` and `a | b = a + b - (a & b)`, also of negative numbers.
    fn define_of_bits(&mut self, atom: Atom, op: BinaryOp, scalar: Scalar, arguments: &[Poly]) {
        let (left, right) = (arguments[0].clone(), arguments[1].clone());
        let operation = |op| Function::Operation(Operation::Wrapped(op, scalar));
        let atoms = &mut self.facts.atoms;
        let mut apply = |op, left: &Poly, right: &Poly| {
            let mask = [left, right].into_iter().find_map(Poly::as_constant);
            let range = match mask {
                Some(bits @ 0..) if op == BinaryOp::And => Interval::new(0, bits),
                _ => Interval::of(scalar),
            };
            let result = atoms.apply(operation(op), vec![left.clone(), right.clone()], range);
            self.defined.extend(result.as_atom());
            result
        };
        let (both, either, exclusive) = match op {
            BinaryOp::And => (Poly::atom(atom), None, apply(BinaryOp::Xor, &left, &right)),
            BinaryOp::Or => (
                apply(BinaryOp::And, &left, &right),
                Some(Poly::atom(atom)),
                apply(BinaryOp::Xor, &left, &right),
            ),
            _ => (apply(BinaryOp::And, &left, &right), None, Poly::atom(atom)),
        };
        // The operands in the other order.
        let turned = apply(BinaryOp::And, &right, &left);
        self.equations.extend(turned.subtract(&both));
        let sum = left.add(&right);
        let of_exclusive = sum.as_ref().and_then(|sum| {
            sum.add_scaled(&both, mutant!("prove: bits of both", -2, -3))?.subtract(&exclusive)
        });
        let of_either = either.and_then(|either| sum?.subtract(&both)?.subtract(&either));
        self.equations.extend(of_exclusive.into_iter().chain(of_either));
        let triple = Exclusive { scalar, members: [exclusive, left.clone(), right.clone()] };
        if !self.exclusive.contains(&triple) {
            self.exclusive.push(triple);
        }
        for (value, mask) in [(&left, &right), (&right, &left)] {
            if let Some(mask @ 1..) = mask.as_constant() {
                self.define_mask(&both, value, mask);
            }
        }
    }

    /// `value & mask` for some neighbouring bits: `value = high * 2^(k + l) + (value & mask) + low` with `low < 2^k`, and the
    /// middle is a multiple of `2^k`.
    fn define_mask(&mut self, both: &Poly, value: &Poly, mask: i128) {
        let below = 1i128 << mask.trailing_zeros();
        let above = mask + below;
        if above & mask != 0 || above.count_ones() != 1 {
            return;
        }
        let atoms = &mut self.facts.atoms;
        let high = Poly::atom(atoms.name(Interval::ALL));
        let middle = Poly::atom(atoms.name(Interval::new(0, mask >> mask.trailing_zeros())));
        let low = Poly::atom(atoms.name(Interval::new(0, below - 1)));
        let parts = both.add_scaled(&high, above).and_then(|sum| sum.add(&low));
        self.equations.extend(parts.and_then(|parts| parts.subtract(value)));
        self.equations.extend(both.add_scaled(&middle, -below));
    }
}

fn bits(scalar: Scalar) -> u32 {
    scalar.size() as u32 * 8
}
