//! Runs launches of phase `tiled`, a block at a time: what works element by element is run for each element, by the same
//! code as scalars are.

use super::interpreter::{Interpreter, Stop, as_int, combine, element_bits};
use crate::atoms::numerics::{self, Number};
use crate::data::Scalar;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::evaluate;
use crate::ir::kernel::{Atom, AxisSet, FactorType, Payload, Tiling};
use crate::ir::op::{Combiner, Constant, Opcode};

/// The elements of a value, the last axis fastest; of a scalar one.
type Elements = Vec<Constant>;

impl Interpreter<'_> {
    /// Runs the program of a block, or a region of it; what it yields, element by element.
    pub fn tile_block(&mut self, block: Block, tiling: &Tiling) -> Result<Vec<(AxisSet, Elements)>, Stop> {
        for inst in &self.kernel.blocks[block].insts {
            let data = &self.kernel.insts[*inst];
            if data.opcode == Opcode::Yield {
                return Ok(data.arguments.iter().map(|value| self.elements(*value, tiling)).collect());
            }
            self.tile_inst(*inst, tiling)?;
        }
        Ok(Vec::new())
    }

    fn elements(&self, value: Value, tiling: &Tiling) -> (AxisSet, Elements) {
        let axes = self.kernel.tile(value).axes;
        match axes.is_empty() {
            true => (axes, vec![self.get(value)]),
            false => {
                let elements = self.tiles[value].clone();
                let elements = elements.unwrap_or_else(|| panic!("{value} is used before its definition"));
                debug_assert_eq!(elements.len() as u64, tiling.elements(axes));
                (axes, elements)
            }
        }
    }

    /// Gives a value elements that have its axes, or some of them.
    fn assign(&mut self, value: Value, (axes, elements): (AxisSet, Elements), tiling: &Tiling) {
        let own = self.kernel.tile(value).axes;
        if own.is_empty() {
            self.values[value] = Some(elements[0]);
            return;
        }
        let all = points(tiling, own).iter().map(|point| elements[place(tiling, axes, point)]).collect();
        self.tiles[value] = Some(all);
    }

    fn assign_all(&mut self, values: &[Value], elements: Vec<(AxisSet, Elements)>, tiling: &Tiling) {
        for (value, elements) in values.iter().zip(elements) {
            self.assign(*value, elements, tiling);
        }
    }

    fn tile_inst(&mut self, inst: Inst, tiling: &Tiling) -> Result<(), Stop> {
        let data = &self.kernel.insts[inst];
        let scalar = |interpreter: &Self, at: usize| interpreter.get(data.arguments[at]);
        let params = |region: usize| &self.kernel.blocks[data.regions[region]].params;
        match (data.opcode, &data.payload) {
            (Opcode::If, _) => {
                let taken = usize::from(scalar(self, 0) != Constant::Bool(true));
                let yielded = self.tile_block(data.regions[taken], tiling)?;
                self.assign_all(&data.results, yielded, tiling);
            }
            (Opcode::For, _) => {
                let [mut index, high, step] = [0, 1, 2].map(|at| as_int(scalar(self, at)));
                let carried = data.arguments[3..].iter().map(|value| self.elements(*value, tiling)).collect();
                // As they lie in the loop: an initial value may lack axes.
                self.assign_all(&data.results, carried, tiling);
                while index < high {
                    let carried: Vec<_> =
                        data.results.iter().map(|value| self.elements(*value, tiling)).collect();
                    self.values[params(0)[0]] = Some(Constant::Int(Scalar::I64, index));
                    self.assign_all(&params(0)[1..], carried, tiling);
                    let yielded = self.tile_block(data.regions[0], tiling)?;
                    self.assign_all(&data.results, yielded, tiling);
                    index += step;
                }
            }
            (Opcode::While, _) => {
                let mut carried: Vec<_> =
                    data.arguments.iter().map(|value| self.elements(*value, tiling)).collect();
                loop {
                    self.assign_all(&data.results, carried, tiling);
                    carried = data.results.iter().map(|value| self.elements(*value, tiling)).collect();
                    self.assign_all(params(0), carried.clone(), tiling);
                    let condition = self.tile_block(data.regions[0], tiling)?;
                    if condition[0].1 != [Constant::Bool(true)] {
                        return Ok(());
                    }
                    self.assign_all(params(1), carried, tiling);
                    carried = self.tile_block(data.regions[1], tiling)?;
                }
            }
            (_, Payload::Along { axes, combiners }) => self.along(inst, (*axes, combiners), tiling)?,
            (_, Payload::Contract { along, atom: Atom::Fma }) => self.contract(inst, *along, tiling)?,
            (_, Payload::Contract { along, atom }) => self.matrices(inst, (*along, *atom), tiling)?,
            _ => self.by_elements(inst, tiling)?,
        }
        Ok(())
    }

    /// Runs an op for each element of its operands and its result.
    fn by_elements(&mut self, inst: Inst, tiling: &Tiling) -> Result<(), Stop> {
        let data = &self.kernel.insts[inst];
        let values = data.arguments.iter().chain(&data.results);
        let axes = values.fold(AxisSet::EMPTY, |axes, value| axes.union(self.kernel.tile(*value).axes));
        let mut elements = Elements::new();
        for point in points(tiling, axes) {
            self.fuel = self.fuel.checked_sub(1).ok_or(Stop::OutOfFuel)?;
            self.point = point;
            elements.extend(match (data.opcode, &data.payload) {
                (Opcode::Convert, _) => vec![self.get(data.arguments[0])],
                (_, Payload::Index(axis)) => {
                    vec![Constant::Int(Scalar::I64, i128::from(self.point[usize::from(*axis)]))]
                }
                _ => self.inst(inst)?,
            });
        }
        if let [result] = data.results[..] {
            self.assign(result, (axes, elements), tiling);
        }
        Ok(())
    }

    /// Adds products along axes to sums, in the order of the axes.
    fn contract(&mut self, inst: Inst, along: AxisSet, tiling: &Tiling) -> Result<(), Stop> {
        let data = &self.kernel.insts[inst];
        let [left, right, sum] = [0, 1, 2].map(|at| data.arguments[at]);
        let kept = self.kernel.tile(data.results[0]).axes;
        let of = |opcode, operands: &[Constant]| {
            evaluate(opcode, &Payload::None, operands).expect("numbers of one type")
        };
        let mut sums = Elements::new();
        for outer in points(tiling, kept) {
            self.point.clone_from(&outer);
            let mut total = self.get(sum);
            for inner in points(tiling, along) {
                self.fuel = self.fuel.checked_sub(1).ok_or(Stop::OutOfFuel)?;
                self.point = outer.iter().zip(&inner).map(|(outer, inner)| outer + inner).collect();
                let product = of(Opcode::Mul, &[self.get(left), self.get(right)]);
                total = of(Opcode::Add, &[total, product]);
            }
            sums.push(total);
        }
        self.assign(data.results[0], (kept, sums), tiling);
        Ok(())
    }

    /// Adds products along axes to sums as the instructions of a matrix atom do: so many steps at once, the last axis fastest.
    fn matrices(&mut self, inst: Inst, (along, atom): (AxisSet, Atom), tiling: &Tiling) -> Result<(), Stop> {
        let data = &self.kernel.insts[inst];
        let [left, right, sum] = [0, 1, 2].map(|at| data.arguments[at]);
        let types = [left, right].map(|value| FactorType::of(atom, self.kernel.value_type(value)));
        let types = types.map(|factor| factor.expect("a factor of a matrix atom"));
        let kept = self.kernel.tile(data.results[0]).axes;
        let steps = points(tiling, along);
        let mut sums = Elements::new();
        for outer in points(tiling, kept) {
            self.point.clone_from(&outer);
            let mut total = self.get(sum);
            for chunk in steps.chunks(8 * types[0].per_word()) {
                let mut factors = [Vec::new(), Vec::new()];
                for inner in chunk {
                    self.fuel = self.fuel.checked_sub(1).ok_or(Stop::OutOfFuel)?;
                    self.point = outer.iter().zip(inner).map(|(outer, inner)| outer + inner).collect();
                    for ((list, value), factor) in factors.iter_mut().zip([left, right]).zip(types) {
                        list.push(Number::of(factor, element_bits(factor.scalar(), self.get(value))));
                    }
                }
                let products = factors[0].iter().zip(&factors[1]);
                total = match total {
                    Constant::F32(bits) => Constant::F32(numerics::dot(&factors[0], &factors[1], bits)),
                    Constant::Int(scalar, before) => {
                        let added = products.map(|(left, right)| (left.value() * right.value()) as i128);
                        Constant::Int(scalar, i128::from((before + added.sum::<i128>()) as i32))
                    }
                    other => panic!("{other:?} is no sum of a matrix atom"),
                };
            }
            sums.push(total);
        }
        self.assign(data.results[0], (kept, sums), tiling);
        Ok(())
    }

    /// Combines elements along axes in their order.
    fn along(
        &mut self,
        inst: Inst,
        (axes, combiners): (AxisSet, &[Combiner]),
        tiling: &Tiling,
    ) -> Result<(), Stop> {
        let data = &self.kernel.insts[inst];
        let kept = self.kernel.tile(data.results[0]).axes;
        let mut combined: Vec<Elements> = vec![Elements::new(); data.results.len()];
        for outer in points(tiling, kept) {
            let mut state = Vec::new();
            for combiner in combiners {
                let first = self.kernel.value_type(data.results[state.len()]);
                state.extend(self.kernel.identities(*combiner, first));
            }
            for inner in points(tiling, axes) {
                self.fuel = self.fuel.checked_sub(1).ok_or(Stop::OutOfFuel)?;
                self.point = outer.iter().zip(&inner).map(|(outer, inner)| outer + inner).collect();
                if let Some(mask) = data.arguments.get(data.results.len())
                    && self.get(*mask) != Constant::Bool(true)
                {
                    continue;
                }
                let mut at = 0;
                for combiner in combiners {
                    let part = at..at + combiner.width();
                    let next: Vec<Constant> =
                        data.arguments[part.clone()].iter().map(|value| self.get(*value)).collect();
                    let both = combine(self.kernel, *combiner, &state[part.clone()], &next);
                    state[part].copy_from_slice(&both);
                    at += combiner.width();
                }
            }
            combined.iter_mut().zip(state).for_each(|(elements, element)| elements.push(element));
        }
        for (result, elements) in data.results.iter().zip(combined) {
            self.assign(*result, (kept, elements), tiling);
        }
        Ok(())
    }
}

/// Coordinates along all axes of the launch: each combination of those of a set, the last axis fastest, others 0.
fn points(tiling: &Tiling, axes: AxisSet) -> Vec<Vec<u64>> {
    let mut points = vec![vec![0; tiling.axes.len()]];
    for axis in axes.iter() {
        let extent = tiling.axes[axis].extent;
        let moved = |point: &Vec<u64>, coordinate: u64| {
            let mut point = point.clone();
            point[axis] = coordinate;
            point
        };
        points = points.iter().flat_map(|point| (0..extent).map(move |at| moved(point, at))).collect();
    }
    points
}

/// Where the element at a point is among those of a tile with these axes.
pub fn place(tiling: &Tiling, axes: AxisSet, point: &[u64]) -> usize {
    axes.iter().fold(0, |place, axis| place * tiling.axes[axis].extent as usize + point[axis] as usize)
}
