//! Code that is put into a body that there is.

use crate::analysis::{Atom, Polynomial};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{Definition, Kernel};
use crate::manifest::Expr;
use crate::source::Span;
use cranelift_entity::EntityRef;

/// Lets code be emitted in front of an instruction of a block; `None` where it does not stand there.
pub fn before<T>(
    kernel: &mut Kernel,
    block: Block,
    inst: Inst,
    code: impl FnOnce(&mut Emit<'_>) -> T,
) -> Option<T> {
    let at = kernel.blocks[block].insts.iter().position(|other| *other == inst)?;
    let rest = kernel.blocks[block].insts.split_off(at);
    let span = kernel.insts[inst].span;
    let result = code(&mut Emit::new(kernel, block, span));
    kernel.blocks[block].insts.extend(rest);
    Some(result)
}

/// Lets what is computed from a parameter of a block, in front of all that is in it, stand for the parameter.
pub fn stands_for(
    kernel: &mut Kernel,
    block: Block,
    param: Value,
    span: Span,
    code: impl FnOnce(&mut Emit<'_>, Value) -> Value,
) {
    let rest = std::mem::take(&mut kernel.blocks[block].insts);
    let value = code(&mut Emit::new(kernel, block, span), param);
    if value != param {
        let made = kernel.blocks[block].insts.clone();
        kernel.replace_uses(param, value);
        for inst in made {
            for argument in &mut kernel.insts[inst].arguments {
                if *argument == value {
                    *argument = param;
                }
            }
        }
        kernel.values[value].name = kernel.values[param].name.take();
    }
    kernel.blocks[block].insts.extend(rest);
}

/// Gives a block other parameters.
pub fn own_params(kernel: &mut Kernel, block: Block, params: &[Value]) {
    kernel.blocks[block].params.clear();
    for (position, param) in params.iter().enumerate() {
        kernel.values[*param].definition = Definition::Param(block, position as u16);
        kernel.blocks[block].params.push(*param);
    }
}

/// The loop whose body a block is, which has been emitted while axes have no threads yet: what `Emit` says of its axis goes.
pub fn unbound_loop(kernel: &mut Kernel, body: Block) -> Option<Inst> {
    let inst = kernel.parents().owner_of[body].expand()?;
    for axis in kernel.insts[inst].payload.axes().to_vec() {
        kernel.axes[axis].factors.clear();
    }
    Some(inst)
}

/// Emits a polynomial; `None` where a number in it is too large.
pub fn emitted(emit: &mut Emit<'_>, form: &Polynomial) -> Option<Value> {
    let factors = form.terms().iter().map(|(_, factor)| i64::try_from(*factor).ok());
    let factors: Vec<i64> = factors.collect::<Option<_>>()?;
    let mut sum = emit.int(0);
    for ((monomial, _), factor) in form.terms().iter().zip(factors) {
        let mut product = emit.int(1);
        for atom in monomial.atoms() {
            let value = match atom {
                Atom::Value(value) => *value,
                Atom::Symbol(symbol) => emit.expression(&Expr::Symbol(symbol.index())),
            };
            product = emit.mul(product, value);
        }
        sum = match factor {
            -1 => emit.sub(sum, product),
            factor => {
                let term = emit.mul_int(product, factor);
                emit.add(sum, term)
            }
        };
    }
    Some(sum)
}
