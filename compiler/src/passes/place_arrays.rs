//! `place_arrays`: arrays of threads at subscripts that data give lie in shared memory, a column for each thread.
//!
//! ```text
//! buffer buf3 "share" f32 [51] private                before
//! v9: f32 = load buf3[v7]
//!
//! buffer buf4 "share" f32 [51, 128] shared            after
//! v9: f32 = load buf4[v7, tid]
//! ```
//!
//! Registers have no numbers that change, so such an array is memory. Local memory is interleaved by threads, word by word:
//! lanes with different subscripts touch a line each. In shared memory each lane has a bank for itself, whatever its subscript
//! is.
//!
//! # Preconditions
//!
//! After `scalarize`: the launch has explicit threads, and no other use for shared memory. The array has a literal number of
//! scalars, and is loaded and stored alone, once at least at a subscript that is not the same for all lanes, as loop counters
//! are: what these ask for lies together in local memory as well. With those of all threads beside each other, a
//! multiprocessor still holds 512 threads.

use super::pass::{Changed, Pass, PassContext, TargetFacts};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferData, BufferKind, Kernel, Payload, Phase, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::manifest::Expr;
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

/// The pass.
pub struct PlaceArrays;

/// Threads of a multiprocessor at least that there is room for: fewer do not hide what memory takes.
const LEAST_THREADS: u64 = 512;

impl Pass for PlaceArrays {
    fn name(&self) -> &str {
        "place_arrays"
    }

    fn reason(&self) -> &str {
        "gives arrays of threads that are no registers columns of shared memory"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Staged])
    }

    fn runs_after(&self) -> &[&str] {
        &["threads"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        if kernel.buffers.values().all(|data| data.kind != BufferKind::Private) {
            return Changed::No;
        }
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            changed |= place(kernel, launch, &context.target);
        }
        changed.into()
    }
}

/// The private arrays of a launch that can lie in shared memory, each with its accesses; none where it uses shared memory.
fn arrays(kernel: &Kernel, launch: Launch) -> Vec<(Buffer, Vec<Inst>)> {
    let mut found: Vec<(Buffer, Vec<Inst>)> = Vec::new();
    let (mut others, mut is_shared) = (EntitySet::new(), false);
    kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else { return };
        is_shared |= kernel.buffers[buffer].kind == BufferKind::Shared;
        if kernel.buffers[buffer].kind != BufferKind::Private {
            return;
        }
        if !matches!(data.opcode, Opcode::Load | Opcode::Store) || kernel.width(data) != 1 {
            others.insert(buffer);
        }
        match found.iter_mut().find(|(known, _)| *known == buffer) {
            Some((_, accesses)) => accesses.push(inst),
            None => found.push((buffer, vec![inst])),
        }
    });
    let is_plain = |data: &BufferData| {
        let [leaf] = &data.element.leaves[..] else { return false };
        leaf.extents.is_empty()
            && data.element.size == leaf.scalar.size()
            && data.literal_elements().is_some()
    };
    let uniform = uniform_values(kernel, kernel.launches[launch].body);
    let is_scattered = |accesses: &[Inst]| {
        let mut subscripts = accesses.iter().flat_map(|inst| kernel.subscripts(&kernel.insts[*inst]));
        subscripts.any(|value| !uniform.contains(*value))
    };
    found.retain(|(buffer, accesses)| {
        let fits = !is_shared && !others.contains(*buffer) && is_plain(&kernel.buffers[*buffer]);
        fits && is_scattered(accesses)
    });
    found
}

/// The values of a launch that are made of literals, sizes and the counters of loops: the same for all lanes that come to them.
fn uniform_values(kernel: &Kernel, body: Block) -> EntitySet<Value> {
    let mut uniform = EntitySet::new();
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let is_number = matches!(data.opcode, Opcode::Const | Opcode::Symbol);
        let is_pure = data.opcode.info().effect == Effect::Pure && !data.arguments.is_empty();
        if is_number || is_pure && data.arguments.iter().all(|argument| uniform.contains(*argument)) {
            uniform.extend(data.results.iter().copied());
        }
        let counters = data.payload.axes().len();
        for region in &data.regions {
            uniform.extend(kernel.blocks[*region].params.iter().copied().take(counters));
        }
    });
    uniform
}

fn place(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let Some(threads) = kernel.launches[launch].threads.map(u64::from) else { return false };
    let mut arrays = arrays(kernel, launch);
    // The smallest ones first, as many as there is room for.
    let bytes = |kernel: &Kernel, buffer: Buffer| {
        let data = &kernel.buffers[buffer];
        data.literal_elements()
            .map_or(u64::MAX, |count| data.element.size.saturating_mul(count.max(1) as u64))
    };
    arrays.sort_by_key(|(buffer, _)| (bytes(kernel, *buffer), *buffer));
    let mut room = u64::from(target.shared_bytes) / LEAST_THREADS.max(threads);
    arrays.retain(|(buffer, _)| {
        let fits = bytes(kernel, *buffer) <= room;
        room -= if fits { bytes(kernel, *buffer) } else { 0 };
        fits
    });
    if arrays.is_empty() {
        return false;
    }
    let body = kernel.launches[launch].body;
    let rest = std::mem::take(&mut kernel.blocks[body].insts);
    let span = kernel.insts[arrays[0].1[0]].span;
    let tid = Emit::new(kernel, body, span).value(Opcode::ThreadIndex, Payload::None, &[]);
    let column =
        mutant!("place_arrays: all threads have one column", tid, Emit::new(kernel, body, span).int(0));
    kernel.blocks[body].insts.extend(rest);
    let columns = mutant!("place_arrays: columns for half of the threads", threads, threads / 2);
    let mut names = Vec::new();
    for (buffer, accesses) in arrays {
        let data = &kernel.buffers[buffer];
        let (name, scalar) = (data.name.clone(), data.element.leaves[0].scalar);
        let extents = [&data.extents[..], &[Expr::Int(columns as i64)]].concat();
        names.push(format!("`{name}`"));
        let placed = kernel.buffers.push(BufferData::temporary(name, BufferKind::Shared, scalar, extents));
        let last =
            mutant!("place_arrays: the last access stays where it is", accesses.len(), accesses.len() - 1);
        for inst in accesses.into_iter().take(last) {
            let data = &kernel.insts[inst];
            let (opcode, rank) = (data.opcode, kernel.subscripts(data).len());
            let mut arguments = data.arguments.to_vec();
            arguments.insert(rank, column);
            kernel.rewrite_inst(inst, opcode, Payload::Access { buffer: placed, leaf: 0 }, &arguments);
        }
    }
    let text = format!(
        "lanes have subscripts of {} of their own: each thread has a column of shared memory",
        names.join(", ")
    );
    let name = kernel.launches[launch].name.clone();
    kernel.schedule.remark(&name, text);
    true
}
