//! Several GPUs beside NCCL: a product whose terms are split among them, and one whose rows are.
//!
//!     cargo run --release --example beside_nccl
//!     cargo run --release --example beside_nccl -- /usr/lib/libnccl.so.2
//!
//! By the index notation `c[i, j] = sum(p: a[i, p] * b[p, j])` the name `p` is summed over: each GPU has a part of the terms,
//! and the results are added by an all-reduce. The name `i` runs in parallel: each GPU has rows of `a` and of `c`, and none
//! needs what another one has. NCCL is loaded when the program runs; where there is none, or no GPU, it says so. With one
//! GPU the program is the same.

use anyhow::{Result, ensure};
use krn::{Argument, Array, Device, Error, Module, Selection, Stream};
use libloading::Library;
use std::ffi::{c_int, c_void};

const PRODUCT: &str = "
kernel product(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }
";

const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// One GPU of the program.
struct Rank {
    device: Device,
    module: Module,
    stream: Stream,
}

fn main() -> Result<()> {
    let count = match krn::cuda::device_count() {
        Err(Error::NoDevice(what)) => {
            println!("nothing to run on: {what}");
            return Ok(());
        }
        count => count?,
    };
    let given = std::env::args().nth(1);
    let names: Vec<&str> = given.as_deref().map_or(NAMES.to_vec(), |path| vec![path]);
    // SAFETY: its initialisers are NVIDIA's.
    let Some(nccl) = names.iter().find_map(|name| unsafe { Library::new(*name) }.ok()) else {
        println!("nothing to run beside: there is no NCCL ({})", names.join(", "));
        return Ok(());
    };
    let rank = |number| -> Result<Rank> {
        let device = Device::open_as(Selection::Cuda(number))?;
        let module = Module::from_source(&device, "product.krn", PRODUCT)?;
        let stream = device.stream()?;
        Ok(Rank { device, module, stream })
    };
    let ranks = (0..count).map(rank).collect::<Result<Vec<Rank>>>()?;
    println!("{} GPUs", ranks.len());
    let communicators = Communicators::new(&nccl, ranks.len())?;

    let parts = ranks.len();
    let (m, k, n) = (32 * parts, 64 * parts, 48);
    let values = |count: usize, step: usize| -> Vec<f32> {
        (0..count).map(|at| (at * step % 23) as f32 / 8.0 - 1.0).collect()
    };
    let (a, b) = (values(m * k, 7), values(k * n, 5));
    let exact: Vec<f32> =
        (0..m * n).map(|at| (0..k).map(|p| a[at / n * k + p] * b[p * n + at % n]).sum()).collect();

    // Terms: columns of `a` and rows of `b`. All GPUs start before any of them is waited for.
    let mut sums = Vec::new();
    for (number, rank) in ranks.iter().enumerate() {
        let terms = number * (k / parts)..(number + 1) * (k / parts);
        let columns: Vec<f32> = a.chunks(k).flat_map(|row| &row[terms.clone()]).copied().collect();
        let rows = &b[terms.start * n..terms.end * n];
        sums.push(rank.product([m, k / parts, n], &columns, rows)?);
    }
    communicators.add(&ranks, &mut sums)?;
    for sum in &sums {
        check("terms", &sum.to_vec()?, &exact)?;
    }

    // Rows: nothing is communicated.
    let mut pieces = Vec::new();
    for (number, rank) in ranks.iter().enumerate() {
        let rows = number * (m / parts)..(number + 1) * (m / parts);
        pieces.push(rank.product([m / parts, k, n], &a[rows.start * k..rows.end * k], &b)?);
    }
    let rows = pieces.iter().map(Array::to_vec).collect::<krn::Result<Vec<_>>>()?.concat();
    check("rows", &rows, &exact)
}

fn check(what: &str, given: &[f32], exact: &[f32]) -> Result<()> {
    let worst = given.iter().zip(exact).map(|(given, exact)| (given - exact).abs()).fold(0.0, f32::max);
    println!("split by {what}: at most {worst:e} away from the host's");
    ensure!(worst < 1e-3, "the results differ");
    Ok(())
}

impl Rank {
    /// Queues a product, and gives its result before it is done.
    fn product(&self, [m, k, n]: [usize; 3], a: &[f32], b: &[f32]) -> Result<Array<f32, 2>> {
        let a = Array::from_slice(&self.device, [m, k], a)?;
        let b = Array::from_slice(&self.device, [k, n], b)?;
        let arguments = [("a", Argument::Array(a.dynamic())), ("b", Argument::Array(b.dynamic()))];
        let mut results = self.module.kernel("product")?.launch_on(&self.stream, &arguments)?;
        let (_, c) = results.remove(0);
        Ok(Array::from_dynamic(c)?)
    }
}

/// Calls a function of NCCL by name, with arguments of these types, and checks that it answers 0.
macro_rules! call {
    ($library:expr, $name:literal, $($argument:expr => $ty:ty),*) => {{
        // SAFETY: the library's function of that name has these arguments; what they point to is there.
        let status = unsafe {
            let function = $library.get::<unsafe extern "C" fn($($ty),*) -> c_int>($name)?;
            function($($argument),*)
        };
        match status {
            0 => Ok(()),
            status => Err(anyhow::anyhow!("{} answers {status}", $name.escape_ascii())),
        }
    }};
}

/// One a GPU, all of this process.
struct Communicators<'l> {
    nccl: &'l Library,
    handles: Vec<*mut c_void>,
}

impl<'l> Communicators<'l> {
    fn new(nccl: &'l Library, count: usize) -> Result<Self> {
        let mut handles = vec![std::ptr::null_mut(); count];
        let all = c_int::try_from(count)?;
        // Null stands for the devices 0, 1, …
        call!(
            nccl, b"ncclCommInitAll",
            handles.as_mut_ptr() => *mut *mut c_void, all => c_int, std::ptr::null() => *const c_int
        )?;
        Ok(Self { nccl, handles })
    }

    /// Queues the sum of the arrays of all GPUs, in the place of each, behind what the GPUs' streams have.
    fn add(&self, ranks: &[Rank], arrays: &mut [Array<f32, 2>]) -> Result<()> {
        const FLOAT: c_int = 7;
        const SUM: c_int = 0;
        call!(self.nccl, b"ncclGroupStart",)?;
        for ((rank, array), handle) in ranks.iter().zip(arrays).zip(&self.handles) {
            let (pointer, count) = (array.pointers().next().unwrap_or_default(), array.len());
            let stream = rank.stream.raw()?;
            rank.stream.foreign().writes(array).queue(|| {
                call!(
                    self.nccl, b"ncclAllReduce", pointer => u64, pointer => u64, count => usize,
                    FLOAT => c_int, SUM => c_int, *handle => *mut c_void, stream => *mut c_void
                )
            })??;
        }
        call!(self.nccl, b"ncclGroupEnd",)
    }

    fn destroy(&self, handle: *mut c_void) -> Result<()> {
        call!(self.nccl, b"ncclCommDestroy", handle => *mut c_void)
    }
}

impl Drop for Communicators<'_> {
    fn drop(&mut self) {
        for handle in &self.handles {
            if let Err(error) = self.destroy(*handle) {
                eprintln!("{error}");
            }
        }
    }
}
