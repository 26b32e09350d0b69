//! What several tests of the runtime need.

use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, KernelManifest};
use krn_runtime::verify::{Case, Fill, choose_sizes, fill};
use std::collections::BTreeMap;

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
