//! Symbols, buffers, the signature, facts and the plan.

use super::Verifier;
use crate::data::Scalar;
use crate::ir::combiner::is_code;
use crate::ir::entities::{Launch, Symbol};
use crate::ir::kernel::{ArgumentData, BufferData, BufferKind, CombinerData, Step};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::manifest::{Expr, Layout, SymbolKind};
use cranelift_entity::EntityRef;

impl Verifier<'_> {
    pub(super) fn declarations(&mut self) {
        let kernel = self.kernel;
        for (entity, buffer) in &kernel.buffers {
            let place = || format!("buffer `{entity}` {:?}", buffer.name);
            self.buffer(&place, buffer);
            if let BufferKind::Argument { position, .. } = buffer.kind
                && !matches!(kernel.arguments.get(position), Some(ArgumentData::Array { buffer, .. }) if *buffer == entity)
            {
                self.report(place, format!("argument {position} of the signature is not this buffer"));
            }
        }
        for (at, argument) in kernel.arguments.iter().enumerate() {
            if let ArgumentData::Array { shape: Some(extents), .. } = argument {
                extents.iter().for_each(|extent| self.expression(&|| format!("argument {at}"), extent));
            }
            if let ArgumentData::Array { buffer, .. } = argument
                && !kernel.buffers.get(*buffer).is_some_and(
                    |data| matches!(data.kind, BufferKind::Argument { position, .. } if position == at),
                )
            {
                self.report(|| format!("argument {at}"), format!("`{buffer}` is not at this position"));
            }
        }
        for fact in &kernel.facts {
            self.expression(&|| format!("fact {:?}", fact.text), &fact.condition);
        }
        for expr in kernel.specialization.guard().conditions() {
            self.expression(&|| "the guard".to_string(), expr);
        }
        for (launch, data) in &kernel.launches {
            for expr in data.grid.iter().flatten().chain(&data.assume) {
                self.expression(&|| format!("`{launch}`"), expr);
            }
        }
        for (own, data) in &kernel.combiners {
            self.combiner(&|| format!("combiner `{own}` {:?}", data.name), data);
        }
        self.plan();
    }

    /// Its code takes two contributions and gives one, by pure operations.
    fn combiner(&mut self, place: &dyn Fn() -> String, data: &CombinerData) {
        let of = |constant: &Constant| match constant {
            Constant::Bool(_) => Scalar::Bool,
            Constant::Int(scalar, _) => *scalar,
            Constant::F32(_) => Scalar::F32,
            Constant::F64(_) => Scalar::F64,
        };
        if !data.identity.iter().map(of).eq(data.types.iter().copied()) {
            self.report(place, "the identity has other types than contributions");
        }
        if data.types.is_empty() || data.types.len() > 255 || !is_code(&data.code, &data.types) {
            self.report(place, "the code does not make one contribution of two");
            return;
        }
        let mut inner = Verifier { kernel: &data.code, errors: Vec::new() };
        data.code.walk_all(&mut |_, inst| {
            let opcode = data.code.insts[inst].opcode;
            let effect = opcode.info().effect;
            let plain = matches!(opcode, Opcode::If | Opcode::For | Opcode::While)
                || matches!(effect, Effect::Pure | Effect::Terminator);
            if plain {
                inner.types(inst);
            } else {
                inner.fail(inst, "the code of a combiner is pure");
            }
        });
        for error in inner.errors {
            self.report(|| format!("{}: {}", place(), error.place), error.message);
        }
    }

    fn buffer(&mut self, place: &dyn Fn() -> String, buffer: &BufferData) {
        for extent in &buffer.extents {
            self.expression(place, extent);
            if buffer.kind == BufferKind::Private && !matches!(extent, Expr::Int(0..)) {
                self.report(place, "a private buffer has constant extents");
            }
        }
        for (at, leaf) in buffer.element.leaves.iter().enumerate() {
            if buffer.element.leaves[..at].iter().any(|other| other.path == leaf.path) {
                self.report(place, format!("two leaves have the path {:?}", leaf.path));
            }
            if leaf.extents.len() != leaf.strides.len() {
                self.report(place, format!("leaf {:?} needs a stride for each extent", leaf.path));
            }
        }
        if let Layout::Aosoa(width) = buffer.layout
            && (width < 8 || !width.is_power_of_two())
        {
            self.report(place, format!("groups of {width}: not a power of two of at least 8"));
        }
    }

    /// Reports symbols that are not declared.
    fn expression(&mut self, place: &dyn Fn() -> String, expr: &Expr) {
        expr.each_symbol(&mut |index| {
            if index >= self.kernel.symbols.len() {
                self.report(place, format!("`sym{index}` is not declared"));
            }
        });
    }

    fn plan(&mut self) {
        let kernel = self.kernel;
        let mut seen = vec![0; kernel.launches.len()];
        self.steps(&kernel.plan, &mut seen, &mut Vec::new());
        for (at, count) in seen.iter().enumerate() {
            if *count != 1 {
                let launch = Launch::new(at);
                self.report(|| format!("`{launch}`"), format!("stands {count} times in the plan, not once"));
            }
        }
        for (launch, data) in &kernel.launches {
            if kernel.launches.iter().any(|(other, known)| other < launch && known.name == data.name) {
                self.report(|| format!("`{launch}`"), format!("another launch is named {:?} too", data.name));
            }
        }
    }

    fn steps(&mut self, steps: &[Step], seen: &mut [u32], counters: &mut Vec<Symbol>) {
        let place = || "the plan".to_string();
        for step in steps {
            match step {
                Step::Launch(launch) => match seen.get_mut(launch.index()) {
                    Some(count) => *count += 1,
                    None => self.report(place, format!("`{launch}` does not exist")),
                },
                Step::Repeat { symbol, low, high, step, body } => {
                    for expr in [low, high, step] {
                        self.expression(&place, expr);
                    }
                    let kind = self.kernel.symbols.get(*symbol).map(|data| &data.kind);
                    if kind != Some(&SymbolKind::Counter) || counters.contains(symbol) {
                        self.report(place, format!("`{symbol}` is no free counter"));
                    }
                    counters.push(*symbol);
                    self.steps(body, seen, counters);
                    counters.pop();
                }
                Step::Branch { condition, then, otherwise } => {
                    self.expression(&place, condition);
                    self.steps(then, seen, counters);
                    self.steps(otherwise, seen, counters);
                }
                Step::While { condition, test, body } => {
                    let is_cell = self.kernel.buffers.get(*condition).is_some_and(|data| {
                        let one =
                            data.element.leaves.len() == 1 && data.element.leaves[0].scalar == Scalar::Bool;
                        data.kind == BufferKind::Scratch && data.extents.is_empty() && one
                    });
                    if !is_cell {
                        self.report(place, format!("`{condition}` is no scratch buffer of one `bool`"));
                    }
                    self.steps(test, seen, counters);
                    self.steps(body, seen, counters);
                }
            }
        }
    }
}
