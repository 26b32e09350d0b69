//! The profile for programs.

use super::super::run::show_value;
use super::found::{GLOBAL, Launch, Profile, SHARED, used};
use krn_runtime::emulator::{Counts, Kind};
use krn_runtime::profile::{Bound, Roofline};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub fn json(profile: &Profile<'_>) -> Value {
    let lines = profile.lines.iter().map(|(line, counts)| {
        let mut object = counters(|wanted| counts.total(wanted));
        object.insert("line".into(), json!(line));
        object.insert("text".into(), json!(profile.text_of(*line)));
        Value::Object(object)
    });
    let params: BTreeMap<&str, String> =
        profile.sizes.params.iter().map(|(name, value)| (name.as_str(), show_value(value))).collect();
    let gpu = profile.gpu;
    let (rate, rate64) = gpu.flops();
    json!({
        "file": profile.source.name(),
        "kernel": profile.kernel,
        "target": profile.target,
        "dims": profile.sizes.dims,
        "params": params,
        "counted_by": "emulator",
        "instructions_are": "ptx",
        "l2_sectors_are": "modelled",
        "gpu": {
            "name": gpu.name,
            "title": gpu.title,
            "multiprocessors": gpu.multiprocessors,
            "bytes_per_s": gpu.bandwidth * 1e9,
            "flop_per_s": rate,
            "flop64_per_s": rate64,
        },
        "useful_bytes": profile.work.bytes,
        "roofline": roofline(&profile.roofline),
        "measured": profile.time.as_ref().map(|time| json!({
            "device": time.device,
            "median_s": time.median,
            "share_of_limit": profile.roofline.time / time.median,
        })),
        "lines": lines.collect::<Vec<_>>(),
        "launches": profile.launches.iter().map(launch).collect::<Vec<_>>(),
    })
}

fn launch(launch: &Launch) -> Value {
    let counted = &launch.counted;
    let mut object = counters(|wanted| counted.counts.total(wanted));
    let instructions: BTreeMap<&str, u64> = Kind::ALL
        .into_iter()
        .map(|kind| (kind.name(), counted.counts.total(|known| known == kind).warps))
        .filter(|(_, warps)| *warps > 0)
        .collect();
    object.insert("entry".into(), json!(counted.entry));
    object.insert("grid".into(), json!(counted.grid));
    object.insert("block".into(), json!(counted.block));
    object.insert("warp_instructions_by_kind".into(), json!(instructions));
    object.insert("sectors_read_once".into(), json!(counted.counts.sectors_read));
    object.insert("sectors_written_once".into(), json!(counted.counts.sectors_written));
    object.insert("shared_bytes".into(), json!(counted.counts.shared_bytes));
    object.insert("registers".into(), json!(launch.registers));
    object.insert("registers_estimated".into(), json!(launch.registers_estimated));
    object.insert("spill_bytes".into(), json!(launch.spill_bytes));
    let occupancy = launch.occupancy.map(|found| {
        json!({
            "blocks": found.blocks,
            "warps": found.warps,
            "most_warps": found.most_warps,
            "limiter": found.limiter.name(),
        })
    });
    object.insert("occupancy".into(), json!(occupancy));
    object.insert("roofline".into(), roofline(&launch.roofline));
    Value::Object(object)
}

fn counters(total: impl Fn(&dyn Fn(Kind) -> bool) -> Counts) -> Map<String, Value> {
    let all = total(&|_| true);
    let mut object = Map::new();
    object.insert("warp_instructions".into(), json!(all.warps));
    object.insert("lane_instructions".into(), json!(all.lanes));
    object.insert("flops".into(), json!(all.flops));
    object.insert("flops64".into(), json!(all.flops64));
    object.insert("branches".into(), json!(total(&|kind| kind == Kind::Branch).warps));
    object.insert("divergent_branches".into(), json!(all.divergent));
    object.insert("barrier_waits".into(), json!(total(&|kind| kind == Kind::Barrier).warps));
    object.insert("atomic_turns".into(), json!(all.serial));
    for sort in GLOBAL {
        let counts = total(&|kind| sort.has(kind));
        if counts.requests > 0 {
            object.insert(
                sort.name.into(),
                json!({
                    "requests": counts.requests,
                    "sectors": counts.sectors,
                    "bytes_used": counts.bytes,
                    "efficiency": used(&counts),
                    "l2_sectors": counts.l2_sectors,
                }),
            );
        }
    }
    for sort in SHARED {
        let counts = total(&|kind| sort.has(kind));
        if counts.shared_requests > 0 {
            object.insert(
                sort.name.into(),
                json!({
                    "requests": counts.shared_requests,
                    "wavefronts": counts.wavefronts,
                    "conflicts": counts.conflicts,
                }),
            );
        }
    }
    object
}

fn roofline(roofline: &Roofline) -> Value {
    let (bound, times) = roofline.verdict().unzip();
    let bound = bound.map(|bound| match bound {
        Bound::Memory => "memory",
        Bound::Compute => "compute",
    });
    json!({
        "dram_bytes_at_least": roofline.bytes,
        "flop_per_byte": roofline.intensity(),
        "memory_s": roofline.memory_time,
        "compute_s": roofline.compute_time,
        "bound": bound,
        "times_the_other": times.filter(|times| times.is_finite()),
        "least_s": roofline.time,
    })
}
