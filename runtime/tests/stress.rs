//! Many threads at once do all that a program can do with a device, in an order of chance: they allocate, copy, launch,
//! load modules, open streams, capture graphs and hand arrays to each other. Each array is held against a copy of the
//! host's. On the emulator and over the driver of `tests/driver`; `KRN_DEVICE=cuda` runs the first on a GPU.

#[cfg(target_os = "linux")]
use crate::fake;
use crate::support::{compiled_on, device};
use krn_compiler::CompiledModule;
use krn_runtime::{Array, Device, Launcher, Memory, Module, Operand, Pinned, Result, Stream};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

const THREADS: u64 = 8;
const ROUNDS: usize = 150;

const TEXT: &str = "
kernel advance(x: inout i32[n], by: i32) { x[i] += by }
kernel double(x: i32[n]) -> y: i32[n] { y[i] = 2 * x[i] }
kernel total(x: i32[n]) -> s: i32 { s = sum(i: x[i]) }
";

/// One of several modules that threads load and drop.
fn other_text(number: i32) -> String {
    format!("kernel other(x: inout i32[n]) {{ x[i] = x[i] + {number} }}")
}

/// Splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }
}

/// An array, and what it holds when all that was queued is done.
struct Known {
    array: Array<i32, 1>,
    values: Vec<i32>,
}

impl Known {
    fn new(device: &Device, chance: &mut Chance) -> Result<Self> {
        let values: Vec<i32> = (0..chance.below(400)).map(|_| chance.below(1000) as i32).collect();
        let memory = [Memory::Device, Memory::Mapped, Memory::Managed][chance.below(3) as usize];
        let mut array = Array::zeros_in(device, memory, [values.len()])?;
        array.write(&values)?;
        Ok(Self { array, values })
    }

    fn check(&self, what: &str) -> Result<()> {
        assert_eq!(self.array.to_vec()?, self.values, "{what}");
        Ok(())
    }

    fn operand(&self) -> Operand<'_> {
        Operand::Array(self.array.dynamic())
    }
}

/// What all threads have.
struct Common {
    device: Device,
    launchers: [Launcher; 3],
    others: Vec<CompiledModule>,
    stream: Stream,
    /// Written by all, and how far.
    shared: Array<i32, 1>,
    advanced: AtomicI32,
    /// Arrays on their way from one thread to another.
    exchange: Mutex<Vec<Known>>,
    /// Whether kernels do what they say: over the driver of the tests they do nothing.
    computes: bool,
}

impl Common {
    fn new(device: Device, computes: bool) -> Self {
        let module = Arc::new(device.load(&compiled_on(&device, "stress.krn", TEXT)).expect("it loads"));
        let launchers =
            ["advance", "double", "total"].map(|name| Launcher::new(&module, name).expect("there"));
        let others = (1..4).map(|number| compiled_on(&device, "stress.krn", &other_text(number))).collect();
        let stream = device.stream().expect("opens");
        let shared = Array::zeros(&device, [500]).expect("small");
        let (advanced, exchange) = (AtomicI32::new(0), Mutex::default());
        Self { device, launchers, others, stream, shared, advanced, exchange, computes }
    }

    /// What a kernel adds that adds so much.
    fn added(&self, by: i32) -> i32 {
        if self.computes { by } else { 0 }
    }

    fn work(&self, seed: u64) -> Result<()> {
        let mut chance = Chance(seed);
        let mut own = self.device.stream()?;
        let mut known = Known::new(&self.device, &mut chance)?;
        let mut buffer = Pinned::<i32>::zeros(&self.device, known.values.len())?;
        let [advance, double, total] = &self.launchers;
        for _ in 0..ROUNDS {
            let stream = if chance.below(3) == 0 { self.stream.clone() } else { own.clone() };
            match chance.below(13) {
                // Its memory goes to the next owner while kernels may still use it.
                0 => known = Known::new(&self.device, &mut chance)?,
                1 | 2 => {
                    let by = chance.below(100) as i32;
                    advance.launch(&stream, &[known.operand(), Operand::value(&by)])?;
                    known.values.iter_mut().for_each(|value| *value += self.added(by));
                }
                3 => {
                    let made = double.launch(&stream, &[known.operand(), Operand::Absent])?.remove(0);
                    known.array = Array::from_dynamic(made)?;
                    known.values.iter_mut().for_each(|value| *value = value.wrapping_mul(2));
                    if !self.computes {
                        known.array.write(&known.values)?;
                    }
                }
                4 => {
                    let sum = total.launch(&stream, &[known.operand(), Operand::Absent])?.remove(0);
                    let sum = Array::<i32, 0>::from_dynamic(sum)?.to_vec()?[0];
                    let wanted = known.values.iter().fold(0i32, |sum, value| sum.wrapping_add(*value));
                    assert!(!self.computes || sum == wanted, "{sum} {wanted}");
                }
                5 => {
                    if buffer.len() != known.values.len() {
                        // Refused, and back again.
                        let refused = known.array.write_async(buffer, &stream).map(|_| ());
                        drop(refused.expect_err("of another length").buffer);
                        buffer = Pinned::zeros(&self.device, known.values.len())?;
                    }
                    buffer.iter_mut().for_each(|value| *value = chance.below(1000) as i32);
                    let sent = known.array.write_async(buffer, &stream)?;
                    buffer = if chance.below(2) == 0 {
                        // Another thread may wait for it.
                        std::thread::scope(|scope| scope.spawn(|| sent.wait()).join()).expect("no panic")?
                    } else {
                        sent.wait()?
                    };
                    known.values.copy_from_slice(&buffer);
                }
                6 => {
                    let fresh = Pinned::zeros(&self.device, known.values.len())?;
                    buffer = known.array.read_async(fresh, &stream)?.wait()?;
                    assert_eq!(buffer[..], known.values, "read while the host went on");
                }
                7 => known.check("read back")?,
                8 => {
                    let mut copy = Array::zeros(&self.device, [known.values.len()])?;
                    copy.copy_from(&known.array)?;
                    known.array = copy;
                }
                9 => {
                    let by = 1 + chance.below(3) as i32;
                    // All write the same elements: no launch is lost.
                    let shared = Operand::Array(self.shared.dynamic());
                    advance.launch(&stream, &[shared, Operand::value(&by)])?;
                    self.advanced.fetch_add(self.added(by), Ordering::Relaxed);
                }
                10 => {
                    let number = chance.below(3) as usize;
                    let module = self.device.load(&self.others[number])?;
                    let other = module.kernel("other")?;
                    other
                        .launch_on(&stream, &[("x", krn_runtime::Argument::Array(known.array.dynamic()))])?;
                    let added = self.added(number as i32 + 1);
                    known.values.iter_mut().for_each(|value| *value += added);
                    // The module is dropped while its kernel may run.
                }
                11 => {
                    let by = chance.below(10) as i32;
                    advance.prepare(&[("n", known.values.len().into())])?;
                    let graph = own.capture(|captured| {
                        (0..3).try_for_each(|_| {
                            advance.launch(captured, &[known.operand(), Operand::value(&by)]).map(drop)
                        })
                    })?;
                    graph.launch(&own)?;
                    graph.launch(&stream)?;
                    known.values.iter_mut().for_each(|value| *value += self.added(6 * by));
                }
                _ => {
                    let mark = own.record()?;
                    self.stream.wait_for(&mark)?;
                    own = self.device.stream()?;
                    self.device.trim();
                    let mut exchange = self.exchange.lock().expect("nobody panicked");
                    exchange.push(known);
                    let other = chance.below(exchange.len() as u64) as usize;
                    known = exchange.swap_remove(other);
                    drop(exchange);
                    known.check("from another thread")?;
                }
            }
        }
        known.check("in the end")?;
        own.synchronize()
    }

    /// That nothing was lost of what all did.
    fn finish(self) {
        self.device.synchronize().expect("nothing failed");
        for known in self.exchange.into_inner().expect("nobody panicked") {
            known.check("left over").expect("copied");
        }
        let advanced = self.advanced.into_inner();
        let shared = self.shared.to_vec().expect("copied");
        assert!(shared.iter().all(|value| *value == advanced), "{advanced}: {shared:?}");
    }
}

fn stress(devices: &[Device], computes: bool) {
    let all: Vec<Common> = devices.iter().map(|device| Common::new(device.clone(), computes)).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let all = &all;
            scope.spawn(move || {
                // One device after the other, on the same thread; each starts with another.
                for number in 0..all.len() as u64 {
                    let common = &all[((number + thread) % all.len() as u64) as usize];
                    let seed = thread * 100 + number;
                    common.work(seed).unwrap_or_else(|error| panic!("thread {thread}: {error}"));
                }
            });
        }
    });
    all.into_iter().for_each(Common::finish);
}

#[test]
fn many_threads_do_everything_at_once() {
    stress(&[device()], true);
}

#[cfg(target_os = "linux")]
#[test]
fn many_threads_go_through_the_driver_at_once() {
    // On a GPU machine it is the GPU that is asked for, and the other driver did not come along.
    if std::env::var_os("KRN_DEVICE").is_some() {
        return;
    }
    fake::with_driver("stress::many_threads_go_through_the_driver_at_once", "devices=2", |_| {
        use krn_runtime::Selection;
        stress(&[0, 1].map(|number| Device::open_as(Selection::Cuda(number)).expect("the fake ones")), false);
    });
}

/// What goes from thread to thread, and what is shared: a change that takes this away does not compile.
#[test]
fn what_is_sent_and_shared() {
    fn both<T: Send + Sync>() {}
    both::<Device>();
    both::<Stream>();
    both::<Module>();
    both::<Launcher>();
    both::<Array<f32, 2>>();
    both::<Pinned<f32>>();
    both::<krn_runtime::DeviceArray>();
    both::<krn_runtime::Event>();
    both::<krn_runtime::Graph>();
    both::<krn_runtime::TypedModule>();
    both::<krn_runtime::Pending<Pinned<f32>>>();
    both::<krn_runtime::CopyError<Pinned<f32>>>();
    both::<krn_runtime::View<'_, f32, 1>>();
    both::<krn_runtime::ViewMut<'_, f32, 1>>();
    both::<krn_runtime::Error>();
}
