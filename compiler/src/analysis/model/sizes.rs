//! Sizes to model a kernel with: large, round, and such that every fact holds.

use super::candidates::{Literals, solved};
use crate::algebra::Interval;
use crate::analysis::grid::DIMENSION_LIMIT;
use crate::data::Scalar;
use crate::ir::entities::Symbol;
use crate::ir::kernel::{BufferKind, Kernel};
use crate::manifest::{BinaryOp, Expr, SymbolKind, Value};

/// The first size that is tried for the dimensions of a kernel, by how many it has: of the last two, and of those before.
const FIRST: [(i64, i64); 4] = [(1, 1), (1 << 24, 1), (4096, 1), (4096, 4096)];
const FIRST_OF_MANY: (i64, i64) = (4096, 16);
/// The same for what tables of costs are counted at: the emulator counts some of them.
const SMALL: [(i64, i64); 4] = [(1, 1), (1 << 20, 1), (2048, 1), (256, 256)];
const SMALL_OF_MANY: (i64, i64) = (64, 64);
/// Conditions looked at before giving up.
const BUDGET: u32 = 20_000;
/// A dimension that is shorter is taken where there is nothing else.
const SHORT: i64 = 16;

/// The sizes that stand for all others where nobody says any: 2^24 for one dimension, 4096 for two or three; 4096 for the
/// last two and 16 for the others of more. Every fact of the kernel holds with them and no array is empty; `None` where
/// none are found. Dimensions are powers of two where the facts let them, else multiples of what the facts name near such
/// a size; parameters are 1.
pub fn representative_sizes(kernel: &Kernel) -> Option<Vec<Value>> {
    representative_sizes_where(kernel, &[])
}

/// The sizes that a kernel's code is made for; others where nobody has said any.
pub fn sizes_made_for(kernel: &Kernel) -> Option<Vec<Value>> {
    let known = kernel.specialization.values().iter().enumerate();
    let known = known.filter_map(|(at, value)| match value {
        Some(Value::Int(value)) => {
            let value = i64::try_from(*value).ok()?;
            Some(Expr::binary(BinaryOp::Equal, Expr::Symbol(at), Expr::Int(value)))
        }
        _ => None,
    });
    representative_sizes_where(kernel, &known.collect::<Vec<Expr>>())
}

/// The same where conditions hold as well.
pub fn representative_sizes_where(kernel: &Kernel, conditions: &[Expr]) -> Option<Vec<Value>> {
    sizes_from(kernel, &[], conditions, &FIRST, FIRST_OF_MANY)
}

/// Sizes to count costs at, of which the emulator can run a kernel too: smaller ones, and dimensions and integer
/// parameters of these names have these values.
pub fn model_sizes_at(kernel: &Kernel, fixed: &[(String, i64)]) -> Option<Vec<Value>> {
    sizes_from(kernel, fixed, &[], &SMALL, SMALL_OF_MANY)
}

fn sizes_from(
    kernel: &Kernel,
    fixed: &[(String, i64)],
    wanted: &[Expr],
    few: &[(i64, i64); 4],
    many: (i64, i64),
) -> Option<Vec<Value>> {
    let is_dim = |kind: &SymbolKind| matches!(kind, SymbolKind::Dim { .. });
    let dims = kernel.symbols.values().filter(|symbol| is_dim(&symbol.kind)).count();
    // A matrix of one dimension is as large as one of two.
    let arguments =
        kernel.buffers.values().filter(|buffer| matches!(buffer.kind, BufferKind::Argument { .. }));
    let open = |extent: &&Expr| !matches!(extent, Expr::Int(_));
    let rank = arguments.map(|buffer| buffer.extents.iter().filter(open).count()).max().unwrap_or(0);
    let rank = rank.min(if dims == 1 { 2 } else { dims });
    let (of_last, of_others) = few.get(dims.max(rank)).copied().unwrap_or(many);
    let mut before = 0;
    let mut conditions: Vec<Expr> = kernel.facts.iter().map(|fact| fact.condition.clone()).collect();
    conditions.extend(wanted.iter().cloned());
    let literals = Literals::of(conditions.iter());
    for buffer in kernel.buffers.values() {
        if let BufferKind::Argument { .. } = buffer.kind {
            let positive = |extent: &Expr| Expr::binary(BinaryOp::Less, Expr::Int(0), extent.clone());
            conditions.extend(buffer.extents.iter().map(positive));
        }
    }
    for (at, symbol) in kernel.symbols.values().enumerate() {
        if let Some(value) = value_of(fixed, &symbol.name)
            && (is_dim(&symbol.kind) || symbol.scalar.is_integer())
        {
            conditions.push(Expr::binary(BinaryOp::Equal, Expr::Symbol(at), Expr::Int(value)));
        }
    }
    let choices = kernel.symbols.values().map(|symbol| match (&symbol.kind, symbol.scalar) {
        (SymbolKind::Dim { .. }, _) => {
            let first = if before + 2 < dims { of_others } else { of_last };
            before += 1;
            let range = Interval::new(0, DIMENSION_LIMIT.into());
            let mut sizes = literals.dimensions(first);
            sizes.extend(value_of(fixed, &symbol.name));
            Choices { least: SHORT.min(first).into(), ..Choices::integers(sizes, range) }
        }
        (SymbolKind::Counter, _) => Choices::any(vec![Value::Int(0)]),
        (_, Scalar::Bool) => Choices::any(vec![Value::Bool(false), Value::Bool(true)]),
        (_, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64) => {
            Choices::any(literals.floats().into_iter().map(Value::Float).collect())
        }
        (_, scalar) => {
            let mut values = literals.integers();
            values.extend(value_of(fixed, &symbol.name));
            Choices::integers(values, Interval::of(scalar))
        }
    });
    let mut choices: Vec<Choices> = choices.collect();
    // A condition is looked at as soon as all of its symbols have values.
    let mut at: Vec<Vec<&Expr>> = vec![Vec::new(); choices.len() + 1];
    for part in conditions.iter().flat_map(Expr::parts) {
        match symbols(part).as_slice() {
            [] => at[0].push(part),
            [.., last] => at.get_mut(*last + 1)?.push(part),
        }
        if let [only] = symbols(part).as_slice() {
            choices.get_mut(*only)?.keep(*only, part);
        }
    }
    at[0].iter().all(|condition| condition.holds(&[])).then_some(())?;
    choices.iter_mut().for_each(Choices::relax);
    // Short dimensions where there are no others.
    for short in [false, true] {
        if short {
            choices.iter_mut().for_each(|own| own.least = i128::MIN);
        }
        let mut values = Vec::with_capacity(choices.len());
        let mut budget = BUDGET;
        if search(&choices, &at, &mut values, &mut budget) {
            return Some(values);
        }
    }
    None
}

/// What a symbol may be.
struct Choices {
    /// In the order in which they are tried.
    values: Vec<Value>,
    /// Of integers.
    range: Interval,
    /// What is less is left out at first.
    least: i128,
}

impl Choices {
    fn any(values: Vec<Value>) -> Self {
        Self { values, range: Interval::new(i128::MIN, i128::MAX), least: i128::MIN }
    }

    fn integers(values: Vec<i64>, range: Interval) -> Self {
        let values = values.into_iter().map(|value| Value::Int(value.into()));
        Self { range, ..Self::any(values.collect()) }
    }

    /// Keeps those of a symbol for which a condition on that symbol alone holds.
    fn keep(&mut self, symbol: usize, condition: &Expr) {
        let mut symbols = vec![Value::Int(0); symbol + 1];
        self.values.retain(|value| {
            symbols[symbol] = *value;
            condition.holds(&symbols)
        });
    }

    fn has(&self, value: &Value) -> bool {
        let Value::Int(value) = value else { return true };
        (self.range.low.max(self.least)..=self.range.high).contains(value)
    }

    /// Leaves out nothing where nothing else is left.
    fn relax(&mut self) {
        if !self.values.iter().any(|value| self.has(value)) {
            self.least = i128::MIN;
        }
    }
}

fn value_of(fixed: &[(String, i64)], name: &str) -> Option<i64> {
    fixed.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
}

fn search(choices: &[Choices], at: &[Vec<&Expr>], values: &mut Vec<Value>, budget: &mut u32) -> bool {
    let Some(own) = choices.get(values.len()) else { return true };
    let known = &at[values.len() + 1];
    let solution = known.iter().find_map(|condition| solved(condition, values));
    let solution: Option<Vec<Value>> =
        solution.map(|value| value.map(|value| Value::Int(value.into())).into_iter().collect());
    for value in solution.as_ref().unwrap_or(&own.values).iter().filter(|value| own.has(value)) {
        values.push(*value);
        *budget = budget.saturating_sub(1);
        if known.iter().all(|condition| condition.holds(values)) && search(choices, at, values, budget) {
            return true;
        }
        values.pop();
        if *budget == 0 {
            return false;
        }
    }
    false
}

/// The symbols that an expression names, in their order.
fn symbols(expr: &Expr) -> Vec<usize> {
    let mut all = Vec::new();
    expr.each_symbol(&mut |symbol| all.push(symbol));
    all.sort_unstable();
    all.dedup();
    all
}

/// `m = 2048, n = 2048`: the integers among the symbols that have a name in the source.
pub fn spell_sizes(kernel: &Kernel, values: &[Value]) -> String {
    let named = |(symbol, value): (Symbol, &Value)| match (value, &kernel.symbols[symbol].kind) {
        (_, SymbolKind::Counter) => None,
        (Value::Int(value), _) => Some(format!("{} = {value}", kernel.symbols[symbol].name)),
        _ => None,
    };
    let all = kernel.symbols.keys().zip(values).filter_map(named);
    all.collect::<Vec<_>>().join(", ")
}
