//! How many lane-instructions a second the emulator executes, on one core and on all, and how many times longer it
//! takes when it counts what the hardware counts.
//!
//! `cargo run --release -p krn-runtime --example emulator_speed`

use std::time::Instant;

use krn_compiler::ptx;
use krn_runtime::emulator::{ArgValue, Emulator, LaunchConfig, LaunchReport};

const SAXPY: &str = include_str!("saxpy.ptx");
const MATMUL: &str = include_str!("matmul.ptx");
const MATMUL_TILED: &str = include_str!("matmul_tiled.ptx");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    saxpy(1 << 20)?;
    matmul("matmul", MATMUL, 256)?;
    matmul("matmul_tiled", MATMUL_TILED, 256)?;
    Ok(())
}

fn saxpy(n: u32) -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Emulator::new();
    let module = device.load_module(&ptx::parse(SAXPY)?)?;
    let x = device.alloc(u64::from(n) * 4, "x")?;
    let y = device.alloc(u64::from(n) * 4, "y")?;
    let ones: Vec<u8> = (0..n).flat_map(|_| 1f32.to_le_bytes()).collect();
    device.copy_in(x, &ones)?;
    let args = [ArgValue::from(x), y.into(), 2f32.into(), n.into()];
    let config = LaunchConfig::linear(n.div_ceil(256), 256);
    measure("saxpy", &config, |config, counting| {
        Ok(if counting {
            device.launch_counted(&module, "saxpy", config, &args)?.0
        } else {
            device.launch(&module, "saxpy", config, &args)?
        })
    })
}

fn matmul(name: &str, text: &str, n: u32) -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Emulator::new();
    let module = device.load_module(&ptx::parse(text)?)?;
    let bytes = u64::from(n) * u64::from(n) * 4;
    let mut arrays = Vec::new();
    for name in ["a", "b", "c"] {
        let array = device.alloc(bytes, name)?;
        let data: Vec<u8> = (0..n * n).flat_map(|i| ((i % 17) as f32).to_le_bytes()).collect();
        device.copy_in(array, &data)?;
        arrays.push(array);
    }
    let args = [ArgValue::from(arrays[0]), arrays[1].into(), arrays[2].into(), n.into()];
    let config = LaunchConfig::new([n / 16, n / 16, 1], [16, 16, 1]);
    measure(name, &config, |config, counting| {
        Ok(if counting {
            device.launch_counted(&module, name, config, &args)?.0
        } else {
            device.launch(&module, name, config, &args)?
        })
    })
}

/// The best of several runs, on one core and on all.
fn measure(
    name: &str,
    config: &LaunchConfig<'_>,
    launch: impl Fn(&LaunchConfig<'_>, bool) -> Result<LaunchReport, Box<dyn std::error::Error>>,
) -> Result<(), Box<dyn std::error::Error>> {
    for (cores, threads_at_most) in [("one core", 1), ("all cores", 0)] {
        let config = LaunchConfig { threads_at_most, ..*config };
        let best = |counting: bool| -> Result<(f64, LaunchReport), Box<dyn std::error::Error>> {
            let (mut best, mut report) = (f64::INFINITY, LaunchReport::default());
            for _ in 0..5 {
                let start = Instant::now();
                report = launch(&config, counting)?;
                best = best.min(start.elapsed().as_secs_f64());
            }
            Ok((best, report))
        };
        let ((plain, report), (counted, _)) = (best(false)?, best(true)?);
        let rate = report.lane_instructions as f64 / plain / 1e6;
        let warps = plain / report.warp_instructions as f64 * 1e9;
        println!(
            "{name:14} {cores:10} {rate:8.0} million lane-instructions/s, {warps:5.1} ns a warp instruction, \
             {:.2} times as long when counting",
            counted / plain
        );
    }
    Ok(())
}
