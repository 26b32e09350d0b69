//! Adds two arrays: the shortest host program.
//!
//!     cargo run --example add
//!
//! It compiles `vector_add.krn`, loads it on the GPU (or on the emulator, where there is none), and runs it on arrays
//! of the host. Arguments go by name; shapes, types and facts are checked before anything is launched.

use anyhow::{Context, Result};
use krn_compiler::data::HostArray;
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::Device;

const KERNEL: &str = include_str!("vector_add.krn");

fn main() -> Result<()> {
    let source = SourceFile::new("vector_add.krn", KERNEL);
    let compiled = compile(&source, &CompileOptions::default())?.compiled;

    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let module = device.load(&compiled)?;
    let vector_add = module.kernel("vector_add")?;

    let n = 100_000;
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
    let a = HostArray::from_values(&[n], &a).context("as many values as the shape holds")?;
    let b = HostArray::from_values(&[n], &b).context("as many values as the shape holds")?;
    let outputs = vector_add.run(&[("a", &a), ("b", &b)])?;

    let (name, c) = outputs.arrays.first().context("the kernel has one result")?;
    let c = c.values::<f32>().context("it is f32")?;
    println!("{}: {name}[1000] = {}, {:?} on the device", device.description(), c[1000], outputs.elapsed);
    anyhow::ensure!(c.iter().enumerate().all(|(i, c)| *c == 1.5 * i as f32), "a wrong sum");
    Ok(())
}
