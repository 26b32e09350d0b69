//! The algebra of value layouts against enumeration.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

type Table = BTreeMap<Vec<u64>, Vec<u64>>;

fn table(map: &DigitMap) -> Option<Table> {
    Some(map.enumerate()?.into_iter().collect())
}

#[test]
fn a_digit_may_be_any_number_at_any_place() {
    // 12 = 3·4 on lanes of 4, and 3 more lanes of another digit in the middle.
    let layout = value("i = lane:3@4 · register:5 · lane:4@1");
    assert_eq!(layout.axes(), [("i", 60)]);
    assert_eq!(layout.apply([2, 7, 0, 0]), [20 + 2 * 4 + 3]);
    // Past the extents, places stand for their rest.
    assert_eq!(layout.apply([7, 19, 5, 5]), layout.apply([2, 7, 0, 0]));
}

#[test]
fn forms_of_one_function_are_equal() {
    assert_eq!(value("i = lane:2@4 · lane:4@1"), value("i = lane:8"));
    assert_eq!(value("i = lane:2@3 · lane:3@1"), value("i = lane:3@2 · lane:2@1"));
    assert_eq!(value("i = lane:2, j = warp:2"), value("j = warp:2, i = lane:2"));
    assert_ne!(value("i = lane:8"), value("_ = lane:2, i = lane:8"));
    assert_ne!(value("i = lane:2@1 · lane:4@2"), value("i = lane:8"));
    assert_eq!(
        value("i = lane:2@2^warp:2@2 · lane:2@1^warp:2@1, j = warp:4@1"),
        value("i = lane:4@1^warp:4@1, j = warp:4@1")
    );
}

#[test]
fn composition_fails_where_radices_have_no_common_refinement() {
    let left = value("i = lane:3 · register:4");
    let right = value("i = lane:4 · register:3");
    assert_eq!(right.map().then(&left.inverse()), None);
    let finer = value("i = lane:6 · register:2");
    assert!(finer.map().then(&left.inverse()).is_some());
}

#[test]
fn division_takes_atoms_out() {
    let atom = value("i = lane:8, j = lane:4 · register:2");
    let tiles = value("i = warp:4 · register:2, j = register:3");
    let layout = atom.product(&tiles).unwrap();
    assert_eq!(layout.to_string(), "i = warp:4 · register:2 · lane:8, j = register:3 · lane:4 · register:2");
    assert_eq!(layout.divide(&atom), Some(tiles));
    assert_eq!(layout.divide(&value("i = lane:4, j = lane:8")), None);
    assert_eq!(layout.divide(&value("q = lane:8")), None);
}

#[test]
fn xors_of_hardware_digits_leave_the_higher_as_replica() {
    let layout = value("i = lane:4@1^warp:4@1");
    assert_eq!(layout.replicas(), [Digit { dimension: Dimension::Warp, position: 1, size: 4 }]);
}

proptest! {
    #[test]
    fn the_inverse_finds_a_place_of_every_element(layout in layouts(9)) {
        let back = layout.map().then(&layout.inverse()).unwrap();
        let forth = layout.inverse().then(layout.map()).unwrap();
        let (Some(back), Some(forth)) = (table(&back), table(&forth)) else { return Ok(()) };
        for (element, found) in &forth {
            prop_assert_eq!(element, found);
        }
        let chosen: BTreeSet<_> = back.values().collect();
        prop_assert_eq!(chosen.len() as u64, layout.axes().iter().map(|axis| axis.1).product::<u64>());
        // The chosen places are those whose replica digits are 0.
        for place in back.values() {
            for digit in layout.replicas() {
                prop_assert_eq!(place[digit.dimension as usize] / digit.position % digit.size, 0);
            }
        }
    }

    #[test]
    fn composition_is_one_after_the_other(inner in layouts(8), outer in layouts(8)) {
        let outer = outer.inverse();
        let Some(both) = inner.map().then(&outer) else { return Ok(()) };
        let Some(places) = both.enumerate() else { return Ok(()) };
        let names: Vec<&str> = inner.axes().iter().map(|axis| axis.0).collect();
        for (place, found) in places {
            let element = inner.map().apply(&place);
            let at = |(name, _): &(String, u64)| names.iter().position(|it| it == name).map_or(0, |at| element[at]);
            let inputs: Vec<u64> = outer.inputs().iter().map(at).collect();
            prop_assert_eq!(outer.apply(&inputs), found);
        }
    }

    #[test]
    fn equal_are_layouts_with_equal_tables(left in layouts(4), right in layouts(4)) {
        let same = left.axes() == right.axes() && table(left.map()) == table(right.map())
            && left.map().inputs() == right.map().inputs();
        let sorted = |layout: &ValueLayout| layout.axes().is_sorted();
        if sorted(&left) && sorted(&right) {
            prop_assert_eq!(left == right, same);
        }
    }

    #[test]
    fn products_divide(atom in layouts(6), tiles in layouts(6)) {
        let layout = atom.product(&tiles).unwrap();
        let low = atom.extents();
        let quotient = layout.divide(&atom).unwrap();
        // Axes that the atom alone has are of extent 1 in the quotient.
        for (axis, extent) in quotient.axes() {
            let known = tiles.axes().into_iter().find(|(name, _)| *name == axis);
            prop_assert_eq!(extent, known.map_or(1, |known| known.1));
        }
        prop_assert_eq!(atom.product(&quotient).unwrap(), layout.clone());
        let Some(places) = layout.map().enumerate() else { return Ok(()) };
        for (place, element) in places {
            let inner: Vec<u64> = place.iter().zip(low).map(|(at, low)| at % low).collect();
            let outer: Vec<u64> = place.iter().zip(low).map(|(at, low)| at / low).collect();
            let (inner, outer) = (atom.map().apply(&inner), tiles.map().apply(&outer));
            for ((axis, _), found) in layout.axes().into_iter().zip(element) {
                let of = |layout: &ValueLayout, element: &[u64]| {
                    let at = layout.axes().iter().position(|(name, _)| *name == axis);
                    at.map_or((0, 1), |at| (element[at], layout.axes()[at].1))
                };
                let (low, extent) = of(&atom, &inner);
                prop_assert_eq!(found, of(&tiles, &outer).0 * extent + low);
            }
        }
    }

    #[test]
    fn packing_leaves_the_registers_that_are_no_replicas_in_their_order(layout in layouts(9)) {
        let replicas = layout.replicas();
        let of_registers = || replicas.iter().filter(|digit| digit.dimension == Dimension::Register);
        let is_own = |register: &u64| of_registers().all(|it| (register / it.position).is_multiple_of(it.size));
        let own: Vec<u64> = (0..layout.extent(Dimension::Register)).filter(is_own).collect();
        let packed = layout.packed();
        if packed.extent(Dimension::Register) != own.len() as u64 {
            let is_xor = |axis: &str| layout.digits(axis).iter().flatten().any(|it| it.sources.len() > 1);
            prop_assert!(packed == layout && layout.axes().iter().any(|(axis, _)| is_xor(axis)));
            return Ok(());
        }
        for (at, register) in own.into_iter().enumerate() {
            for lane in 0..layout.extent(Dimension::Lane) {
                prop_assert_eq!(packed.apply([at as u64, lane, 0, 0]), layout.apply([register, lane, 0, 0]));
            }
        }
    }

    #[test]
    fn axes_are_split_merged_renamed_and_dropped(layout in layouts(8), size in 1u64..7) {
        let extent = layout.axes()[0].1;
        let renamed = layout.rename("i", "row").unwrap();
        prop_assert_eq!(renamed.rename("row", "i").unwrap(), layout.clone());
        let sliced = layout.slice("i").unwrap();
        let split = layout.split("i", "high", "low", size);
        prop_assert!(extent % size == 0 || split.is_err());
        for (place, element) in layout.map().enumerate().unwrap_or_default() {
            prop_assert_eq!(&sliced.map().apply(&place), &element[1..]);
            if let Ok(split) = &split {
                let found = split.map().apply(&place);
                prop_assert_eq!((found[0], found[1]), (element[0] / size, element[0] % size));
            }
        }
        if let Ok(split) = &split {
            prop_assert_eq!(split.merge("high", "low", "i").unwrap(), layout);
        }
    }

    #[test]
    fn replicas_and_injectivity_are_what_is_counted(layout in layouts(8)) {
        let Some(places) = layout.map().enumerate() else { return Ok(()) };
        let elements: BTreeSet<_> = places.iter().map(|place| &place.1).collect();
        prop_assert_eq!(layout.is_injective(), elements.len() == places.len());
        let copies: u64 = layout.replicas().iter().map(|digit| digit.size).product();
        prop_assert_eq!(elements.len() as u64 * copies, places.len() as u64);
    }
}
