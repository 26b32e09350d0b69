//! The sizes and the data of a run where the command line leaves them open.

use super::Request;
use crate::exit::{Failure, INPUT, Result, USAGE};
use krn_compiler::check::typed::{Kernel, Program};
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, KernelManifest, SymbolKind};
use krn_compiler::reference::{Inputs, Work, estimate_work};
use krn_runtime::verify::cases::{Expected, set_params};
use krn_runtime::verify::{self, Case, SizeError, Sizes};
use std::collections::BTreeMap;

/// The size of a dimension that nobody gives, by how many dimensions the kernel has, before the work is looked at.
const DEFAULT_SIZES: [i64; 5] = [1 << 20, 1 << 20, 1024, 256, 64];
/// Evaluation steps above which these sizes are halved: a third of a second of the reference evaluator.
const STEPS: u128 = 1 << 24;
/// How often sizes are halved.
const HALVINGS: u32 = 28;

/// What of a run is fixed, and what is open.
struct Given<'a> {
    dims: BTreeMap<String, i64>,
    params: BTreeMap<String, HostArray>,
    default: &'a dyn Fn(usize, usize) -> i64,
}

/// The work of one launch at these sizes; arrays are not needed.
pub fn work_of(program: &Program, kernel: &Kernel, sizes: &Sizes) -> Result<Work> {
    let inputs = Inputs {
        program,
        kernel,
        dims: BTreeMap::new(),
        params: sizes.params.clone(),
        arrays: BTreeMap::new(),
        statics: BTreeMap::new(),
    };
    let dims: Vec<i64> =
        kernel.dims.values().map(|dim| sizes.dims.get(&dim.name).copied().unwrap_or(0)).collect();
    estimate_work(&inputs, &dims)
        .map_err(|error| Failure::new(INPUT, format!("kernel `{}`: {error}", kernel.name)))
}

impl Request {
    /// The inputs that are files, and all dimensions that are known: those of the command line and those that the files'
    /// shapes bind.
    pub fn files(
        &self,
        manifest: &KernelManifest,
    ) -> Result<(BTreeMap<String, HostArray>, BTreeMap<String, i64>)> {
        let mut files = BTreeMap::new();
        let mut dims = self.dims.clone();
        for (number, argument) in manifest.arguments.iter().enumerate() {
            let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
            let Some(file) = self.files.get(&argument.name) else { continue };
            let array = file.read(&argument.name, &buffer.element)?;
            for symbol in &manifest.symbols {
                if let SymbolKind::Dim { argument: owner, axis, extent } = symbol.kind
                    && owner == number
                    && let Some(found) = array.shape.get(axis)
                {
                    let found = extent.dimension(*found);
                    if let Some(given) = dims.insert(symbol.name.clone(), found)
                        && given != found
                    {
                        let message =
                            format!("-D {}={given}, but `{}` has {found}", symbol.name, file.path.display());
                        return Err(Failure::new(USAGE, message));
                    }
                }
            }
            files.insert(argument.name.clone(), array);
        }
        Ok((files, dims))
    }

    /// Sizes whose steps are at most so many, as far as the command line leaves that open: what nobody gives is
    /// `default(k, i)` for dimension `i` of a kernel of `k`, halved until they are.
    pub fn sizes_within(
        &self,
        (program, kernel, manifest): (&Program, &Kernel, &KernelManifest),
        dims: &BTreeMap<String, i64>,
        seed: u64,
        steps: u128,
        default: &dyn Fn(usize, usize) -> i64,
    ) -> Result<(Sizes, Work)> {
        let given = Given { dims: dims.clone(), params: self.params.clone(), default };
        // What is said of the largest ones.
        let mut refused = None;
        let found = halved(steps, |halvings| match given.sizes(manifest, seed, halvings) {
            Ok(sizes) => {
                let work = work_of(program, kernel, &sizes)?;
                Ok(Some((sizes, work)))
            }
            Err(error @ SizeError::Unsatisfied { .. }) => {
                refused.get_or_insert(error);
                Ok(None)
            }
            Err(error) => Err(Failure::new(USAGE, error)),
        })?;
        found.ok_or_else(|| {
            Failure::new(USAGE, refused.map_or("no sizes found".to_string(), |error| error.to_string()))
        })
    }

    /// Sizes and data that are checked in seconds, as far as the command line leaves that open, if `fits` agrees. Of the
    /// runs that the file's directives list, the one with the most work.
    pub fn case(
        &self,
        (program, kernel, manifest): (&Program, &Kernel, &KernelManifest),
        seed: u64,
        fits: impl FnOnce(&Sizes) -> Result<()>,
    ) -> Result<(Sizes, Case)> {
        let (arrays, dims) = self.files(manifest)?;
        let default = |count: usize, number: usize| {
            let size = DEFAULT_SIZES[count.min(DEFAULT_SIZES.len() - 1)];
            // Not all the same, so that swapped axes show.
            (size - size / 16 * number as i64).max(1)
        };
        let subject = (program, kernel, manifest);
        let listed = self.listed_sizes(subject, &dims, seed, &default)?;
        let sizes = match listed {
            Some(sizes) => sizes,
            None => self.sizes_within(subject, &dims, seed, STEPS, &default)?.0,
        };
        fits(&sizes)?;
        let mut case = Case { params: sizes.params.clone(), arrays };
        for argument in &manifest.arguments {
            let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
            let Some(shape) = sizes.shapes.get(&argument.name) else { continue };
            if case.arrays.contains_key(&argument.name) {
                continue;
            }
            let plan = self.plan_of(&argument.name, &sizes)?;
            let array = verify::fill(&argument.name, &buffer.element, shape, &plan, seed)
                .map_err(|error| Failure::new(USAGE, format!("`{}`: {error}", argument.name)))?;
            case.arrays.insert(argument.name.clone(), array);
        }
        Ok((sizes, case))
    }

    /// Of the runs that the directives list, the one with the most work that is not too much, or else the one with the
    /// least; `None` where none goes with what the command line gives.
    fn listed_sizes(
        &self,
        (program, kernel, manifest): (&Program, &Kernel, &KernelManifest),
        dims: &BTreeMap<String, i64>,
        seed: u64,
        default: &dyn Fn(usize, usize) -> i64,
    ) -> Result<Option<Sizes>> {
        let lists = &self.directives;
        if lists.dims.is_empty() && lists.set.is_empty() || lists.expected == Expected::LaunchError {
            return Ok(None);
        }
        let wrong = |message: String| {
            Failure::new(INPUT, format!("the directives of `{}`: {message}", manifest.name))
        };
        let mut best: Option<(Sizes, u128)> = None;
        for run in 0..lists.runs() {
            let mut all = lists.dims_of(run).map_err(wrong)?;
            all.extend(dims.iter().map(|(name, size)| (name.clone(), *size)));
            let found = halved(STEPS, |halvings| {
                let mut given = Given { dims: all.clone(), params: BTreeMap::new(), default };
                // What is set may speak of sizes, so these come first, and stay.
                let wanted = given.wanted(manifest, halvings);
                if !lists.set.is_empty() {
                    given.dims.extend(wanted.iter().map(|(name, size)| (name.clone(), *size)));
                }
                let known = |name: &str| wanted.get(name).map(|size| i128::from(*size));
                given.params = set_params(manifest, lists, run, &known).map_err(wrong)?;
                given.params.extend(self.params.iter().map(|(name, value)| (name.clone(), value.clone())));
                match given.sizes(manifest, seed, halvings) {
                    Ok(sizes) => {
                        let work = work_of(program, kernel, &sizes)?;
                        Ok(Some((sizes, work)))
                    }
                    // It does not go with what the command line gives, or smaller sizes do.
                    Err(_) => Ok(None),
                }
            })?;
            let Some((sizes, Work { steps, .. })) = found else { continue };
            let better = best.as_ref().is_none_or(|(_, known)| match (steps <= STEPS, *known <= STEPS) {
                (true, true) => steps >= *known,
                (false, false) => steps < *known,
                (fits, _) => fits,
            });
            if better {
                best = Some((sizes, steps));
            }
        }
        Ok(best.map(|(sizes, _)| sizes))
    }
}

/// The first choice that takes at most so many steps; the smallest one where none does; `None` where none is found.
fn halved<T>(
    steps: u128,
    mut choose: impl FnMut(u32) -> Result<Option<(T, Work)>>,
) -> Result<Option<(T, Work)>> {
    let mut smallest = None;
    for halvings in 0..=HALVINGS {
        let Some((sizes, work)) = choose(halvings)? else { continue };
        // What the user fixed is not changed: smaller defaults may not help.
        let fits = work.steps <= steps;
        smallest = Some((sizes, work));
        if fits {
            break;
        }
    }
    Ok(smallest)
}

impl Given<'_> {
    /// Every dimension's size, before facts are looked at.
    fn wanted(&self, manifest: &KernelManifest, halvings: u32) -> BTreeMap<String, i64> {
        let is_dim = |kind: &_| matches!(kind, SymbolKind::Dim { .. });
        let dims: Vec<&str> =
            manifest.symbols.iter().filter(|s| is_dim(&s.kind)).map(|s| s.name.as_str()).collect();
        let size = |number: usize| ((self.default)(dims.len(), number) >> halvings).max(1);
        let wanted = |(number, name): (usize, &&str)| {
            (name.to_string(), self.dims.get(*name).copied().unwrap_or_else(|| size(number)))
        };
        dims.iter().enumerate().map(wanted).collect()
    }

    fn sizes(
        &self,
        manifest: &KernelManifest,
        seed: u64,
        halvings: u32,
    ) -> std::result::Result<Sizes, SizeError> {
        let is_dim = |kind: &_| matches!(kind, SymbolKind::Dim { .. });
        let count = manifest.symbols.iter().filter(|symbol| is_dim(&symbol.kind)).count();
        let size = |number| ((self.default)(count, number) >> halvings).max(1);
        verify::choose_sizes(manifest, &self.dims, &self.params, seed, size)
    }
}
