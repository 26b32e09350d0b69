//! `normals`: asks whether parameters keep a launch's numbers away from the subnormal ones.
//!
//! ```text
//! relies_on sym1 >= 1.1754943508222875e-38
//! ```
//!
//! `rsqrt` of an f32 is one instruction where its argument is no subnormal number, and four where it may be. In sums of
//! squares and a parameter (`dx*dx + dy*dy + eps2`) the parameter decides, which the host knows. Selection reads what
//! the code relies on (`analysis/float_bounds.rs`).
//!
//! # Preconditions
//!
//! The `rsqrt` stands in a loop: elsewhere three instructions do not matter. One parameter suffices for all of them.

use super::pass::{Changed, Pass, PassContext};
use super::special::specialize;
use crate::analysis::{Conditions, FloatBounds, least_normal};
use crate::data::Scalar;
use crate::ir::entities::{Block, Launch, Symbol, Value};
use crate::ir::kernel::{InstData, Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use cranelift_entity::EntityRef;

pub struct Normals;

impl Pass for Normals {
    fn name(&self) -> &str {
        "normals"
    }

    fn reason(&self) -> &str {
        "asks whether parameters keep numbers away from the subnormal ones"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Mapped])
    }

    fn runs_after(&self) -> &[&str] {
        &["map"]
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let is_root = |data: &InstData| data.opcode == Opcode::Rsqrt;
        // With fast math subnormal numbers count as zero anyway.
        if kernel.schedule.fast_math() || !kernel.insts.values().any(is_root) {
            return Changed::No;
        }
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let Some(symbol) = parameter(kernel, launch) else { continue };
            let least = Expr::Float(least_normal());
            let condition = Expr::binary(BinaryOp::GreaterEqual, Expr::Symbol(symbol.index()), least);
            // Selection reads what the code relies on.
            let conditions = Conditions::new().needs(condition);
            changed |= specialize(kernel, launch, &conditions, "normal", |_, _| true).is_some();
        }
        changed.into()
    }
}

/// The parameter that keeps the arguments of all `rsqrt` in the launch's loops normal, if they are not anyway.
fn parameter(kernel: &Kernel, launch: Launch) -> Option<Symbol> {
    let mut arguments = Vec::new();
    in_loops(kernel, kernel.launches[launch].body, 0, &mut arguments);
    let plain = FloatBounds::new(kernel, launch);
    arguments.retain(|value| plain.least(*value) < least_normal());
    if arguments.is_empty() {
        return None;
    }
    let floats = kernel.symbols.iter().filter(|(_, data)| data.scalar == Scalar::F32);
    floats.map(|(symbol, _)| symbol).find(|symbol| {
        let mut bounds = FloatBounds::new(kernel, launch);
        bounds.suppose(*symbol, least_normal());
        arguments.iter().all(|value| bounds.least(*value) >= least_normal())
    })
}

/// The arguments of every f32 `rsqrt` that stands in a loop inside a spread one, or in an inner loop.
fn in_loops(kernel: &Kernel, block: Block, loops: u32, found: &mut Vec<Value>) {
    for inst in &kernel.blocks[block].insts {
        let data = &kernel.insts[*inst];
        if data.opcode == Opcode::Rsqrt && loops > 0 && kernel.value_type(data.results[0]) == Scalar::F32 {
            found.push(data.arguments[0]);
        }
        let spread = match &data.payload {
            Payload::Loop { axes } => data.opcode == Opcode::Forall && !axes.is_empty(),
            _ => false,
        };
        let looping = !spread && matches!(data.opcode, Opcode::Reduce | Opcode::For | Opcode::While);
        for region in &data.regions {
            in_loops(kernel, *region, loops + u32::from(looping), found);
        }
    }
}
