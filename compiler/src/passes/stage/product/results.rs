//! What the body of the loop does with the results.

use super::super::code::copy_group;
use super::BlockCode;
use crate::ir::emit::Emit;
use crate::ir::entities::{Inst, Value};
use crate::ir::op::Opcode;
use cranelift_entity::EntitySet;

impl BlockCode<'_> {
    /// Runs the body for the results that are the block's own.
    pub fn finish(&self, emit: &mut Emit<'_>, sums: &[Value]) {
        let plan = self.plan;
        let mut skip = EntitySet::new();
        skip.insert(plan.reduce);
        let insts = emit.kernel.blocks[plan.body].insts.clone();
        self.either(emit, |emit, aligned| {
            let group = if aligned { plan.group } else { 1 };
            self.rows(emit, sums, (&insts, &skip), group);
            Vec::new()
        });
    }

    fn rows(
        &self,
        emit: &mut Emit<'_>,
        sums: &[Value],
        (insts, skip): (&[Inst], &EntitySet<Inst>),
        group: i64,
    ) {
        let plan = self.plan;
        let [rows, columns] = plan.shape.per_thread;
        let result = emit.kernel.insts[plan.reduce].results[0];
        let places: Vec<(i64, Value, Value)> = (0..columns)
            .step_by(group as usize)
            .map(|column| {
                let x = self.index(emit, 1, column);
                (column, x, self.inside(emit, 1, x, group))
            })
            .collect();
        for row in 0..rows {
            let y = self.index(emit, 0, row);
            let inside = self.inside(emit, 0, y, 1);
            emit.if_then(inside, |emit| {
                for (column, x, inside) in &places {
                    emit.if_then(*inside, |emit| {
                        let mut maps = Vec::new();
                        for lane in 0..group {
                            let mut map = self.map.clone();
                            map.insert(plan.blocks.y.0.index, y);
                            let x = emit.add_int(*x, lane);
                            map.insert(plan.blocks.x.0.index, x);
                            map.insert(result, sums[(row * columns + column + lane) as usize]);
                            maps.push(map);
                        }
                        copy_group(emit, insts, &mut maps, skip, &plan.vector_stores);
                    });
                }
            });
        }
    }

    /// Whether the block has so many results from an index on to store.
    fn inside(&self, emit: &mut Emit<'_>, side: usize, index: Value, count: i64) -> Value {
        if self.plan.shape.fits() {
            return emit.binary(Opcode::Ge, index, self.own[side]);
        }
        let last = emit.add_int(index, count - 1);
        emit.binary(Opcode::Lt, last, self.ends[side])
    }
}
