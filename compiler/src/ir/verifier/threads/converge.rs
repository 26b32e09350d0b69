//! Whether every barrier and shuffle is reached by all the threads that it names.

use super::depends::{Bits, Dependence, LANE_BITS};
use super::{VerifierError, text};
use crate::ir::entities::{Block, Inst, Launch};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;

/// The barriers and shuffles that some threads may not reach.
pub fn check(kernel: &Kernel, launch: Launch, depends: &Dependence) -> Vec<VerifierError> {
    let mut checker = Checker { kernel, depends, around: Vec::new(), errors: Vec::new() };
    checker.block(kernel.launches[launch].body);
    checker.errors
}

struct Checker<'k> {
    kernel: &'k Kernel,
    depends: &'k Dependence,
    /// The instructions around, with what each lets its regions depend on.
    around: Vec<(Inst, Bits)>,
    errors: Vec<VerifierError>,
}

impl Checker<'_> {
    fn block(&mut self, block: Block) {
        let kernel = self.kernel;
        for inst in &kernel.blocks[block].insts {
            let data = &kernel.insts[*inst];
            match (data.opcode, &data.payload) {
                (Opcode::Barrier, _) => self.reached(*inst, Bits::MAX, "all threads of the block"),
                (Opcode::ShuffleXor, Payload::Lanes(mask)) => {
                    let lanes = self.depends.threads.min(32);
                    if usize::from(*mask) >= lanes.next_power_of_two() || !lanes.is_power_of_two() {
                        self.fail(*inst, format!("some of the {lanes} lanes have no partner"));
                    }
                    self.reached(*inst, LANE_BITS, "all lanes of the warp");
                }
                (opcode, _) if opcode.is_of_warp() => {
                    if !self.depends.threads.is_multiple_of(32) {
                        self.fail(*inst, "a warp of the launch has fewer than 32 lanes".to_string());
                    }
                    self.reached(*inst, LANE_BITS, "all lanes of the warp");
                }
                _ => {}
            }
            if !data.regions.is_empty() {
                self.around.push((*inst, self.depends.of_control(kernel, *inst)));
                data.regions.iter().for_each(|region| self.block(*region));
                self.around.pop();
            }
        }
    }

    fn reached(&mut self, inst: Inst, bits: Bits, who: &str) {
        if let Some((guard, _)) = self.around.iter().find(|(_, control)| control & bits != 0) {
            let what = match self.kernel.insts[*guard].opcode {
                Opcode::If => "the condition",
                _ => "the number of turns",
            };
            let guard = text(self.kernel, *guard);
            self.fail(inst, format!("must be reached by {who}, but {what} of {guard} may differ among them"));
        }
    }

    fn fail(&mut self, inst: Inst, message: String) {
        let spans = vec![self.kernel.insts[inst].span];
        self.errors.push(VerifierError { place: text(self.kernel, inst), message, spans });
    }
}
