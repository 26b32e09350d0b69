//! Pinned memory: copies that run while the host goes on.
//!
//!     cargo run --example memory_pinned
//!
//! The device copies from and to page-locked memory by itself. A copy on its way owns its buffer: the host cannot use
//! it before `wait` gives it back, and Rust checks that. Copies and launches on one stream run in order, so nobody has
//! to wait in between.

use anyhow::{Result, ensure};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::{Argument, Array, Device, Pinned};

const KERNEL: &str = "kernel square(x: inout i64[n]) { x[i] = x[i] * x[i] }";

fn main() -> Result<()> {
    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let compiled = compile(&SourceFile::new("square.krn", KERNEL), &CompileOptions::default())?.compiled;
    let module = device.load(&compiled)?;
    let square = module.kernel("square")?;
    let stream = device.stream()?;

    let n = 1 << 16;
    let mut buffer = Pinned::<i64>::zeros(&device, n)?;
    buffer.iter_mut().enumerate().for_each(|(i, x)| *x = i as i64);

    let mut x = Array::<i64, 1>::zeros(&device, [n])?;
    let sent = x.write_async(buffer, &stream)?;
    square.launch_on(&stream, &[("x", Argument::Array(x.dynamic()))])?;
    let received = x.read_async(Pinned::zeros(&device, n)?, &stream)?;

    // The host is free until here.
    let first = sent.wait()?;
    let squares = received.wait()?;
    println!("{}: {} squared is {}", device.description(), first[300], squares[300]);
    ensure!(squares.iter().enumerate().all(|(i, x)| *x == (i * i) as i64), "a wrong square");
    Ok(())
}
