//! What several tests of the runtime need.

use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, KernelManifest};
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileOptions, CompiledModule, compile};
use krn_runtime::verify::{Case, Fill, choose_sizes, fill};
use krn_runtime::{Device, Module};
use std::collections::BTreeMap;

/// The device that `KRN_DEVICE` names; the emulator, where it is not set.
pub fn device() -> Device {
    let name = std::env::var("KRN_DEVICE").unwrap_or_else(|_| "emulator".to_string());
    Device::open_as(name.parse().expect("a device's name")).expect("the device is there")
}

/// A text compiled for sm_90, for these sizes of dimensions (none: for all sizes).
pub fn compiled(text: &str, sizes: &[(&str, u64)]) -> Compilation {
    compiled_for(text, "sm_90", sizes)
}

/// The same for a target.
pub fn compiled_for(text: &str, target: &str, sizes: &[(&str, u64)]) -> Compilation {
    let sizes = sizes.iter().map(|(name, size)| ((*name).to_string(), *size)).collect();
    let options = CompileOptions { sizes, ..CompileOptions::for_target(target) };
    compile(&SourceFile::new("test.krn", text), &options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A program of a name, compiled for a device.
pub fn compiled_on(device: &Device, name: &str, text: &str) -> CompiledModule {
    let options = match device.capability() {
        Some(90..) => CompileOptions::for_target("sm_90"),
        _ => CompileOptions::default(),
    };
    compile(&SourceFile::new(name, text), &options).expect("it compiles").compiled
}

/// A program, loaded, in which `ROUNDS` stands for so many as take about 0.1 ms on a GPU.
pub fn load_slow(device: &Device, name: &str, text: &str) -> Module {
    let text = text.replace("ROUNDS", if device.is_emulator() { "2" } else { "40000" });
    device.load(&compiled_on(device, name, &text)).expect("it loads")
}

/// A kernel's random inputs for these dimensions and integer parameters.
pub fn random_case(manifest: &KernelManifest, numbers: &[(&str, i64)]) -> Case {
    let (mut dims, mut params) = (BTreeMap::new(), BTreeMap::new());
    for (name, number) in numbers {
        let argument = manifest.arguments.iter().find(|argument| argument.name == *name);
        match argument.map(|argument| &argument.kind) {
            Some(ArgumentKind::Value { element }) => {
                let bytes = number.to_le_bytes()[..element.size as usize].to_vec();
                let value = HostArray { element: element.clone(), shape: Vec::new(), bytes };
                params.insert(name.to_string(), value);
            }
            _ => {
                dims.insert(name.to_string(), *number);
            }
        }
    }
    let sizes = choose_sizes(manifest, &dims, &params, 1, |_| 1).expect("sizes that fit");
    let mut case = Case { params: sizes.params, arrays: BTreeMap::new() };
    for (name, shape) in sizes.shapes {
        let argument = manifest.arguments.iter().find(|argument| argument.name == name).expect("an argument");
        let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
        let array = fill(&name, &buffer.element, &shape, &Fill::Random.into(), 1).expect("an array");
        case.arrays.insert(name, array);
    }
    case
}
