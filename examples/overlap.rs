//! Copy and compute at the same time: the same work on one stream and on several, and what that gains.
//!
//!     cargo run --release --example overlap -- 24 4194304
//!
//! The data comes in chunks (their number and their elements are the arguments): each goes up, is worked on, and comes
//! down. On one stream one happens after the other. On several streams, while one chunk is worked on, the next one is
//! already going up and the one before is coming down: the bus carries both directions at once. Every stream has its
//! own arrays and buffers; one program text does both, for order within a stream is all that it needs.

use anyhow::{Context, Result, ensure};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::{Argument, Array, Device, Kernel, Pending, Pinned, Stream};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const KERNEL: &str = "
kernel settle(x: inout f32[n]) {
    forall i in n {
        var value = x[i]
        for _ in 0..STEPS { value = 3.7 * value * (1.0 - value) }
        x[i] = value
    }
}
";

/// A stream with memory of its own. Buffers that are not there are on their way.
struct Lane {
    stream: Stream,
    chunk: Array<f32, 1>,
    up: Option<Pinned<f32>>,
    down: Option<Pinned<f32>>,
}

/// A chunk on its way: the lane, and both copies.
type Flight = (usize, Pending<Pinned<f32>>, Pending<Pinned<f32>>);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: usize| match arguments.next() {
        Some(text) => text.parse().with_context(|| format!("`{text}` is no number")),
        None => Ok(otherwise),
    };
    let (chunks, size) = (number(6)?, number(4096)?);

    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    // About as long as a copy takes, on a GPU.
    let steps = if device.is_emulator() { 4 } else { 1500 };
    let text = KERNEL.replace("STEPS", &steps.to_string());
    let compiled = compile(&SourceFile::new("settle.krn", text), &CompileOptions::default())?.compiled;
    let module = device.load(&compiled)?;
    let settle = module.kernel("settle")?;

    let mut best = [Duration::MAX; 2];
    let mut sums = [0.0; 2];
    for _ in 0..3 {
        for (at, lanes) in [1, 3].into_iter().enumerate() {
            let (time, sum) = run(&device, &settle, lanes, chunks, size)?;
            best[at] = best[at].min(time);
            sums[at] = sum;
        }
    }
    ensure!(sums[0] == sums[1], "the order of the work changed its result: {sums:?}");
    let moved = (2 * chunks * size * size_of::<f32>()) as f64 / 1e9;
    println!("{}: {chunks} chunks of {size} numbers", device.description());
    for (name, time) in [("one stream", best[0]), ("three streams", best[1])] {
        println!("{name:>14}: {:9.3} ms, {:6.2} GB/s", time.as_secs_f64() * 1e3, moved / time.as_secs_f64());
    }
    println!("{:>14}: {:.2} x", "gain", best[0].as_secs_f64() / best[1].as_secs_f64());
    Ok(())
}

/// All chunks over so many streams: the time they take, and the sum of the results.
fn run(
    device: &Device,
    settle: &Kernel<'_>,
    lanes: usize,
    chunks: usize,
    size: usize,
) -> Result<(Duration, f64)> {
    let mut lanes = (0..lanes)
        .map(|_| {
            Ok(Lane {
                stream: device.stream()?,
                chunk: Array::zeros(device, [size])?,
                up: Some(Pinned::zeros(device, size)?),
                down: Some(Pinned::zeros(device, size)?),
            })
        })
        .collect::<Result<Vec<Lane>>>()?;
    for lane in &mut lanes {
        let up = lane.up.as_mut().context("nothing is on its way")?;
        up.iter_mut().enumerate().for_each(|(i, x)| *x = (i % 1000) as f32 / 1000.0);
    }
    device.synchronize()?;

    let start = Instant::now();
    let mut flights: VecDeque<Flight> = VecDeque::new();
    let mut sum = 0.0;
    for number in 0..chunks {
        let at = number % lanes.len();
        if number >= lanes.len() {
            sum += land(&mut lanes, flights.pop_front().context("the lane is used")?)?;
        }
        let lane = &mut lanes[at];
        let up = lane.up.take().context("it came back")?;
        let down = lane.down.take().context("it came back")?;
        let sent = lane.chunk.write_async(up, &lane.stream)?;
        settle.launch_on(&lane.stream, &[("x", Argument::Array(lane.chunk.dynamic()))])?;
        let received = lane.chunk.read_async(down, &lane.stream)?;
        flights.push_back((at, sent, received));
    }
    while let Some(flight) = flights.pop_front() {
        sum += land(&mut lanes, flight)?;
    }
    Ok((start.elapsed(), sum))
}

/// Waits for a chunk, and looks at one number in a thousand.
fn land(lanes: &mut [Lane], (at, sent, received): Flight) -> Result<f64> {
    let up = sent.wait()?;
    let down = received.wait()?;
    let sum = down.iter().step_by(1000).map(|x| f64::from(*x)).sum();
    lanes[at].up = Some(up);
    lanes[at].down = Some(down);
    Ok(sum)
}
