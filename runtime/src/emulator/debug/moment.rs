//! What there is to look at while a launch stands still.

use super::names::Names;
use crate::emulator::exec::lanes::{LANES, Registers};
use crate::emulator::exec::memory::View;
use crate::emulator::fault::SourceLocation;
use crate::emulator::launch::{ArgValue, LaunchConfig};
use crate::emulator::memory::Memory;
use crate::emulator::module::LoadedModule;
use crate::emulator::opcodes::{Control, MemorySpace};
use crate::emulator::program::{Code, Place, Program};
use crate::emulator::sanitize::Sanitizer;
use cranelift_entity::EntityRef;
use krn_compiler::ptx::{self, Entry, Operand, Reg, Symbol};

/// A launch that is looked at.
pub struct Launched<'a> {
    pub(in crate::emulator) module: &'a LoadedModule,
    pub(in crate::emulator) entry: &'a Entry,
    pub(in crate::emulator) program: &'a Program,
    pub(in crate::emulator) config: &'a LaunchConfig<'a>,
    pub(in crate::emulator) args: &'a [ArgValue],
    pub(in crate::emulator) memory: &'a Memory,
    pub(in crate::emulator) names: Names<'a>,
}

impl<'a> Launched<'a> {
    /// The module that the entry is of.
    pub fn module(&self) -> &'a ptx::Module {
        self.module.source()
    }

    pub fn entry(&self) -> &'a Entry {
        self.entry
    }

    /// Where the source's names are.
    pub fn names(&self) -> &Names<'a> {
        &self.names
    }

    /// Blocks of the grid, x y z.
    pub fn grid(&self) -> [u32; 3] {
        self.config.grid
    }

    /// Threads of a block, x y z.
    pub fn block(&self) -> [u32; 3] {
        self.config.block
    }

    /// How many instructions the entry has.
    pub fn instructions(&self) -> usize {
        self.program.code.len()
    }

    /// The statement of the entry's body that an instruction is.
    pub fn statement(&self, pc: usize) -> usize {
        self.program.statements.get(pc).map_or(self.entry.body.len(), |statement| *statement as usize)
    }

    /// Where an instruction comes from.
    pub fn location(&self, pc: usize) -> Option<SourceLocation> {
        self.module.location(self.program, self.names.origin(pc))
    }

    /// The line that an instruction comes from; 0 where nobody knows, and for what ends a thread: it is of no line.
    pub fn line(&self, pc: usize) -> u32 {
        let is_end = self.program.code.get(pc).is_none_or(|inst| inst.code == Code::Control(Control::Exit));
        let loc = self.program.locations.get(self.names.origin(pc)).copied().flatten();
        loc.filter(|_| !is_end).map_or(0, |loc| loc.line)
    }

    /// An instruction as text.
    pub fn text(&self, pc: usize) -> String {
        match self.entry.body.get(self.statement(pc)) {
            Some(ptx::Statement::Instruction(instruction)) => {
                let text = ptx::print_instruction(self.entry, &self.module().variables, instruction);
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            }
            _ => "ret; // the end of the entry".to_owned(),
        }
    }

    /// The bytes of a parameter, by its name in the entry.
    pub fn argument(&self, name: &str) -> Option<&[u8]> {
        let at = self.entry.params.values().position(|param| param.name == name)?;
        self.args.get(at).map(|arg| arg.0.as_slice())
    }
}

/// A warp that is about to execute an instruction.
pub struct Moment<'a> {
    pub launch: &'a Launched<'a>,
    /// The block's number, x first.
    pub block: u64,
    /// The warp within its block.
    pub warp: usize,
    /// The instruction, by its place in the program.
    pub pc: usize,
    /// The lanes on this path.
    pub active: u32,
    /// Those of them for which the instruction's guard holds.
    pub mask: u32,
    pub(super) registers: &'a Registers,
    pub(super) view: &'a View<'a>,
    pub(super) sanitizer: Option<&'a Sanitizer<'a>>,
}

impl Moment<'_> {
    /// Where the block is, x y z.
    pub fn block_position(&self) -> [u32; 3] {
        self.launch.config.block_position(self.block)
    }

    /// The lanes that there are: all but in a block's last warp.
    pub fn lanes(&self) -> usize {
        let rest = self.launch.config.threads().saturating_sub((self.warp * LANES) as u64);
        (rest as usize).min(LANES)
    }

    /// Where a lane's thread is in its block, x y z.
    pub fn thread_position(&self, lane: usize) -> [u32; 3] {
        self.launch.config.thread_position((self.warp * LANES + lane) as u32)
    }

    /// The bits of a register in all lanes.
    pub fn register(&self, reg: Reg) -> Option<[u64; LANES]> {
        Some(match *self.launch.program.registers.get(reg.index())? {
            Place::Wide32(column) => self.registers.c32(column).map(u64::from),
            Place::Wide64(column) => *self.registers.c64(column),
            Place::Predicate(column) => {
                let bits = self.registers.predicate(column);
                std::array::from_fn(|lane| u64::from(bits >> lane & 1))
            }
        })
    }

    /// The bits of a register or a constant in all lanes.
    pub fn bits(&self, operand: Operand) -> Option<[u64; LANES]> {
        match operand {
            Operand::Reg(reg) => self.register(reg),
            Operand::Int(value) => Some([value as u64; LANES]),
            Operand::F32(bits) => Some([bits.into(); LANES]),
            Operand::F64(bits) => Some([bits; LANES]),
            Operand::Special(_) | Operand::Symbol(..) => None,
        }
    }

    /// Bytes of global or constant memory; `None` where they do not lie in one allocation.
    pub fn memory(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let mut found = vec![0; bytes];
        self.launch.memory.copy_out(address, &mut found).ok()?;
        Some(found)
    }

    /// Whether somebody has written these bytes of global memory; true where nobody keeps track.
    pub fn is_written(&self, address: u64, bytes: u64) -> bool {
        let memory = self.launch.memory;
        memory.find(address).is_none_or(|at| {
            let allocation = &memory.allocations()[at];
            let offset = address - allocation.base;
            offset + bytes <= allocation.size && allocation.is_written(offset, bytes)
        })
    }

    /// Where a variable of shared or local memory starts there.
    pub fn variable(&self, variable: Symbol) -> Option<u64> {
        let program = self.launch.program;
        match variable {
            Symbol::Entry(variable) => program.variables.get(variable.index()).copied(),
            Symbol::Module(_) => Some(program.shared_bytes),
            Symbol::Param(_) => None,
        }
    }

    /// Bytes of the block's shared memory.
    pub fn shared(&self, offset: u64, bytes: usize) -> Option<Vec<u8>> {
        self.view.shared.bytes(offset, bytes)
    }

    /// Whether some thread of the block has written these bytes; `None` where nobody keeps track.
    pub fn is_shared_written(&self, offset: u64, bytes: u64) -> Option<bool> {
        self.sanitizer.map(|sanitizer| sanitizer.has_written(offset, bytes))
    }

    /// Bytes of a lane's local memory.
    pub fn local(&self, lane: usize, offset: u64, bytes: usize) -> Option<Vec<u8>> {
        let stride = self.view.local_stride;
        let start = (self.warp * LANES + lane) as u64 * stride;
        (offset + bytes as u64 <= stride).then(|| self.view.local.bytes(start + offset, bytes))?
    }

    /// Whether the instruction takes a record of failures at this address for its thread: a check has failed.
    pub fn claims(&self, record: u64) -> bool {
        let i = &self.launch.program.code[self.pc];
        let Code::Atomic(form) = i.code else { return false };
        if self.mask == 0 || !form.wide_base || form.space != MemorySpace::Global {
            return false;
        }
        let lane = self.mask.trailing_zeros() as usize;
        self.registers.c64(i.a)[lane].wrapping_add(i.imm as u64) == record
    }

    /// Whether the instruction always jumps to an earlier one: behind what records a failure, back to the check.
    pub fn goes_back(&self) -> bool {
        self.launch.names.goes_back(self.pc)
    }
}
