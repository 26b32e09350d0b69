//! Beside other libraries: kernels on memory and streams that are not ours, and others on ours. The other library is the
//! driver itself, called by hand, with `KRN_DEVICE=cuda`; on the emulator, where nobody else is, arrays stand for its
//! memory.

mod theirs;

use crate::support::{device, load_slow};
use krn_runtime::{Argument, Array, Device, DeviceArray, Error, Layout, Module, Stream, View, ViewMut};
use std::ptr::null_mut;
use theirs::Theirs;

const KERNELS: &str = "
struct Point { x: f32, y: f32 }

// Takes its time, so that what does not wait for it comes too early.
kernel advance(x: inout i32[n]) {
    forall i in n {
        var busy = x[i]
        for _ in 0..ROUNDS { busy = 1664525 * busy + 1013904223 }
        x[i] = if busy == 7 { x[i] + 2 } else { x[i] + 1 }
    }
}
kernel double(x: i32[n]) -> y: i32[n] { y[i] = 2 * x[i] }
kernel sum(p: Point[n]) -> s: f32[n] { s[i] = p[i].x + p[i].y }
schedule sum { layout p: soa }
";

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, krn_runtime::KrnStruct)]
struct Point {
    x: f32,
    y: f32,
}

fn load(device: &Device) -> Module {
    load_slow(device, "interop.krn", KERNELS)
}

fn launch(
    module: &Module,
    stream: &Stream,
    kernel: &str,
    arguments: &[(&str, &DeviceArray)],
) -> Vec<DeviceArray> {
    let arguments: Vec<_> = arguments.iter().map(|(name, array)| (*name, Argument::Array(array))).collect();
    let kernel = module.kernel(kernel).expect("there");
    let results = kernel.launch_on(stream, &arguments).expect("queued");
    results.into_iter().map(|(_, array)| array).collect()
}

fn bytes(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn text<T>(result: krn_runtime::Result<T>) -> String {
    result.map(|_| ()).expect_err("it must not go through").to_string()
}

#[test]
fn kernels_run_on_memory_that_is_not_ours() {
    let device = device();
    let (module, theirs) = (load(&device), Theirs::new(&device));
    let n = 1000;
    let values: Vec<i32> = (0..n as i32).collect();
    let (from, to) = (theirs.allocate(4 * n), theirs.allocate(4 * n));
    theirs.write(from, &bytes(&values));
    {
        // SAFETY: memory of so many bytes that is freed below, and that only these arrays use.
        let x: ViewMut<'_, i32, 1> = unsafe { ViewMut::from_raw(&device, from, [n]) }.expect("theirs");
        // SAFETY: as above.
        let y: ViewMut<'_, i32, 1> = unsafe { ViewMut::from_raw(&device, to, [n]) }.expect("theirs");
        assert_eq!(x.pointers().collect::<Vec<_>>(), [from]);
        let stream = device.stream().expect("opens");
        launch(&module, &stream, "advance", &[("x", x.dynamic())]);
        launch(&module, &stream, "double", &[("x", x.dynamic()), ("y", y.dynamic())]);
        assert_eq!(y.to_vec().expect("copied")[n - 1], 2 * n as i32);
        stream.synchronize().expect("done");
    }
    // The arrays are gone, their memory is not.
    let expected: Vec<i32> = values.iter().map(|value| 2 * (value + 1)).collect();
    assert_eq!(theirs.read(to, 4 * n), bytes(&expected));
    theirs.free(from);
    theirs.free(to);
}

#[test]
fn structs_are_borrowed_field_by_field() {
    let device = device();
    let (module, theirs) = (load(&device), Theirs::new(&device));
    let fields = [theirs.allocate(4 * 3), theirs.allocate(4 * 3)];
    for (pointer, start) in fields.iter().zip([1.0f32, 10.0]) {
        let values = [start, 2.0 * start, 3.0 * start];
        theirs.write(*pointer, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
    }
    // SAFETY: memory of so many bytes that is freed below.
    let points: View<'_, Point, 1> =
        unsafe { View::from_raw_layout(&device, Layout::Soa, &fields, [3]) }.expect("theirs");
    assert_eq!(points.to_vec().expect("copied")[1], Point { x: 2.0, y: 20.0 });
    let stream = device.stream().expect("opens");
    let sums = launch(&module, &stream, "sum", &[("p", points.dynamic())]).remove(0);
    assert_eq!(
        Array::<f32, 1>::from_dynamic(sums).and_then(|s| s.to_vec()).expect("f32"),
        [11.0, 22.0, 33.0]
    );
    // SAFETY: nothing is made of it.
    let one: krn_runtime::Result<View<'_, Point, 1>> =
        unsafe { View::from_raw_layout(&device, Layout::Soa, &fields[..1], [3]) };
    let one = text(one);
    assert_eq!(one, "the list of addresses of an array of `Point` (Soa) has 2 elements, but 1 were given");
    drop(points);
    fields.into_iter().for_each(|pointer| theirs.free(pointer));
}

#[test]
fn addresses_that_kernels_cannot_use_are_refused() {
    let device = device();
    let theirs = Theirs::new(&device);
    let pointer = theirs.allocate(64);
    // SAFETY: they are refused, and nothing is launched on the one that is not.
    let view = |pointer, n| unsafe { View::<u8, 1>::from_raw(&device, pointer, [n]) };
    assert_eq!(
        text(view(pointer + 4, 8)),
        format!("address {:#x} is no multiple of 16 bytes, as kernels need it", pointer + 4)
    );
    let host = Box::new([0u128; 4]);
    let error = view(host.as_ptr().addr() as u64, 64);
    assert!(matches!(error, Err(Error::RawPointer(_))), "{:?}", error.err());
    assert!(matches!(view(pointer, 1 << 50), Err(Error::RawPointer(_))));
    assert!(matches!(view(0, 1), Err(Error::RawPointer(_))));
    assert!(view(0, 0).expect("nothing is nowhere").is_empty());
    assert!(view(pointer, 61).is_ok());
    theirs.free(pointer);
}

#[test]
fn launches_go_on_streams_that_are_not_ours() {
    let device = device();
    let (module, theirs) = (load(&device), Theirs::new(&device));
    let n = 1 << 16;
    let x = Array::<i32, 1>::zeros(&device, [n]).expect("small");
    let ours = device.stream().expect("opens");
    for round in 0..10 {
        let raw = theirs.open_stream();
        // SAFETY: closed below, when this stream and its clone are gone.
        let stream = unsafe { Stream::from_raw(&device, raw) }.expect("theirs");
        if !device.is_emulator() {
            assert_eq!(stream.clone().raw().expect("borrowed"), raw);
        }
        launch(&module, &ours, "advance", &[("x", x.dynamic())]);
        launch(&module, &stream, "advance", &[("x", x.dynamic())]);
        drop(stream);
        // What is queued there still runs; what comes after it must wait all the same.
        theirs.close_stream(raw);
        let y = launch(&module, &ours, "double", &[("x", x.dynamic())]).remove(0);
        let y = Array::<i32, 1>::from_dynamic(y).and_then(|y| y.to_vec()).expect("i32");
        assert!(y.iter().all(|value| *value == 4 * (round + 1)), "{round}: {}", y[0]);
    }
    // The number that stood for their streams is one of ours again.
    let streams: Vec<Stream> = (0..4).map(|_| device.stream().expect("opens")).collect();
    streams.iter().for_each(|stream| drop(launch(&module, stream, "advance", &[("x", x.dynamic())])));
    assert_eq!(x.to_vec().expect("copied")[n - 1], 24);
}

#[test]
fn others_work_on_our_arrays_in_order() {
    let device = device();
    let (module, theirs) = (load(&device), Theirs::new(&device));
    let n = 1 << 16;
    let x = Array::<i32, 1>::zeros(&device, [n]).expect("small");
    let mut y = Array::<i32, 1>::zeros(&device, [n]).expect("small");
    let streams: Vec<Stream> = (0..3).map(|_| device.stream().expect("opens")).collect();
    for round in 1..=10 {
        launch(&module, &streams[0], "advance", &[("x", x.dynamic())]);
        let [from, to] = [&x, &y].map(|array| array.pointers().next().expect("one"));
        let raw = if device.is_emulator() { null_mut() } else { streams[1].raw().expect("ours") };
        let copy = || theirs.queue_copy(raw, to, from, 4 * n);
        assert_eq!(
            streams[1].foreign().reads(&x).writes(&mut y).queue(copy).map_err(|e| e.to_string()),
            Ok(())
        );
        let z = launch(&module, &streams[2], "double", &[("x", y.dynamic())]).remove(0);
        let z = Array::<i32, 1>::from_dynamic(z).and_then(|z| z.to_vec()).expect("i32");
        assert!(z.iter().all(|value| *value == 2 * round), "{round}: {}", z[0]);
    }
    let other = self::device();
    let elsewhere = Array::<i32, 1>::zeros(&other, [n]).expect("small");
    let wrong = streams[0].foreign().reads(&elsewhere).queue(|| panic!("it must not be called"));
    assert!(matches!(wrong, Err(Error::WrongDevice { .. })));
}

#[test]
fn streams_that_cannot_be_borrowed_are_refused() {
    let device = device();
    // SAFETY: the default stream is always there, by both names.
    for name in [null_mut(), std::ptr::without_provenance_mut(1)] {
        let stream = unsafe { Stream::from_raw(&device, name) }.expect("the default stream");
        assert!(stream.raw().expect("it has a handle").is_null());
        stream.synchronize().expect("done");
    }
    // SAFETY: it is refused before the driver sees it.
    let own = unsafe { Stream::from_raw(&device, std::ptr::without_provenance_mut(2)) };
    assert!(matches!(own, Err(Error::Stream(_))));
    // Refused streams take no numbers.
    let streams: Vec<Stream> = (0..63).map(|_| device.stream().expect("opens")).collect();
    assert!(device.stream().is_err());
    if device.is_emulator() {
        assert_eq!(text(streams[0].raw()), "streams of the emulator are none of the CUDA driver's");
    }
}
