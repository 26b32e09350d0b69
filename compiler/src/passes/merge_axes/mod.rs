//! `merge_axes`: two axes that lie side by side wherever they occur become one.
//!
//! ```text
//! buffer buf0 "x" f32 [sym0, sym1, sym2]                                        before
//! forall axis0 "c" = …, axis1 "h" = 0..sym1, axis2 "w" = 0..sym2 (v0, v1, v2) {
//!     v3: f32 = load buf0[v0, v1, v2]
//!     v4: f32 = load buf1[v0]
//!
//! buffer buf0 "x" f32 [sym0, sym1 * sym2]                                       after
//! forall axis0 "c" = …, axis2 "w" = 0..sym1 * sym2 (v0, v2) {
//!     v3: f32 = load buf0[v0, v2]
//!     v4: f32 = load buf1[v0]
//! ```
//!
//! Short axes leave threads of a block without work, and rows of several axes are no rows to passes that share them. The
//! array is the same: row-major, elements stand where they stood. The caller still gives it the extents that were
//! declared. The axis keeps the name of the inner one; a schedule that says something of the outer one keeps both.
//!
//! Loops in one another with nothing in between are one loop first, as `collapse` makes them.
//!
//! # Preconditions
//!
//! Both are axes of one loop, from 0 to the array's extents. Their indices are used as neighbouring subscripts alone, the
//! outer one directly before the inner one, in all launches that access those arrays. Where the loops have sums in them, another
//! launch may pick rows by literals (`gate[i, 0, o]`, `gate[i, 1, o]` of a product with columns `g` and `o`).

mod pairs;

use super::collapse::perfect;
use super::pass::{Changed, Pass, PassContext};
use crate::ir::emit::Emit;
use crate::ir::entities::{Inst, Launch};
use crate::ir::kernel::{ArgumentData, BufferKind, Kernel, Payload, Phase, Phases};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use pairs::Pairs;

pub struct MergeAxes;

impl Pass for MergeAxes {
    fn name(&self) -> &str {
        "merge_axes"
    }

    fn reason(&self) -> &str {
        "makes axes that lie side by side in memory one"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            changed |= perfect(kernel, launch);
        }
        while let Some(pairs) = pairs::find(kernel) {
            merge(kernel, &pairs);
            changed = true;
        }
        changed.into()
    }
}

/// Makes axes one that belong together.
fn merge(kernel: &mut Kernel, pairs: &Pairs) {
    for (inst, at) in &pairs.accesses {
        let row = kernel.insts[*inst].arguments.remove(*at);
        if let Some(row) = kernel.int_of(row) {
            pick(kernel, *inst, *at, (row as i64, pairs));
        }
    }
    for (buffer, at) in &pairs.dimensions {
        if let BufferKind::Argument { position, .. } = kernel.buffers[*buffer].kind
            && let ArgumentData::Array { shape, .. } = &mut kernel.arguments[position]
        {
            shape.get_or_insert_with(|| kernel.buffers[*buffer].extents.clone());
        }
        let extents = &mut kernel.buffers[*buffer].extents;
        let outer = extents.remove(*at);
        extents[*at] = Expr::binary(BinaryOp::Mul, outer, extents[*at].clone());
    }
    let parents = kernel.parents();
    for (inst, outer, inner) in &pairs.loops {
        let Some(block) = parents.block_of[*inst].expand() else { continue };
        let names =
            [outer, inner].map(|at| kernel.axes[kernel.insts[*inst].payload.axes()[*at]].name.clone());
        // The end of both, before the loop.
        let insts = &mut kernel.blocks[block].insts;
        let after = insts.split_off(insts.iter().position(|known| known == inst).unwrap_or(insts.len()));
        let span = kernel.insts[*inst].span;
        let ends = [outer, inner].map(|at| kernel.insts[*inst].arguments[2 * at + 1]);
        let mut emit = Emit::new(kernel, block, span);
        let end = mutant!(
            "merge_axes: extents are added up",
            emit.mul(ends[0], ends[1]),
            emit.value(crate::ir::op::Opcode::Add, Payload::None, &ends)
        );
        kernel.blocks[block].insts.extend(after);
        kernel.insts[*inst].arguments[2 * inner + 1] = end;
        kernel.drop_axis(*inst, *outer);
        if let Some(launch) = launch_of(kernel, *inst) {
            let [outer, inner] = names;
            let text =
                format!("`{outer}` and `{inner}` lie side by side in memory and are one axis, `{inner}`");
            let name = kernel.launches[launch].name.clone();
            kernel.schedule.remark(&name, text);
        }
    }
}

/// Lets a subscript be counted from a row's start.
fn pick(kernel: &mut Kernel, inst: Inst, at: usize, (row, pairs): (i64, &Pairs)) {
    let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = kernel.insts[inst].payload else {
        return;
    };
    // The axes behind it that are one already.
    let behind =
        (at + 1..).take_while(|next| *next == at + 1 || pairs.dimensions.contains(&(buffer, *next - 1)));
    let extents = behind.filter_map(|next| kernel.buffers[buffer].extents.get(next).cloned());
    let extent = extents.reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right));
    let (Some(block), Some(extent)) = (kernel.parents().block_of[inst].expand(), extent) else { return };
    let insts = &mut kernel.blocks[block].insts;
    let after = insts.split_off(insts.iter().position(|known| *known == inst).unwrap_or(insts.len()));
    let span = kernel.insts[inst].span;
    let mut emit = Emit::new(kernel, block, span);
    let extent = emit.expression(&extent);
    let begin = emit.mul_int(extent, row);
    let inner = emit.kernel.insts[inst].arguments[at];
    let place = if row == 0 { inner } else { emit.add(begin, inner) };
    kernel.insts[inst].arguments[at] = mutant!("merge_axes: all rows are the first", place, inner);
    kernel.blocks[block].insts.extend(after);
}

/// The launch that runs an instruction.
fn launch_of(kernel: &Kernel, inst: Inst) -> Option<Launch> {
    kernel.launches.keys().find(|launch| {
        let mut found = false;
        kernel.walk(kernel.launches[*launch].body, &mut |_, known| found |= known == inst);
        found
    })
}
