//! On which bits of the thread's number a value depends: none, and all threads of the block have the same; none below
//! 32, and all lanes of a warp have the same.

use super::tables::Tables;
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use cranelift_entity::{EntitySet, SecondaryMap};

/// A set of bits of the thread's number.
pub type Bits = u16;

/// The bits that number the lanes of a warp.
pub const LANE_BITS: Bits = 31;

/// The dependences of all values of a launch.
pub struct Dependence {
    bits: SecondaryMap<Value, Bits>,
    pub threads: usize,
}

impl Dependence {
    pub fn new(kernel: &Kernel, launch: Launch) -> Self {
        let data = &kernel.launches[launch];
        let threads = data.threads.unwrap_or(1) as usize;
        let mut written = EntitySet::new();
        kernel.walk(data.body, &mut |_, inst| {
            if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } =
                kernel.insts[inst].payload
                && kernel.insts[inst].opcode.info().effect.shows()
            {
                written.insert(buffer);
            }
        });
        let all = threads.next_power_of_two() as u32 - 1;
        let tables = Tables::new(kernel, threads);
        let mut found =
            Finder { kernel, tables, written, all: all as Bits, bits: SecondaryMap::new(), changed: true };
        // Values that go round a loop are found to depend on ever more, until they do not.
        while std::mem::take(&mut found.changed) {
            found.block(data.body);
        }
        Self { bits: found.bits, threads }
    }

    pub fn of(&self, value: Value) -> Bits {
        self.bits[value]
    }

    /// What decides whether, and how often, the regions of an instruction run.
    pub fn of_control(&self, kernel: &Kernel, inst: Inst) -> Bits {
        control(kernel, inst, &self.bits)
    }
}

fn control(kernel: &Kernel, inst: Inst, bits: &SecondaryMap<Value, Bits>) -> Bits {
    let data = &kernel.insts[inst];
    let all = |values: &[Value]| values.iter().fold(0, |all, value| all | bits[*value]);
    match data.opcode {
        Opcode::If => all(&data.arguments[..1]),
        Opcode::For => all(&data.arguments[..3]),
        Opcode::Forall | Opcode::Reduce => all(&data.arguments),
        Opcode::While => all(kernel.yields(data.regions[0])),
        _ => 0,
    }
}

struct Finder<'k> {
    kernel: &'k Kernel,
    tables: Tables<'k>,
    written: EntitySet<Buffer>,
    /// All bits that the launch's threads have.
    all: Bits,
    bits: SecondaryMap<Value, Bits>,
    changed: bool,
}

impl Finder<'_> {
    fn add(&mut self, value: Value, bits: Bits) {
        let now = self.bits[value] | bits;
        if now != self.bits[value] {
            self.bits[value] = now;
            self.changed = true;
        }
    }

    fn block(&mut self, block: Block) {
        let kernel = self.kernel;
        for inst in &kernel.blocks[block].insts {
            let data = &kernel.insts[*inst];
            if data.regions.is_empty() {
                if !data.results.is_empty() {
                    let bits = self.plain(*inst);
                    data.results.iter().for_each(|value| self.add(*value, bits));
                }
                continue;
            }
            self.structured(*inst);
        }
    }

    /// An instruction without regions.
    fn plain(&mut self, inst: Inst) -> Bits {
        let data = &self.kernel.insts[inst];
        let operands = data.arguments.iter().fold(0, |all, value| all | self.bits[*value]);
        match (data.opcode, &data.payload) {
            (Opcode::ThreadIndex, _) => self.all,
            // Each lane gets other elements.
            (opcode, _) if opcode.loads_matrices() || opcode == Opcode::Mma => operands | self.all,
            (opcode, Payload::Access { buffer, .. }) if opcode.is_load() => {
                match self.kernel.buffers[*buffer].kind {
                    BufferKind::Private => self.all,
                    // Without races all threads see the same elements.
                    BufferKind::Shared => operands,
                    _ if self.written.contains(*buffer) => self.all,
                    _ => operands,
                }
            }
            _ if operands == 0 => 0,
            (
                Opcode::Add
                | Opcode::Mul
                | Opcode::Min
                | Opcode::Max
                | Opcode::And
                | Opcode::Or
                | Opcode::Xor,
                _,
            ) if self.meets(&data.arguments).is_some() => {
                operands & !self.meets(&data.arguments).unwrap_or(0)
            }
            // The lower lane's part, or the upper one's: the same for both lanes that meet.
            (Opcode::Select, _) if self.chosen(&data.arguments).is_some() => {
                operands & !self.chosen(&data.arguments).unwrap_or(0)
            }
            (Opcode::And | Opcode::Shr | Opcode::Rem | Opcode::Div, _)
            | (Opcode::Eq | Opcode::Ne | Opcode::Lt | Opcode::Le | Opcode::Gt | Opcode::Ge, _)
                if self.kernel.value_type(data.arguments[0]) == Scalar::I64 =>
            {
                match self.tables.of(data.results[0]) {
                    Some(table) => told_apart(&table),
                    None => operands,
                }
            }
            _ => operands,
        }
    }

    /// The bit in which two lanes differ that combine the same two values, each its own and the other's: they get the
    /// same.
    fn meets(&self, operands: &[Value]) -> Option<Bits> {
        let [a, b] = operands else { return None };
        let other = |a: &Value, b: &Value| {
            let data = self.kernel.definition_data(*b)?;
            match data.payload {
                Payload::Lanes(mask) if data.arguments.first() == Some(a) && mask.is_power_of_two() => {
                    Some(Bits::from(mask))
                }
                _ => None,
            }
        };
        other(a, b).or_else(|| other(b, a))
    }

    /// The bit in which two lanes differ of which one chooses its own value and the other one that lane's.
    fn chosen(&mut self, operands: &[Value]) -> Option<Bits> {
        let [condition, values @ ..] = operands else { return None };
        let bit = self.meets(values)?;
        let table = self.tables.of(*condition)?;
        let other = |at: usize| table.get(at ^ usize::from(bit));
        let differs = |at: usize| other(at).is_some_and(|other| *other != table[at]);
        (0..table.len()).all(differs).then_some(bit)
    }

    fn structured(&mut self, inst: Inst) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        for region in &data.regions {
            self.block(*region);
        }
        let control = control(kernel, inst, &self.bits);
        let ends = |this: &Self, region: usize, at: usize| {
            data.regions
                .get(region)
                .and_then(|region| kernel.yields(*region).get(at))
                .map_or(0, |value| this.bits[*value])
        };
        let initial = match data.opcode {
            Opcode::For => data.arguments.get(3..).unwrap_or_default(),
            Opcode::While => data.arguments.as_slice(),
            _ => &[],
        };
        let index_count = if data.opcode == Opcode::While { 0 } else { kernel.loop_bounds(inst).len() };
        for region in &data.regions {
            let params = kernel.blocks[*region].params.clone();
            for (at, param) in params.into_iter().enumerate() {
                let bits = if at < index_count {
                    let step = if data.opcode == Opcode::For { self.bits[data.arguments[2]] } else { 0 };
                    self.bits[data.arguments[2 * at]] | step
                } else {
                    let carried = at - index_count;
                    let body = data.regions.len() - 1;
                    initial.get(carried).map_or(0, |value| self.bits[*value]) | ends(self, body, carried)
                };
                self.add(param, bits);
            }
        }
        for (at, result) in data.results.iter().enumerate() {
            let first = initial.get(at).map_or(0, |value| self.bits[*value]);
            let regions = match data.opcode {
                Opcode::While => ends(self, 1, at),
                _ => (0..data.regions.len()).fold(0, |all, region| all | ends(self, region, at)),
            };
            self.add(*result, control | first | regions);
        }
    }
}

/// The bits of the thread's number that make a difference.
fn told_apart(table: &[i64]) -> Bits {
    let bits = table.len().next_power_of_two().trailing_zeros();
    let differs = |bit: u32| {
        (0..table.len()).any(|at| table.get(at ^ (1 << bit)).is_some_and(|other| *other != table[at]))
    };
    (0..bits).filter(|bit| differs(*bit)).fold(0, |all, bit| all | 1 << bit)
}
