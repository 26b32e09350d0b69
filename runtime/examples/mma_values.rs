//! What the emulator says of matrix instructions on hard operands, for `bench/mma.py` to hold against a GPU:
//!
//! `cargo run --release -p krn-runtime --example mma_values -- FILE [INSTRUCTIONS]`
//!
//! Operands are a function of their number, which `bench/mma.cu` computes as well; the file has the results alone. For each
//! type the words of the sums: by instruction, by register, by lane.

use krn_compiler::atoms::{FactorType, MATRIX_ATOMS, MatrixAtom};
use krn_compiler::ptx;
use krn_runtime::emulator::{ArgValue, Emulator, LaunchConfig};
use std::fs;

/// Instructions of each type, unless said: a million sums.
const INSTRUCTIONS: u64 = 8192;
/// Words of a lane: of the left factor, of the right one, of the sums.
const WORDS: usize = 10;

/// SplitMix64.
fn hash(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A float of so many bits of exponent and of fraction, one of eight kinds of hard ones.
fn float(kind: u64, exponent_bits: u32, fraction_bits: u32, hash: u64) -> u32 {
    let (bias, top) = ((1u32 << (exponent_bits - 1)) - 1, (1u32 << exponent_bits) - 1);
    let mask = (1u32 << fraction_bits) - 1;
    let (sign, dice) = ((hash & 1) as u32, (hash >> 32) as u32);
    let fraction = (hash >> 1) as u32 & mask;
    let wide = if exponent_bits == 5 { 12 } else { 20 };
    let (exponent, fraction) = match kind {
        // Anything, also infinite and missing numbers.
        0 => (dice & top, fraction),
        // Of one size, and of many.
        1 => (bias - 3 + dice % 7, fraction),
        2 => (bias - wide + dice % (2 * wide + 1), fraction),
        // Near powers of two, of which some cancel.
        3 => (bias - (dice >> 8) % 2 * 12, [0, 1, mask, fraction][(dice % 4) as usize]),
        // Subnormal.
        4 => ([bias + (dice >> 8) % 4, 0, 1 + (dice >> 8) % 4][(dice % 3) as usize], fraction),
        // Near the end of the range.
        5 => (if (dice >> 8) % 16 == 0 { bias } else { top - 1 - dice % 4 }, fraction),
        // Zeros among small ones.
        6 if dice & 1 == 1 => (0, 0),
        6 => (if (dice >> 8) % 2 == 1 { 0 } else { bias - 1 }, fraction),
        // Small integers.
        _ => (bias + dice % 3, 0),
    };
    sign << (exponent_bits + fraction_bits) | exponent << fraction_bits | fraction
}

/// A word of an operand: of a factor for the first six, of a sum for the others.
fn word(ty: u64, atom: &MatrixAtom, instruction: u64, operand: u64, lane: u64) -> u32 {
    let kind = instruction % 8;
    let part = |part: u64| hash((((ty << 20 | instruction) * 16 + operand) * 32 + lane) * 4 + part);
    let factor = if operand < 4 { atom.left } else { atom.right };
    match factor {
        FactorType::I8 | FactorType::U8 if kind == 1 && operand < 6 => {
            let bits = part(0);
            (0..4)
                .fold(0, |word, byte| word | (if bits >> byte & 1 == 1 { 0x80 } else { 0x7f }) << (8 * byte))
        }
        FactorType::I8 | FactorType::U8 => part(0) as u32,
        _ if operand >= 6 => float(kind, 8, 23, part(0)),
        FactorType::F16 => float(kind, 5, 10, part(0)) | float(kind, 5, 10, part(1)) << 16,
        FactorType::Bf16 => float(kind, 8, 7, part(0)) | float(kind, 8, 7, part(1)) << 16,
        FactorType::Tf32 => float(kind, 8, 23, part(0)),
    }
}

/// A kernel of which each warp multiplies what lies in memory, and stores the sums.
fn text(atom: &MatrixAtom) -> String {
    let name = |factor: FactorType| if factor == FactorType::I8 { "s8" } else { factor.name() };
    let (class, sum) = if atom.left.is_float() { ("f32", "f32") } else { ("b32", "s32") };
    let mut body = String::new();
    let register = |at: usize| if at < 6 { format!("%a{at}") } else { format!("%c{at}") };
    for at in 0..WORDS {
        body += &format!("ld.global.b32 {}, [%p+{}];\n", register(at), 4 * at);
    }
    let list = |from: usize, to: usize| (from..to).map(register).collect::<Vec<_>>().join(", ");
    body += &format!(
        "mma.sync.aligned.{}.row.col.{sum}.{}.{}.{sum} {{{3}}}, {{{4}}}, {{{5}}}, {{{3}}};\n",
        atom.shape(),
        name(atom.left),
        name(atom.right),
        list(6, 10),
        list(0, 4),
        list(4, 6)
    );
    for at in 6..WORDS {
        body += &format!("st.global.b32 [%p+{}], {};\n", 4 * at, register(at));
    }
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 io)\n{{\n\
         .reg .b32 %a<6>, %t, %b; .reg .{class} %c<10>; .reg .b64 %p, %q;\nld.param.u64 %p, [io];\n\
         mov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.x;\nmad.lo.u32 %t, %b, 32, %t;\n\
         mad.wide.u32 %p, %t, {}, %p;\n{body}ret;\n}}\n",
        4 * WORDS
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: mma_values FILE [INSTRUCTIONS]")?;
    let count = arguments.next().map_or(Ok(INSTRUCTIONS), |count| count.parse())?;
    let mut file = Vec::new();
    for (ty, atom) in (0u64..).zip(MATRIX_ATOMS) {
        let mut words = Vec::new();
        for instruction in 0..count {
            for lane in 0..32 {
                words.extend((0..WORDS as u64).map(|operand| word(ty, atom, instruction, operand, lane)));
            }
        }
        let module = ptx::parse(&text(atom)).map_err(|error| error.to_string())?;
        let mut device = Emulator::new();
        let module = device.load_module(&module)?;
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let io = device.alloc(bytes.len() as u64, "io")?;
        device.copy_in(io, &bytes)?;
        device.launch(&module, "k", &LaunchConfig::linear(count as u32, 32), &[ArgValue::from(io)])?;
        device.copy_out(io, &mut bytes)?;
        for instruction in 0..count as usize {
            for register in 6..WORDS {
                for lane in 0..32 {
                    let at = 4 * ((instruction * 32 + lane) * WORDS + register);
                    file.extend_from_slice(&bytes[at..at + 4]);
                }
            }
        }
        println!("{} {} {}: {count} instructions", atom.shape(), atom.left.name(), atom.right.name());
    }
    fs::write(path, file)?;
    Ok(())
}
