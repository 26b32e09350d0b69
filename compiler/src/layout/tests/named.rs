//! Layouts that the compiler has or will need, each by name.

use super::*;
use std::collections::BTreeSet;

/// The distinct lines of a layout's element along an axis, as (register, lane, warp) to coordinate.
fn at(layout: &ValueLayout, register: u64, lane: u64, warp: u64) -> [u64; 2] {
    let element = layout.apply([register, lane, warp, 0]);
    [element[0], element[1]]
}

#[test]
fn fragments_of_80_160_and_192_columns() {
    let atom = value("i = register:2 · lane:8, j = lane:4 · register:2");
    for blocks in [10, 20, 24] {
        let layout = atom.product(&value(&format!("j = register:{blocks}"))).unwrap();
        assert_eq!(layout.axes(), [("i", 16), ("j", blocks * 8)]);
        assert_eq!(layout.extent(Dimension::Register), blocks * 4);
        assert!(layout.is_injective());
        for (register, lane) in [(0, 0), (5, 7), (blocks * 4 - 1, 31)] {
            let (g, t) = (lane / 4, lane % 4);
            let expected = [g + register / 2 % 2 * 8, register / 4 * 8 + 2 * t + register % 2];
            assert_eq!(at(&layout, register, lane, 0), expected);
        }
        assert_eq!(layout.divide(&atom), Some(value(&format!("i = 1, j = register:{blocks}"))));
        // To rows of vectors and back, through shared memory.
        let rows = value(&format!("i = register:4 · lane:4, j = register:{} · lane:8", blocks));
        assert_eq!(layout.conversion_scope(&rows), Ok(Scope::Warp));
    }
}

#[test]
fn twelve_warps() {
    let layout = value("i = warp:3 · lane:8 · register:4, j = warp:4 · lane:4 · register:4");
    assert_eq!(layout.axes(), [("i", 96), ("j", 64)]);
    assert_eq!(layout.extent(Dimension::Warp), 12);
    assert_eq!(at(&layout, 0, 0, 7), [32, 48]);
    assert_eq!(layout.reduction_scope("j"), Ok(Scope::Team(4)));
    assert_eq!(layout.reduction_scope("i"), Ok(Scope::Block));
    assert_eq!(
        layout.slice("j").unwrap().to_string(),
        "_ = warp:4@1 · lane:4@1 · register:4@1, i = warp:3@4 · lane:8@4 · register:4@4"
    );
}

/// The axis has the capacity of the threads, 384·19 = 7296 places; that 296 of them are past the end of the
/// row is said by a mask, not by the layout.
#[test]
fn a_row_of_7000_on_384_threads() {
    let layout = value("c = register:19 · warp:12 · lane:32");
    assert_eq!(layout.axes(), [("c", 7296)]);
    assert_eq!(layout.apply([18, 31, 11, 0]), [7295]);
    let live = layout.map().enumerate().unwrap().into_iter().filter(|(_, element)| element[0] < 7000).count();
    assert_eq!(live, 7000);
    let row = memory("c = 7296*32");
    let access = Access::new(&layout, &row, 32).unwrap();
    assert_eq!(access.vectors(128, 128).width, 1);
    assert_eq!(sectors(&access.lanes(3, 5, 0, &[]), 32, 32), 4);
    assert_eq!(layout.reduction_scope("c"), Ok(Scope::Block));
    // With vectors of four, each thread has five of them: 7680 places.
    let layout = value("c = register:5 · warp:12 · lane:32 · register:4");
    let row = memory("c = 7680*32");
    assert_eq!(layout.axes(), [("c", 7680)]);
    assert_eq!(Access::new(&layout, &row, 32).unwrap().vectors(128, 128).width, 4);
}

#[test]
fn a_scan_of_87_items_a_thread() {
    let blocked = value("x = warp:8 · lane:32 · register:87");
    let striped = value("x = warp:8 · register:87 · lane:32");
    assert_eq!(blocked.apply([86, 31, 7, 0]), [8 * 32 * 87 - 1]);
    let packed = memory("x = 22272*32");
    let access = Access::new(&blocked, &packed, 32).unwrap();
    let vectors = access.vectors(128, 128);
    // 87 is odd: words of neighbouring threads are never neighbours in a vector, and never in one bank.
    assert_eq!((vectors.width, vectors.registers.len()), (1, 87));
    assert_eq!(wavefronts(&access.lanes(0, 0, 0, &[]), 32, &banks()), Wavefronts { count: 1, least: 1 });
    assert_eq!(striped.conversion_scope(&blocked), Ok(Scope::Warp));
    let Ok(Some(Conversion::Shared(staged))) = striped.convert(&blocked, 32, &costs()) else {
        panic!("not staged")
    };
    assert_eq!(staged.conflicts(), 0, "{}", staged.memory);
}

#[test]
fn rings_of_3_5_and_7_slots() {
    for slots in [3u64, 5, 7] {
        let ring = MemoryLayout::packed(&[("slot", slots), ("i", 64), ("p", 64)], 16).unwrap();
        let ring = ring.swizzled(7, 3, 3).unwrap();
        assert_eq!(ring.to_string(), format!("slot = {slots}*65536, i = 8*8192 · 8*1024^128, p = 64*16"));
        assert!(ring.is_injective());
        assert_eq!(ring.apply(&[slots - 1, 0, 0]).known, (slots as i64 - 1) * 65536);
        // A slot is the tile: what lies in it is the same in all, so it is sliced once.
        let tile = ring.slice("slot").unwrap();
        for (i, p) in [(0, 0), (13, 21), (63, 63)] {
            let base = ring.apply(&[2, 0, 0]).known;
            assert_eq!(ring.apply(&[2, i, p]).known - base, tile.apply(&[i, p]).known);
        }
    }
}

#[test]
fn pitches_of_33_and_129() {
    for (rows, pitch) in [(32, 33), (128, 129)] {
        let strided = memory(&format!("i = {rows}*{}, j = {}*32", pitch * 32, pitch - 1));
        let padded = MemoryLayout::packed(&[("i", rows), ("j", pitch - 1)], 32).unwrap();
        let padded = padded.padded(Pad { every: (pitch - 1) * 32, bits: 32 }).unwrap();
        assert_eq!(strided.enumerate(), padded.enumerate());
        assert_eq!(strided, padded);
        assert!(strided.is_injective());
        let down =
            ValueLayout::new(&[("i", &[(Dimension::Warp, rows / 32), (Dimension::Lane, 32)])]).unwrap();
        for memory in [&strided, &padded] {
            let access = Access::new(&down, memory, 32).unwrap();
            assert_eq!(wavefronts(&access.lanes(0, 0, 0, &[]), 32, &banks()).count, 1);
        }
        let packed = MemoryLayout::packed(&[("i", rows), ("j", pitch - 1)], 32).unwrap();
        let access = Access::new(&down, &packed, 32).unwrap();
        assert_eq!(wavefronts(&access.lanes(0, 0, 0, &[]), 32, &banks()).count, 32);
    }
}

#[test]
fn the_128_byte_swizzle() {
    let tile = MemoryLayout::packed(&[("i", 64), ("p", 64)], 16).unwrap().swizzled(7, 3, 3).unwrap();
    for (i, p) in (0..64u64).flat_map(|i| (0..64u64).map(move |p| (i, p))) {
        let byte = i * 128 + p * 2;
        let expected = byte ^ (byte >> 7 & 7) << 4;
        assert_eq!(tile.apply(&[i, p]).known, expected as i64 * 8);
    }
    // The fragment of A reads pairs of words without conflicts, and ldmatrix rows of 16 bytes.
    let fragment = value("i = register:2@2 · lane:8, p = register:2@4 · lane:4 · register:2@1");
    let tiles = fragment.product(&value("i = warp:4, p = register:4")).unwrap();
    let access = Access::new(&tiles, &tile, 16).unwrap();
    let vectors = access.vectors(128, 1024);
    assert_eq!(vectors.width, 2);
    let found = access.wavefronts(&vectors, &banks());
    assert_eq!(found.count, found.least);
    let rows = value("i = register:16 · lane:4, p = lane:8 · register:8");
    let access = Access::new(&rows, &tile, 16).unwrap();
    let chunks = access.vectors(128, 1024);
    assert_eq!(chunks.width, 8);
    // Each phase has 8 lanes: a row here, 8 rows of a chunk with lanes the other way round.
    let found_rows = access.wavefronts(&chunks, &banks());
    assert_eq!(found_rows.count, found_rows.least);
    let turned = value("p = register:2 · lane:4 · register:8, i = register:8 · lane:8");
    let access = Access::new(&turned, &tile, 16).unwrap();
    let found_rows = access.wavefronts(&access.vectors(128, 1024), &banks());
    assert_eq!(found_rows.count, found_rows.least);
    let packed = MemoryLayout::packed(&[("i", 64), ("p", 64)], 16).unwrap();
    let plain = Access::new(&tiles, &packed, 16).unwrap();
    assert_eq!(plain.wavefronts(&vectors, &banks()).count, 8 * found.count);
}

#[test]
fn packed_values_of_4_bits() {
    let layout = value("i = warp:2 · lane:32 · register:32");
    let packed = memory("i = 2048*4");
    let access = Access::new(&layout, &packed, 4).unwrap();
    let vectors = access.vectors(128, 128);
    assert_eq!((vectors.width, vectors.registers.len()), (32, 1));
    let lanes = access.lanes(0, 1, 0, &[]);
    assert_eq!(lanes[1] - lanes[0], 128);
    assert_eq!(sectors(&lanes, 128, 32), 16);
    assert_eq!(wavefronts(&lanes, 128, &banks()), Wavefronts { count: 4, least: 4 });
    // Two values of a byte on two lanes: one byte each.
    let layout = value("i = register:2 · lane:32");
    let packed = memory("i = 64*4");
    let access = Access::new(&layout, &packed, 4).unwrap();
    assert_eq!(access.vectors(128, 128).width, 1);
    assert_eq!(sectors(&access.lanes(0, 0, 0, &[]), 4, 32), 1);
}

#[test]
fn structs_of_12_bytes_in_four_orders() {
    let aos = MemoryLayout::packed(&[("n", 1024), ("f", 3)], 32).unwrap();
    assert_eq!(aos.to_string(), "n = 1024*96, f = 3*32");
    let soa = MemoryLayout::packed(&[("f", 3), ("n", 1024)], 32).unwrap();
    let blocks = MemoryLayout::packed(&[("n", 32), ("f", 3), ("n", 32)], 32).unwrap();
    assert_eq!(blocks.to_string(), "n = 32*3072 · 32*32, f = 3*1024");
    let apart = memory("n = 1024*32, f = 3*1$0");
    for memory in [&aos, &soa, &blocks] {
        assert!(memory.is_injective());
    }
    // A field of a struct a lane.
    let one = value("n = register:32 · lane:32, f = register:3");
    let sectors_of = |memory: &MemoryLayout, parameters: &[i64]| {
        sectors(&Access::new(&one, memory, 32).unwrap().lanes(0, 0, 0, parameters), 32, 32)
    };
    assert_eq!([&aos, &soa, &blocks].map(|memory| sectors_of(memory, &[])), [12, 4, 4]);
    assert_eq!(sectors_of(&apart, &[1 << 20]), 4);
    // Four structs a thread are three vectors of 16 bytes.
    let four = value("n = register:8 · lane:32 · register:4, f = register:3");
    let vectors = Access::new(&four, &aos, 32).unwrap().vectors(128, 128);
    assert_eq!((vectors.width, vectors.registers.len()), (4, 24));
    assert_eq!(Access::new(&one, &aos, 32).unwrap().vectors(128, 128).width, 1);
}

#[test]
fn a_dynamic_pitch() {
    let tile = value("i = warp:4 · register:8 · lane:2, j = lane:16 · register:4");
    let any = memory("i = 64*32$0, j = 64*32");
    let access = Access::new(&tile, &any, 32).unwrap();
    assert_eq!(
        access.offset([17, 17, 1, 0]),
        Offset { known: (4 + 1) * 32, dynamic: vec![(0, (16 + 8 + 1) * 32)] }
    );
    // A pitch of any number of elements says nothing of alignment; one of a multiple of four does.
    assert_eq!(access.vectors(128, 128).width, 1);
    let by_four = memory("i = 64*128$0, j = 64*32");
    let vectors = Access::new(&tile, &by_four, 32).unwrap().vectors(128, 128);
    assert_eq!((vectors.width, vectors.registers.len()), (4, 8));
    assert_eq!(sectors(&access.lanes(0, 0, 0, &[4096]), 128, 32), 16);
    assert_eq!(
        tile.then(&any).unwrap().to_string(),
        "register = 8*64$0 · 4*32, lane = 2*32$0 · 16*128, warp = 4*512$0, cluster = 1"
    );
}

#[test]
fn footprints_of_strides_and_halos() {
    let of = |terms: &[(&str, i64)], constant: i64, ranges: &[(&str, i64, i64)]| {
        let terms = terms.iter().map(|(axis, times)| (axis.to_string(), *times)).collect();
        footprint(&Subscript { terms, constant }, ranges).unwrap()
    };
    let strided = of(&[("i", 2), ("r", 1)], 0, &[("i", 0, 63), ("r", 0, 2)]);
    assert_eq!((strided.first, strided.step, strided.extent), (0, 1, 129));
    let halo = of(&[("j", 1), ("s", 1)], -1, &[("j", 0, 31), ("s", 0, 2)]);
    assert_eq!((halo.first, halo.step, halo.extent), (-1, 1, 34));
    let dilated = of(&[("i", 2), ("r", 4)], 3, &[("i", 0, 63), ("r", 0, 2)]);
    assert_eq!((dilated.first, dilated.step, dilated.extent), (3, 2, 68));
    let down = of(&[("i", -1)], 99, &[("i", 0, 9)]);
    assert_eq!((down.first, down.extent), (90, 10));
    let twice = of(&[("i", 2), ("i", -1)], 0, &[("i", 0, 9)]);
    assert_eq!(twice.extent, 10);
    let unknown = footprint(&Subscript { terms: vec![("q".to_string(), 1)], constant: 0 }, &[]);
    assert_eq!(unknown, Err(Error::UnknownAxis { axis: "q".to_string() }));

    // The copy: elements that are one element of the image share a place, and no place is past the box.
    let axes = [("i", 64), ("r", 3), ("j", 32), ("s", 3)];
    let copy = staged(&[strided.clone(), halo], &axes, 32, 0).unwrap();
    assert_eq!(copy.to_string(), "i = 64*2176, r = 3*1088, j = 32*32, s = 3*32");
    assert!(!copy.is_injective());
    let places: BTreeSet<i64> = copy.enumerate().unwrap().iter().map(|offset| offset.known).collect();
    assert_eq!((places.len(), places.last().copied()), (129 * 34, Some((129 * 34 - 1) * 32)));
    let gap = staged(&[strided.clone(), strided], &[("i", 64)], 32, 1).unwrap();
    assert_eq!(gap.to_string(), "i = 64*8384");
}

#[test]
fn fragments_of_mma_m16n8k16() {
    let a = value("i = register:2@2 · lane:8, p = register:2@4 · lane:4 · register:2@1");
    let b = value("p = register:2@2 · lane:4@1 · register:2@1, j = lane:8@4");
    let c = value("i = register:2@2 · lane:8, j = lane:4 · register:2@1");
    for lane in 0..32 {
        let (g, t) = (lane / 4, lane % 4);
        for register in 0..8 {
            let (word, half) = (register / 2, register % 2);
            assert_eq!(at(&a, register, lane, 0), [g + word % 2 * 8, 2 * t + half + word / 2 * 8]);
        }
        for register in 0..4 {
            let (word, half) = (register / 2, register % 2);
            assert_eq!(at(&b, register, lane, 0), [2 * t + half + word * 8, g]);
            assert_eq!(at(&c, register, lane, 0), [g + word * 8, 2 * t + half]);
        }
    }
    // Two neighbouring blocks of the result are the left operand of the next product: for nothing.
    let two = c.product(&value("j = register:2")).unwrap().rename("j", "p").unwrap();
    assert_eq!(two.convert(&a, 16, &costs()), Ok(Some(Conversion::Nothing)));
    // The right operand differs by lanes only.
    let from = b.rename("j", "i").unwrap();
    assert_eq!(from.reduction_scope("p"), Ok(Scope::Warp));
}

#[test]
fn accumulators_of_wgmma() {
    for blocks in [1, 2, 12, 20, 32] {
        let text =
            format!("i = warp:4 · register:2@2 · lane:8, j = register:{blocks}@4 · lane:4 · register:2@1");
        let layout = value(&text);
        assert_eq!(layout.axes(), [("i", 64), ("j", 8 * blocks)]);
        for (register, lane, warp) in (0..4 * blocks)
            .flat_map(|it| (0..32).flat_map(move |lane| (0..4).map(move |warp| (it, lane, warp))))
        {
            let (g, t, block) = (lane / 4, lane % 4, register / 4);
            let row = 16 * warp + g + register / 2 % 2 * 8;
            assert_eq!(at(&layout, register, lane, warp), [row, 8 * block + 2 * t + register % 2]);
        }
        let atom = value("i = register:2 · lane:8, j = lane:4 · register:2");
        assert_eq!(layout.divide(&atom), Some(value(&format!("i = warp:4, j = register:{blocks}"))));
    }
}

/// Of the product kernels (`passes/stage/product/shape.rs`): sides are rows, then columns.
struct Shape {
    tile: [u64; 2],
    per_thread: [u64; 2],
}

const LANES: [u64; 2] = [4, 8];

impl Shape {
    fn grid(&self) -> [u64; 2] {
        [0, 1].map(|side| self.tile[side] / self.per_thread[side])
    }

    fn piece(&self, side: usize) -> u64 {
        4.min(1 << self.per_thread[side].trailing_zeros())
    }

    /// `places` and `offset`: a thread's first row and column, and from there to one of its own.
    fn element(&self, thread: u64, own: [u64; 2]) -> [u64; 2] {
        let (lane, warp) = (thread % 32, thread / 32);
        let warps = self.grid()[1] / LANES[1];
        let (warps, lane) = ([warp / warps, warp % warps], [lane / LANES[1], lane % LANES[1]]);
        [0, 1].map(|side| {
            let piece = self.piece(side);
            let first = warps[side] * LANES[side] * self.per_thread[side] + lane[side] * piece;
            first + own[side] / piece * LANES[side] * piece + own[side] % piece
        })
    }

    fn layout(&self) -> ValueLayout {
        let factors = |side: usize| {
            let piece = self.piece(side);
            [
                (Dimension::Warp, self.grid()[side] / LANES[side]),
                (Dimension::Register, self.per_thread[side] / piece),
                (Dimension::Lane, LANES[side]),
                (Dimension::Register, piece),
            ]
        };
        ValueLayout::new(&[("i", &factors(0)), ("j", &factors(1))]).unwrap()
    }
}

#[test]
fn threads_of_the_product_kernels() {
    let large = Shape { tile: [128, 256], per_thread: [16, 8] };
    let text = "i = warp:2 · register:4 · lane:4 · register:4, j = warp:4 · register:2 · lane:8 · register:4";
    assert_eq!(large.layout().to_string(), text);
    for shape in
        [large, Shape { tile: [128, 128], per_thread: [8, 8] }, Shape { tile: [64, 64], per_thread: [4, 4] }]
    {
        let layout = shape.layout();
        assert_eq!(layout.extent(Dimension::Warp) * 32, 256);
        assert!(layout.is_injective());
        let columns = shape.per_thread[1];
        for thread in 0..256 {
            for own in 0..shape.per_thread[0] * columns {
                let expected = shape.element(thread, [own / columns, own % columns]);
                assert_eq!(at(&layout, own, thread % 32, thread / 32), expected);
            }
        }
        // Scratch memory where a warp's results lie side by side: the way back, as `kept_of` has it.
        let kept = layout.inverse();
        let (warps, inverse) = (8, |i: u64, j: u64| kept.apply(&[i, j]));
        for (i, j) in [(0, 0), (5, 9), (shape.tile[0] - 1, shape.tile[1] - 2)] {
            let [register, lane, warp, _] = inverse(i, j)[..] else { panic!("four dimensions") };
            let results = [register / columns, register % columns];
            let found = shape.element(warp * 32 + lane, results);
            assert_eq!(found, [i, j]);
            assert!(warp < warps);
        }
        // Operands are read as vectors of 16 bytes; at most 128 bytes, that is one wavefront a phase.
        let depth = MemoryLayout::packed(&[("p", 8), ("j", shape.tile[1])], 32).unwrap();
        let right = layout.slice("i").unwrap();
        let access = Access::new(&right, &depth, 32).unwrap();
        let vectors = access.vectors(128, 128);
        assert_eq!(vectors.width, 4);
        let lanes = access.lanes(vectors.registers[0][0], 3, 0, &[]);
        assert_eq!(wavefronts(&lanes, 128, &banks()), Wavefronts { count: 4, least: 4 });
        assert_eq!(sectors(&lanes, 128, 32), 4);
    }
}

/// The example of the module's page.
#[test]
fn a_tile_of_64_by_64_on_4_warps() {
    let layout = value("i = warp:4 · register:4 · lane:4, j = register:2 · lane:8 · register:4");
    let rows = memory("i = 64*2048, j = 64*32");
    let access = Access::new(&layout, &rows, 32).unwrap();
    let vectors = access.vectors(128, 128);
    assert_eq!((vectors.width, vectors.registers.len()), (4, 8));
    assert_eq!(access.wavefronts(&vectors, &banks()), Wavefronts { count: 128, least: 128 });
    assert_eq!(layout.reduction_scope("j"), Ok(Scope::Warp));
    assert_eq!(layout.slice("j").unwrap().replicas().len(), 2);
    let columns = memory("i = 64*32, j = 64*2048");
    let access = Access::new(&layout, &columns, 32).unwrap();
    let vectors = access.vectors(128, 128);
    assert_eq!(vectors.width, 1);
    assert_eq!(access.wavefronts(&vectors, &banks()), Wavefronts { count: 1024, least: 128 });
    let places = layout.then(&rows).unwrap().to_string();
    assert_eq!(
        places,
        "register = 4*8192 · 2*1024 · 4*32, lane = 4*2048 · 8*128, warp = 4*32768, cluster = 1"
    );
}
