//! What the body of the loop does with the results.

use super::super::code::copy_group;
use super::{BlockCode, Product};
use crate::ir::clone::mapped;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload, Short};
use crate::ir::op::{Effect, Opcode};
use crate::passes::rematerialize::free_values;
use cranelift_entity::EntitySet;

impl Product {
    /// What the stores need of the body, and the stores, in order; the reduction is done already.
    pub fn needed(&self, kernel: &Kernel) -> Vec<Inst> {
        let mut used = EntitySet::<Value>::new();
        let mut needed = Vec::new();
        for inst in kernel.blocks[self.body].insts.iter().rev() {
            let data = &kernel.insts[*inst];
            let has_effect = !matches!(data.opcode.info().effect, Effect::Pure | Effect::Terminator);
            let is_used = has_effect || data.results.iter().any(|value| used.contains(*value));
            if is_used && *inst != self.reduce {
                used.extend(data.arguments.iter().copied());
                used.extend(free_values(kernel, *inst));
                needed.push(*inst);
            }
        }
        needed.reverse();
        needed
    }
}

/// An operand of a store that is all there is to do with a result.
#[derive(PartialEq)]
enum Operand {
    /// The result's row.
    Row,
    Column,
    Sum,
    /// The same for all results.
    Other(Value),
}

impl BlockCode<'_> {
    /// Runs the body for the results that are the block's own.
    pub fn finish(&self, emit: &mut Emit<'_>, sums: &[Value]) {
        let plan = self.plan;
        let insts = plan.needed(emit.kernel);
        self.either(emit, |emit, aligned| {
            let group = if aligned { plan.group } else { 1 };
            self.rows(emit, sums, &insts, group);
            Vec::new()
        });
    }

    /// The store that is all there is to do with a result, if no more is: where the results go, given row and column.
    fn plain_store(&self, emit: &Emit<'_>, insts: &[Inst]) -> Option<Inst> {
        let [store] = insts else { return None };
        let data = &emit.kernel.insts[*store];
        (data.opcode == Opcode::Store && data.span == emit.span).then_some(*store)
    }

    fn rows(&self, emit: &mut Emit<'_>, sums: &[Value], insts: &[Inst], group: i64) {
        let plan = self.plan;
        let [rows, columns] = plan.shape.per_thread;
        let results = emit.kernel.insts[plan.reduce].results.clone();
        let places: Vec<(i64, Value, Value)> = (0..columns)
            .step_by(group as usize)
            .map(|column| {
                let x = self.index(emit, 1, column);
                (column, x, self.inside(emit, 1, x, group))
            })
            .collect();
        let plain = self.plain_store(emit, insts).filter(|_| group == 1 && results.len() == 1);
        let plain = plain.map(|store| self.plain_operands(emit, store));
        let skip = EntitySet::new();
        for row in 0..rows {
            let y = self.index(emit, 0, row);
            let inside = self.inside(emit, 0, y, 1);
            emit.if_then(inside, |emit| {
                if let Some((place, operands)) = &plain {
                    let row = &sums[(row * columns) as usize..][..columns as usize];
                    store_row(emit, *place, operands, y, &places, row);
                    return;
                }
                for (column, x, inside) in &places {
                    emit.if_then(*inside, |emit| {
                        let mut maps = Vec::new();
                        for lane in 0..group {
                            let mut map = self.map.clone();
                            map.insert(plan.blocks.y.0.index, y);
                            let x = emit.add_int(*x, lane);
                            map.insert(plan.blocks.x.0.index, x);
                            let own = sums[(row * columns + column + lane) as usize..].iter();
                            let own = own.step_by(plan.shape.results());
                            map.extend(results.iter().copied().zip(own.copied()));
                            maps.push(map);
                        }
                        copy_group(emit, insts, &mut maps, &skip, &plan.vector_stores);
                    });
                }
            });
        }
    }

    /// Where a store goes, and its operands.
    fn plain_operands(&self, emit: &Emit<'_>, store: Inst) -> ((Buffer, u32), Vec<Operand>) {
        let plan = self.plan;
        let result = emit.kernel.insts[plan.reduce].results[0];
        let data = &emit.kernel.insts[store];
        let Payload::Access { buffer, leaf } = data.payload else { unreachable!("a store is an access") };
        let operand = |value: &Value| match *value {
            value if value == plan.blocks.y.0.index => Operand::Row,
            value if value == plan.blocks.x.0.index => Operand::Column,
            value if value == result => Operand::Sum,
            value => Operand::Other(mapped(&self.map, value)),
        };
        ((buffer, leaf), data.arguments.iter().map(operand).collect())
    }

    /// Whether the block has so many results from an index on to store.
    fn inside(&self, emit: &mut Emit<'_>, side: usize, index: Value, count: i64) -> Value {
        if self.plan.shape.inside {
            return emit.binary(Opcode::Ge, index, self.own[side]);
        }
        let last = emit.add_int(index, count - 1);
        emit.binary(Opcode::Lt, last, self.ends[side])
    }
}

/// Stores the results of a row where they are the block's own: of each column its number, its index, and whether it is one.
fn store_row(
    emit: &mut Emit<'_>,
    place: (Buffer, u32),
    operands: &[Operand],
    y: Value,
    columns: &[(i64, Value, Value)],
    sums: &[Value],
) {
    let operand = |operand: &Operand, x: Value, sum: Value| match operand {
        Operand::Row => y,
        Operand::Column => x,
        Operand::Sum => sum,
        Operand::Other(value) => *value,
    };
    let Some((value, indices)) = operands.split_last() else { return };
    let each = columns.iter().zip(sums).map(|((_, x, inside), sum)| (*x, *sum, *inside));
    match indices.split_last() {
        // Along the row only the last subscript changes.
        Some((last, shared)) if !shared.contains(&Operand::Column) => {
            let shared: Short<Value> = shared.iter().map(|index| operand(index, y, y)).collect();
            let each = each.map(|(x, sum, inside)| (operand(last, x, sum), operand(value, x, sum), inside));
            emit.store_each(place, &shared, &each.collect::<Vec<_>>());
        }
        _ => {
            for (x, sum, inside) in each {
                let indices: Short<Value> = indices.iter().map(|index| operand(index, x, sum)).collect();
                emit.store_if(inside, place, &indices, operand(value, x, sum));
            }
        }
    }
}
