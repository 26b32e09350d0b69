//! What the loop of a launch looks like to `tile`: its axes, its accesses, and what stands against tiles.

use super::ways;
use crate::analysis::{Affine, Atom, Polynomial, polynomial_of};
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Definition, Kernel, Payload, Phase};
use crate::ir::op::{Effect, Opcode};
use crate::manifest::Expr;
use crate::mutants::mutant;
use rustc_hash::FxHashSet;
use std::borrow::Cow;

/// An axis of the loop, whose bounds the host can compute.
#[derive(Clone, Debug)]
pub struct LoopAxis {
    pub name: String,
    /// The index in the loop's body.
    pub index: Value,
    pub low: Expr,
    pub extent: Expr,
}

/// An access of the body.
#[derive(Clone, Debug)]
pub struct Seen {
    pub inst: Inst,
    /// Bytes from one iteration of each axis to the next; `None` where that is not the same everywhere.
    pub steps: Vec<Option<Polynomial>>,
    pub bytes: u64,
    pub stores: bool,
    /// Whether what it accesses follows from the indices alone, and nothing else accesses what is written.
    pub is_movable: bool,
    /// Axes along which it runs through memory without gaps, the fastest first.
    pub run: Vec<usize>,
}

/// A launch that is one loop over axes, element by element.
pub struct Found {
    pub forall: Inst,
    pub body: Block,
    pub axes: Vec<LoopAxis>,
    pub accesses: Vec<Seen>,
}

/// Why a launch whose accesses run along different axes is no tile program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    pub reason: Cow<'static, str>,
    /// An array whose elements neighbouring threads find far apart; of a product those of its factors.
    pub array: String,
}

impl Refused {
    /// Of an array that is found later.
    pub fn because(reason: &'static str) -> Self {
        Self { reason: reason.into(), array: String::new() }
    }
}

/// Why an array of an iteration's own stands against tiles.
pub const OWN: &str = "an array of each iteration's own";
/// Why atomics do.
pub const ATOMIC: &str = "an atomic combines elements";

/// What an instruction is to the program of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Values of values, branches, and checks.
    Pure,
    Access,
    /// An access of an iteration's own array.
    Own,
    Atomic,
    Loop,
    /// What tiles cannot say.
    Other,
}

impl Kind {
    pub fn of(kernel: &Kernel, inst: Inst) -> Self {
        let data = &kernel.insts[inst];
        let info = data.opcode.info();
        let is_tiled = info.phases.contains(Phase::Tiled);
        match (data.opcode, &data.payload) {
            (Opcode::Forall | Opcode::Reduce | Opcode::For | Opcode::While, _) => Self::Loop,
            (Opcode::Atomic, _) => Self::Atomic,
            (_, Payload::Access { buffer, .. }) if is_tiled => {
                if kernel.buffers[*buffer].kind == BufferKind::Private { Self::Own } else { Self::Access }
            }
            (Opcode::If | Opcode::Yield | Opcode::Check, _) => Self::Pure,
            _ if info.effect == Effect::Pure && is_tiled => Self::Pure,
            _ => Self::Other,
        }
    }
}

/// Calls back for each instruction of a block and its regions, with the conditions around it.
pub fn walk(kernel: &Kernel, block: Block, guards: &mut Vec<Value>, visit: &mut impl FnMut(Inst, &[Value])) {
    for inst in &kernel.blocks[block].insts {
        walk_inst(kernel, *inst, guards, visit);
    }
}

/// The same of an instruction.
pub fn walk_inst(
    kernel: &Kernel,
    inst: Inst,
    guards: &mut Vec<Value>,
    visit: &mut impl FnMut(Inst, &[Value]),
) {
    visit(inst, guards);
    let data = &kernel.insts[inst];
    let is_branch = data.opcode == Opcode::If;
    guards.extend(data.arguments.first().filter(|_| is_branch));
    for region in &data.regions {
        walk(kernel, *region, guards, visit);
    }
    guards.truncate(guards.len() - usize::from(is_branch));
}

/// Axes further apart than this lie on sectors of their own.
const GAP: i64 = 32;

/// Lanes of a warp.
const LANES: i64 = 32;

/// What a size counts as where nothing is known of it.
const SIZE: i64 = 4096;
/// Steps that are not the same everywhere.
const FAR: i64 = 1 << 40;
/// The longest step: what a block has of it can be counted.
const FARTHEST: i64 = 1 << 48;

impl Found {
    /// `None` where the launch is no such loop, or all accesses run along one axis.
    ///
    /// # Errors
    /// Where they do not, and something stands against tiles.
    pub fn find(kernel: &Kernel, launch: Launch) -> Result<Option<Self>, Refused> {
        let Some((forall, axes)) = only_loop(kernel, launch) else { return Ok(None) };
        let body = kernel.insts[forall].regions[0];
        let mut found = Self { forall, body, axes, accesses: Vec::new() };
        let mut against = None;
        let mut is_plain = true;
        let mut insts = Vec::new();
        walk(kernel, body, &mut Vec::new(), &mut |inst, guards| match Kind::of(kernel, inst) {
            Kind::Pure => {}
            Kind::Access => insts.push((inst, guards.to_vec())),
            Kind::Own => against = against.take().or(Some(Refused::because(OWN))),
            Kind::Atomic => against = against.take().or(Some(Refused::because(ATOMIC))),
            Kind::Loop | Kind::Other => is_plain = false,
        });
        if !is_plain || found.axes.len() < 2 {
            return Ok(None);
        }
        let mut affine = Affine::new(kernel);
        for (inst, guards) in &insts {
            let seen = found.see(kernel, &mut affine, *inst, guards);
            found.accesses.push(seen);
        }
        let Some(far) = found.far(kernel) else { return Ok(None) };
        let named = |refused: Refused| Refused { array: far.clone(), ..refused };
        if let Some(against) = against {
            return Err(named(against));
        }
        found.keep_order(kernel, &mut affine).map_err(named)?;
        Ok(Some(found))
    }

    /// Whether an array of this name is accessed.
    pub fn accesses_array(&self, kernel: &Kernel, name: &str) -> bool {
        let mut arrays = self.accesses.iter().filter_map(|seen| buffer_of(kernel, seen.inst));
        arrays.any(|buffer| kernel.buffers[buffer].name == name)
    }

    /// What an access is, under these conditions.
    pub fn see(&self, kernel: &Kernel, affine: &mut Affine<'_>, inst: Inst, guards: &[Value]) -> Seen {
        let data = &kernel.insts[inst];
        let stores = !data.opcode.is_load();
        let steps: Vec<Option<Polynomial>> =
            self.axes.iter().map(|axis| affine.step(inst, axis.index).flatten()).collect();
        let scalar = scalar_of(kernel, inst);
        let conditional = matches!(data.opcode, Opcode::LoadIf | Opcode::StoreIf);
        let condition = data.arguments.last().filter(|_| conditional);
        let depends: Vec<Value> =
            kernel.subscripts(data).iter().chain(guards).chain(condition).copied().collect();
        let is_movable = self.follows_from_indices(kernel, &depends);
        let run = self.run(&steps);
        Seen { inst, steps, bytes: scalar.size(), stores, is_movable, run }
    }

    /// Whether values are computed from indices and sizes, without memory.
    fn follows_from_indices(&self, kernel: &Kernel, values: &[Value]) -> bool {
        let mut seen = FxHashSet::default();
        let mut open = values.to_vec();
        while let Some(value) = open.pop() {
            if !seen.insert(value) {
                continue;
            }
            match kernel.values[value].definition {
                Definition::Param(block, _) if block == self.body => {}
                Definition::Param(..) => return false,
                Definition::Result(inst, _) => {
                    let data = &kernel.insts[inst];
                    if data.opcode.info().effect != Effect::Pure {
                        return false;
                    }
                    open.extend(&data.arguments);
                }
            }
        }
        true
    }

    /// The axes along which steps follow each other without gaps, the fastest first.
    fn run(&self, steps: &[Option<Polynomial>]) -> Vec<usize> {
        let known = |at: usize| steps[at].as_ref().and_then(Polynomial::as_wrapped);
        let close =
            (0..steps.len()).filter(|at| known(*at).is_some_and(|step| step != 0 && step.abs() < GAP));
        // Of several that it follows alike (`x[j + q]`) the longest, of these the last.
        let length =
            |at: usize| polynomial_of(&self.axes[at].extent).map_or(SIZE, |extent| stand_in(&extent));
        let key = |at: &usize| (known(*at).map(i64::abs), std::cmp::Reverse((length(*at), *at)));
        let Some(first) = close.min_by_key(key) else {
            return Vec::new();
        };
        let mut run = vec![first];
        while let Some(last) = run.last().copied() {
            let end = polynomial_of(&self.axes[last].extent)
                .zip(steps[last].as_ref())
                .and_then(|(extent, step)| step.multiply(&extent));
            let next = end.and_then(|end| {
                (0..steps.len()).find(|at| !run.contains(at) && steps[*at].as_ref() == Some(&end))
            });
            let Some(next) = next else { break };
            run.push(next);
        }
        run
    }

    /// An array of which an access that runs along one axis jumps along that of another access; `None` where there is none. Beside
    /// loads at places that data tell, which stay with the lanes, what is the same along the lanes' axis is no reason either.
    pub fn far(&self, kernel: &Kernel) -> Option<String> {
        let firsts = || self.accesses.iter().filter_map(|seen| Some((seen, *seen.run.first()?)));
        let jumps = |seen: &Seen, axis: usize| number(&seen.steps[axis]).abs() >= GAP;
        let is_long = |axis: usize| !matches!(self.axes[axis].extent, Expr::Int(..LANES));
        let suits_all = |axis: usize| firsts().all(|(seen, own)| own == axis || !jumps(seen, axis));
        let gathers =
            self.accesses.iter().any(|seen| !seen.stores && seen.run.is_empty() && !seen.is_movable);
        if gathers && firsts().any(|(_, axis)| is_long(axis) && suits_all(axis)) {
            return None;
        }
        let mut far =
            firsts().filter(|(seen, own)| firsts().any(|(_, other)| other != *own && jumps(seen, other)));
        // Stores say how the loop lies: what is told is the load, where there is one.
        let found = far.clone().find(|(seen, _)| !seen.stores).or_else(|| far.next());
        found.map(|(seen, _)| {
            buffer_of(kernel, seen.inst).map_or(String::new(), |of| kernel.buffers[of].name.clone())
        })
    }

    /// Arrays that are written and accessed several times stay in the order of the program: all accesses of one have one
    /// layout, and touch one element an iteration.
    fn keep_order(&mut self, kernel: &Kernel, affine: &mut Affine<'_>) -> Result<(), Refused> {
        let buffer = |seen: &Seen| buffer_of(kernel, seen.inst);
        for at in 0..self.accesses.len() {
            let of = buffer(&self.accesses[at]);
            let same: Vec<usize> =
                (0..self.accesses.len()).filter(|other| buffer(&self.accesses[*other]) == of).collect();
            if same.len() < 2 || !same.iter().any(|other| self.accesses[*other].stores) {
                continue;
            }
            self.accesses[at].is_movable = mutant!("tile: an array in place changes its layout", false, true);
            let rank = of.map_or(0, |of| kernel.buffers[of].extents.len());
            let mut subscripts = |at: usize| -> Vec<_> {
                let data = &kernel.insts[self.accesses[at].inst];
                data.arguments[..rank].iter().map(|value| affine.form(*value)).collect()
            };
            if subscripts(at) != subscripts(same[0]) {
                let reason = "an array that is written is accessed at other subscripts, too";
                return Err(Refused::because(reason));
            }
        }
        Ok(())
    }

    /// The accesses over axes of a block's tiles: of each the loop's axis, and how many iterations its elements are apart.
    pub fn over(&self, axes: &[(usize, i64)]) -> Vec<ways::Access> {
        let access = |seen: &Seen| ways::Access {
            steps: axes.iter().map(|(at, by)| number(&seen.steps[*at]).saturating_mul(*by)).collect(),
            bytes: seen.bytes,
            stores: seen.stores,
            is_movable: seen.is_movable,
        };
        self.accesses.iter().map(access).collect()
    }
}

/// A step as a number: with sizes that are not known taken to be large.
fn number(step: &Option<Polynomial>) -> i64 {
    let Some(step) = step else { return FAR };
    step.as_wrapped().unwrap_or_else(|| stand_in(step))
}

/// A polynomial of sizes where all of them are large.
pub fn stand_in(polynomial: &Polynomial) -> i64 {
    let terms = polynomial.terms().iter();
    let sum = terms.fold(0i64, |sum, (monomial, coefficient)| {
        let sizes = SIZE.saturating_pow(monomial.degree() as u32);
        let coefficient = i64::try_from(*coefficient).unwrap_or(FAR);
        sum.saturating_add(coefficient.saturating_mul(sizes))
    });
    sum.clamp(-FARTHEST, FARTHEST)
}

/// The one loop of a launch, beside which nothing happens, with its axes.
pub fn only_loop(kernel: &Kernel, launch: Launch) -> Option<(Inst, Vec<LoopAxis>)> {
    let mut forall = None;
    for inst in &kernel.blocks[kernel.launches[launch].body].insts {
        let data = &kernel.insts[*inst];
        match data.opcode {
            Opcode::Forall if forall.is_none() => forall = Some(*inst),
            Opcode::Yield => {}
            _ if data.opcode.info().effect == Effect::Pure => {}
            _ => return None,
        }
    }
    let forall = forall?;
    Some((forall, loop_axes(kernel, forall)?))
}

/// The axes of a loop, or of a reduction, whose bounds the host can compute.
pub fn loop_axes(kernel: &Kernel, inst: Inst) -> Option<Vec<LoopAxis>> {
    let body = kernel.insts[inst].regions[0];
    let bounds = kernel.loop_bounds(inst);
    let axes = kernel.insts[inst].payload.axes().iter().enumerate();
    let axes = axes.map(|(at, axis)| {
        let low = kernel.symbolic(bounds[at].0)?;
        let extent = kernel.symbolic_extent(bounds[at].0, bounds[at].1)?;
        if kernel.names_counter(&low) || kernel.names_counter(&extent) {
            return None;
        }
        let name = kernel.axes[*axis].name.clone();
        Some(LoopAxis { name, index: kernel.blocks[body].params[at], low, extent: folded(extent) })
    });
    axes.collect()
}

/// A difference of literals as one.
fn folded(expr: Expr) -> Expr {
    match expr.evaluate(&[]) {
        Some(crate::manifest::Value::Int(value)) => i64::try_from(value).map_or(expr, Expr::Int),
        _ => expr,
    }
}

/// The buffer that an access is of.
pub fn buffer_of(kernel: &Kernel, inst: Inst) -> Option<Buffer> {
    match kernel.insts[inst].payload {
        Payload::Access { buffer, .. } => Some(buffer),
        _ => None,
    }
}

/// The scalar in memory that an access touches.
pub fn scalar_of(kernel: &Kernel, inst: Inst) -> Scalar {
    match kernel.insts[inst].payload {
        Payload::Access { buffer, leaf } => kernel.buffers[buffer].element.leaves[leaf as usize].scalar,
        _ => Scalar::Bool,
    }
}

/// What must be a multiple for a polynomial to be one, as symbols; `None` where that cannot be.
pub fn multiple_of(
    polynomial: &Polynomial,
    lanes: u64,
    symbols: &mut Vec<crate::ir::entities::Symbol>,
) -> Option<()> {
    let named = |atom: &Atom| if let Atom::Symbol(symbol) = atom { Some(*symbol) } else { None };
    let terms = polynomial.terms().iter().rev();
    let rests = terms.filter(|(_, coefficient)| *coefficient % i128::from(lanes) != 0);
    let mut candidates: Vec<Vec<_>> =
        rests.map(|(monomial, _)| monomial.atoms().iter().filter_map(named).collect()).collect();
    // Those that leave no choice first: what they need may do for others.
    candidates.sort_by_key(Vec::len);
    for of_term in candidates {
        if !of_term.iter().any(|symbol| symbols.contains(symbol)) {
            symbols.push(*of_term.first()?);
        }
    }
    Some(())
}
