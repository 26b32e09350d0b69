//! Adds two arrays: the shortest host program.
//!
//!     cargo run --example add
//!
//! `kernels!` compiles `vector_add.krn` together with this program and makes a function of its kernel; `load` takes it
//! to the GPU (or to the emulator, where there is none). Types are checked by Rust; shapes and facts before anything is
//! launched.

use anyhow::Result;
use krn::{Array, Device};

krn::kernels!("vector_add.krn");

fn main() -> Result<()> {
    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let kernels = vector_add::Kernels::load(&device)?;

    let n = 100_000;
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
    let a = Array::from_slice(&device, [n], &a)?;
    let b = Array::from_slice(&device, [n], &b)?;
    let c = kernels.vector_add(&a, &b)?.to_vec()?;

    println!("{}: c[1000] = {}", device.description(), c[1000]);
    anyhow::ensure!(c.iter().enumerate().all(|(i, c)| *c == 1.5 * i as f32), "a wrong sum");
    Ok(())
}
