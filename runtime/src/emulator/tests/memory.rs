//! State spaces, widths and vectors.

use super::{bench, kernel, run, store};
use crate::emulator::LaunchConfig;

const WARP: LaunchConfig<'static> = LaunchConfig {
    grid: [1, 1, 1],
    block: [32, 1, 1],
    shared_bytes: 0,
    number: 1,
    instruction_limit: 1 << 20,
    threads_at_most: 0,
    cancel: None,
    progress: None,
};

#[test]
fn narrow_loads_extend() {
    let body = "
        st.global.u32 [%out], 0x80ff7f01;
        bar.warp.sync 0xffffffff;
        ld.global.s8 %a, [%out+2];
        ld.global.u8 %b, [%out+2];
        ld.global.s16 %c, [%out+2];
        ld.global.u16 %d, [%out+2];
        ld.global.s8 %h, [%out+2];
        cvt.u32.u16 %e, %h;
        ld.global.s32 %w, [%out];
        shr.u64 %w, %w, 32;
        cvt.u32.u64 %g, %w;
        bar.warp.sync 0xffffffff;
        st.global.v4.b32 [%out], {%a, %b, %c, %d};
        st.global.v2.b32 [%out+16], {%e, %g};
        st.global.u8 [%out+25], 0x77;
        st.global.u16 [%out+30], 0x1234;";
    let out = run(".reg .b32 %a, %b, %c, %d, %e, %g; .reg .b16 %h; .reg .b64 %w;", body, WARP, 8);
    let expected = [0xffff_ffff, 0xff, 0xffff_80ff, 0x80ff, 0xffff, 0xffff_ffff, 0x7700, 0x1234_0000];
    assert_eq!(out, expected);
}

#[test]
fn vectors_of_every_kind() {
    let body = "
        mad.wide.u32 %p, %t, 32, %out;
        mov.b64 %w, 0x1111111122222222;
        st.global.v2.b64 [%p], {%w, %w};
        mov.f32 %f, 0f3F800000;
        st.global.v4.f32 [%p+16], {%f, %f, 0f40000000, %f};
        ld.global.v2.u32 {%a, %b}, [%p];
        ld.global.v4.f32 {%f, %g, %h, %f}, [%p+16];
        add.u32 %a, %a, %b;
        add.f32 %h, %h, %g;
        st.global.u32 [%p+4], %a;
        st.global.f32 [%p+28], %h;";
    let out = run(".reg .b32 %a, %b; .reg .b64 %w, %p; .reg .f32 %f, %g, %h;", body, WARP, 8 * 32);
    let (one, two, three) = (1f32.to_bits(), 2f32.to_bits(), 3f32.to_bits());
    for lane in out.chunks(8) {
        assert_eq!(lane, [0x2222_2222, 0x3333_3333, 0x2222_2222, 0x1111_1111, one, one, two, three]);
    }
}

#[test]
fn shared_memory_of_fixed_and_launched_size() {
    // Reversal through shared memory, then once more through the dynamic part.
    let text = format!(
        ".extern .shared .align 4 .b8 dyn[];\n{}",
        kernel(
            &["out"],
            ".shared .align 4 .b8 fixed[256];\n.reg .b32 %a, %b, %v;\n.reg .b64 %g;",
            &format!(
                "mov.u32 %a, fixed;
                mad.lo.u32 %b, %t, 4, %a;
                st.shared.u32 [%b], %t;
                bar.sync 0;
                sub.u32 %v, 63, %t;
                mad.lo.u32 %b, %v, 4, %a;
                ld.shared.u32 %v, [%b];
                mov.u32 %a, dyn;
                mad.lo.u32 %b, %t, 4, %a;
                mul.lo.u32 %v, %v, 3;
                st.shared.u32 [%b], %v;
                bar.sync 0;
                cvt.u64.u32 %g, %b;
                cvta.shared.u64 %g, %g;
                ld.u32 %v, [%g];
                {}",
                store("%v")
            )
        )
    );
    let mut bench = bench(&text);
    let out = bench.alloc("out", &[0; 64]);
    bench.launch(LaunchConfig::linear(1, 64).shared(256), &[out]).unwrap();
    let expected: Vec<u32> = (0..64).map(|thread| (63 - thread) * 3).collect();
    assert_eq!(bench.read(out, 64), expected);
}

#[test]
fn local_memory_is_each_threads_own() {
    let body = format!(
        "mov.u64 %p, mine;
        st.local.u32 [%p], %t;
        st.local.u32 [%p+4], 7;
        cvta.local.u64 %p, %p;
        ld.u32 %a, [%p];
        ld.local.u32 %b, [mine+4];
        mad.lo.u32 %a, %a, 10, %b;
        {}",
        store("%a")
    );
    let declarations = ".local .align 4 .b8 mine[8];\n.reg .b64 %p;\n.reg .b32 %a, %b;";
    let out = run(declarations, &body, LaunchConfig::linear(1, 40), 40);
    let expected: Vec<u32> = (0..40).map(|thread| thread * 10 + 7).collect();
    assert_eq!(out, expected);
}

#[test]
fn constants_globals_and_symbols() {
    let text = format!(
        ".const .align 4 .b8 table[8] = {{1, 0, 0, 0, 5, 0, 0, 0}};
        .visible .global .align 4 .u32 counter = 40;\n{}",
        kernel(
            &["out"],
            ".reg .b32 %a, %b, %c;\n.reg .b64 %p;",
            &format!(
                "ld.const.u32 %a, [table+4];
                mov.u64 %p, table;
                ld.const.u32 %b, [%p];
                cvta.const.u64 %p, %p;
                ld.u32 %c, [%p+4];
                mad.lo.u32 %a, %a, %b, %c;
                ld.global.u32 %b, [counter];
                add.u32 %a, %a, %b;
                st.global.u32 [counter], 2;
                {}",
                store("%a")
            )
        )
    );
    let mut bench = bench(&text);
    let out = bench.alloc("out", &[0; 32]);
    bench.launch(WARP, &[out]).unwrap();
    assert_eq!(bench.read(out, 32), [50; 32]);
    let (counter, bytes) = bench.module.symbol("counter").unwrap();
    assert_eq!((bench.read(counter, 1)[0], bytes), (2, 4));
    assert!(bench.module.symbol("nothing").is_none());
}

#[test]
fn parameters_of_all_sizes() {
    let text = "
        .visible .entry k(.param .u64 out, .param .u8 a, .param .u16 b, .param .align 8 .b8 c[16], .param .f64 d)
        {
            .reg .b64 %out, %c, %q; .reg .b16 %a, %b; .reg .b32 %x, %y, %z; .reg .f64 %d;
            ld.param.u64 %out, [out];
            ld.param.s8 %a, [a];
            ld.param.u16 %b, [b];
            ld.param.v2.u32 {%x, %y}, [c+8];
            ld.param.f64 %d, [d];
            mov.u64 %q, c;
            ld.param.u32 %z, [%q+4];
            cvt.s32.s16 %x, %a;
            st.global.u32 [%out], %x;
            st.global.u16 [%out+4], %b;
            st.global.u32 [%out+8], %y;
            st.global.u32 [%out+12], %z;
            st.global.f64 [%out+16], %d;
            ret;
        }";
    let mut bench = bench(text);
    let out = bench.alloc("out", &[0; 6]);
    let c: Vec<u8> = (0..16).collect();
    let args = [out.into(), (-2i8).into(), 7u16.into(), c.as_slice().into(), 1.5f64.into()];
    bench.device.launch(&bench.module, "k", &LaunchConfig::linear(1, 1), &args).unwrap();
    let d = 1.5f64.to_bits();
    assert_eq!(bench.read(out, 6), [-2i32 as u32, 7, 0x0f0e_0d0c, 0x0706_0504, d as u32, (d >> 32) as u32]);
}

#[test]
fn asynchronous_copies_arrive_when_waited_for() {
    let text = kernel(
        &["in", "out"],
        ".shared .align 16 .b8 tile[512];\n.reg .b32 %s, %early, %late, %two;\n.reg .b64 %p, %q;",
        "mad.wide.u32 %p, %t, 4, %in;
        mov.u32 %s, tile;
        mad.lo.u32 %s, %t, 4, %s;
        cp.async.ca.shared.global [%s], [%p], 4;
        cp.async.commit_group;
        cp.async.ca.shared.global [%s+128], [%p], 4, 2;
        cp.async.commit_group;
        cp.async.wait_group 1;
        ld.shared.u32 %early, [%s];
        ld.shared.u32 %late, [%s+128];
        cp.async.wait_all;
        ld.shared.u32 %two, [%s+128];
        mad.wide.u32 %q, %t, 12, %out;
        st.global.u32 [%q], %early;
        st.global.u32 [%q+4], %late;
        st.global.u32 [%q+8], %two;",
    );
    let mut bench = bench(&text);
    let data: Vec<u32> = (0..32).map(|i| 0x0101_0101 * i).collect();
    let input = bench.alloc("in", &data);
    let out = bench.alloc("out", &[0; 96]);
    bench.launch(WARP, &[input, out]).unwrap();
    for (lane, words) in bench.read(out, 96).chunks(3).enumerate() {
        assert_eq!(words, [data[lane], 0, data[lane] & 0xffff], "lane {lane}");
    }
}
