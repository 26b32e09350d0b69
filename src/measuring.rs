//! Measuring a kernel: the sizes and arrays that nobody gives, the work that a launch is good for, and the time of
//! launches that find nothing in the cache. For `krn bench`, `krn ladder` and `krn profile`.

use crate::arguments::MeasureArguments;
use crate::exit::{Failure, Result, USAGE};
use crate::request::Request;
use crate::{formula, numbers};
use krn_compiler::check::typed::{Kernel as TypedKernel, Program};
use krn_compiler::data::HostArray;
use krn_compiler::manifest::{ArgumentKind, Direction, KernelManifest, Layout};
use krn_compiler::reference;
use krn_runtime::verify::{self, Fill, Sizes};
use krn_runtime::{Argument, Bound, Device, DeviceArray, Kernel, Measured, TimingOptions, measure};
use std::collections::BTreeMap;
use std::time::Duration;

/// The size of a dimension that nobody gives, by how many dimensions the kernel has: on a GPU far more than its
/// caches hold, on the emulator little.
const GPU_SIZES: [i64; 5] = [1 << 28, 1 << 28, 1 << 13, 1 << 9, 1 << 7];
const EMULATOR_SIZES: [i64; 5] = [1 << 16, 1 << 16, 128, 32, 16];
/// Evaluation steps above which these sizes are halved: seconds on the one, and on the other.
const GPU_STEPS: u128 = 1 << 43;
const EMULATOR_STEPS: u128 = 1 << 26;
/// Bytes of random data that an input is made of; copies of it fill the rest.
const TILE_BYTES: u64 = 4 << 20;
/// Elements that a tile has at least: the largest group that a layout has.
const TILE_ELEMENTS: u64 = 1024;
/// Sets of arrays at most.
const SETS_LIMIT: u64 = 1024;

/// Sizes, with the inputs that are files, by name, and the work of one launch at these sizes.
pub struct Chosen {
    pub sizes: Sizes,
    pub files: BTreeMap<String, HostArray>,
    pub work: Work,
}

/// Sizes and work, as the command line says them or as they suit the device.
pub fn choose(
    options: &MeasureArguments,
    seed: u64,
    request: &Request,
    device: &Device,
    program: &Program,
    typed: &TypedKernel,
    manifest: &KernelManifest,
) -> Result<Chosen> {
    let (defaults, steps) =
        if device.is_emulator() { (EMULATOR_SIZES, EMULATOR_STEPS) } else { (GPU_SIZES, GPU_STEPS) };
    let default = |count: usize, _| defaults[count.min(defaults.len() - 1)];
    let (files, dims) = request.files(manifest)?;
    let (sizes, counted) = request.sizes_within((program, typed, manifest), &dims, seed, steps, &default)?;
    let work = Work::of(options, counted, &sizes)?;
    Ok(Chosen { sizes, files, work })
}

/// What one launch is good for.
#[derive(Clone, Copy)]
pub struct Work {
    pub bytes: f64,
    pub flops: Option<f64>,
    /// Whether the user said so; else the compiler counted.
    pub flops_given: bool,
}

impl Work {
    /// As the user says it, else as the compiler counted.
    fn of(options: &MeasureArguments, counted: reference::Work, sizes: &Sizes) -> Result<Self> {
        let given = |option: &str, text: &Option<String>| {
            let value = text.as_ref().map(|text| formula::evaluate(text, &sizes.dims)).transpose();
            value.map_err(|message| Failure::new(USAGE, format!("{option}: {message}")))
        };
        let flops = given("--flops", &options.flops)?;
        Ok(Self {
            bytes: given("--bytes", &options.bytes)?.unwrap_or(counted.bytes as f64),
            flops: flops.or(counted.flops.map(|flops| flops as f64)).filter(|flops| *flops > 0.0),
            flops_given: flops.is_some(),
        })
    }
}

/// What an input array is filled from.
pub struct Source {
    name: String,
    /// The whole array, or the part of it that is repeated.
    tile: HostArray,
    shape: Vec<u64>,
    layout: Layout,
}

impl Source {
    /// A new array on a device.
    pub fn upload(&self, device: &Device) -> Result<DeviceArray> {
        let array = if self.tile.shape == self.shape {
            device.upload(&self.tile, self.layout)
        } else {
            device.repeat(&self.tile, self.shape.clone(), self.layout)
        };
        Ok(array?)
    }
}

pub fn sources(
    request: &Request,
    kernel: &Kernel<'_>,
    sizes: &Sizes,
    mut given: BTreeMap<String, HostArray>,
    seed: u64,
) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for argument in &kernel.manifest().arguments {
        let ArgumentKind::Array { buffer, direction } = &argument.kind else { continue };
        if *direction == Direction::Out {
            continue;
        }
        let (name, layout) = (argument.name.clone(), buffer.layout);
        if let Some(tile) = given.remove(&name) {
            sources.push(Source { name, shape: tile.shape.clone(), tile, layout });
            continue;
        }
        let shape = sizes.shapes.get(&name).cloned().unwrap_or_default();
        let plan = request.plan_of(&name, sizes)?;
        let repeats = plan
            .fills()
            .all(|fill| matches!(fill, Fill::Random | Fill::Zeros | Fill::Ones | Fill::Range { .. }));
        let count: u64 = shape.iter().product();
        let most = (TILE_BYTES / buffer.element.size.next_power_of_two()).max(TILE_ELEMENTS);
        let part = if repeats && count > most { vec![most] } else { shape.clone() };
        let tile = verify::fill(&name, &buffer.element, &part, &plan, seed)
            .map_err(|error| Failure::new(USAGE, format!("`{name}`: {error}")))?;
        sources.push(Source { name, tile, shape, layout });
    }
    Ok(sources)
}

/// The arrays that launches go round, so that no launch finds what it wants in the cache.
pub struct Sets {
    pub count: u64,
    /// Of one set.
    pub bytes: u64,
    /// Of the device's cache, where it has one.
    pub cache: Option<u64>,
}

impl Sets {
    /// As many as are together more than twice the cache.
    fn choose(bytes: u64, cache: Option<u64>) -> Self {
        let wanted = cache.map_or(1, |cache| 2 * cache / bytes.max(1) + 1);
        Self { count: wanted.min(SETS_LIMIT), bytes, cache }
    }

    /// Whether what a launch wants has been pushed out of the cache since it was last there.
    pub fn cold(&self) -> bool {
        self.cache.is_none_or(|cache| self.count * self.bytes > 2 * cache)
    }

    pub fn text(&self) -> String {
        let each = numbers::bytes(self.bytes);
        let Some(cache) = self.cache else { return format!("{each} of arrays") };
        let cache = numbers::bytes(cache);
        match (self.cold(), self.count) {
            (true, 1) => format!("cold: the arrays' {each} are more than twice the cache of {cache}"),
            (true, count) => {
                let all = numbers::bytes(count * self.bytes);
                format!(
                    "cold: launches go round {count} sets of arrays of {each}, {all} in all; the cache has {cache}"
                )
            }
            (false, count) => format!("WARM: {count} sets of arrays of {each} stay in the cache of {cache}"),
        }
    }
}

/// What was measured, and of what.
pub struct Cold {
    pub measured: Measured,
    pub sets: Sets,
    /// The entries that one launch of the kernel launches, in order.
    pub entries: Vec<String>,
    /// The most dynamic shared memory that one of them is given.
    pub dynamic_shared_bytes: u32,
}

pub fn measure_cold(
    options: &MeasureArguments,
    device: &Device,
    kernel: &Kernel<'_>,
    sizes: &Sizes,
    sources: &[Source],
) -> Result<Cold> {
    let make =
        || -> Result<Vec<DeviceArray>> { sources.iter().map(|source| source.upload(device)).collect() };
    let mut arrays = vec![make()?];
    let sets = Sets::choose(bind(kernel, sizes, sources, &arrays[0])?.bytes(), device.cache_bytes());
    for _ in 1..sets.count {
        arrays.push(make()?);
    }
    let bound =
        arrays.iter().map(|arrays| bind(kernel, sizes, sources, arrays)).collect::<Result<Vec<_>>>()?;
    let timing = TimingOptions {
        warm_up: options.warmup.map(|count| count as usize),
        runs: options.runs.map(|count| count as usize),
        batch: options.batch.map(|count| count as usize),
    };
    let measured = measure(&bound, &timing)?;
    let entries = bound[0].entry_names().map(str::to_string).collect();
    Ok(Cold { measured, sets, entries, dynamic_shared_bytes: bound[0].dynamic_shared_bytes() })
}

/// Binds a kernel to what has been uploaded from its sources.
pub fn bind<'m, 'a>(
    kernel: &Kernel<'m>,
    sizes: &'a Sizes,
    sources: &'a [Source],
    arrays: &'a [DeviceArray],
) -> Result<Bound<'m, 'a>> {
    let mut arguments: Vec<(&str, Argument<'a>)> = Vec::new();
    for (source, array) in sources.iter().zip(arrays) {
        arguments.push((&source.name, Argument::Array(array)));
    }
    for (name, value) in &sizes.params {
        arguments.push((name, Argument::Value(value)));
    }
    Ok(kernel.bind(&arguments)?)
}

/// Median, least, and what nine of ten measurements stay below.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quantiles {
    pub median: f64,
    pub least: f64,
    pub p90: f64,
}

impl Quantiles {
    /// In seconds.
    pub fn of(runs: &[Duration]) -> Option<Self> {
        let mut times: Vec<f64> = runs.iter().map(Duration::as_secs_f64).collect();
        times.sort_by(f64::total_cmp);
        let (low, high) = (times.get(times.len().checked_sub(1)? / 2)?, times.get(times.len() / 2)?);
        let p90 = times.get((times.len() * 9).div_ceil(10) - 1)?;
        Some(Self { median: (low + high) / 2.0, least: times[0], p90: *p90 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let times: Vec<Duration> = [5, 1, 4, 2, 3, 10, 9, 8, 7, 6].map(Duration::from_secs).to_vec();
        assert_eq!(Quantiles::of(&times), Some(Quantiles { median: 5.5, least: 1.0, p90: 9.0 }));
        let one = [Duration::from_secs(2)];
        assert_eq!(Quantiles::of(&one), Some(Quantiles { median: 2.0, least: 2.0, p90: 2.0 }));
        assert_eq!(Quantiles::of(&[]), None);
    }

    #[test]
    fn sets_are_together_more_than_twice_the_cache() {
        let sets = Sets::choose(48 << 20, Some(50 << 20));
        assert!(sets.count == 3 && sets.cold(), "{}", sets.text());
        assert_eq!(Sets::choose(3 << 30, Some(50 << 20)).count, 1);
        assert_eq!(Sets::choose(100 << 20, Some(50 << 20)).count, 2);
        let sets = Sets::choose(4, Some(50 << 20));
        assert!(!sets.cold() && sets.text().starts_with("WARM"));
        assert_eq!(Sets::choose(4, None).count, 1);
    }
}
