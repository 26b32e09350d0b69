//! What the later of two launches writes in place, while the earlier one reads it around each iteration, gets an array of its
//! own and is copied back: renaming removes the anti-dependence.
//!
//! ```text
//! launch0 { forall i { buf2[i] = … buf0[i - 1] … buf0[i + 1] … } }               before
//! launch1 { forall i { buf0[i] = buf0[i] + buf2[i] } }
//!
//! launch0 { forall i { buf2[i] = … buf0[i - 1] … buf0[i + 1] … } }               after: these two can become one
//! launch1 { forall i { buf3[i] = buf0[i] + buf2[i] } }
//! launch2 { forall i { buf0[i] = buf3[i] } }
//! ```

use super::nest::{Nest, access};
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferData, BufferKind, Kernel, Payload, Step};
use crate::ir::op::Opcode;
use crate::manifest::Layout;
use crate::passes::copying::{Axes, Copied, copying};

/// The stores of the second launch to arrays that it writes in place and the first one reads. `None` where there are none, and where
/// others to write are not right or move no fewer bytes once the two launches are one.
pub fn stores_in_place(kernel: &Kernel, first: Launch, second: Launch) -> Option<Vec<Inst>> {
    let nest = Nest::of(kernel, second)?;
    nest.forall?;
    let ours = [first, second].map(|launch| kernel.launches[launch].body);
    let (before, after) = (Buffers::of(kernel, ours[0]), Buffers::of(kernel, ours[1]));
    let places: Vec<Buffer> =
        after.written.iter().copied().filter(|buffer| before.read.contains(buffer)).collect();
    if places.is_empty() || places.iter().any(|buffer| before.written.contains(buffer)) {
        return None;
    }
    let others = kernel.bodies().filter(|body| !ours.contains(body));
    let elsewhere: Vec<Buffer> = others
        .map(|body| Buffers::of(kernel, body))
        .flat_map(|buffers| [buffers.read, buffers.written].concat())
        .collect();
    let handed = before.written.iter().filter(|buffer| {
        let own = kernel.buffers[**buffer].kind == BufferKind::Scratch && !before.read.contains(buffer);
        own && after.read.contains(buffer) && !elsewhere.contains(buffer)
    });
    // What is handed on is written and read no longer, and what both read is read once; a copy reads and writes.
    let saved = 2 * handed.count() + places.len();
    if saved <= 2 * places.len() {
        return None;
    }
    let stores =
        places.iter().map(|buffer| stores(kernel, &nest, *buffer)).collect::<Option<Vec<_>>>()?.concat();
    let copies = |store: &Inst| {
        let value = kernel.insts[*store].arguments.last().and_then(|value| kernel.definition_data(*value));
        value.is_some_and(|data| data.opcode == Opcode::Load)
    };
    (!stores.iter().all(copies)).then_some(stores)
}

/// Moves a launch behind those that come after it and have nothing to do with its arrays.
pub fn sink(kernel: &mut Kernel, launch: Launch) {
    let mut plan = std::mem::take(&mut kernel.plan);
    sink_in(kernel, &mut plan, launch);
    kernel.plan = plan;
}

fn sink_in(kernel: &Kernel, steps: &mut [Step], launch: Launch) {
    let own = Buffers::of(kernel, kernel.launches[launch].body);
    let is_apart = |other: Launch| {
        let others = Buffers::of(kernel, kernel.launches[other].body);
        let mut all = others.read.iter().chain(&others.written);
        !all.any(|buffer| own.read.contains(buffer) || own.written.contains(buffer))
    };
    for at in 0..steps.len() {
        let is_it = matches!(steps[at], Step::Launch(known) if known == launch);
        if is_it && matches!(steps.get(at + 1), Some(Step::Launch(next)) if is_apart(*next)) {
            steps.swap(at, at + 1);
        }
        steps[at].parts_mut().into_iter().for_each(|part| sink_in(kernel, part, launch));
    }
}

/// Gives the arrays that these stores of a launch write others to write, and adds the launch that copies them back.
pub fn rename(kernel: &mut Kernel, launch: Launch, stores: Vec<Inst>) -> Option<Launch> {
    let nest = Nest::of(kernel, launch)?;
    let forall = nest.forall?;
    let mut fresh: Vec<(Buffer, Buffer)> = Vec::new();
    let mut copies = Vec::new();
    for store in stores {
        let Payload::Access { buffer, leaf } = kernel.insts[store].payload else { continue };
        let other = match fresh.iter().find(|(known, _)| *known == buffer) {
            Some((_, other)) => *other,
            None => {
                let data = kernel.buffers[buffer].clone();
                let name = format!("{}_next", data.name);
                let (kind, layout) =
                    (BufferKind::Scratch, if data.layout_fixed { data.layout } else { Layout::Aos });
                let other = kernel.buffers.push(BufferData { name, kind, layout, cache: None, ..data });
                fresh.push((buffer, other));
                other
            }
        };
        let place = |value: &Value| nest.params.iter().position(|param| param == value);
        let places: Vec<usize> = kernel.subscripts(&kernel.insts[store]).iter().filter_map(place).collect();
        kernel.insts[store].payload = Payload::Access { buffer: other, leaf };
        copies.push(Copied { from: other, to: buffer, leaf, places: [places.clone(), places] });
    }
    let axes = Axes::like(kernel, forall, nest.bounds.clone());
    let copy = copying(kernel, launch, axes, "back", &copies);
    kernel.replace_step(launch, &[Step::Launch(launch), Step::Launch(copy)]);
    Some(copy)
}

/// The arrays that a launch reads and writes.
struct Buffers {
    read: Vec<Buffer>,
    written: Vec<Buffer>,
}

impl Buffers {
    fn of(kernel: &Kernel, body: Block) -> Buffers {
        let mut buffers = Buffers { read: Vec::new(), written: Vec::new() };
        kernel.walk(body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else {
                return;
            };
            let list = if data.opcode.is_load() { &mut buffers.read } else { &mut buffers.written };
            if !list.contains(&buffer) {
                list.push(buffer);
            }
        });
        buffers
    }
}

/// The stores to a buffer of a launch that writes it and reads it in each iteration at that iteration's own place alone, and reads
/// it before it writes; `None` where it does otherwise.
fn stores(kernel: &Kernel, nest: &Nest, buffer: Buffer) -> Option<Vec<Inst>> {
    let data = &kernel.buffers[buffer];
    let is_memory = matches!(data.kind, BufferKind::Argument { .. } | BufferKind::Scratch);
    let (mut stores, mut fits) = (Vec::new(), is_memory);
    kernel.walk(nest.body, &mut |block, inst| {
        let data = &kernel.insts[inst];
        if matches!(data.payload, Payload::Atomic { buffer: known, .. } if known == buffer) {
            fits = false;
        }
        let Some((known, _, subscripts)) = access(kernel, inst) else { return };
        if known != buffer {
            return;
        }
        let own = subscripts.len() == nest.params.len()
            && nest.params.iter().all(|param| subscripts.contains(param));
        fits &= own;
        match data.opcode {
            Opcode::Store => {
                let again = stores.iter().any(|store: &Inst| kernel.insts[*store].payload == data.payload);
                fits &= block == nest.body && !again;
                stores.push(inst);
            }
            Opcode::Load => fits &= stores.is_empty(),
            _ => fits = false,
        }
    });
    fits.then_some(stores)
}
