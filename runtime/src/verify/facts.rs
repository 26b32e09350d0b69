//! What sizes owe to a kernel's facts: the nearest ones with which `h % k == 0` holds, and whether a choice leaves
//! anything to compute.

use super::fill::scalar_range;
use krn_compiler::manifest::{
    ArgumentKind, BinaryOp, BufferManifest, Direction, Expr, InjectionManifest, KernelManifest, SymbolKind,
    Value,
};

/// Some fact divides by zero. It may hold all the same (`h % 0` is 0), but nobody means that.
pub(super) fn divides_by_zero(kernel: &KernelManifest, values: &[Value]) -> bool {
    fn within(expr: &Expr, values: &[Value]) -> bool {
        match expr {
            Expr::Binary(op, left, right) => {
                let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem | BinaryOp::CeilDiv);
                divides && right.evaluate(values) == Some(Value::Int(0))
                    || within(left, values)
                    || within(right, values)
            }
            Expr::Unary(_, operand) => within(operand, values),
            Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) | Expr::Symbol(_) => false,
        }
    }
    kernel.facts.iter().any(|fact| within(&fact.condition, values))
}

/// Nothing would be written: all outputs are empty.
pub(super) fn is_empty(kernel: &KernelManifest, values: &[Value]) -> bool {
    let outputs = kernel.arguments.iter().filter_map(|argument| match &argument.kind {
        ArgumentKind::Array { buffer, direction: Direction::Out | Direction::InOut } => Some(buffer),
        _ => None,
    });
    let mut outputs = outputs.peekable();
    outputs.peek().is_some()
        && outputs.all(|buffer| {
            buffer.extents.iter().any(|extent| extent.evaluate_int(values).is_none_or(|extent| extent <= 0))
        })
}

/// Whether every dimension is at least 1.
pub(super) fn wants_work(kernel: &KernelManifest, values: &[Value]) -> bool {
    let mut symbols = kernel.symbols.iter().zip(values);
    symbols
        .all(|(symbol, value)| !matches!((&symbol.kind, value), (SymbolKind::Dim { .. }, Value::Int(..=0))))
}

/// `values` with those that are free (by symbol) moved as little as makes facts of the form `x % y == 0` hold: `x` up to
/// a multiple of `y`; or, where `y` is larger and free, `y` down to what goes into `x` from one to four times.
pub(super) fn divisible(kernel: &KernelManifest, values: &[Value], free: &[usize], seed: u64) -> Vec<Value> {
    let mut values = values.to_vec();
    // Twice: one fact may move what another one is about.
    for fact in kernel.facts.iter().chain(&kernel.facts) {
        conjuncts(&fact.condition, &mut |condition| {
            let Expr::Binary(BinaryOp::Equal, left, right) = condition else { return };
            let (Expr::Binary(BinaryOp::Rem, of, by), Expr::Int(0)) = (&**left, &**right) else { return };
            let Expr::Symbol(of) = **of else { return };
            let (Value::Int(mut size), Some(Value::Int(mut unit))) = (values[of], by.evaluate(&values))
            else {
                return;
            };
            if let Expr::Symbol(by) = **by
                && free.contains(&by)
                && (unit > size || unit == 0)
            {
                let times = 1 + i128::from(seed % 4);
                unit = (size / times).max(1);
                values[by] = Value::Int(unit);
                size -= size % unit;
            }
            if free.contains(&of) && unit > 0 {
                values[of] = Value::Int((size + unit - 1) / unit * unit);
            }
        });
    }
    values
}

/// Whether there is a value of its own for each element of the arrays whose elements must differ.
pub(super) fn has_enough_values(kernel: &KernelManifest, values: &[Value]) -> bool {
    kernel.injections.iter().all(|fact| {
        let elements = extents(kernel, fact, values).into_iter().try_fold(1i128, i128::checked_mul);
        elements.is_some_and(|elements| elements <= room(kernel, fact, values))
    })
}

/// `values` with those that are free (by symbol) moved so that there is a value for each element where elements must
/// differ: an axis of the array down; or, where none is free, the end of the range up.
pub(super) fn with_enough_values(
    kernel: &KernelManifest,
    mut values: Vec<Value>,
    free: &[usize],
) -> Vec<Value> {
    for fact in &kernel.injections {
        let sizes = extents(kernel, fact, &values);
        let (elements, room) = (sizes.iter().product::<i128>(), room(kernel, fact, &values));
        if elements <= room {
            continue;
        }
        let shape = array(kernel, fact).map_or(&[][..], |buffer| &buffer.extents);
        let movable = shape.iter().zip(&sizes).find_map(|(extent, size)| match extent {
            Expr::Symbol(symbol) if free.contains(symbol) => Some((*symbol, *size)),
            _ => None,
        });
        match (movable, &fact.high) {
            (Some((symbol, size)), _) => values[symbol] = Value::Int(room / (elements / size)),
            (None, Expr::Symbol(symbol)) if free.contains(symbol) => {
                let low = fact.low.evaluate_int(&values).unwrap_or(0);
                values[*symbol] = Value::Int(low.saturating_add(elements));
            }
            _ => {}
        }
    }
    values
}

/// `values` with one that is free (by symbol) moved for each fact of the form `left == right` that does not hold and in
/// which some free symbol counts as a multiple: `m * m == n` says what `n` is.
pub(super) fn balanced(kernel: &KernelManifest, mut values: Vec<Value>, free: &[usize]) -> Vec<Value> {
    for fact in &kernel.facts {
        conjuncts(&fact.condition, &mut |condition| {
            let Expr::Binary(BinaryOp::Equal, left, right) = condition else { return };
            let apart = |values: &[Value]| match (left.evaluate(values), right.evaluate(values)) {
                (Some(Value::Int(left)), Some(Value::Int(right))) => left.checked_sub(right),
                _ => None,
            };
            let Some(now) = apart(&values).filter(|now| *now != 0) else { return };
            for symbol in free {
                let Value::Int(old) = values[*symbol] else { continue };
                let mut moved = values.clone();
                moved[*symbol] = Value::Int(old.saturating_add(1));
                let step = apart(&moved).and_then(|next| next.checked_sub(now)).filter(|step| *step != 0);
                let Some(new) = step.map(|step| old.saturating_sub(now / step)) else { continue };
                moved[*symbol] = Value::Int(new);
                // Not to nothing, which `h * k == 12 * h` would allow.
                if new >= i128::from(old > 0) && apart(&moved) == Some(0) {
                    values = moved;
                    break;
                }
            }
        });
    }
    values
}

fn array<'k>(kernel: &'k KernelManifest, fact: &InjectionManifest) -> Option<&'k BufferManifest> {
    match &kernel.arguments[fact.argument].kind {
        ArgumentKind::Array { buffer, .. } => Some(buffer),
        ArgumentKind::Value { .. } => None,
    }
}

/// The array's shape.
fn extents(kernel: &KernelManifest, fact: &InjectionManifest, values: &[Value]) -> Vec<i128> {
    let shape = array(kernel, fact).map_or(&[][..], |buffer| &buffer.extents);
    shape.iter().map(|extent| extent.evaluate_int(values).unwrap_or(0).max(0)).collect()
}

/// How many values there are for the array's elements.
fn room(kernel: &KernelManifest, fact: &InjectionManifest, values: &[Value]) -> i128 {
    let scalar = array(kernel, fact).and_then(|buffer| buffer.element.as_scalar());
    let (least, most) = scalar.map_or((0, -1), scalar_range);
    let end = |end: &Expr| end.evaluate_int(values).unwrap_or(0);
    (end(&fact.high).min(most + 1) - end(&fact.low).max(least)).max(0)
}

/// The conditions that `&&` joins.
fn conjuncts(condition: &Expr, visit: &mut dyn FnMut(&Expr)) {
    match condition {
        Expr::Binary(BinaryOp::And, left, right) => {
            conjuncts(left, visit);
            conjuncts(right, visit);
        }
        other => visit(other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::choose_sizes;
    use krn_compiler::source::SourceFile;
    use krn_compiler::{CompileOptions, compile};
    use std::collections::BTreeMap;

    fn sizes(facts: &str, wanted: [i64; 2]) -> (i64, i64) {
        let text =
            format!("kernel k(x: f32[h, 3], z: f32[k, 2]) -> y: f32[h] where {facts} {{ y[i] = x[i, 0] }}\n");
        let target = CompileOptions::for_target(krn_compiler::TARGETS[0]);
        let compilation = compile(&SourceFile::new("t.krn", text), &target).expect("well typed");
        let manifest = &compilation.compiled.manifest.kernels[0];
        let none = BTreeMap::new();
        let found =
            choose_sizes(manifest, &BTreeMap::new(), &none, 2, |axis| wanted[axis]).expect("there are some");
        (found.dims["h"], found.dims["k"])
    }

    #[test]
    fn one_side_of_an_equality_follows_from_the_other() {
        assert_eq!(sizes("k * k == h", [1000, 64]), (4096, 64));
        assert_eq!(sizes("h * k == 12 * h", [1000, 64]), (1000, 12));
        assert_eq!(sizes("2 * h == k + 1, h > 4", [1, 9]), (5, 9));
        let (h, k) = sizes("h * 3 == k + 1, h > 4, k > 2 * h", [1, 1]);
        assert!(h > 4 && k == 3 * h - 1, "{h} {k}");
    }

    #[test]
    fn the_nearest_multiple_is_taken_and_never_nothing() {
        assert_eq!(sizes("h % k == 0", [12, 4]), (12, 4));
        assert_eq!(sizes("h % k == 0", [33, 8]), (40, 8));
        // Three to each: the larger one goes down.
        assert_eq!(sizes("h % k == 0", [31, 257]), (30, 10));
        assert_eq!(sizes("h % k == 0 && k % 4 == 0", [33, 6]), (40, 8));
        assert_eq!(sizes("h % 4 == 0", [33, 1]), (36, 1));
        // `5 % 0` is 0, but nobody means that.
        assert_eq!(sizes("h % k == 0", [5, 0]), (5, 1));
        // What is wanted empty may be.
        assert_eq!(sizes("h % k == 0", [0, 7]), (0, 7));
        let (h, k) = sizes("h % k == 0 && h < k + 3 && k > 4", [31, 257]);
        assert!(h % k == 0 && h > 0, "{h} {k}");
    }
}
