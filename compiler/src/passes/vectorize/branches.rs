//! Loads of neighbours that each stand in a branch of one condition: conditional loads, of which vectors may be made.

use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::mutants::mutant;
use rustc_hash::{FxHashMap, FxHashSet};

/// What neighbours have in common: the conditions, the array, and the subscripts without the last one's literal.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    /// That of the branch, and that of the load itself, where it has one.
    conditions: (Value, Option<Value>),
    buffer: Buffer,
    leaf: u32,
    others: Vec<Value>,
    root: Option<Value>,
}

/// Makes `load_if` of each `if v1 { load buf0[v2] } else { 0 }` of a block beside which others load neighbours under the same
/// condition; whether there were any.
pub fn into_conditional_loads(kernel: &mut Kernel, block: Block) -> bool {
    let mut literals: FxHashMap<Place, FxHashSet<i64>> = FxHashMap::default();
    let mut found: FxHashMap<Inst, (Inst, Place)> = FxHashMap::default();
    for branch in &kernel.blocks[block].insts {
        let Some((load, place, literal)) = only_load(kernel, *branch) else { continue };
        literals.entry(place.clone()).or_default().insert(literal);
        found.insert(*branch, (load, place));
    }
    found.retain(|_, (_, place)| literals[place].len() > 1);
    if found.is_empty() {
        return false;
    }
    let mut both: FxHashMap<(Value, Value), Value> = FxHashMap::default();
    let mut list = Vec::new();
    for inst in std::mem::take(&mut kernel.blocks[block].insts) {
        if let Some((load, place)) = found.get(&inst) {
            let inside = kernel.blocks[kernel.insts[inst].regions[0]].insts.clone().into_iter();
            list.extend(inside.filter(|inst| kernel.insts[*inst].opcode.info().effect == Effect::Pure));
            let span = kernel.insts[inst].span;
            let condition = match place.conditions {
                (condition, None) => condition,
                (condition, Some(own)) => *both.entry((condition, own)).or_insert_with(|| {
                    let and = kernel.make_inst(Opcode::And, Payload::None, &[condition, own], span);
                    list.push(and);
                    kernel.insts[and].results[0]
                }),
            };
            make_conditional_load(kernel, inst, *load, condition);
        }
        list.push(inst);
    }
    kernel.blocks[block].insts = list;
    true
}

/// Makes a conditional load of a branch with a load in it.
fn make_conditional_load(kernel: &mut Kernel, branch: Inst, load: Inst, condition: Value) {
    let load = kernel.insts[load].clone();
    let subscripts: Vec<Value> = kernel.subscripts(&load).to_vec();
    let data = &mut kernel.insts[branch];
    (data.opcode, data.payload) = (Opcode::LoadIf, load.payload);
    data.arguments = subscripts.into_iter().chain([condition]).collect();
    data.regions.clear();
}

/// The load of a branch that does nothing else, and gives 0 where its condition does not hold.
fn only_load(kernel: &Kernel, branch: Inst) -> Option<(Inst, Place, i64)> {
    let data = &kernel.insts[branch];
    let ([then, otherwise], [condition], [result]) =
        (&data.regions[..], &data.arguments[..], &data.results[..])
    else {
        return None;
    };
    let (value, other) = (kernel.yields(*then)[0], kernel.yields(*otherwise)[0]);
    let constant = kernel.constant_of(other);
    let is_zero = matches!(constant, Some(Constant::Int(_, 0) | Constant::F32(0) | Constant::F64(0)));
    let is_zero = mutant!("vectorize: any literal of a branch is 0", is_zero, constant.is_some());
    let effects = |block: Block| {
        let effects = kernel.blocks[block].insts.iter().map(|inst| kernel.insts[*inst].opcode.info().effect);
        effects.filter(|effect| !matches!(effect, Effect::Pure | Effect::Terminator)).count()
    };
    let load = kernel.defining_inst(value)?;
    let stands_there = kernel.blocks[*then].insts.contains(&load);
    let Payload::Access { buffer, leaf } = kernel.insts[load].payload else { return None };
    let is_memory = !matches!(kernel.buffers[buffer].kind, BufferKind::Private | BufferKind::Constant(_));
    let is_wide = kernel.value_type(*result).size() >= 4;
    let own = match kernel.insts[load].opcode {
        Opcode::Load => None,
        Opcode::LoadIf if kernel.insts[load].results.len() == 1 => {
            kernel.insts[load].arguments.last().copied()
        }
        _ => return None,
    };
    let is_outside = |value: &Value| {
        kernel.defining_inst(*value).is_none_or(|inst| !kernel.blocks[*then].insts.contains(&inst))
    };
    let fits = data.opcode == Opcode::If && is_memory && is_wide && own.iter().all(is_outside);
    if !fits || !is_zero || !stands_there || effects(*then) != 1 || effects(*otherwise) != 0 {
        return None;
    }
    let (last, others) = kernel.subscripts(&kernel.insts[load]).split_last()?;
    let (root, literal) = kernel.root_and_literal(*last);
    let place = Place { conditions: (*condition, own), buffer, leaf, others: others.to_vec(), root };
    Some((load, place, literal))
}
