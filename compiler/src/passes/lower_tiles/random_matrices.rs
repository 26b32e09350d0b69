//! Random products by matrix atoms, as text: of all types, with fragments from global or shared memory that run along either
//! axis there, padded or not, and with the factors in either order.

use super::random::Tape;
use crate::ir::kernel::Kernel;
use crate::ir::text::parse_kernel;
use crate::layout::ValueLayout;

/// Factors: their types, that of the sums, the atom, and how many elements a word has.
const TYPES: [(&str, &str, &str, &str, u64); 6] = [
    ("bf16", "bf16", "f32", "mma", 2),
    ("f16", "f16", "f32", "mma", 2),
    ("i8", "i8", "i32", "mma", 4),
    ("i8", "u8", "i32", "mma", 4),
    ("bf16", "bf16", "f32", "mma", 2),
    ("f32", "f32", "f32", "tf32", 1),
];

/// The text of a program, line by line.
#[derive(Default)]
struct Text {
    layouts: Vec<ValueLayout>,
    lines: Vec<String>,
    values: usize,
}

impl Text {
    /// A layout's number.
    fn layout(&mut self, layout: &ValueLayout) -> String {
        let known = self.layouts.iter().position(|known| known == layout);
        let number = known.unwrap_or_else(|| {
            self.layouts.push(layout.clone());
            self.layouts.len() - 1
        });
        format!("layout{number}")
    }

    fn value(&mut self, ty: &str, axes: &str, layout: Option<&ValueLayout>, what: &str) -> String {
        let name = format!("v{}", self.values);
        self.values += 1;
        let tile = layout.map(|layout| format!(" {{{axes}}} {}", self.layout(layout)));
        self.lines.push(format!("{name}: {ty}{} = {what}", tile.unwrap_or_default()));
        name
    }

    fn index(&mut self, axis: &str, layout: &ValueLayout, other: &str) -> String {
        let own = layout.slice(other).expect("it has two axes");
        self.value("i64", axis, Some(&own), &format!("index {axis}"))
    }
}

/// Where a factor lies, and how it comes to be a fragment.
struct Factor<'t> {
    ty: &'t str,
    buffer: usize,
    /// Its row or column, and the steps.
    axes: [&'t str; 2],
    layout: ValueLayout,
}

/// Loads a factor: from global memory, or from shared memory where it was put before.
fn load(
    tape: &mut Tape<'_>,
    text: &mut Text,
    buffers: &mut Vec<String>,
    factor: &Factor<'_>,
    extents: [u64; 2],
) -> String {
    let Factor { ty, buffer, axes: [own, steps], layout } = factor;
    let both = format!("{own}, {steps}");
    let indices = [text.index(own, layout, steps), text.index(steps, layout, own)];
    let place = |flipped: bool| {
        let [first, second] = if flipped { [1, 0] } else { [0, 1] };
        format!("{}, {}", indices[first], indices[second])
    };
    let from = place(false);
    if tape.pick(3) == 0 {
        return text.value(ty, &both, Some(layout), &format!("load buf{buffer}[{from}]"));
    }
    let wide = match *ty {
        "i8" => "i32",
        "u8" => "u32",
        _ => "f32",
    };
    let whole = text.value(wide, &both, Some(layout), &format!("load buf{buffer}[{from}]"));
    let flipped = tape.pick(2) == 1;
    let shared = 3 + buffers.len();
    let pad = [0, 8, 1, 16][tape.pick(4)];
    let [rows, columns] = if flipped { [extents[1], extents[0]] } else { extents };
    buffers.push(format!(
        "buffer buf{shared} \"tile{shared}\" {ty} [{rows}, {}] shared, aos fixed",
        columns + pad
    ));
    text.lines.push(format!("store buf{shared}[{}], {whole}", place(flipped)));
    text.value(ty, &both, Some(layout), &format!("load buf{shared}[{}]", place(flipped)))
}

/// A program of one block: two factors, their product added to a sum, a store.
pub fn program(tape: &[u8]) -> Kernel {
    let tape = &mut Tape(tape);
    let (left, right, sum, atom, per) = TYPES[tape.pick(TYPES.len())];
    let [warp_rows, warp_columns] = [1 + tape.pick(2) as u64, 1 + tape.pick(2) as u64];
    let [rows, columns, chunks] = [[1, 2][tape.pick(2)], [1, 2, 3][tape.pick(3)], [1, 2][tape.pick(2)]];
    let warps = warp_rows * warp_columns;
    // Digits above those of the fragment, in either order.
    let order = |tape: &mut Tape<'_>, low: u64, sizes: [u64; 2]| {
        if tape.pick(2) == 0 { [low, low * sizes[0]] } else { [low * sizes[1], low] }
    };
    let digit = |dimension: &str, size: u64, position: u64| {
        if size > 1 { format!("{dimension}:{size}@{position} · ") } else { String::new() }
    };
    let unused = |size: u64, position: u64| {
        if size > 1 { format!(", _ = warp:{size}@{position}") } else { String::new() }
    };
    let elements = if per > 1 { format!(" · register:{per}@1") } else { String::new() };
    let [of_row, of_step] = order(tape, 4 * per, [rows, chunks]);
    let left_layout = format!(
        "i = {}{}register:2@{per} · lane:8@4, h = {}register:2@{} · lane:4@1{elements}{}",
        digit("warp", warp_rows, warp_columns),
        digit("register", rows, of_row),
        digit("register", chunks, of_step),
        2 * per,
        unused(warp_columns, 1),
    );
    let [of_column, of_step] = order(tape, 2 * per, [columns, chunks]);
    let right_layout = format!(
        "h = {}register:2@{per} · lane:4@1{elements}, j = {}{}lane:8@4{}",
        digit("register", chunks, of_step),
        digit("warp", warp_columns, 1),
        digit("register", columns, of_column),
        unused(warp_rows, warp_columns),
    );
    let [of_row, of_column] = order(tape, 4, [rows, columns]);
    let sum_layout = format!(
        "i = {}{}register:2@2 · lane:8@4, j = {}{}lane:4@1 · register:2@1",
        digit("warp", warp_rows, warp_columns),
        digit("register", rows, of_row),
        digit("warp", warp_columns, 1),
        digit("register", columns, of_column),
    );
    let [left_layout, right_layout, sum_layout] = [left_layout, right_layout, sum_layout]
        .map(|text| text.parse::<ValueLayout>().unwrap_or_else(|error| panic!("{text}: {error}")));
    let extents = [16 * rows * warp_rows, 8 * columns * warp_columns, 8 * per * chunks];
    let [i, j, h] = extents;
    let mut text = Text::default();
    let mut buffers = Vec::new();
    let factors = [
        Factor { ty: left, buffer: 0, axes: ["i", "h"], layout: left_layout },
        Factor { ty: right, buffer: 1, axes: ["j", "h"], layout: right_layout },
    ];
    let [a, b] = [(&factors[0], [i, h]), (&factors[1], [j, h])]
        .map(|(factor, extents)| load(tape, &mut text, &mut buffers, factor, extents));
    let rows = text.index("i", &sum_layout, "j");
    let columns = text.index("j", &sum_layout, "i");
    let before = match tape.pick(2) {
        0 => text.value(sum, "", None, if sum == "f32" { "const 0.0" } else { "const 0" }),
        _ => text.value(sum, "i, j", Some(&sum_layout), &format!("load buf2[{rows}, {columns}]")),
    };
    let [first, second] = if tape.pick(2) == 0 { [a, b] } else { [b, a] };
    let what = format!("contract {atom} [h] {first}, {second}, {before}");
    let product = text.value(sum, "i, j", Some(&sum_layout), &what);
    text.lines.push(format!("store buf2[{rows}, {columns}], {product}"));
    let layouts: Vec<String> = text.layouts.iter().map(|layout| format!("\"{layout}\"")).collect();
    let text = format!(
        "kernel \"random\" {{\n    buffer buf0 \"a\" {left} [{i}, {h}] argument 0 in, aos\n    buffer buf1 \"b\" {right} [{j}, {h}] argument 1 in, aos\n    buffer buf2 \"c\" {sum} [{i}, {j}] argument 2 inout, aos\n    {}\n    argument buf0\n    argument buf1\n    argument buf2\n    launch launch0 \"random\" tiled threads {} grid [1, 1, 1] axes [i: {i}, j: {j}, h: {h}] layouts [{}] {{\n        {}\n    }}\n    plan {{ launch0 }}\n}}\n",
        buffers.join("\n    "),
        32 * warps,
        layouts.join(", "),
        text.lines.join("\n        "),
    );
    parse_kernel(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}
