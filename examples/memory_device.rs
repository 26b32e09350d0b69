//! Device memory: the host copies in, the kernels work, the host copies out.
//!
//!     cargo run --example memory_device
//!
//! An array in device memory is where kernels are fastest, and the host has no address of it: it comes to its elements
//! by copies that it asks for. Parts of an array are arrays as well, in the same memory.

use anyhow::{Result, ensure};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::{Argument, Array, Device, value};

const KERNEL: &str = "kernel saxpy(alpha: f32, x: f32[n], y: inout f32[n]) { y[i] = alpha * x[i] + y[i] }";

fn main() -> Result<()> {
    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let compiled = compile(&SourceFile::new("saxpy.krn", KERNEL), &CompileOptions::default())?.compiled;
    let module = device.load(&compiled)?;
    let saxpy = module.kernel("saxpy")?;

    let n = 1 << 16;
    let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let x = Array::from_slice(&device, [n], &values)?;
    let mut y = Array::<f32, 1>::zeros(&device, [n])?;
    y.view_mut(0..4)?.write(&[100.0; 4])?;

    let alpha = value(2.0f32);
    let arguments = [
        ("alpha", Argument::Value(&alpha)),
        ("x", Argument::Array(x.dynamic())),
        ("y", Argument::Array(y.dynamic())),
    ];
    saxpy.launch(&arguments)?;

    let head = y.view(0..8)?.to_vec()?;
    println!("{}: y = {head:?} …", device.description());
    ensure!(head == [100.0, 102.0, 104.0, 106.0, 8.0, 10.0, 12.0, 14.0], "a wrong sum");

    // What does not fit is an error in words, before anything is launched.
    let short = Array::<f32, 1>::zeros(&device, [n - 1])?;
    let arguments = [arguments[0], arguments[1], ("y", Argument::Array(short.dynamic()))];
    match saxpy.launch(&arguments) {
        Err(error) => println!("refused: {error}"),
        Ok(_) => anyhow::bail!("a shape that does not fit was accepted"),
    }
    Ok(())
}
