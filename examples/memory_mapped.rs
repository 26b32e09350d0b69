//! Mapped memory: a kernel reads and writes the host's memory itself.
//!
//!     cargo run --example memory_mapped
//!
//! There are no copies: each access of the kernel goes over the bus. That is right where a kernel touches the data
//! once, or little of it. Host and kernels take turns: a slice of the host waits for the kernels before it, and a
//! kernel that would write behind a slice is refused.

use anyhow::{Result, ensure};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::{Argument, Array, Device, Error, Memory};

const KERNEL: &str = "
kernel histogram(data: u8[n], counts: inout i32[256]) {
    forall i in n { counts[data[i]] += 1 }
}
";

fn main() -> Result<()> {
    let device = Device::open()?;
    if let Some(notice) = device.notice() {
        eprintln!("{notice}");
    }
    let compiled = compile(&SourceFile::new("histogram.krn", KERNEL), &CompileOptions::default())?.compiled;
    let module = device.load(&compiled)?;
    let histogram = module.kernel("histogram")?;

    let n = 100_000;
    let mut data = Array::<u8, 1>::zeros_in(&device, Memory::Mapped, [n])?;
    // Written where the kernel will read it.
    data.host_mut()?.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i % 10) as u8);
    let counts = Array::<i32, 1>::zeros_in(&device, Memory::Mapped, [256])?;

    let arguments =
        [("data", Argument::Array(data.dynamic())), ("counts", Argument::Array(counts.dynamic()))];
    histogram.launch(&arguments)?;

    let slice = counts.as_slice()?;
    println!("{}: {} in {:?} …", device.description(), counts.memory(), &slice[..12]);
    ensure!(slice[..10] == [10_000; 10] && slice[10..] == [0; 246], "a wrong count");

    match histogram.launch(&arguments) {
        Err(Error::HostAccess(reason)) => println!("refused: {reason}"),
        other => anyhow::bail!("the host has a slice of `counts`, but: {:?}", other.map(|_| ())),
    }
    drop(slice);
    histogram.launch(&arguments)?;
    ensure!(counts.as_slice()?[0] == 20_000, "a wrong count");
    Ok(())
}
