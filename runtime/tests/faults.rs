//! What a program hears when the driver fails, as each test says (`tests/driver`).

use crate::fake;
use crate::support::{compiled, compiled_for};
use krn_compiler::fat::{Fat, Image};
use krn_runtime::{Argument, Array, Device, Error, LossCause, LostDevice, Module, Pinned, Selection};
use std::path::Path;

const TEXT: &str = "
kernel axpy(alpha: f32, x: f32[n], y: inout f32[n]) { y[i] += alpha * x[i] }
kernel total(x: f32[n]) -> s: f32 { s = sum(i: x[i]) }
";

/// Runs `body` in a process whose driver is the fake one, with these settings.
fn with_driver(test: &str, settings: &str, body: fn(&Path)) {
    fake::with_driver(&format!("faults::{test}"), settings, body);
}

fn open() -> Device {
    Device::open_as(Selection::Cuda(0)).expect("the fake one")
}

fn load(device: &Device) -> Module {
    device.load(&compiled(TEXT, &[]).compiled).expect("it loads")
}

/// The device with the kernels on it.
fn loaded() -> (Device, Module) {
    let device = open();
    let module = load(&device);
    (device, module)
}

/// Has the driver assemble the code of a kernel.
fn prepare(module: &Module) -> Result<(), Error> {
    module.kernel("axpy")?.prepare(&[("n", 1000.into())])
}

fn lost<T>(result: Result<T, Error>) -> LostDevice {
    match result.map(|_| ()) {
        Err(Error::DeviceLost(lost)) => *lost,
        other => panic!("the device was to be lost: {other:?}"),
    }
}

fn text<T>(result: Result<T, Error>) -> String {
    result.map(|_| ()).expect_err("it was to fail").to_string()
}

/// How often the driver was called so.
fn calls(folder: &Path, call: &str) -> usize {
    let log = std::fs::read_to_string(folder.join("calls")).expect("the driver writes it");
    log.lines().filter(|line| *line == call).count()
}

#[test]
fn a_module_that_is_loaded_again_is_in_the_driver_once() {
    with_driver("a_module_that_is_loaded_again_is_in_the_driver_once", "", |folder| {
        let device = open();
        let load = || {
            let module = load(&device);
            prepare(&module).expect("it is assembled");
            module
        };
        let (first, second) = (load(), load());
        assert_eq!(calls(folder, "cuModuleLoadDataEx"), 1);
        drop(first);
        assert_eq!(calls(folder, "cuModuleUnload"), 0);
        drop(second);
        assert_eq!(calls(folder, "cuModuleUnload"), 1);
        load();
        assert_eq!(calls(folder, "cuModuleLoadDataEx"), 2);
    });
}

#[test]
fn the_driver_gets_code_when_it_is_needed_and_no_more_of_it() {
    with_driver("the_driver_gets_code_when_it_is_needed_and_no_more_of_it", "", |folder| {
        let (device, module) = loaded();
        let has = |kernel: &str| {
            let log = std::fs::read_to_string(folder.join("calls")).expect("the driver writes it");
            log.contains(&format!("  .entry {kernel}"))
        };
        assert_eq!(calls(folder, "cuModuleLoadDataEx"), 0, "nothing was launched yet");
        let x = Array::<f32, 1>::zeros(&device, [5]).expect("small");
        let total = module.kernel("total").expect("there");
        let launch = || total.launch(&[("x", Argument::Array(x.dynamic()))]).map(drop);
        launch().and_then(|()| launch()).expect("queued");
        assert_eq!(calls(folder, "cuModuleLoadDataEx"), 1);
        assert!(has("total") && !has("axpy"));
        prepare(&module).expect("it is assembled");
        assert_eq!(calls(folder, "cuModuleLoadDataEx"), 2);
        assert!(has("axpy"));
    });
}

#[test]
fn kernels_that_wait_for_those_before_them_are_started_early() {
    with_driver("kernels_that_wait_for_those_before_them_are_started_early", "", |folder| {
        let device = open();
        for (target, early) in [("sm_90", true), ("sm_80", false)] {
            let module = device.load(&compiled_for(TEXT, target, &[]).compiled).expect("it loads");
            let x = Array::<f32, 1>::zeros(&device, [5]).expect("small");
            let total = module.kernel("total").expect("there");
            total.launch(&[("x", Argument::Array(x.dynamic()))]).expect("queued");
            // The log tells which code was loaded, and how it was launched.
            assert_eq!(calls(folder, "  griddepcontrol.wait") > 0, early, "{target}");
            assert_eq!(calls(folder, "  starts early") > 0, early, "{target}");
            std::fs::remove_file(folder.join("calls")).expect("there");
        }
    });
}

/// The least that passes for machine code: a header, and no sections.
fn machine_code() -> Vec<u8> {
    let mut code = vec![0u8; 64];
    code[..6].copy_from_slice(b"\x7fELF\x02\x01");
    code
}

#[test]
fn machine_code_that_waits_is_started_early_too() {
    with_driver("machine_code_that_waits_is_started_early_too", "", |folder| {
        let device = open();
        for waits in [true, false] {
            let compiled = compiled(TEXT, &[]).compiled;
            let image = match waits {
                true => Image::assembled("sm_90", compiled, |_, _| Ok::<_, ()>(machine_code())),
                // As it was made before documents told.
                false => Ok(Image::new("sm_90", compiled, Some([machine_code(), vec![0]].concat()))),
            };
            // Without the source nothing is compiled for these sizes.
            let image = Image { source: None, ..image.expect("it never fails") };
            let document = Fat::new(vec![image]).to_json();
            let module = Module::from_fat(&device, &document).expect("it loads");
            let x = Array::<f32, 1>::zeros(&device, [5]).expect("small");
            let total = module.kernel("total").expect("there");
            total.launch(&[("x", Argument::Array(x.dynamic()))]).expect("queued");
            assert_eq!(calls(folder, "  griddepcontrol.wait"), 0, "no PTX was loaded");
            assert_eq!(calls(folder, "  starts early") > 0, waits);
            std::fs::remove_file(folder.join("calls")).expect("there");
        }
    });
}

#[test]
fn another_library_may_make_its_context_current_between_launches() {
    let settings = "stolen=2";
    with_driver("another_library_may_make_its_context_current_between_launches", settings, |folder| {
        let (device, module) = loaded();
        let axpy = module.kernel("axpy").expect("there");
        let alpha = krn_runtime::value(2.0f32);
        let [x, y] = [0, 1].map(|_| Array::<f32, 1>::zeros(&device, [5]).expect("small"));
        let given = [
            ("alpha", Argument::Value(&alpha)),
            ("x", Argument::Array(x.dynamic())),
            ("y", Argument::Array(y.dynamic())),
        ];
        let stream = device.stream().expect("opens");
        axpy.launch_on(&stream, &given).expect("the first");
        let entered = calls(folder, "cuCtxSetCurrent");
        for _ in 0..3 {
            axpy.launch_on(&stream, &given).expect("in its own context");
        }
        // Refused once and made again; for the others the context is left as it is.
        assert_eq!(calls(folder, "cuLaunchKernelEx"), 5);
        assert_eq!(calls(folder, "cuCtxSetCurrent"), entered + 1);
        stream.synchronize().expect("nothing ran wrong");
    });
}

#[test]
fn launches_on_two_devices_take_turns_in_their_contexts() {
    let settings = "devices=2";
    with_driver("launches_on_two_devices_take_turns_in_their_contexts", settings, |folder| {
        let devices = [0, 1].map(|number| Device::open_as(Selection::Cuda(number)).expect("the fake ones"));
        let modules = devices.each_ref().map(load);
        let streams = devices.each_ref().map(|device| device.stream().expect("opens"));
        let arrays = devices
            .each_ref()
            .map(|device| Array::<f32, 1>::from_slice(device, [2], &[1.0, 2.0]).expect("small"));
        let launch = |at: usize| {
            let total = modules[at].kernel("total").expect("there");
            total.launch_on(&streams[at], &[("x", Argument::Array(arrays[at].dynamic()))]).map(|_| ())
        };
        // The driver refuses a launch in the other device's context.
        for at in [0, 1, 0, 0, 1] {
            launch(at).expect("in its own context");
        }
        assert_eq!(calls(folder, "cuCtxGetCurrent"), 0, "none was refused");
        std::thread::scope(|scope| {
            scope.spawn(|| launch(1).expect("on a thread that was never there"));
        });
    });
}

#[test]
fn without_faults_the_fake_driver_is_a_device() {
    with_driver("without_faults_the_fake_driver_is_a_device", "", |_| {
        let device = Device::open().expect("a driver");
        assert_eq!((device.description().as_str(), device.notice()), ("Fake GPU (sm_90)", None));
        let module = load(&device);
        let x = Array::from_slice(&device, [3], &[1.0f32, 2.0, 3.0]).expect("small");
        module
            .kernel("total")
            .and_then(|total| total.launch(&[("x", Argument::Array(x.dynamic()))]))
            .expect("queued");
        assert_eq!(x.to_vec().expect("there"), [1.0, 2.0, 3.0]);
        let buffer = Pinned::from_slice(&device, &[5.0f32; 3]).expect("small");
        let (mut x, stream) = (x, device.stream().expect("opens"));
        let buffer = x.write_async(buffer, &stream).and_then(|sent| sent.wait()).expect("done");
        assert_eq!((buffer[0], x.to_vec().expect("there")), (5.0, vec![5.0; 3]));
        device.synchronize().expect("nothing failed");
    });
}

#[test]
fn no_driver_means_the_emulator_or_an_error() {
    fn body(_: &Path) {
        let device = Device::open().expect("the emulator");
        assert!(
            device.is_emulator() && device.notice().is_some_and(|notice| notice.contains("no CUDA driver"))
        );
        assert!(matches!(Device::open_as(Selection::Cuda(0)), Err(Error::NoDevice(_))));
    }
    // What stands in the driver's place is no library.
    let change = |_| b"no library".to_vec();
    fake::with_library("faults::no_driver_means_the_emulator_or_an_error", "", change, body);
}

#[test]
fn a_driver_without_devices_says_so() {
    with_driver("a_driver_without_devices_says_so", "devices=0", |_| {
        let error = text(Device::open_as(Selection::Cuda(0)));
        assert_eq!(error, "there is no CUDA device 0; the driver has 0");
        let device = Device::open().expect("the emulator");
        assert!(device.notice().is_some_and(|notice| notice.contains(&error)));
    });
}

#[test]
fn buffers_of_copies_that_the_driver_refuses_come_back() {
    let settings = "cuMemcpyHtoDAsync_v2=1@1,cuEventRecord=1@2,cuMemcpyDtoHAsync_v2=1@1";
    with_driver("buffers_of_copies_that_the_driver_refuses_come_back", settings, |_| {
        let device = open();
        let stream = device.stream().expect("opens");
        let mut x = Array::<f32, 1>::zeros(&device, [3]).expect("small");
        let mut buffer = Pinned::from_slice(&device, &[5.0f32; 3]).expect("small");
        for call in ["cuMemcpyHtoDAsync of 12 bytes", "cuEventRecord"] {
            let refused = x.write_async(buffer, &stream).map(|_| ()).expect_err("it was to fail");
            assert!(refused.to_string().contains(call), "{refused}");
            buffer = refused.buffer;
            assert_eq!(buffer[..], [5.0; 3]);
        }
        let buffer = x.write_async(buffer, &stream).and_then(|sent| sent.wait()).expect("the third time");
        let refused = x.read_async(buffer, &stream).map(|_| ()).expect_err("it was to fail");
        let buffer = x.read_async(refused.buffer, &stream).and_then(|sent| sent.wait()).expect("again");
        assert_eq!(buffer[..], [5.0; 3]);
        // Nothing was lost on the way: all is one block.
        drop(buffer);
        assert_eq!(device.pooled_bytes(), 512);
    });
}

/// Takes one of the driver's calls away.
fn without_a_call(mut bytes: Vec<u8>) -> Vec<u8> {
    let name = b"\0cuGraphAddKernelNode_v2\0";
    let places: Vec<usize> = bytes
        .windows(name.len())
        .enumerate()
        .filter(|(_, window)| window == name)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at + 1] = b'x');
    bytes
}

#[test]
fn a_driver_that_lacks_calls_is_too_old() {
    fake::with_library("faults::a_driver_that_lacks_calls_is_too_old", "", without_a_call, |_| {
        let error = text(Device::open_as(Selection::Cuda(0)));
        assert!(
            error.contains("too old: CUDA 12.0 is needed") && error.contains("`cuGraphAddKernelNode_v2`"),
            "{error}"
        );
    });
}

/// The fake driver has no conditional nodes.
#[test]
fn a_driver_without_conditional_nodes_captures_no_loop() {
    with_driver("a_driver_without_conditional_nodes_captures_no_loop", "", |_| {
        let repeated = "kernel k(x: inout f32[n]) { while max(i: x[i]) > 1.0 { x[i] = 0.5 * x[i] } }";
        let device = open();
        let module = device.load(&compiled(repeated, &[]).compiled).expect("it loads");
        let kernel = module.kernel("k").expect("there");
        let x = Array::<f32, 1>::zeros(&device, [5]).expect("small");
        let arguments = [("x", Argument::Array(x.dynamic()))];
        kernel.prepare(&[("n", 5.into())]).expect("it compiles");
        let stream = device.stream().expect("opens");
        let error = text(stream.capture(|captured| kernel.launch_on(captured, &arguments).map(drop)));
        assert!(error.contains("has a `while` at kernel level, which cannot be captured"), "{error}");
        assert!(error.contains("has no `cuGraphAddNode_v2`: CUDA 12.3 has it"), "{error}");
    });
}

#[test]
fn a_driver_too_old_for_the_ptx_says_both_versions() {
    let settings = "version=11060,cuModuleLoadDataEx=222@1,cuModuleLoadDataEx=218@2,cuModuleLoadDataEx=2@3";
    with_driver("a_driver_too_old_for_the_ptx_says_both_versions", settings, |_| {
        let device = open();
        let compiled = compiled(TEXT, &[]).compiled;
        for _ in 0..2 {
            let error =
                prepare(&device.load(&compiled).expect("nothing is assembled yet")).expect_err("too new");
            assert!(matches!(error, Error::DriverTooOld { .. }), "{error}");
            assert_eq!(
                error.to_string(),
                "the CUDA driver is too old: PTX 7.8 (CUDA 11.8) is needed, but it is CUDA 11.6, which takes PTX up to 7.6; \
                 update the driver, or compile for an older target"
            );
        }
        let module = device.load(&compiled).expect("nothing is assembled yet");
        let error = text(prepare(&module));
        assert!(
            error.contains("CUDA_ERROR_OUT_OF_MEMORY") && error.contains("bytes of device memory are free"),
            "{error}"
        );
        prepare(&module).expect("the device is as good as before");
    });
}

#[test]
fn code_for_another_device_says_both_devices() {
    let settings = "version=12080,capability=80,cuModuleLoadDataEx=209";
    with_driver("code_for_another_device_says_both_devices", settings, |_| {
        let device = open();
        let error = text(prepare(&load(&device)));
        assert!(error.contains("for sm_90") && error.contains("the device is Fake GPU (sm_80)"), "{error}");
        assert!(error.contains("CUDA 12.8, which takes PTX up to 8.7"), "{error}");
    });
}

#[test]
fn out_of_memory_says_what_was_asked_and_is_free() {
    with_driver("out_of_memory_says_what_was_asked_and_is_free", "memory=1048576", |_| {
        let device = open();
        let small = Array::<u8, 1>::zeros(&device, [524_288]).expect("half of it");
        let Err(Error::OutOfMemory { asked, free, .. }) =
            Array::<u8, 1>::zeros(&device, [600_000]).map(|_| ())
        else {
            panic!("there is no room");
        };
        assert_eq!((asked, free), (600_000, Some(524_288)));
        drop(small);
        // What the pool holds is given back before memory is said to be out.
        assert_eq!(device.pooled_bytes(), 524_288);
        Array::<u8, 1>::zeros(&device, [1_000_000]).expect("all of it");
        let error = text(Array::<u8, 1>::zeros(&device, [2_000_000]));
        assert!(error.contains("2000000 bytes asked for `array`, 1048576 are free"), "{error}");
    });
}

#[test]
fn a_refused_launch_says_which_and_leaves_the_device_usable() {
    with_driver("a_refused_launch_says_which_and_leaves_the_device_usable", "cuLaunchKernelEx=701@2", |_| {
        let (device, alpha) = (open(), krn_runtime::value(2.0f32));
        let module = load(&device);
        let axpy = module.kernel("axpy").expect("there");
        let x = Array::<f32, 1>::zeros(&device, [1000]).expect("small");
        let y = Array::<f32, 1>::zeros(&device, [1000]).expect("small");
        let given = [
            ("alpha", Argument::Value(&alpha)),
            ("x", Argument::Array(x.dynamic())),
            ("y", Argument::Array(y.dynamic())),
        ];
        let stream = device.stream().expect("opens");
        axpy.launch_on(&stream, &given).expect("the first");
        let error = text(axpy.launch_on(&stream, &given));
        let wanted = "CUDA: cuLaunchKernelEx of kernel `axpy` with (alpha: f32, x: f32[1000], y: f32[1000]): entry `axpy`, grid ";
        assert!(error.starts_with(wanted), "{error}");
        for part in [
            "threads, 0 bytes of dynamic shared memory, on stream 1, failed: too many",
            "(CUDA_ERROR_LAUNCH_OUT_OF_",
        ] {
            assert!(error.contains(part), "{error}");
        }
        axpy.launch_on(&stream, &given).expect("the third");
        stream.synchronize().expect("nothing ran wrong");
    });
}

#[test]
fn a_device_lost_in_the_middle_names_what_ran_and_stays_lost() {
    let settings = "cuStreamSynchronize=700@2";
    with_driver("a_device_lost_in_the_middle_names_what_ran_and_stays_lost", settings, |_| {
        let (device, module) = loaded();
        let total = module.kernel("total").expect("there");
        let x = Array::<f32, 1>::zeros(&device, [77]).expect("small");
        let streams = [device.stream().expect("opens"), device.stream().expect("opens")];
        let launch = |stream| total.launch_on(stream, &[("x", Argument::Array(x.dynamic()))]);
        launch(&streams[0]).expect("queued");
        streams[0].synchronize().expect("the first time");
        for _ in 0..3 {
            launch(&streams[1]).expect("queued");
        }
        let first = lost(streams[1].synchronize());
        assert_eq!((first.cause, first.device.as_str()), (LossCause::Kernel, "Fake GPU (sm_90)"));
        assert_eq!(first.call, "cuStreamSynchronize on stream 2");
        assert!(first.message.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{first}");
        // What was waited for on the first stream is not among them.
        assert_eq!(first.in_flight.len(), 1, "{first}");
        let wanted = "on stream 2, 3 times: kernel `total` with (x: f32[77], s: f32): entry `total";
        assert!(first.in_flight[0].starts_with(wanted), "{first}");
        assert!(first.to_string().contains("only a new process"), "{first}");
        // Everything else says the same.
        assert_eq!(lost(x.to_vec()), first);
        assert_eq!(lost(launch(&streams[0])), first);
        assert_eq!(lost(Array::<f32, 1>::zeros(&device, [1 << 20])), first);
        assert_eq!(lost(device.synchronize()), first);
        assert_eq!(lost(device.stream()), first);
        assert_eq!(lost(streams[0].record()), first);
        // Opened again it is no better, and says so at the first use.
        let again =
            Device::open_as(Selection::Cuda(0)).and_then(|device| Array::<u8, 1>::zeros(&device, [1]));
        assert_eq!(lost(again).cause, LossCause::Kernel);
    });
}

#[test]
fn a_fault_that_an_event_or_a_copy_tells_names_the_launches() {
    let settings = "cuEventSynchronize=719@1";
    with_driver("a_fault_that_an_event_or_a_copy_tells_names_the_launches", settings, |_| {
        let (device, module) = loaded();
        let total = module.kernel("total").expect("there");
        let x = Array::<f32, 1>::zeros(&device, [5]).expect("small");
        let stream = device.stream().expect("opens");
        total.launch_on(&stream, &[("x", Argument::Array(x.dynamic()))]).expect("queued");
        let mark = stream.record().expect("queued");
        let lost = lost(mark.synchronize());
        assert_eq!(lost.call, "cuEventSynchronize on stream 1");
        assert!(lost.in_flight.iter().any(|line| line.contains("kernel `total`")), "{lost}");
    });
}

#[test]
fn a_failed_copy_that_leaves_the_device_good_names_the_launches_too() {
    let settings = "cuMemcpyDtoH_v2=1@1";
    with_driver("a_failed_copy_that_leaves_the_device_good_names_the_launches_too", settings, |_| {
        let (device, module) = loaded();
        let x = Array::<f32, 1>::zeros(&device, [5]).expect("small");
        let total = module.kernel("total").expect("there");
        let bound = total.bind(&[("x", Argument::Array(x.dynamic()))]).expect("fits");
        bound.launch().expect("queued");
        let error = text(x.to_vec());
        assert!(
            error.starts_with("CUDA: cuMemcpyDtoH of 20 bytes on the default stream failed: invalid"),
            "{error}"
        );
        assert!(
            error.contains("\n    on the default stream: kernel `total` with (x: f32[5], s: f32): "),
            "{error}"
        );
        x.to_vec().expect("the second time");
    });
}

#[test]
fn faults_of_the_hardware_and_the_system_are_told_apart() {
    let settings = "cuCtxSynchronize=214@1";
    with_driver("faults_of_the_hardware_and_the_system_are_told_apart", settings, |_| {
        let lost = lost(open().synchronize());
        assert_eq!((lost.cause, lost.in_flight.len()), (LossCause::Hardware, 0));
        assert!(lost.to_string().contains("nvidia-smi"), "{lost}");
    });
}
