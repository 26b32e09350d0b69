//! Sizes to model a kernel with: large, round, and such that every fact holds.

use crate::data::Scalar;
use crate::ir::entities::Symbol;
use crate::ir::kernel::{BufferKind, Kernel};
use crate::manifest::{Expr, SymbolKind, Value};

/// The first size that is tried for each dimension of a kernel that has so many.
const FIRST: [i64; 5] = [1, 1 << 20, 2048, 256, 64];
/// Conditions looked at before giving up.
const BUDGET: u32 = 20_000;

/// A value for each symbol, with which every fact of the kernel holds and no array is empty; `None` where none was found.
/// Dimensions are powers of two where the facts let them; integer parameters are 1.
pub fn model_sizes(kernel: &Kernel) -> Option<Vec<Value>> {
    model_sizes_at(kernel, &[])
}

/// The same, where dimensions and integer parameters of these names have these values.
pub fn model_sizes_at(kernel: &Kernel, fixed: &[(String, i64)]) -> Option<Vec<Value>> {
    let is_dim = |kind: &SymbolKind| matches!(kind, SymbolKind::Dim { .. });
    let dims = kernel.symbols.values().filter(|symbol| is_dim(&symbol.kind)).count();
    let first = FIRST[dims.min(FIRST.len() - 1)];
    let mut conditions: Vec<Expr> = kernel.facts.iter().map(|fact| fact.condition.clone()).collect();
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
                let down = std::iter::successors(Some(first), |size| (*size > 1).then_some(size / 2));
                let up = [first * 2, first * 4, 96, 48, 12, 3, 5, 7, 9];
                down.chain(up).map(|size| Value::Int(size.into())).collect()
            }
            (SymbolKind::Counter, _) => vec![Value::Int(0)],
            (_, Scalar::Bool) => vec![Value::Bool(false), Value::Bool(true)],
            (_, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64) => {
                [1.0, 0.5, 2.0, 0.0, -1.0, 1e-5, 100.0].map(Value::Float).to_vec()
            }
            _ => [1, 2, 3, 4, 8, 16, 32, 64, 100, 128, 1024, 0, -1].map(Value::Int).to_vec(),
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
    match expr {
        Expr::Symbol(symbol) => Some(*symbol),
        Expr::Unary(_, operand) => last_symbol(operand),
        Expr::Binary(_, left, right) => last_symbol(left).max(last_symbol(right)),
        Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) => None,
    }
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
