//! `soa`: decides how arrays of structs lie in memory.
//!
//! ```text
//! buffer buf0 "body" struct "Body" size 16 … argument 0 in, aos
//! … the launch loads buf0.x[i] and buf0.w[i] only …                  →  buffer buf0 "body" … argument 0 in, soa
//! ```
//!
//! Neighbouring threads read neighbouring elements. As structs, each field's request then strides by the size
//! of the struct and touches that many more sectors; as one array a field, every request is dense. So a buffer
//! of structs becomes a structure of arrays, unless
//!
//! - the schedule fixed its layout,
//! - or every access to an element takes all its fields together and the struct is one that a single vector
//!   access moves (4, 8 or 16 bytes): then the array of structs is as dense, and one request does for all fields,
//! - or some access takes several fields of an element whose place memory says: neighbouring threads then read elements that
//!   have nothing to do with each other, and the fields of one lie in one sector or two,
//! - or nothing accesses it.
//!
//! Only arguments, results and scratch buffers change: constants, statics and private arrays keep the C layout
//! in which the host or the thread fills them.
//!
//! # Limits
//!
//! Accesses that are together in the source but in different regions (one field inside an `if`) count as apart.
//! AoSoA is never chosen, only kept.

use super::pass::{Changed, Pass, PassContext};
use crate::analysis::reads_memory;
use crate::ir::entities::{Block, Buffer, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::ir::schedule::Directive;
use crate::manifest::Layout;
use crate::mutants::mutant;
use std::collections::{BTreeMap, BTreeSet};

pub struct Soa;

impl Pass for Soa {
    fn name(&self) -> &str {
        "soa"
    }

    fn reason(&self) -> &str {
        "lays arrays of structs out field by field where that makes requests dense"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let structs = kernel.buffers.iter().filter(|(_, data)| {
            let host = matches!(data.kind, BufferKind::Argument { .. } | BufferKind::Scratch);
            let host = mutant!("soa: a constant that the host fills", host, true);
            let free = mutant!("soa: a layout that the schedule fixed", !data.layout_fixed, true);
            host && free && data.layout == Layout::Aos && data.element.leaves.len() > 1
        });
        let structs: BTreeSet<Buffer> = structs.map(|(buffer, _)| buffer).collect();
        if structs.is_empty() {
            return Changed::No;
        }
        let groups = groups(kernel, &structs);
        let mut changed = false;
        for buffer in structs {
            let element = &kernel.buffers[buffer].element;
            let scalars: u64 = element.leaves.iter().map(|leaf| leaf.count()).sum();
            let mut used = groups.iter().filter(|((known, ..), _)| *known == buffer).peekable();
            let one_vector = matches!(element.size, 4 | 8 | 16) && scalars == element.leaves.len() as u64;
            let unused = mutant!("soa: an array that nothing accesses", used.peek().is_none(), false);
            let gathered = used
                .clone()
                .any(|((.., places, _), leaves)| leaves.len() > 1 && reads_memory(kernel, places));
            let whole = one_vector && used.all(|(_, leaves)| leaves.len() == element.leaves.len());
            let keep = unused || whole || gathered;
            let reason = match (keep, gathered && !whole) {
                (true, true) => "threads read elements here and there: the fields of one lie side by side",
                (true, false) => "all fields are used together, and one access moves the struct",
                (false, _) => "neighbouring threads then read neighbouring fields",
            };
            let layout = if keep { Layout::Aos } else { Layout::Soa };
            if matches!(kernel.buffers[buffer].kind, BufferKind::Argument { .. }) {
                let array = kernel.buffers[buffer].name.clone();
                kernel.schedule.chose("", Directive::Layout { array, layout }, reason);
            }
            if !keep {
                kernel.buffers[buffer].layout = Layout::Soa;
                changed = true;
            }
        }
        changed.into()
    }
}

/// What is accessed together: by buffer, region, subscripts and kind of access, the leaves.
type Groups = BTreeMap<(Buffer, Block, Vec<Value>, Opcode), BTreeSet<u32>>;

fn groups(kernel: &Kernel, structs: &BTreeSet<Buffer>) -> Groups {
    let mut groups = Groups::new();
    kernel.walk_all(&mut |block, inst| {
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, leaf } | Payload::Atomic { buffer, leaf, .. }) = data.payload else {
            return;
        };
        if structs.contains(&buffer) {
            let indices = data.arguments[..kernel.buffers[buffer].extents.len()].to_vec();
            groups.entry((buffer, block, indices, data.opcode)).or_default().insert(leaf);
        }
    });
    groups
}
