//! Loads kernels that were compiled before, by `krn build --emit fat`: PTX, machine code and manifest for several GPUs.
//!
//!     cargo run -- build examples/saxpy.krn --emit fat -o saxpy.json
//!     cargo run --example ahead_of_time -- saxpy.json
//!
//! The document is picked for the device when it is loaded: machine code where it has some for this GPU, else the newest
//! PTX that runs there. Nothing of the compiler is needed on the machine that runs it. `docs/manifest.md` describes the
//! document; `examples/python/` launches it without this library.

use anyhow::{Context, Result};
use krn::{Argument, Array, Device, Module};
use krn_compiler::fat::Fat;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("usage: ahead_of_time SAXPY.json")?;
    let document = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{path}`"))?;
    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let fat = Fat::parse(&document)?;
    let image = fat.image(device.capability())?;
    let code = match device.capability() {
        Some(capability) => image.code(capability)?,
        None => None,
    };
    let what = if code.is_some() { "machine code" } else { "PTX" };
    println!("{}: {what} for {}", device.description(), image.target);

    let module = Module::from_fat(&device, &document)?;
    let n = 10_007;
    let x = Array::from_slice(&device, [n], &vec![2.0f32; n])?;
    let y = Array::from_slice(&device, [n], &(0..n).map(|i| i as f32).collect::<Vec<_>>())?;
    let alpha = krn::value(0.5f32);
    module.kernel("saxpy")?.launch(&[
        ("alpha", Argument::Value(&alpha)),
        ("x", Argument::Array(x.dynamic())),
        ("y", Argument::Array(y.dynamic())),
    ])?;
    let y = y.to_vec()?;
    anyhow::ensure!(y.iter().enumerate().all(|(i, y)| *y == 1.0 + i as f32), "a wrong sum");
    println!("y[10000] = {}", y[10_000]);
    Ok(())
}
