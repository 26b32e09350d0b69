//! Every op with a literal on either side, with itself, and under the same op again, against what the op
//! computes, for the values that careless rules get wrong.

use super::Fold;
use crate::data::{ElementType, Scalar};
use crate::ir::builder::KernelBuilder;
use crate::ir::entities::Value;
use crate::ir::kernel::{BufferData, BufferKind, Kernel, Payload, Step, SymbolData};
use crate::ir::op::{Constant, OPS, Opcode, Shape};
use crate::ir::testing::interpret;
use crate::ir::verify;
use crate::manifest::{Layout, SymbolKind};
use crate::passes::{Changed, Pass, PassContext, TargetFacts};
use crate::source::Span;

const TYPES: [Scalar; 7] =
    [Scalar::Bool, Scalar::I32, Scalar::I64, Scalar::U32, Scalar::U64, Scalar::F32, Scalar::F64];

/// Values of a type worth trying.
fn interesting(scalar: Scalar) -> Vec<Constant> {
    let floats = [0.0, -0.0, 1.0, -1.0, 2.0, 3.0, 0.1, f64::INFINITY, f64::NAN, 1e-40, 2e38, -2.5];
    match scalar {
        Scalar::Bool => vec![Constant::Bool(false), Constant::Bool(true)],
        Scalar::F32 => floats.iter().map(|value| Constant::F32((*value as f32).to_bits())).collect(),
        Scalar::F64 => floats.iter().map(|value| Constant::F64(value.to_bits())).collect(),
        _ => {
            let (low, high) = crate::ir::int_range(scalar).expect("an integer type");
            let all = [low, high, low + 1, 0, 1, 2, 3, 7, 8, 64, -1, -7];
            all.iter().filter(|value| low <= **value).map(|value| Constant::Int(scalar, *value)).collect()
        }
    }
}

/// Stores what `body` makes of the symbol into a scratch cell.
fn kernel(scalar: Scalar, body: &dyn Fn(&mut KernelBuilder, Value) -> Value) -> Kernel {
    let mut builder = KernelBuilder::new("k", Span::default());
    let kind = SymbolKind::Parameter { argument: 0, leaf: 0, element: 0 };
    let symbol = builder.add_symbol(SymbolData { name: "x".into(), kind, scalar });
    builder.begin_launch("k");
    let x = builder.symbol(symbol);
    let value = body(&mut builder, x);
    let buffer = builder.add_buffer(BufferData {
        name: "out".into(),
        kind: BufferKind::Scratch,
        element: ElementType::scalar(builder.value_type(value)),
        extents: Vec::new(),
        layout: Layout::Aos,
        layout_fixed: false,
        cache: None,
        runs_on: false,
    });
    builder.store(buffer, 0, &[], value);
    let launch = builder.end_launch();
    builder.finish(vec![Step::Launch(launch)])
}

/// Folds and compares; whether there was something to fold.
fn assert_folds_right(scalar: Scalar, what: &str, body: &dyn Fn(&mut KernelBuilder, Value) -> Value) -> bool {
    let before = kernel(scalar, body);
    if verify(&before).is_err() {
        // An op that does not take the type.
        return false;
    }
    let mut after = before.clone();
    let changed = Fold.run(&mut after, &PassContext::new(TargetFacts::new(90))) == Changed::Yes;
    assert_eq!(verify(&after), Ok(()), "{what}");
    for x in interesting(scalar) {
        let [expected, found] = [&before, &after].map(|kernel| interpret(kernel, &[x], &|_, _, _| 0));
        assert_eq!(found, expected, "{what} for {x:?}");
    }
    changed
}

#[test]
fn rules_with_literals_are_exact() {
    let mut folded = 0;
    for info in
        OPS.iter().filter(|info| matches!(info.shape, Shape::Binary(_) | Shape::Compare(_) | Shape::Shift))
    {
        for scalar in TYPES {
            for literal in interesting(scalar) {
                for left in [false, true] {
                    let what = format!("{} {scalar} {literal:?} left: {left}", info.mnemonic);
                    folded += usize::from(assert_folds_right(scalar, &what, &|builder, x| {
                        let literal = builder.constant(literal);
                        let (a, b) = if left { (literal, x) } else { (x, literal) };
                        builder.inst(info.opcode, Payload::None, &[a, b]).unwrap_or(x)
                    }));
                    // The same op once more, with another literal.
                    folded += usize::from(assert_folds_right(scalar, &what, &|builder, x| {
                        let (first, second) =
                            (builder.constant(literal), builder.constant(interesting(scalar)[1]));
                        let once = builder.inst(info.opcode, Payload::None, &[x, first]).unwrap_or(x);
                        builder.inst(info.opcode, Payload::None, &[once, second]).unwrap_or(x)
                    }));
                }
            }
            let what = format!("{} {scalar} with itself", info.mnemonic);
            folded += usize::from(assert_folds_right(scalar, &what, &|builder, x| {
                builder.inst(info.opcode, Payload::None, &[x, x]).unwrap_or(x)
            }));
        }
    }
    assert!(folded > 300, "only {folded} rules fired");
}

#[test]
fn rules_on_one_operand_are_exact() {
    let unary: Vec<Opcode> = OPS
        .iter()
        .filter(|info| matches!(info.shape, Shape::Unary(_) | Shape::Test | Shape::Bits))
        .map(|info| info.opcode)
        .collect();
    for scalar in TYPES {
        for first in &unary {
            for second in &unary {
                let what = format!("{second:?} of {first:?} of {scalar}");
                assert_folds_right(scalar, &what, &|builder, x| {
                    let once = builder.inst(*first, Payload::None, &[x]).unwrap_or(x);
                    builder.inst(*second, Payload::None, &[once]).unwrap_or(once)
                });
            }
        }
        for first in Scalar::ALL {
            for second in Scalar::ALL {
                let what = format!("{scalar} as {first} as {second}");
                assert_folds_right(scalar, &what, &|builder, x| {
                    let once = builder.cast(x, first);
                    builder.cast(once, second)
                });
            }
        }
        for opcode in [Opcode::Eq, Opcode::Ne, Opcode::Lt, Opcode::Le, Opcode::Gt, Opcode::Ge] {
            for literal in interesting(scalar) {
                let what = format!("not {opcode:?} {scalar} {literal:?}, and selections by it");
                assert_folds_right(scalar, &what, &|builder, x| {
                    let literal = builder.constant(literal);
                    let compared = builder.compare(opcode, x, literal);
                    builder.unary(Opcode::Not, compared)
                });
                for (then, otherwise) in [(true, false), (false, true), (true, true)] {
                    assert_folds_right(scalar, &what, &|builder, x| {
                        let literal = builder.constant(literal);
                        let compared = builder.compare(opcode, x, literal);
                        let (then, otherwise) =
                            (builder.constant_bool(then), builder.constant_bool(otherwise));
                        builder.select(compared, then, otherwise)
                    });
                }
            }
        }
    }
}
