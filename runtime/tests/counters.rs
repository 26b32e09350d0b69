//! The emulator's counters against those that NVIDIA's profiler read on an H200: the kernels of a plain CUDA author, as
//! PTX with the same accesses (which loads nvcc made vectors of, too).

use krn_compiler::ptx;
use krn_runtime::emulator::count::banks::banked;
use krn_runtime::emulator::{ArgValue, Counts, Emulator, Kind, LaunchConfig, LaunchCounts};

/// One launch of an entry `k`: pointers to arrays of so many words, then numbers.
fn count(body: &str, config: LaunchConfig<'_>, arrays: &[u64], numbers: &[u32]) -> LaunchCounts {
    let mut params = Vec::new();
    let mut loads = String::new();
    for at in 0..arrays.len() {
        params.push(format!(".param .u64 p{at}"));
        loads += &format!("ld.param.u64 %p{at}, [p{at}];\n");
    }
    for at in 0..numbers.len() {
        params.push(format!(".param .u32 n{at}"));
        loads += &format!("ld.param.u32 %n{at}, [n{at}];\n");
    }
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k({})\n{{\n\
         .shared .align 16 .b8 tile[16384];\n\
         .reg .b64 %p<8>, %a<16>;\n.reg .b32 %n<8>, %r<32>;\n.reg .b32 %f<32>;\n.reg .pred %q<8>;\n{loads}\
         mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\n\
         mov.u32 %r3, %tid.y;\nmov.u32 %r4, %ctaid.y;\nmad.lo.u32 %r5, %r1, %r2, %r0;\n{body}\nret;\n}}\n",
        params.join(", ")
    );
    let module = ptx::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut device = Emulator::new();
    let module = device.load_module(&module).unwrap();
    let mut args: Vec<ArgValue> =
        arrays.iter().map(|words| device.alloc(words * 4, "array").unwrap().into()).collect();
    args.extend(numbers.iter().map(|number| ArgValue::from(*number)));
    let counted = device.launch_counted(&module, "k", &config, &args);
    counted.unwrap_or_else(|error| panic!("{error}\n{text}")).1
}

fn of(counts: &LaunchCounts, kind: Kind) -> Counts {
    counts.total(|known| known == kind)
}

/// Requests and sectors of loads, then of stores.
fn global(counts: &LaunchCounts) -> [u64; 4] {
    let (loads, stores) = (of(counts, Kind::GlobalLoad), of(counts, Kind::GlobalStore));
    [loads.requests, loads.sectors, stores.requests, stores.sectors]
}

/// Bytes used in a hundred, as the profiler rounds it.
fn efficiency(counts: Counts) -> f64 {
    (counts.bytes as f64 / (counts.sectors * 32) as f64 * 10_000.0).round() / 100.0
}

const N: u32 = 1 << 20;

/// `if (k < n) c[to] = a[from] + b[from]`, `k` being the index with the offset.
fn offset(reads_there: bool) -> String {
    let (from, to) = if reads_there { ("%r6", "%r5") } else { ("%r5", "%r6") };
    format!(
        "add.u32 %r6, %r5, %n1;\nsetp.ge.u32 %q0, %r6, %n0;\n@%q0 ret;\n\
         mad.wide.u32 %a0, {from}, 4, %p0;\nmad.wide.u32 %a1, {from}, 4, %p1;\nmad.wide.u32 %a2, {to}, 4, %p2;\n\
         ld.global.b32 %f0, [%a0];\nld.global.b32 %f1, [%a1];\nadd.f32 %f0, %f0, %f1;\nst.global.b32 [%a2], %f0;"
    )
}

#[test]
fn offsets() {
    let arrays = [u64::from(N); 3];
    let config = LaunchConfig::linear(N / 512, 512);
    for (reads_there, offset_by, expected, l2) in [
        (true, 0, [65536, 262144, 32768, 131072], 262144),
        (true, 11, [65536, 327676, 32768, 131071], 266234),
        (true, 128, [65528, 262112, 32764, 131056], 262112),
        (false, 0, [65536, 262144, 32768, 131072], 262144),
        (false, 11, [65536, 262142, 32768, 163838], 262142),
        (false, 128, [65528, 262112, 32764, 131056], 262112),
    ] {
        let counts = count(&offset(reads_there), config, &arrays, &[N, offset_by]);
        assert_eq!(global(&counts), expected, "{reads_there} {offset_by}");
        let loads = of(&counts, Kind::GlobalLoad);
        // What the model of L1 leaves is within a sector or two of the machine's.
        assert!(within(loads.l2_sectors, l2, 1e-5), "{reads_there} {offset_by}: {}", loads.l2_sectors);
        let stores = of(&counts, Kind::GlobalStore);
        let there = if reads_there { loads } else { stores };
        assert_eq!(efficiency(there), if offset_by == 11 { 80.0 } else { 100.0 });
    }
}

#[test]
fn four_at_an_offset() {
    let mut body =
        "shl.b32 %r6, %r2, 2;\nmad.lo.u32 %r5, %r1, %r6, %r0;\nadd.u32 %r6, %r5, %n1;\n".to_string();
    for _ in 0..4 {
        body += "setp.lt.u32 %q0, %r6, %n0;\n\
                 mad.wide.u32 %a0, %r6, 4, %p0;\nmad.wide.u32 %a1, %r6, 4, %p1;\nmad.wide.u32 %a2, %r5, 4, %p2;\n\
                 @%q0 ld.global.b32 %f0, [%a0];\n@%q0 ld.global.b32 %f1, [%a1];\nadd.f32 %f0, %f0, %f1;\n\
                 @%q0 st.global.b32 [%a2], %f0;\nadd.u32 %r5, %r5, %r2;\nadd.u32 %r6, %r6, %r2;\n";
    }
    let counts = count(&body, LaunchConfig::linear(N / 2048, 512), &[u64::from(N); 3], &[N, 11]);
    assert_eq!(global(&counts), [65536, 327676, 32768, 131071]);
    assert_eq!(of(&counts, Kind::GlobalLoad).l2_sectors, 263164);
}

#[test]
fn structs_and_arrays() {
    let config = LaunchConfig::linear(N / 256, 128);
    let both = "mad.wide.u32 %a0, %r5, 8, %p0;\nmad.wide.u32 %a1, %r5, 8, %p1;\n\
                ld.global.b32 %f0, [%a0];\nld.global.b32 %f1, [%a0+4];\nst.global.b32 [%a1], %f0;\n\
                st.global.b32 [%a1+4], %f1;";
    let counts = count(both, config, &[u64::from(N); 2], &[]);
    assert_eq!(global(&counts), [32768, 262144, 32768, 262144]);
    assert_eq!(efficiency(of(&counts, Kind::GlobalLoad)), 50.0);
    assert_eq!(of(&counts, Kind::GlobalLoad).l2_sectors, 131072);
    let one = "mad.wide.u32 %a0, %r5, 8, %p0;\nmad.wide.u32 %a1, %r5, 4, %p1;\nld.global.b32 %f0, [%a0];\n\
               st.global.b32 [%a1], %f0;";
    let counts = count(one, config, &[u64::from(N); 2], &[]);
    assert_eq!(global(&counts), [16384, 131072, 16384, 65536]);
    assert_eq!(efficiency(of(&counts, Kind::GlobalLoad)), 50.0);
    let arrays = "mad.wide.u32 %a0, %r5, 4, %p0;\nmad.wide.u32 %a1, %r5, 4, %p1;\nmad.wide.u32 %a2, %r5, 4, %p2;\n\
                  mad.wide.u32 %a3, %r5, 4, %p3;\nld.global.b32 %f0, [%a0];\nld.global.b32 %f1, [%a1];\n\
                  st.global.b32 [%a2], %f0;\nst.global.b32 [%a3], %f1;";
    let counts = count(arrays, config, &[u64::from(N) / 2; 4], &[]);
    assert_eq!(global(&counts), [32768, 131072, 32768, 131072]);
}

/// Blocks of 32 × 8 threads for tiles of 32 × 32; the numbers are the pitch of the tile in words and 1024.
const TRANSPOSE_START: &str = "shl.b32 %r6, %r1, 5;\nadd.u32 %r6, %r6, %r0;\nshl.b32 %r7, %r4, 5;\nadd.u32 %r7, %r7, %r3;\n\
     mad.lo.u32 %r8, %r7, 1024, %r6;\nmad.wide.u32 %a0, %r8, 4, %p0;\n";

#[test]
fn transposes() {
    let config = LaunchConfig::new([32, 32, 1], [32, 8, 1]);
    let mut body = TRANSPOSE_START.to_string();
    body += "mad.lo.u32 %r9, %r6, 1024, %r7;\nmad.wide.u32 %a1, %r9, 4, %p1;\n";
    for j in (0..32).step_by(8) {
        let (from, to) = (j * 4096, j * 4);
        body += &format!("ld.global.b32 %f0, [%a0+{from}];\nst.global.b32 [%a1+{to}], %f0;\n");
    }
    let counts = count(&body, config, &[u64::from(N); 2], &[]);
    assert_eq!(global(&counts), [32768, 131072, 32768, 1048576]);
    assert_eq!(efficiency(of(&counts, Kind::GlobalStore)), 12.5);
    for (pitch, wavefronts, conflicts) in [(32, 1048576, 1015808), (33, 32768, 0)] {
        let mut body = TRANSPOSE_START.to_string();
        body += &format!(
            "mov.u32 %r10, tile;\nmad.lo.u32 %r11, %r3, {pitch}, %r0;\nshl.b32 %r11, %r11, 2;\nadd.u32 %r11, %r10, %r11;\n\
             mad.lo.u32 %r12, %r0, {pitch}, %r3;\nshl.b32 %r12, %r12, 2;\nadd.u32 %r12, %r10, %r12;\n"
        );
        for j in (0..32).step_by(8) {
            let (from, to) = (j * 4096, j * pitch * 4);
            body += &format!("ld.global.b32 %f0, [%a0+{from}];\nst.shared.b32 [%r11+{to}], %f0;\n");
        }
        body += "bar.sync 0;\nshl.b32 %r13, %r4, 5;\nadd.u32 %r13, %r13, %r0;\nshl.b32 %r14, %r1, 5;\n\
                 add.u32 %r14, %r14, %r3;\nmad.lo.u32 %r14, %r14, 1024, %r13;\nmad.wide.u32 %a1, %r14, 4, %p1;\n";
        for j in (0..32).step_by(8) {
            let (from, to) = (j * 4, j * 4096);
            body += &format!("ld.shared.b32 %f0, [%r12+{from}];\nst.global.b32 [%a1+{to}], %f0;\n");
        }
        let counts = count(&body, config, &[u64::from(N); 2], &[]);
        assert_eq!(global(&counts), [32768, 131072, 32768, 131072]);
        let (loads, stores) = (of(&counts, Kind::SharedLoad), of(&counts, Kind::SharedStore));
        assert_eq!(
            (loads.shared_requests, loads.wavefronts, loads.conflicts),
            (32768, wavefronts, conflicts)
        );
        assert_eq!((stores.wavefronts, stores.conflicts), (32768, 0));
    }
}

#[test]
fn sums() {
    let serial = "shl.b32 %r6, %r5, 10;\nmad.wide.u32 %a0, %r6, 4, %p0;\nmov.b32 %f0, 0f00000000;\nmov.u32 %r7, 0;\n\
                  again:\nld.global.b32 %f1, [%a0];\nadd.f32 %f0, %f0, %f1;\nadd.s64 %a0, %a0, 4;\nadd.u32 %r7, %r7, 1;\n\
                  setp.lt.u32 %q0, %r7, 1024;\n@%q0 bra again;\nmad.wide.u32 %a1, %r5, 4, %p1;\n\
                  st.global.b32 [%a1], %f0;";
    let counts = count(serial, LaunchConfig::linear(8, 128), &[u64::from(N), 1024], &[]);
    assert_eq!(global(&counts), [32768, 1048576, 32, 128]);
    let loads = of(&counts, Kind::GlobalLoad);
    assert_eq!((efficiency(loads), loads.l2_sectors), (12.5, 131072));
    let tree = "mov.u32 %r10, tile;\nshl.b32 %r6, %r0, 2;\nadd.u32 %r6, %r10, %r6;\nmad.wide.u32 %a0, %r5, 4, %p0;\n\
                ld.global.b32 %f0, [%a0];\nst.shared.b32 [%r6], %f0;\nbar.sync 0;\nmov.u32 %r7, 512;\n\
                again:\nsetp.ge.u32 %q0, %r0, %r7;\n@%q0 bra skip;\nshl.b32 %r8, %r7, 2;\nadd.u32 %r8, %r6, %r8;\n\
                ld.shared.b32 %f0, [%r8];\nld.shared.b32 %f1, [%r6];\nadd.f32 %f0, %f0, %f1;\nst.shared.b32 [%r6], %f0;\n\
                skip:\nbar.sync 0;\nshr.u32 %r7, %r7, 1;\nsetp.ne.u32 %q0, %r7, 0;\n@%q0 bra again;\n\
                setp.ne.u32 %q0, %r0, 0;\n@%q0 ret;\nld.shared.b32 %f0, [%r10];\nmad.wide.u32 %a1, %r1, 4, %p1;\n\
                st.global.b32 [%a1], %f0;";
    let counts = count(tree, LaunchConfig::linear(1024, 1024), &[u64::from(N), 1024], &[]);
    assert_eq!(global(&counts), [32768, 131072, 1024, 1024]);
    let (loads, stores) = (of(&counts, Kind::SharedLoad), of(&counts, Kind::SharedStore));
    assert_eq!((loads.shared_requests, stores.wavefronts, loads.conflicts), (74752, 69632, 0));
    assert!(within(loads.wavefronts, 75272, 0.01));
    // Five steps within one warp, and the end: of the first warp's lanes some go on and some do not.
    assert_eq!(counts.total(|_| true).divergent, 1024 * 5);
}

fn within(found: u64, expected: u64, share: f64) -> bool {
    (found as f64 - expected as f64).abs() <= expected as f64 * share
}

/// Of one row of blocks: a 32nd of the launch that was read.
#[test]
fn products() {
    let naive = "mov.u32 %r6, %ntid.y;\nmad.lo.u32 %r6, %r4, %r6, %r3;\nshl.b32 %r7, %r6, 10;\n\
                 mad.wide.u32 %a0, %r7, 4, %p0;\nmad.wide.u32 %a1, %r5, 4, %p1;\nmov.b32 %f0, 0f00000000;\nmov.u32 %r8, 0;\n\
                 again:\nld.global.b32 %f1, [%a0];\nld.global.b32 %f2, [%a1];\nfma.rn.f32 %f0, %f1, %f2, %f0;\n\
                 add.s64 %a0, %a0, 4;\nadd.s64 %a1, %a1, 4096;\nadd.u32 %r8, %r8, 1;\nsetp.lt.u32 %q0, %r8, 1024;\n\
                 @%q0 bra again;\nadd.u32 %r7, %r7, %r5;\nmad.wide.u32 %a2, %r7, 4, %p2;\nst.global.b32 [%a2], %f0;";
    let arrays = [u64::from(N); 3];
    let counts = count(naive, LaunchConfig::new([32, 1, 1], [32, 32, 1]), &arrays, &[]);
    assert_eq!(global(&counts), [67108864, 167772160, 32768, 131072].map(|whole| whole / 32));
    assert_eq!(efficiency(of(&counts, Kind::GlobalLoad)), 82.5);
    assert_eq!(counts.total(|_| true).flops, 2 * 1024 * 1024 * 32);
    for (side, blocks, expected, wavefronts, stores) in [
        (16u32, [64, 2, 1], [4194304u64, 16777216, 32768, 131072], 50359469, 4194304),
        (32, [32, 1, 1], [2097152, 8388608, 32768, 131072], 50350948, 2097152),
    ] {
        let bytes = side * side * 4;
        let mut body = format!(
            "mad.lo.u32 %r6, %r4, {side}, %r3;\nmad.lo.u32 %r7, %r6, 1024, %r0;\nmad.wide.u32 %a0, %r7, 4, %p0;\n\
             mad.lo.u32 %r8, %r3, 1024, %r5;\nmad.wide.u32 %a1, %r8, 4, %p1;\nmov.u32 %r10, tile;\n\
             mad.lo.u32 %r11, %r3, {side}, %r0;\nshl.b32 %r11, %r11, 2;\nadd.u32 %r11, %r10, %r11;\n\
             mul.lo.u32 %r12, %r3, {};\nadd.u32 %r12, %r10, %r12;\nshl.b32 %r13, %r0, 2;\nadd.u32 %r13, %r10, %r13;\n\
             mov.b32 %f0, 0f00000000;\nmov.u32 %r9, 0;\nagain:\nld.global.b32 %f1, [%a0];\nld.global.b32 %f2, [%a1];\n\
             st.shared.b32 [%r11], %f1;\nst.shared.b32 [%r11+{bytes}], %f2;\nbar.sync 0;\n",
            side * 4
        );
        for i in 0..side {
            if i % 4 == 0 {
                body += &format!("ld.shared.v4.b32 {{%f4, %f5, %f6, %f7}}, [%r12+{}];\n", i * 4);
            }
            body += &format!("ld.shared.b32 %f3, [%r13+{}];\n", bytes + i * side * 4);
            body += &format!("fma.rn.f32 %f0, %f3, %f{}, %f0;\n", 4 + i % 4);
        }
        body += &format!(
            "bar.sync 0;\nadd.s64 %a0, %a0, {};\nadd.s64 %a1, %a1, {};\nadd.u32 %r9, %r9, {side};\n\
             setp.lt.u32 %q0, %r9, 1024;\n@%q0 bra again;\nmad.lo.u32 %r14, %r6, 1024, %r5;\n\
             mad.wide.u32 %a2, %r14, 4, %p2;\nst.global.b32 [%a2], %f0;",
            side * 4,
            side * 4096
        );
        let counts = count(&body, LaunchConfig::new(blocks, [side, side, 1]), &arrays, &[]);
        assert_eq!(global(&counts), expected.map(|whole| whole / 32), "{side}");
        let (loads, written) = (of(&counts, Kind::SharedLoad), of(&counts, Kind::SharedStore));
        assert_eq!(loads.shared_requests, 41943040 / 32);
        assert!(within(loads.wavefronts, wavefronts / 32, 0.01), "{} {side}", loads.wavefronts);
        assert_eq!(written.wavefronts, stores / 32);
    }
}

#[test]
fn switched_off_warps_ask_for_nothing_and_the_rest_of_a_warp_for_its_part() {
    let body = "mad.wide.u32 %a0, %r5, 4, %p0;\nsetp.lt.u32 %q0, %r0, 40;\n@%q0 ld.global.nc.b32 %f0, [%a0];\n\
                mov.u32 %r10, tile;\n@%q0 st.shared.b32 [%r10], %f0;\n@%q0 red.global.add.u32 [%p1], 1;\n\
                @%q0 atom.shared.add.u32 %r11, [%r10], 1;\nmov.u64 %a1, 0;\nst.global.b32 [%a0], %f0;";
    let counts = count(body, LaunchConfig::linear(1, 128), &[128, 1], &[]);
    assert_eq!(global(&counts), [2, 5, 4, 16]);
    let load = of(&counts, Kind::GlobalLoad);
    assert_eq!((load.warps, load.lanes, load.bytes), (4, 40, 160));
    let red = of(&counts, Kind::GlobalReduction);
    assert_eq!((red.requests, red.sectors, red.serial), (2, 2, 40));
    let atomic = of(&counts, Kind::SharedAtomic);
    assert_eq!((atomic.shared_requests, atomic.serial), (2, 40));
    assert_eq!(of(&counts, Kind::SharedStore).shared_requests, 2);
}

/// As an H200 counts them, read one request at a time (docs/counters.md): of a sector as often as the most lanes are at one
/// address.
#[test]
fn lanes_of_a_reduction_at_one_address_ask_one_by_one() {
    for (index, sectors) in [
        ("and.b32 %r10, %r0, 15;", 4),
        ("shr.u32 %r10, %r0, 1;", 4),
        ("mul.lo.u32 %r10, %r0, 8;", 32),
        ("min.u32 %r10, %r0, 8;", 25),
    ] {
        let body = format!("{index}\nmad.wide.u32 %a0, %r10, 4, %p0;\nred.global.add.u32 [%a0], 1;");
        let red = of(&count(&body, LaunchConfig::linear(1, 32), &[256], &[]), Kind::GlobalReduction);
        assert_eq!((red.requests, red.sectors, red.l2_sectors), (1, sectors, sectors), "{index}");
    }
}

#[test]
fn asynchronous_copies_count_on_both_sides() {
    let body = "mad.wide.u32 %a0, %r5, 16, %p0;\nmov.u32 %r10, tile;\nshl.b32 %r11, %r0, 4;\nadd.u32 %r11, %r10, %r11;\n\
                cp.async.cg.shared.global [%r11], [%a0], 16;\ncp.async.ca.shared.global [%r11], [%a0], 16;\n\
                cp.async.wait_all;";
    let copies = of(&count(body, LaunchConfig::linear(1, 64), &[256], &[]), Kind::Copy);
    assert_eq!((copies.requests, copies.sectors, copies.bytes), (4, 64, 2048));
    assert_eq!((copies.shared_requests, copies.wavefronts, copies.conflicts), (4, 16, 0));
    assert_eq!(copies.l2_sectors, 64);
}

#[test]
fn counts_do_not_depend_on_the_host_threads() {
    let counted = |threads_at_most| {
        let config = LaunchConfig { threads_at_most, ..LaunchConfig::linear(N / 512, 512) };
        count(&offset(true), config, &[u64::from(N); 3], &[N, 11])
    };
    let alone = counted(1);
    assert_eq!(alone, counted(2));
    assert_eq!(alone, counted(7));
}

#[test]
fn patterns_in_shared_memory_cost_what_the_machine_says() {
    let (mut readings, mut wrong) = (0, Vec::new());
    for line in include_str!("shared_patterns.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<i64>().unwrap();
        let mut mask = 0;
        let addresses = std::array::from_fn(|lane| {
            let address = number(5 + lane);
            mask |= u32::from(address >= 0) << lane;
            address.max(0) as u64
        });
        let found = banked(&addresses, mask, number(1) as u32, words[0] == "load");
        readings += 1;
        if (i64::from(found.wavefronts), i64::from(found.conflicts)) != (number(3), number(4)) {
            wrong.push(format!("{found:?} {line}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(readings > 300, "{readings}");
}
