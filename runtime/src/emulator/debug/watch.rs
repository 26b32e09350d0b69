//! The observer that asks a debugger, and lets the sanitizer look as well.

use super::{Debugger, Launched, Moment};
use crate::emulator::exec::block::BlockFault;
use crate::emulator::exec::lanes::LANES;
use crate::emulator::exec::{LaneFault, Outcome};
use crate::emulator::observe::{Event, Observer};
use crate::emulator::sanitize::Sanitizer;

pub(in crate::emulator) struct Watch<'a> {
    pub launch: &'a Launched<'a>,
    pub debugger: &'a dyn Debugger,
    pub sanitizer: Option<Sanitizer<'a>>,
    pub block: u64,
}

impl Watch<'_> {
    fn moment<'m>(&'m self, event: &'m Event<'m>) -> Moment<'m> {
        Moment {
            launch: self.launch,
            block: self.block,
            warp: event.warp,
            pc: event.pc,
            active: event.active,
            mask: event.mask,
            registers: event.registers,
            view: event.view,
            sanitizer: self.sanitizer.as_ref(),
        }
    }
}

impl Observer for Watch<'_> {
    const ENABLED: bool = true;

    fn fork(&self) -> Self {
        let sanitizer = self.sanitizer.as_ref().map(Observer::fork);
        Watch { launch: self.launch, debugger: self.debugger, sanitizer, block: 0 }
    }

    fn block(&mut self, block: u64, over: &dyn Fn() -> bool) {
        self.block = block;
        if let Some(sanitizer) = &mut self.sanitizer {
            sanitizer.block(block, over);
        }
    }

    fn instruction(&mut self, event: &Event<'_>) -> Outcome {
        self.debugger.instruction(&self.moment(event));
        match &mut self.sanitizer {
            Some(sanitizer) => sanitizer.instruction(event),
            None => Ok(()),
        }
    }

    fn failed(&mut self, event: &Event<'_>, failure: &LaneFault) {
        let thread = (event.warp * LANES) as u32 + failure.lane;
        let found = BlockFault { kind: failure.kind.clone(), pc: event.pc, thread };
        let Launched { module, entry, program, config, .. } = self.launch;
        let (block, position) = (config.block_position(self.block), config.thread_position(thread));
        let fault = module.explain(entry, program, found, block, position);
        self.debugger.failed(&self.moment(event), &fault);
    }

    fn opened(&mut self, barrier: usize, waiting: &[usize]) {
        if let Some(sanitizer) = &mut self.sanitizer {
            sanitizer.opened(barrier, waiting);
        }
    }

    fn merge(&mut self, _: Self) {}
}
