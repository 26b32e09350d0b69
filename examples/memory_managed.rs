//! Managed memory: one array for host and device, whose pages go to where they are touched.
//!
//!     cargo run --example memory_managed
//!
//! The host builds the data in place; `prefetch` moves it in one piece before the kernel runs, instead of page by page
//! when the kernel touches it; `advise` says what is known of it. Both change the speed alone.

use anyhow::{Result, ensure};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::{Advice, Argument, Array, Device, Memory, Place};

const KERNEL: &str = "
kernel smooth(x: f32[n], y: inout f32[n]) {
    forall i in n {
        y[i] = if i > 0 && i < n - 1 { (x[i - 1] + x[i] + x[i + 1]) / 3.0 } else { x[i] }
    }
}
";

fn main() -> Result<()> {
    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let compiled = compile(&SourceFile::new("smooth.krn", KERNEL), &CompileOptions::default())?.compiled;
    let module = device.load(&compiled)?;
    let smooth = module.kernel("smooth")?;
    let stream = device.stream()?;

    let n = 1 << 18;
    let mut x = Array::<f32, 1>::zeros_in(&device, Memory::Managed, [n])?;
    let mut y = Array::<f32, 1>::zeros_in(&device, Memory::Managed, [n])?;
    for (i, x) in x.host_mut()?.iter_mut().enumerate() {
        *x = if i % 3 == 0 { 3.0 } else { 0.0 };
    }
    x.advise(Advice::ReadMostly)?;
    x.prefetch(Place::Device, &stream)?;
    y.prefetch(Place::Device, &stream)?;
    smooth.launch_on(&stream, &[("x", Argument::Array(x.dynamic())), ("y", Argument::Array(y.dynamic()))])?;
    y.prefetch(Place::Host, &stream)?;

    // Waits for the kernel and for the pages.
    let smoothed = y.as_slice()?;
    println!("{}: {:?} …", device.description(), &smoothed[..6]);
    ensure!(smoothed[1..n - 1].iter().all(|y| (y - 1.0).abs() < 1e-6), "a wrong mean");
    drop(smoothed);
    y.host_mut()?[0] = 0.0;
    Ok(())
}
