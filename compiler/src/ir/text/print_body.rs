//! Prints instructions and their regions.

use super::span::{PrintOptions, print_span};
use crate::ir::entities::{Axis, Block, Buffer, Inst, Value};
use crate::ir::kernel::{Atom, AxisSet, InstData, Kernel, Level, Payload, Tile, Tiling, ValueData};
use crate::ir::op::{Combiner, Constant, Opcode};
use std::fmt::Write;

impl Level {
    pub const ALL: [Level; 6] =
        [Level::Grid, Level::Cluster, Level::Warp, Level::Lane, Level::Serial, Level::Vector];

    pub fn name(self) -> &'static str {
        match self {
            Level::Grid => "grid",
            Level::Cluster => "cluster",
            Level::Warp => "warp",
            Level::Lane => "lane",
            Level::Serial => "serial",
            Level::Vector => "vector",
        }
    }
}

pub struct BodyPrinter<'k, 't> {
    pub kernel: &'k Kernel,
    /// What the launch declares, in phase `tiled`.
    pub tiling: Option<&'k Tiling>,
    pub options: PrintOptions,
    pub text: &'t mut String,
}

/// Deeper nesting is a broken kernel's region inside itself: the parser allows less.
const MAX_DEPTH: usize = 200;

/// Operands that a broken kernel lacks.
const MISSING: &str = "<missing>";

impl BodyPrinter<'_, '_> {
    /// The lines of a block, each indented by `depth` steps.
    pub fn block(&mut self, block: Block, depth: usize) {
        let Some(data) = self.kernel.blocks.get(block).filter(|_| depth <= MAX_DEPTH) else {
            self.indent(1);
            self.text.push_str("<no end>\n");
            return;
        };
        for inst in &data.insts {
            self.indent(depth);
            if self.kernel.insts.get(*inst).is_none() {
                self.text.push_str("<missing>\n");
                continue;
            }
            self.header(*inst);
            for (at, region) in self.kernel.insts[*inst].regions.iter().enumerate() {
                if at > 0 {
                    self.indent(depth);
                    self.text.push('}');
                    self.text.push_str(if self.kernel.insts[*inst].opcode == Opcode::While {
                        " do"
                    } else {
                        " else"
                    });
                }
                self.params(*region);
                self.text.push_str(" {\n");
                self.block(*region, depth + 1);
            }
            if !self.kernel.insts[*inst].regions.is_empty() {
                self.indent(depth);
                self.text.push('}');
            }
            self.text.push('\n');
        }
    }

    fn indent(&mut self, depth: usize) {
        for _ in 0..depth {
            self.text.push_str("    ");
        }
    }

    /// An instruction without its regions.
    pub fn header(&mut self, inst: Inst) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        self.typed_list(&data.results);
        if !data.results.is_empty() {
            self.text.push_str(" = ");
        }
        self.text.push_str(data.opcode.info().mnemonic);
        self.operation(data);
        let span = print_span(data.span, self.options);
        self.text.push_str(&span);
    }

    /// What follows the mnemonic.
    fn operation(&mut self, data: &InstData) {
        match &data.payload {
            Payload::None if data.opcode == Opcode::While => self.bracketed(&data.arguments),
            Payload::None => self.operands(" ", &data.arguments),
            Payload::Constant(constant) => {
                self.text.push(' ');
                self.constant(*constant);
            }
            Payload::Symbol(symbol) => {
                let _ = write!(self.text, " {symbol}");
            }
            Payload::Cast(scalar) => {
                let _ = write!(self.text, " {scalar}");
                self.operands(" ", &data.arguments);
            }
            Payload::Access { buffer, leaf } => {
                self.text.push(' ');
                let written = self.kernel.written_values(data);
                self.access(*buffer, *leaf, &data.arguments, written);
            }
            Payload::Atomic { buffer, leaf, op } => {
                let _ = write!(self.text, " {op} ");
                self.access(*buffer, *leaf, &data.arguments, 1);
            }
            Payload::Grid(axis) => {
                let _ = write!(self.text, " {axis}");
            }
            Payload::Lanes(mask) => {
                let _ = write!(self.text, " {mask}");
                self.operands(": ", &data.arguments);
            }
            Payload::Outer(rows) => {
                let _ = write!(self.text, " {rows}");
                self.operands(": ", &data.arguments);
            }
            Payload::Index(axis) => {
                let axis = usize::from(*axis);
                let known = self.tiling.and_then(|tiling| tiling.axes.get(axis));
                let _ = match known {
                    Some(known) => write!(self.text, " {}", known.name),
                    None => write!(self.text, " <axis {axis}>"),
                };
            }
            Payload::Along { axes, combiners } => {
                self.combiners(combiners);
                self.text.push(' ');
                self.axis_names(*axes);
                self.operands(": ", &data.arguments);
            }
            Payload::Contract { along, atom } => {
                if *atom != Atom::Fma {
                    let _ = write!(self.text, " {}", atom.name());
                }
                self.text.push_str(" [");
                self.axis_names(*along);
                self.text.push(']');
                self.operands(" ", &data.arguments);
            }
            Payload::Mma { left, right } => {
                let _ = write!(self.text, " {} {}", left.name(), right.name());
                self.operands(": ", &data.arguments);
            }
            Payload::Site(site) => {
                let _ = write!(self.text, " {site}");
                self.operands(": ", &data.arguments);
            }
            Payload::Loop { axes } => {
                let rest = self.axes(axes, &data.arguments);
                if data.opcode == Opcode::For {
                    self.text.push_str(" step ");
                    self.operand(rest.first());
                    if rest.len() > 1 {
                        self.text.push_str(" carry");
                        self.bracketed(&rest[1..]);
                    }
                }
            }
            Payload::Reduce { axes, combiners } => {
                self.combiners(combiners);
                self.axes(axes, &data.arguments);
            }
        }
    }

    /// ` [add, max]`.
    fn combiners(&mut self, combiners: &[Combiner]) {
        let names: Vec<String> = combiners.iter().map(Combiner::to_string).collect();
        let _ = write!(self.text, " [{}]", names.join(", "));
    }

    /// `i, j`.
    fn axis_names(&mut self, axes: AxisSet) {
        for (at, axis) in axes.iter().enumerate() {
            self.text.push_str(if at > 0 { ", " } else { "" });
            let _ = match self.tiling.and_then(|tiling| tiling.axes.get(axis)) {
                Some(known) => write!(self.text, "{}", known.name),
                None => write!(self.text, "<axis {axis}>"),
            };
        }
    }

    /// ` {i, j} layout0`; nothing for a scalar.
    fn tile(&mut self, tile: Tile) {
        if tile.axes.is_empty() {
            return;
        }
        self.text.push_str(" {");
        self.axis_names(tile.axes);
        self.text.push('}');
        if let Some(layout) = tile.layout {
            let _ = write!(self.text, " layout{layout}");
        }
    }

    /// `axis0 "i" = v0..v1 [grid:*, lane:32], …`; the operands that are left.
    fn axes<'a>(&mut self, axes: &[Axis], arguments: &'a [Value]) -> &'a [Value] {
        for (at, axis) in axes.iter().enumerate() {
            self.text.push_str(if at > 0 { ", " } else { " " });
            let _ = write!(self.text, "{axis}");
            let Some(data) = self.kernel.axes.get(*axis) else { continue };
            let _ = write!(self.text, " {:?} = ", data.name);
            self.operand(arguments.get(2 * at));
            self.text.push_str("..");
            self.operand(arguments.get(2 * at + 1));
            for (at, factor) in data.factors.iter().enumerate() {
                self.text.push_str(if at > 0 { ", " } else { " [" });
                let _ = match factor.size {
                    Some(size) => write!(self.text, "{}:{size}", factor.level.name()),
                    None => write!(self.text, "{}:*", factor.level.name()),
                };
            }
            if !data.factors.is_empty() {
                self.text.push(']');
            }
            if data.nounroll {
                self.text.push_str(" nounroll");
            }
        }
        arguments.get(2 * axes.len()..).unwrap_or(&[])
    }

    /// `buf0.x[v1, v2]`, and `, v3` for each value that is written.
    fn access(&mut self, buffer: Buffer, leaf: u32, arguments: &[Value], written: usize) {
        let _ = write!(self.text, "{buffer}");
        match self.kernel.buffers.get(buffer).and_then(|buffer| buffer.element.leaves.get(leaf as usize)) {
            Some(leaf) if leaf.path.is_empty() => {}
            Some(leaf) => {
                let _ = write!(self.text, ".{}", leaf.path);
            }
            None => {
                let _ = write!(self.text, ".<leaf {leaf}>");
            }
        }
        let (indices, values) = arguments.split_at(arguments.len().saturating_sub(written));
        self.text.push('[');
        self.operands("", indices);
        self.text.push(']');
        for at in 0..written {
            self.text.push_str(", ");
            self.operand(values.get(at));
        }
    }

    fn operand(&mut self, value: Option<&Value>) {
        let _ = match value {
            Some(value) => write!(self.text, "{value}"),
            None => write!(self.text, "{MISSING}"),
        };
    }

    /// Separated by commas, after `before` where there are any.
    fn operands(&mut self, before: &str, values: &[Value]) {
        for (at, value) in values.iter().enumerate() {
            self.text.push_str(if at > 0 { ", " } else { before });
            let _ = write!(self.text, "{value}");
        }
    }

    fn bracketed(&mut self, values: &[Value]) {
        self.text.push_str(" [");
        self.operands("", values);
        self.text.push(']');
    }

    pub fn params(&mut self, block: Block) {
        let kernel = self.kernel;
        let Some(params) = kernel.blocks.get(block).map(|data| &data.params) else { return };
        if !params.is_empty() {
            self.text.push_str(" (");
            self.typed_list(params);
            self.text.push(')');
        }
    }

    /// `v1 "name": f32, v2: i64`.
    fn typed_list(&mut self, values: &[Value]) {
        for (at, value) in values.iter().enumerate() {
            self.text.push_str(if at > 0 { ", " } else { "" });
            let _ = match self.kernel.values.get(*value) {
                Some(ValueData { ty, name: Some(name), .. }) => write!(self.text, "{value} {name:?}: {ty}"),
                Some(ValueData { ty, name: None, .. }) => write!(self.text, "{value}: {ty}"),
                None => write!(self.text, "{value}: {MISSING}"),
            };
            self.tile(self.kernel.values.get(*value).map_or(Tile::SCALAR, |data| data.tile));
        }
    }

    pub fn constant(&mut self, constant: Constant) {
        let _ = match constant {
            Constant::Bool(value) => write!(self.text, "{value}"),
            Constant::Int(_, value) => write!(self.text, "{value}"),
            Constant::F32(bits) if f32::from_bits(bits).is_nan() => write!(self.text, "{bits:#x}"),
            Constant::F64(bits) if f64::from_bits(bits).is_nan() => write!(self.text, "{bits:#x}"),
            Constant::F32(bits) => write!(self.text, "{:?}", f32::from_bits(bits)),
            Constant::F64(bits) => write!(self.text, "{:?}", f64::from_bits(bits)),
        };
    }
}
