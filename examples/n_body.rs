//! A few hundred bodies under their own gravity, step by step.
//!
//!     cargo run --release --example n_body -- 512 20
//!
//! The arrays stay on the device between the steps: they are uploaded once, each step updates them in place, and only
//! what is printed comes back. Momentum should stay what it is, whatever the bodies do.

use anyhow::{Context, Result};
use krn::Device;
use n_body::{Body, Kernels, Vec3, advance};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

krn::kernels!("n_body.krn");

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise: usize| match arguments.next() {
        Some(text) => text.parse().with_context(|| format!("`{text}` is no number")),
        None => Ok(otherwise),
    };
    let (n, steps) = (number(256)?, number(10)?);

    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let kernels = Kernels::load(&device)?;

    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut random = || rng.random_range(-1.0..1.0f32);
    let bodies: Vec<Body> = (0..n)
        .map(|_| Body { x: random(), y: random(), z: random(), mass: random().abs() / n as f32 })
        .collect();
    // How structs lie on the device is the kernel's choice: arrays are made for an argument.
    let mut body = kernels.upload(advance::BODY, [n], &bodies)?;
    let mut velocity = kernels.zeros(advance::VELOCITY, [n])?;

    for step in 1..=steps {
        kernels.advance(&mut body, &mut velocity, 0.01, 0.01)?;
        if step % 5 == 0 || step == steps {
            let (energy, momentum) = motion(&bodies, &velocity.to_vec()?);
            println!("step {step:3}: kinetic energy {energy:.6}, momentum {momentum:.1e}");
            anyhow::ensure!(momentum < 1e-4, "momentum appeared from nowhere");
        }
    }
    Ok(())
}

/// Kinetic energy, and the length of the whole momentum.
fn motion(bodies: &[Body], velocities: &[Vec3]) -> (f32, f32) {
    let mut energy = 0.0;
    let mut momentum = Vec3 { x: 0.0, y: 0.0, z: 0.0 };
    for (Body { mass, .. }, v) in bodies.iter().zip(velocities) {
        energy += 0.5 * mass * (v.x * v.x + v.y * v.y + v.z * v.z);
        momentum.x += mass * v.x;
        momentum.y += mass * v.y;
        momentum.z += mass * v.z;
    }
    let Vec3 { x, y, z } = momentum;
    (energy, (x * x + y * y + z * z).sqrt())
}
