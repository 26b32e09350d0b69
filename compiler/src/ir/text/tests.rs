use super::*;
use crate::ir::verify;

/// Everything that the text form has.
const ALL: &str = r#"constant const0 "table" f32 [2] hex "0000803f00000040"
static static0 "counter" u32 [] hex "00000000"

kernel "all" @1..99 {
    hint block 64
    hint order ["i", "j"]
    hint tile "i" 32 @10..12
    hint per_thread "i" 4
    hint stage "body" pad 1 depth 2
    hint stage "row" swizzle
    hint stage "table"
    hint unroll "p" 4
    hint unroll "q"
    hint vectorize "i" 4
    hint warps "j" 2
    hint split "p" 64
    hint atomic "counter"
    hint fast_math
    hint tf32
    symbol sym0 "n" i64 dim 0 0
    symbol sym1 "config.scale" f16 parameter 1 2 0
    symbol sym2 "t" i64 counter
    buffer buf0 "body" struct "Body" size 20 align 4 { "pos.x" f32 at 0, "w" i8 at 4 [2 by 8] [8 by 1] } [sym0, ceildiv(sym0 + 1, 2)] argument 0 inout, aosoa 32 fixed runs_on, cache cg
    buffer buf1 "table" f32 [2] constant const0, aos
    buffer buf2 "counter" u32 [] static static0, aos
    buffer buf3 "row" f64 [8] private, aos
    buffer buf4 "temporary" i64 [max(sym0, 3)] scratch, soa
    buffer buf5 "goes_on" bool [] scratch, aos
    argument buf0
    argument "config" struct "Config" size 2 align 2 { "scale" f16 at 0 }
    fact "n > 3 && !false" line 7: (sym0 > 3) && not(false)
    fact "scale < 1.5" line 8: sym1 < 1.5
    injection "injective(at in -1..n)" line 8: argument 0 in -1 .. sym0
    site site0 "table" axis 0 @20..24
    site site1 "at" axis 0 unsigned injection 0 @25..29
    site site2 "" axis 0 assertion "v > \"0\""("i", "j") @30..34
    site site3 "" axis 0 print ("v" f32, "s" struct "S" size 4 align 4 { "a" f32 at 0 }) ["i" 3] @30..34
    launch launch0 "all_1" mapped threads 64 {
        v0: i64 = const 0
        v1 "a \"name\"\n": f32 = const -0.0
        v2: f32 = const 0x7fc00001
        v3: f64 = const inf
        v4: bool = const true
        v5: u64 = const 18446744073709551615
        v6: i64 = symbol sym0
        v7: f32 = symbol sym1
        forall axis0 "i" = v0..v6 [grid:*, warp:2], axis1 "j" = v0..v6 [grid:*, lane:32] @4..9 (v8 "i": i64, v9 "j": i64) {
            v10: i64 = const 1
            v15: f32, v16: i64 = reduce [argmax] axis2 "p" = v0..v9 [serial:*] (v11 "p": i64) {
                check site0: v4, v11, v10 @30..31
                check site1: v4, v11, v10, v11
                check site2: v4, v8, v11
                print site3: v8, v2, v7
                v12: f32 = load buf1[v11]
                v13: f32 = cast bf16 v12
                v14: f32 = fma v12, v13, v7
                yield v14, v11
            }
            v22: i64 = for axis3 "q" = v0..v6 [serial:*] step v10 carry [v0] (v17 "q": i64, v18: i64) {
                v21: i64 = while [v18] (v19: i64) {
                    yield v4
                } do (v20: i64) {
                    yield v20
                }
                yield v21
            }
            v25: u32 = if v4 {
                v23: u32 = const 1
                yield v23
            } else {
                v24: u32 = cast u8 v22
                yield v24
            }
            atomic max buf2[], v25
            v26: i32 = cast i32 v25
            store buf0.w[v8, v9, v0, v10], v26
            store buf0.pos.x[v8, v9], v15
            store buf3[v0], v3
            store buf4[v8], v16
            yield
        }
    }
    launch launch1 "all_2" mapped threads 1 {
    }
    launch launch2 "all_3" mapped threads 1 {
        v27: bool = const false
        store buf5[], v27
    }
    plan { repeat sym2 = 0..(sym0 % 7) by 2 { launch0 } if sym0 == neg(3) { launch1 } else { } while buf5 after { launch2 } do { } }
}
"#;

/// What a kernel of explicit threads has.
const THREADS: &str = r#"kernel "threads" {
    symbol sym0 "n" i64 dim 0 0
    buffer buf0 "x" f32 [sym0] argument 0 inout, aos
    buffer buf1 "pieces" f32 [2] shared, aos
    argument buf0
    launch launch0 "threads" staged threads 64 grid [ceildiv(sym0, 128), 1, 1] assume [(sym0 % 2) == 0] {
        v0 "block": i64 = block_index 0
        v1: i64 = grid_size 2
        v2: i64 = thread_index
        v3 "named": i64 = thread_index
        v4: f32, v5: f32 = load_vector buf0[v2]
        barrier
        v6: f32 = shuffle_xor 16: v4
        barrier
        v7 "named": f32 = load buf1[v0]
        store_vector buf0[v2], v6, v7
        v8: bool = lt v6, v7
        store_if buf0[v2], v6, v8
        store_each buf0[v2], v0, v6, v7, v8, v8
    }
    plan { launch0 }
}
"#;

#[test]
fn explicit_threads_survive_the_round_trip() {
    let module = parse_module(THREADS).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(print_module(&module, PrintOptions::default()), THREADS);
    assert_eq!(verify(&module.kernels[0]), Ok(()));
}

#[test]
fn everything_survives_the_round_trip() {
    let module = parse_module(ALL).unwrap_or_else(|error| panic!("{error}"));
    let printed = print_module(&module, PrintOptions::default());
    // Parentheses that the parser allows and the printer leaves out.
    assert_eq!(printed, ALL.replace("0..(sym0 % 7) by", "0..sym0 % 7 by"));
    assert_eq!(parse_module(&printed).as_ref(), Ok(&module));
    let kernel = &module.kernels[0];
    assert_eq!(kernel.compacted(), *kernel);
    if let Err(errors) = verify(kernel) {
        panic!("{errors:#?}");
    }
}

#[test]
fn spans_can_be_left_out() {
    let module = parse_module(ALL).unwrap_or_else(|error| panic!("{error}"));
    assert!(!print_module(&module, PrintOptions { spans: false }).contains('@'));
}

#[test]
fn a_text_cut_or_changed_anywhere_is_an_error_or_a_kernel_and_no_panic() {
    for end in (0..ALL.len() - 1).filter(|end| ALL.is_char_boundary(*end)) {
        if let Ok(module) = parse_module(&ALL[..end]) {
            assert!(module.kernels.is_empty());
        }
        for other in ["}", "v7", "-", "9999999999999999999999", "\"", "@", ".."] {
            let changed = format!("{}{other}{}", &ALL[..end], &ALL[end + 1..]);
            if let Ok(module) = parse_module(&changed) {
                let _ = module.kernels.iter().map(verify).count();
            }
        }
    }
}

#[test]
fn errors_say_where_and_what() {
    let within = |body: &str| {
        let text = format!(
            "kernel \"k\" {{\n    launch launch0 \"k\" abstract {{\n{body}\n    }}\n    plan {{ launch0 }}\n}}\n"
        );
        parse_kernel(&text).map(|_| ()).unwrap_err().to_string()
    };
    let errors = [
        within("v0: i32 = const 1.5"),
        within("v0: i32 = const 1 v1: i32 = add v0, v7"),
        within("v0: i32 = const 1 v0: i32 = const 2"),
        within("v0: f16x = const 1"),
        within("v0: i32 = frobnicate"),
        within("store buf0[], v1"),
        within(&"forall axis0 \"i\" = v0..v1 (v2: i64) {".repeat(200)),
        within("v0: i64 = const 0 forall axis0 \"i\" = v0..v0 [lane] (v1: i64) { yield }"),
        within("yield #"),
        parse_kernel("").unwrap_err().to_string(),
        parse_kernel("kernel \"k\" { symbol sym1 \"n\" i64 counter }").unwrap_err().to_string(),
        parse_kernel("kernel \"k\" { launch launch0 \"k\" flattish { } }").unwrap_err().to_string(),
        parse_kernel(&format!("kernel \"k\" {{ fact \"f\" line 1: {}", "(".repeat(5000)))
            .unwrap_err()
            .to_string(),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

proptest::proptest! {
    #[test]
    fn random_kernels_are_valid_and_survive_the_round_trip(tape in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        let kernel = crate::ir::testing::generate(&tape);
        let text = print_kernel(&kernel, PrintOptions::default());
        if let Err(errors) = verify(&kernel) {
            panic!("{text}\n{errors:#?}");
        }
        let parsed = parse_kernel(&text);
        proptest::prop_assert_eq!(parsed.as_ref(), Ok(&kernel));
        proptest::prop_assert_eq!(&kernel.compacted(), &kernel);
    }
}
