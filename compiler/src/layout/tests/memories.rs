//! Layouts of memory against their definition and against enumeration.

use super::*;
use std::collections::BTreeSet;

/// A random layout: digits of axes in random order of strides, with gaps, broadcasts, xors and pads.
fn memories() -> impl Strategy<Value = MemoryLayout> {
    let size = prop_oneof![4 => Just(2u64), 2 => Just(4), 1 => Just(3), 1 => Just(5)];
    let digit = (0usize..3, size, 0u8..12, 0u32..8);
    (prop::collection::vec(digit, 0..8), prop::option::of((4u32..8, 1u64..5))).prop_map(|(digits, pad)| {
        let mut axes = [const { Vec::new() }; 3];
        let mut stride = 8i64;
        for (axis, size, kind, bit) in digits {
            let own = match kind {
                0 => 0,
                1 => stride + 8,
                2 => -stride,
                _ => stride,
            };
            let xor = if kind > 8 && size != 3 && size != 5 { 1 << bit } else { 0 };
            axes[axis].insert(0, MemoryDigit { size, stride: Stride::Known(own), xor });
            stride *= size as i64;
        }
        let axes: Vec<(&str, &[MemoryDigit])> =
            ["i", "j", "k"].into_iter().zip(axes.iter().map(|it| &it[..])).collect();
        let layout = MemoryLayout::new(&axes).ok();
        let layout = layout.unwrap_or_else(|| memory("i = 8*128^16, j = 16*8, k = 3*1024"));
        let pad = pad.map(|(every, bits)| Pad { every: 1 << every, bits: bits * 8 });
        pad.map_or(layout.clone(), |pad| layout.padded(pad).unwrap())
    })
}

#[test]
fn offsets_are_sums_then_xors_then_the_pad() {
    let layout = memory("i = 8*1024^128, j = 64*16, pad 32 after 1024");
    let linear = 5 * 1024 + 37 * 16;
    let swizzled = linear ^ (5 << 7);
    assert_eq!(layout.apply(&[5, 37]).known, swizzled + swizzled / 1024 * 32);
    // 3 is 2 + 1: bit by bit.
    assert_eq!(
        memory("i = 4*512^128^64, j = 16*32").apply(&[3, 0]).known,
        (3 * 512) ^ (128 ^ 64) ^ (256 ^ 128)
    );
}

#[test]
fn xored_strides_have_one_form() {
    let all_xor = memory("i = 2*0^4096^512 · 2*0^2048^256 · 2*0^1024^128, j = 64*16");
    assert_eq!(all_xor.to_string(), "i = 8*1024^128, j = 64*16");
    assert_eq!(all_xor, memory("i = 8*1024^128, j = 64*16"));
    assert_ne!(all_xor, memory("i = 8*1024, j = 64*16"));
}

#[test]
fn axes_of_memory_are_split_merged_and_sliced() {
    let layout = memory("i = 6*192, j = 6*32");
    let split = layout.split("j", "high", "low", 2).unwrap();
    assert_eq!(split.to_string(), "i = 6*192, high = 3*64, low = 2*32");
    assert_eq!(split.merge("high", "low", "j").unwrap(), layout);
    assert_eq!(layout.merge("i", "j", "all").unwrap().to_string(), "all = 36*32");
    assert_eq!(layout.slice("i").unwrap().to_string(), "j = 6*32");
    assert_eq!(layout.rename("i", "j"), Err(Error::AxisTwice { axis: "j".to_string() }));
    assert_eq!(layout.slice("q"), Err(Error::UnknownAxis { axis: "q".to_string() }));
    assert!(layout.split("j", "a", "b", 4).is_err());
}

#[test]
fn a_swizzle_needs_bits() {
    assert_eq!(memory("i = 8*1056, j = 32*32").swizzled(7, 3, 3), Err(Error::SwizzleOfCarry { bit: 7 }));
}

proptest! {
    #[test]
    fn memories_come_back_from_their_text(layout in memories()) {
        let again = memory(&layout.to_string());
        prop_assert_eq!(again.to_string(), layout.to_string());
        prop_assert_eq!(again.enumerate(), layout.enumerate());
        prop_assert_eq!(again, layout);
    }

    #[test]
    fn injective_is_what_is_counted_or_not_known(layout in memories()) {
        let Some(places) = layout.enumerate() else { return Ok(()) };
        let count = places.len();
        let distinct: BTreeSet<i64> = places.iter().map(|offset| offset.known).collect();
        if layout.is_injective() {
            prop_assert_eq!(distinct.len(), count);
        }
    }

    #[test]
    fn a_swizzle_xors_offsets(rows in 0u32..6, columns in 0u32..6, first in 0u32..6, count in 1u32..4, shift in 1u32..5) {
        let plain = MemoryLayout::packed(&[("i", 1 << rows), ("j", 1 << columns)], 16).unwrap();
        let Ok(layout) = plain.swizzled(first, count, shift) else { return Ok(()) };
        let mask = ((1i64 << count) - 1) << first;
        for (swizzled, plain) in layout.enumerate().unwrap().iter().zip(plain.enumerate().unwrap()) {
            prop_assert_eq!(swizzled.known, plain.known ^ (plain.known >> shift & mask));
        }
    }

    #[test]
    fn places_then_memory_is_the_offset_of_the_element(value in layouts(8), swizzle in 0usize..4, order in any::<bool>()) {
        let mut axes = value.axes();
        if order {
            axes.reverse();
        }
        let packed = MemoryLayout::packed(&axes, 8).unwrap();
        let memory = match swizzle {
            0 => packed.padded(Pad { every: 64, bits: 16 }).unwrap(),
            1 => packed.swizzled(3, 2, 2).unwrap_or(packed),
            _ => packed,
        };
        let access = Access::new(&value, &memory, 8).unwrap();
        let Some(both) = value.then(&memory) else { return Ok(()) };
        for (place, _) in value.map().enumerate().unwrap_or_default() {
            let place: Place = [place[0], place[1], place[2], place[3]];
            prop_assert_eq!(both.apply(&place), access.offset(place));
        }
    }
}
