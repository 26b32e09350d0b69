//! Where a run stops: breakpoints, steps, the first failure.

use super::configuration::{BlockChoice, Configuration};
use super::expression::Expression;
use super::program::Program;
use super::values::Shown;
use krn_compiler::manifest::{RECORD_NUMBERS, SiteManifest};
use krn_runtime::emulator::debug::Moment;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A breakpoint on a line.
#[derive(Debug)]
pub struct Breakpoint {
    pub id: i64,
    /// With code.
    pub line: u32,
    pub condition: Option<Expression>,
    /// Stops from the so-manieth time on.
    pub from: u64,
    /// Says this instead of stopping; expressions stand in braces.
    pub message: Option<String>,
    pub hits: u64,
}

/// How far a step goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// To another line, not into functions.
    Over,
    /// To another line.
    Into,
    /// Out of the function.
    Out,
    Instruction,
}

/// What a run is up to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// To the next breakpoint.
    Run,
    /// To the first instruction with a line.
    Entry,
    /// As soon as possible.
    Pause,
    /// The warp in focus, from a line on.
    Step(Step, u32),
}

/// The warp that somebody looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Focus {
    pub launch: u64,
    pub block: u64,
    pub warp: usize,
    pub lane: usize,
}

/// Why the run has stopped.
#[derive(Clone, Debug)]
pub struct Stop {
    /// In the protocol's words.
    pub reason: &'static str,
    pub text: Option<String>,
    pub breakpoints: Vec<i64>,
    pub lane: usize,
}

/// Where a warp was before.
#[derive(Clone, Copy)]
struct Previous {
    pc: usize,
    line: u32,
    active: u32,
}

/// A check that has failed, of which the record is being written.
#[derive(Clone, Copy)]
struct Failing {
    warp: usize,
    lane: usize,
}

/// What decides where to stop.
pub struct Stops {
    pub breakpoints: Vec<Breakpoint>,
    pub mode: Mode,
    pub focus: Option<Focus>,
    block: Option<BlockChoice>,
    warp: Option<usize>,
    lane: Option<usize>,
    /// The number of the launch, and its record of failures.
    pub launch: u64,
    record: Option<u64>,
    failing: Option<Failing>,
    has_failed: bool,
    at_block: u64,
    previous: Vec<Option<Previous>>,
    /// What has been said already.
    said: BTreeSet<String>,
}

impl Stops {
    pub fn new(configuration: &Configuration) -> Self {
        Self {
            breakpoints: Vec::new(),
            mode: if configuration.stop_on_entry { Mode::Entry } else { Mode::Run },
            focus: None,
            block: configuration.block,
            warp: configuration.warp,
            lane: configuration.lane,
            launch: 0,
            record: None,
            failing: None,
            has_failed: false,
            at_block: u64::MAX,
            previous: Vec::new(),
            said: BTreeSet::new(),
        }
    }

    /// A launch begins, with a record of failures at this address.
    pub fn begin(&mut self, warps: usize, record: Option<u64>) {
        self.launch += 1;
        self.record = record;
        self.failing = None;
        self.at_block = u64::MAX;
        self.previous = vec![None; warps];
    }

    /// Puts a moment into focus.
    pub fn look_at(&mut self, moment: &Moment<'_>, lane: usize) {
        self.focus = Some(Focus { launch: self.launch, block: moment.block, warp: moment.warp, lane });
        self.mode = Mode::Run;
    }

    /// The lanes at which the run may stop.
    fn allowed(&self, moment: &Moment<'_>) -> u32 {
        let block = match self.block {
            None => true,
            Some(BlockChoice::Number(number)) => moment.block == number,
            Some(BlockChoice::Position(position)) => moment.block_position() == position,
        };
        if !block || self.warp.is_some_and(|warp| warp != moment.warp) {
            return 0;
        }
        moment.active & self.lane.map_or(u32::MAX, |lane| 1 << lane)
    }

    /// Whether the run stops in front of an instruction. `say` is given what there is to tell.
    pub fn decide(
        &mut self,
        program: &Program,
        moment: &Moment<'_>,
        say: &mut dyn FnMut(String),
    ) -> Option<Stop> {
        if moment.block != self.at_block {
            self.at_block = moment.block;
            self.previous.fill(None);
        }
        let line = moment.launch.line(moment.pc);
        let now = Previous { pc: moment.pc, line, active: moment.active };
        let before = self.previous.get_mut(moment.warp)?.replace(now);
        if let Some(stop) = self.failure(program, moment) {
            return Some(stop);
        }
        let jumped = before.is_some_and(|before| moment.pc <= before.pc);
        let came = before.is_none_or(|before| moment.active & !before.active != 0);
        let enters = line != 0 && (jumped || came || before.is_some_and(|before| before.line != line));
        let allowed = self.allowed(moment);
        let plain = |reason, lane: usize| Stop { reason, text: None, breakpoints: Vec::new(), lane };
        let lane_of = |lanes: u32, focus: Option<Focus>| match focus {
            Some(focus) if lanes >> focus.lane & 1 == 1 => focus.lane,
            _ => lanes.trailing_zeros() as usize,
        };
        match self.mode {
            Mode::Run => {}
            Mode::Pause if allowed != 0 => return Some(plain("pause", lane_of(allowed, self.focus))),
            Mode::Entry if allowed != 0 && line != 0 => {
                return Some(plain("entry", lane_of(allowed, self.focus)));
            }
            Mode::Pause | Mode::Entry => {}
            Mode::Step(step, from) => {
                if let Some(lane) = self.stepped(program, moment, (step, from), (enters, jumped)) {
                    return Some(plain("step", lane));
                }
            }
        }
        if !enters || allowed == 0 {
            return None;
        }
        self.breakpoint(program, moment, allowed, say)
    }

    /// The lane in focus, where a step is over.
    fn stepped(
        &mut self,
        program: &Program,
        moment: &Moment<'_>,
        (step, from): (Step, u32),
        (enters, jumped): (bool, bool),
    ) -> Option<usize> {
        let focus = self.focus?;
        if (self.launch, moment.block) > (focus.launch, focus.block) {
            // Its warp has ended.
            self.mode = Mode::Run;
            return None;
        }
        if moment.warp != focus.warp || moment.active >> focus.lane & 1 == 0 {
            return None;
        }
        let line = moment.launch.line(moment.pc);
        let (home, here) = (program.function(from), program.function(line));
        let done = match step {
            Step::Instruction => true,
            Step::Into => enters && (line != from || jumped),
            Step::Over => enters && (line != from || jumped) && (here.is_none() || here == home),
            Step::Out => enters && home.is_some() && here != home,
        };
        done.then_some(focus.lane)
    }

    fn breakpoint(
        &mut self,
        program: &Program,
        moment: &Moment<'_>,
        allowed: u32,
        say: &mut dyn FnMut(String),
    ) -> Option<Stop> {
        let line = moment.launch.line(moment.pc);
        let mut stop: Option<Stop> = None;
        for breakpoint in self.breakpoints.iter_mut().filter(|known| known.line == line) {
            let mut lanes = allowed;
            if let Some(condition) = &breakpoint.condition {
                for lane in (0..32).filter(|lane| allowed >> lane & 1 == 1) {
                    match condition.evaluate(program, moment, lane) {
                        Ok(Shown::Bool(true)) => {}
                        Ok(Shown::Bool(false)) => lanes &= !(1 << lane),
                        other => {
                            lanes &= !(1 << lane);
                            let reason = match other {
                                Ok(value) => format!("`{value}` is no condition"),
                                Err(reason) => reason,
                            };
                            let text =
                                format!("line {line}, condition `{}` passed over: {reason}", condition.text);
                            if self.said.insert(text.clone()) {
                                say(text);
                            }
                        }
                    }
                }
            }
            if lanes == 0 {
                continue;
            }
            breakpoint.hits += 1;
            if breakpoint.hits < breakpoint.from {
                continue;
            }
            let lane = match self.focus {
                Some(focus) if lanes >> focus.lane & 1 == 1 => focus.lane,
                _ => lanes.trailing_zeros() as usize,
            };
            match &breakpoint.message {
                Some(message) => {
                    for lane in (0..32).filter(|lane| lanes >> lane & 1 == 1) {
                        say(filled(message, program, moment, lane));
                    }
                }
                None => {
                    let stop = stop.get_or_insert(Stop {
                        reason: "breakpoint",
                        text: None,
                        breakpoints: Vec::new(),
                        lane,
                    });
                    stop.breakpoints.push(breakpoint.id);
                }
            }
        }
        stop
    }

    /// The first check that fails, as soon as its record is written.
    fn failure(&mut self, program: &Program, moment: &Moment<'_>) -> Option<Stop> {
        let record = self.record.filter(|_| !self.has_failed)?;
        match self.failing {
            None => {
                if moment.claims(record) {
                    let lane = moment.mask.trailing_zeros() as usize;
                    self.failing = Some(Failing { warp: moment.warp, lane });
                }
                None
            }
            Some(failing) => {
                // The record is written behind the entry's end; then the warp goes back.
                if moment.warp != failing.warp || !moment.goes_back() {
                    return None;
                }
                self.failing = None;
                self.has_failed = true;
                let text = told(program, moment, record);
                Some(Stop {
                    reason: "exception",
                    text: Some(text),
                    breakpoints: Vec::new(),
                    lane: failing.lane,
                })
            }
        }
    }
}

/// What the record of failures says.
fn told(program: &Program, moment: &Moment<'_>, record: u64) -> String {
    let words = moment.memory(record, 8 + 8 * RECORD_NUMBERS).unwrap_or_default();
    let word = |at: usize| {
        let bytes = words.get(at..at + 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        i64::from_le_bytes(bytes.unwrap_or_default())
    };
    let site = (word(0) as u64 >> 32) as usize;
    match program.manifest().and_then(|manifest| manifest.sites.get(site)) {
        Some(place) if place.injection.is_some() => {
            format!(
                "the values of `{}` are not injective (line {}): element {}",
                place.array,
                place.line,
                word(8)
            )
        }
        Some(SiteManifest { assertion: Some(known), line, .. }) => {
            let mut text = format!("the assertion `{}` does not hold (line {line})", known.text);
            for (at, name) in known.indices.iter().take(RECORD_NUMBERS).enumerate() {
                let _ = write!(text, "{} {name} = {}", if at == 0 { ":" } else { "," }, word(8 + 8 * at));
            }
            text
        }
        Some(place) => {
            let (array, axis, line) = (&place.array, place.axis, place.line);
            let (index, extent) = (word(8), word(16));
            format!("out of bounds: `{array}` axis {axis}, index {index}, extent {extent} (line {line})")
        }
        None => "a check has failed".to_string(),
    }
}

/// A message with the values of what stands in braces.
fn filled(message: &str, program: &Program, moment: &Moment<'_>, lane: usize) -> String {
    let mut text = String::new();
    let mut rest = message;
    while let Some((before, behind)) = rest.split_once('{') {
        text.push_str(before);
        let Some((inside, after)) = behind.split_once('}') else {
            rest = behind;
            text.push('{');
            break;
        };
        let value = Expression::parse(inside).and_then(|known| known.evaluate(program, moment, lane));
        match value {
            Ok(value) => text.push_str(&value.to_string()),
            Err(reason) => text.push_str(&format!("<{reason}>")),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}
