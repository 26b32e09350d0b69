//! The shapes and inputs that `krn test` runs a kernel with: generated, or as `// krn-test:` comments ask.

mod directives;

pub use directives::{Directives, Expected, FillSpec};

use super::{Case, Fill, choose_sizes, fill, reference_inputs};
use krn_compiler::check::typed::{Kernel, Program};
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, KernelManifest, SymbolKind};
use krn_compiler::reference::{bind, estimate_cost, initial_statics};
use std::collections::BTreeMap;

/// One run of a kernel.
#[derive(Clone, Debug)]
pub struct TestCase {
    /// `n = 31, m = 33`
    pub label: String,
    pub dims: BTreeMap<String, i64>,
    pub params: BTreeMap<String, HostArray>,
    shapes: BTreeMap<String, Vec<u64>>,
    fills: Vec<(String, Fill)>,
    seed: u64,
}

/// What was generated.
#[derive(Clone, Debug, Default)]
pub struct Cases {
    pub cases: Vec<TestCase>,
    /// Shapes that the kernel's facts exclude.
    pub skipped: usize,
}

/// Sizes of the generated shapes: empty, one, around a warp, primes, no multiple of any tile.
const SIZES: [i64; 8] = [0, 1, 31, 32, 33, 7, 127, 257];

/// The larger shape, by how many dimensions there are.
const LARGE: [i64; 5] = [3000, 3001, 193, 67, 35];

/// Reference steps that one case may take.
const STEPS: u128 = 3_000_000;

/// The cases of a kernel.
pub fn generate(
    program: &Program,
    kernel: &Kernel,
    manifest: &KernelManifest,
    directives: &Directives,
    seed: u64,
) -> Cases {
    let is_dim = |kind: &SymbolKind| matches!(kind, SymbolKind::Dim { .. });
    let names: Vec<&str> =
        manifest.symbols.iter().filter(|s| is_dim(&s.kind)).map(|s| s.name.as_str()).collect();
    let mut cases = Cases::default();
    for (number, wanted) in tuples(&names, directives).into_iter().enumerate() {
        let seed = seed.wrapping_add(number as u64);
        match affordable(program, kernel, manifest, directives, wanted, seed) {
            Some(case) if cases.cases.iter().any(|known| known.label == case.label) => {}
            Some(case) => cases.cases.push(case),
            None => cases.skipped += 1,
        }
    }
    cases
}

/// The sizes to try: one tuple a case.
fn tuples(names: &[&str], directives: &Directives) -> Vec<Vec<i64>> {
    if names.is_empty() {
        return vec![Vec::new()];
    }
    let count = names.len();
    let mut list: Vec<Vec<i64>> = Vec::new();
    // Each size on every axis in turn, with other sizes beside it.
    for start in 0..SIZES.len() {
        list.push((0..count).map(|axis| SIZES[(start + 3 * axis) % SIZES.len()]).collect());
    }
    list.push(vec![1; count]);
    list.push(vec![0; count]);
    let large = LARGE[count.min(LARGE.len() - 1)];
    list.push((0..count).map(|axis| large - axis as i64).collect());
    for (axis, name) in names.iter().enumerate() {
        let Some(sizes) = directives.dims.get(*name).filter(|sizes| !sizes.is_empty()) else { continue };
        let longest = list.len().max(sizes.len());
        for number in 0..longest {
            if number >= list.len() {
                let again = list[number % list.len()].clone();
                list.push(again);
            }
            list[number][axis] = sizes[number % sizes.len()];
        }
    }
    list
}

/// Halves the sizes until the reference can afford them.
fn affordable(
    program: &Program,
    kernel: &Kernel,
    manifest: &KernelManifest,
    directives: &Directives,
    mut wanted: Vec<i64>,
    seed: u64,
) -> Option<TestCase> {
    loop {
        let case = choose(manifest, directives, &wanted, seed)?;
        let inputs = case.inputs(manifest).ok()?;
        let statics = initial_statics(program);
        let reference = reference_inputs(program, kernel, &inputs, &statics);
        let launch = bind(&reference).ok()?;
        let most = wanted.iter().copied().max().unwrap_or(0);
        if estimate_cost(&reference, &launch).total <= STEPS || most <= 3 {
            return Some(case);
        }
        for size in &mut wanted {
            if *size == most {
                *size = most * 2 / 3;
            }
        }
    }
}

fn choose(
    manifest: &KernelManifest,
    directives: &Directives,
    wanted: &[i64],
    seed: u64,
) -> Option<TestCase> {
    let mut fixed = BTreeMap::new();
    let is_dim = |kind: &SymbolKind| matches!(kind, SymbolKind::Dim { .. });
    let dims = manifest.symbols.iter().filter(|symbol| is_dim(&symbol.kind));
    for (symbol, size) in dims.zip(wanted) {
        if directives.dims.contains_key(&symbol.name) {
            fixed.insert(symbol.name.clone(), *size);
        }
    }
    let params = directives.params(manifest, seed).ok()?;
    let sizes = choose_sizes(manifest, &fixed, &params, |axis| wanted.get(axis).copied().unwrap_or(1)).ok()?;
    let mut label: Vec<String> = sizes.dims.iter().map(|(name, size)| format!("{name} = {size}")).collect();
    if label.is_empty() {
        label.push("run".to_string());
    }
    for argument in &manifest.arguments {
        if let (ArgumentKind::Value { element }, Some(value)) =
            (&argument.kind, sizes.params.get(&argument.name))
            && let Some(scalar) = element.as_scalar().filter(|scalar| scalar.is_integer())
            && let krn_compiler::manifest::Value::Int(value) = crate::binding::decode(scalar, &value.bytes)
        {
            label.push(format!("{} = {value}", argument.name));
        }
    }
    let fills = directives.fills(&sizes.dims);
    Some(TestCase {
        label: label.join(", "),
        dims: sizes.dims,
        params: sizes.params,
        shapes: sizes.shapes,
        fills,
        seed,
    })
}

impl TestCase {
    /// The arrays and scalars of the case.
    ///
    /// # Errors
    /// Where an array does not fit in memory.
    pub fn inputs(&self, manifest: &KernelManifest) -> Result<Case, String> {
        let mut case = Case { params: self.params.clone(), arrays: BTreeMap::new() };
        for argument in &manifest.arguments {
            let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
            let Some(shape) = self.shapes.get(&argument.name) else { continue };
            let asked = self.fills.iter().find(|(name, _)| *name == argument.name);
            let what = asked.map_or(Fill::Random, |(_, fill)| *fill);
            let array = fill(&argument.name, &buffer.element, shape, what, self.seed)
                .map_err(|error| error.to_string())?;
            case.arrays.insert(argument.name.clone(), array);
        }
        Ok(case)
    }
}
