//! The factors of a product: the types that hold them, what they are loaded from and under which conditions, and the numbers
//! that they are sums of.

use crate::analysis::contraction::{Class, Contraction, Side};
use crate::atoms::{FactorType, MatrixAtom};
use crate::data::Scalar;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{Atom, Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::passes::tile::found::buffer_of;

/// The types of both factors that are taken, the first that hold them.
const TYPES: [[Scalar; 2]; 6] = [
    [Scalar::BF16, Scalar::BF16],
    [Scalar::F16, Scalar::F16],
    [Scalar::I8, Scalar::I8],
    [Scalar::I8, Scalar::U8],
    [Scalar::U8, Scalar::I8],
    [Scalar::U8, Scalar::U8],
];

/// A factor of the product.
#[derive(Clone, Debug)]
pub struct Factor {
    pub value: Value,
    /// The loads of its parts, the largest first, if it is no more than these, of the type that the instruction takes.
    pub loads: Vec<Inst>,
    /// Where it is loaded; elsewhere it is zero.
    pub guards: Vec<Guard>,
    /// Whether its neighbours in memory lie along the steps; else they lie along its rows or columns.
    pub along_steps: bool,
    /// Whether its rows, or columns, are apart by the same everywhere.
    pub is_even: bool,
    /// What it is loaded from; `factor` where it is computed of indices alone.
    pub array: String,
}

/// A condition under which a factor is loaded.
#[derive(Clone, Debug)]
pub struct Guard {
    pub condition: Value,
    /// Whether it is loaded where the condition does not hold.
    pub is_negated: bool,
    /// The branch that the load stands in.
    pub branch: Option<Block>,
}

/// Whether a contraction is one that matrix instructions compute, if its factors are of their types.
pub fn is_of_matrices(one: &Contraction) -> bool {
    let only =
        [Class::OfLeft, Class::OfRight, Class::Times].into_iter().all(|class| one.of(class).next().is_none());
    one.has_reuse() && only && !one.products().is_empty()
}

/// The types in which a matrix instruction takes both factors of a contraction: exactly, or rounded where the schedule says that
/// they may be.
pub fn scalars_of(kernel: &Kernel, one: &Contraction) -> Option<[Scalar; 2]> {
    exact_scalars_of(kernel, one).or_else(|| is_rounded(kernel, one).then_some([Scalar::F32; 2]))
}

/// Whether factors of `f32` are taken rounded. Each is one value: what is multiplied in between would be rounded as well.
fn is_rounded(kernel: &Kernel, one: &Contraction) -> bool {
    let is_one = |side: &Side| value_of(kernel, one, side).is_some();
    kernel.schedule.tf32()
        && is_of_matrices(one)
        && kernel.value_type(one.result) == Scalar::F32
        && one.products().iter().all(|it| is_one(&it.left) && is_one(&it.right))
        && one.of(Class::K).next().is_some()
}

/// The types in which a matrix instruction takes both factors of a contraction, exactly.
fn exact_scalars_of(kernel: &Kernel, one: &Contraction) -> Option<[Scalar; 2]> {
    if !is_of_matrices(one) {
        return None;
    }
    let takes = |[left, right]: &[Scalar; 2]| {
        atom([*left, *right]).is_some_and(|atom| atom.sum() == kernel.value_type(one.result))
            && one.products().iter().all(|it| it.left.exact.has(*left) && it.right.exact.has(*right))
    };
    TYPES.into_iter().find(takes).filter(|_| one.of(Class::K).next().is_some())
}

/// Of how many numbers of `bf16` the elements of each factor are the sum; whether some of them are still whole.
pub fn parts_of(kernel: &Kernel, one: &Contraction, whole: bool) -> Option<[usize; 2]> {
    let [product] = one.products() else { return None };
    let is_product = is_of_matrices(one) && one.of(Class::K).next().is_some();
    if !is_product || kernel.value_type(one.result) != Scalar::F32 {
        return None;
    }
    let mut some_is_whole = false;
    let parts = [&product.left, &product.right].map(|side| {
        let known = if let [value] = side.values[..] { part_loads(kernel, value).len() } else { 0 };
        let of_type = PARTS.iter().find(|(scalar, _)| side.exact.has(*scalar));
        let needed =
            of_type.filter(|_| value_of(kernel, one, side).is_some()).map_or(usize::MAX, |(_, it)| *it);
        some_is_whole |= needed > 1 && known == 0;
        if known > 0 { known } else { needed }
    });
    let is_fast = parts[0].checked_mul(parts[1]).is_some_and(|products| products <= PRODUCTS);
    (some_is_whole == whole && is_fast).then_some(parts)
}

/// How many numbers of `bf16`, which has 8 bits and the exponents of `f32`, a number of each type is the sum of.
const PARTS: [(Scalar, usize); 3] = [(Scalar::BF16, 1), (Scalar::F16, 2), (Scalar::F32, 3)];
/// Matrix instructions in the place of one of `bf16`, above which none are faster than multiplying and adding one by one.
const PRODUCTS: usize = 6;

/// The loads of which a value is the exact sum, in order, where that is known.
fn part_loads(kernel: &Kernel, value: Value) -> Vec<Inst> {
    let Some(data) = kernel.definition_data(value).filter(|data| data.opcode == Opcode::AddExact) else {
        return Vec::new();
    };
    let mut loads = Vec::new();
    for part in &data.arguments {
        match kernel.defining_inst(*part).filter(|inst| kernel.insts[*inst].opcode == Opcode::Load) {
            Some(load) => loads.push(load),
            None => loads.extend(part_loads(kernel, *part)),
        }
    }
    loads
}

/// Of which kind the matrix instruction for factors of these types is. Nothing but the schedule makes factors of `f32`.
pub fn kind(scalars: [Scalar; 2]) -> Atom {
    if scalars == [Scalar::F32; 2] { Atom::Tf32 } else { Atom::Mma }
}

/// The matrix instruction for factors of these types.
pub fn atom(scalars: [Scalar; 2]) -> Option<&'static MatrixAtom> {
    let [left, right] = scalars.map(|scalar| FactorType::of(kind(scalars), scalar));
    MatrixAtom::find(left?, right?)
}

/// A side as one value; `None` where its values are multiplied by others in between.
pub fn value_of(kernel: &Kernel, one: &Contraction, side: &Side) -> Option<Value> {
    if let [value] = side.values[..] {
        return Some(value);
    }
    let is_it = |inst: &Inst| {
        let data = &kernel.insts[*inst];
        let mut leaves = Vec::new();
        if data.opcode == Opcode::Mul {
            multiplied(kernel, data.results[0], &mut leaves);
        }
        leaves.sort_unstable();
        let mut values = side.values.clone();
        values.sort_unstable();
        leaves == values
    };
    let region = kernel.insts[one.reduce].regions[0];
    kernel.blocks[region].insts.iter().find(|inst| is_it(inst)).map(|inst| kernel.insts[*inst].results[0])
}

/// What is multiplied to make a value.
fn multiplied(kernel: &Kernel, value: Value, leaves: &mut Vec<Value>) {
    match kernel.definition_data(value).filter(|data| data.opcode == Opcode::Mul) {
        Some(data) => data.arguments.iter().for_each(|value| multiplied(kernel, *value, leaves)),
        None => leaves.push(value),
    }
}

/// A factor by its value, whose elements are of this type where they are loaded as they are.
pub fn factor(kernel: &Kernel, value: Value, scalar: Scalar) -> Factor {
    let mut guards = Vec::new();
    let mut loads = part_loads(kernel, value);
    if loads.is_empty() {
        loads.extend(loaded(kernel, value, &mut guards));
    }
    let of = |inst: &Inst| match kernel.insts[*inst].payload {
        Payload::Access { buffer, .. } => kernel.buffers[buffer].element.as_scalar() == Some(scalar),
        _ => false,
    };
    let mut array = None;
    crate::analysis::code(kernel, value, &mut |inst, _| {
        if array.is_none() && kernel.insts[inst].opcode.is_load() {
            array = buffer_of(kernel, inst).map(|buffer| kernel.buffers[buffer].name.clone());
        }
    });
    let array = array.unwrap_or_else(|| "factor".to_string());
    if !loads.iter().all(of) {
        loads.clear();
    }
    Factor { value, loads, guards, along_steps: true, is_even: false, array }
}

/// Whether a cast leaves an integer of 32 bits what it is, of those that are loaded from narrower arrays.
fn is_same_number(kernel: &Kernel, from: Value, to: Value) -> bool {
    kernel.value_type(from) == Scalar::U32 && kernel.value_type(to) == Scalar::I32
}

/// The load that a value is, where conditions hold, with these; elsewhere it is zero.
fn loaded(kernel: &Kernel, value: Value, guards: &mut Vec<Guard>) -> Option<Inst> {
    let inst = kernel.defining_inst(value)?;
    let data = &kernel.insts[inst];
    let condition = *data.arguments.first()?;
    let zero = Combiner::Add.identity(kernel.value_type(value));
    let is_zero = |value: Value| zero.is_some() && kernel.constant_of(value) == zero;
    let (sides, branches) = match (data.opcode, &data.arguments[..], &data.regions[..]) {
        (Opcode::Load, ..) => return Some(inst),
        // The same bits: a byte is as much with a sign as without one.
        (Opcode::Cast, [from], _) if is_same_number(kernel, *from, value) => {
            return loaded(kernel, *from, guards);
        }
        (Opcode::Select, [_, then, otherwise], _) => ([*then, *otherwise], [None; 2]),
        (Opcode::If, _, [then, otherwise]) if data.results.len() == 1 => {
            let yielded = [*then, *otherwise].map(|region| kernel.yields(region).first().copied());
            ([yielded[0]?, yielded[1]?], [Some(*then), Some(*otherwise)])
        }
        _ => return None,
    };
    let side = sides.iter().position(|side| !is_zero(*side)).filter(|side| is_zero(sides[1 - side]))?;
    guards.push(Guard { condition, is_negated: side == 1, branch: branches[side] });
    loaded(kernel, sides[side], guards)
}
