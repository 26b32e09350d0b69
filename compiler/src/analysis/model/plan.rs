//! Which launches the plan takes at the model's sizes, and the warps that stand for all of a launch.

use super::walk::Walk;
use super::{LaunchCost, address};
use crate::ir::entities::{Launch, Symbol};
use crate::ir::kernel::{BufferKind, Kernel, Step};
use crate::manifest::Value;
use cranelift_entity::EntityRef;

/// Threads of a warp.
const WARP: u32 = 32;

/// What every launch costs that the plan takes at these sizes, in order; `None` where the host could not compute a
/// condition or a count, or where an axis has no explicit threads yet.
pub fn model(kernel: &Kernel, sizes: &[Value]) -> Option<Vec<LaunchCost>> {
    let mut taken = Vec::new();
    let mut sizes = sizes.to_vec();
    steps(&kernel.plan, &mut sizes, 1.0, &mut taken)?;
    taken.into_iter().map(|(launch, repeats, sizes)| launch_cost(kernel, launch, repeats, &sizes)).collect()
}

fn steps(
    plan: &[Step],
    sizes: &mut Vec<Value>,
    repeats: f64,
    taken: &mut Vec<(Launch, f64, Vec<Value>)>,
) -> Option<()> {
    for step in plan {
        match step {
            Step::Launch(launch) => taken.push((*launch, repeats, sizes.clone())),
            Step::Branch { condition, then, otherwise } => match condition.evaluate(sizes)? {
                Value::Bool(true) => steps(then, sizes, repeats, taken)?,
                Value::Bool(false) => steps(otherwise, sizes, repeats, taken)?,
                _ => return None,
            },
            Step::Repeat { symbol, low, high, step, body } => {
                let (low, high) = (low.evaluate_int(sizes)?, high.evaluate_int(sizes)?);
                let step = step.evaluate_int(sizes)?.max(1);
                let rounds = ((high - low).max(0) + step - 1) / step;
                if rounds > 0 {
                    // Its first round stands for all.
                    set(sizes, *symbol, low);
                    steps(body, sizes, repeats * rounds as f64, taken)?;
                }
            }
            // How many turns there are nobody knows: one stands for all.
            Step::While { test, body, .. } => {
                steps(test, sizes, repeats, taken)?;
                steps(body, sizes, repeats, taken)?;
            }
        }
    }
    Some(())
}

fn set(sizes: &mut [Value], symbol: Symbol, value: i128) {
    if let Some(slot) = sizes.get_mut(symbol.index()) {
        *slot = Value::Int(value);
    }
}

/// Blocks in z that are looked at.
const PIECES: u64 = 8;

fn launch_cost(kernel: &Kernel, launch: Launch, repeats: f64, sizes: &[Value]) -> Option<LaunchCost> {
    let data = &kernel.launches[launch];
    let threads = data.threads.unwrap_or(1);
    let mut blocks = [1u64; 3];
    if let Some(grid) = &data.grid {
        for (count, expr) in blocks.iter_mut().zip(grid) {
            *count = u64::try_from(expr.evaluate_int(sizes)?).ok()?;
        }
    }
    let mut cost = LaunchCost {
        launch,
        blocks,
        threads,
        repeats,
        shared_bytes: shared_bytes(kernel, launch, sizes)?,
        accesses: Vec::new(),
        branches: Vec::new(),
        divisions: Vec::new(),
        barriers: 0.0,
        instructions: 0.0,
        independent: 0.0,
        exact: true,
    };
    let all: u64 = blocks.iter().product();
    if all == 0 {
        return Some(cost);
    }
    let warps = threads.div_ceil(WARP);
    // Blocks from the middle, so that edges do not stand for the whole; and from both halves, since blocks of which there are more
    // than pieces of work have none.
    let middle = blocks.map(|count| count / 2);
    let mut samples = vec![middle];
    if blocks[0] > 1 {
        let beside = if middle[0] + 1 < blocks[0] { middle[0] + 1 } else { middle[0] - 1 };
        samples.push([beside, middle[1], middle[2]]);
    }
    if blocks[0] >= 8 {
        samples.extend([blocks[0] / 4, blocks[0] * 3 / 4].map(|x| [x, middle[1], middle[2]]));
    }
    // Blocks in z take pieces of a reduction; the last of them may have nothing left to take.
    let pieces = blocks[2].min(PIECES);
    let at =
        |piece: u64| ((u128::from(2 * piece + 1) * u128::from(blocks[2])) / u128::from(2 * pieces)) as u64;
    let samples: Vec<[u64; 3]> =
        samples.iter().flat_map(|[x, y, _]| (0..pieces).map(move |piece| [*x, *y, at(piece)])).collect();
    let mut walk = Walk::new(kernel, sizes, &mut cost);
    for block in &samples {
        for (warp, share) in warps_of(warps) {
            let weight = share * all as f64 / samples.len() as f64 * repeats;
            let lanes = (threads - warp * WARP).min(WARP);
            let mask = if lanes == WARP { u32::MAX } else { (1 << lanes) - 1 };
            walk.run(data.body, *block, warp * WARP, mask, weight);
        }
    }
    Some(cost)
}

/// Warps of a block, each with how many it stands for. The first one stands for itself: it has work of its own at times.
fn warps_of(warps: u32) -> Vec<(u32, f64)> {
    // Of small blocks all: where some have no work, three do not stand for them.
    if warps <= 8 {
        return (0..warps).map(|warp| (warp, 1.0)).collect();
    }
    let share = f64::from(warps - 1) / 3.0;
    vec![(0, 1.0), (1, share), (warps / 2, share), (warps - 1, share)]
}

/// Shared memory that the buffers of a launch take.
fn shared_bytes(kernel: &Kernel, launch: Launch, sizes: &[Value]) -> Option<u64> {
    let mut used = Vec::new();
    kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
        use crate::ir::kernel::Payload;
        if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = kernel.insts[inst].payload
            && kernel.buffers[buffer].kind == BufferKind::Shared
            && !used.contains(&buffer)
        {
            used.push(buffer);
        }
    });
    let mut bytes = 0u64;
    for buffer in used {
        let data = &kernel.buffers[buffer];
        let elements: i64 = address::extents(data, sizes)?.iter().product();
        bytes = bytes.next_multiple_of(16) + u64::try_from(elements).ok()? * data.element.size;
    }
    Some(bytes)
}
