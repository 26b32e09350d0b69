//! Arrays of a term's own: one thread would fill them term by term, and each of many terms side by side needs its own.

use super::launch::Along;
use super::nest::Nest;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::Expr;

/// The arrays of a term's own that lie in global memory, and the number of their subscripts that are indices around the
/// reduction.
#[derive(Default)]
pub struct OwnArrays(Vec<(Buffer, usize)>);

impl OwnArrays {
    /// `None` where terms write something else.
    pub fn of(kernel: &Kernel, nest: &Nest) -> Option<Self> {
        let mut inside = Vec::new();
        let mut plain = true;
        let mut written: Vec<Buffer> = Vec::new();
        kernel.walk(nest.region, &mut |_, inst| {
            let data = &kernel.insts[inst];
            inside.push(inst);
            match (data.opcode, &data.payload) {
                (Opcode::Store, Payload::Access { buffer, .. }) => written.push(*buffer),
                (opcode, _) => plain &= !opcode.info().effect.shows(),
            }
        });
        written.sort();
        written.dedup();
        let local = |buffer: &Buffer| {
            matches!(kernel.buffers[*buffer].kind, BufferKind::Scratch | BufferKind::Private)
        };
        plain &= written.iter().all(local);
        kernel.walk_all(&mut |_, inst| {
            let other = |buffer| written.contains(&buffer) && !inside.contains(&inst);
            plain &= !accessed(kernel, inst).is_some_and(other);
        });
        written.retain(|buffer| kernel.buffers[*buffer].kind == BufferKind::Scratch);
        let around: Vec<Value> = nest.around.iter().map(|axis| axis.index).collect();
        let leading = |buffer: Buffer| {
            let of_it = inside.iter().filter(|inst| accessed(kernel, **inst) == Some(buffer));
            let of_one = |inst: &Inst| {
                let subscripts = kernel.subscripts(&kernel.insts[*inst]);
                subscripts.iter().take_while(|value| around.contains(value)).count()
            };
            (buffer, of_it.map(of_one).min().unwrap_or(0))
        };
        plain.then(|| Self(written.into_iter().map(leading).collect()))
    }
}

/// Gives the arrays the axes of a reduction as well, in the launch of its terms, whose loop has those axes last.
pub fn give_axes(kernel: &mut Kernel, arrays: &OwnArrays, made: Launch, own: &[Along]) {
    if arrays.0.is_empty() {
        return;
    }
    let root = kernel.launches[made].body;
    let Some(forall) = kernel.blocks[root].insts.last().copied() else { return };
    let body = kernel.insts[forall].regions[0];
    let indices = kernel.blocks[body].params[kernel.blocks[body].params.len() - own.len()..].to_vec();
    let lows = kernel.loop_bounds(forall).into_iter().map(|(low, _)| low);
    let lows: Vec<Value> = lows.skip(kernel.blocks[body].params.len() - own.len()).collect();
    let extents: Vec<Expr> = own.iter().map(|axis| axis.extent(kernel)).collect();
    for (buffer, leading) in &arrays.0 {
        let mut data = kernel.buffers[*buffer].clone();
        data.extents.splice(leading..leading, extents.iter().cloned());
        let fresh = kernel.buffers.push(data);
        // From 0, in front of all that accesses it.
        let code = std::mem::take(&mut kernel.blocks[body].insts);
        let span = kernel.insts[forall].span;
        let mut emit = Emit::new(kernel, body, span);
        let places: Vec<Value> =
            indices.iter().zip(&lows).map(|(index, low)| emit.sub(*index, *low)).collect();
        kernel.blocks[body].insts.extend(code);
        let mut accesses = Vec::new();
        kernel.walk(body, &mut |_, inst| {
            accesses.extend((accessed(kernel, inst) == Some(*buffer)).then_some(inst))
        });
        for inst in accesses {
            let data = &mut kernel.insts[inst];
            if let Payload::Access { buffer, .. } = &mut data.payload {
                *buffer = fresh;
            }
            let arguments: Vec<Value> = data.arguments.to_vec();
            let (before, after) = arguments.split_at(*leading);
            data.arguments = before.iter().chain(&places).chain(after).copied().collect();
        }
    }
}

fn accessed(kernel: &Kernel, inst: Inst) -> Option<Buffer> {
    match kernel.insts[inst].payload {
        Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } => Some(buffer),
        _ => None,
    }
}
