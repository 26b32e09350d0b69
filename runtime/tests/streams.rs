//! Streams and threads: what is asked for later sees what was asked for earlier. `KRN_DEVICE=cuda` runs the same on a
//! GPU.

use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::{Argument, Array, Device, Error, Module, Stream};
use std::time::Duration;

const KERNELS: &str = "
static calls: u32 = 0

kernel advance(x: inout i32[n]) { x[i] = x[i] + 1 }
kernel double(x: i32[n]) -> y: i32[n] { y[i] = 2 * x[i] }
kernel total(x: i32[n]) -> s: i32 { s = sum(i: x[i]) }
kernel pick(x: i32[n], at: i32[m]) -> y: i32[m] { y[i] = x[at[i]] }
kernel count(x: i32[n]) { calls += 1 }
";

fn device() -> Device {
    let name = std::env::var("KRN_DEVICE").unwrap_or_else(|_| "emulator".to_string());
    Device::open_as(name.parse().expect("a device's name")).expect("the device is there")
}

fn load(device: &Device) -> Module {
    let options = match device.capability() {
        Some(90..) => CompileOptions::for_target("sm_90"),
        _ => CompileOptions::default(),
    };
    let compiled = compile(&SourceFile::new("streams.krn", KERNELS), &options).expect("compiles");
    device.load(&compiled.compiled).expect("loads")
}

fn array(array: &Array<i32, 1>) -> Argument<'_> {
    Argument::Array(array.dynamic())
}

#[test]
fn streams_that_share_arrays_stay_in_order() {
    let device = device();
    let module = load(&device);
    let (advance, double) =
        (module.kernel("advance").expect("there"), module.kernel("double").expect("there"));
    let streams: Vec<Stream> = (0..3).map(|_| device.stream().expect("opens")).collect();
    let n = 1 << 16;
    let x = Array::<i32, 1>::zeros(&device, [n]).expect("small");
    let mut sums = Vec::new();
    for round in 0..30 {
        // Read after write, write after read and write after write, each from another stream.
        advance.launch_on(&streams[round % 3], &[("x", array(&x))]).expect("queued");
        let mut results = double.launch_on(&streams[(round + 1) % 3], &[("x", array(&x))]).expect("queued");
        sums.push(Array::<i32, 1>::from_dynamic(results.remove(0).1).expect("i32"));
    }
    for (round, y) in sums.iter().enumerate() {
        let values = y.to_vec().expect("copied behind the launches");
        assert!(values.iter().all(|value| *value == 2 * (round as i32 + 1)), "{round}: {}", values[0]);
    }
    assert_eq!(x.to_vec().expect("copied")[n - 1], 30);
}

#[test]
fn arrays_may_be_dropped_while_kernels_run() {
    let device = device();
    let module = load(&device);
    let advance = module.kernel("advance").expect("there");
    let total = module.kernel("total").expect("there");
    let streams: Vec<Stream> = (0..2).map(|_| device.stream().expect("opens")).collect();
    for round in 0..40usize {
        let ones = vec![1i32; 50_000 + round % 2];
        let x = Array::from_slice(&device, [ones.len()], &ones).expect("small");
        (0..3)
            .for_each(|_| drop(advance.launch_on(&streams[round % 2], &[("x", array(&x))]).expect("queued")));
        let mut results = total.launch_on(&streams[(round + 1) % 2], &[("x", array(&x))]).expect("queued");
        drop(x);
        // The next array may get the same memory; the sum is of the old one.
        let other = Array::from_slice(&device, [ones.len()], &vec![-7i32; ones.len()]).expect("small");
        let sum = Array::<i32, 0>::from_dynamic(results.remove(0).1).expect("i32").to_vec().expect("copied");
        assert_eq!(sum, [4 * ones.len() as i32]);
        assert_eq!(other.to_vec().expect("copied")[0], -7);
    }
    device.synchronize().expect("all went well");
    device.trim();
    assert_eq!(device.pooled_bytes(), 0);
}

#[test]
fn many_threads_launch_at_once() {
    let device = device();
    let module = load(&device);
    let (threads, rounds, n) = (8usize, 25usize, 3000usize);
    let shared = Array::<i32, 1>::zeros(&device, [n]).expect("small");
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (device, module, shared) = (&device, &module, &shared);
            scope.spawn(move || {
                let stream = device.stream().expect("opens");
                let (advance, total) =
                    (module.kernel("advance").expect("there"), module.kernel("total").expect("there"));
                let count = module.kernel("count").expect("there");
                let own = Array::from_slice(device, [n], &vec![thread as i32; n]).expect("small");
                for round in 0..rounds {
                    // All threads write `shared`, some on the default stream.
                    if (round + thread).is_multiple_of(7) {
                        advance.launch(&[("x", array(shared))]).expect("runs");
                    } else {
                        advance.launch_on(&stream, &[("x", array(shared))]).expect("queued");
                    }
                    advance.launch_on(&stream, &[("x", array(&own))]).expect("queued");
                    count.launch_on(&stream, &[("x", array(&own))]).expect("queued");
                    let mut sums = total.launch_on(&stream, &[("x", array(&own))]).expect("queued");
                    let sum = Array::<i32, 0>::from_dynamic(sums.remove(0).1).expect("i32");
                    let expected = (thread + round + 1) * n;
                    assert_eq!(sum.to_vec().expect("copied"), [expected as i32]);
                }
                stream.synchronize().expect("all went well");
            });
        }
    });
    let values = shared.to_vec().expect("copied");
    assert!(values.iter().all(|value| *value == (threads * rounds) as i32), "{}", values[0]);
    let calls = module.read_static("calls").expect("there");
    assert_eq!(calls.values::<u32>().expect("u32"), [(threads * rounds) as u32]);
}

#[test]
fn a_failing_check_is_told_when_the_stream_is_waited_for() {
    let device = device();
    let module = load(&device);
    let pick = module.kernel("pick").expect("there");
    let stream = device.stream().expect("opens");
    let x = Array::from_slice(&device, [4], &[1, 2, 3, 4]).expect("small");
    let (good, bad) = (
        Array::from_slice(&device, [2], &[3, 0]).expect("small"),
        Array::from_slice(&device, [2], &[1, 9]).expect("small"),
    );
    let launch = |at: &Array<i32, 1>| pick.launch_on(&stream, &[("x", array(&x)), ("at", array(at))]);
    launch(&good).expect("queued");
    stream.synchronize().expect("nothing is wrong");
    drop((launch(&bad).expect("queued"), launch(&good).expect("queued")));
    match stream.synchronize() {
        Err(Error::Bounds(failure)) => assert_eq!((failure.index, failure.extent), (9, 4)),
        other => panic!("{other:?}"),
    }
    stream.synchronize().expect("it was told once");
    let mut picked = launch(&good).expect("the device is as good as before");
    let y = Array::<i32, 1>::from_dynamic(picked.remove(0).1).expect("i32");
    assert_eq!(y.to_vec().expect("copied"), [4, 1]);
    // The same for a kernel that is bound once.
    let bound = pick.bind(&[("x", array(&x)), ("at", array(&bad))]).expect("fits");
    bound.launch_on(&stream).expect("queued");
    assert!(matches!(stream.synchronize(), Err(Error::Bounds(_))));
    bound.finish().expect("it was told once");
}

#[test]
fn devices_are_not_mixed() {
    let (here, there) = (device(), device());
    let module = load(&here);
    let advance = module.kernel("advance").expect("there");
    let x = Array::<i32, 1>::zeros(&there, [4]).expect("small");
    let wrong = |error: Error| matches!(error, Error::WrongDevice { .. });
    assert!(advance.launch(&[("x", array(&x))]).err().is_some_and(wrong));
    let x = Array::<i32, 1>::zeros(&here, [4]).expect("small");
    let stream = there.stream().expect("opens");
    assert!(advance.launch_on(&stream, &[("x", array(&x))]).err().is_some_and(wrong));
    let event = stream.record().expect("recorded");
    assert!(here.stream().expect("opens").wait_for(&event).err().is_some_and(wrong));
}

#[test]
fn events_tell_the_time_and_hold_streams() {
    let device = device();
    let module = load(&device);
    let advance = module.kernel("advance").expect("there");
    let (first, second) = (device.stream().expect("opens"), device.stream().expect("opens"));
    let x = Array::<i32, 1>::zeros(&device, [1 << 16]).expect("small");
    let start = first.record().expect("recorded");
    (0..10).for_each(|_| drop(advance.launch_on(&first, &[("x", array(&x))]).expect("queued")));
    let end = first.record().expect("recorded");
    second.wait_for(&end).expect("queued");
    let elapsed = end.elapsed_since(&start).expect("in this order");
    assert!(elapsed > Duration::ZERO, "{elapsed:?}");
    assert!(matches!(start.elapsed_since(&end), Err(Error::Stream(_))));
    assert!(end.is_done().expect("good"));
    second.synchronize().expect("nothing is wrong");
}

#[test]
fn a_device_has_so_many_streams() {
    let device = device();
    let streams: Vec<Stream> = (0..63).map(|_| device.stream().expect("opens")).collect();
    assert!(matches!(device.stream(), Err(Error::Stream(_))));
    drop(streams);
    device.stream().expect("there is room again");
}
