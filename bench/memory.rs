//! What each kind of memory costs: a table as text, and as JSON.
//!
//!     cargo run --release --example memory_table -- [MIB] [JSON]
//!
//! MIB is the size of the array (256 by default; 1/16 on the emulator, whose times say nothing); JSON a file to write.
//! Each number is the median of several runs, in time of the host from the call until everything is done, after a run
//! that does not count. GB are 10^9 bytes.

use anyhow::{Context, Result};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::{Argument, Array, Device, Kernel, Memory, Pinned, Place, Stream};
use std::cell::RefCell;
use std::time::{Duration, Instant};

const KERNEL: &str = "
kernel total(x: f32[n]) -> s: f32 { s = sum(i: x[i]) }
kernel scale(x: inout f32[n]) { x[i] = 0.5 * x[i] }
";

/// Runs that count.
const RUNS: usize = 7;

/// One line of the table.
struct Row {
    what: &'static str,
    way: &'static str,
    bytes: usize,
    time: Duration,
}

impl Row {
    fn bandwidth(&self) -> f64 {
        self.bytes as f64 / self.time.as_secs_f64() / 1e9
    }
}

/// Everything that the measurements share.
struct Bench<'m> {
    device: Device,
    stream: Stream,
    total: Kernel<'m>,
    scale: Kernel<'m>,
    count: usize,
    rows: Vec<Row>,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let size =
        arguments.next().map(|text| text.parse::<f64>().with_context(|| format!("`{text}` is no number")));
    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let size = size.transpose()?.unwrap_or(if device.is_emulator() { 0.0625 } else { 256.0 });
    let compiled = compile(&SourceFile::new("memory.krn", KERNEL), &CompileOptions::default())?.compiled;
    let module = device.load(&compiled)?;
    let mut bench = Bench {
        stream: device.stream()?,
        total: module.kernel("total")?,
        scale: module.kernel("scale")?,
        count: (size * f64::from(1 << 20)) as usize / size_of::<f32>(),
        rows: Vec::new(),
        device,
    };
    bench.copies()?;
    bench.read_once()?;
    bench.managed()?;

    println!("{}, arrays of {size} MiB", bench.device.description());
    println!("{:<44} {:<34} {:>10} {:>9}", "what", "way", "ms", "GB/s");
    for row in &bench.rows {
        let milliseconds = row.time.as_secs_f64() * 1e3;
        println!("{:<44} {:<34} {milliseconds:>10.3} {:>9.2}", row.what, row.way, row.bandwidth());
    }
    if let Some(path) = arguments.next() {
        let rows: Vec<serde_json::Value> = bench
            .rows
            .iter()
            .map(|row| {
                serde_json::json!({
                    "what": row.what,
                    "way": row.way,
                    "bytes": row.bytes,
                    "seconds": row.time.as_secs_f64(),
                    "gigabytes_per_second": row.bandwidth(),
                })
            })
            .collect();
        let table = serde_json::json!({ "device": bench.device.description(), "rows": rows });
        std::fs::write(&path, format!("{table:#}\n")).with_context(|| format!("cannot write `{path}`"))?;
    }
    Ok(())
}

impl Bench<'_> {
    /// The median time of `work`, which gets `prepare`'s result, made outside of the time.
    fn measure<P>(
        &mut self,
        what: &'static str,
        way: &'static str,
        mut prepare: impl FnMut(&mut Self) -> Result<P>,
        mut work: impl FnMut(&mut Self, P) -> Result<()>,
    ) -> Result<()> {
        let mut times = Vec::with_capacity(RUNS);
        for run in 0..=RUNS {
            let prepared = prepare(self)?;
            self.device.synchronize()?;
            let start = Instant::now();
            work(self, prepared)?;
            self.device.synchronize()?;
            if run > 0 {
                times.push(start.elapsed());
            }
        }
        times.sort_unstable();
        let bytes = self.count * size_of::<f32>();
        self.rows.push(Row { what, way, bytes, time: times[RUNS / 2] });
        Ok(())
    }

    /// Ordinary memory of the host beside page-locked memory, both ways.
    fn copies(&mut self) -> Result<()> {
        let mut array = Array::<f32, 1>::zeros(&self.device, [self.count])?;
        let pageable = vec![1.0f32; self.count];
        let mut pinned = Some(Pinned::from_slice(&self.device, &pageable)?);
        let ready = |_: &mut Self| Ok(());
        self.measure("host to device", "pageable", ready, |_, ()| Ok(array.write(&pageable)?))?;
        self.measure("host to device", "pinned", ready, |bench, ()| {
            let buffer = pinned.take().context("it came back")?;
            pinned = Some(array.write_async(buffer, &bench.stream)?.wait()?);
            Ok(())
        })?;
        let mut back = pageable;
        self.measure("device to host", "pageable", ready, |_, ()| {
            // Into memory that is there already: a new vector would be paid page by page.
            Ok(array.read_into(&mut back)?)
        })?;
        self.measure("device to host", "pinned", ready, |bench, ()| {
            let buffer = pinned.take().context("it came back")?;
            pinned = Some(array.read_async(buffer, &bench.stream)?.wait()?);
            Ok(())
        })
    }

    /// A kernel that reads data of the host, once and several times: by a copy, or where it is.
    fn read_once(&mut self) -> Result<()> {
        let mut array = Array::<f32, 1>::zeros(&self.device, [self.count])?;
        let mut pinned = Some(Pinned::from_slice(&self.device, &vec![1.0f32; self.count])?);
        let mapped = Array::<f32, 1>::zeros_in(&self.device, Memory::Mapped, [self.count])?;
        for (what, rounds) in
            [("host data, read by a kernel once", 1), ("host data, read by a kernel 8 times", 8)]
        {
            let ready = |_: &mut Self| Ok(());
            self.measure(what, "copied (pinned), then read", ready, |bench, ()| {
                let sent = array.write_async(pinned.take().context("it came back")?, &bench.stream)?;
                for _ in 0..rounds {
                    bench.total.launch_on(&bench.stream, &[("x", Argument::Array(array.dynamic()))])?;
                }
                pinned = Some(sent.wait()?);
                Ok(())
            })?;
            self.measure(what, "mapped, read over the bus", ready, |bench, ()| {
                for _ in 0..rounds {
                    bench.total.launch_on(&bench.stream, &[("x", Argument::Array(mapped.dynamic()))])?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// A kernel that changes in place what the host has just written, and the host that reads it back.
    fn managed(&mut self) -> Result<()> {
        let array = Array::<f32, 1>::zeros_in(&self.device, Memory::Managed, [self.count])?;
        let array = RefCell::new(array);
        for (way, prefetch) in [("managed, page by page", false), ("managed, prefetched", true)] {
            let touched = |_: &mut Self| {
                array.borrow_mut().host_mut()?.fill(1.0);
                Ok(())
            };
            self.measure("host data, changed by a kernel", way, touched, |bench, ()| {
                let array = array.borrow();
                if prefetch {
                    array.prefetch(Place::Device, &bench.stream)?;
                }
                bench.scale.launch_on(&bench.stream, &[("x", Argument::Array(array.dynamic()))])?;
                Ok(())
            })?;
            let changed = |bench: &mut Self| {
                array.borrow_mut().host_mut()?.fill(1.0);
                array.borrow().prefetch(Place::Device, &bench.stream)?;
                Ok(())
            };
            self.measure("device data, read by the host", way, changed, |bench, ()| {
                let array = array.borrow();
                if prefetch {
                    array.prefetch(Place::Host, &bench.stream)?;
                }
                bench.stream.synchronize()?;
                let sum: f32 = array.as_slice()?.iter().step_by(1024).sum();
                anyhow::ensure!(sum == (bench.count / 1024) as f32, "a wrong sum");
                Ok(())
            })?;
        }
        let ready = |_: &mut Self| Ok(());
        let mut copy = Array::<f32, 1>::zeros(&self.device, [self.count])?;
        let mut pinned = Some(Pinned::from_slice(&self.device, &vec![1.0f32; self.count])?);
        self.measure("host data, changed by a kernel", "copied (pinned), then changed", ready, |bench, ()| {
            let sent = copy.write_async(pinned.take().context("it came back")?, &bench.stream)?;
            bench.scale.launch_on(&bench.stream, &[("x", Argument::Array(copy.dynamic()))])?;
            pinned = Some(sent.wait()?);
            Ok(())
        })
    }
}
