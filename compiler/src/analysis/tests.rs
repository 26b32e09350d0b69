//! The algebra against slow oracles: values computed op by op, addresses computed byte by byte.

use super::*;
use crate::data::{ElementType, Leaf, Scalar};
use crate::ir::builder::KernelBuilder;
use crate::ir::entities::{Inst, Value};
use crate::ir::evaluate;
use crate::ir::kernel::{BufferData, BufferKind, Kernel, Payload, SymbolData};
use crate::ir::op::{Constant, Opcode};
use crate::manifest::{self, BinaryOp, Expr, Layout, SymbolKind};
use crate::source::Span;
use proptest::prelude::*;
use rustc_hash::FxHashMap;

/// A kernel with a loop over `i, j` and one access in it.
struct Case {
    kernel: Kernel,
    params: [Value; 2],
    access: Inst,
}

/// Two subscripts from a tape, into a buffer of structs with an array field, `[n, m + 3]`.
fn case(tape: &[u8], layout: Layout) -> Case {
    let mut builder = KernelBuilder::new("k", Span::default());
    let symbols: Vec<_> = ["n", "m"]
        .into_iter()
        .map(|name| {
            let kind = SymbolKind::Dim { argument: 0, axis: 0, extent: Default::default() };
            builder.add_symbol(SymbolData { name: name.into(), kind, scalar: Scalar::I64 })
        })
        .collect();
    let leaf = |path: &str, scalar, offset, extents: &[u64], strides: &[u64]| Leaf {
        path: path.into(),
        scalar,
        offset,
        extents: extents.to_vec(),
        strides: strides.to_vec(),
    };
    let leaves = vec![leaf("a", Scalar::F64, 0, &[], &[]), leaf("b.c", Scalar::F32, 8, &[2, 3], &[20, 4])];
    let buffer = builder.add_buffer(BufferData {
        name: "x".into(),
        kind: BufferKind::Scratch,
        element: ElementType { name: "S".into(), leaves, size: 48, align: 8 },
        extents: vec![Expr::Symbol(0), Expr::binary(BinaryOp::Add, Expr::Symbol(1), Expr::Int(3))],
        layout,
        layout_fixed: false,
        cache: None,
        runs_on: false,
    });
    builder.begin_launch("k");
    let symbols: Vec<Value> = symbols.into_iter().map(|symbol| builder.symbol(symbol)).collect();
    let zero = builder.constant_index(0);
    let params = builder.begin_forall(&[("i", zero, symbols[0]), ("j", zero, symbols[1])]);
    let mut pool = vec![params[0], params[1], symbols[0], symbols[1]];
    for number in [1, -1, 3, i64::MAX / 3] {
        pool.push(builder.constant_index(number));
    }
    for chunk in tape.chunks_exact(3) {
        let pick = |byte: u8| pool[usize::from(byte) % pool.len()];
        let (a, b) = (pick(chunk[1]), pick(chunk[2]));
        pool.push(match chunk[0] % 8 {
            0 | 1 => builder.binary(Opcode::Add, a, b),
            2 => builder.binary(Opcode::Sub, a, b),
            3 | 4 => builder.binary(Opcode::Mul, a, b),
            5 => builder.unary(Opcode::Neg, a),
            6 => {
                let count = builder.constant_index(i64::from(chunk[2] % 5));
                builder.binary(Opcode::Shl, a, count)
            }
            _ => builder.binary(Opcode::Div, a, b),
        });
    }
    let last = |at: usize| pool[pool.len() - 1 - at % pool.len()];
    let indices = [last(0), last(1), last(2), params[1]];
    let loaded = builder.load(buffer, 1, &indices);
    builder.end_forall();
    builder.end_launch();
    let kernel = builder.finish(Vec::new());
    let access = kernel.defining_inst(loaded).expect("a load");
    Case { params: [params[0], params[1]], access, kernel }
}

/// All values for one point, op by op.
fn values(case: &Case, symbols: [i64; 2], point: [i64; 2]) -> FxHashMap<Value, i64> {
    let mut found: FxHashMap<Value, i64> = case.params.iter().copied().zip(point).collect();
    case.kernel.walk_all(&mut |_, inst| {
        let data = &case.kernel.insts[inst];
        let operand = |value: &Value| Constant::Int(Scalar::I64, found[value].into());
        let value = match &data.payload {
            Payload::Symbol(symbol) => Some(symbols[symbol.as_u32() as usize]),
            payload if data.regions.is_empty() && data.opcode != Opcode::Yield => {
                match evaluate(data.opcode, payload, &data.arguments.iter().map(operand).collect::<Vec<_>>())
                {
                    Some(Constant::Int(_, value)) => Some(value as i64),
                    _ => None,
                }
            }
            _ => None,
        };
        if let (Some(value), Some(result)) = (value, data.results.first()) {
            found.insert(*result, value);
        }
    });
    found
}

/// The byte address of the access, by the definitions of the layouts; wrapping as device addresses do.
fn address(case: &Case, symbols: [i64; 2], values: &FxHashMap<Value, i64>) -> i64 {
    let data = &case.kernel.insts[case.access];
    let Payload::Access { buffer, leaf } = data.payload else { panic!("a load") };
    let buffer = &case.kernel.buffers[buffer];
    let leaf = &buffer.element.leaves[leaf as usize];
    let known: Vec<manifest::Value> =
        symbols.iter().map(|value| manifest::Value::Int((*value).into())).collect();
    let (mut element, mut scalar, mut offset) = (0i64, 0i64, 0i64);
    for (at, index) in data.arguments.iter().enumerate() {
        let index = values[index];
        if let Some(extent) = buffer.extents.get(at) {
            let extent = extent.evaluate_int(&known).expect("an extent") as i64;
            element = element.wrapping_mul(extent).wrapping_add(index);
        } else {
            let at = at - buffer.extents.len();
            scalar = scalar.wrapping_mul(leaf.extents[at] as i64).wrapping_add(index);
            offset = offset.wrapping_add(index.wrapping_mul(leaf.strides[at] as i64));
        }
    }
    match buffer.layout {
        Layout::Aos => element.wrapping_mul(buffer.element.size as i64).wrapping_add(offset),
        _ => element
            .wrapping_mul(leaf.count() as i64)
            .wrapping_add(scalar)
            .wrapping_mul(leaf.scalar.size() as i64),
    }
}

proptest! {
    #[test]
    fn forms_have_the_values_of_what_they_stand_for(
        tape in proptest::collection::vec(any::<u8>(), 0..60),
        symbols in [0i64..1 << 40, 0i64..1 << 40],
        point in [0i64..1 << 40, 0i64..1 << 40],
    ) {
        let case = case(&tape, Layout::Aos);
        let found = values(&case, symbols, point);
        let mut affine = Affine::new(&case.kernel);
        for (value, expected) in &found {
            let atom = |atom: Atom| match atom {
                Atom::Symbol(symbol) => symbols[symbol.as_u32() as usize],
                Atom::Value(value) => found[&value],
            };
            let form = affine.form(*value);
            let found = form.terms().iter().fold(0i64, |sum, (monomial, coefficient)| {
                let factors = monomial.atoms().iter();
                let term = factors.fold(*coefficient as i64, |term, known| term.wrapping_mul(atom(*known)));
                sum.wrapping_add(term)
            });
            prop_assert_eq!(found, *expected, "{} is {:?}", value, form);
        }
    }

    #[test]
    fn strides_are_what_addresses_move_by(
        tape in proptest::collection::vec(any::<u8>(), 0..40),
        soa in any::<bool>(),
        symbols in [1i64..100, 1i64..100],
        point in [0i64..50, 0i64..50],
    ) {
        let case = case(&tape, if soa { Layout::Soa } else { Layout::Aos });
        let mut affine = Affine::new(&case.kernel);
        for axis in 0..2 {
            let mut next = point;
            next[axis] += 1;
            let [from, to] = [point, next].map(|point| address(&case, symbols, &values(&case, symbols, point)));
            let stride = affine.stride(case.access, case.params[axis]);
            if let Stride::Bytes(bytes) = stride {
                prop_assert_eq!(to.wrapping_sub(from), bytes);
            }
            if stride == Stride::Symbolic {
                // The same step anywhere along this axis.
                let mut third = next;
                third[axis] += 1;
                let after = address(&case, symbols, &values(&case, symbols, third));
                prop_assert_eq!(to.wrapping_sub(from), after.wrapping_sub(to));
            }
        }
    }

    #[test]
    fn addresses_that_are_sums_of_parts_move_along_one_axis_the_same_anywhere_along_the_other(
        tape in proptest::collection::vec(any::<u8>(), 0..40),
        soa in any::<bool>(),
        symbols in [1i64..100, 1i64..100],
        from in [0i64..50, 0i64..50],
        to in [0i64..50, 0i64..50],
    ) {
        let case = case(&tape, if soa { Layout::Soa } else { Layout::Aos });
        if Affine::new(&case.kernel).is_separable(case.access, case.params) {
            let at = |point: [i64; 2]| address(&case, symbols, &values(&case, symbols, point));
            let [along, beside] = [from[1], to[1]].map(|j| at([to[0], j]).wrapping_sub(at([from[0], j])));
            prop_assert_eq!(along, beside);
        }
    }

    #[test]
    fn ranges_hold_every_value(
        tape in proptest::collection::vec(any::<u8>(), 0..60),
        symbols in [1i64..=DIMENSION_LIMIT, 1i64..=DIMENSION_LIMIT],
        point in [any::<u64>(), any::<u64>()],
    ) {
        let case = case(&tape, Layout::Aos);
        let inside = [0, 1].map(|at| (point[at] % symbols[at] as u64) as i64);
        let mut ranges = Ranges::new(&case.kernel);
        for (value, found) in values(&case, symbols, inside) {
            let interval = ranges.of(&case.kernel, value);
            prop_assert!(interval.low <= found.into() && i128::from(found) <= interval.high, "{} {:?}", value, interval);
        }
    }
}

/// The places of a number along two axes: together they step as it does, and one by one they mostly do.
#[test]
fn places_of_a_number_step_with_it() {
    let mut builder = KernelBuilder::new("k", Span::default());
    let extents = vec![Expr::Int(9), Expr::Int(3)];
    let buffer = builder.add_buffer(BufferData {
        name: "x".into(),
        kind: BufferKind::Scratch,
        element: ElementType::scalar(Scalar::F32),
        extents,
        layout: Layout::Aos,
        layout_fixed: false,
        cache: None,
        runs_on: false,
    });
    builder.begin_launch("k");
    let [zero, end, three] = [0, 27, 3].map(|number| builder.constant_index(number));
    let k = builder.begin_forall(&[("k", zero, end)])[0];
    let quotient = builder.binary(Opcode::Div, k, three);
    let whole = builder.binary(Opcode::Mul, quotient, three);
    let rest = builder.binary(Opcode::Sub, k, whole);
    let [dense, turned] =
        [[quotient, rest], [rest, quotient]].map(|subscripts| builder.load(buffer, 0, &subscripts));
    builder.end_forall();
    builder.end_launch();
    let kernel = builder.finish(Vec::new());
    let [dense, turned] = [dense, turned].map(|value| kernel.defining_inst(value).expect("a load"));
    let mut affine = Affine::new(&kernel);
    assert_eq!(affine.stride(dense, k), Stride::Bytes(4));
    assert_eq!(affine.stride(turned, k), Stride::Irregular);
    assert_eq!((affine.usual_stride(turned, k), affine.usual_run(turned, k)), (Stride::Bytes(12), Some(3)));
}

#[test]
fn a_matrix_is_walked_by_rows() {
    let tape = [];
    let case = case(&tape, Layout::Soa);
    let mut affine = Affine::new(&case.kernel);
    // The subscripts are literals but for the last one, which is `j` in the innermost array of three floats.
    assert_eq!(affine.stride(case.access, case.params[0]), Stride::Bytes(0));
    assert_eq!(affine.stride(case.access, case.params[1]), Stride::Bytes(4));
    let form = affine.form(case.params[1]);
    assert_eq!(format!("{form:?}"), format!("1*{}", case.params[1]));
}
