//! Subscripts as sums: a literal, one number a thread, and multiples of unknowns.
//!
//! An unknown is *common* where all threads have the same within one stretch between barriers, and *private* where each
//! may have its own: it depends on the thread, or stands in a loop in which threads need not keep step.

use super::depends::Dependence;
use super::tables::{Table, Tables};
use crate::data::Scalar;
use crate::ir::entities::{Block, Symbol, Value};
use crate::ir::kernel::{Definition, Kernel, Payload};
use crate::ir::op::{Constant, Opcode};
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The number of an unknown.
pub type Atom = u32;

/// The sum.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Form {
    pub constant: i64,
    /// What each thread adds, from 0 for the first; `None` where that is 0 for all.
    pub table: Option<Table>,
    /// In the order of the unknowns, no coefficient 0.
    pub terms: Vec<(Atom, i64)>,
}

impl Form {
    pub fn constant(constant: i64) -> Self {
        Self { constant, ..Self::default() }
    }

    pub fn unknown(atom: Atom) -> Self {
        Self { terms: vec![(atom, 1)], ..Self::default() }
    }

    fn of_table(table: Table) -> Self {
        let constant = table.first().copied().unwrap_or(0);
        if table.iter().all(|value| *value == constant) {
            return Self::constant(constant);
        }
        let table = if constant == 0 {
            table
        } else {
            table.iter().map(|value| value.wrapping_sub(constant)).collect()
        };
        Self { constant, table: Some(table), terms: Vec::new() }
    }

    pub fn as_constant(&self) -> Option<i64> {
        (self.table.is_none() && self.terms.is_empty()).then_some(self.constant)
    }

    pub fn scale(&self, factor: i64) -> Self {
        match factor {
            0 => return Self::default(),
            1 => return self.clone(),
            _ => {}
        }
        Self {
            constant: self.constant.wrapping_mul(factor),
            table: self
                .table
                .as_ref()
                .map(|table| table.iter().map(|value| value.wrapping_mul(factor)).collect()),
            terms: self.terms.iter().map(|(atom, by)| (*atom, by.wrapping_mul(factor))).collect(),
        }
    }

    pub fn add(&self, other: &Self) -> Self {
        let table = match (&self.table, &other.table) {
            (Some(a), Some(b)) => {
                let sum: Table = a.iter().zip(b.iter()).map(|(a, b)| a.wrapping_add(*b)).collect();
                sum.iter().any(|value| *value != 0).then_some(sum)
            }
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        while let Some(next) = match (left.peek(), right.peek()) {
            (Some((a, x)), Some((b, y))) if a == b => Some((*a, x.wrapping_add(*y), true, true)),
            (Some((a, x)), Some((b, _))) if a < b => Some((*a, *x, true, false)),
            (_, Some((b, y))) => Some((*b, *y, false, true)),
            (Some((a, x)), None) => Some((*a, *x, true, false)),
            (None, None) => None,
        } {
            let (atom, by, first, second) = next;
            if first {
                left.next();
            }
            if second {
                right.next();
            }
            if by != 0 {
                terms.push((atom, by));
            }
        }
        Self { constant: self.constant.wrapping_add(other.constant), table, terms }
    }

    pub fn sub(&self, other: &Self) -> Self {
        self.add(&other.scale(-1))
    }
}

/// The forms of a launch's values, as the walk through it has come to know them.
pub struct Forms<'k> {
    kernel: &'k Kernel,
    depends: &'k Dependence,
    tables: Tables<'k>,
    known: FxHashMap<Value, Form>,
    /// Blocks in which threads need not keep step.
    private: EntitySet<Block>,
    block_of: FxHashMap<Value, Block>,
    symbols: FxHashMap<Symbol, Atom>,
    /// Quotients: the operation, the dividend and the divisor.
    quotients: FxHashMap<(Opcode, Form, i64), Atom>,
    /// For each unknown, whether it is common.
    common: Vec<bool>,
}

impl<'k> Forms<'k> {
    pub fn new(kernel: &'k Kernel, depends: &'k Dependence, root: Block) -> Self {
        let mut block_of = FxHashMap::default();
        for block in kernel.blocks_in(root) {
            block_of.extend(kernel.blocks[block].params.iter().map(|param| (*param, block)));
            for inst in &kernel.blocks[block].insts {
                block_of.extend(kernel.insts[*inst].results.iter().map(|value| (*value, block)));
            }
        }
        Self {
            kernel,
            depends,
            tables: Tables::new(kernel, depends.threads),
            known: FxHashMap::default(),
            private: EntitySet::new(),
            block_of,
            symbols: FxHashMap::default(),
            quotients: FxHashMap::default(),
            common: Vec::new(),
        }
    }

    pub fn is_common(&self, atom: Atom) -> bool {
        self.common[atom as usize]
    }

    /// A new unknown.
    pub fn atom(&mut self, common: bool) -> Atom {
        self.common.push(common);
        self.common.len() as Atom - 1
    }

    /// A new unknown for a value: common where its threads keep step and have the same.
    pub fn unknown(&mut self, value: Value) -> Form {
        let in_step = self.block_of.get(&value).is_some_and(|block| !self.private.contains(*block));
        let common = in_step && self.depends.of(value) == 0;
        Form::unknown(self.atom(common))
    }

    /// What a parameter is from now on.
    pub fn bind(&mut self, param: Value, form: Form) {
        self.known.insert(param, form);
    }

    /// Forgets what is known of the values of a region that is gone through anew.
    pub fn forget(&mut self, region: Block) {
        for block in self.kernel.blocks_in(region) {
            for param in &self.kernel.blocks[block].params {
                self.known.remove(param);
            }
            for inst in &self.kernel.blocks[block].insts {
                for value in &self.kernel.insts[*inst].results {
                    self.known.remove(value);
                }
            }
        }
    }

    /// Says that threads need not keep step in a region.
    pub fn out_of_step(&mut self, region: Block) {
        for block in self.kernel.blocks_in(region) {
            self.private.insert(block);
        }
    }

    /// The same sum, of which unknowns from `first` on may be another for each thread.
    pub fn widened(&mut self, form: &Form, first: Atom) -> Form {
        let mut wide = Form { terms: Vec::new(), ..form.clone() };
        for (atom, by) in &form.terms {
            let atom = if *atom >= first && self.is_common(*atom) { self.atom(false) } else { *atom };
            wide.terms.push((atom, *by));
        }
        wide.terms.sort_unstable();
        wide
    }

    /// How many unknowns there are so far.
    pub fn atoms(&self) -> Atom {
        self.common.len() as Atom
    }

    /// The table of a condition, where it is a function of the thread's number.
    pub fn table(&mut self, value: Value) -> Option<Table> {
        self.tables.of(value)
    }

    /// A value of type i64 as a sum; an unknown of its own where it is none.
    pub fn of(&mut self, value: Value) -> Form {
        self.within(value, 48)
    }

    fn within(&mut self, value: Value, depth: u32) -> Form {
        if let Some(known) = self.known.get(&value) {
            return known.clone();
        }
        let form = depth.checked_sub(1).and_then(|depth| self.compute(value, depth));
        let form = form.unwrap_or_else(|| self.unknown(value));
        self.known.insert(value, form.clone());
        form
    }

    fn compute(&mut self, value: Value, depth: u32) -> Option<Form> {
        let kernel = self.kernel;
        if kernel.value_type(value) != Scalar::I64 {
            return None;
        }
        let Definition::Result(inst, _) = kernel.values[value].definition else { return None };
        let data = &kernel.insts[inst];
        match (data.opcode, &data.payload) {
            (_, Payload::Constant(Constant::Int(_, value))) => {
                return Some(Form::constant(i64::try_from(*value).ok()?));
            }
            (_, Payload::Symbol(symbol)) => {
                let known = self.symbols.get(symbol).copied();
                let atom = known.unwrap_or_else(|| self.atom(true));
                self.symbols.insert(*symbol, atom);
                return Some(Form::unknown(atom));
            }
            (Opcode::ThreadIndex, _) => return self.tables.of(value).map(Form::of_table),
            _ => {}
        }
        let mut operand = |at: usize| self.within(data.arguments[at], depth);
        let form = match data.opcode {
            Opcode::Add => operand(0).add(&operand(1)),
            Opcode::Sub => operand(0).sub(&operand(1)),
            Opcode::Neg => operand(0).scale(-1),
            Opcode::Mul => {
                let (a, b) = (operand(0), operand(1));
                match (a.as_constant(), b.as_constant()) {
                    (_, Some(by)) => a.scale(by),
                    (Some(by), _) => b.scale(by),
                    _ => return self.tables.of(value).map(Form::of_table),
                }
            }
            Opcode::Shl => match kernel.int_of(data.arguments[1]) {
                Some(by @ 0..=62) => operand(0).scale(1 << by),
                _ => return self.tables.of(value).map(Form::of_table),
            },
            Opcode::Div | Opcode::Rem | Opcode::Shr | Opcode::And => {
                if let Some(table) = self.tables.of(value) {
                    return Some(Form::of_table(table));
                }
                return self.quotient(data.opcode, data.arguments[0], data.arguments[1], depth);
            }
            _ => return self.tables.of(value).map(Form::of_table),
        };
        Some(form)
    }

    /// By a literal: the quotient as an unknown that is the same for equal dividends, and a remainder as the dividend
    /// less the divisor times the quotient. `div` and `rem` belong together, and `shr` and `and`, whatever the sign.
    fn quotient(&mut self, opcode: Opcode, dividend: Value, divisor: Value, depth: u32) -> Option<Form> {
        let literal = i64::try_from(self.kernel.int_of(divisor)?).ok()?;
        let (kind, by) = match opcode {
            Opcode::Div | Opcode::Rem if literal > 0 => (Opcode::Div, literal),
            Opcode::Shr if (0..=62).contains(&literal) => (Opcode::Shr, 1 << literal),
            Opcode::And if literal > 0 && (literal as u64 + 1).is_power_of_two() => {
                (Opcode::Shr, literal.checked_add(1)?)
            }
            _ => return None,
        };
        let dividend = self.within(dividend, depth);
        let key = (kind, dividend.clone(), by);
        let atom = match self.quotients.get(&key) {
            Some(atom) => *atom,
            None => {
                let common =
                    dividend.table.is_none() && dividend.terms.iter().all(|(atom, _)| self.is_common(*atom));
                let atom = self.atom(common);
                self.quotients.insert(key, atom);
                atom
            }
        };
        let quotient = Form::unknown(atom);
        Some(match opcode {
            Opcode::Div | Opcode::Shr => quotient,
            _ => dividend.sub(&quotient.scale(by)),
        })
    }
}

/// A condition on the thread's number, with one truth a thread.
pub type Mask = Rc<[bool]>;
