//! What several tests of the runtime need.

use krn_compiler::manifest::{ArgumentKind, KernelManifest};
use krn_runtime::verify::{Case, Fill, choose_sizes, fill};
use std::collections::BTreeMap;

/// A kernel's random inputs for these dimensions.
pub fn random_case(manifest: &KernelManifest, dims: &[(&str, i64)]) -> Case {
    let dims = dims.iter().map(|(name, size)| (name.to_string(), *size)).collect();
    let sizes = choose_sizes(manifest, &dims, &BTreeMap::new(), 1, |_| 1).expect("sizes that fit");
    let mut case = Case { params: sizes.params, arrays: BTreeMap::new() };
    for (name, shape) in sizes.shapes {
        let argument = manifest.arguments.iter().find(|argument| argument.name == name).expect("an argument");
        let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
        let array = fill(&name, &buffer.element, &shape, &Fill::Random.into(), 1).expect("an array");
        case.arrays.insert(name, array);
    }
    case
}
