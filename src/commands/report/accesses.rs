//! Which addresses a warp accesses, sorted into those that look alike.

use super::listing::Place;
use krn_compiler::ir::kernel::Kernel;
use krn_compiler::{SharedArray, shared_arrays};
use krn_runtime::emulator::{Kind, TracedAccess};
use krn_runtime::profile::TracedLaunch;

/// Accesses of an entry that are drawn as one picture.
pub struct Alike {
    pub entry: String,
    pub place: Option<Place>,
    pub array: String,
    /// How many instructions of PTX do the same, further along.
    pub instructions: usize,
    pub access: TracedAccess,
    /// In shared memory: the same without padding or exchange of places, where there is any.
    pub plain: Option<TracedAccess>,
}

/// What decides how an access looks: not where it starts, as long as that is as far into a sector.
fn same(one: &TracedAccess, other: &TracedAccess) -> bool {
    let first = |access: &TracedAccess| access.lanes().next().map_or(0, |(_, address)| address);
    let (start, other_start) = (first(one), first(other));
    let step = |access: &TracedAccess, start: u64| -> Vec<u64> {
        access.lanes().map(|(_, address)| address.wrapping_sub(start)).collect()
    };
    (one.kind, one.shared, one.lane_bytes, one.mask)
        == (other.kind, other.shared, other.lane_bytes, other.mask)
        && (one.shared || start % 32 == other_start % 32)
        && step(one, start) == step(other, other_start)
}

/// The accesses of all launches; entries that are launched again are looked at once.
pub fn accesses(kernel: Option<&Kernel>, launches: &[TracedLaunch]) -> Vec<Alike> {
    let shared = kernel.map(shared_arrays).unwrap_or_default();
    let mut all: Vec<Alike> = Vec::new();
    for (at, launch) in launches.iter().enumerate() {
        if launches[..at].iter().any(|known| known.entry == launch.entry) {
            continue;
        }
        for access in &launch.accesses {
            let location = access.location.as_ref();
            let place = location.map(|at| Place { line: at.line, column: at.column });
            let tile = shared.iter().find(|known| known.entry == launch.entry && holds(known, access));
            let array = match &access.allocation {
                Some((name, _)) => name.clone(),
                None => tile.map_or_else(|| "shared memory".to_string(), |tile| tile.name.clone()),
            };
            let known = all.iter_mut().find(|known| {
                known.entry == launch.entry
                    && known.place == place
                    && known.array == array
                    && same(&known.access, access)
            });
            match known {
                Some(known) => known.instructions += 1,
                None => all.push(Alike {
                    entry: launch.entry.clone(),
                    place,
                    array,
                    instructions: 1,
                    plain: tile.and_then(|tile| plain(tile, access)),
                    access: access.clone(),
                }),
            }
        }
    }
    all
}

fn holds(array: &SharedArray, access: &TracedAccess) -> bool {
    let first = access.lanes().next().map(|(_, address)| address);
    access.shared && first.is_some_and(|at| (array.offset..array.offset + array.bytes).contains(&at))
}

/// The access as it were if the tile lay without padding.
fn plain(array: &SharedArray, access: &TracedAccess) -> Option<TracedAccess> {
    let tile = array.tile.filter(|tile| tile.pitch != tile.row || tile.swizzle != 0)?;
    let place = |address: u64| {
        let (element, rest) =
            (address.wrapping_sub(array.offset) / array.element_bytes, address % array.element_bytes);
        array.offset + tile.plain(element) * array.element_bytes + rest
    };
    Some(access.moved(place))
}

/// `load`, `store`, `copy`, `atomic`.
pub fn verb(kind: Kind) -> &'static str {
    match kind {
        Kind::GlobalLoad | Kind::SharedLoad | Kind::LocalLoad | Kind::ConstLoad => "load",
        Kind::GlobalStore | Kind::SharedStore | Kind::LocalStore => "store",
        Kind::Copy => "copy",
        _ => "atomic",
    }
}
