//! The first values of an array that changes afterwards: they get an array of their own, and what changes is a copy.
//!
//! ```text
//! forall axis1 "j" (v1) { v3: f32 = reduce [add] axis2 "p" (v2) { … }; store buf3[v1], v3 }; … store buf3[…] …          before
//!
//! forall axis1 "j" (v1) { v3: f32 = reduce [add] axis2 "p" (v2) { … }; store buf4[v1], v3 }                             after
//! forall axis1 "j" (v1) { v4: f32 = load buf4[v1]; store buf3[v1], v4 }; … store buf3[…] …
//! ```
//!
//! So `var a[j] = sum(p: …)` is `let first[j] = sum(p: …)` and `var a[j] = first[j]`, whichever of them is written.

use crate::analysis::{Uses, written_by};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{AxisData, BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;

/// A loop that stores the first values of an array.
pub struct Initial {
    inst: Inst,
    store: Inst,
    buffer: Buffer,
}

impl Initial {
    /// `None` where a loop of a body does something else, or the array does not change afterwards.
    pub fn of(kernel: &Kernel, body: Block, inst: Inst) -> Option<Self> {
        let written: Vec<Buffer> = written_by(kernel, inst).iter().collect();
        let [buffer] = written[..] else { return None };
        let region = kernel.insts[inst].regions[0];
        let inside = Uses::of(kernel, region, buffer);
        let [store] = inside.stores[..] else { return None };
        let data = &kernel.insts[store];
        let params = &kernel.blocks[region].params;
        let rank = kernel.buffers[buffer].extents.len();
        let subscripts = &data.arguments[..rank];
        let is_whole = params.iter().all(|param| subscripts.contains(param));
        // In a copy of the loop nothing else is there.
        let is_inside = |value: &Value| {
            kernel.defining_inst(*value).is_some_and(|inst| kernel.blocks[region].insts.contains(&inst))
        };
        let is_whole = is_whole && !subscripts.iter().any(is_inside);
        let is_own = matches!(kernel.buffers[buffer].kind, BufferKind::Private | BufferKind::Scratch);
        let stands_here =
            kernel.blocks[region].insts.contains(&store) && inside.loads.is_empty() && !inside.others;
        let all = &kernel.blocks[body].insts;
        let at = all.iter().position(|other| *other == inst)?;
        let is_first = all[..at].iter().all(|other| !accesses(kernel, *other, buffer));
        let changes = all[at + 1..].iter().any(|other| written_by(kernel, *other).contains(buffer));
        (is_whole && is_own && stands_here && is_first && changes).then_some(Self { inst, store, buffer })
    }

    /// Gives the first values an array of their own.
    pub fn separate(&self, kernel: &mut Kernel, body: Block) {
        let data = kernel.buffers[self.buffer].clone();
        let fresh = kernel.buffers.push(data);
        let Payload::Access { leaf, .. } = kernel.insts[self.store].payload else { return };
        kernel.insts[self.store].payload = Payload::Access { buffer: fresh, leaf };
        let loop_data = kernel.insts[self.inst].clone();
        let names = loop_data.payload.axes().iter().map(|axis| kernel.axes[*axis].name.clone());
        let names: Vec<String> = names.collect();
        let axes = names.into_iter().map(|name| kernel.axes.push(AxisData::new(name, Vec::new()))).collect();
        let region = kernel.blocks.push(Default::default());
        let params = kernel.blocks[loop_data.regions[0]].params.clone();
        let indices: Vec<Value> = params.iter().map(|_| kernel.add_param(region, Scalar::I64)).collect();
        let rank = kernel.buffers[fresh].extents.len();
        let own = |value: &Value| params.iter().position(|param| param == value).map(|at| indices[at]);
        let subscripts = kernel.insts[self.store].arguments[..rank].iter();
        let subscripts: Vec<Value> = subscripts.map(|value| own(value).unwrap_or(*value)).collect();
        let mut emit = Emit::new(kernel, region, loop_data.span);
        let value = emit.value(Opcode::Load, Payload::Access { buffer: fresh, leaf }, &subscripts);
        let operands = [subscripts.as_slice(), &[value]].concat();
        emit.inst(Opcode::Store, Payload::Access { buffer: self.buffer, leaf }, &operands);
        emit.inst(Opcode::Yield, Payload::None, &[]);
        let copy =
            kernel.make_inst(Opcode::Forall, Payload::Loop { axes }, &loop_data.arguments, loop_data.span);
        kernel.insts[copy].regions.push(region);
        let at = kernel.blocks[body].insts.iter().position(|other| *other == self.inst);
        let behind = mutant!("hoist_reductions: first values are copied before they are there", 1, 0);
        if let Some(at) = at {
            kernel.blocks[body].insts.insert(at + behind, copy);
        }
    }
}

/// Whether an instruction, or what is inside, accesses an array.
fn accesses(kernel: &Kernel, inst: Inst, buffer: Buffer) -> bool {
    let is_it = |inst: Inst| match kernel.insts[inst].payload {
        Payload::Access { buffer: known, .. } | Payload::Atomic { buffer: known, .. } => known == buffer,
        _ => false,
    };
    is_it(inst) || kernel.insts[inst].regions.iter().any(|region| Uses::of(kernel, *region, buffer).any())
}
