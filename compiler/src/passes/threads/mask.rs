//! Masks: what of a group of elements may only take place where the group lies within the row.

use crate::analysis::{Uses, written_buffers};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use cranelift_entity::EntitySet;

/// Whether an instruction writes memory that the team's threads have in common.
pub fn writes_for_all(kernel: &Kernel, inst: Inst) -> bool {
    let one = |inst: Inst| {
        let data = &kernel.insts[inst];
        let own = match data.payload {
            Payload::Access { buffer, .. } => kernel.buffers[buffer].kind == BufferKind::Private,
            _ => false,
        };
        data.opcode.info().effect.shows() && !own
    };
    let mut found = one(inst);
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inst| found |= one(inst));
    }
    found
}

/// Buffers that a body reads and writes, but for those that each thread has for itself.
pub fn changed(kernel: &Kernel, body: Block) -> EntitySet<Buffer> {
    let mut changed = EntitySet::new();
    for buffer in written_buffers(kernel, body).iter() {
        let is_own = kernel.buffers[buffer].kind == BufferKind::Private;
        if !is_own && !Uses::of(kernel, body, buffer).loads.is_empty() {
            changed.insert(buffer);
        }
    }
    changed
}

/// Whether an instruction loads an element of one of these buffers.
pub fn loads_of(kernel: &Kernel, inst: Inst, buffers: &EntitySet<Buffer>) -> bool {
    let data = &kernel.insts[inst];
    matches!(data.payload, Payload::Access { buffer, .. } if data.opcode.is_load() && buffers.contains(buffer))
}

/// Under which conditions a group takes place.
pub struct Masks<'a> {
    /// Whether it lies within the row; `None` where it does.
    pub inside: Option<Value>,
    /// Whether it writes memory that the team's threads have in common: only within the row.
    pub writes: Option<Value>,
    /// Whether a load takes place only where it lies within the row.
    pub loads: &'a dyn Fn(&Kernel, Inst) -> bool,
}

/// Puts what writes memory for all under a condition, of which neighbours share one, and some loads. Checks hold outside of the
/// row. Loops with a condition of their own end there.
pub fn mask(kernel: &mut Kernel, block: Block, masks: &Masks<'_>, span: crate::source::Span) {
    let insts = std::mem::take(&mut kernel.blocks[block].insts);
    let mut run: Vec<Inst> = Vec::new();
    for inst in insts {
        let opcode = kernel.insts[inst].opcode;
        let plain = matches!(opcode, Opcode::Store | Opcode::StoreVector | Opcode::Atomic | Opcode::Print);
        if plain && writes_for_all(kernel, inst) {
            run.push(inst);
            continue;
        }
        flush(kernel, block, masks.writes, &mut run, span);
        if let (Opcode::Check, Some(active)) = (opcode, masks.inside) {
            let holds = kernel.insts[inst].arguments[0];
            let mut emit = Emit::new(kernel, block, span);
            let absent = emit.value(Opcode::Not, Payload::None, &[active]);
            let holds = emit.binary(Opcode::Or, holds, absent);
            kernel.insts[inst].arguments[0] = holds;
        }
        for region in kernel.insts[inst].regions.clone() {
            mask(kernel, region, masks, span);
        }
        if let (Opcode::While, Some(active)) = (opcode, masks.inside) {
            // What is not there may never make its condition false.
            end_where(kernel, kernel.insts[inst].regions[0], active);
        }
        if let Some(active) = masks.inside.filter(|_| (masks.loads)(kernel, inst)) {
            match opcode {
                Opcode::Load => {
                    let data = &mut kernel.insts[inst];
                    data.opcode = Opcode::LoadIf;
                    data.arguments.push(active);
                }
                Opcode::LoadIf => {
                    let last = kernel.insts[inst].arguments.len() - 1;
                    let own = kernel.insts[inst].arguments[last];
                    let both = Emit::new(kernel, block, span).binary(Opcode::And, own, active);
                    kernel.insts[inst].arguments[last] = both;
                }
                _ => {}
            }
        }
        kernel.blocks[block].insts.push(inst);
    }
    flush(kernel, block, masks.writes, &mut run, span);
}

fn flush(
    kernel: &mut Kernel,
    block: Block,
    writes: Option<Value>,
    run: &mut Vec<Inst>,
    span: crate::source::Span,
) {
    if run.is_empty() {
        return;
    }
    let insts = std::mem::take(run);
    let Some(writes) = writes else {
        kernel.blocks[block].insts.extend(insts);
        return;
    };
    let mut emit = Emit::new(kernel, block, span);
    emit.if_then(writes, |emit| {
        let inner = emit.block;
        emit.kernel.blocks[inner].insts.extend(insts);
    });
}

/// Makes a condition's region yield false where `active` does not hold.
fn end_where(kernel: &mut Kernel, condition: Block, active: Value) {
    let Some(end) = kernel.terminator(condition) else { return };
    let goes_on = kernel.insts[end].arguments[0];
    let span = kernel.insts[end].span;
    let both = kernel.make_inst(Opcode::And, Payload::None, &[goes_on, active], span);
    let last = kernel.blocks[condition].insts.len() - 1;
    kernel.blocks[condition].insts.insert(last, both);
    kernel.insts[end].arguments[0] = kernel.insts[both].results[0];
}
