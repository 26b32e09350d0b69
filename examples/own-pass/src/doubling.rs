//! `doubling`: a product with two becomes a sum.

use krn_compiler::ir::kernel::{Kernel, Payload, Phases};
use krn_compiler::ir::op::{Constant, Opcode};
use krn_compiler::passes::{Changed, Pass, PassContext};

/// Doubling becomes an addition.
///
/// ```text
/// v1: f32 = const 2.0
/// v2: f32 = mul v0, v1      →      v2: f32 = add v0, v0
/// ```
///
/// Both are exact for floats (or overflow to the same infinity) and wrap to the same integer, so the kernel's meaning
/// stays to the bit. The constant is left to `dce`.
pub struct Doubling;

impl Pass for Doubling {
    fn name(&self) -> &str {
        "doubling"
    }

    fn reason(&self) -> &str {
        "adds a value to itself instead of multiplying it by two"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut found = Vec::new();
        kernel.walk_all(&mut |_, inst| {
            let data = &kernel.insts[inst];
            if let (Opcode::Mul, [left, right]) = (data.opcode, data.arguments.as_slice()) {
                let is_two = |value| kernel.constant_of(value).is_some_and(is_two);
                if is_two(*right) {
                    found.push((inst, *left));
                } else if is_two(*left) {
                    found.push((inst, *right));
                }
            }
        });
        for (inst, doubled) in &found {
            kernel.rewrite_inst(*inst, Opcode::Add, Payload::None, &[*doubled, *doubled]);
        }
        Changed::from(!found.is_empty())
    }
}

fn is_two(constant: Constant) -> bool {
    match constant {
        Constant::Bool(_) => false,
        Constant::Int(_, value) => value == 2,
        Constant::F32(bits) => f32::from_bits(bits) == 2.0,
        Constant::F64(bits) => f64::from_bits(bits) == 2.0,
    }
}
