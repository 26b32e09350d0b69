//! What of two launches is compared: their parallel loops, and the loops in these.

use crate::analysis::Affine;
use crate::ir::entities::{Axis, Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use crate::manifest::Expr;

/// A launch: a parallel loop and nothing else that has effects, or code that runs once.
pub struct Nest {
    pub launch: Launch,
    pub forall: Option<Inst>,
    /// What an iteration does.
    pub body: Block,
    pub params: Vec<Value>,
    /// Of each axis.
    pub bounds: Vec<(Expr, Expr)>,
}

impl Nest {
    /// `None` for a launch of another shape, or one that the plan reaches under conditions of its own.
    pub fn of(kernel: &Kernel, launch: Launch) -> Option<Nest> {
        let data = &kernel.launches[launch];
        if !data.assume.is_empty() || data.threads.is_some() || data.grid.is_some() {
            return None;
        }
        Nest::under_conditions(kernel, launch)
    }

    /// The same of a launch that the plan may reach under conditions of its own.
    pub fn under_conditions(kernel: &Kernel, launch: Launch) -> Option<Nest> {
        let data = &kernel.launches[launch];
        let insts = &kernel.blocks[data.body].insts;
        let mut foralls = insts.iter().copied().filter(|inst| kernel.insts[*inst].opcode == Opcode::Forall);
        let Some(forall) = foralls.next() else {
            let (params, bounds) = (Vec::new(), Vec::new());
            return Some(Nest { launch, forall: None, body: data.body, params, bounds });
        };
        let is_plain = |inst: &Inst| {
            let data = &kernel.insts[*inst];
            data.opcode.info().effect == Effect::Pure && data.regions.is_empty()
        };
        if !insts.iter().all(|inst| *inst == forall || is_plain(inst)) {
            return None;
        }
        let body = kernel.insts[forall].regions[0];
        let params = kernel.blocks[body].params.to_vec();
        let bounds = kernel
            .loop_bounds(forall)
            .into_iter()
            .map(|pair| symbolic(kernel, pair))
            .collect::<Option<_>>()?;
        Some(Nest { launch, forall: Some(forall), body, params, bounds })
    }

    /// An axis by its place.
    pub fn axis(&self, kernel: &Kernel, at: usize) -> Option<Axis> {
        self.forall.map(|forall| kernel.insts[forall].payload.axes()[at])
    }

    pub fn name<'k>(&self, kernel: &'k Kernel, at: usize) -> &'k str {
        self.axis(kernel, at).map_or("", |axis| kernel.axes[axis].name.as_str())
    }
}

fn symbolic(kernel: &Kernel, (low, high): (Value, Value)) -> Option<(Expr, Expr)> {
    Some((kernel.symbolic(low)?, kernel.symbolic(high)?))
}

/// Which axes of two launches are the same, by their places: those that stand at one place of an array. `None` where
/// neither launch has all its axes among them.
pub fn common_axes(kernel: &Kernel, first: &Nest, second: &Nest) -> Option<Vec<(usize, usize)>> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut accesses = Vec::new();
    kernel.walk(first.body, &mut |_, inst| accesses.extend(access(kernel, inst)));
    // What the first one writes says more than what both read.
    accesses.sort_by_key(|(_, inst, _)| !kernel.insts[*inst].opcode.info().effect.shows());
    // Indices themselves say more than what is made of one.
    let mut affine = Affine::new(kernel);
    let mut only = |nest: &Nest, value: &Value| {
        let mut moving = (0..nest.params.len()).filter(|at| affine.depends(*value, nest.params[*at]));
        moving.next().filter(|_| moving.next().is_none())
    };
    for ((buffer, _, subscripts), is_plain) in
        [true, false].into_iter().flat_map(|is_plain| accesses.iter().map(move |access| (*access, is_plain)))
    {
        kernel.walk(second.body, &mut |_, inst| {
            let Some((other, _, others)) = access(kernel, inst) else { return };
            for (left, right) in subscripts.iter().zip(others).filter(|_| other == buffer) {
                let mut place = |nest: &Nest, value: &Value| match is_plain {
                    true => nest.params.iter().position(|param| param == value),
                    false => only(nest, value),
                };
                let (Some(left), Some(right)) = (place(first, left), place(second, right)) else { continue };
                let free = found.iter().all(|known| known.0 != left && known.1 != right);
                if free && first.bounds[left] == second.bounds[right] {
                    found.push((left, right));
                }
            }
        });
    }
    found.sort_unstable();
    // One name goes. A schedule that speaks of both may mean different things.
    let named = |(left, right): &(usize, usize)| {
        let [left, right] = [first.name(kernel, *left), second.name(kernel, *right)];
        let speaks = [left, right].map(|name| kernel.schedule.speaks_of(name));
        left == right || speaks != [true, true]
    };
    let all = found.len() == first.params.len() || found.len() == second.params.len();
    let none_left = found.is_empty() && (first.forall.is_some() || second.forall.is_some());
    (all && !none_left && found.iter().all(named)).then_some(found)
}

/// A load or store: its array, and its subscripts.
pub fn access(kernel: &Kernel, inst: Inst) -> Option<(crate::ir::entities::Buffer, Inst, &[Value])> {
    let data = &kernel.insts[inst];
    match data.payload {
        Payload::Access { buffer, .. } => Some((buffer, inst, kernel.subscripts(data))),
        _ => None,
    }
}

/// What an iteration of the common axes walks: loops of one axis, side by side, or reductions of several.
#[derive(Default)]
pub struct Walk {
    /// Of all of them, those of each axis; `None` where there is no loop.
    pub bounds: Option<Vec<(Expr, Expr)>>,
    pub indices: Vec<Value>,
    pub reduces: bool,
    /// The reductions among them, where there is nothing else.
    pub reductions: Option<Vec<Inst>>,
    /// Whether memory is contiguous along them.
    pub is_contiguous: bool,
}

impl Walk {
    /// `None` where the iteration has loops of another kind.
    pub fn of(kernel: &Kernel, nest: &Nest, common: &[usize]) -> Option<Walk> {
        let mut walk = Walk::default();
        let left: Vec<usize> = (0..nest.params.len()).filter(|at| !common.contains(at)).collect();
        match left[..] {
            [] => {}
            [at] => {
                walk.bounds = Some(vec![nest.bounds[at].clone()]);
                walk.indices.push(nest.params[at]);
            }
            _ => return None,
        }
        let mut reductions = Vec::new();
        let mut others = !left.is_empty();
        for inst in &kernel.blocks[nest.body].insts {
            let data = &kernel.insts[*inst];
            let mut inner = 0;
            for region in &data.regions {
                kernel.walk(*region, &mut |_, inst| inner += usize::from(is_loop(kernel.insts[inst].opcode)));
            }
            if inner > 0 || matches!(data.opcode, Opcode::For | Opcode::While | Opcode::Atomic) {
                return None;
            }
            if matches!(data.opcode, Opcode::Forall | Opcode::Reduce) {
                let pairs = kernel.loop_bounds(*inst).into_iter();
                let bounds = pairs.map(|pair| symbolic(kernel, pair)).collect::<Option<Vec<_>>>()?;
                if bounds.len() > 1 && data.opcode == Opcode::Forall {
                    return None;
                }
                if !left.is_empty() || walk.bounds.as_ref().is_some_and(|known| *known != bounds) {
                    return None;
                }
                walk.bounds = Some(bounds);
                walk.indices.extend(&kernel.blocks[data.regions[0]].params);
                match data.opcode {
                    Opcode::Reduce => reductions.push(*inst),
                    _ => others = true,
                }
            }
        }
        walk.reduces = !reductions.is_empty();
        walk.reductions = (!others && walk.reduces).then_some(reductions);
        walk.is_contiguous = walk.is_contiguous(kernel, nest);
        Some(walk)
    }

    /// Whether its loops have several axes.
    pub fn has_several_axes(&self) -> bool {
        self.bounds.as_ref().is_some_and(|bounds| bounds.len() > 1)
    }

    /// Whether what moves with an index of the loops does so along its array's last axis.
    fn is_contiguous(&self, kernel: &Kernel, nest: &Nest) -> bool {
        let mut affine = Affine::new(kernel);
        let mut contiguous = true;
        kernel.walk(nest.body, &mut |_, inst| {
            let Some((buffer, _, subscripts)) = access(kernel, inst) else { return };
            let subscripts = &subscripts[..kernel.buffers[buffer].extents.len()];
            let mut moves = |value: &Value| self.indices.iter().any(|index| affine.depends(*value, *index));
            let Some((last, others)) = subscripts.split_last() else { return };
            contiguous &= moves(last) || !others.iter().any(moves);
        });
        contiguous
    }
}

fn is_loop(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Forall | Opcode::Reduce | Opcode::For | Opcode::While | Opcode::Atomic)
}

/// Whether the loops of two launches are those of one row; without a reduction among them they are better off as axes of
/// the parallel loop. Without loops, memory is to be contiguous along the same axis.
pub fn are_alike(
    kernel: &Kernel,
    first: (&Nest, &Walk),
    second: (&Nest, &Walk),
    axes: &[(usize, usize)],
) -> bool {
    let ((_, before), (_, after)) = (first, second);
    match (&before.bounds, &after.bounds) {
        (None, None) => {
            let fast = [
                fast_axes(kernel, first.0, axes.iter().map(|pair| pair.0)),
                fast_axes(kernel, second.0, axes.iter().map(|pair| pair.1)),
            ]
            .concat();
            fast.windows(2).all(|pair| pair[0] == pair[1])
        }
        (Some(left), Some(right)) => left == right && (before.reduces || after.reduces),
        _ => before.reduces || after.reduces,
    }
}

/// Along which axes accesses that move with several of them are contiguous: numbers in the list of axes.
fn fast_axes(kernel: &Kernel, nest: &Nest, axes: impl Iterator<Item = usize>) -> Vec<Option<usize>> {
    let indices: Vec<Value> = axes.map(|at| nest.params[at]).collect();
    let mut affine = Affine::new(kernel);
    let mut found = Vec::new();
    kernel.walk(nest.body, &mut |_, inst| {
        let Some((_, _, subscripts)) = access(kernel, inst) else { return };
        let several = indices.iter().filter(|index| affine.any_depends(subscripts, **index)).count() > 1;
        if let (true, Some(last)) = (several, subscripts.last()) {
            found.push(indices.iter().position(|index| affine.depends(*last, *index)));
        }
    });
    found
}
