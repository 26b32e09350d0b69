//! The walk over a kernel's body, in the order in which it runs: it keeps what is known at each place, marks
//! every access, and hands reads and writes to the proofs of races and coverage.
//!
//! A value of a `var` is known until something may change it: a loop forgets, at its start and at its end,
//! every `var` that its body assigns, and so does the end of an `if`.

use super::coverage::Coverage;
use super::races::Region;
use super::value::{Truth, Value};
use super::vocabulary::{Atom, Atoms, Facts, Function, Interval, Poly};
use crate::algebra::Definitions;
use crate::check::typed::*;
use crate::data::Scalar;
use crate::diagnostic::Diagnostics;
use crate::source::Span;
use cranelift_entity::{PrimaryMap, SecondaryMap};

/// What one enclosing loop is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LevelKind {
    /// A `forall` axis, or an axis of a store or of a local array's definition.
    Parallel,
    /// A `for`.
    Sequential,
    /// A reduction's name.
    Reduction,
    While,
}

/// One enclosing loop.
#[derive(Clone, Debug)]
pub struct Level {
    pub kind: LevelKind,
    /// Told apart from every other loop of the kernel.
    pub id: u32,
    /// What counts its iterations; none for a `while`.
    pub atom: Option<Atom>,
    pub index: Option<IndexId>,
    /// The iterations are exactly the values of `atom` for which all of these are at least 0.
    pub constraints: Vec<Poly>,
    /// The first iteration's value of `atom`.
    pub first: Poly,
    /// Whether `constraints` describe the iterations exactly.
    pub exact: bool,
}

/// A condition that holds here, for the proof of coverage.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Facts that hold if and only if the condition does, if there are such.
    pub exact: Option<Vec<Poly>>,
    /// The same as one fact over an atom that stands for the condition.
    pub opaque: Poly,
}

pub struct Walker<'a> {
    pub program: &'a Program,
    pub kernel: &'a Kernel,
    pub sites: PrimaryMap<SiteId, Site>,
    /// How many of the sites are assertions', or stand in prints.
    beside: usize,
    pub diagnostics: &'a mut Diagnostics,
    pub facts: Facts,
    /// Arithmetic is exact here: extents and facts, which the launch evaluates without wrapping.
    pub exact: bool,
    /// Dimensions and parameters that a fact determines.
    pub definitions: Definitions,
    locals: SecondaryMap<LocalId, Option<Value>>,
    pub indices: SecondaryMap<IndexId, Option<Poly>>,
    pub extents: SecondaryMap<ArrayId, Vec<Poly>>,
    /// How deep each private array was declared.
    pub declared: SecondaryMap<ArrayId, usize>,
    pub nest: Vec<Level>,
    levels: u32,
    pub guards: Vec<Guard>,
    pub region: Option<Region>,
    pub coverage: Coverage,
    /// Inside an expression's own statements.
    pub in_expression: bool,
}

impl<'a> Walker<'a> {
    pub fn new(program: &'a Program, kernel: &'a Kernel, diagnostics: &'a mut Diagnostics) -> Self {
        Walker {
            program,
            kernel,
            sites: PrimaryMap::new(),
            beside: 0,
            diagnostics,
            facts: Facts::default(),
            exact: false,
            definitions: Definitions::default(),
            locals: SecondaryMap::new(),
            indices: SecondaryMap::new(),
            extents: SecondaryMap::new(),
            declared: SecondaryMap::new(),
            nest: Vec::new(),
            levels: 0,
            guards: Vec::new(),
            region: None,
            coverage: Coverage::default(),
            in_expression: false,
        }
    }

    /// A site for an assertion at this place.
    pub fn assertion_site(&mut self, span: Span, text: &str) -> SiteId {
        let indices = self.reported_indices();
        self.beside += 1;
        self.sites.push(Site::of_assertion(span, Assertion { text: text.to_string(), indices }))
    }

    /// The index names around this place, of which a report has room for the outermost ones.
    fn reported_indices(&self) -> Vec<IndexId> {
        let indices = self.nest.iter().filter_map(|level| level.index);
        indices.take(Assertion::MOST_INDICES).collect()
    }

    /// A site for a `print` at this place, behind those of its operands. All of them are left out where nobody asks for
    /// prints, so nothing may depend on them.
    pub fn print_site(&mut self, span: Span, operands: &mut [Printed]) -> SiteId {
        let (first, beside) = (self.sites.len(), self.beside);
        operands.iter_mut().for_each(|operand| drop(self.expression(&mut operand.value)));
        let operands = operands.iter().map(|one| (one.text.clone(), one.value.ty.clone())).collect();
        let site =
            self.sites.push(Site::of_print(span, Print { operands, indices: self.reported_indices() }));
        self.sites.values_mut().skip(first).for_each(|site| site.printed = true);
        self.beside = beside + self.sites.len() - first;
        site
    }

    /// How many checks there are so far on which it depends what the kernel computes: where an assertion fails, accesses
    /// happen all the same.
    pub fn checks(&self) -> usize {
        self.sites.len() - self.beside
    }

    pub fn atoms(&mut self) -> &mut Atoms {
        &mut self.facts.atoms
    }

    /// The names of all enclosing loops.
    pub fn names(&self) -> Vec<Poly> {
        self.nest.iter().filter_map(|level| level.atom).map(Poly::atom).collect()
    }

    /// An integer of which only the range is known.
    pub fn unknown(&mut self, range: Interval) -> Poly {
        let (names, number) = (self.names(), self.facts.atoms.unknown());
        self.facts.atoms.apply(Function::Unknown(number), names, range)
    }

    /// A value of which only the type is known.
    pub fn unknown_value(&mut self, ty: &Type) -> Value {
        match ty {
            Type::Scalar(Scalar::Bool) => Value::Bool(Truth::default()),
            Type::Scalar(scalar) if scalar.is_integer() => Value::Int(self.unknown(Interval::of(*scalar))),
            Type::Struct(_) => Value::Opaque(self.facts.atoms.unknown(), self.names()),
            _ => Value::Unknown,
        }
    }

    pub fn declare(&mut self, local: LocalId, value: Value) {
        let value = match value {
            Value::Unknown => self.unknown_value(&self.kernel.locals[local].ty),
            known => known,
        };
        self.locals[local] = Some(value);
    }

    pub fn local(&mut self, local: LocalId) -> Value {
        match &self.locals[local] {
            Some(value) => value.clone(),
            None => self.unknown_value(&self.kernel.locals[local].ty),
        }
    }

    /// Gives a `var` a new value. (The elaborator has refused what unordered iterations would assign.)
    pub fn assign(&mut self, local: LocalId, value: Value) {
        self.locals[local] = Some(value);
    }

    /// Forgets what these locals hold.
    pub fn forget(&mut self, locals: &[LocalId]) {
        for local in locals {
            let value = self.unknown_value(&self.kernel.locals[*local].ty);
            self.locals[*local] = Some(value);
        }
    }

    pub fn save(&self, locals: &[LocalId]) -> Vec<Option<Value>> {
        locals.iter().map(|local| self.locals[*local].clone()).collect()
    }

    pub fn restore(&mut self, locals: &[LocalId], values: Vec<Option<Value>>) {
        for (local, value) in locals.iter().zip(values) {
            self.locals[*local] = value;
        }
    }

    /// Opens loops for `axes`, outermost first, and knows their ranges from here on.
    pub fn enter_axes(&mut self, axes: &mut [Axis], kind: LevelKind) {
        let reads = self.region.as_ref().map_or(0, Region::len);
        for axis in axes {
            let low = self.integer(&mut axis.low);
            let high = self.end_of_range(&mut axis.high, axis.ends);
            axis.ends.reach = self.reach(&low, &high, &Poly::constant(1));
            self.enter_range(kind, axis.index, &low, &high);
        }
        // What a range reads, it reads for every iteration.
        let nest = self.nest_references();
        if let Some(region) = &mut self.region {
            region.deepen(reads, &nest);
        }
    }

    /// Opens a loop over `low <= index < high`.
    pub fn enter_range(&mut self, kind: LevelKind, index: IndexId, low: &Poly, high: &Poly) {
        let (from, to) = (self.facts.range(low), self.facts.range(high));
        let all = Interval::of(Scalar::I64);
        let atom = self.facts.atoms.name(Interval::new(from.low.max(all.low), to.high.min(all.high) - 1));
        let name = Poly::atom(atom);
        self.indices[index] = Some(name.clone());
        let after_low = name.subtract(low);
        let before_high = high.subtract(&name).and_then(|poly| poly.add_constant(-1));
        self.push_level(kind, Some(atom), Some(index), [after_low, before_high], low.clone());
        self.factors_are_positive(low, high);
    }

    /// Inside of a range from 0 to a product, no factor is 0: `h * w`.
    fn factors_are_positive(&mut self, low: &Poly, high: &Poly) {
        let [(monomial, 1..)] = high.terms() else { return };
        let factors = monomial.atoms();
        if factors.len() < 2
            || self.facts.range(low).low < 0
            || factors.iter().any(|factor| self.facts.atom_range(*factor).low < 0)
        {
            return;
        }
        for factor in factors.iter().copied() {
            self.facts.assume_all(&Poly::atom(factor).add_constant(-1).into_iter().collect::<Vec<_>>());
        }
    }

    /// Opens a loop over `low, low + step, …` below `high`, for a constant step: counts its iterations.
    pub fn enter_steps(&mut self, index: IndexId, low: &Poly, high: &Poly, step: i128) {
        let atom = self.facts.atoms.name(Interval::new(0, Interval::of(Scalar::I64).high));
        let count = Poly::atom(atom);
        let Some(value) = count.scale(step).and_then(|offset| low.add(&offset)) else {
            return self.enter_range(LevelKind::Sequential, index, low, high);
        };
        self.indices[index] = Some(value.clone());
        let before_high = high.subtract(&value).and_then(|poly| poly.add_constant(-1));
        self.push_level(
            LevelKind::Sequential,
            Some(atom),
            Some(index),
            [Some(count), before_high],
            Poly::constant(0),
        );
    }

    pub fn enter_while(&mut self) {
        self.push_level(LevelKind::While, None, None, [None, None], Poly::constant(0));
    }

    fn push_level(
        &mut self,
        kind: LevelKind,
        atom: Option<Atom>,
        index: Option<IndexId>,
        constraints: [Option<Poly>; 2],
        first: Poly,
    ) {
        let exact = constraints.iter().all(Option::is_some);
        let constraints: Vec<Poly> = constraints.into_iter().flatten().collect();
        self.facts.assume_all(&constraints);
        self.levels += 1;
        self.nest.push(Level { kind, id: self.levels, atom, index, constraints, first, exact });
    }

    /// Runs `inside` at this place and then forgets the loops and facts that it added.
    pub fn scoped<R>(&mut self, inside: impl FnOnce(&mut Self) -> R) -> R {
        let (mark, depth, guards) = (self.facts.mark(), self.nest.len(), self.guards.len());
        let result = inside(self);
        self.facts.forget_since(mark);
        self.nest.truncate(depth);
        self.guards.truncate(guards);
        result
    }
}
