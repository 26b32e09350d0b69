//! Timing: a launch whose arguments are bound once, repeated many times with nothing but launches in between.

use crate::backend::StreamNumber;
use crate::device::same_device;
use crate::error::{Error, Result};
use crate::launch::argument::Argument;
use crate::launch::counted::{CountedLaunch, TracedLaunch};
use crate::launch::kernel::Kernel;
use crate::launch::prepared::{Prepared, ReadyLaunch};
use crate::launch::repeated::{KeptGraph, on_device};
use crate::sequence::Sequence;
use crate::stream::Stream;
use std::time::Duration;

/// Device time that the default warm-up takes at least: clocks rise, and what is loaded lazily is loaded.
const WARM_UP: Duration = Duration::from_millis(100);
/// Launches that the default warm-up does at least, and at most.
const WARM_UP_LAUNCHES: (usize, usize) = (3, 20_000);
/// Device time that one measurement takes at least by default: events tell about half a microsecond.
const MEASUREMENT: Duration = Duration::from_micros(200);
/// Launches in one measurement at most, by default.
const BATCH_LIMIT: u128 = 1000;
/// Device time that all measurements together should take by default, as far as the limits of their number allow.
const TOTAL: Duration = Duration::from_secs(2);
/// Measurements by default: at least, and at most.
const RUNS: (u128, u128) = (5, 50);

/// A kernel bound to arguments: everything is checked and all memory is there, so that a launch does nothing but
/// launch.
pub struct Bound<'m, 'a> {
    prepared: Prepared<'m, 'a>,
    launches: Sequence<ReadyLaunch>,
    graph: KeptGraph,
}

impl<'m> Kernel<'m> {
    /// Binds the kernel to arguments for many launches. Results that are not among them are allocated.
    ///
    /// # Errors
    /// As for [`Kernel::launch`]; nothing is launched.
    pub fn bind<'a>(&self, arguments: &[(&str, Argument<'a>)]) -> Result<Bound<'m, 'a>> {
        let prepared = self.prepared(arguments)?;
        let launches = prepared.ready_launches()?;
        Ok(Bound { prepared, launches, graph: KeptGraph::default() })
    }
}

impl Bound<'_, '_> {
    /// Queues the kernel once more. `inout` arrays go on from what the launch before left.
    ///
    /// # Errors
    /// A failed driver call; on the emulator, what the kernel did wrong.
    pub fn launch(&self) -> Result<()> {
        self.queue(0)
    }

    /// Queues the kernel once more, on a stream. Its results and scratch memory are the same each time, so launches
    /// on several streams wait for each other.
    ///
    /// # Errors
    /// [`Error::WrongDevice`]; a failed driver call; on the emulator, what the kernel did wrong.
    pub fn launch_on(&self, stream: &Stream) -> Result<()> {
        same_device("the stream", stream.device(), "the kernel", &self.prepared.module.device)?;
        if self.prepared.capture(stream)? {
            return Ok(());
        }
        if let Some(record) = self.prepared.record() {
            stream.watch(record);
        }
        self.queue(stream.number())
    }

    fn queue(&self, stream: StreamNumber) -> Result<()> {
        let device = &self.prepared.module.device;
        self.prepared.in_order(stream, || match self.launches.waits() && on_device(device) {
            true => self.graph.launch(device, self.prepared.graph_work(&self.launches)?, (stream, None)),
            false => self.run(stream, &mut |launch| self.prepared.submit_on(stream, launch)),
        })
    }

    /// Runs the kernel once more and counts, launch by launch, what the hardware would; `None` (and nothing done) on
    /// a device that cannot: the emulator can.
    ///
    /// # Errors
    /// What the kernel did wrong.
    pub fn count(&self) -> Result<Option<Vec<CountedLaunch>>> {
        let mut counted = Some(Vec::new());
        self.run(self.prepared.stream, &mut |launch| {
            let one = self.prepared.count(launch)?;
            keep(&mut counted, one);
            Ok(())
        })?;
        self.finish()?;
        Ok(counted)
    }

    /// Runs the kernel once more and keeps, launch by launch, the addresses of one warp for each access; `None` (and
    /// nothing done) on a device that cannot: the emulator can.
    ///
    /// # Errors
    /// What the kernel did wrong.
    pub fn trace(&self) -> Result<Option<Vec<TracedLaunch>>> {
        let mut traced = Some(Vec::new());
        self.run(self.prepared.stream, &mut |launch| {
            let one = self.prepared.trace(launch)?;
            keep(&mut traced, one);
            Ok(())
        })?;
        self.finish()?;
        Ok(traced)
    }

    /// Waits for all launches.
    ///
    /// # Errors
    /// What the kernel did wrong, in any of them.
    pub fn finish(&self) -> Result<()> {
        self.prepared.finish()
    }

    fn run(&self, stream: StreamNumber, launch: &mut dyn FnMut(&ReadyLaunch) -> Result<()>) -> Result<()> {
        let mut goes_on = |condition: &usize, turns| self.prepared.goes_on(stream, *condition, turns);
        self.launches.run(launch, &mut goes_on)
    }

    /// Entries that one launch of the kernel launches on the device; those of a `while` count once.
    pub fn entries(&self) -> usize {
        self.launches.len()
    }

    fn all(&self) -> Vec<&ReadyLaunch> {
        let mut all = Vec::new();
        self.launches.each(&mut |launch| all.push(launch));
        all
    }

    /// The names of these entries in the module's PTX, in the order of their launches.
    pub fn entry_names(&self) -> impl Iterator<Item = &str> + '_ {
        self.all().into_iter().map(ReadyLaunch::entry)
    }

    /// The most dynamic shared memory that one of these launches asks for, in bytes.
    pub fn dynamic_shared_bytes(&self) -> u32 {
        self.all().into_iter().map(ReadyLaunch::shared_bytes).max().unwrap_or(0)
    }

    /// Bytes of all arrays: arguments, results and scratch memory.
    pub fn bytes(&self) -> u64 {
        self.prepared.bytes()
    }
}

/// Adds what one launch gave; a device that gives nothing once gives nothing at all.
fn keep<T>(all: &mut Option<Vec<T>>, one: Option<T>) {
    match (all.as_mut(), one) {
        (Some(all), Some(one)) => all.push(one),
        _ => *all = None,
    }
}

/// How to measure. What is `None` is chosen by how long the kernel takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TimingOptions {
    /// Launches before the first measurement.
    pub warm_up: Option<usize>,
    /// Measurements, at least 1.
    pub runs: Option<usize>,
    /// Launches in one measurement, at least 1: their time is divided by their number.
    pub batch: Option<usize>,
}

/// What a device tells of a kernel's cost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Measured {
    /// Device time of one launch of the kernel, one a measurement, in the order in which they were made.
    Time { runs: Vec<Duration>, batch: usize, warm_up: usize },
    /// The emulator has no time, but counts: instructions of all lanes in one launch of the kernel.
    Instructions(u64),
}

/// Measures a kernel. Launches go round `sets`, which are the same kernel bound to arrays of equal shapes: with
/// several, more memory is touched before the first one's turn comes again than a cache holds. The emulator launches
/// the first one once.
///
/// # Errors
/// Everything in [`Error`]; [`Error::Argument`] without a set.
pub fn measure(sets: &[Bound<'_, '_>], options: &TimingOptions) -> Result<Measured> {
    let Some(first) = sets.first() else {
        let message = "nothing is bound, so there is nothing to measure".to_string();
        return Err(Error::Argument { kernel: "measure".to_string(), message });
    };
    let backend = &first.prepared.module.device.backend;
    let mut turn = 0;
    let mut launch = |count: usize| {
        (0..count).try_for_each(|_| {
            turn = (turn + 1) % sets.len();
            sets[turn].launch()
        })
    };
    let mut each = Duration::ZERO;
    let mut warm_up = 0;
    let mut spent = Duration::ZERO;
    loop {
        let count = match options.warm_up {
            Some(wanted) => wanted - warm_up,
            None => warm_up.max(1),
        };
        let Some(times) = backend.time_each(1, &mut |_| launch(count))? else {
            return count_instructions(first);
        };
        let time: Duration = times.iter().sum();
        warm_up += count;
        spent += time;
        each = if count > 0 { time / count as u32 } else { each };
        let enough = warm_up >= WARM_UP_LAUNCHES.0 && spent >= WARM_UP || warm_up >= WARM_UP_LAUNCHES.1;
        if options.warm_up.is_some() || enough {
            break;
        }
    }
    let batch = options.batch.map_or_else(|| default_batch(each), |batch| batch.max(1));
    let runs = options.runs.map_or_else(|| default_runs(each * batch as u32), |runs| runs.max(1));
    let times = backend.time_each(runs, &mut |_| launch(batch))?;
    sets.iter().try_for_each(Bound::finish)?;
    let runs = times.unwrap_or_default().iter().map(|time| *time / batch as u32).collect();
    Ok(Measured::Time { runs, batch, warm_up })
}

fn count_instructions(set: &Bound<'_, '_>) -> Result<Measured> {
    let device = &set.prepared.module.device;
    let before = device.lane_instructions().unwrap_or(0);
    set.launch()?;
    set.finish()?;
    Ok(Measured::Instructions(device.lane_instructions().unwrap_or(0) - before))
}

/// One where a launch takes long enough; also where nothing is known, after no warm-up.
fn default_batch(each: Duration) -> usize {
    match each.as_nanos() {
        0 => 1,
        nanos => MEASUREMENT.as_nanos().div_ceil(nanos).clamp(1, BATCH_LIMIT) as usize,
    }
}

fn default_runs(each: Duration) -> usize {
    match each.as_nanos() {
        0 => RUNS.0 as usize,
        nanos => (TOTAL.as_nanos() / nanos).clamp(RUNS.0, RUNS.1) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use krn_compiler::data::HostArray;

    #[test]
    fn a_bound_kernel_is_launched_again_and_again_and_counted_on_the_emulator() {
        let text = "kernel advance(y: inout i32[n]) -> total: i32 { y[i] = y[i] + 1\n total = sum(i: y[i]) }";
        let source = krn_compiler::source::SourceFile::new("advance.krn", text);
        let compiled = krn_compiler::compile(&source, &krn_compiler::CompileOptions::default());
        let compiled = compiled.expect("compiles").compiled;
        let device = crate::Device::open_as(crate::Selection::Emulator).expect("always there");
        let module = device.load(&compiled).expect("loads");
        let kernel = module.kernel("advance").expect("there");
        let element = krn_compiler::data::ElementType::scalar(krn_compiler::data::Scalar::I32);
        let tile = HostArray {
            element,
            shape: vec![3],
            bytes: [1i32, 2, 3].iter().flat_map(|v| v.to_le_bytes()).collect(),
        };
        let layout = kernel.layout("y").expect("an array");
        let y = device.repeat(&tile, vec![8], layout).expect("fits");
        let values = |array: &crate::DeviceArray| -> Vec<i32> {
            let bytes = array.download().expect("copied").bytes;
            bytes.chunks(4).map(|b| i32::from_le_bytes(b.try_into().expect("4 bytes"))).collect()
        };
        assert_eq!(values(&y), [1, 2, 3, 1, 2, 3, 1, 2]);
        let bound = kernel.bind(&[("y", Argument::Array(&y))]).expect("fits");
        assert!(bound.entries() >= 2 && bound.bytes() >= 36, "{} {}", bound.entries(), bound.bytes());
        bound.launch().and_then(|()| bound.launch()).and_then(|()| bound.finish()).expect("runs");
        assert_eq!(values(&y), [3, 4, 5, 3, 4, 5, 3, 4]);
        let measured = measure(&[bound], &TimingOptions::default()).expect("runs");
        assert!(matches!(measured, Measured::Instructions(count) if count > 8 * 3), "{measured:?}");
        assert_eq!(values(&y)[0], 4);
        assert!(measure(&[], &TimingOptions::default()).is_err());
    }

    #[test]
    fn structs_are_repeated_in_every_layout() {
        use krn_compiler::data::{ElementType, Leaf, Scalar};
        use krn_compiler::manifest::Layout;
        let leaf = |path: &str, scalar, offset| Leaf {
            path: path.to_string(),
            scalar,
            offset,
            extents: Vec::new(),
            strides: Vec::new(),
        };
        let leaves = vec![leaf("x", Scalar::F32, 0), leaf("k", Scalar::U8, 4)];
        let element = ElementType { name: "P".to_string(), leaves, size: 8, align: 4 };
        let bytes: Vec<u8> = (0..16u8).flat_map(|n| [n, 1, 2, 3, 100 + n, 0, 0, 0]).collect();
        let tile = HostArray { element, shape: vec![16], bytes };
        let device = crate::Device::open_as(crate::Selection::Emulator).expect("always there");
        for layout in [Layout::Aos, Layout::Soa, Layout::Aosoa(8), Layout::Aosoa(16)] {
            let array = device.repeat(&tile, vec![7, 7], layout).expect("fits").download().expect("copied");
            let expected: Vec<u8> = tile.bytes.iter().copied().cycle().take(49 * 8).collect();
            assert_eq!(array.bytes, expected, "{layout:?}");
        }
        assert!(device.repeat(&tile, vec![49], Layout::Aosoa(32)).is_err());
    }

    #[test]
    fn short_kernels_are_measured_in_batches_and_long_ones_seldom() {
        assert_eq!(default_batch(Duration::from_micros(2)), 100);
        assert_eq!(default_batch(Duration::from_nanos(1)), 1000);
        assert_eq!(default_batch(Duration::from_millis(3)), 1);
        assert_eq!(default_batch(Duration::ZERO), 1);
        assert_eq!(default_runs(Duration::from_millis(1)), 50);
        assert_eq!(default_runs(Duration::from_millis(100)), 20);
        assert_eq!(default_runs(Duration::from_secs(9)), 5);
    }
}
