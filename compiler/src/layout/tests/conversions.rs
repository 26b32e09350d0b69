//! Conversions do what they say: each way is run on values that are their elements' numbers.

use super::*;

/// Runs a conversion and says whether each place then holds what the other layout says.
fn is_right(from: &ValueLayout, to: &ValueLayout, bits: u64, conversion: &Conversion) -> bool {
    let to = from.alike(to).unwrap();
    let [_, lanes, warps, clusters] = from.extents();
    let results = to.extent(Dimension::Register);
    let held = |register, lane, warp, cluster| from.apply([register, lane, warp, cluster]);
    for (cluster, warp) in (0..clusters).flat_map(|cluster| (0..warps).map(move |warp| (cluster, warp))) {
        let mut values = vec![vec![None; results as usize]; lanes as usize];
        match conversion {
            Conversion::Nothing | Conversion::Registers(_) => {
                for (lane, register) in (0..lanes).flat_map(|lane| (0..results).map(move |it| (lane, it))) {
                    let name = if let Conversion::Registers(names) = conversion {
                        names[register as usize]
                    } else {
                        register
                    };
                    values[lane as usize][register as usize] = Some(held(name, lane, warp, cluster));
                }
            }
            Conversion::Shuffles(rounds) => {
                for round in rounds {
                    for (lane, values) in values.iter_mut().enumerate() {
                        let other = round.from[lane];
                        let got = held(round.publish[other as usize], other, warp, cluster);
                        if let Some(keep) = round.keep[lane] {
                            values[keep as usize] = Some(got);
                        }
                    }
                }
            }
            Conversion::Shared(staged) => {
                let (store, load) = (
                    Access::new(from, &staged.memory, bits).unwrap(),
                    Access::new(&to, &staged.memory, bits).unwrap(),
                );
                let mut cells = std::collections::BTreeMap::new();
                for (lane, other) in (0..lanes).flat_map(|lane| (0..warps).map(move |warp| (lane, warp))) {
                    for register in staged.stores.registers.concat() {
                        let place = [register, lane, other, cluster];
                        cells.insert(store.offset(place).known, from.apply(place));
                    }
                }
                for (lane, register) in (0..lanes).flat_map(|lane| (0..results).map(move |it| (lane, it))) {
                    let offset = load.offset([register, lane, warp, cluster]).known;
                    values[lane as usize][register as usize] = cells.get(&offset).cloned();
                }
            }
        }
        for (lane, register) in (0..lanes).flat_map(|lane| (0..results).map(move |it| (lane, it))) {
            if values[lane as usize][register as usize] != Some(to.apply([register, lane, warp, cluster])) {
                return false;
            }
        }
    }
    true
}

fn convert(from: &str, to: &str, bits: u64) -> Conversion {
    let (from, to) = (value(from), value(to));
    let conversion = from.convert(&to, bits, &costs()).unwrap().unwrap();
    assert!(is_right(&from, &to, bits, &conversion), "{from} to {to}: {conversion:?}");
    conversion
}

fn staged(from: &str, to: &str, bits: u64) -> Staged {
    match convert(from, to, bits) {
        Conversion::Shared(staged) => *staged,
        other => panic!("{from} to {to}: {other:?}"),
    }
}

#[test]
fn the_same_is_nothing_and_names_of_registers_are_free() {
    assert_eq!(convert("i = lane:32 · register:4", "i = lane:32 · register:4", 32), Conversion::Nothing);
    let names = convert(
        "i = register:2 · lane:32, j = register:2",
        "i = register:2@1 · lane:32, j = register:2@2",
        32,
    );
    assert_eq!(names, Conversion::Registers(vec![0, 2, 1, 3]));
    // A value that all lanes hold is sliced out of nothing, also into more registers.
    let names = convert("_ = lane:32, i = register:2", "_ = register:2@1 · lane:32, i = register:2@2", 32);
    assert_eq!(names, Conversion::Registers(vec![0, 0, 1, 1]));
}

#[test]
fn a_transposition_in_a_warp_shuffles_each_value_once() {
    let cheap = Costs { shuffle: 4, wavefront: 10, ..costs() };
    let shuffled = |from: &str, to: &str| {
        let (from, to) = (value(from), value(to));
        let found = from.convert(&to, 32, &cheap).unwrap().unwrap();
        assert!(is_right(&from, &to, 32, &found));
        let Conversion::Shuffles(rounds) = found else { panic!("no shuffles") };
        rounds
    };
    let rounds = shuffled("i = lane:2, j = register:2", "i = register:2, j = lane:2");
    // One value of each lane stays; the other one goes over.
    assert_eq!(rounds.iter().filter(|round| !round.is_local()).count(), 1);
    // All lanes read one at a time: a shuffle for each register of the result, not for each distance.
    let rounds = shuffled("i = lane:32", "_ = lane:32, i = register:32");
    assert_eq!(rounds.len(), 32);
}

#[test]
fn an_accumulator_becomes_rows_without_conflicts() {
    let fragment = "i = warp:4 · register:2@2 · lane:8, j = register:8@4 · lane:4 · register:2@1";
    for bits in [16, 32] {
        let found = staged(fragment, "i = warp:4 · register:8@4 · lane:2, j = lane:16 · register:4@1", bits);
        assert_eq!(found.conflicts(), 0, "{bits} bits: {}", found.memory);
        assert_eq!(found.loads.width, 4);
    }
}

#[test]
fn a_transposed_tile_has_a_swizzle_and_a_counted_one_a_pad() {
    let found = staged("i = register:4 · warp:8, j = lane:32", "i = lane:32, j = register:4 · warp:8", 32);
    assert_eq!((found.conflicts(), found.scope), (0, Scope::Block), "{}", found.memory);
    assert!(found.memory.to_string().contains('^'), "{}", found.memory);
    let found =
        staged("i = register:3 · warp:8, j = lane:32", "i = lane:8 · register:3, j = warp:8 · lane:4", 32);
    assert_eq!(found.conflicts(), 0, "{}", found.memory);
    // Of 24 rows of 20 words nothing can be xored.
    let found = staged(
        "i = register:3 · warp:8 · lane:4, j = lane:5",
        "i = lane:4 · register:3 · warp:8, j = lane:5",
        32,
    );
    assert_eq!(found.conflicts(), 0, "{}", found.memory);
}

/// All layouts of a large tile at once: between a product's threads and an accumulator's.
#[test]
fn a_tile_of_128_by_256_is_turned_in_reasonable_time() {
    let product =
        "i = warp:2 · register:4 · lane:4 · register:4, j = warp:4 · register:2 · lane:8 · register:4";
    let accumulator = "i = warp:8 · register:2@2 · lane:8, j = register:32@4 · lane:4 · register:2@1";
    let start = std::time::Instant::now();
    let found = staged(product, accumulator, 32);
    assert_eq!(found.conflicts(), 0, "{}", found.memory);
    println!("{} in {:?}: {:?}", found.memory, start.elapsed(), found.wavefronts);
}

#[test]
fn scopes_are_the_smallest() {
    let layout = value("i = warp:4 · lane:8, j = warp:2 · lane:4 · register:2, k = register:3");
    assert_eq!(layout.reduction_scope("k"), Ok(Scope::Thread));
    assert_eq!(layout.reduction_scope("j"), Ok(Scope::Team(2)));
    assert_eq!(layout.reduction_scope("i"), Ok(Scope::Block));
    assert_eq!(value("i = lane:8, c = register:4 · lane:4").reduction_scope("c"), Ok(Scope::Warp));
    assert_eq!(value("i = cluster:2 · warp:8, j = lane:32").reduction_scope("i"), Ok(Scope::Cluster));
    assert!(layout.reduction_scope("q").is_err());
    let scope = |from: &str, to: &str| value(from).conversion_scope(&value(to)).unwrap();
    assert_eq!(scope("_ = warp:4, i = lane:4", "_ = lane:4, i = warp:4"), Scope::Warp);
    assert_eq!(scope("_ = lane:4, i = warp:4", "_ = warp:4, i = lane:4"), Scope::Block);
    assert_eq!(scope("i = warp:12", "i = warp:3@4 · warp:2@1 · warp:2@2"), Scope::Team(4));
    let away = value("i = cluster:2, j = lane:2").convert(&value("j = cluster:2, i = lane:2"), 32, &costs());
    assert_eq!(away, Ok(None));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn conversions_and_scopes_are_right(pieces in pieces(7), turn in 0usize..7, swap in 0usize..4) {
        let from = of_pieces(&pieces);
        // The same digits of elements from other places: pieces go to the next piece of their size.
        let mut other = pieces.clone();
        let count = other.len().max(1);
        for (at, piece) in other.iter_mut().enumerate() {
            let next = pieces[(at + turn) % count];
            if next.1 == piece.1 && (next.2 < 3) == (piece.2 < 3) {
                (piece.2, piece.3) = (next.2, if swap == 0 { None } else { next.3 });
            }
        }
        let to = of_pieces(&other);
        let places = from.extents().iter().product::<u64>();
        let Ok(scope) = from.conversion_scope(&to) else { return Ok(()) };
        if places <= MOST_PLACES {
            let to = from.alike(&to).unwrap();
            prop_assert!(from.within_by_counting(&to, scope).unwrap(), "{from} to {to}: {scope:?}");
            let warps = from.extent(Dimension::Warp);
            let teams = (2..warps).filter(|team| warps.is_multiple_of(*team)).map(Scope::Team);
            for smaller in [Scope::Thread, Scope::Warp].into_iter().chain(teams).filter(|it| *it < scope) {
                prop_assert!(!from.within_by_counting(&to, smaller).unwrap(), "{from} to {to}: not {scope:?}");
            }
        }
        if places <= 2048 && let Some(conversion) = from.convert(&to, 32, &costs()).unwrap() {
            prop_assert!(is_right(&from, &to, 32, &conversion), "{from} to {to}: {conversion:?}");
        }
    }
}
