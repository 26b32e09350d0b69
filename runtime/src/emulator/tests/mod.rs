//! Tests of the emulator, one file a family of instructions; kernels are PTX text.

mod arithmetic;
mod atomics;
mod collectives;
mod control;
mod conversion;
mod faults;
mod floats;
mod grids;
mod logic;
mod matrices;
mod memory;

use krn_compiler::ptx;

use super::{ArgValue, Emulator, Fault, LaunchConfig, LaunchError, LaunchReport, LoadedModule};

/// A device with one module loaded.
pub struct Bench {
    pub device: Emulator,
    pub module: LoadedModule,
}

/// Loads a module's text; the first lines are added.
pub fn bench(text: &str) -> Bench {
    let text = format!(".version 8.0\n.target sm_90\n.address_size 64\n{text}");
    let module = ptx::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut device = Emulator::new();
    let module = device.load_module(&module).unwrap();
    Bench { device, module }
}

/// A module with one entry `k` that has pointers as parameters, with the registers that tests want.
pub fn kernel(params: &[&str], declarations: &str, body: &str) -> String {
    let list: Vec<String> = params.iter().map(|name| format!(".param .u64 {name}")).collect();
    let loads: String = params.iter().map(|name| format!("ld.param.u64 %{name}, [{name}];\n")).collect();
    let regs: String = params.iter().map(|name| format!(".reg .b64 %{name};\n")).collect();
    format!(
        ".visible .entry k({})\n{{\n{regs}{declarations}\n.reg .b32 %t;\n{loads}mov.u32 %t, %tid.x;\n{body}\nret;\n}}\n",
        list.join(", ")
    )
}

impl Bench {
    pub fn alloc(&mut self, name: &str, words: &[u32]) -> u64 {
        let at = self.device.alloc(words.len() as u64 * 4, name).unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.device.copy_in(at, &bytes).unwrap();
        at
    }

    pub fn read(&self, at: u64, words: usize) -> Vec<u32> {
        let mut bytes = vec![0; words * 4];
        self.device.copy_out(at, &mut bytes).unwrap();
        bytes.chunks(4).map(|chunk| u32::from_le_bytes(chunk.try_into().unwrap())).collect()
    }

    pub fn launch(&self, config: LaunchConfig<'_>, args: &[u64]) -> Result<LaunchReport, LaunchError> {
        let args: Vec<ArgValue> = args.iter().map(|arg| ArgValue::from(*arg)).collect();
        self.device.launch(&self.module, "k", &config, &args)
    }

    pub fn fault(&self, config: LaunchConfig<'_>, args: &[u64]) -> Fault {
        match self.launch(config, args) {
            Err(LaunchError::Fault(fault)) => *fault,
            other => panic!("no fault: {other:?}"),
        }
    }
}

/// Runs a kernel with an array `out` of zeros and yields what it holds afterwards.
pub fn run(declarations: &str, body: &str, config: LaunchConfig<'_>, words: usize) -> Vec<u32> {
    let mut bench = bench(&kernel(&["out"], declarations, body));
    let out = bench.alloc("out", &vec![0; words]);
    bench.launch(config, &[out]).unwrap_or_else(|error| panic!("{error}"));
    bench.read(out, words)
}

/// What a lane stores: `out[%t] = register`, for 32-bit registers.
pub fn store(register: &str) -> String {
    format!(".reg .b64 %at;\nmad.wide.u32 %at, %t, 4, %out;\nst.global.b32 [%at], {register};\n")
}

/// Runs one piece of code on a table of operands: `classes` are those of `%a %b %c %d`; each row has the bits of
/// the first three and those that `%d` must have afterwards.
pub fn table(classes: [&str; 4], code: &str, rows: &[([u64; 3], u64)]) {
    assert!(rows.len() <= 32);
    let bits = |class: &str| match class {
        "pred" => 32,
        class => class[1..].parse::<u32>().unwrap(),
    };
    let mut declarations = String::from(".reg .b64 %pi, %po;\n.reg .pred %p, %q;\n.reg .b32 %word;\n");
    for (name, class) in ["a", "b", "c", "d"].iter().zip(classes) {
        declarations += &format!(".reg .{class} %{name};\n");
    }
    let mut body = String::from("mad.wide.u32 %pi, %t, 24, %in;\nmad.wide.u32 %po, %t, 8, %out;\n");
    for (at, (name, class)) in ["a", "b", "c"].iter().zip(classes).enumerate() {
        match class {
            "pred" => {
                body += &format!("ld.global.b32 %word, [%pi+{}];\nsetp.ne.u32 %{name}, %word, 0;\n", at * 8);
            }
            _ => body += &format!("ld.global.b{} %{name}, [%pi+{}];\n", bits(class), at * 8),
        }
    }
    body += code;
    body += "\n";
    match classes[3] {
        "pred" => body += "selp.u32 %word, 1, 0, %d;\nst.global.b32 [%po], %word;\n",
        class => body += &format!("st.global.b{} [%po], %d;\n", bits(class)),
    }
    let mut bench = bench(&kernel(&["in", "out"], &declarations, &body));
    let words: Vec<u32> = rows
        .iter()
        .flat_map(|(operands, _)| operands)
        .flat_map(|operand| [*operand as u32, (*operand >> 32) as u32])
        .collect();
    let (input, out) = (bench.alloc("in", &words), bench.alloc("out", &[0; 64]));
    bench
        .launch(LaunchConfig::linear(1, rows.len() as u32), &[input, out])
        .unwrap_or_else(|error| panic!("{error}"));
    let results = bench.read(out, 64);
    for (row, (operands, expected)) in rows.iter().enumerate() {
        let found = u64::from(results[2 * row]) | u64::from(results[2 * row + 1]) << 32;
        assert_eq!(found, *expected, "{code} on {operands:#x?}: {found:#x} instead of {expected:#x}");
    }
}

pub fn f(value: f32) -> u64 {
    value.to_bits().into()
}

pub fn g(value: f64) -> u64 {
    value.to_bits()
}

/// The bits of a negative 32-bit integer.
pub fn n(value: i32) -> u64 {
    (value as u32).into()
}
