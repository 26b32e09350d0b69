//! How fast values come to a device and back through the host's slices: plain numbers, structs with padding, `bool`s, which
//! have to be looked at.
//!
//!     cargo run --release -p krn-runtime --example host_copies
//!
//! Medians of eight copies of 64 MiB, with the slice or `Vec` that the host has. On the first GPU, else on the emulator.

use krn_runtime::{Array, Device, Element, KrnStruct, Pinned};
use std::time::{Duration, Instant};

/// With 3 bytes of padding behind the first field and 7 behind the last.
#[derive(Clone, Copy, KrnStruct)]
#[repr(C)]
struct Padded {
    kind: u8,
    value: f32,
    weight: f64,
    last: u8,
}

/// With a `bool` that is looked at.
#[derive(Clone, Copy, KrnStruct)]
#[repr(C)]
struct Flagged {
    on: bool,
    value: f32,
}

const BYTES: usize = 64 << 20;
const COPIES: usize = 8;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::open()?;
    println!("{}", device.description());
    println!("{:24} {:>12} {:>12} {:>12} {:>14}", "GB/s", "write", "to_vec", "read_into", "write_async");
    row(&device, "f32", 1.5f32)?;
    row(&device, "bool", true)?;
    row(&device, "24 bytes, 10 padding", Padded { kind: 1, value: 2.0, weight: 3.0, last: 4 })?;
    row(&device, "8 bytes, a bool", Flagged { on: true, value: 2.0 })
}

fn row<T: Element>(device: &Device, name: &str, value: T) -> Result<(), Box<dyn std::error::Error>> {
    let count = BYTES / size_of::<T>();
    let values = vec![value; count];
    let stream = device.stream()?;
    let mut array = Array::<T, 1>::zeros(device, [count])?;
    let mut buffer = Some(Pinned::from_slice(device, &values)?);
    let write = median(|| Ok(array.write(&values)?))?;
    let back = median(|| {
        drop(array.to_vec()?);
        Ok(())
    })?;
    let mut values = values;
    let into = median(|| Ok(array.read_into(&mut values)?))?;
    let sent = median(|| {
        if let Some(given) = buffer.take() {
            buffer = Some(array.write_async(given, &stream)?.wait()?);
        }
        Ok(())
    })?;
    let speed = |time: Duration| BYTES as f64 / time.as_secs_f64() / 1e9;
    let (write, back, into, sent) = (speed(write), speed(back), speed(into), speed(sent));
    println!("{name:24} {write:12.2} {back:12.2} {into:12.2} {sent:14.2}");
    Ok(())
}

fn median(
    mut copy: impl FnMut() -> Result<(), Box<dyn std::error::Error>>,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut times = Vec::new();
    for _ in 0..COPIES {
        let start = Instant::now();
        copy()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times[COPIES / 2])
}
