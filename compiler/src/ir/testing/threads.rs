//! Runs launches with explicit threads: all threads of a block take each instruction together, those that are at it. So they
//! can exchange values and wait for each other; that barriers stand where they must is the verifier's to say.

use super::interpreter::{Interpreter, Memory, Stop, as_int, element_bits};
use crate::atoms::{MatrixAtom, WARP};
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, FactorType, Payload};
use crate::ir::op::{Constant, Opcode};
use cranelift_entity::SecondaryMap;

/// What each thread of a block has for itself.
struct Thread {
    values: SecondaryMap<Value, Option<Constant>>,
    /// Buffers of which each thread has one.
    private: Memory,
}

/// The threads of a block.
pub struct Team {
    threads: Vec<Thread>,
}

/// What a region yields, for each thread that was at it.
type Yielded = Vec<Vec<Constant>>;

impl Interpreter<'_> {
    /// Runs a block of so many threads.
    pub fn team(&mut self, body: Block, threads: usize) -> Result<(), Stop> {
        let private = |interpreter: &Self| {
            let own = |buffer: &Buffer| interpreter.kernel.buffers[*buffer].kind == BufferKind::Private;
            let memory = interpreter.memory.iter().filter(|((buffer, _), _)| own(buffer));
            memory.map(|(key, scalars)| (*key, scalars.clone())).collect()
        };
        let thread = |_| Thread { values: SecondaryMap::new(), private: private(self) };
        let mut team = Team { threads: (0..threads).map(thread).collect() };
        let all: Vec<usize> = (0..threads).collect();
        self.team_block(body, &all, &mut team).map(drop)
    }

    /// Does something as one of the threads.
    fn as_thread<T>(&mut self, thread: usize, team: &mut Team, act: impl FnOnce(&mut Self) -> T) -> T {
        let swap = |interpreter: &mut Self, team: &mut Team| {
            let own = &mut team.threads[thread];
            std::mem::swap(&mut interpreter.values, &mut own.values);
            for (key, scalars) in &mut own.private {
                if let Some(place) = interpreter.memory.get_mut(key) {
                    std::mem::swap(place, scalars);
                }
            }
        };
        swap(self, team);
        self.place_in_grid[3] = thread as i128;
        let result = act(self);
        swap(self, team);
        result
    }

    /// The operands of an instruction, for each of some threads.
    fn operands_of(&mut self, inst: Inst, active: &[usize], team: &mut Team) -> Yielded {
        let arguments = &self.kernel.insts[inst].arguments;
        let operands =
            |interpreter: &mut Self| arguments.iter().map(|value| interpreter.get(*value)).collect();
        active.iter().map(|thread| self.as_thread(*thread, team, operands)).collect()
    }

    fn give(&mut self, values: &[Value], thread: usize, scalars: Vec<Constant>, team: &mut Team) {
        for (value, scalar) in values.iter().zip(scalars) {
            team.threads[thread].values[*value] = Some(scalar);
        }
    }

    /// Runs a block for the threads that are at it.
    fn team_block(&mut self, block: Block, active: &[usize], team: &mut Team) -> Result<Yielded, Stop> {
        for inst in &self.kernel.blocks[block].insts {
            self.fuel = self.fuel.checked_sub(active.len() as u64).ok_or(Stop::OutOfFuel)?;
            if self.kernel.insts[*inst].opcode == Opcode::Yield {
                return Ok(self.operands_of(*inst, active, team));
            }
            self.team_inst(*inst, active, team)?;
        }
        Ok(Vec::new())
    }

    fn team_inst(&mut self, inst: Inst, active: &[usize], team: &mut Team) -> Result<(), Stop> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        match (data.opcode, &data.payload) {
            (Opcode::Barrier | Opcode::WarpBarrier | Opcode::CopyCommit | Opcode::CopyWait, _) => {}
            (Opcode::ShuffleXor, Payload::Lanes(mask)) => {
                let operands = self.operands_of(inst, active, team);
                for (at, thread) in active.iter().enumerate() {
                    let other = active.iter().position(|other| *other == thread ^ usize::from(*mask));
                    let value = operands[other.unwrap_or(at)][0];
                    self.give(&data.results, *thread, vec![value], team);
                }
            }
            (Opcode::Mma, Payload::Mma { left, right }) => self.mma(inst, (*left, *right), active, team),
            (opcode, Payload::Access { buffer, .. }) if opcode.loads_matrices() => {
                self.load_matrix(inst, *buffer, active, team)?;
            }
            (Opcode::If, _) => {
                let conditions = self.operands_of(inst, active, team);
                for (region, taken) in data.regions.iter().zip([true, false]) {
                    let at = active.iter().zip(&conditions);
                    let at: Vec<usize> = at
                        .filter(|(_, condition)| (condition[0] == Constant::Bool(true)) == taken)
                        .map(|(thread, _)| *thread)
                        .collect();
                    if at.is_empty() {
                        continue;
                    }
                    let yielded = self.team_block(*region, &at, team)?;
                    for (thread, scalars) in at.into_iter().zip(yielded) {
                        self.give(&data.results, thread, scalars, team);
                    }
                }
            }
            (Opcode::For, _) => self.team_for(inst, active, team)?,
            (Opcode::While, _) => {
                let carried = self.operands_of(inst, active, team);
                for (thread, scalars) in active.iter().zip(carried) {
                    self.give(&data.results, *thread, scalars, team);
                }
                let mut at = active.to_vec();
                while !at.is_empty() {
                    self.carry(inst, 0, 0, &at, team);
                    let holds = self.team_block(data.regions[0], &at, team)?;
                    let still = at.iter().zip(holds).filter(|(_, holds)| holds[..] == [Constant::Bool(true)]);
                    at = still.map(|(thread, _)| *thread).collect();
                    if at.is_empty() {
                        break;
                    }
                    self.carry(inst, 1, 0, &at, team);
                    let yielded = self.team_block(data.regions[1], &at, team)?;
                    for (thread, scalars) in at.iter().zip(yielded) {
                        self.give(&data.results, *thread, scalars, team);
                    }
                }
            }
            // What one thread does without the others.
            _ => {
                for thread in active {
                    let results = self.as_thread(*thread, team, |interpreter| interpreter.inst(inst))?;
                    self.give(&data.results, *thread, results, team);
                }
            }
        }
        Ok(())
    }

    /// A matrix instruction of each warp, all of whose lanes are there.
    fn mma(
        &mut self,
        inst: Inst,
        (left, right): (FactorType, FactorType),
        active: &[usize],
        team: &mut Team,
    ) {
        let data = &self.kernel.insts[inst];
        let atom = MatrixAtom::find(left, right).expect("a matrix instruction");
        let [rows, columns, _] = atom.words();
        let operands = self.operands_of(inst, active, team);
        for (lanes, operands) in active.chunks(WARP).zip(operands.chunks(WARP)) {
            let word = |at: usize| -> [u32; WARP] {
                std::array::from_fn(|lane| element_bits(atom.sum(), operands[lane][at]))
            };
            let bits = |at: usize| -> [u32; WARP] {
                std::array::from_fn(|lane| element_bits(Scalar::U32, operands[lane][at]))
            };
            let left: Vec<_> = (0..rows).map(bits).collect();
            let right: Vec<_> = (rows..rows + columns).map(bits).collect();
            let sums: Vec<_> = (rows + columns..data.arguments.len()).map(word).collect();
            let result = atom.run(&left, &right, &sums);
            for (at, lane) in lanes.iter().enumerate() {
                let of = |bits: u32| match atom.sum() {
                    Scalar::F32 => Constant::F32(bits),
                    scalar => Constant::Int(scalar, i128::from(bits as i32)),
                };
                let own = result.iter().map(|lanes| of(lanes[at])).collect();
                self.give(&data.results, *lane, own, team);
            }
        }
    }

    /// Fragments from shared memory for each warp, all of whose lanes are there.
    fn load_matrix(
        &mut self,
        inst: Inst,
        buffer: Buffer,
        active: &[usize],
        team: &mut Team,
    ) -> Result<(), Stop> {
        let data = &self.kernel.insts[inst];
        let scalar = self.kernel.buffers[buffer].element.leaves[0].scalar;
        let operands = self.operands_of(inst, active, team);
        for (lanes, operands) in active.chunks(WARP).zip(operands.chunks(WARP)) {
            // The rows of all words, by the lane that names them.
            let mut rows = Vec::new();
            for indices in &operands[..8 * data.results.len()] {
                let places = self.neighbours(buffer, 0, indices, 16 / scalar.size() as usize)?;
                let element =
                    |(leaf, at): &(u32, usize)| element_bits(scalar, self.memory[&(buffer, *leaf)][*at]);
                rows.push(places.iter().map(element).collect::<Vec<u32>>());
            }
            for (at, lane) in lanes.iter().enumerate() {
                let word = |number: usize| {
                    let (each, bits) = (4 / scalar.size() as usize, 8 * scalar.size());
                    let part = |part: usize| match data.opcode {
                        Opcode::LoadMatrix => rows[8 * number + at / 4][each * (at % 4) + part],
                        _ => rows[8 * number + 2 * (at % 4) + part][at / 4],
                    };
                    let word =
                        (0..each).map(|at| part(at) << (bits * at as u64)).fold(0, |all, part| all | part);
                    Constant::Int(Scalar::U32, i128::from(word))
                };
                let words = (0..data.results.len()).map(word).collect();
                self.give(&data.results, *lane, words, team);
            }
        }
        Ok(())
    }

    /// Gives what a loop carries, which stands in its results, to the parameters of a region, behind so many others.
    fn carry(&mut self, inst: Inst, region: usize, own: usize, active: &[usize], team: &mut Team) {
        let data = &self.kernel.insts[inst];
        let params = &self.kernel.blocks[data.regions[region]].params;
        for thread in active {
            for (param, result) in params.iter().skip(own).zip(&data.results) {
                let values = &mut team.threads[*thread].values;
                values[*param] = values[*result];
            }
        }
    }

    fn team_for(&mut self, inst: Inst, active: &[usize], team: &mut Team) -> Result<(), Stop> {
        let data = &self.kernel.insts[inst];
        let body = data.regions[0];
        let index = self.kernel.blocks[body].params[0];
        let mut turns = Vec::new();
        for (thread, operands) in active.iter().zip(self.operands_of(inst, active, team)) {
            let [low, high, step] = [0, 1, 2].map(|at| as_int(operands[at]));
            self.give(&data.results, *thread, operands[3..].to_vec(), team);
            turns.push((*thread, low, high, step));
        }
        loop {
            turns.retain(|(_, at, high, _)| at < high);
            if turns.is_empty() {
                return Ok(());
            }
            let at: Vec<usize> = turns.iter().map(|turn| turn.0).collect();
            self.carry(inst, 0, 1, &at, team);
            for (thread, at, ..) in &turns {
                team.threads[*thread].values[index] = Some(Constant::Int(Scalar::I64, *at));
            }
            let yielded = self.team_block(body, &at, team)?;
            for (thread, scalars) in at.iter().zip(yielded) {
                self.give(&data.results, *thread, scalars, team);
            }
            turns.iter_mut().for_each(|(_, at, _, step)| *at += *step);
        }
    }
}
