//! Elements of a small local array that a loop combines into, as values that it carries.
//!
//! ```text
//! forall axis1 "a" = 0..2 (v7) { store buf3[v7], v8 }                                                       before
//! for axis2 "k" = v9..v10 step v11 (v12) { … v18 = load buf3[v17]; v19 = add v18, v29; store buf3[v17], v19; … }
//!
//! v30, v31 = for axis2 "k" = v9..v10 step v11 carry [v8, v8] (v12, v32, v33) { … yield v34, v35 }              after
//! ```
//!
//! So `p[0] += …` and `p[1] += …` in a loop are what two variables are. Subscripts are literals; a loop that fills the whole array
//! may stand before.

use crate::analysis::{Uses, written_by};
use crate::ir::entities::{Block, Buffer, Inst, Launch};
use crate::ir::kernel::{BufferKind, Kernel};
use crate::ir::op::Opcode;
use crate::manifest::Expr;
use crate::passes::{scalarize, unroll_short};
use cranelift_entity::EntitySet;

/// Elements of an array that a loop may carry.
const CARRIED: i64 = 16;

/// The kernel with the arrays of a launch as values that loops access at literal places; `None` where there are none.
pub fn as_values(kernel: &Kernel, launch: Launch) -> Option<Kernel> {
    let body = kernel.launches[launch].body;
    let mut looped: EntitySet<Buffer> = EntitySet::new();
    kernel.walk(body, &mut |_, inst| {
        if kernel.insts[inst].opcode == Opcode::For {
            looped.extend(written_by(kernel, inst).iter());
        }
    });
    let arrays: Vec<(Buffer, Vec<(Block, Inst)>)> = looped
        .iter()
        .filter(|buffer| kernel.buffers[*buffer].kind == BufferKind::Private && is_small(kernel, *buffer))
        .filter_map(|buffer| Some((buffer, fills(kernel, body, buffer)?)))
        .collect();
    let mut made = (!arrays.is_empty()).then(|| kernel.clone())?;
    let mut wanted = EntitySet::new();
    let mut straight: Vec<Inst> = Vec::new();
    for (buffer, fills) in arrays {
        wanted.insert(buffer);
        for (block, inst) in fills {
            if !straight.contains(&inst) {
                unroll_short::unroll(&mut made, block, inst)?;
                straight.push(inst);
            }
        }
    }
    scalarize::into_values(&mut made, body, |buffer| wanted.contains(buffer)).then_some(made)
}

fn is_small(kernel: &Kernel, buffer: Buffer) -> bool {
    let literal = |extent: &Expr| if let Expr::Int(extent) = extent { Some(*extent) } else { None };
    let extents = kernel.buffers[buffer].extents.iter().map(literal);
    extents.product::<Option<i64>>().is_some_and(|elements| elements <= CARRIED)
}

/// The loops of literal length that fill an array; `None` where its subscripts are no literals elsewhere.
fn fills(kernel: &Kernel, body: Block, buffer: Buffer) -> Option<Vec<(Block, Inst)>> {
    let uses = Uses::of(kernel, body, buffer);
    let parents = kernel.parents_in(body);
    let mut found = Vec::new();
    for access in uses.loads.iter().chain(&uses.stores) {
        let subscripts = kernel.subscripts(&kernel.insts[*access]);
        if subscripts.iter().all(|value| kernel.int_of(*value).is_some()) {
            continue;
        }
        let around = parents.enclosing(*access).next()?;
        let is_fill =
            kernel.insts[around].opcode == Opcode::Forall && kernel.insts[*access].opcode == Opcode::Store;
        if !is_fill {
            return None;
        }
        found.push((parents.block_of[around].expand()?, around));
    }
    found.dedup();
    (!uses.others).then_some(found)
}
