//! How the moments of two parts of a walk become those of both.

use crate::data::Scalar;
use crate::ir::builder::KernelBuilder;
use crate::ir::entities::Value;
use crate::ir::kernel::{CombinerData, Kernel};
use crate::ir::op::{Combiner, Constant, Opcode};
use crate::mutants::mutant;
use std::sync::Arc;

/// What the combiner is called in IR.
const NAME: &str = "moments";

/// A literal of a float type.
pub fn literal(scalar: Scalar, value: f32) -> Constant {
    match scalar {
        Scalar::F64 => Constant::F64(f64::from(value).to_bits()),
        _ => Constant::F32(value.to_bits()),
    }
}

/// The combiner of a count, a sum of distances and a sum of their squared deviations from the mean of what was counted.
///
/// ```text
/// count = a.count + b.count
/// sum = a.sum + b.sum
/// apart = b.sum / b.count - a.sum / a.count
/// squares = a.squares + b.squares + apart * apart * a.count * b.count / count
/// ```
///
/// The count is an integer: as f32 it would stand still at 2^24. Nothing counts for one where there is a divisor.
/// `apart` is multiplied by the counts first: where one of them is 0, nothing comes of it however far apart they are.
pub fn moments(kernel: &mut Kernel, scalar: Scalar) -> Combiner {
    let data = data(kernel, scalar);
    let known = kernel.combiners.iter().find(|(_, known)| **known == data).map(|(own, _)| own);
    let own = known.unwrap_or_else(|| kernel.combiners.push(data));
    kernel.own_combiner(own)
}

fn data(kernel: &Kernel, scalar: Scalar) -> CombinerData {
    let types = vec![Scalar::I64, scalar, scalar];
    // What is added to -0.0 stays as it is.
    let zero = literal(scalar, -0.0);
    let identity = vec![Constant::Int(Scalar::I64, 0), zero, zero];
    let mut code = KernelBuilder::new(NAME, kernel.span);
    code.begin_launch(NAME);
    let a: Vec<Value> = types.iter().map(|ty| code.root_param(*ty)).collect();
    let b: Vec<Value> = types.iter().map(|ty| code.root_param(*ty)).collect();
    let one = code.constant(literal(scalar, 1.0));
    let count = code.binary(Opcode::Add, a[0], b[0]);
    let counted = |code: &mut KernelBuilder, count: Value| {
        let count = code.cast(count, scalar);
        let divisor = code.binary(Opcode::Max, count, one);
        (count, code.binary(Opcode::Div, one, divisor))
    };
    let (of_a, part_of_a) = counted(&mut code, a[0]);
    let (of_b, part_of_b) = counted(&mut code, b[0]);
    let (_, part) = counted(&mut code, count);
    let mean_a = code.binary(Opcode::Mul, a[1], part_of_a);
    let mean_b = code.binary(Opcode::Mul, b[1], part_of_b);
    let apart = code.binary(Opcode::Sub, mean_b, mean_a);
    let weight = code.binary(Opcode::Mul, of_b, part);
    let weight = code.binary(Opcode::Mul, of_a, weight);
    let weighted = code.binary(Opcode::Mul, apart, weight);
    let between = code.binary(Opcode::Mul, weighted, apart);
    let squares = code.binary(Opcode::Add, a[2], b[2]);
    let all = code.binary(Opcode::Add, between, squares);
    let all = mutant!("moments: parts have one mean", all, squares);
    let sum = code.binary(Opcode::Add, a[1], b[1]);
    code.end_code(&[count, sum, all]);
    CombinerData { name: NAME.to_string(), types, identity, code: Arc::new(code.finish(Vec::new())) }
}
