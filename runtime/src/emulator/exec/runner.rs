//! What a host thread has that runs blocks: warps, registers and memory, and their state at the start of a block.

use krn_compiler::ptx::{Axis, SpecialReg};

use super::Isa;
use super::barrier::Barriers;
use super::control::Warp;
use super::lanes::{Column, LANES, Registers};
use super::memory::{Arena, View};
use crate::emulator::launch::LaunchConfig;
use crate::emulator::memory::Memory;
use crate::emulator::observe::Observer;
use crate::emulator::program::{ALWAYS, Fixed, Program};
use crate::emulator::turns::Turns;

/// What all blocks of a launch share.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    pub program: &'a Program,
    pub memory: &'a Memory,
    pub params: &'a Arena,
    pub config: &'a LaunchConfig<'a>,
    pub turns: &'a Turns,
    pub isa: Isa,
}

/// The state of the block that a host thread runs, reused from block to block.
pub struct Runner<'a, O> {
    pub program: &'a Program,
    pub isa: Isa,
    pub view: View<'a>,
    pub registers: Vec<Registers>,
    pub warps: Vec<Warp>,
    pub barriers: Barriers,
    pub observer: O,
    pub turns: &'a Turns,
    pub worker: usize,
    /// The block that runs, and whether it has its turn at ordered atomics.
    pub block: u64,
    pub has_turn: bool,
    /// Instructions that a warp may execute in one block.
    pub limit: u64,
    pub config: &'a LaunchConfig<'a>,
    /// Instructions executed so far, by warps and by lanes.
    pub executed: u64,
    pub lane_executed: u64,
}

impl<'a, O: Observer> Runner<'a, O> {
    pub fn new(shared: &Shared<'a>, worker: usize, observer: O) -> Self {
        let Shared { program, memory, params, config, turns, isa } = *shared;
        let threads = config.threads();
        let warp_count = threads.div_ceil(LANES as u64) as usize;
        let shared_bytes = program.shared_bytes + u64::from(config.shared_bytes);
        let view = View::new(memory, params, shared_bytes, program.local_bytes, threads, program.code.len());
        let mut registers = Vec::with_capacity(warp_count);
        let mut warps = Vec::with_capacity(warp_count);
        for warp in 0..warp_count {
            registers.push(prepare(program, config, params, warp));
            warps.push(Warp::default());
        }
        Runner {
            program,
            isa,
            view,
            registers,
            warps,
            barriers: Barriers::new(warp_count),
            observer,
            turns,
            worker,
            block: 0,
            has_turn: false,
            limit: config.instruction_limit,
            config,
            executed: 0,
            lane_executed: 0,
        }
    }

    /// Puts warps, registers and memory into their state at the start of a block.
    pub fn prepare_block(&mut self) {
        let threads = self.config.threads();
        let position = self.config.block_position(self.block);
        for (at, (warp, registers)) in self.warps.iter_mut().zip(&mut self.registers).enumerate() {
            let rest = threads - (at * LANES) as u64;
            warp.start(if rest >= LANES as u64 { u32::MAX } else { (1 << rest) - 1 });
            for column in &self.program.cleared32 {
                registers.w32[*column as usize] = Column::default();
            }
            for column in &self.program.cleared64 {
                registers.w64[*column as usize] = Column::default();
            }
            for column in &self.program.cleared_predicates {
                registers.predicates[*column as usize] = 0;
            }
            for (column, fixed) in &self.program.fixed32 {
                if let Fixed::Special(SpecialReg::Ctaid(axis)) = fixed {
                    registers.w32[*column as usize].0 = [position[axis_index(*axis)]; LANES];
                }
            }
            for (column, fixed) in &self.program.fixed64 {
                if let Fixed::Special(SpecialReg::Ctaid(axis)) = fixed {
                    registers.w64[*column as usize].0 = [position[axis_index(*axis)].into(); LANES];
                }
            }
        }
        self.barriers.clear();
        // Both start each block from zero, so that what they hold at first never depends on the block before.
        if self.program.shared_bytes > 0 || self.config.shared_bytes > 0 {
            self.view.shared.clear();
        }
        if self.program.local_bytes > 0 {
            self.view.local.clear();
        }
    }
}

pub fn axis_index(axis: Axis) -> usize {
    match axis {
        Axis::X => 0,
        Axis::Y => 1,
        Axis::Z => 2,
    }
}

/// The registers of a warp with all columns filled that stay the same from block to block.
fn prepare(program: &Program, config: &LaunchConfig<'_>, params: &Arena, warp: usize) -> Registers {
    let mut registers = Registers {
        w32: vec![Column::default(); program.columns32 as usize],
        w64: vec![Column::default(); program.columns64 as usize],
        predicates: vec![0; program.predicates as usize],
    };
    registers.predicates[ALWAYS as usize] = u32::MAX;
    let value = |fixed: Fixed, lane: usize| match fixed {
        Fixed::Value(value) => value,
        Fixed::Param { offset, bytes, signed } => params.read(offset, bytes, signed),
        Fixed::Special(special) => special_value(special, program, config, warp, lane),
    };
    for (column, fixed) in &program.fixed32 {
        registers.w32[*column as usize].0 = std::array::from_fn(|lane| value(*fixed, lane) as u32);
    }
    for (column, fixed) in &program.fixed64 {
        registers.w64[*column as usize].0 = std::array::from_fn(|lane| value(*fixed, lane));
    }
    registers
}

/// The value of a special register that is the same for all blocks.
fn special_value(
    special: SpecialReg,
    program: &Program,
    config: &LaunchConfig,
    warp: usize,
    lane: usize,
) -> u64 {
    let thread = config.thread_position((warp * LANES + lane) as u32);
    let bit = 1u64 << lane;
    let low = u64::from(u32::MAX);
    match special {
        SpecialReg::Tid(axis) => thread[axis_index(axis)].into(),
        SpecialReg::Ntid(axis) => config.block[axis_index(axis)].into(),
        SpecialReg::Nctaid(axis) => config.grid[axis_index(axis)].into(),
        SpecialReg::LaneId => lane as u64,
        SpecialReg::WarpId => warp as u64,
        SpecialReg::NumWarps => config.threads().div_ceil(LANES as u64),
        SpecialReg::LaneMaskEq => bit,
        SpecialReg::LaneMaskLt => bit - 1,
        SpecialReg::LaneMaskLe => bit | (bit - 1),
        SpecialReg::LaneMaskGe => !(bit - 1) & low,
        SpecialReg::LaneMaskGt => !(bit | (bit - 1)) & low,
        SpecialReg::DynamicSharedSize => config.shared_bytes.into(),
        SpecialReg::TotalSharedSize => program.shared_bytes + u64::from(config.shared_bytes),
        SpecialReg::GridId => config.number,
        // One multiprocessor; blocks and clocks are filled elsewhere.
        SpecialReg::NumSms => 1,
        SpecialReg::SmId
        | SpecialReg::Ctaid(_)
        | SpecialReg::Clock
        | SpecialReg::Clock64
        | SpecialReg::GlobalTimer => 0,
    }
}
