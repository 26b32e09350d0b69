//! Streams and threads: what is asked for later sees what was asked for earlier. `KRN_DEVICE=cuda` runs the same on a
//! GPU.

use crate::support::{device, load_slow};
use krn_runtime::{Argument, Array, Device, Error, Memory, Module, Pinned, Place, Stream};
use std::time::Duration;

const KERNELS: &str = "
static calls: u32 = 0

// Takes its time, so that what does not wait for it comes too early.
kernel advance(x: inout i32[n]) {
    forall i in n {
        var busy = x[i]
        for _ in 0..ROUNDS { busy = 1664525 * busy + 1013904223 }
        x[i] = if busy == 7 { x[i] + 2 } else { x[i] + 1 }
    }
}
kernel double(x: i32[n]) -> y: i32[n] { y[i] = 2 * x[i] }
kernel total(x: i32[n]) -> s: i32 { s = sum(i: x[i]) }
kernel pick(x: i32[n], at: i32[m]) -> y: i32[m] { y[i] = x[at[i]] }
kernel count(x: i32[n]) { calls += 1 }
";

fn load(device: &Device) -> Module {
    load_slow(device, "streams.krn", KERNELS)
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
fn a_graph_does_what_its_launches_do() {
    let device = device();
    let module = load(&device);
    let (advance, double) =
        (module.kernel("advance").expect("there"), module.kernel("double").expect("there"));
    let total = module.kernel("total").expect("there");
    let (stream, other) = (device.stream().expect("opens"), device.stream().expect("opens"));
    let n = 100_000;
    let x = Array::<i32, 1>::zeros(&device, [n]).expect("small");
    let y = Array::<i32, 1>::zeros(&device, [n]).expect("small");
    let mut sums = Vec::new();
    for kernel in [advance, double, total] {
        kernel.prepare(&[("n", n.into())]).expect("its code is good");
    }
    let graph = stream.capture(|captured| {
        for _ in 0..5 {
            advance.launch_on(captured, &[("x", array(&x))])?;
            double.launch_on(captured, &[("x", array(&x)), ("y", array(&y))])?;
            advance.launch_on(captured, &[("x", array(&y))])?;
            sums.extend(total.launch_on(captured, &[("x", array(&y))])?);
        }
        Ok(())
    });
    let graph = graph.expect("captured");
    assert_eq!(x.to_vec().expect("copied")[0], 0, "nothing ran");
    for round in 0..4 {
        // Graphs, launches and copies on other streams stay in order.
        graph.launch(if round % 2 == 0 { &stream } else { &other }).expect("queued");
        advance.launch_on(&other, &[("x", array(&x))]).expect("queued");
    }
    assert_eq!(x.to_vec().expect("copied"), vec![24; n]);
    assert_eq!(y.to_vec().expect("copied"), vec![47; n]);
    let sums: Vec<i32> = sums
        .into_iter()
        .map(|(_, sum)| Array::<i32, 0>::from_dynamic(sum).expect("i32").to_vec().expect("copied")[0])
        .collect();
    assert_eq!(sums, [39, 41, 43, 45, 47].map(|each| each * n as i32));
}

#[test]
fn copies_slices_and_kernels_stay_in_order() {
    let device = device();
    let module = load(&device);
    let advance = module.kernel("advance").expect("there");
    let streams: Vec<Stream> = (0..2).map(|_| device.stream().expect("opens")).collect();
    let n = 1 << 18;
    for memory in [Memory::Device, Memory::Mapped, Memory::Managed] {
        let mut x = Array::<i32, 1>::zeros_in(&device, memory, [n]).expect("small");
        let mut buffer = Pinned::<i32>::zeros(&device, n).expect("small");
        for round in 0..6usize {
            buffer.fill(round as i32 * 100);
            let sent = x.write_async(buffer, &streams[round % 2]).expect("queued");
            advance.launch_on(&streams[(round + 1) % 2], &[("x", array(&x))]).expect("queued");
            if memory == Memory::Managed {
                x.prefetch(Place::Host, &streams[round % 2]).expect("queued");
            }
            if memory != Memory::Device {
                assert!(x.as_slice().expect("shared").iter().all(|value| *value == round as i32 * 100 + 1));
                x.host_mut().expect("shared")[n - 1] = -5;
            }
            let received = x.read_async(Pinned::zeros(&device, n).expect("small"), &streams[round % 2]);
            let received = received.and_then(|received| received.wait()).expect("copied");
            assert_eq!(received[0], round as i32 * 100 + 1);
            assert_eq!(received[n - 1] == -5, memory != Memory::Device);
            buffer = sent.wait().expect("copied");
        }
    }
}

#[test]
fn parts_are_used_apart_and_the_whole_comes_after_all() {
    let device = device();
    let module = load(&device);
    let (advance, total) = (module.kernel("advance").expect("there"), module.kernel("total").expect("there"));
    let streams: Vec<Stream> = (0..4).map(|_| device.stream().expect("opens")).collect();
    let n = 1 << 18;
    let mut x = Array::<i32, 1>::zeros(&device, [n]).expect("small");
    for round in 1..6 {
        let mut sent = Vec::new();
        for (at, mut part) in x.chunks_mut(n / 8).expect("aligned").into_iter().enumerate() {
            let stream = &streams[(at + round) % 4];
            let buffer = Pinned::from_slice(&device, &vec![round as i32; n / 8]).expect("small");
            sent.push(part.write_async(buffer, stream).expect("queued"));
            advance.launch_on(stream, &[("x", array(&part))]).expect("queued");
        }
        // The whole, on one stream: after the work on all parts.
        advance.launch_on(&streams[0], &[("x", array(&x))]).expect("queued");
        let mut sum = total.launch_on(&streams[1], &[("x", array(&x))]).expect("queued");
        let sum = Array::<i32, 0>::from_dynamic(sum.remove(0).1).expect("i32");
        assert_eq!(sum.to_vec().expect("copied"), [(round + 2) as i32 * n as i32]);
        sent.into_iter().for_each(|sent| drop(sent.wait().expect("copied")));
    }
    // A graph uses an array as a whole, also where it was captured with parts.
    let stream = &streams[0];
    let graph = {
        let parts = x.chunks_mut(n / 2).expect("aligned");
        let graph = stream.capture(|captured| {
            parts.iter().try_for_each(|part| advance.launch_on(captured, &[("x", array(part))]).map(drop))
        });
        let graph = graph.expect("captured");
        assert!(matches!(graph.launch(stream), Err(Error::HostAccess(_))), "the parts are in use");
        graph
    };
    graph.launch(stream).expect("queued");
    assert_eq!(x.to_vec().expect("copied"), vec![8; n]);
}

#[test]
fn arrays_go_from_device_to_device() {
    let here = device();
    let there = match std::env::var("KRN_SECOND_DEVICE") {
        Ok(name) => Device::open_as(name.parse().expect("a device's name")).expect("it is there"),
        Err(_) => device(),
    };
    let (near, far) = (load(&here), load(&there));
    let x = Array::from_slice(&here, [1000], &[3i32; 1000]).expect("small");
    let mut y = Array::<i32, 1>::zeros(&there, [1000]).expect("small");
    near.kernel("advance").expect("there").launch(&[("x", array(&x))]).expect("runs");
    y.copy_from(&x).expect("copied");
    let stream = there.stream().expect("opens");
    far.kernel("advance").expect("there").launch_on(&stream, &[("x", array(&y))]).expect("queued");
    let mut back = Array::<i32, 1>::zeros(&here, [1000]).expect("small");
    back.copy_from(&y).expect("copied behind the launch");
    assert_eq!(back.to_vec().expect("copied"), [5; 1000]);
}

#[test]
fn out_of_memory_says_what_was_asked_and_what_is_free() {
    let device = device();
    // The emulator's memory is the host's.
    let free = device.memory_info().expect("asked").map(|(free, _)| free);
    let ask = free.map_or(1 << 45, |free| free as usize);
    // What the pool has is given back before anything fails.
    let part = free.map_or(1 << 20, |free| free as usize / 8 * 5);
    drop(Array::<u8, 1>::zeros(&device, [part]).expect("there is room"));
    let kept = Array::<u8, 1>::zeros(&device, [part / 5 * 6]).expect("there is room again");
    match Array::<u8, 1>::zeros(&device, [ask]) {
        Err(Error::OutOfMemory { asked, free: left, .. }) => {
            assert!(asked >= ask as u64);
            assert_eq!(left.is_some(), free.is_some());
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("{ask} bytes were given"),
    }
    drop(kept);
    Array::<u8, 1>::zeros(&device, [1 << 20]).expect("the device is as good as before");
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
