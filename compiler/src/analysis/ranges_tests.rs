//! What one analysis of integers knows, the others know: over the whole table of ops.

use super::{Affine, Atom, Interval, Multiples, Polynomial, Ranges};
use crate::data::Scalar;
use crate::ir::builder::KernelBuilder;
use crate::ir::entities::{Launch, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Class, OPS, Opcode, Shape};
use crate::source::Span;

/// The op of the index of a loop `for i = 16 .. 64 step 16` and of literals, if it computes an i64 of i64 values.
fn applied(opcode: Opcode, shape: Shape) -> Option<(Kernel, Launch, Value)> {
    let of_integers = |class| matches!(class, Class::Integer | Class::Numeric | Class::Bits | Class::Any);
    let mut builder = KernelBuilder::new("k", Span::default());
    builder.begin_launch("k");
    let [four, sixteen, end] = [4, 16, 64].map(|number| builder.constant_index(number));
    let (index, _) = builder.begin_for("i", sixteen, end, sixteen, &[]);
    let value = match shape {
        Shape::Unary(class) if of_integers(class) => builder.unary(opcode, index),
        Shape::Binary(class) if of_integers(class) => builder.binary(opcode, index, sixteen),
        Shape::Shift => builder.binary(opcode, index, four),
        Shape::Select => {
            let condition = builder.compare(Opcode::Lt, index, end);
            builder.select(condition, index, sixteen)
        }
        _ => return None,
    };
    builder.end_for(&[]);
    let launch = builder.end_launch();
    Some((builder.finish(Vec::new()), launch, value))
}

#[test]
fn what_is_affine_or_a_multiple_has_a_range() {
    let everything = Interval { low: i64::MIN.into(), high: i64::MAX.into() };
    let mut known = Vec::new();
    for info in OPS {
        let Some((kernel, launch, value)) = applied(info.opcode, info.shape) else { continue };
        assert_eq!(kernel.value_type(value), Scalar::I64);
        let is_affine = *Affine::new(&kernel).form(value) != Polynomial::atom(Atom::Value(value));
        let is_multiple = Multiples::new(&kernel, launch).of(&kernel, value) > 1;
        if is_affine || is_multiple {
            let range = Ranges::new(&kernel).of(&kernel, value);
            assert_ne!(range, everything, "nothing is known of the range of `{}`", info.mnemonic);
            known.push(info.mnemonic);
        }
    }
    // Those that the test is about; more are welcome.
    for mnemonic in ["add", "sub", "mul", "neg", "shl", "min", "max", "and", "select"] {
        assert!(known.contains(&mnemonic), "`{mnemonic}` is neither affine nor a multiple: {known:?}");
    }
}

#[test]
fn a_shift_by_a_literal_scales_the_range() {
    let (kernel, _, value) = applied(Opcode::Shl, Shape::Shift).expect("an op of integers");
    assert_eq!(Ranges::new(&kernel).of(&kernel, value), Interval { low: 16 << 4, high: 63 << 4 });
}
