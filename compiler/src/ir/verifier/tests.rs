//! Each rule, broken: a valid kernel with one change, and what the verifier says.

use super::verify;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{BufferKind, Definition, Kernel, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::ir::text::{PrintOptions, parse_kernel, print_kernel};

const VALID: &str = r#"kernel "valid" {
    symbol sym0 "n" i64 dim 0 0
    symbol sym1 "t" i64 counter
    buffer buf0 "x" f32 [sym0] argument 0 inout, aos
    buffer buf1 "y" struct "S" size 8 align 4 { "a" f32 at 0, "b" i32 at 4 } [sym0] argument 1 in, aos
    buffer buf2 "row" f64 [8] private, aos
    buffer buf3 "table" i32 [4] constant const0, aosoa 8
    buffer buf4 "goes_on" bool [] scratch, aos
    argument buf0
    argument buf1
    fact "n > 3" line 1: sym0 > 3
    site site0 "x" axis 0
    launch launch0 "valid_1" mapped threads 64 {
        v0: i64 = const 0
        v1: i64 = symbol sym0
        v2: i64 = const 8
        v3: bool = const true
        forall axis0 "i" = v0..v1 [grid:*, warp:2, lane:32] (v4 "i": i64) {
            v5: f32 = load buf0[v4]
            v6: i32 = load buf1.b[v4]
            v7: f32 = mul v5, v5
            v8: bool = lt v5, v7
            v9: f32 = select v8, v5, v7
            check site0: v3, v4, v1
            v12: f32, v13: i64 = reduce [argmax] axis1 "p" = v0..v2 [serial:8] (v10 "p": i64) {
                v11: f64 = load buf2[v10]
                v14: f32 = cast f32 v11
                yield v14, v10
            }
            v17: f32 = for axis2 "q" = v0..v2 [serial:*] step v2 carry [v9] (v15 "q": i64, v16: f32) {
                yield v16
            }
            v20: f32 = while [v17] (v18: f32) {
                yield v8
            } do (v19: f32) {
                yield v19
            }
            v21: f32 = if v3 {
                yield v20
            } else {
                yield v12
            }
            atomic add buf0[v4], v21
            yield
        }
    }
    launch launch1 "valid_2" mapped threads 1 {
    }
    plan { launch0 repeat sym1 = 0..4 by 1 { launch1 } while buf4 after { } do { } }
}
"#;

#[test]
fn what_is_explicit_has_no_place_in_an_abstract_launch() {
    let errors = |phase: &str, inst: &str| {
        let text = format!(
            "kernel \"k\" {{\n    buffer buf0 \"tile\" f32 [4] shared, aos\n    launch launch0 \"k\" {phase} {{\n        \
             v0: i64 = const 0\n        {inst}\n    }}\n    plan {{ launch0 }}\n}}\n"
        );
        let kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        verify(&kernel).err().map_or(String::new(), |errors| errors[0].message.clone())
    };
    let explicit = "`mapped` or `staged`";
    let blocks = "`tiled`, `mapped` or `staged`";
    for (inst, phases) in [
        ("barrier", explicit),
        ("warp_barrier", explicit),
        ("v1: i64 = thread_index", explicit),
        ("v1: i64 = block_index 0", blocks),
        ("copy_commit", blocks),
    ] {
        let message = format!("the op stands in launches that are {phases}, this one is `abstract`");
        assert_eq!(errors("abstract", inst), message, "{inst}");
        assert_eq!(errors("mapped threads 32", inst), "", "{inst}");
        assert_eq!(errors("staged threads 32", inst), "", "{inst}");
    }
    let load = "v1: f32 = load buf0[v0]";
    assert_eq!(errors("abstract", load), "shared memory is for launches that say what a block does");
    assert_eq!(errors("mapped threads 32", load), "");
}

/// What to replace by what.
const CHANGES: &[(&str, &str)] = &[
    ("\"n\" i64 dim", "\"n\" i32 dim"),
    ("const 8\n", "const 9223372036854775808\n"),
    ("v7: f32 = mul v5, v5", "v7: f32 = mul v5, v4"),
    ("v7: f32 = mul v5, v5", "v7: f32 = not v5"),
    ("v7: f32 = mul v5, v5", "v7: f64 = mul v5, v5"),
    ("v7: f32 = mul v5, v5", "v7: f32 = mul v5"),
    ("v7: f32 = mul v5, v5", "v7: f16 = cast f16 v5"),
    ("v8: bool = lt v5, v7", "v8: bool = cast bool v7"),
    ("v9: f32 = select v8, v5, v7", "v9: f32 = select v5, v5, v7"),
    ("load buf0[v4]", "load buf0[v4, v4]"),
    ("load buf0[v4]", "load buf0[v3]"),
    ("check site0: v3, v4, v1", "check site0: v4, v1"),
    ("atomic add buf0[v4], v21", "atomic argmin buf0[v4], v21"),
    ("atomic add buf0[v4], v21", "atomic xor buf0[v4], v21"),
    ("atomic add buf0[v4], v21", "store buf1.b[v4], v6"),
    ("atomic add buf0[v4], v21", "store buf3[v0], v6"),
    ("yield v14, v10", "yield v14, v14"),
    ("[argmax]", "[xor, add]"),
    ("[argmax]", "[add]"),
    ("yield v16", "yield v15"),
    ("yield v8\n", "yield v18\n"),
    ("yield v20", "yield v8"),
    ("(v15 \"q\": i64, v16: f32)", "(v15 \"q\": i64, v16: f32, v99: f32)"),
    ("yield v12", "yield v14"),
    ("atomic add buf0[v4], v21\n            yield", "atomic add buf0[v4], v21"),
    ("check site0: v3, v4, v1", "yield v1"),
    ("check site0: v3, v4, v1", "check site1: v3, v4, v1"),
    ("v1: i64 = symbol sym0", "v1: i64 = symbol sym7"),
    ("[grid:*, warp:2, lane:32]", ""),
    ("[grid:*, warp:2, lane:32]", "[grid:4, warp:*, lane:32]"),
    ("[grid:*, warp:2, lane:32]", "[grid:*, warp:4, lane:32]"),
    ("[grid:*, warp:2, lane:32]", "[grid:*, warp:0, lane:32]"),
    ("[serial:8]", "[serial:7]"),
    ("[serial:8]", "[lane:32]"),
    ("mapped threads 64", "abstract threads 64"),
    ("threads 64", "threads 65"),
    ("threads 64", ""),
    ("v1: i64 = symbol sym0", "v98: f32 = load buf0[v0] v1: i64 = cast i64 v98"),
    ("[sym0] argument 0", "[sym9] argument 0"),
    ("[8] private", "[sym0] private"),
    ("argument 1 in", "argument 0 in"),
    ("sym0 > 3", "sym5 > 3"),
    ("\"b\" i32 at 4", "\"b\" i32 at 4, \"b\" i32 at 4"),
    ("aosoa 8", "aosoa 12"),
    ("{ launch1 }", "{ }"),
    ("{ launch1 }", "{ launch1 launch7 }"),
    ("repeat sym1", "repeat sym0"),
    ("valid_2", "valid_1"),
    ("while buf4", "while buf2"),
];

fn valid() -> Kernel {
    parse_kernel(VALID).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_valid_kernel_is_valid() {
    assert_eq!(verify(&valid()), Ok(()));
}

#[test]
fn each_broken_rule_is_named() {
    let mut said = String::new();
    for (from, to) in CHANGES {
        assert!(VALID.contains(from), "{from}");
        let kernel =
            parse_kernel(&VALID.replacen(from, to, 1)).unwrap_or_else(|error| panic!("{to}: {error}"));
        let errors = verify(&kernel).expect_err(to);
        said.push_str(&format!("{} -> {}\n", from.trim(), to.trim()));
        for error in errors {
            said.push_str(&format!("    {error}\n"));
        }
    }
    insta::assert_snapshot!(said);
}

/// A kernel with the ops that stand for many.
const GROUPED: &str = r#"kernel "grouped" {
    symbol sym0 "n" i64 dim 0 0
    buffer buf0 "x" f32 [sym0] argument 0 inout, aos
    buffer buf1 "tile" f32 [4] shared, aos
    argument buf0
    launch launch0 "grouped" mapped threads 1 grid [1, 1, 1] {
        v0: i64 = const 0
        v1: bool = const true
        v2: f32 = load buf0[v0]
        v3: f64 = cast f64 v2
        v4: f32, v5: f32 = outer 2: v2, v2, v2, v2, v2
        store_if buf0[v0], v4, v1
        store_each buf0[v0], v0, v4, v5, v1, v1
    }
    plan { launch0 }
}
"#;

#[test]
fn rules_of_ops_that_stand_for_many_are_named() {
    let parsed = |text: &str| parse_kernel(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(verify(&parsed(GROUPED)), Ok(()));
    let changes = [
        ("outer 2: v2, v2, v2, v2, v2", "outer 2: v2, v2, v2, v2"),
        ("outer 2: v2, v2, v2, v2, v2", "outer 0: v2, v2"),
        ("outer 2: v2, v2, v2, v2, v2", "outer 1: v2, v2, v2"),
        ("outer 2: v2, v2, v2, v2, v2", "outer 2: v2, v3, v2, v2, v2"),
        ("outer 2: v2, v2, v2, v2, v2", "outer_fma 2: v0, v0, v0, v2, v2"),
        ("store_if buf0[v0], v4, v1", "store_if buf0[v0], v4, v2"),
        ("store_if buf0[v0], v4, v1", "store_if buf1[v0], v4, v1"),
        ("store_each buf0[v0], v0, v4, v5, v1, v1", "store_each buf0[v0], v0, v4, v5, v1"),
        ("store_each buf0[v0], v0, v4, v5, v1, v1", "store_each buf0[v0], v0, v4, v3, v1, v1"),
        ("store_each buf0[v0], v0, v4, v5, v1, v1", "store_each buf0[v0], v1, v4, v5, v1, v1"),
        ("store_each buf0[v0], v0, v4, v5, v1, v1", "store_each buf0[v0], v0, v4, v5, v1, v4"),
        ("store_each buf0[v0], v0, v4, v5, v1, v1", "store_each buf1[v0], v0, v4, v5, v1, v1"),
    ];
    let mut said = String::new();
    for (from, to) in changes {
        let errors = verify(&parsed(&GROUPED.replacen(from, to, 1))).expect_err(to);
        said.push_str(&format!("{to}\n"));
        errors.iter().for_each(|error| said.push_str(&format!("    {error}\n")));
    }
    insta::assert_snapshot!(said);
}

/// The first instruction with an op.
fn find(kernel: &Kernel, opcode: Opcode) -> Inst {
    kernel.insts.keys().find(|inst| kernel.insts[*inst].opcode == opcode).expect("it is in the text")
}

/// Damage that has no text.
#[test]
fn damaged_kernels_are_refused_and_print() {
    type Damage = fn(&mut Kernel);
    let damages: &[(&str, Damage)] = &[
        ("listed twice", |kernel| {
            let body = kernel.launches.values().next().expect("a launch").body;
            let first = kernel.blocks[body].insts[0];
            kernel.blocks[body].insts.push(first);
        }),
        ("a region shared", |kernel| {
            let (a, b) = (find(kernel, Opcode::Forall), find(kernel, Opcode::Reduce));
            kernel.insts[b].regions = kernel.insts[a].regions.clone();
        }),
        ("an operand that does not exist", |kernel| {
            let inst = find(kernel, Opcode::Mul);
            kernel.insts[inst].arguments[0] = Value::from_u32(7777);
        }),
        ("an instruction that does not exist", |kernel| {
            let body = kernel.launches.values().next().expect("a launch").body;
            kernel.blocks[body].insts.push(Inst::from_u32(7777));
        }),
        ("a result that another instruction defines", |kernel| {
            let (a, b) = (find(kernel, Opcode::Mul), find(kernel, Opcode::Lt));
            let result = kernel.insts[a].results[0];
            kernel.values[result].definition = Definition::Result(b, 0);
        }),
        ("a payload of another op", |kernel| {
            let inst = find(kernel, Opcode::Mul);
            kernel.insts[inst].payload = Payload::Cast(crate::data::Scalar::F32);
        }),
        ("axes shared", |kernel| {
            let (a, b) = (find(kernel, Opcode::Forall), find(kernel, Opcode::For));
            kernel.insts[b].payload = kernel.insts[a].payload.clone();
        }),
        ("a leaf that does not exist", |kernel| {
            let inst = find(kernel, Opcode::Load);
            if let Payload::Access { leaf, .. } = &mut kernel.insts[inst].payload {
                *leaf = 9;
            }
        }),
        ("a conditional load without its condition", |kernel| {
            let inst = find(kernel, Opcode::Load);
            kernel.insts[inst].opcode = Opcode::LoadIf;
        }),
        ("a conditional load from a thread's own array", |kernel| {
            let inst = find(kernel, Opcode::Load);
            let Payload::Access { buffer, .. } = kernel.insts[inst].payload else { return };
            kernel.buffers[buffer].kind = BufferKind::Private;
            let span = kernel.insts[inst].span;
            let literal = Payload::Constant(Constant::Bool(true));
            let literal = kernel.make_inst(Opcode::Const, literal, &[], span);
            let body = kernel.launches.values().next().expect("a launch").body;
            kernel.blocks[body].insts.insert(0, literal);
            let condition = kernel.insts[literal].results[0];
            kernel.insts[inst].opcode = Opcode::LoadIf;
            kernel.insts[inst].arguments.push(condition);
        }),
        ("a loop without bounds", |kernel| {
            let inst = find(kernel, Opcode::Forall);
            kernel.insts[inst].arguments.clear();
        }),
        ("a loop without a region", |kernel| {
            let inst = find(kernel, Opcode::Reduce);
            kernel.insts[inst].regions.clear();
        }),
    ];
    let mut said = String::new();
    for (what, damage) in damages {
        let mut kernel = valid();
        damage(&mut kernel);
        let errors = verify(&kernel).expect_err(what);
        said.push_str(&format!("{what}\n"));
        for error in errors.into_iter().take(2) {
            said.push_str(&format!("    {error}\n"));
        }
        assert!(print_kernel(&kernel, PrintOptions::default()).starts_with("kernel \"valid\" "), "{what}");
    }
    insta::assert_snapshot!(said);
}

/// A placed launch of 64 threads with a row of values, in two layouts.
const TILES: &str = r#"kernel "tiles" {
    symbol sym0 "n" i64 dim 0 0
    buffer buf0 "x" f32 [sym0] argument 0 inout, aos
    buffer buf1 "t" f32 [64] private, aos
    argument buf0
    launch launch0 "tiles" tiled threads 64 grid [1, 1, 1] axes [i: 64, j: 4] layouts ["i = warp:2 · lane:32", "i = lane:32 · warp:2", "_ = register:4, i = warp:2 · lane:32", "i = warp:2 · lane:32, j = register:4", "_ = warp:2 · lane:32, j = register:4"] {
        v0: i64 {i} layout0 = index i
        v1: f32 {i} layout0 = load buf0[v0]
        v2: f32 {i} layout1 = convert v1
        v3: f32 = reduce_along [add] i: v2
        v4: f32 {i} layout0 = mul v1, v3
        v5: i64 = const 0
        v6: i64 = const 4
        v7: bool = lt v5, v6
        v8: f32 {i} layout0 = for axis0 "t" = v5..v6 step v6 carry [v4] (v9: i64, v10: f32 {i} layout0) {
            v11: f32 {i} layout0 = add v10, v1
            yield v11
        }
        v12: bool {i} layout0 = lt v1, v8
        v13: f32 {i} layout0 = if v7 {
            yield v8
        } else {
            yield v3
        }
        store_if buf0[v0], v13, v12
    }
    plan { launch0 }
}
"#;

/// A placed product of one warp: 8 rows, 16 columns, 2 steps.
const PRODUCT: &str = r#"kernel "product" {
    buffer buf0 "a" f32 [8, 2] argument 0 in, aos
    buffer buf1 "c" f32 [8, 16] argument 1 inout, aos
    buffer buf2 "s" f32 [4] shared, aos
    argument buf0
    argument buf1
    launch launch0 "product" tiled threads 32 grid [1, 1, 1] axes [i: 8, j: 16, p: 2] layouts ["i = lane:8, j = lane:4 · register:4", "p = register:2, i = lane:8, _ = lane:4", "i = lane:8@4, _ = register:2 · lane:4@1", "p = register:2, _ = lane:8, j = lane:4 · register:4", "p = register:2, _ = lane:32", "_ = lane:8, j = lane:4 · register:4", "p = lane:2, i = lane:8, _ = lane:2", "p = register:2, i = lane:8@1, _ = lane:4@8", "i = lane:8, _ = lane:4 · register:4", "j = lane:4@1 · register:4@1, _ = register:2@4 · lane:8@4", "p = register:2@4, _ = register:4@1 · lane:32"] {
        v0: i64 {i} layout2 = index i
        v1: f32 {i} layout2 = cast f32 v0
        v2: i64 {p} layout4 = index p
        v3: f32 {i, p} layout1 = load buf0[v0, v2]
        v4: i64 {j} layout9 = index j
        v14: i64 {p} layout10 = index p
        v12: i64 {p, j} layout3 = add v14, v4
        v5: f32 {p, j} layout3 = cast f32 v12
        v6: i64 = const 0
        v7: f32 = const 0.0
        v9: f32 {i, p} layout6 = convert v3
        v10: f32 {i, p} layout7 = convert v3
        v11: i64 = address buf0[v6, v6]
        v13: i64 = const 4
        copy_async buf2[v6], v11, v13
        v8: f32 {i, j} layout0 = contract [p] v3, v5, v7
        v15: i64 {i} layout8 = index i
        v16: i64 {j} layout5 = index j
        store buf1[v15, v16], v8
    }
    plan { launch0 }
}
"#;

#[test]
fn rules_of_tiles_are_named() {
    let errors = |changes: &[(&str, &str)]| {
        let mut text = TILES.to_string();
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replace(from, to);
        }
        let kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        verify(&kernel).err().map_or(String::new(), |errors| errors[0].to_string())
    };
    assert_eq!(errors(&[]), "");
    let cases: [(&[(&str, &str)], &str); 15] = [
        (&[("v2: f32 {i} layout1 = convert v1", "v2: f32 {i} layout1 = neg v1")], "does not lie as"),
        (&[("v4: f32 {i} layout0 = mul", "v4: f32 {i} layout1 = mul")], "does not lie as"),
        (&[("v4: f32 {i} layout0 = mul v1, v3", "v4: f32 = mul v3, v3"), ("carry [v4]", "carry [v1]")], ""),
        (&[("v1: f32 {i} layout0 = load", "v1: f32 {i} = load")], "has no layout, as other tiles have"),
        (&[("v1: f32 {i} layout0 = load", "v1: f32 {i} layout9 = load")], "`layout9` is not declared"),
        (&[("v1: f32 {i} layout0 = load", "v1: f32 {i} layout4 = load")], "has another layout's axes"),
        (&[("v1: f32 {i} layout0 = load", "v1: f32 = load")], "lacks an axis of the operands"),
        (&[("reduce_along [add] i", "reduce_along [add] j")], "lack an axis that it is along"),
        (&[("v3: f32 = reduce", "v3: f32 {i} layout1 = reduce")], "has other axes than those that are left"),
        (&[("if v7", "if v12")], "decides for the whole block"),
        (&[("v10: f32 {i} layout0", "v10: f32")], "they have one shape"),
        (&[("threads 64", "threads 96")], "are not the launch's 96 threads"),
        (&[("axes [i: 64, j: 4]", "axes [i: 32, j: 4]")], "has no axis `i` of 64 elements"),
        (&[("grid [1, 1, 1] ", "")], "says how many blocks there are"),
        (&[("load buf0[v0]", "load buf1[v0]")], "an access of a thread's own memory"),
    ];
    for (changes, expected) in cases {
        let found = errors(changes);
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{changes:?}: {found}");
    }
    let product = |from: &str, to: &str| {
        assert!(PRODUCT.contains(from), "{from}");
        let text = PRODUCT.replace(from, to);
        let kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        verify(&kernel).err().map_or(String::new(), |errors| errors[0].to_string())
    };
    let cases = [
        ("contract [p]", "contract [p]", ""),
        ("v7: f32 = const 0.0", "v7: f64 = const 0.0", "f64"),
        ("contract [p] v3, v5, v7", "contract [p] v3, v5", "operands"),
        ("contract [p] v3", "contract [i] v3", "lacks an axis that it is along"),
        ("contract [p] v3", "contract [] v3", "has other axes than those of the factors that are left"),
        ("v3, v5, v7", "v3, v5, v3", "lacks, which it becomes"),
        ("v3, v5, v7", "v3, v5, v1", "does, which it becomes"),
        ("v3, v5, v7", "v9, v5, v7", "threads share the steps of `p`"),
        ("v3, v5, v7", "v10, v5, v7", "does, without the other's axes"),
        (
            "v11: i64 = address buf0[v6, v6]",
            "v11: i64 = address buf1[v6, v6]",
            "an address of what the launch writes",
        ),
    ];
    for (from, to, expected) in cases {
        let found = product(from, to);
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{from} {to}: {found}");
    }
    let lanes = [("\"i = lane:32 · warp:2\"", "\"i = lane:16@2 · warp:2 · lane:2@1\"")];
    assert_eq!(errors(&lanes), "");
    let staged =
        [(" tiled threads", " staged threads"), ("axes [i: 64, j: 4] layouts", "axes [i: 64, j: 4] layouts")];
    assert!(errors(&staged).contains("stands in launches that are `tiled`"), "{}", errors(&staged));
}

/// The first complaint about the body of a launch of one warp with a shared buffer of halves.
fn complaint_about(body: &str) -> String {
    let text = format!(
        "kernel \"k\" {{
    buffer buf0 \"halves\" bf16 [64, 8] shared, aos
    buffer buf1 \"words\" u32 [64, 8] shared, aos
    launch launch0 \"k\" staged threads 32 grid [1, 1, 1] {{
        v0: i64 = const 0
        v1: f32 = const 1.0
        v2: u32 = const 0
        {body}
    }}
    plan {{ launch0 }}
}}
"
    );
    let kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&kernel).err().map_or_else(String::new, |errors| errors[0].message.clone())
}

#[test]
fn matrix_instructions_have_their_words() {
    let results = "v3: f32, v4: f32, v5: f32, v6: f32";
    let words = "v2, v2, v2, v2, v2, v2";
    assert_eq!(complaint_about(&format!("{results} = mma f16 f16: {words}, v1, v1, v1, v1")), "");
    let refused = |body: &str, part: &str| {
        let found = complaint_about(body);
        assert!(found.contains(part), "{body}: {found}");
    };
    refused(
        &format!("{results} = mma f16 bf16: {words}, v1, v1, v1, v1"),
        "no instruction multiplies f16 and bf16",
    );
    refused(&format!("{results} = mma i8 u8: {words}, v1, v1, v1, v1"), "operands have types");
    refused(&format!("{results} = mma f16 f16: {words}, v1, v1, v1"), "operands have types");
    assert_eq!(complaint_about("v3: u32 = pack bf16 v1, v1"), "");
    refused("v3: u32 = pack bf16 v1, v1, v1", "operands have types");
    refused("v3: u32 = pack f32 v1", "has no parts of a word");
    assert_eq!(complaint_about("v3: u32, v4: u32 = load_matrix buf0[v0, v0]"), "");
    refused("v3: u32, v4: u32, v5: u32 = load_matrix buf0[v0, v0]", "3 words: not 1, 2 or 4");
    refused("v3: u32 = load_matrix buf1[v0, v0]", "elements of 8 or 16 bits");
    refused("v3: bf16 = load buf0[v0, v0]", "a value of a storage type, outside of phase `tiled`");
    refused(
        "v3: f32 = load buf0[v0, v0]\nv4: bf16 = cast bf16 v3\nv5: bf16 = add v4, v4",
        "a value of the storage type bf16",
    );
}
