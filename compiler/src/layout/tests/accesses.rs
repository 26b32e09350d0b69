//! Vectors, sectors and wavefronts.

use super::super::linear::Linear;
use super::*;

fn strided(stride: i64, bytes: u64) -> u64 {
    let offsets: Vec<i64> = (0..32).map(|lane| lane * stride * 8).collect();
    wavefronts(&offsets, bytes * 8, &banks()).count
}

#[test]
fn known_strides_conflict_as_they_are_known_to() {
    let known =
        [(4, 4, 1), (0, 4, 1), (1, 1, 1), (8, 4, 2), (128, 4, 32), (132, 4, 1), (8, 8, 2), (16, 16, 4)];
    for (stride, bytes, expected) in known {
        assert_eq!(strided(stride, bytes), expected, "stride {stride}, {bytes} bytes");
    }
    let nothing = wavefronts(&[], 32, &banks());
    assert_eq!(nothing, Wavefronts::default());
}

#[test]
fn sectors_are_those_that_bits_touch() {
    let offsets = |stride: i64, from: i64| (0..32).map(|lane| (from + lane * stride) * 8).collect::<Vec<_>>();
    for (stride, bytes, from, expected) in
        [(4, 4, 0, 4), (4, 4, 4, 5), (0, 4, 0, 1), (20, 4, 0, 20), (-4, 4, 28, 4), (4096, 8, 0, 32)]
    {
        assert_eq!(sectors(&offsets(stride, from), bytes * 8, 32), expected, "stride {stride} from {from}");
    }
}

#[test]
fn vectors_are_as_wide_as_they_are_aligned() {
    let row = value("i = warp:4 · lane:32 · register:8");
    let width = |memory: &str, base: u64| {
        Access::new(&row, &super::memory(memory), 32).unwrap().vectors(128, base).width
    };
    assert_eq!(width("i = 1024*32", 128), 4);
    assert_eq!(width("i = 1024*32", 64), 2);
    assert_eq!(width("i = 1024*64", 128), 1);
    assert_eq!(width("i = 1024*-32", 128), 1);
    assert_eq!(width("i = 1024*32, pad 32 after 256", 128), 1);
    assert_eq!(width("i = 1024*32, pad 128 after 256", 128), 4);
    assert_eq!(width("i = 64*512^64 · 16*32", 128), 2);
    // A slot that the value lacks counts as well.
    assert_eq!(width("slot = 3*32800, i = 1024*32", 128), 1);
    assert_eq!(width("slot = 3*32896, i = 1024*32", 128), 4);
}

#[test]
fn registers_of_a_vector_are_named_in_the_order_of_memory() {
    let layout = value("i = register:2@2 · lane:32 · register:2@1, r = register:2@4");
    let memory = memory("r = 2*4096, i = 128*32");
    let vectors = Access::new(&layout, &memory, 32).unwrap().vectors(128, 128);
    assert_eq!(
        vectors,
        Vectors { width: 2, registers: vec![vec![0, 1], vec![2, 3], vec![4, 5], vec![6, 7]] }
    );
    let memory = super::memory("i = 128*64, r = 2*32");
    let vectors = Access::new(&layout, &memory, 32).unwrap().vectors(128, 128);
    assert_eq!(vectors.registers, [[0, 4, 1, 5], [2, 6, 3, 7]]);
}

#[test]
fn axes_must_agree() {
    let layout = value("i = lane:32");
    let error = Access::new(&layout, &memory("i = 16*32"), 32).err();
    assert_eq!(error, Some(Error::Extent { number: "i".to_string(), found: 16, expected: 32 }));
}

proptest! {
    #[test]
    fn vectors_by_strides_are_those_that_are_counted(
        value in layouts(7), swizzle in 0usize..5, order in any::<bool>(), base in 0u32..3,
    ) {
        let mut axes = value.axes();
        if order {
            axes.reverse();
        }
        let packed = MemoryLayout::packed(&axes, 8).unwrap();
        let memory = match swizzle {
            0 => packed.padded(Pad { every: 64, bits: 16 }).unwrap(),
            1 => packed.swizzled(4, 2, 2).unwrap_or(packed),
            2 => packed.swizzled(3, 1, 3).unwrap_or(packed),
            _ => packed,
        };
        let access = Access::new(&value, &memory, 8).unwrap();
        let (strides, counted) = (access.vectors(128, 16 << base), access.vectors_by_counting(16, 16 << base));
        let places: u64 = value.extents().iter().product();
        // Counting goes in order of memory from the first register; strides see what is sure for all.
        prop_assert!(places > MOST_PLACES || strides.width <= counted.width, "{value}; {memory}");
        let exact = value.then(&memory).is_some() && swizzle > 2 && !value.to_string().contains('^');
        prop_assert!(!exact || places > MOST_PLACES || strides.width == counted.width, "{value}; {memory}");
        let all = |vectors: &Vectors| {
            let mut all: Vec<u64> = vectors.registers.concat();
            all.sort_unstable();
            all
        };
        prop_assert_eq!(all(&strides).len(), all(&counted).len());
        for vector in &strides.registers {
            let first = access.offset([vector[0], 0, 0, 0]).known;
            prop_assert_eq!(first % (strides.width as i64 * 8), 0);
            for (at, register) in vector.iter().enumerate() {
                prop_assert_eq!(access.offset([*register, 0, 0, 0]).known, first + at as i64 * 8);
            }
        }
    }

    #[test]
    fn xors_of_bits_take_what_their_accesses_take(
        value in layouts(9), swizzle in prop::option::of((3u32..8, 1u32..4, 1u32..4)), order in any::<bool>(),
        bits in prop::sample::select(vec![8u64, 16, 32, 64]),
    ) {
        let mut axes = value.axes();
        if order {
            axes.reverse();
        }
        let packed = MemoryLayout::packed(&axes, bits).unwrap();
        let swizzled = swizzle.and_then(|(first, count, shift)| packed.swizzled(first, count, shift).ok());
        let memory = swizzled.unwrap_or(packed);
        let all_bits = value.bit_vectors(Dimension::Register).is_some();
        let quick = Linear::of(&value).and_then(|it| it.wavefronts_and_requests(&memory, bits, (128, &banks())));
        prop_assert!(quick.is_some() || !all_bits || value.to_string().contains('^'), "{value}; {memory}");
        if let Some(quick) = quick {
            let access = Access::new(&value, &memory, bits).unwrap();
            let vectors = access.vectors(128, 128);
            let count = access.wavefronts(&vectors, &banks()).count;
            prop_assert_eq!(quick, (count, vectors.registers.len() as u64), "{}; {}", value, memory);
        }
    }

    #[test]
    fn wavefronts_of_all_requests_are_their_sum(value in layouts(7), first in 0u32..8, count in 1u32..4, shift in 1u32..4) {
        let packed = MemoryLayout::packed(&value.axes(), 16).unwrap();
        let memory = packed.swizzled(first, count, shift).unwrap_or(packed);
        let access = Access::new(&value, &memory, 16).unwrap();
        let vectors = access.vectors(128, 128);
        let mut sum = Wavefronts::default();
        for (warp, registers) in (0..value.extents()[2]).flat_map(|warp| vectors.registers.iter().map(move |it| (warp, it))) {
            let one = wavefronts(&access.lanes(registers[0], warp, 0, &[]), vectors.width * 16, &banks());
            sum = Wavefronts { count: sum.count + one.count, least: sum.least + one.least };
        }
        prop_assert_eq!(access.wavefronts(&vectors, &banks()), sum, "{}; {}", value, memory);
    }

    #[test]
    fn wavefronts_agree_with_serving_lane_by_lane(places in prop::collection::vec(0u64..600, 0..=32), shift in 0u32..=4) {
        let width = 1u64 << shift;
        let offsets: Vec<i64> = places.iter().map(|place| (place * width * 8) as i64).collect();
        let together = if width <= 4 { 32 } else { 128 / width as usize };
        let mut rounds = 0;
        for group in offsets.chunks(together) {
            let mut wanted: Vec<i64> = Vec::new();
            for offset in group {
                wanted.extend((offset / 8..offset / 8 + width as i64).map(|byte| byte / 4));
            }
            while !wanted.is_empty() {
                let mut served = [None; 32];
                wanted.retain(|word| *served[(word % 32) as usize].get_or_insert(*word) != *word);
                rounds += 1;
            }
        }
        prop_assert_eq!(wavefronts(&offsets, width * 8, &banks()).count, rounds);
    }
}
