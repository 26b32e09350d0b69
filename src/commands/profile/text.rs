//! The profile for people.

use super::found::{GLOBAL, Launch, Profile, SHARED, Sort, used};
use super::table::lines;
use crate::numbers::{bytes, grouped};
use crate::table::with;
use krn_runtime::emulator::{Counts, Kind};
use krn_runtime::profile::{Bound, Roofline};

pub fn text(profile: &Profile<'_>) -> String {
    let gpu = profile.gpu;
    let mut text = format!(
        "{}: {}{} for one {} ({})\n",
        profile.source.name(),
        profile.kernel,
        with(&profile.sizes),
        gpu.title,
        profile.target
    );
    text.push_str(
        "  counted by the emulator; instructions are PTX's, memory is counted as the hardware does\n\n",
    );
    text.push_str(&lines(profile));
    for (launch, count) in grouped_launches(profile) {
        text.push('\n');
        text.push_str(&of_launch(launch, count));
    }
    text.push('\n');
    text.push_str(&summary(profile));
    text
}

/// Launches of the same shape that did the same, each with how many there are, in the order of the first ones.
pub fn grouped_launches<'a>(profile: &'a Profile<'_>) -> Vec<(&'a Launch, usize)> {
    let mut groups: Vec<(&Launch, usize)> = Vec::new();
    for launch in &profile.launches {
        match groups.iter_mut().find(|(first, _)| first.counted == launch.counted) {
            Some((_, count)) => *count += 1,
            None => groups.push((launch, 1)),
        }
    }
    groups
}

pub fn of_launch(launch: &Launch, count: usize) -> String {
    let counted = &launch.counted;
    let by = |extents: [u32; 3]| {
        let used = extents.iter().rposition(|extent| *extent > 1).map_or(1, |last| last + 1);
        extents[..used].iter().map(u32::to_string).collect::<Vec<_>>().join(" x ")
    };
    let times = if count == 1 { String::new() } else { format!(", {count} times") };
    let mut text =
        format!("  {}: {} blocks of {} threads{times}\n", counted.entry, by(counted.grid), by(counted.block));
    let mut say = |line: String| text.push_str(&format!("    {line}\n"));
    let all = counted.counts.total(|_| true);
    let mut kinds: Vec<(Kind, u64)> = Kind::ALL
        .into_iter()
        .map(|kind| (kind, counted.counts.total(|known| known == kind).warps))
        .filter(|(_, warps)| *warps > 0)
        .collect();
    kinds.sort_by_key(|(kind, warps)| (std::cmp::Reverse(*warps), *kind));
    let kinds: Vec<String> = kinds
        .into_iter()
        .map(|(kind, warps)| format!("{} {}", grouped(warps), kind.name().replace('_', " ")))
        .collect();
    say(format!("{} warp instructions of PTX: {}", grouped(all.warps), kinds.join(", ")));
    let lanes = all.lanes as f64 / all.warps.max(1) as f64;
    say(format!(
        "{lanes:.1} of 32 lanes at work; {} branches, {} of them divergent; {} warps came to barriers",
        grouped(counted.counts.total(|kind| kind == Kind::Branch).warps),
        grouped(all.divergent),
        grouped(counted.counts.total(|kind| kind == Kind::Barrier).warps)
    ));
    for sort in GLOBAL {
        say_unless_empty(&mut say, global(sort, &counted.counts.total(|kind| sort.has(kind))));
    }
    for sort in SHARED {
        say_unless_empty(&mut say, shared(sort, &counted.counts.total(|kind| sort.has(kind))));
    }
    say(occupancy(launch));
    say(of_roofline(&launch.roofline));
    text
}

fn say_unless_empty(say: &mut impl FnMut(String), line: Option<String>) {
    if let Some(line) = line {
        say(line);
    }
}

fn global(sort: &Sort, counts: &Counts) -> Option<String> {
    let used = used(counts)?;
    let turns = if counts.serial > 0 { format!(", {} turns", grouped(counts.serial)) } else { String::new() };
    Some(format!(
        "{}: {} requests, {} sectors ({:.1} a request), {:.1}% of their bytes used{turns}; {} sectors on to L2 (model)",
        sort.name.replace('_', " "),
        grouped(counts.requests),
        grouped(counts.sectors),
        counts.sectors as f64 / counts.requests as f64,
        used * 100.0,
        grouped(counts.l2_sectors)
    ))
}

fn shared(sort: &Sort, counts: &Counts) -> Option<String> {
    let turns = if counts.serial > 0 { format!(", {} turns", grouped(counts.serial)) } else { String::new() };
    (counts.shared_requests > 0).then(|| {
        format!(
            "{}: {} requests, {} wavefronts, {} of them for bank conflicts{turns}",
            sort.name.replace('_', " "),
            grouped(counts.shared_requests),
            grouped(counts.wavefronts),
            grouped(counts.conflicts)
        )
    })
}

fn occupancy(launch: &Launch) -> String {
    let by = if launch.registers_estimated { "estimated from the PTX" } else { "by ptxas" };
    let spills = launch.spill_bytes.filter(|spills| *spills > 0);
    let spills = spills.map_or(String::new(), |spills| format!(", {} spilled", bytes(spills.into())));
    let takes = format!(
        "{} registers a thread ({by}){spills}, {} shared a block",
        launch.registers,
        bytes(launch.counted.counts.shared_bytes)
    );
    let Some(found) = &launch.occupancy else { return format!("occupancy: no block fits; {takes}") };
    format!(
        "occupancy: {} of {} warps ({:.0}%) in {} block{} a multiprocessor, limited by {}; {takes}",
        found.warps,
        found.most_warps,
        found.share() * 100.0,
        found.blocks,
        if found.blocks == 1 { "" } else { "s" },
        found.limiter.name()
    )
}

pub fn of_roofline(roofline: &Roofline) -> String {
    let Some((bound, times)) = roofline.verdict() else {
        return "moves nothing and computes nothing".to_string();
    };
    let bound = match bound {
        Bound::Memory => "memory-bound",
        Bound::Compute => "compute-bound",
    };
    let intensity = roofline.intensity().map_or(String::new(), |share| format!(", {share:.2} flop/byte"));
    let times = if times.is_finite() { format!(" ({times:.1} times the other)") } else { String::new() };
    format!(
        "{bound}{times}: {} of DRAM at least take {}, {} floating-point operations {}{intensity}",
        bytes(roofline.bytes as u64),
        seconds(roofline.memory_time),
        grouped((roofline.flops + roofline.flops64) as u64),
        seconds(roofline.compute_time)
    )
}

pub fn summary(profile: &Profile<'_>) -> String {
    let gpu = profile.gpu;
    let mut text = format!("  all launches: {}\n", of_roofline(&profile.roofline));
    let (useful, least) = (profile.work.bytes, profile.roofline.bytes);
    text.push_str(&format!("  useful bytes: {}", bytes(useful as u64)));
    if least > 0.0 {
        text.push_str(&format!(", {:.1}% of what must move", useful / least * 100.0));
    }
    text.push('\n');
    text.push_str(&format!("  at least {}", seconds(profile.roofline.time)));
    match &profile.time {
        Some(time) => text.push_str(&format!(
            "; measured {} on {}: {:.1}% of the limit\n",
            seconds(time.median),
            time.device,
            profile.roofline.time / time.median * 100.0
        )),
        None => text.push_str("; NO TIME: nothing was measured\n"),
    }
    text.push_str(&format!(
        "  assumed of the {}: {} multiprocessors at {} GHz, {:.0} GB/s, {:.1} TFLOP/s ({:.1} of 64 bits); as many as\n  \
         {:.1} flop/byte are free. Every sector comes from DRAM once and goes there once; launches overlap in nothing\n",
        gpu.title,
        gpu.multiprocessors,
        gpu.clock,
        gpu.bandwidth,
        gpu.flops().0 / 1e12,
        gpu.flops().1 / 1e12,
        gpu.balance()
    ));
    if !profile.has_ptxas {
        text.push_str(
            "  no ptxas found (`krn doctor` says what to do): registers are estimated, spills not known\n",
        );
    }
    text
}

pub fn seconds(time: f64) -> String {
    match time {
        time if time >= 1e-6 => crate::numbers::duration(std::time::Duration::from_secs_f64(time)),
        time => format!("{:.1} ns", time * 1e9),
    }
}
