//! `coalesce_axes`: two axes become one where rows are no multiples of a vector.
//!
//! ```text
//! forall axis0 "i" = 0..v0, axis1 "k" = 0..v1 (v2, v3) {                        before
//!     v4: f32 = load buf0[v2, v3]
//!     v5: f32 = load buf1[v3]
//!
//! forall axis1 "k" = 0..v0 * v1 (v6) {                                          after
//!     v2: i64 = div v6, v1
//!     v3: i64 = rem v6, v1
//!     v4: f32 = load buf0[0, v6]
//!     v5: f32 = load buf1[v3]
//! ```
//!
//! Rows of 527 elements begin anywhere within a vector, and the last block of each has 15 threads with work. All rows one behind
//! the other are one row that begins at its array's start; only what moves along one axis alone needs the places along both,
//! which the index's quotient gives: loop coalescing. A subscript may run on behind its axis' end then, to the elements of the rows
//! behind, and the buffer says so (`runs_on`). (Axes whose indices nothing else uses `merge_axes` has made one.)
//!
//! # Preconditions
//!
//! The loop is alone in its launch and its body straight code. Both axes begin at 0. All that is stored lies side by side along the
//! inner one, rows without gaps along the outer one. Each load does so as well, at a place where vectors begin, or is the same
//! along the inner axis, or lies side by side along that and is the same along the outer one. The inner axis is no multiple of a
//! vector, and no shorter. The schedule says nothing of either.
//!
//! # Limits
//!
//! Rows of other lengths (what `pad` and `crop` load) keep their axes, and so do windows: what they load is several elements of one
//! array. So do rows that are shorter than a vector, which are words of a thread.

use super::contiguous::{VECTOR_BYTES, WORD_BYTES};
use super::insert::{before, emitted, stands_for};
use super::pass::{Changed, Pass, PassContext};
use super::straight::code_of;
use super::sweep::sweep;
use crate::analysis::{
    Affine, Answer, Atom, Conditions, MemoryAccess, Polynomial, accesses, ask, polynomial_of,
};
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Phase, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;

/// Rows of narrow elements that are so long stay rows where something lies along them alone (bf16 by a factor of each column on an
/// H200, 1001 columns: 61 us as one axis and 67 as two, 50,257: 66 and 63).
const LONG: i64 = 2048;

/// The pass.
pub struct CoalesceAxes;

impl Pass for CoalesceAxes {
    fn name(&self) -> &str {
        "coalesce_axes"
    }

    fn reason(&self) -> &str {
        "makes rows of odd lengths one row, which vectors bring"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            // What is one axis now may have odd rows in another one.
            while let Some(found) = Found::of(kernel, launch)
                && found.is_worth(kernel, launch)
                && found.coalesce(kernel, launch).is_some()
            {
                sweep(kernel);
                changed = true;
            }
        }
        changed.into()
    }
}

/// Two axes of a launch's loop.
struct Found {
    forall: Inst,
    outer: usize,
    inner: usize,
    /// Iterations of the inner one.
    extent: Expr,
    /// How many neighbours of what is stored one access takes.
    vector: i64,
    flat: Vec<Flat>,
    /// Whether narrow elements are made of what lies side by side along the inner axis alone: each comes by an access of its own.
    has_neighbours: bool,
}

/// An access that walks along both axes as along one.
struct Flat {
    inst: Inst,
    /// What the subscripts are that move with an axis, without that; the last of them moves with the inner one.
    rests: Vec<(usize, Polynomial)>,
}

impl Found {
    fn of(kernel: &Kernel, launch: Launch) -> Option<Self> {
        if kernel.launches[launch].phase != Phase::Abstract {
            return None;
        }
        let forall = kernel.only_loop(launch)?;
        let body = kernel.insts[forall].regions[0];
        code_of(kernel, body, &[Effect::Read, Effect::Record, Effect::Write])?;
        let bounds = kernel.loop_bounds(forall);
        let axes = kernel.insts[forall].payload.axes();
        let is_own = |at: &usize| {
            kernel.int_of(bounds[*at].0) == Some(0)
                && !kernel.schedule.speaks_of(&kernel.axes[axes[*at]].name)
        };
        let all = accesses(kernel, body);
        let places: Vec<usize> = (0..bounds.len()).filter(is_own).collect();
        let pairs = places.iter().flat_map(|inner| places.iter().map(move |outer| (*outer, *inner)));
        pairs.filter(|(outer, inner)| outer != inner).find_map(|(outer, inner)| {
            let extent = kernel.symbolic(bounds[inner].1)?;
            let params = [outer, inner].map(|at| kernel.blocks[body].params[at]);
            let (vector, flat, has_columns) = flat(kernel, &all, params, &polynomial_of(&extent)?)?;
            let has_neighbours = has_columns && vector > (VECTOR_BYTES / WORD_BYTES) as i64;
            Some(Self { forall, outer, inner, extent, vector, flat, has_neighbours })
        })
    }

    /// Whether rows begin anywhere within a vector, and are not so long that what moves along them alone costs more, element by
    /// element, than their ends.
    fn is_worth(&self, kernel: &mut Kernel, launch: Launch) -> bool {
        let rest = Expr::binary(BinaryOp::Rem, self.extent.clone(), Expr::Int(self.vector));
        let begin_at_vectors = Conditions::new().prefers(Expr::binary(BinaryOp::Equal, rest, Expr::Int(0)));
        let are_long = Conditions::new().prefers_at_least(&self.extent, LONG);
        let is_vector = Conditions::new().needs_at_least(&self.extent, self.vector);
        ask(kernel, launch, &begin_at_vectors) == Answer::No
            && !(self.has_neighbours && ask(kernel, launch, &are_long) == Answer::Yes)
            && ask(kernel, launch, &is_vector) == Answer::Yes
    }

    fn coalesce(&self, kernel: &mut Kernel, launch: Launch) -> Option<()> {
        let axes = kernel.insts[self.forall].payload.axes();
        let [outer, inner] = [self.outer, self.inner].map(|at| kernel.axes[axes[at]].name.clone());
        let bounds = kernel.loop_bounds(self.forall);
        let [(_, rows), (_, length)] = [self.outer, self.inner].map(|at| bounds[at]);
        let root = kernel.launches[launch].body;
        let end = before(kernel, root, self.forall, |emit| emit.mul(rows, length))?;
        let body = kernel.insts[self.forall].regions[0];
        let [row, place] = [self.outer, self.inner].map(|at| kernel.blocks[body].params[at]);
        let name = kernel.values[row].name.take();
        stands_for(kernel, body, place, kernel.insts[self.forall].span, |emit, index| {
            let quotient = emit.binary(Opcode::Div, index, length);
            let remainder = emit.binary(Opcode::Rem, index, length);
            emit.kernel.values[quotient].name = name;
            emit.kernel.replace_uses(row, mutant!("coalesce_axes: rows are places", quotient, index));
            mutant!("coalesce_axes: places go on behind a row's end", remainder, index)
        });
        let parents = kernel.parents();
        for flat in &self.flat {
            if let Payload::Access { buffer, .. } = kernel.insts[flat.inst].payload {
                kernel.buffers[buffer].runs_on = true;
            }
            let Some(block) = parents.block_of[flat.inst].expand() else { continue };
            for (number, (at, rest)) in flat.rests.iter().enumerate() {
                let subscript = before(kernel, block, flat.inst, |emit| {
                    let rest = emitted(emit, rest)?;
                    let is_last = number + 1 == flat.rests.len();
                    Some(match is_last {
                        true => emit.add(place, rest),
                        false => {
                            mutant!("coalesce_axes: parts begin where the array does", rest, emit.int(0))
                        }
                    })
                });
                kernel.insts[flat.inst].arguments[*at] = subscript??;
            }
        }
        kernel.insts[self.forall].arguments[2 * self.inner + 1] = end;
        kernel.drop_axis(self.forall, self.outer);
        let name = kernel.launches[launch].name.clone();
        let text = format!(
            "rows along `{inner}` begin anywhere within a vector: with `{outer}` it is one axis, of which rows are quotients"
        );
        kernel.schedule.remark(&name, text);
        kernel.schedule.remade.push(inner);
        Some(())
    }
}

/// How many neighbours of what a body stores one access takes, what walks along two axes as along one, and whether something moves
/// along the inner one alone, if these, the outer one first, can become one; the inner one has so many iterations.
fn flat(
    kernel: &Kernel,
    all: &[MemoryAccess],
    axes: [Value; 2],
    extent: &Polynomial,
) -> Option<(i64, Vec<Flat>, bool)> {
    let mut affine = Affine::new(kernel);
    let width = |access: &MemoryAccess| {
        kernel.buffers[access.buffer].element.leaves[access.leaf as usize].scalar.size() as i64
    };
    let widest = all.iter().filter(|access| access.writes).map(width).max()?;
    let vector = VECTOR_BYTES as i64 / widest;
    let mut found: Vec<Flat> = Vec::new();
    let mut has_columns = false;
    let mut read: Vec<&MemoryAccess> = Vec::new();
    for access in all {
        if let BufferKind::Private | BufferKind::Shared = kernel.buffers[access.buffer].kind {
            return None;
        }
        let width = i128::from(width(access));
        let mut step = |axis: Value| affine.step(access.inst, axis).flatten();
        let inner = step(axes[1])?;
        let is_beside = inner.as_constant() == Some(width);
        let is_flat = is_beside && step(axes[0]) == extent.scale(width);
        if is_flat {
            found.push(rests(kernel, &mut affine, access.inst, axes, (extent, vector))?);
            let same = |known: &&&MemoryAccess| (known.buffer, known.leaf) == (access.buffer, access.leaf);
            let subscripts = |access: &MemoryAccess| &kernel.insts[access.inst].arguments;
            if !access.writes
                && read.iter().find(same).is_some_and(|known| subscripts(known) != subscripts(access))
            {
                return None;
            }
            read.push(access);
        } else if access.writes || !(inner.is_zero() || is_beside && step(axes[0])?.is_zero()) {
            return None;
        } else {
            has_columns |= !inner.is_zero();
        }
    }
    (vector > 1).then_some((vector, found, has_columns))
}

/// What an access' subscripts are beside two axes, if they count these one after the other and what is left begins where vectors do.
fn rests(
    kernel: &Kernel,
    affine: &mut Affine<'_>,
    inst: Inst,
    [row, place]: [Value; 2],
    (extent, vector): (&Polynomial, i64),
) -> Option<Flat> {
    let subscripts = kernel.subscripts(&kernel.insts[inst]);
    let mut rests: Vec<(usize, Polynomial)> = Vec::new();
    for (at, subscript) in subscripts.iter().enumerate() {
        let form = affine.form(*subscript);
        let (of_row, rest) = form.split(Atom::Value(row))?;
        let (of_place, rest) = rest.split(Atom::Value(place))?;
        let counts = |step: &Polynomial, one: &Polynomial| step.is_zero() || step == one;
        let one = Polynomial::constant(1);
        let (is_row, is_place) = (!of_row.is_zero(), !of_place.is_zero());
        let rows = if is_place { extent } else { &one };
        if !counts(&of_row, rows) || !counts(&of_place, &one) {
            return None;
        }
        if is_place && rest.constant_term() % i128::from(vector) != 0 {
            return None;
        }
        // What is emitted afterwards has to be there.
        if !rest.terms().iter().all(|(_, factor)| i64::try_from(*factor).is_ok()) {
            return None;
        }
        if is_row || is_place {
            rests.push((at, rest));
        }
    }
    Some(Flat { inst, rests })
}
