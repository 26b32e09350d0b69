//! What a launch looks like whose iterations walk one axis several times.

use crate::analysis::{Affine, Atom, Polynomial, Uses};
use crate::ir::entities::{Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::straight::MOST_ITERATIONS;
use crate::passes::tile::found::{
    ATOMIC, Found, Kind, LoopAxis, OWN, Refused, Seen, buffer_of, loop_axes, only_loop, scalar_of, walk,
    walk_inst,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A launch that is one loop whose iterations walk one axis several times.
pub struct Columns {
    /// The loop's axes, and the walked one last.
    pub found: Found,
    /// What goes along the walked axis.
    pub loops: Vec<Inst>,
    /// Arrays of the iteration's own, with an element for each one of the walked axis: tiles.
    pub own: FxHashSet<Buffer>,
    /// Loads that find what an earlier one has brought.
    pub same: FxHashMap<Inst, Inst>,
    /// Along which axis of the loop neighbours lie in memory.
    pub lanes: usize,
    /// 32-bit registers that an element takes of all that is held of a column.
    pub words: i64,
}

/// An access, and where it stands.
struct Place {
    inst: Inst,
    guards: Vec<Value>,
    /// The index of the loop that it is in.
    index: Option<Value>,
    /// Its subscripts, with the walked index by one name; `None` where that cannot be said.
    subscripts: Option<Vec<Polynomial>>,
}

impl Columns {
    /// `None` where the launch is no such loop, or does not read the same elements in two of its loops.
    ///
    /// # Errors
    /// Where it does, and something stands against tiles.
    pub fn find(kernel: &Kernel, launch: Launch) -> Result<Option<Self>, Refused> {
        let Some((forall, mut axes)) = only_loop(kernel, launch) else { return Ok(None) };
        let body = kernel.insts[forall].regions[0];
        let insts = &kernel.blocks[body].insts;
        let is_loop = |inst: &Inst| matches!(kernel.insts[*inst].opcode, Opcode::Reduce | Opcode::Forall);
        let loops: Vec<Inst> = insts.iter().copied().filter(is_loop).collect();
        let Some((walked, indices)) = walked(kernel, &loops) else { return Ok(None) };
        let common = walked.index;
        axes.push(walked);
        let last = axes.len() - 1;
        let mut found = Found { forall, body, axes, accesses: Vec::new() };
        let mut against = None;
        let mut is_plain = true;
        let mut places = Vec::new();
        let mut visit = |inst: Inst, guards: &[Value], index: Option<Value>| match Kind::of(kernel, inst) {
            Kind::Pure => {}
            Kind::Access | Kind::Own => {
                places.push(Place { inst, guards: guards.to_vec(), index, subscripts: None });
            }
            Kind::Atomic => against = Some(ATOMIC),
            Kind::Loop | Kind::Other => is_plain = false,
        };
        for inst in insts {
            match loops.iter().position(|known| known == inst) {
                Some(at) => {
                    let region = kernel.insts[*inst].regions[0];
                    walk(kernel, region, &mut Vec::new(), &mut |inst, guards| {
                        visit(inst, guards, Some(indices[at]))
                    });
                }
                None => {
                    walk_inst(kernel, *inst, &mut Vec::new(), &mut |inst, guards| visit(inst, guards, None));
                }
            }
        }
        if !is_plain {
            return Ok(None);
        }
        let mut affine = Affine::new(kernel);
        for place in &mut places {
            place.subscripts = subscripts(kernel, &mut affine, place, common);
            found.axes[last].index = place.index.unwrap_or(common);
            let seen = found.see(kernel, &mut affine, place.inst, &place.guards);
            found.accesses.push(seen);
        }
        found.axes[last].index = common;
        if is_short_window(kernel, loops[0], &found, &places, common) {
            return Ok(None);
        }
        let own = own(kernel, launch, &places, common);
        let Some(lanes) = lanes(kernel, &found, &own) else { return Ok(None) };
        let (same, reused) = same(kernel, &places, &own);
        let Some(array) = reused else { return Ok(None) };
        let named = |reason: &'static str| Refused { reason: reason.into(), array: array.clone() };
        if let Some(reason) = against.or_else(|| in_the_way(kernel, &places, &own)) {
            return Err(named(reason));
        }
        let words = words(kernel, &found, (&places, &indices), &same, &own);
        Ok(Some(Self { found, loops, own, same, lanes, words }))
    }

    /// The walked axis.
    pub fn walked(&self) -> usize {
        self.found.axes.len() - 1
    }

    /// The order in which blocks follow each other: along the lanes, then along the other axes, the last ones first.
    pub fn order(&self) -> Vec<usize> {
        let others = (0..self.walked()).rev().filter(|at| *at != self.lanes);
        std::iter::once(self.lanes).chain(others).collect()
    }
}

/// The one axis that all loops walk, with its index in the first of them, and the index in each.
fn walked(kernel: &Kernel, loops: &[Inst]) -> Option<(LoopAxis, Vec<Value>)> {
    if loops.len() < 2 {
        return None;
    }
    let mut axes = Vec::with_capacity(loops.len());
    for inst in loops {
        let mut own = loop_axes(kernel, *inst)?;
        let axis = own.pop().filter(|_| own.is_empty())?;
        axes.push(axis);
    }
    let indices = axes.iter().map(|axis| axis.index).collect();
    let first = axes.swap_remove(0);
    let are_alike = axes.iter().all(|axis| axis.low == first.low && axis.extent == first.extent);
    are_alike.then_some((first, indices))
}

/// The subscripts of an access with the index of its loop under the common name.
fn subscripts(
    kernel: &Kernel,
    affine: &mut Affine<'_>,
    place: &Place,
    common: Value,
) -> Option<Vec<Polynomial>> {
    let subscripts = kernel.subscripts(&kernel.insts[place.inst]);
    let renamed = |value: &Value| {
        let form = affine.form(*value);
        let Some(index) = place.index else { return Some((*form).clone()) };
        // Some other value that changes with the index.
        let mut hides = |atom: &Atom| matches!(atom, Atom::Value(value) if *value != index && affine.depends(*value, index));
        if form.atoms().iter().any(&mut hides) {
            return None;
        }
        form.substitute(&mut |atom| {
            let atom = if atom == Atom::Value(index) { Atom::Value(common) } else { atom };
            Some(Polynomial::atom(atom))
        })
    };
    subscripts.iter().map(renamed).collect()
}

/// Whether straight code will walk an axis along which an access is of a window, `x[s + k]`: neighbours along the other axis have
/// most of its elements, and a thread of several of them loads each once (`reuse`).
fn is_short_window(kernel: &Kernel, walk: Inst, found: &Found, places: &[Place], common: Value) -> bool {
    let outer = &found.axes[..found.axes.len() - 1];
    let has = |form: &Polynomial, index: Value| form.contains(Atom::Value(index));
    let is_window = |form: &Polynomial| has(form, common) && outer.iter().any(|axis| has(form, axis.index));
    kernel.literal_iterations(walk).is_some_and(|steps| steps <= MOST_ITERATIONS)
        && places.iter().any(|place| place.subscripts.iter().flatten().any(is_window))
}

/// Whether an access moves with an axis.
fn moves(seen: &Seen, axis: usize) -> bool {
    seen.steps[axis].as_ref().is_none_or(|step| !step.is_zero())
}

/// Whether an access moves with the walked axis, the last one, and with another one.
fn is_of_columns(seen: &Seen, walked: usize) -> bool {
    moves(seen, walked) && (0..walked).any(|axis| moves(seen, axis))
}

/// The axis of the loop along which all arrays run that move with it and with the walked one.
fn lanes(kernel: &Kernel, found: &Found, own: &FxHashSet<Buffer>) -> Option<usize> {
    let walked = found.axes.len() - 1;
    let is_own = |seen: &&Seen| buffer_of(kernel, seen.inst).is_some_and(|buffer| own.contains(&buffer));
    let mut firsts = found
        .accesses
        .iter()
        .filter(|seen| is_of_columns(seen, walked) && !is_own(seen))
        .map(|seen| seen.run.first().copied());
    let first = firsts.next()??;
    (first != walked && firsts.all(|other| other == Some(first))).then_some(first)
}

/// Loads that find what an earlier one has brought, and an array of which two loops read the same elements, or the
/// iteration's own.
fn same(
    kernel: &Kernel,
    places: &[Place],
    own: &FxHashSet<Buffer>,
) -> (FxHashMap<Inst, Inst>, Option<String>) {
    let mut same = FxHashMap::default();
    let mut reused = None;
    let mut stored: FxHashSet<Buffer> = FxHashSet::default();
    let mut known: Vec<&Place> = Vec::new();
    for place in places {
        let data = &kernel.insts[place.inst];
        let Some(buffer) = buffer_of(kernel, place.inst) else { continue };
        let name = || Some(kernel.buffers[buffer].name.clone());
        if own.contains(&buffer) {
            reused = reused.or_else(name);
            continue;
        }
        if !data.opcode.is_load() {
            stored.extend(mutant!("tile: a load finds what was there before a store", Some(buffer), None));
            continue;
        }
        let is_sure = data.opcode == Opcode::Load && place.guards.is_empty();
        if !is_sure || place.index.is_none() || place.subscripts.is_none() || stored.contains(&buffer) {
            continue;
        }
        let is_same = |other: &&&Place| {
            kernel.insts[other.inst].payload == data.payload
                && mutant!("tile: another element of a column", other.subscripts == place.subscripts, true)
        };
        match known.iter().find(is_same) {
            Some(earlier) => {
                same.insert(place.inst, earlier.inst);
                if earlier.index != place.index {
                    reused = reused.or_else(name);
                }
            }
            None => known.push(place),
        }
    }
    (same, reused)
}

/// The accesses of each array, in the order of the program.
fn by_array<'p>(kernel: &Kernel, places: &'p [Place]) -> BTreeMap<Buffer, Vec<&'p Place>> {
    let mut of_array: BTreeMap<Buffer, Vec<&Place>> = BTreeMap::new();
    for place in places {
        if let Some(buffer) = buffer_of(kernel, place.inst) {
            of_array.entry(buffer).or_default().push(place);
        }
    }
    of_array
}

/// What stands against tiles: arrays that are written and accessed at several places.
fn in_the_way(kernel: &Kernel, places: &[Place], own: &FxHashSet<Buffer>) -> Option<&'static str> {
    by_array(kernel, places).into_iter().find_map(|(buffer, places)| {
        if own.contains(&buffer) {
            return None;
        }
        if Kind::of(kernel, places[0].inst) == Kind::Own {
            return Some(OWN);
        }
        let is_store = |place: &&Place| !kernel.insts[place.inst].opcode.is_load();
        let stores = places.iter().copied().filter(is_store).count();
        // What is written alone, by one thread for each iteration, is written in the body's order.
        let is_inside = |place: &&Place| place.index.is_some();
        let of_one_thread = places.iter().all(|place| is_inside(place) == is_inside(&places[0]));
        let in_order = stores == places.len() && of_one_thread;
        let several = stores > 0 && !in_order && !at_one_place(&places);
        several.then_some("an array that is written is accessed at other subscripts, too")
    })
}

/// Whether all accesses have the same subscripts.
fn at_one_place(places: &[&Place]) -> bool {
    places.iter().all(|place| place.subscripts.is_some() && place.subscripts == places[0].subscripts)
}

/// Arrays of the iteration's own that are tiles: each iteration has an element for each one of the walked axis, which is
/// written before it is read, and nobody else reads it.
fn own(kernel: &Kernel, launch: Launch, places: &[Place], common: Value) -> FxHashSet<Buffer> {
    let is_only_here = |buffer: Buffer| {
        let mut elsewhere = kernel.bodies().filter(|other| *other != kernel.launches[launch].body);
        !elsewhere.any(|body| Uses::of(kernel, body, buffer).any())
    };
    let of_array = by_array(kernel, places).into_iter();
    let own = of_array.filter(|(buffer, places)| {
        let is_own = match kernel.buffers[*buffer].kind {
            BufferKind::Private => true,
            BufferKind::Scratch => is_only_here(*buffer),
            _ => false,
        };
        is_own && is_tile(kernel, places, common)
    });
    own.map(|(buffer, _)| buffer).collect()
}

/// Whether accesses are of one element for each one of the walked axis, which is written first.
fn is_tile(kernel: &Kernel, places: &[&Place], common: Value) -> bool {
    let is_element = |form: &Polynomial| {
        form.subtract(&Polynomial::atom(Atom::Value(common))).is_some_and(|rest| rest.as_constant().is_some())
    };
    let forms = places[0].subscripts.as_deref().unwrap_or_default();
    let mut written: FxHashSet<u32> = FxHashSet::default();
    at_one_place(places)
        && forms.iter().any(is_element)
        && places.iter().all(|place| {
            let data = &kernel.insts[place.inst];
            let Payload::Access { leaf, .. } = data.payload else { return false };
            let is_sure = place.guards.is_empty() && place.index.is_some();
            is_sure
                && match data.opcode {
                    Opcode::Store => {
                        written.insert(leaf);
                        true
                    }
                    Opcode::Load => written.contains(&leaf),
                    _ => false,
                }
        })
}

/// From before which loop to before which one something is held, and in how many 32-bit registers an element.
struct Held {
    first: usize,
    last: usize,
    words: i64,
}

/// 32-bit registers of an element of all that is held of a column at once. Loads come first, and what they bring is held up to
/// the last loop that needs it; an array of the iteration's own from the loop that writes it.
fn words(
    kernel: &Kernel,
    found: &Found,
    (places, loops): (&[Place], &[Value]),
    same: &FxHashMap<Inst, Inst>,
    own: &FxHashSet<Buffer>,
) -> i64 {
    let walked = found.axes.len() - 1;
    let mut held: BTreeMap<(Buffer, u32, Option<Inst>), Held> = BTreeMap::new();
    for (place, seen) in places.iter().zip(&found.accesses) {
        let data = &kernel.insts[place.inst];
        let Payload::Access { buffer, leaf } = data.payload else { continue };
        let Some(at) = loops.iter().position(|index| Some(*index) == place.index) else { continue };
        let words = if scalar_of(kernel, place.inst).size() > 4 { 2 } else { 1 };
        let (key, first, last) = match (own.contains(&buffer), data.opcode.is_load()) {
            (true, false) => ((buffer, leaf, None), at + 1, at + 1),
            (true, true) => ((buffer, leaf, None), at, at),
            // What all columns share, as gains, is there once, and needed once.
            (false, true) if is_of_columns(seen, walked) => {
                let earlier = same.get(&place.inst).copied().unwrap_or(place.inst);
                ((buffer, leaf, Some(earlier)), 0, at)
            }
            _ => continue,
        };
        let range = held.entry(key).or_insert(Held { first, last, words });
        range.last = range.last.max(last);
    }
    let before = |at: usize| -> i64 {
        held.values().filter(|held| (held.first..=held.last).contains(&at)).map(|held| held.words).sum()
    };
    (0..=loops.len()).map(before).max().unwrap_or(1).max(1)
}
