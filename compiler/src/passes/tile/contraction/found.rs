//! What a contraction looks like to `tile`: its axes by class, its factors, and what stands against matrix instructions.

use super::factor::{Factor, atom, factor, is_of_matrices, kind, parts_of, scalars_of, value_of};
use super::range::{BlockRange, OfRow};
use crate::analysis::contraction::{Class, Contraction, Side, contractions};
use crate::analysis::{Affine, Polynomial, block_count};
use crate::data::Scalar;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Atom, BufferKind, Kernel, Payload, Phase};
use crate::ir::op::{Effect, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::passes::tile::found::{LoopAxis, Refused, buffer_of, loop_axes, only_loop};
use cranelift_entity::EntitySet;

/// A launch that is a contraction of two factors that a matrix instruction takes.
#[derive(Clone, Debug)]
pub struct Found {
    pub forall: Inst,
    pub body: Block,
    pub reduce: Inst,
    /// The axes of the loop.
    pub axes: Vec<LoopAxis>,
    /// The reduced ones.
    pub steps: Vec<LoopAxis>,
    /// The range of the steps, where the host cannot compute it.
    pub range: Option<BlockRange>,
    /// Numbers of axes that each block has one iteration of.
    pub batch: Vec<usize>,
    /// Numbers of the axes of rows, and of columns: neighbours of what is stored lie along these, where they do along either.
    pub outer: [Vec<usize>; 2],
    /// Of rows, and of columns.
    pub factors: [Factor; 2],
    /// The types of the factors.
    pub scalars: [Scalar; 2],
    /// Of how many numbers of these types each element of a factor is the sum.
    pub parts: [usize; 2],
}

impl Found {
    /// `None` where the launch is no contraction of such factors.
    ///
    /// # Errors
    /// Where it is one, and something stands against tiles.
    pub fn find(kernel: &Kernel, launch: Launch) -> Result<Option<Self>, Refused> {
        let all = contractions(kernel, launch);
        let as_they_are = |one| scalars_of(kernel, one).map(|scalars| (scalars, [1; 2]));
        let in_parts = |one| parts_of(kernel, one, false).map(|parts| ([Scalar::BF16; 2], parts));
        let types = |one| as_they_are(one).or_else(|| in_parts(one));
        let Some((one, types)) = all.iter().find_map(|one| Some((one, types(one)?))) else {
            return all.iter().find_map(|one| in_a_wide_type(kernel, one)).map_or(Ok(None), Err);
        };
        Self::of(kernel, launch, one, types)
    }

    /// The same, where some factor would have to be taken apart first.
    pub fn whole(kernel: &Kernel, launch: Launch) -> Option<Self> {
        let all = contractions(kernel, launch);
        let (one, parts) = all.iter().find_map(|one| Some((one, parts_of(kernel, one, true)?)))?;
        Self::of(kernel, launch, one, ([Scalar::BF16; 2], parts)).ok()?
    }

    /// Whether a factor has still to be taken apart.
    pub fn is_whole(&self, side: usize) -> bool {
        self.parts[side] > 1 && self.factors[side].loads.len() != self.parts[side]
    }

    fn of(
        kernel: &Kernel,
        launch: Launch,
        one: &Contraction,
        (mut scalars, mut parts): ([Scalar; 2], [usize; 2]),
    ) -> Result<Option<Self>, Refused> {
        let refuse =
            |reason: &'static str| Err(Refused { reason: reason.into(), array: arrays(kernel, one) });
        let Some((forall, axes)) = only_loop(kernel, launch) else {
            return refuse("its loop does not stand alone, or the host cannot compute its bounds");
        };
        let axes = never_negative(kernel, axes);
        let body = kernel.insts[forall].regions[0];
        let [product] = one.products() else { return refuse("each term is a sum of several products") };
        if !product.outside.is_empty() || product.is_negative {
            return refuse(
                "each term has a factor that is the same for all of them: it belongs behind the sum",
            );
        }
        if !one.masks.is_empty() {
            return refuse("terms are left out");
        }
        let (steps, mut range) = match steps(kernel, forall, one, &axes) {
            Ok(steps) => steps,
            Err(reason) => return refuse(reason),
        };
        if kernel.insts[one.reduce].results.len() != 1 || !kernel.blocks[body].insts.contains(&one.reduce) {
            return refuse("the sum does not stand by itself in the loop");
        }
        let own = |class: Class| -> Vec<usize> {
            let is_own = |at: &usize| one.of(class).any(|axis| axis.index == axes[*at].index);
            (0..axes.len()).filter(is_own).collect()
        };
        let mut batch = own(Class::Batch);
        batch.extend(own(Class::Free));
        let mut outer = [own(Class::M), own(Class::N)];
        if let Some(range) = &mut range {
            match range.take_batches(kernel, &axes, &mut outer) {
                Ok(batches) => batch.extend(batches),
                Err(reason) => return refuse(reason),
            }
        }
        batch.sort_unstable();
        let mut affine = Affine::new(kernel);
        let sides = [(&product.left, scalars[0]), (&product.right, scalars[1])];
        let mut factors = sides.map(|(side, scalar)| {
            let value = value_of(kernel, one, side).unwrap_or(side.values[0]);
            factor(kernel, value, scalar)
        });
        if has_check(kernel, one.reduce) {
            return refuse("an index is checked in the sum");
        }
        if let Err(reason) = plain_body(kernel, body, one.reduce) {
            return refuse(reason);
        }
        if lies_along(kernel, &mut affine, body, &axes, &outer) == Some(0) {
            outer.swap(0, 1);
            factors.swap(0, 1);
            scalars.swap(0, 1);
            parts.swap(0, 1);
        }
        let reduce = one.reduce;
        let mut found =
            Self { forall, body, reduce, axes, steps, range, batch, outer, factors, scalars, parts };
        for side in 0..2 {
            found.factors[side].along_steps = found.runs_along_steps(kernel, &mut affine, side);
            found.factors[side].is_even = found.is_even(&mut affine, side);
        }
        Ok(Some(found))
    }

    /// Instructions of the loop's body beside the sum, and beside what computes its range.
    pub fn code(&self, kernel: &Kernel) -> usize {
        let blocks = kernel.blocks_in(self.body);
        let is_other = |inst: &&Inst| self.range.as_ref().is_none_or(|range| !range.needed.contains(**inst));
        let insts = |block: &Block| kernel.blocks[*block].insts.iter().filter(is_other).count();
        let all: usize = blocks.iter().map(insts).sum();
        all - insts(&kernel.insts[self.reduce].regions[0])
    }

    /// How many sums each result has: one of the largest parts, and one of the others.
    pub fn sums(&self) -> usize {
        if self.parts == [1; 2] { 1 } else { 2 }
    }

    /// Whether factors are rounded, as the schedule says that they may be.
    pub fn is_rounded(&self) -> bool {
        kind(self.scalars) == Atom::Tf32
    }

    /// The product of the extents of some axes.
    pub fn extent(axes: &[&LoopAxis]) -> Expr {
        let extents = axes.iter().map(|axis| axis.extent.clone());
        let product = extents.reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right));
        product.unwrap_or(Expr::Int(1))
    }

    /// The axes of rows, or of columns.
    pub fn of_side(&self, side: usize) -> Vec<&LoopAxis> {
        self.outer[side].iter().map(|at| &self.axes[*at]).collect()
    }

    /// The end of the range of steps that moves with the rows, or with the columns.
    pub fn of_row(&self, side: usize) -> Option<OfRow> {
        let row = self.range.as_ref()?.row?;
        self.outer[side].contains(&row.axis).then_some(row)
    }

    pub fn of_steps(&self) -> Vec<&LoopAxis> {
        self.steps.iter().collect()
    }

    fn is_even(&self, affine: &mut Affine<'_>, side: usize) -> bool {
        match (self.factors[side].loads.first(), &self.outer[side][..]) {
            (Some(load), [at]) => affine.step(*load, self.axes[*at].index).is_some(),
            _ => false,
        }
    }

    /// Whether the elements of a factor lie closer along the last reduced axis than along its last own one.
    fn runs_along_steps(&self, kernel: &Kernel, affine: &mut Affine<'_>, side: usize) -> bool {
        let factor = &self.factors[side];
        let mut loads = Vec::new();
        // Where it is loaded, and from which row, says nothing of its neighbours.
        match factor.loads.first() {
            Some(load) => loads.push(*load),
            None => crate::analysis::code(kernel, factor.value, &mut |inst, _| {
                if kernel.insts[inst].opcode.is_load() {
                    loads.push(inst);
                }
            }),
        }
        let mut closest = |axis: Option<&LoopAxis>| {
            let steps = loads.iter().filter_map(|load| step(affine, *load, axis?.index));
            steps.filter(|step| is_close(*step)).map(i64::abs).min().unwrap_or(i64::MAX)
        };
        closest(self.steps.last()) <= closest(self.outer[side].last().map(|at| &self.axes[*at]))
    }
}

/// The steps of a sum, with their range where the host cannot compute it.
fn steps(
    kernel: &Kernel,
    forall: Inst,
    one: &Contraction,
    axes: &[LoopAxis],
) -> Result<(Vec<LoopAxis>, Option<BlockRange>), &'static str> {
    if let Some(steps) = loop_axes(kernel, one.reduce) {
        return Ok((never_negative(kernel, steps), None));
    }
    let range = BlockRange::find(kernel, forall, one)?;
    let steps =
        range.steps(kernel, one.reduce, axes).ok_or("no array says about how many steps there are")?;
    Ok((vec![steps], Some(range)))
}

/// Axes whose extents are no less than 0: products of two that are would be blocks.
fn never_negative(kernel: &Kernel, axes: Vec<LoopAxis>) -> Vec<LoopAxis> {
    let at_least_none = |axis: LoopAxis| match kernel.never_negative(&axis.extent) {
        true => axis,
        false => LoopAxis { extent: block_count(kernel, &axis.extent, 1), ..axis },
    };
    axes.into_iter().map(at_least_none).collect()
}

/// Bytes below which elements count as neighbours.
fn is_close(step: i64) -> bool {
    step != 0 && step.abs() < 32
}

fn step(affine: &mut Affine<'_>, inst: Inst, index: Value) -> Option<i64> {
    affine.step(inst, index).flatten().as_ref().and_then(Polynomial::as_wrapped)
}

/// Why a product of narrow elements is one of wide factors: what is computed with them before is held by no narrow type. Only
/// who wrote it knows whether it may be rounded.
fn in_a_wide_type(kernel: &Kernel, one: &Contraction) -> Option<Refused> {
    let [product] = one.products() else { return None };
    if !is_of_matrices(one) || one.of(Class::K).next().is_none() {
        return None;
    }
    let sides = [&product.left, &product.right];
    [Scalar::BF16, Scalar::F16].into_iter().find_map(|scalar| {
        let takes = atom([scalar; 2]).is_some_and(|atom| atom.sum() == kernel.value_type(one.result));
        let holds: Vec<bool> = sides.iter().map(|side| side.exact.has(scalar)).collect();
        let wide: Vec<&&Side> = sides.iter().filter(|side| !side.exact.has(scalar)).collect();
        let loaded: Vec<Vec<(String, Scalar)>> = wide.iter().map(|side| loads_of(kernel, side)).collect();
        let is_narrow = |loads: &Vec<(String, Scalar)>| loads.iter().any(|(_, of)| *of == scalar);
        if !takes || holds == [true; 2] || !loaded.iter().all(is_narrow) {
            return None;
        }
        let mut names: Vec<String> = loaded.first()?.iter().map(|(name, _)| format!("`{name}`")).collect();
        names.dedup();
        let (names, ty, narrow) = (names.join(" and "), kernel.value_type(one.result).name(), scalar.name());
        let reason = format!(
            "the factor made of {names} is computed in {ty}; write `(…) as {narrow}` around it where it may be rounded"
        );
        Some(Refused { reason: reason.into(), array: arrays(kernel, one) })
    })
}

/// The arrays that a side is loaded from, with the types of the elements, in the order of the code.
fn loads_of(kernel: &Kernel, side: &Side) -> Vec<(String, Scalar)> {
    let mut found = Vec::new();
    for value in &side.values {
        crate::analysis::code(kernel, *value, &mut |inst, _| {
            if kernel.insts[inst].opcode.is_load()
                && let Payload::Access { buffer, leaf } = kernel.insts[inst].payload
            {
                let data = &kernel.buffers[buffer];
                found.push((data.name.clone(), data.element.leaves[leaf as usize].scalar));
            }
        });
    }
    found
}

/// The names of what the factors of a contraction are loaded from: `a` and `b`.
fn arrays(kernel: &Kernel, one: &Contraction) -> String {
    let Some(product) = one.products().first() else { return String::new() };
    let names =
        [&product.left, &product.right].map(|side| factor(kernel, side.values[0], Scalar::BF16).array);
    format!("`{}` and `{}`", names[0], names[1])
}

/// Whether a term checks something: tiles bring elements that several terms have, and check nothing.
fn has_check(kernel: &Kernel, reduce: Inst) -> bool {
    let mut found = false;
    kernel.walk(kernel.insts[reduce].regions[0], &mut |_, inst| {
        found |= kernel.insts[inst].opcode == Opcode::Check;
    });
    found
}

/// That a loop's body does beside the sum what tiles can, element by element.
fn plain_body(kernel: &Kernel, body: Block, reduce: Inst) -> Result<(), &'static str> {
    let region = kernel.insts[reduce].regions[0];
    let mut inside = EntitySet::new();
    let [mut read, mut written] = [EntitySet::new(), EntitySet::new()];
    let mut against = None;
    kernel.walk(region, &mut |_, inst| {
        inside.insert(inst);
        if kernel.insts[inst].opcode.is_load() {
            read.extend(buffer_of(kernel, inst));
        }
    });
    let mut accesses = Vec::new();
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let info = data.opcode.info();
        match (data.opcode, &data.payload) {
            _ if inst == reduce || inside.contains(inst) && !data.opcode.is_load() => {}
            (Opcode::Forall | Opcode::Reduce | Opcode::For | Opcode::While, _) => {
                against = against.or(Some("another loop, or another sum, stands beside it"));
            }
            (Opcode::Atomic, _) => against = against.or(Some("an atomic combines elements")),
            (_, Payload::Access { buffer, .. }) if info.phases.contains(Phase::Tiled) => {
                if kernel.buffers[*buffer].kind == BufferKind::Private {
                    against = against.or(Some("an array of each iteration's own"));
                }
                if !data.opcode.is_load() {
                    written.insert(*buffer);
                }
                if !inside.contains(inst) {
                    accesses.push(inst);
                }
            }
            (Opcode::If | Opcode::Yield | Opcode::Check, _) => {}
            _ if info.effect == Effect::Pure && info.phases.contains(Phase::Tiled) => {}
            _ => against = against.or(Some("something that tiles cannot do stands beside it")),
        }
    });
    if let Some(against) = against {
        return Err(against);
    }
    if read.iter().any(|buffer| written.contains(buffer)) {
        return Err("what it reads is written");
    }
    let mut affine = Affine::new(kernel);
    for one in &accesses {
        let of = buffer_of(kernel, *one);
        let mut subscripts = |inst: Inst| -> Vec<_> {
            kernel.subscripts(&kernel.insts[inst]).iter().map(|value| affine.form(*value)).collect()
        };
        let same = accesses.iter().filter(|other| buffer_of(kernel, **other) == of);
        if of.is_some_and(|of| written.contains(of)) {
            let own = subscripts(*one);
            if same.into_iter().any(|other| subscripts(*other) != own) {
                return Err("an array that is written is accessed at other subscripts, too");
            }
        }
    }
    Ok(())
}

/// Along the last axis of which side neighbours lie that are stored; `None` where along neither.
fn lies_along(
    kernel: &Kernel,
    affine: &mut Affine<'_>,
    body: Block,
    axes: &[LoopAxis],
    outer: &[Vec<usize>; 2],
) -> Option<usize> {
    let mut stores = Vec::new();
    kernel.walk(body, &mut |_, inst| {
        let info = kernel.insts[inst].opcode.info();
        if info.effect == Effect::Write && buffer_of(kernel, inst).is_some() {
            stores.push(inst);
        }
    });
    let mut along = |side: usize| {
        let index = outer[side].last().map(|at| axes[*at].index);
        index.is_some_and(|index| stores.iter().any(|inst| step(affine, *inst, index).is_some_and(is_close)))
    };
    if along(1) { Some(1) } else { along(0).then_some(0) }
}
