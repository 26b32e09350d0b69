//! Conversions inside a warp: rounds in which each lane publishes one register and takes one value of another
//! lane.

use super::digits::Dimension;
use super::{Place, ValueLayout};
use std::collections::{BTreeMap, BTreeSet};

/// One shuffle: each lane publishes a register and reads what another lane publishes; the lanes that need the
/// value keep it in a register of the result. All lists have an entry a lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Round {
    /// Which of its registers a lane publishes.
    pub publish: Vec<u64>,
    /// Which lane it reads.
    pub from: Vec<u64>,
    /// Where it keeps what it reads, if it does.
    pub keep: Vec<Option<u64>>,
}

impl Round {
    /// How many selects it takes to publish and to keep registers that depend on the lane, and to keep in
    /// some lanes only.
    pub fn selects(&self) -> u64 {
        let taken = self.from.iter().zip(&self.keep).filter(|(_, keep)| keep.is_some());
        let published: BTreeSet<u64> = taken.map(|(from, _)| self.publish[*from as usize]).collect();
        let kept: BTreeSet<Option<u64>> = self.keep.iter().copied().collect();
        let keeps = if kept.len() == 1 { 0 } else { kept.iter().flatten().count() };
        (published.len().saturating_sub(1) + keeps) as u64
    }

    /// Whether no lane reads another one, so that the round is moves (selects, where registers depend on the
    /// lane).
    pub fn is_local(&self) -> bool {
        self.from.iter().enumerate().all(|(lane, from)| *from == lane as u64)
    }
}

/// What a register of the result is, for a lane: which lane and which register of it.
type Need = (u64, u64);

/// For each register of the result and each lane where it comes from: the own lane if it can, then the
/// nearest by xor. The same for all warps; `None` where they differ, or where a warp lacks a value.
pub fn needs(from: &ValueLayout, to: &ValueLayout) -> Option<Vec<Vec<Need>>> {
    let [registers, lanes, warps, clusters] = from.extents();
    let mut first: Option<Vec<Vec<Need>>> = None;
    for (warp, cluster) in (0..clusters).flat_map(|cluster| (0..warps).map(move |warp| (warp, cluster))) {
        let mut places: BTreeMap<Vec<u64>, Vec<Need>> = BTreeMap::new();
        for (lane, register) in (0..lanes).flat_map(|lane| (0..registers).map(move |it| (lane, it))) {
            let place: Place = [register, lane, warp, cluster];
            places.entry(from.apply(place)).or_default().push((lane, register));
        }
        let mut needs = Vec::new();
        for register in 0..to.extent(Dimension::Register) {
            let nearest = |lane: u64| {
                let places = places.get(&to.apply([register, lane, warp, cluster]))?;
                places.iter().min_by_key(|(from, register)| (from ^ lane, *register)).copied()
            };
            needs.push((0..lanes).map(nearest).collect::<Option<Vec<_>>>()?);
        }
        match &first {
            Some(first) if *first != needs => return None,
            _ => first = Some(needs),
        }
    }
    first
}

/// The register of each result, where all lanes have it themselves and under one name.
pub fn renamed(needs: &[Vec<Need>]) -> Option<Vec<u64>> {
    let name = |lanes: &Vec<Need>| {
        let own = |(lane, need): (usize, &Need)| need.0 == lane as u64 && need.1 == lanes[0].1;
        lanes.iter().enumerate().all(own).then_some(lanes[0].1)
    };
    needs.iter().map(name).collect()
}

/// The cheaper of two ways, and what it costs: register by register of the result (good where many lanes read
/// one), and distance by distance (good where registers of results depend on the lane, as in a
/// transposition).
pub fn rounds(needs: &[Vec<Need>], shuffle: u64, select: u64) -> (u64, Vec<Round>) {
    let cost = |round: &Round| if round.is_local() { 0 } else { shuffle } + round.selects() * select;
    let priced = |rounds: Vec<Round>| (rounds.iter().map(cost).sum(), rounds);
    let (one, other) = (priced(by_register(needs)), priced(by_distance(needs)));
    if one.0 <= other.0 { one } else { other }
}

fn empty(lanes: usize) -> Round {
    Round { publish: vec![0; lanes], from: (0..lanes as u64).collect(), keep: vec![None; lanes] }
}

/// For each register of the result as many rounds as some lane has to publish registers.
fn by_register(needs: &[Vec<Need>]) -> Vec<Round> {
    let mut all = Vec::new();
    for (result, lanes) in needs.iter().enumerate() {
        let mut rounds: Vec<Round> = Vec::new();
        let mut published: Vec<Vec<u64>> = vec![Vec::new(); lanes.len()];
        for (lane, (from, register)) in lanes.iter().enumerate() {
            let published = &mut published[*from as usize];
            let known = published.iter().position(|known| known == register);
            let at = known.unwrap_or_else(|| {
                published.push(*register);
                published.len() - 1
            });
            while rounds.len() <= at {
                rounds.push(empty(lanes.len()));
            }
            rounds[at].publish[*from as usize] = *register;
            (rounds[at].from[lane], rounds[at].keep[lane]) = (*from, Some(result as u64));
        }
        all.append(&mut rounds);
    }
    all
}

/// For each xor of lane numbers as many rounds as some lane needs values from that far: each lane is read by
/// one other.
fn by_distance(needs: &[Vec<Need>]) -> Vec<Round> {
    let mut distances: BTreeMap<u64, Vec<Round>> = BTreeMap::new();
    for (result, lanes) in needs.iter().enumerate() {
        for (lane, (from, register)) in lanes.iter().enumerate() {
            let rounds = distances.entry(from ^ lane as u64).or_default();
            // A round of this distance in which the lane has not taken anything yet.
            let free = rounds.iter().position(|round| round.keep[lane].is_none());
            let at = free.unwrap_or_else(|| {
                rounds.push(empty(lanes.len()));
                rounds.len() - 1
            });
            rounds[at].publish[*from as usize] = *register;
            (rounds[at].from[lane], rounds[at].keep[lane]) = (*from, Some(result as u64));
        }
    }
    distances.into_values().flatten().collect()
}
