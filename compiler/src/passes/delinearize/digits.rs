//! What the digits of a loop's index are: by which sizes quotients and remainders take it apart.

use crate::analysis::{Affine, Atom, Polynomial};
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::SymbolKind;
use crate::mutants::mutant;
use crate::passes::split_residues::divided;

/// The digits of an index, the lowest one first.
pub struct Digits {
    /// How many indices each has.
    pub extents: Vec<Polynomial>,
    /// How many all digits above each one have together; none of the highest one.
    pub above: Vec<Polynomial>,
    /// What one of each counts, and at last how many indices there are.
    bounds: Vec<Polynomial>,
    /// The quotients and remainders that are digits, or several neighbouring ones.
    pub parts: Vec<Part>,
}

/// A quotient or a remainder: the number of the first of its digits, and of the one behind the last.
pub struct Part {
    pub inst: Inst,
    pub first: usize,
    pub end: usize,
}

/// A value that is `index / stride % extent`.
struct Node {
    value: Value,
    stride: Polynomial,
    extent: Polynomial,
}

impl Digits {
    /// Of an axis of a loop; `None` where it has one digit.
    pub fn of(kernel: &Kernel, inst: Inst, axis: usize) -> Option<Self> {
        let (low, high) = *kernel.loop_bounds(inst).get(axis)?;
        let is_for = kernel.insts[inst].opcode == Opcode::For;
        if kernel.int_of(low) != Some(0)
            || is_for && kernel.int_of(kernel.insts[inst].arguments[2]) != Some(1)
        {
            return None;
        }
        let mut affine = Affine::new(kernel);
        let all = size(kernel, &mut affine, high)?;
        let body = kernel.insts[inst].regions[0];
        let index = kernel.blocks[body].params[axis];
        let one = Polynomial::constant(1);
        let mut nodes = vec![Node { value: index, stride: one.clone(), extent: all.clone() }];
        let mut found: Vec<(Inst, Polynomial, Polynomial)> = Vec::new();
        let mut fits = true;
        kernel.walk(body, &mut |_, inside| {
            let part = parts_of(kernel, &mut affine, inside);
            let node = part.as_ref().and_then(|(of, ..)| nodes.iter().find(|node| node.value == *of));
            let (Some((_, divisor, is_remainder)), Some(node)) = (part, node) else { return };
            let Some(rest) = exactly(&node.extent, &divisor) else {
                fits = false;
                return;
            };
            let (stride, extent) = match is_remainder {
                true => (Some(node.stride.clone()), divisor),
                false => (node.stride.multiply(&divisor), rest),
            };
            let Some(stride) = stride else {
                fits = false;
                return;
            };
            found.push((inside, stride.clone(), extent.clone()));
            nodes.push(Node { value: kernel.insts[inside].results[0], stride, extent });
        });
        if !fits || found.is_empty() {
            return None;
        }
        let mut bounds = vec![one, all];
        for (_, stride, extent) in &found {
            bounds.push(stride.clone());
            bounds.push(stride.multiply(extent)?);
        }
        let bounds = chain(bounds)?;
        let quotient = |pair: &[Polynomial]| exactly(&pair[1], &pair[0]);
        let extents: Vec<Polynomial> = bounds.windows(2).map(quotient).collect::<Option<_>>()?;
        let last = bounds.last()?;
        let above = bounds[1..bounds.len() - 1].iter().map(|bound| exactly(last, bound));
        let above = above.collect::<Option<_>>()?;
        let at = |bound: &Polynomial| bounds.iter().position(|known| known == bound);
        let parts = found.iter().map(|(inst, stride, extent)| {
            let (first, end) = (at(stride)?, at(&stride.multiply(extent)?)?);
            let end = mutant!("delinearize: a remainder has the digits above it", end, bounds.len() - 1);
            Some(Part { inst: *inst, first, end })
        });
        let parts = parts.collect::<Option<_>>()?;
        (bounds.len() > 2).then_some(Self { extents, above, bounds, parts })
    }

    /// What one of a digit counts in a number whose lowest digit is `first`.
    pub fn place(&self, first: usize, digit: usize) -> Option<Polynomial> {
        exactly(&self.bounds[digit], &self.bounds[first])
    }
}

/// A size divided by another one, where nothing is left over.
fn exactly(size: &Polynomial, divisor: &Polynomial) -> Option<Polynomial> {
    size.divided_by_term(divisor)
        .filter(|it| mutant!("delinearize: sizes need not divide each other", !it.is_zero(), true))
}

/// Each of the sizes once, the least first, where each divides the next one.
fn chain(mut sizes: Vec<Polynomial>) -> Option<Vec<Polynomial>> {
    let mut chain = Vec::new();
    while !sizes.is_empty() {
        let divides_all = |size: &Polynomial| sizes.iter().all(|other| exactly(other, size).is_some());
        let least = sizes.iter().find(|size| divides_all(size))?.clone();
        sizes.retain(|size| *size != least);
        chain.push(least);
    }
    Some(chain)
}

/// A positive literal times dimensions.
fn size(kernel: &Kernel, affine: &mut Affine<'_>, value: Value) -> Option<Polynomial> {
    let form = affine.form(value);
    let [(_, factor)] = form.terms() else { return None };
    let are_dimensions = form.atoms().into_iter().all(|atom| match atom {
        Atom::Symbol(symbol) => matches!(kernel.symbols[symbol].kind, SymbolKind::Dim { .. }),
        Atom::Value(_) => false,
    });
    (*factor > 0 && are_dimensions).then(|| (*form).clone())
}

/// A quotient, or a remainder, by a size: what is divided, the divisor, and whether it is the remainder.
fn parts_of(kernel: &Kernel, affine: &mut Affine<'_>, inst: Inst) -> Option<(Value, Polynomial, bool)> {
    if let Some((of, divisor, is_remainder)) = divided(kernel, inst) {
        return Some((of, Polynomial::constant(divisor.into()), is_remainder));
    }
    let data = &kernel.insts[inst];
    let [of, divisor] = data.arguments[..] else { return None };
    let is_remainder = match data.opcode {
        Opcode::Div => false,
        Opcode::Rem => true,
        _ => return None,
    };
    Some((of, size(kernel, affine, divisor)?, is_remainder))
}
