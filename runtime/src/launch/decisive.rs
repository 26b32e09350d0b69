//! Which arguments by value a plan is made for.

use crate::launch::binding::symbols_of;
use krn_compiler::manifest::{
    ArgumentKind, BufferManifest, Expr, Guard, KernelManifest, Step, SymbolKind, Variant,
};

/// One an argument: whether it is one by value on which facts or the shapes of arguments depend.
pub(crate) fn by_signature(kernel: &KernelManifest) -> Vec<bool> {
    let mut symbols = Vec::new();
    kernel.facts.iter().for_each(|fact| symbols_of(&fact.condition, &mut symbols));
    for argument in &kernel.arguments {
        if let ArgumentKind::Array { buffer, .. } = &argument.kind {
            extents(buffer, &mut symbols);
        }
    }
    arguments(kernel, &symbols)
}

/// The same for whether a guard holds.
pub(crate) fn by_guard(kernel: &KernelManifest, guard: &Guard) -> Vec<bool> {
    let mut symbols = Vec::new();
    guard.conditions().for_each(|condition| symbols_of(condition, &mut symbols));
    arguments(kernel, &symbols)
}

/// The same for what a variant launches, and for its scratch memory.
pub(crate) fn by_plan(kernel: &KernelManifest, variant: &Variant) -> Vec<bool> {
    let mut symbols = Vec::new();
    variant.scratch.iter().for_each(|buffer| extents(buffer, &mut symbols));
    each_expr(&variant.plan, &mut |expr| symbols_of(expr, &mut symbols));
    arguments(kernel, &symbols)
}

/// What decides in one of two ways.
pub(crate) fn either(left: &[bool], right: &[bool]) -> Vec<bool> {
    left.iter().zip(right).map(|(left, right)| *left || *right).collect()
}

fn arguments(kernel: &KernelManifest, symbols: &[usize]) -> Vec<bool> {
    let mut decisive = vec![false; kernel.arguments.len()];
    for symbol in symbols {
        if let SymbolKind::Parameter { argument, .. } = kernel.symbols[*symbol].kind {
            decisive[argument] = true;
        }
    }
    decisive
}

fn extents(buffer: &BufferManifest, symbols: &mut Vec<usize>) {
    buffer.extents.iter().for_each(|extent| symbols_of(extent, symbols));
}

fn each_expr(plan: &[Step], see: &mut dyn FnMut(&Expr)) {
    for step in plan {
        match step {
            Step::Launch(launch) => {
                launch.grid.iter().for_each(&mut *see);
                see(&launch.shared_bytes);
            }
            Step::Repeat { low, high, step, body, .. } => {
                [low, high, step].into_iter().for_each(&mut *see);
                each_expr(body, see);
            }
            Step::Branch { condition, then, otherwise } => {
                see(condition);
                each_expr(then, see);
                each_expr(otherwise, see);
            }
            Step::While { test, body, .. } => {
                each_expr(test, see);
                each_expr(body, see);
            }
        }
    }
}
