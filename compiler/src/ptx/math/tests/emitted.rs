//! What is emitted computes what the host computes.

use super::machine::Machine;
use super::*;
use crate::ptx::{Entry, EntryBuilder, Reg, Statement, Type};

/// The function alone: its entry, argument registers and result.
fn bare(function: MathFunction, ty: Type) -> (Entry, Vec<Reg>, Reg) {
    let mut builder = EntryBuilder::new(function.name());
    let args: Vec<Reg> = (0..function.arity()).map(|_| builder.reg_for(ty, "x")).collect();
    let result = emit(&mut builder, function, ty, &args);
    // Not finished: that would give the registers other numbers.
    (builder.entry().clone(), args, result)
}

/// Arguments that reach every branch: every exponent and sign, special values, and small integers.
fn samples(width: u32) -> impl Iterator<Item = u64> {
    let spread = (0..3000u64).map(move |i| {
        let bits = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if width == 32 { bits >> 32 } else { bits }
    });
    let notable =
        [0.0, 1.0, -1.0, 2.0, -3.0, 0.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0, 1e-40, 7e3, 2e6];
    let notable = notable.map(|x| if width == 32 { (x as f32).to_bits().into() } else { x.to_bits() });
    spread.chain(notable)
}

#[test]
fn emitted_functions_equal_the_host_bit_for_bit() {
    for function in MathFunction::ALL.iter().copied() {
        for ty in [Type::F32, Type::F64] {
            let (entry, args, result) = bare(function, ty);
            let others: Vec<u64> = samples(ty.bits()).collect();
            for (i, x) in samples(ty.bits()).enumerate() {
                let y = others[i * 7 % others.len()];
                let inputs: Vec<(Reg, u64)> = args.iter().copied().zip([x, y]).collect();
                let bits = Machine::run(&entry, &inputs, result);
                let (x, y) = (f64::from_bits(x), f64::from_bits(y));
                let (got, expected) = if ty == Type::F32 {
                    let args = [x, y].map(|x| f32::from_bits(x.to_bits() as u32));
                    (f32::from_bits(bits as u32).into(), eval_f32(function, &args[..function.arity()]).into())
                } else {
                    (f64::from_bits(bits), eval_f64(function, &[x, y][..function.arity()]))
                };
                let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
                assert!(same, "{}.{ty} of {inputs:x?}: {got:e}, host {expected:e}", function.name());
            }
        }
    }
}

#[test]
fn functions_of_the_special_function_unit_are_short() {
    for (function, most) in [(Exp, 10), (Exp2, 9), (Tanh, 21), (Rsqrt, 1)] {
        let (entry, ..) = bare(function, Type::F32);
        let count =
            entry.body.iter().filter(|statement| matches!(statement, Statement::Instruction(_))).count();
        assert!(count <= most, "{} takes {count} instructions", function.name());
    }
}
