//! What a warp accesses, as the emulator saw it.

use crate::support::compiled;
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_runtime::emulator::Kind;
use krn_runtime::profile::TracedLaunch;
use krn_runtime::{Argument, Device, Selection};

fn floats(shape: &[u64]) -> HostArray {
    let count = shape.iter().product::<u64>() as usize;
    HostArray { element: ElementType::scalar(Scalar::F32), shape: shape.to_vec(), bytes: vec![0; 4 * count] }
}

/// Traces the kernel `k` of a text, with arrays of zeros.
fn trace(text: &str, arrays: &[(&str, &[u64])]) -> Vec<TracedLaunch> {
    let compilation = compiled(text, &[]);
    let device = Device::open_as(Selection::Emulator).expect("the emulator");
    let module = device.load(&compilation.compiled).expect("it loads");
    let kernel = module.kernel("k").expect("the kernel");
    let uploaded: Vec<_> = arrays
        .iter()
        .map(|(name, shape)| {
            let layout = kernel.layout(name).expect("an array");
            (*name, device.upload(&floats(shape), layout).expect("it is uploaded"))
        })
        .collect();
    let arguments: Vec<_> = uploaded.iter().map(|(name, array)| (*name, Argument::Array(array))).collect();
    kernel.bind(&arguments).expect("it binds").trace().expect("it runs").expect("the emulator traces")
}

#[test]
fn a_full_warp_is_seen_with_the_names_of_its_arrays() {
    let text = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] + 1.0 }\n";
    let launches = trace(text, &[("x", &[1001])]);
    let accesses = &launches[0].accesses;
    let of = |kind: Kind, name: &str| {
        let named = |access: &&krn_runtime::emulator::TracedAccess| {
            access.kind == kind && access.allocation.as_ref().is_some_and(|(known, _)| known == name)
        };
        accesses.iter().find(named).expect("it is there")
    };
    for access in [of(Kind::GlobalLoad, "x"), of(Kind::GlobalStore, "y")] {
        let base = access.allocation.as_ref().expect("global memory").1;
        assert_eq!((access.mask, access.block, access.shared), (u32::MAX, [0, 0, 0], false));
        assert_eq!(access.location.as_ref().expect("a line").line, 1);
        let bytes = u64::from(access.lane_bytes);
        assert!(access.lanes().all(|(lane, address)| address == base + lane as u64 * bytes), "{access:?}");
        let touched = access.touched();
        assert_eq!(u64::from(touched.sectors) * 32, 32 * bytes);
    }
    assert!(of(Kind::GlobalLoad, "x").is_load);
    assert_eq!(trace(text, &[("x", &[1001])]), launches, "two runs differ");
}

#[test]
fn copies_have_a_source_and_a_target() {
    let text =
        "kernel k(a: f32[m, q], b: f32[q, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }\n";
    let launches = trace(text, &[("a", &[64, 64]), ("b", &[64, 64])]);
    let copies: Vec<_> = launches[0].accesses.iter().filter(|access| access.kind == Kind::Copy).collect();
    assert!(copies.len() >= 2 && copies.len() % 2 == 0);
    for pair in copies.chunks(2) {
        assert!(!pair[0].shared && pair[0].is_load && pair[0].allocation.is_some());
        assert!(pair[1].shared && !pair[1].is_load && pair[1].allocation.is_none());
        assert!(pair[1].lanes().all(|(_, address)| address < 48 << 10));
    }
}
