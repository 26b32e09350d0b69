//! Matrix instructions: `mma` and `ldmatrix`, as compute capability 9.0 carries them out.

use krn_compiler::atoms::MatrixAtom;

use super::lanes::{FULL, LANES, Registers, write};
use super::memory::{Request, View, addresses, read_row};
use super::{Outcome, fault};
use crate::emulator::fault::{AccessKind, FaultKind};
use crate::emulator::opcodes::{MatrixForm, MmaForm};
use crate::emulator::program::Inst;

/// All lanes of the warp must be there.
fn whole_warp(mask: u32) -> Outcome {
    if mask == FULL {
        return Ok(());
    }
    let reason = "a matrix instruction is for all lanes of a warp";
    fault(!mask, FaultKind::CollectiveMask { mask: FULL, active: mask, reason })
}

/// Runs `mma`.
pub fn mma(form: MmaForm, r: &mut Registers, lists: &[u32], i: &Inst, mask: u32) -> Outcome {
    whole_warp(mask)?;
    let Some(atom) = MatrixAtom::find(form.left, form.right) else {
        let reason = "no matrix instruction has such factors".to_owned();
        return fault(mask, FaultKind::Unsupported { reason });
    };
    let columns = |from: usize, count: usize| -> Vec<[u32; LANES]> {
        let list = &lists[i.d as usize + from..][..count];
        list.iter().map(|column| *r.c32(*column)).collect()
    };
    let result = atom.run(&columns(4, 4), &columns(8, 2), &columns(10, 4));
    for (at, lanes) in result.iter().enumerate() {
        write(r, lists[i.d as usize + at], mask, lanes);
    }
    Ok(())
}

/// Runs `ldmatrix`.
#[allow(clippy::too_many_arguments, reason = "those of a load")]
pub fn load(
    form: MatrixForm,
    r: &mut Registers,
    view: &mut View<'_>,
    lists: &[u32],
    i: &Inst,
    mask: u32,
    pc: usize,
    warp: usize,
) -> Outcome {
    whole_warp(mask)?;
    let request = Request { pc, warp, space: form.space, access: AccessKind::Load, bytes: MatrixForm::ROW };
    let pointers = view.locate(request, &addresses(r, i.a, form.wide_base, i.imm), form.rows())?;
    for register in 0..usize::from(form.count) {
        let mut rows = [[0u16; 8]; 8];
        for (row, pointer) in rows.iter_mut().zip(&pointers[8 * register..]) {
            // SAFETY: `locate` checked the lanes that name rows for range and alignment.
            *row = unsafe { read_row(*pointer) };
        }
        let mut out = [0; LANES];
        for (lane, word) in out.iter_mut().enumerate() {
            let part = |part: usize| {
                if form.transposed {
                    rows[2 * (lane % 4) + part][lane / 4]
                } else {
                    rows[lane / 4][2 * (lane % 4) + part]
                }
            };
            *word = u32::from(part(0)) | u32::from(part(1)) << 16;
        }
        write(r, lists[i.d as usize + register], mask, &out);
    }
    Ok(())
}
