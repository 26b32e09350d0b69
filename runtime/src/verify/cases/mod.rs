//! The shapes and inputs that `krn test` runs a kernel with: generated, or as `// krn-test:` comments ask.

mod directives;
mod expression;
mod mistakes;
mod params;

pub use directives::{Directives, Expected};
pub use mistakes::mistakes;
pub use params::set_params;

use super::fill::{FillPlan, fill};
use super::sizes::{Sizes, choose_sizes, finish, symbol_value};
use super::{Case, reference_inputs};
use crate::launch::binding::decode;
use krn_compiler::check::typed::{Kernel, Program};
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, KernelManifest, SymbolKind, Value};
use krn_compiler::reference::{bind, estimate_cost, initial_statics};
use std::collections::{BTreeMap, BTreeSet};

/// One run of a kernel.
#[derive(Clone, Debug)]
pub struct TestCase {
    /// `n = 31, m = 33`
    pub label: String,
    sizes: Sizes,
    plans: Vec<(String, FillPlan)>,
    seed: u64,
}

impl TestCase {
    /// Its dimensions, scalars and shapes.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// Elements of all inputs.
    pub fn elements(&self) -> u128 {
        let count =
            |shape: &Vec<u64>| shape.iter().fold(1u128, |n, extent| n.saturating_mul((*extent).into()));
        self.sizes.shapes.values().map(count).fold(0, u128::saturating_add)
    }
}

/// What was generated.
#[derive(Clone, Debug, Default)]
pub struct Cases {
    pub cases: Vec<TestCase>,
    /// Shapes that the kernel's facts exclude.
    pub skipped: usize,
}

/// Sizes of the generated shapes: empty, one, around a warp, primes, no multiple of any tile.
const SIZES: [i64; 9] = [0, 1, 31, 32, 33, 2, 127, 130, 257];

/// The larger shape, by how many dimensions there are.
const LARGE: [i64; 5] = [1000, 1000, 193, 67, 35];

/// Sizes none of which is short.
const MIDDLE: [i64; 3] = [37, 29, 53];

/// Reference steps that one case may take.
const STEPS: u128 = 60_000;

/// Elements of an array that are not filled only to see whether facts hold.
const HUGE: u128 = 1 << 30;

fn is_dim(kind: &SymbolKind) -> bool {
    matches!(kind, SymbolKind::Dim { .. })
}

/// The cases of a kernel.
///
/// # Errors
/// A directive that names what the kernel does not have, or a number in it that cannot be worked out.
pub fn generate(
    program: &Program,
    kernel: &Kernel,
    manifest: &KernelManifest,
    directives: &Directives,
    seed: u64,
) -> Result<Cases, String> {
    let mut cases = Cases::default();
    let dims: Vec<&str> =
        manifest.symbols.iter().filter(|s| is_dim(&s.kind)).map(|s| s.name.as_str()).collect();
    directives.check_names(manifest)?;
    let open = dims.iter().filter(|name| !directives.dims.iter().any(|(known, _)| known == *name)).count();
    let tuples = tuples(open);
    // Lists are short, so each of their runs meets several of the generated shapes.
    let listed = directives.runs();
    let rounds = if listed == 1 { tuples.len() } else { listed.max(tuples.len()) };
    // Two runs of one label are the same but for what is set: a label has no floats, truths and fields.
    let mut known = BTreeSet::new();
    for round in 0..rounds {
        let seed = seed.wrapping_add(round as u64);
        let run = round % listed;
        let tuple = tuples[round % tuples.len()].clone();
        match affordable(program, kernel, manifest, directives, run, tuple, seed)? {
            Some(case) => {
                let set = if directives.set.is_empty() { 0 } else { run };
                if known.insert((case.label.clone(), set)) {
                    cases.cases.push(case);
                }
            }
            None => cases.skipped += 1,
        }
    }
    Ok(cases)
}

/// The case at given sizes: dimensions and parameters by the names of their symbols, contents as the directives say.
///
/// # Errors
/// As for [`generate`]; facts that do not hold at these sizes.
pub fn at_sizes(
    manifest: &KernelManifest,
    directives: &Directives,
    named: &[(String, Value)],
) -> Result<TestCase, String> {
    let mut directives = directives.clone();
    let known = |name: &str| named.iter().any(|(known, _)| known == name);
    directives.set.retain(|(name, _)| !known(name));
    directives.dims.clear();
    for (name, value) in named {
        let kind = manifest.symbols.iter().find(|symbol| symbol.name == *name).map(|symbol| &symbol.kind);
        let text = match value {
            Value::Int(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Bool(value) => value.to_string(),
        };
        match kind {
            Some(SymbolKind::Dim { .. }) => directives.dims.push((name.clone(), vec![text])),
            Some(SymbolKind::Parameter { .. }) => directives.set.push((name.clone(), vec![text])),
            Some(SymbolKind::Counter) | None => {}
        }
    }
    let case = choose(manifest, &directives, 0, &[], 0)?;
    case.ok_or_else(|| "its facts do not hold at these sizes".to_string())
}

/// Sizes for so many dimensions: one tuple a case.
fn tuples(count: usize) -> Vec<Vec<i64>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    // Each size on every axis in turn, with other sizes beside it.
    let mut list: Vec<Vec<i64>> = (0..SIZES.len())
        .map(|start| (0..count).map(|axis| SIZES[(start + 4 * axis) % SIZES.len()]).collect())
        .collect();
    list.push(vec![1; count]);
    list.push(vec![0; count]);
    let large = LARGE[count.min(LARGE.len() - 1)];
    list.push((0..count).map(|axis| (large - axis as i64).max(1)).collect());
    // Products have forms that a short axis rules out: of three axes and more, all of some length.
    if count >= MIDDLE.len() {
        list.push((0..count).map(|axis| MIDDLE[axis % MIDDLE.len()]).collect());
    }
    list
}

/// Shrinks the sizes until the reference can afford them.
fn affordable(
    program: &Program,
    kernel: &Kernel,
    manifest: &KernelManifest,
    directives: &Directives,
    run: usize,
    mut wanted: Vec<i64>,
    seed: u64,
) -> Result<Option<TestCase>, String> {
    loop {
        let Some(case) = choose(manifest, directives, run, &wanted, seed)? else { return Ok(None) };
        if directives.expected == Expected::LaunchError {
            return Ok(Some(case));
        }
        let most = wanted.iter().copied().max().unwrap_or(0);
        // Looked at before anything is filled: five axes of 257 would not fit in memory.
        let elements = case.sizes.shapes.values().map(|shape| {
            shape.iter().fold(1u128, |product, extent| product.saturating_mul(u128::from(*extent)))
        });
        let elements = elements.max().unwrap_or(0);
        if elements > STEPS && most > 3 {
            shrink(&mut wanted, most);
            continue;
        }
        // What directives say is not made smaller: whoever runs it looks whether it fits in memory.
        if elements > HUGE {
            return Ok(Some(case));
        }
        let inputs = case.inputs(manifest)?;
        let statics = initial_statics(program);
        let reference = reference_inputs(program, kernel, &inputs, &statics);
        let Ok(launch) = bind(&reference) else { return Ok(None) };
        if estimate_cost(&reference, &launch).total <= STEPS || most <= 3 {
            return Ok(Some(case));
        }
        shrink(&mut wanted, most);
    }
}

/// Makes the largest sizes smaller.
fn shrink(wanted: &mut [i64], most: i64) {
    for size in wanted {
        if *size == most {
            *size = most * 2 / 3;
        }
    }
}

fn choose(
    manifest: &KernelManifest,
    directives: &Directives,
    run: usize,
    wanted: &[i64],
    seed: u64,
) -> Result<Option<TestCase>, String> {
    let fixed = directives.dims_of(run)?;
    let mut open = wanted.iter();
    let wanted_for: Vec<i64> = manifest
        .symbols
        .iter()
        .filter(|symbol| is_dim(&symbol.kind))
        .map(|symbol| match fixed.get(&symbol.name) {
            Some(size) => *size,
            None => open.next().copied().unwrap_or(1),
        })
        .collect();
    // Parameters may be set to expressions over dimensions, so dimensions come first.
    let names = |name: &str| -> Option<i128> {
        let dims = manifest.symbols.iter().filter(|symbol| is_dim(&symbol.kind));
        dims.zip(&wanted_for).find(|(symbol, _)| symbol.name == name).map(|(_, size)| i128::from(*size))
    };
    let params = set_params(manifest, directives, run, &names)?;
    let sizes = if directives.expected == Expected::LaunchError {
        as_given(manifest, &wanted_for, params)
    } else {
        let mut fixed = fixed;
        if !directives.set.is_empty() {
            // What is set may speak of the sizes: they must stay.
            for (symbol, size) in
                manifest.symbols.iter().filter(|symbol| is_dim(&symbol.kind)).zip(&wanted_for)
            {
                fixed.insert(symbol.name.clone(), *size);
            }
        }
        let chosen =
            choose_sizes(manifest, &fixed, &params, seed, |axis| wanted_for.get(axis).copied().unwrap_or(1));
        match chosen {
            Ok(sizes) => sizes,
            Err(_) => return Ok(None),
        }
    };
    let label = label(manifest, &sizes);
    let mut plans = Vec::new();
    for argument in &manifest.arguments {
        if matches!(argument.kind, ArgumentKind::Array { .. }) {
            plans.push((argument.name.clone(), directives.plan(&argument.name, &sizes)?));
        }
    }
    Ok(Some(TestCase { label, sizes, plans, seed }))
}

/// Sizes taken as they are, whatever the facts say.
fn as_given(manifest: &KernelManifest, dims: &[i64], params: BTreeMap<String, HostArray>) -> Sizes {
    let mut all = params;
    for argument in &manifest.arguments {
        if let ArgumentKind::Value { element } = &argument.kind
            && !all.contains_key(&argument.name)
            && let Some(blank) = HostArray::zeros(element.clone(), Vec::new())
        {
            all.insert(argument.name.clone(), blank);
        }
    }
    let mut open = dims.iter();
    let values: Vec<Value> = (0..manifest.symbols.len())
        .map(|index| match &manifest.symbols[index].kind {
            SymbolKind::Dim { .. } => Value::Int(i128::from(open.next().copied().unwrap_or(0))),
            SymbolKind::Parameter { argument, .. } => all
                .get(&manifest.arguments[*argument].name)
                .and_then(|value| symbol_value(manifest, index, value))
                .unwrap_or(Value::Int(0)),
            SymbolKind::Counter => Value::Int(0),
        })
        .collect();
    finish(manifest, &values, all)
}

fn label(manifest: &KernelManifest, sizes: &Sizes) -> String {
    let mut parts: Vec<String> = sizes.dims.iter().map(|(name, size)| format!("{name} = {size}")).collect();
    for argument in &manifest.arguments {
        if let (ArgumentKind::Value { element }, Some(value)) =
            (&argument.kind, sizes.params.get(&argument.name))
            && let Some(scalar) = element.as_scalar().filter(|scalar| scalar.is_integer())
            && let Value::Int(value) = decode(scalar, &value.bytes)
        {
            parts.push(format!("{} = {value}", argument.name));
        }
    }
    if parts.is_empty() { "one run".to_string() } else { parts.join(", ") }
}

impl TestCase {
    /// The arrays and scalars of the case.
    ///
    /// # Errors
    /// Where an array does not fit in memory.
    pub fn inputs(&self, manifest: &KernelManifest) -> Result<Case, String> {
        let mut case = Case { params: self.sizes.params.clone(), arrays: BTreeMap::new() };
        for argument in &manifest.arguments {
            let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
            let Some(shape) = self.sizes.shapes.get(&argument.name) else { continue };
            let Some((_, plan)) = self.plans.iter().find(|(name, _)| *name == argument.name) else {
                continue;
            };
            let array = fill(&argument.name, &buffer.element, shape, plan, self.seed)
                .map_err(|error| format!("`{}`: {error}", argument.name))?;
            case.arrays.insert(argument.name.clone(), array);
        }
        Ok(case)
    }
}
