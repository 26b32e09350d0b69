//! Which elements two launches access, and whether that allows to make them one.

use super::nest::{Nest, Walk, access};
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::Expr;
use crate::mutants::mutant;
use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

/// A subscript, in words that both launches share.
#[derive(Clone, PartialEq, Debug)]
enum Place {
    /// The index of a common axis.
    Common(usize),
    /// The index of the loop around.
    Index,
    Uniform(Expr),
}

/// An array's accesses in one launch.
#[derive(Default)]
struct Accesses {
    stores: Vec<Inst>,
    loads: Vec<Inst>,
    others: bool,
    /// Of each of them.
    at: FxHashMap<Inst, Vec<Place>>,
    /// Of all of them, where that is the same.
    places: Option<Vec<Place>>,
    differ: bool,
    /// At which subscript each common axis stands, where that is the same in all of them.
    axes: Option<Vec<usize>>,
    /// Some access is at the element of another iteration, or may be.
    strays: bool,
    /// Some access moves with a loop's index.
    walked: bool,
}

/// A value that the first launch stores in each iteration, and the loads of it in the second one.
pub struct Stored {
    pub store: Inst,
    pub loads: Vec<Inst>,
}

/// What goes from the first launch to the second one.
#[derive(Default)]
pub struct Handed {
    pub stored: Vec<Stored>,
    /// Loops of a launch that runs once rest on it.
    pub to_loops: bool,
}

type Side<'s> = (&'s Nest, &'s Walk);

/// What the second launch loads of what the first one stores in each iteration; `None` where the launches may not become
/// one, or do not share what they read.
pub fn handed(kernel: &Kernel, first: Side, second: Side, axes: &[(usize, usize)]) -> Option<Handed> {
    let common: Vec<Value> = axes.iter().map(|pair| first.0.params[pair.0]).collect();
    let before = accesses(kernel, first, &common);
    let common: Vec<Value> = axes.iter().map(|pair| second.0.params[pair.1]).collect();
    let after = accesses(kernel, second, &common);
    let mut all = Handed::default();
    let mut shares = false;
    let walks = first.1.bounds.is_some() && second.1.bounds.is_some();
    let has_loops = first.1.bounds.is_some() || second.1.bounds.is_some();
    let mut both: Vec<Buffer> = before.keys().copied().filter(|buffer| after.contains_key(buffer)).collect();
    both.sort_unstable();
    for buffer in both {
        let (before, after) = (&before[&buffer], &after[&buffer]);
        shares |= !walks || before.walked && after.walked;
        if before.stores.is_empty() && after.stores.is_empty() && !before.others && !after.others {
            continue;
        }
        if before.others || after.others {
            return None;
        }
        if let Some(stored) = at_one_place(kernel, first.0, (before, after), axes.len()) {
            let rests = || reaches_loops(kernel, second.0.body, &after.loads);
            all.to_loops |= !stored.is_empty() && axes.is_empty() && rests();
            all.stored.extend(stored);
            continue;
        }
        // Without loops an iteration does first what the one launch did, then what the other did.
        let own = before.axes.is_some() && before.axes == after.axes && !before.strays && !after.strays;
        if has_loops || !mutant!("fuse_launches: another iteration's element is written", own, true) {
            return None;
        }
        all.stored.extend(by_literals(kernel, first.0, (before, after)));
    }
    shares.then_some(all)
}

/// What is handed on where the first launch stores several elements in each iteration, which literals tell apart: the
/// components of a vector. A load that may be of any of them stays.
fn by_literals(kernel: &Kernel, first: &Nest, (before, after): (&Accesses, &Accesses)) -> Vec<Stored> {
    let element = |inst: &Inst| {
        let place = before.at.get(inst).or(after.at.get(inst))?;
        let is_known = |place: &Place| matches!(place, Place::Common(_) | Place::Uniform(Expr::Int(_)));
        place.iter().all(is_known).then_some((place, &kernel.insts[*inst].payload))
    };
    let mut found: Vec<Stored> = Vec::new();
    for store in &before.stores {
        let is_known = |known: &Stored| element(&known.store) == element(store);
        let at_once = kernel.blocks[first.body].insts.contains(store);
        if element(store).is_none() || !at_once || found.iter().any(is_known) || !after.stores.is_empty() {
            return Vec::new();
        }
        let of_it = |load: &Inst| {
            let same = element(load) == element(store);
            mutant!("fuse_launches: all components are one", same, element(load).is_some())
        };
        found.push(Stored { store: *store, loads: after.loads.iter().copied().filter(of_it).collect() });
    }
    found
}

/// What is handed on where all accesses to an array are at one place: nothing of the elements of a row, each of which the loop
/// of both accesses in one iteration. `None` where they are at several places, or a value may not be handed on.
fn at_one_place(
    kernel: &Kernel,
    first: &Nest,
    (before, after): (&Accesses, &Accesses),
    axes: usize,
) -> Option<Vec<Stored>> {
    let same = !before.differ && !after.differ && before.places == after.places;
    let places = before.places.as_ref()?;
    let every = (0..axes).all(|axis| places.contains(&Place::Common(axis)));
    if !mutant!("fuse_launches: another element is accessed", same, true) || !every {
        return None;
    }
    if places.contains(&Place::Index) {
        return Some(Vec::new());
    }
    // A value of an iteration: it is handed on.
    let handed = before.loads.is_empty() && after.stores.is_empty();
    let at_once = before.stores.iter().all(|store| kernel.blocks[first.body].insts.contains(store));
    if !handed || !at_once {
        return None;
    }
    let leaf = |inst: &Inst| &kernel.insts[*inst].payload;
    let mut loads = after.loads.clone();
    let mut found: Vec<Stored> = Vec::new();
    for store in &before.stores {
        if found.iter().any(|known| leaf(&known.store) == leaf(store)) {
            return None;
        }
        let of_it = loads.extract_if(.., |load| leaf(load) == leaf(store)).collect();
        found.push(Stored { store: *store, loads: of_it });
    }
    loads.is_empty().then_some(found)
}

/// Whether a loop or a branch of a body, or something in it, uses what is computed of what is loaded.
fn reaches_loops(kernel: &Kernel, body: Block, loads: &[Inst]) -> bool {
    let mut of_loads = EntitySet::new();
    kernel.blocks[body].insts.iter().any(|inst| {
        let data = &kernel.insts[*inst];
        let rests = |inst: Inst| {
            let mut arguments = kernel.insts[inst].arguments.iter();
            loads.contains(&inst) || arguments.any(|value| of_loads.contains(*value))
        };
        let mut any = rests(*inst);
        for region in &data.regions {
            kernel.walk(*region, &mut |_, inst| any |= rests(inst));
        }
        if any {
            of_loads.extend(data.results.iter().copied());
        }
        any && !data.regions.is_empty()
    })
}

fn accesses(kernel: &Kernel, (nest, walk): Side, common: &[Value]) -> FxHashMap<Buffer, Accesses> {
    let mut found: FxHashMap<Buffer, Accesses> = FxHashMap::default();
    kernel.walk(nest.body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        if let Payload::Atomic { buffer, .. } = data.payload {
            found.entry(buffer).or_default().others = true;
        }
        let Some((buffer, _, subscripts)) = access(kernel, inst) else { return };
        let known = found.entry(buffer).or_default();
        match data.opcode {
            Opcode::Store => known.stores.push(inst),
            Opcode::Load => known.loads.push(inst),
            _ => known.others = true,
        }
        let place = |value: &Value| match common.iter().position(|param| param == value) {
            Some(axis) => Some(Place::Common(axis)),
            None if walk.indices.contains(value) => Some(Place::Index),
            None => kernel.symbolic(*value).map(Place::Uniform),
        };
        let places: Vec<Option<Place>> = subscripts.iter().map(place).collect();
        let at = |axis| places.iter().position(|place| *place == Some(Place::Common(axis)));
        let axes: Option<Vec<usize>> = (0..common.len()).map(at).collect();
        known.strays |= axes.is_none() || known.axes.is_some() && known.axes != axes;
        known.axes = known.axes.take().or(axes);
        let places: Option<Vec<Place>> = places.into_iter().collect();
        known.at.extend(places.clone().map(|places| (inst, places)));
        known.walked |= places.as_ref().is_none_or(|places| places.contains(&Place::Index));
        known.differ |= places.is_none() || known.places.is_some() && known.places != places;
        known.places = known.places.take().or(places);
    });
    found
}
