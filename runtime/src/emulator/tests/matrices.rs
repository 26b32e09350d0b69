//! Matrix instructions: products of fragments, and loads of them.

use super::{bench, kernel};
use crate::emulator::{ArgValue, Emulator, Kind, LaunchConfig};
use krn_compiler::atoms::{FactorType, MATRIX_ATOMS, MatrixAtom};
use krn_compiler::ptx;

const REGS: &str = ".shared .align 16 .b8 tile[2048];\n.reg .b32 %a<4>, %b<2>, %s, %v; .reg .f32 %c<4>;\n.reg .b32 %i<4>;\n\
                    .reg .b64 %p, %q; .reg .pred %odd;\n";

/// As PTX names the types of a matrix instruction.
fn mnemonic(atom: &MatrixAtom) -> String {
    let name = |factor: FactorType| match factor {
        FactorType::I8 => "s8",
        other => other.name(),
    };
    let sum = if atom.left.is_float() { "f32" } else { "s32" };
    let (left, right) = (name(atom.left), name(atom.right));
    format!("mma.sync.aligned.{}.row.col.{sum}.{left}.{right}.{sum}", atom.shape())
}

/// Loads the ten words of each lane, multiplies, and stores the four results over the first of them.
fn product(atom: &MatrixAtom) -> String {
    let sums = if atom.left.is_float() { "c" } else { "i" };
    let mut body = "mad.wide.u32 %p, %t, 40, %io;\n".to_owned();
    for at in 0..4 {
        body += &format!(
            "ld.global.b32 %a{at}, [%p+{}];\nld.global.b32 %{sums}{at}, [%p+{}];\n",
            4 * at,
            24 + 4 * at
        );
    }
    body += "ld.global.b32 %b0, [%p+16];\nld.global.b32 %b1, [%p+20];\n";
    let list = |name: &str| (0..4).map(|at| format!("%{name}{at}")).collect::<Vec<_>>().join(", ");
    body += &format!("{} {{{1}}}, {{{2}}}, {{%b0, %b1}}, {{{1}}};\n", mnemonic(atom), list(sums), list("a"));
    for at in 0..4 {
        body += &format!("st.global.b32 [%p+{}], %{sums}{at};\n", 4 * at);
    }
    kernel(&["io"], REGS, &body)
}

#[test]
fn products_are_those_of_the_atoms() {
    for atom in MATRIX_ATOMS {
        let mut state = 7u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        let words: Vec<u32> = (0..320).map(|_| word()).collect();
        let column = |at: usize| -> [u32; 32] { std::array::from_fn(|lane| words[lane * 10 + at]) };
        let columns =
            |from: usize, count: usize| -> Vec<[u32; 32]> { (from..from + count).map(column).collect() };
        let expected = atom.run(&columns(0, 4), &columns(4, 2), &columns(6, 4));
        let mut bench = bench(&product(atom));
        let io = bench.alloc("io", &words);
        bench.launch(LaunchConfig::linear(1, 32), &[io]).unwrap_or_else(|error| panic!("{error}"));
        let found = bench.read(io, 320);
        for (register, lanes) in expected.iter().enumerate() {
            for (lane, expected) in lanes.iter().enumerate() {
                assert_eq!(found[lane * 10 + register], *expected, "{}", mnemonic(atom));
            }
        }
    }
}

/// Fills shared memory with its own numbers of 16 bits, rows of 16 bytes so far apart, and loads from it.
fn load(count: usize, transposed: bool, pitch: usize) -> String {
    let registers: Vec<String> = (0..count).map(|at| format!("%a{at}")).collect();
    let mut body = format!("mov.u32 %s, tile;\nmad.lo.u32 %s, %t, {pitch}, %s;\n");
    for word in 0..4 {
        // 2 · word of row t, and the next one.
        body += &format!(
            "mad.lo.u32 %v, %t, {}, {};\nst.shared.b32 [%s+{}], %v;\n",
            8 + (8 << 16),
            2 * word + ((2 * word + 1) << 16),
            4 * word
        );
    }
    let trans = if transposed { ".trans" } else { "" };
    body += &format!(
        "bar.warp.sync 0xffffffff;\nldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{}}}, [%s];\n\
         mad.wide.u32 %p, %t, 16, %out;\n",
        registers.join(", ")
    );
    for (at, register) in registers.iter().enumerate() {
        body += &format!("st.global.b32 [%p+{}], {register};\n", 4 * at);
    }
    kernel(&["out"], REGS, &body)
}

#[test]
fn matrices_go_to_the_lanes() {
    for count in [1, 2, 4] {
        for transposed in [false, true] {
            let mut bench = bench(&load(count, transposed, 16));
            let out = bench.alloc("out", &[0; 128]);
            bench.launch(LaunchConfig::linear(1, 32), &[out]).unwrap_or_else(|error| panic!("{error}"));
            let found = bench.read(out, 128);
            for lane in 0..32 {
                for register in 0..count {
                    let element = |part: usize| {
                        let (row, column) = match transposed {
                            false => (lane / 4, 2 * (lane % 4) + part),
                            true => (2 * (lane % 4) + part, lane / 4),
                        };
                        ((8 * register + row) * 8 + column) as u32
                    };
                    assert_eq!(
                        found[lane * 4 + register],
                        element(0) | element(1) << 16,
                        "{count} {transposed}"
                    );
                }
            }
        }
    }
}

#[test]
fn rows_have_wavefronts_by_their_banks() {
    let text =
        |pitch: usize| format!(".version 8.0\n.target sm_90\n.address_size 64\n{}", load(4, false, pitch));
    // Eight rows of 16 bytes fill a wavefront, unless they lie in the same banks.
    for (pitch, expected) in [(16, 4), (48, 4), (64, 16), (32, 8)] {
        let module = ptx::parse(&text(pitch)).unwrap_or_else(|error| panic!("{error}"));
        let mut device = Emulator::new();
        let module = device.load_module(&module).unwrap();
        let out = device.alloc(512, "out").unwrap();
        let launched =
            device.launch_counted(&module, "k", &LaunchConfig::linear(1, 32), &[ArgValue::from(out)]);
        let loads =
            launched.unwrap_or_else(|error| panic!("{error}")).1.total(|kind| kind == Kind::SharedLoad);
        assert_eq!((loads.shared_requests, loads.wavefronts), (1, expected), "{pitch}");
    }
}

#[test]
fn all_lanes_must_come() {
    let body = "setp.lt.u32 %odd, %t, 20;\n@%odd mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 \
                {%c0, %c1, %c2, %c3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%c0, %c1, %c2, %c3};\n";
    let mut bench = bench(&kernel(&["out"], REGS, body));
    let out = bench.alloc("out", &[0; 4]);
    let fault = bench.fault(LaunchConfig::linear(1, 32), &[out]);
    assert!(fault.to_string().contains("all lanes of a warp"), "{fault}");
    let text = load(1, false, 16).replace("[%s];\nmad.wide", "[%s+4];\nmad.wide");
    let mut bench = super::bench(&text);
    let out = bench.alloc("out", &[0; 128]);
    let fault = bench.fault(LaunchConfig::linear(1, 32), &[out]);
    assert!(fault.to_string().contains("misaligned"), "{fault}");
}
