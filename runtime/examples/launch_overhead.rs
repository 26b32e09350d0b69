//! What a typed launch costs the host, beside the driver's bare call: a kernel of three arrays that does next to nothing.
//!
//!     cargo run --release -p krn-runtime --example launch_overhead
//!
//! Medians over batches; between two batches the queue runs empty. Needs a GPU: the emulator has no driver.

use krn_compiler::{CompileOptions, compile, source::SourceFile};
use krn_runtime::{Argument, Array, Device, Launcher, Operand};
use std::sync::Arc;
use std::time::{Duration, Instant};

const TEXT: &str = "kernel add(x: f32[n], y: f32[n], z: inout f32[n]) { z[i] = x[i] + y[i] }\n";
const BATCHES: usize = 400;
const LAUNCHES: u32 = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::open()?;
    println!("{}", device.description());
    let compiled = compile(&SourceFile::new("add.krn", TEXT), &CompileOptions::default())?.compiled;
    let module = Arc::new(device.load(&compiled)?);
    let add = Launcher::new(&module, "add")?;
    let stream = device.stream()?;
    let [x, y, z] = [0, 1, 2].map(|_| Array::<f32, 1>::zeros(&device, [32]));
    let (x, y, z) = (x?, y?, z?);
    let operands = || [Operand::Array(x.dynamic()), Operand::Array(y.dynamic()), Operand::Array(z.dynamic())];
    if add.time_driver(&stream, &operands(), 1)?.is_none() {
        println!("no driver: nothing to compare with");
        return Ok(());
    }
    let named = module.kernel("add")?;
    let arguments = [
        ("x", Argument::Array(x.dynamic())),
        ("y", Argument::Array(y.dynamic())),
        ("z", Argument::Array(z.dynamic())),
    ];
    // More sizes than a kernel keeps plans for: each launch makes one, and finds its code loaded.
    let mut sizes = Vec::new();
    for count in 1..=LAUNCHES as usize {
        let [x, y, z] = [0, 1, 2].map(|_| Array::<f32, 1>::zeros(&device, [32 * count]));
        sizes.push([x?, y?, z?]);
    }
    let (mut driver, mut typed, mut by_name, mut new) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        stream.synchronize()?;
        driver.extend(add.time_driver(&stream, &operands(), LAUNCHES)?);
        stream.synchronize()?;
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            add.launch(&stream, &operands())?;
        }
        typed.push(start.elapsed());
        stream.synchronize()?;
        let start = Instant::now();
        for _ in 0..LAUNCHES {
            named.launch_on(&stream, &arguments)?;
        }
        by_name.push(start.elapsed());
        stream.synchronize()?;
        let start = Instant::now();
        for [x, y, z] in &sizes {
            add.launch(&stream, &[x, y, z].map(|array| Operand::Array(array.dynamic())))?;
        }
        new.push(start.elapsed());
    }
    let bare = median(&mut driver);
    for (what, mut times) in
        [("cuLaunchKernelEx", driver), ("typed launch", typed), ("by name", by_name), ("new sizes", new)]
    {
        let median = median(&mut times);
        println!("{what:16} {:8.0} ns  {:.3} x", median * 1e9 / f64::from(LAUNCHES), median / bare);
    }
    Ok(())
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}
