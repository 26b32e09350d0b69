//! A module on the emulated device: its variables in memory, its entries decoded when first asked for.

use std::sync::{Arc, OnceLock};

use krn_compiler::ptx::{self, Length, Space};

use super::decode::{Addresses, decode};
use super::exec::block::BlockFault;
use super::fault::{Fault, FaultKind, SourceLocation};
use super::launch::ArgValue;
use super::memory::{CONST_WINDOW, DevicePtr, Memory, MemoryError};
use super::program::Program;

/// Constant memory of a module, in bytes, at most.
const CONST_LIMIT: u64 = 64 * 1024;

/// Why a module cannot be loaded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error("the module has {bytes} bytes of constant memory, but at most {CONST_LIMIT} are possible")]
    TooMuchConst { bytes: u64 },
    #[error("variable `{name}` has {given} initial bytes, but {bytes} bytes in all")]
    InitialBytes { name: String, given: u64, bytes: u64 },
}

/// A module-level variable in global or constant memory.
#[derive(Clone, Debug)]
struct Symbol {
    name: String,
    /// The generic address.
    address: DevicePtr,
    bytes: u64,
}

/// A loaded module. It belongs to the emulator that loaded it.
#[derive(Debug)]
pub struct LoadedModule {
    source: Arc<ptx::Module>,
    addresses: Addresses,
    symbols: Vec<Symbol>,
    programs: Vec<OnceLock<Program>>,
}

impl LoadedModule {
    pub(super) fn load(memory: &mut Memory, module: &ptx::Module) -> Result<Self, LoadError> {
        let constants = module.variables.values().filter(|variable| variable.space == Space::Const);
        let bytes: u64 = constants.map(ptx::Variable::bytes).fold(0, u64::saturating_add);
        if bytes > CONST_LIMIT {
            return Err(LoadError::TooMuchConst { bytes });
        }
        let mut loaded = LoadedModule {
            source: Arc::new(module.clone()),
            addresses: Vec::new(),
            symbols: Vec::new(),
            programs: module.entries.iter().map(|_| OnceLock::new()).collect(),
        };
        let outcome = loaded.place_variables(memory);
        if outcome.is_err() {
            // What was placed before the failure is given back; that cannot fail.
            let _ = loaded.free_variables(memory);
        }
        outcome.map(|()| loaded)
    }

    fn place_variables(&mut self, memory: &mut Memory) -> Result<(), LoadError> {
        let source = Arc::clone(&self.source);
        for variable in source.variables.values() {
            let bytes = variable.bytes();
            let (own, generic) = match variable.space {
                Space::Global if variable.length != Length::Unsized => {
                    let address = memory.alloc_variable(bytes, &variable.name)?;
                    (address, address)
                }
                Space::Const => {
                    let address = memory.alloc_const(bytes, &variable.name)?;
                    (address - CONST_WINDOW, address)
                }
                // Shared memory is laid out for each entry.
                _ => {
                    self.addresses.push(0);
                    continue;
                }
            };
            self.addresses.push(own);
            self.symbols.push(Symbol { name: variable.name.clone(), address: generic, bytes });
            if let Some(init) = &variable.init {
                let given = init.len() as u64;
                if given > bytes {
                    return Err(LoadError::InitialBytes { name: variable.name.clone(), given, bytes });
                }
                memory.copy_in(generic, init)?;
            }
            memory.mark_written(generic, bytes);
        }
        Ok(())
    }

    pub(super) fn unload(self, memory: &mut Memory) -> Result<(), MemoryError> {
        self.free_variables(memory)
    }

    fn free_variables(&self, memory: &mut Memory) -> Result<(), MemoryError> {
        self.symbols.iter().try_for_each(|symbol| memory.free(symbol.address))
    }

    /// The PTX that was loaded.
    pub fn source(&self) -> &ptx::Module {
        &self.source
    }

    /// The address and the size in bytes of a module-level variable in global or constant memory.
    pub fn symbol(&self, name: &str) -> Option<(DevicePtr, u64)> {
        self.symbols.iter().find(|symbol| symbol.name == name).map(|symbol| (symbol.address, symbol.bytes))
    }

    /// An entry and its decoded form.
    pub(super) fn program(&self, name: &str) -> Option<(&ptx::Entry, &Program)> {
        let at = self.source.entries.iter().position(|entry| entry.name == name)?;
        let entry = &self.source.entries[at];
        Some((entry, self.programs[at].get_or_init(|| decode(&self.source, entry, &self.addresses))))
    }

    /// Where in the source an instruction came from.
    pub(super) fn location(&self, program: &Program, pc: usize) -> Option<SourceLocation> {
        program.locations.get(pc).copied().flatten().map(|loc| SourceLocation {
            file: self.source.file_name(loc.file).unwrap_or("?").to_owned(),
            line: loc.line,
            column: loc.column,
        })
    }

    /// A fault with its place in the source.
    pub(super) fn explain(
        &self,
        entry: &ptx::Entry,
        program: &Program,
        fault: BlockFault,
        block: [u32; 3],
        thread: [u32; 3],
    ) -> Fault {
        let location = |pc: usize| self.location(program, pc);
        let instruction = |pc: usize| {
            let statement = program.statements.get(pc).and_then(|at| entry.body.get(*at as usize));
            match statement {
                Some(ptx::Statement::Instruction(instruction)) => {
                    let text = ptx::print_instruction(entry, &self.source.variables, instruction);
                    text.split_whitespace().collect::<Vec<_>>().join(" ")
                }
                _ => "the end of the entry".to_owned(),
            }
        };
        let mut kind = fault.kind;
        if let FaultKind::Race { other, .. } = &mut kind {
            other.location = location(other.pc);
            other.instruction = instruction(other.pc);
        }
        let (location, instruction) = (location(fault.pc), instruction(fault.pc));
        Fault { kind, entry: entry.name.clone(), location, instruction, block, thread }
    }
}

/// The parameter buffer of an entry, filled with arguments.
pub(super) fn param_bytes(entry: &ptx::Entry, args: &[ArgValue]) -> Result<Vec<u8>, String> {
    if args.len() != entry.params.len() {
        return Err(format!("parameters: {}, arguments: {}", entry.params.len(), args.len()));
    }
    let (offsets, size) = entry.param_layout();
    let mut buffer = vec![0; size as usize];
    for ((param, offset), arg) in entry.params.values().zip(offsets).zip(args) {
        if arg.0.len() as u64 != param.bytes() {
            return Err(format!(
                "parameter `{}` has {} bytes, its argument {}",
                param.name,
                param.bytes(),
                arg.0.len()
            ));
        }
        buffer[offset as usize..][..arg.0.len()].copy_from_slice(&arg.0);
    }
    Ok(buffer)
}
