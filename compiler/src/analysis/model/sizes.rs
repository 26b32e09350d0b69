//! Sizes to model a kernel with: large, round, and such that every fact holds.

use crate::data::Scalar;
use crate::ir::entities::Symbol;
use crate::ir::kernel::{BufferKind, Kernel};
use crate::manifest::{Expr, SymbolKind, Value};

/// The first size that is tried for the dimensions of a kernel, by how many it has: of the last two, and of those before.
const FIRST: [(i64, i64); 4] = [(1, 1), (1 << 24, 1), (4096, 1), (4096, 4096)];
const FIRST_OF_MANY: (i64, i64) = (4096, 16);
/// The same for what tables of costs are counted at: the emulator counts some of them.
const SMALL: [(i64, i64); 4] = [(1, 1), (1 << 20, 1), (2048, 1), (256, 256)];
const SMALL_OF_MANY: (i64, i64) = (64, 64);
/// Conditions looked at before giving up.
const BUDGET: u32 = 20_000;

/// The sizes that stand for all others where nobody says any: 2^24 for one dimension, 4096 for two or three; 4096 for the
/// last two and 16 for the others of more. Every fact of the kernel holds with them and no array is empty; `None` where
/// there are no such sizes. Dimensions are powers of two where the facts let them; parameters are 1.
pub fn representative_sizes(kernel: &Kernel) -> Option<Vec<Value>> {
    representative_sizes_where(kernel, &[])
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
    let literals = Literals::of(wanted);
    for buffer in kernel.buffers.values() {
        if let BufferKind::Argument { .. } = buffer.kind {
            let positive =
                |extent: &Expr| Expr::binary(crate::manifest::BinaryOp::Less, Expr::Int(0), extent.clone());
            conditions.extend(buffer.extents.iter().map(positive));
        }
    }
    let choices: Vec<Vec<Value>> = kernel
        .symbols
        .values()
        .map(|symbol| match (&symbol.kind, symbol.scalar) {
            (kind, scalar)
                if (is_dim(kind) || scalar.is_integer()) && value_of(fixed, &symbol.name).is_some() =>
            {
                value_of(fixed, &symbol.name).map(|value| Value::Int(value.into())).into_iter().collect()
            }
            (SymbolKind::Dim { .. }, _) => {
                let first = if before + 2 < dims { of_others } else { of_last };
                before += 1;
                let down = std::iter::successors(Some(first), |size| (*size > 1).then_some(size / 2));
                let up = [first * 2, first * 4, 96, 48, 12, 3, 5, 7, 9];
                let near = literals.integers.iter().copied().filter(|size| *size >= 0);
                down.chain(up).chain(near).map(|size| Value::Int(size.into())).collect()
            }
            (SymbolKind::Counter, _) => vec![Value::Int(0)],
            (_, Scalar::Bool) => vec![Value::Bool(false), Value::Bool(true)],
            (_, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64) => {
                let usual = [1.0, 0.5, 2.0, 0.0, -1.0, 1e-5, 100.0].into_iter();
                usual.chain(literals.floats.iter().copied()).map(Value::Float).collect()
            }
            _ => {
                let usual = [1, 2, 3, 4, 8, 16, 32, 64, 100, 128, 1024, 0, -1].into_iter();
                usual.chain(literals.integers.iter().copied()).map(|value| Value::Int(value.into())).collect()
            }
        })
        .collect();
    // A condition is looked at as soon as all of its symbols have values.
    let mut at: Vec<Vec<&Expr>> = vec![Vec::new(); choices.len() + 1];
    for condition in &conditions {
        at[last_symbol(condition).map_or(0, |last| last + 1)].push(condition);
    }
    let mut values = Vec::with_capacity(choices.len());
    let mut budget = BUDGET;
    holds(&at[0], &values, &mut budget).then_some(())?;
    search(&choices, &at, &mut values, &mut budget).then_some(values)
}

/// Values near the literals of conditions, where the conditions begin and end to hold.
#[derive(Default)]
struct Literals {
    integers: Vec<i64>,
    floats: Vec<f64>,
}

impl Literals {
    fn of(conditions: &[Expr]) -> Self {
        let mut literals = Self::default();
        conditions.iter().for_each(|condition| literals.add(condition));
        literals
    }

    fn add(&mut self, expr: &Expr) {
        match expr {
            Expr::Int(value) => {
                let power = value.unsigned_abs().checked_next_power_of_two();
                self.integers.extend(power.and_then(|power| i64::try_from(power).ok()));
                self.integers.extend([*value, value.saturating_add(1), value.saturating_sub(1)]);
                self.floats.push(*value as f64);
            }
            Expr::Float(value) => self.floats.extend([*value, value * 2.0, value / 2.0, -value]),
            Expr::Bool(_) | Expr::Symbol(_) => {}
            Expr::Unary(_, operand) => self.add(operand),
            Expr::Binary(_, left, right) => {
                self.add(left);
                self.add(right);
            }
        }
    }
}

fn value_of(fixed: &[(String, i64)], name: &str) -> Option<i64> {
    fixed.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
}

fn search(choices: &[Vec<Value>], at: &[Vec<&Expr>], values: &mut Vec<Value>, budget: &mut u32) -> bool {
    let Some(own) = choices.get(values.len()) else { return true };
    for value in own {
        values.push(*value);
        if holds(&at[values.len()], values, budget) && search(choices, at, values, budget) {
            return true;
        }
        values.pop();
        if *budget == 0 {
            return false;
        }
    }
    false
}

fn holds(conditions: &[&Expr], values: &[Value], budget: &mut u32) -> bool {
    *budget = budget.saturating_sub(1);
    conditions.iter().all(|condition| condition.evaluate(values) == Some(Value::Bool(true)))
}

/// The symbol of the highest number in an expression.
fn last_symbol(expr: &Expr) -> Option<usize> {
    let mut last = None;
    expr.each_symbol(&mut |symbol| last = last.max(Some(symbol)));
    last
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
