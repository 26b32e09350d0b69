//! Proved divisors against values that are computed op by op.

use super::Multiples;
use crate::data::Scalar;
use crate::ir::builder::KernelBuilder;
use crate::ir::entities::{Launch, Value};
use crate::ir::evaluate;
use crate::ir::kernel::{Kernel, Payload, SymbolData};
use crate::ir::op::{Constant, Opcode};
use crate::manifest::{BinaryOp, Expr, SymbolKind};
use crate::source::Span;
use proptest::prelude::*;
use rustc_hash::FxHashMap;

const OPS: [Opcode; 13] = [
    Opcode::Add,
    Opcode::Sub,
    Opcode::Mul,
    Opcode::Mul,
    Opcode::Min,
    Opcode::Max,
    Opcode::And,
    Opcode::Or,
    Opcode::Xor,
    Opcode::Shl,
    Opcode::Shr,
    Opcode::Div,
    Opcode::Rem,
];

/// Values from a tape, of the symbols `n` and `m` and of a loop `for i = 16 * m .. n step 8`.
fn values(tape: &[u8]) -> (Kernel, Launch, Vec<Value>) {
    let mut builder = KernelBuilder::new("k", Span::default());
    let kind = |axis| SymbolKind::Dim { argument: 0, axis, extent: Default::default() };
    let symbols = ["n", "m"].map(|name| SymbolData { name: name.into(), kind: kind(0), scalar: Scalar::I64 });
    let symbols = symbols.map(|data| builder.add_symbol(data));
    builder.begin_launch("k");
    let [n, m] = symbols.map(|symbol| builder.symbol(symbol));
    let (eight, sixteen) = (builder.constant_index(8), builder.constant_index(16));
    let low = builder.binary(Opcode::Mul, m, sixteen);
    let (index, _) = builder.begin_for("i", low, n, eight, &[]);
    let mut pool = vec![n, m, index, low];
    for number in [0, 1, 2, -4, 12, 19, 1 << 40, i64::MIN] {
        pool.push(builder.constant_index(number));
    }
    for chunk in tape.chunks_exact(3) {
        let pick = |byte: u8| pool[usize::from(byte) % pool.len()];
        let (a, b) = (pick(chunk[1]), pick(chunk[2]));
        pool.push(match usize::from(chunk[0]) % (OPS.len() + 2) {
            0 => builder.unary(Opcode::Neg, a),
            1 => {
                let condition = builder.compare(Opcode::Lt, a, n);
                builder.select(condition, a, b)
            }
            at => builder.binary(OPS[at - 2], a, b),
        });
    }
    builder.end_for(&[]);
    let launch = builder.end_launch();
    (builder.finish(Vec::new()), launch, pool)
}

/// Every value for given symbols and a given index, op by op.
fn computed(kernel: &Kernel, symbols: [i64; 2], turn: i64) -> FxHashMap<Value, Constant> {
    let mut found = FxHashMap::<Value, Constant>::default();
    let index = symbols[1].wrapping_mul(16).wrapping_add(turn.wrapping_mul(8));
    kernel.walk_all(&mut |_, inst| {
        let data = &kernel.insts[inst];
        if let Some(region) = data.regions.first() {
            found.insert(kernel.blocks[*region].params[0], Constant::Int(Scalar::I64, index.into()));
            return;
        }
        let operands: Vec<Constant> = data.arguments.iter().map(|value| found[value]).collect();
        let value = match &data.payload {
            Payload::Symbol(symbol) => {
                Some(Constant::Int(Scalar::I64, symbols[symbol.as_u32() as usize].into()))
            }
            payload => evaluate(data.opcode, payload, &operands),
        };
        if let (Some(value), Some(result)) = (value, data.results.first()) {
            found.insert(*result, value);
        }
    });
    found
}

fn divides(divisor: u64, value: i128) -> bool {
    value.unsigned_abs().is_multiple_of(u128::from(divisor))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn divisors_divide(
        tape in proptest::collection::vec(any::<u8>(), 0..90),
        n in any::<i32>(),
        m in any::<i64>(),
        turn in 0i64..1000,
    ) {
        let (mut kernel, launch, pool) = values(&tape);
        let symbol = Expr::Symbol(0);
        let product = Expr::binary(BinaryOp::Mul, Expr::Symbol(1), symbol.clone());
        // What divides the symbol is less than what divides the product.
        kernel.launches[launch].assume = [(symbol, 24), (product, 64)].map(|(size, divisor)| {
            let rest = Expr::binary(BinaryOp::Rem, size, Expr::Int(divisor));
            Expr::binary(BinaryOp::Equal, rest, Expr::Int(0))
        }).into();
        let m = m.wrapping_mul(8);
        let known = computed(&kernel, [i64::from(n) * 24, m], turn);
        let mut multiples = Multiples::new(&kernel, launch);
        for value in pool {
            let divisor = multiples.of(&kernel, value);
            prop_assert!(divisor.is_power_of_two());
            let Some(Constant::Int(_, number)) = known.get(&value) else { continue };
            prop_assert!(divides(divisor, *number), "{divisor} does not divide {number}, {value}");
        }
    }
}

#[test]
fn known_divisors_are_found() {
    let (mut kernel, launch, _) = values(&[]);
    let rest = Expr::binary(BinaryOp::Rem, Expr::Symbol(0), Expr::Int(24));
    let condition = Expr::binary(BinaryOp::Equal, rest, Expr::Int(0));
    let other = Expr::binary(BinaryOp::Less, Expr::Symbol(1), Expr::Int(4));
    kernel.launches[launch].assume = vec![Expr::binary(BinaryOp::And, other, condition)];
    let (_, _, pool) = values(&[]);
    let [n, m, index, low] = pool[..4] else { panic!("four values") };
    let mut multiples = Multiples::new(&kernel, launch);
    // 24 is 8 times an odd number; the loop starts at a multiple of 16 and goes on by 8.
    assert_eq!([n, m, low, index].map(|value| multiples.of(&kernel, value)), [8, 1, 16, 8]);
    let extent = Expr::binary(BinaryOp::Mul, Expr::Symbol(0), Expr::Int(6));
    assert_eq!(multiples.of_expression(&extent), 16);
    assert_eq!(multiples.of_expression(&Expr::binary(BinaryOp::CeilDiv, extent, Expr::Int(2))), 1);

    let mut supposing = Multiples::new(&kernel, launch);
    supposing.suppose_size(&Expr::Symbol(1), 4);
    supposing.suppose(index, 2);
    assert_eq!([m, low, index].map(|value| supposing.of(&kernel, value)), [4, 64, 2]);
}

#[test]
fn a_product_is_a_multiple_where_its_factors_are_none() {
    let (mut kernel, launch, _) = values(&[]);
    let [n, m] = [0, 1].map(Expr::Symbol);
    let product = Expr::binary(BinaryOp::Mul, n.clone(), m.clone());
    let rest = Expr::binary(BinaryOp::Rem, product.clone(), Expr::Int(12));
    kernel.launches[launch].assume = vec![Expr::binary(BinaryOp::Equal, rest, Expr::Int(0))];
    let multiples = Multiples::new(&kernel, launch);
    let twice = Expr::binary(BinaryOp::Mul, m.clone(), product.clone());
    let square = Expr::binary(BinaryOp::Mul, n.clone(), n.clone());
    assert_eq!([&product, &twice, &n, &square].map(|size| multiples.of_expression(size)), [4, 4, 1, 1]);
    kernel.launches[launch].assume = vec![Expr::binary(BinaryOp::Equal, product.clone(), Expr::Int(48))];
    assert_eq!(Multiples::new(&kernel, launch).of_expression(&product), 16);
    kernel.launches[launch].assume.clear();
    let mut supposing = Multiples::new(&kernel, launch);
    supposing.suppose_size(&product, 8);
    supposing.suppose_size(&n, 2);
    assert_eq!([&product, &twice, &square].map(|size| supposing.of_expression(size)), [8, 8, 4]);
}

#[test]
fn without_the_condition_nothing_is_known_of_a_symbol() {
    let (kernel, launch, pool) = values(&[]);
    let mut multiples = Multiples::new(&kernel, launch);
    assert_eq!(multiples.of(&kernel, pool[0]), 1);
    // Either side of an `or` may be the one that holds.
    let (mut kernel, launch, pool) = values(&[]);
    let rest = Expr::binary(BinaryOp::Rem, Expr::Symbol(0), Expr::Int(8));
    let even = Expr::binary(BinaryOp::Equal, rest, Expr::Int(0));
    let either = Expr::binary(BinaryOp::Or, even, Expr::Bool(true));
    kernel.launches[launch].assume = vec![either];
    assert_eq!(Multiples::new(&kernel, launch).of(&kernel, pool[0]), 1);
}
