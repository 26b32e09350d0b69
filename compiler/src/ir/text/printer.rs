//! Prints modules and kernels. Never panics, however broken the kernel: the verifier's messages use it.

use super::print_body::BodyPrinter;
use super::schedule::print_schedule;
use super::span::{PrintOptions, print_span};
use crate::data::{ElementType, LinearExtent};
use crate::ir::entities::{Block, Inst, OwnCombiner};
use crate::ir::kernel::{
    ArgumentData, ArrayData, BufferData, BufferKind, CombinerData, Kernel, Module, Step, Tiling,
};
use crate::manifest::{Direction, Expr, Layout, PrintedIndex, PrintedOperand, SymbolKind};
use cranelift_entity::EntityRef;
use std::fmt::Write;

pub use super::expression::print_expression;

/// The text of a whole module.
pub fn print_module(module: &Module, options: PrintOptions) -> String {
    let mut text = String::new();
    for (entity, array) in &module.constants {
        print_array(&mut text, "constant", &entity.to_string(), array);
    }
    for (entity, array) in &module.statics {
        print_array(&mut text, "static", &entity.to_string(), array);
    }
    for kernel in &module.kernels {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&print_kernel(kernel, options));
    }
    text
}

fn print_array(text: &mut String, keyword: &str, entity: &str, array: &ArrayData) {
    let extents: Vec<String> = array.extents.iter().map(u64::to_string).collect();
    let element = print_element(&array.element);
    let _ = write!(text, "{keyword} {entity} {:?} {element} [{}] hex \"", array.name, extents.join(", "));
    for byte in &array.bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text.push_str("\"\n");
}

/// The text of one kernel, ended by a line feed.
pub fn print_kernel(kernel: &Kernel, options: PrintOptions) -> String {
    let mut text = String::new();
    print_declarations(&mut text, kernel, options);
    for (entity, launch) in &kernel.launches {
        let _ = write!(text, "    launch {entity} {:?} {}", launch.name, launch.phase.name());
        if let Some(threads) = launch.threads {
            let _ = write!(text, " threads {threads}");
        }
        if let Some(resident) = launch.resident {
            let _ = write!(text, " resident {resident}");
        }
        if !launch.streams.is_empty() {
            let buffers: Vec<String> = launch.streams.iter().map(|buffer| buffer.to_string()).collect();
            let _ = write!(text, " streams [{}]", buffers.join(", "));
        }
        if let Some(grid) = &launch.grid {
            let counts: Vec<String> = grid.iter().map(print_expression).collect();
            let _ = write!(text, " grid [{}]", counts.join(", "));
        }
        if let Some(tiling) = &launch.tiling {
            print_tiling(&mut text, tiling);
        }
        if !launch.assume.is_empty() {
            let conditions: Vec<String> = launch.assume.iter().map(print_expression).collect();
            let _ = write!(text, " assume [{}]", conditions.join(", "));
        }
        text.push_str(" {\n");
        let tiling = launch.tiling.as_deref();
        BodyPrinter { kernel, tiling, options, text: &mut text }.block(launch.body, 2);
        text.push_str("    }\n");
    }
    text.push_str("    plan {");
    for step in &kernel.plan {
        text.push(' ');
        print_step(&mut text, step);
    }
    text.push_str(" }\n}\n");
    text
}

/// ` axes [i: 64, j: 64] layouts ["i = …", …]`.
fn print_tiling(text: &mut String, tiling: &Tiling) {
    let axes: Vec<String> =
        tiling.axes.iter().map(|axis| format!("{}: {}", axis.name, axis.extent)).collect();
    let _ = write!(text, " axes [{}]", axes.join(", "));
    if !tiling.layouts.is_empty() {
        let layouts: Vec<String> = tiling.layouts.iter().map(|layout| format!("\"{layout}\"")).collect();
        let _ = write!(text, " layouts [{}]", layouts.join(", "));
    }
}

fn print_declarations(text: &mut String, kernel: &Kernel, options: PrintOptions) {
    let span = print_span(kernel.span, options);
    let _ = writeln!(text, "kernel {:?}{span} {{", kernel.name);
    print_schedule(text, &kernel.schedule, options);
    for (entity, symbol) in &kernel.symbols {
        let kind = match symbol.kind {
            SymbolKind::Dim { argument, axis, extent } if extent.is_plain() => {
                format!("dim {argument} {axis}")
            }
            SymbolKind::Dim { argument, axis, extent: LinearExtent { factor, offset } } => {
                format!("linear_dim {argument} {axis} {factor} {offset}")
            }
            SymbolKind::Parameter { argument, leaf, element } => {
                format!("parameter {argument} {leaf} {element}")
            }
            SymbolKind::Counter => "counter".to_string(),
        };
        let _ = write!(text, "    symbol {entity} {:?} {} {kind}", symbol.name, symbol.scalar);
        if let Some(Some(value)) = kernel.specialization.values().get(entity.index()) {
            let _ = write!(text, " = {value}");
        }
        text.push('\n');
    }
    if kernel.specialization.is_general() {
        text.push_str("    general\n");
    }
    let guard = kernel.specialization.guard();
    for condition in &guard.relies_on {
        let _ = writeln!(text, "    relies_on {}", print_expression(condition));
    }
    for condition in &guard.chosen_by {
        let _ = writeln!(text, "    chosen_by {}", print_expression(condition));
    }
    for (entity, buffer) in &kernel.buffers {
        let _ = writeln!(text, "    buffer {entity} {}", print_buffer(buffer));
    }
    for argument in &kernel.arguments {
        let _ = match argument {
            ArgumentData::Value { name, element } => {
                writeln!(text, "    argument {name:?} {}", print_element(element))
            }
            ArgumentData::Array { buffer, shape: None } => writeln!(text, "    argument {buffer}"),
            ArgumentData::Array { buffer, shape: Some(extents) } => {
                let extents: Vec<String> = extents.iter().map(print_expression).collect();
                writeln!(text, "    argument {buffer} [{}]", extents.join(", "))
            }
        };
    }
    for fact in &kernel.facts {
        let _ = writeln!(
            text,
            "    fact {:?} line {}: {}",
            fact.text,
            fact.line,
            print_expression(&fact.condition)
        );
    }
    for fact in &kernel.injections {
        let (low, high) = (print_expression(&fact.low), print_expression(&fact.high));
        let _ = writeln!(
            text,
            "    injection {:?} line {}: argument {} in {low} .. {high}",
            fact.text, fact.line, fact.argument
        );
    }
    for (entity, data) in &kernel.combiners {
        print_combiner(text, entity, data, options);
    }
    for (entity, site) in &kernel.sites {
        let span = print_span(site.span, options);
        let unsigned = if site.unsigned { " unsigned" } else { "" };
        let injection = site.injection.map_or(String::new(), |number| format!(" injection {number}"));
        let assertion = site.assertion.as_ref().map_or(String::new(), |known| {
            let indices: Vec<String> = known.indices.iter().map(|name| format!("{name:?}")).collect();
            format!(" assertion {:?}({})", known.text, indices.join(", "))
        });
        let print = site.print.as_ref().map_or(String::new(), |known| {
            let operand = |one: &PrintedOperand| format!("{:?} {}", one.text, print_element(&one.element));
            let index = |one: &PrintedIndex| format!("{:?} {}", one.name, one.number);
            let operands: Vec<String> = known.operands.iter().map(operand).collect();
            let indices: Vec<String> = known.indices.iter().map(index).collect();
            format!(" print ({}) [{}]", operands.join(", "), indices.join(", "))
        });
        let _ = writeln!(
            text,
            "    site {entity} {:?} axis {}{unsigned}{injection}{assertion}{print}{span}",
            site.array, site.axis
        );
    }
}

/// `combiner own0 "merge" (v0: f32, v1: f32) { … yield v2 } from [0.0]`, the code numbered by itself.
fn print_combiner(text: &mut String, own: OwnCombiner, data: &CombinerData, options: PrintOptions) {
    let _ = write!(text, "    combiner {own} {:?}", data.name);
    if let Some(body) = data.body() {
        let mut printer = BodyPrinter { kernel: &data.code, tiling: None, options, text };
        printer.params(body);
        printer.text.push_str(" {\n");
        printer.block(body, 2);
        printer.text.push_str("    }");
    }
    text.push_str(" from [");
    for (at, constant) in data.identity.iter().enumerate() {
        text.push_str(if at > 0 { ", " } else { "" });
        BodyPrinter { kernel: &data.code, tiling: None, options, text }.constant(*constant);
    }
    text.push_str("]\n");
}

fn print_buffer(buffer: &BufferData) -> String {
    let extents: Vec<String> = buffer.extents.iter().map(print_expression).collect();
    let kind = match buffer.kind {
        BufferKind::Argument { position, direction } => {
            format!("argument {position} {}", direction_name(direction))
        }
        BufferKind::Scratch => "scratch".to_string(),
        BufferKind::Constant(array) => format!("constant {array}"),
        BufferKind::Static(array) => format!("static {array}"),
        BufferKind::Private => "private".to_string(),
        BufferKind::Shared => "shared".to_string(),
    };
    let layout = match buffer.layout {
        Layout::Aos => "aos".to_string(),
        Layout::Soa => "soa".to_string(),
        Layout::Aosoa(width) => format!("aosoa {width}"),
    };
    let fixed = if buffer.layout_fixed { " fixed" } else { "" };
    let runs_on = if buffer.runs_on { " runs_on" } else { "" };
    let cache = buffer.cache.map_or(String::new(), |mode| format!(", cache {}", mode.name()));
    let element = print_element(&buffer.element);
    format!("{:?} {element} [{}] {kind}, {layout}{fixed}{runs_on}{cache}", buffer.name, extents.join(", "))
}

pub(super) fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in",
        Direction::InOut => "inout",
        Direction::Out => "out",
    }
}

fn print_element(element: &ElementType) -> String {
    if let Some(scalar) = element.as_scalar()
        && *element == ElementType::scalar(scalar)
    {
        return scalar.name().to_string();
    }
    let leaves: Vec<String> = element
        .leaves
        .iter()
        .map(|leaf| {
            let mut text = format!("{:?} {} at {}", leaf.path, leaf.scalar, leaf.offset);
            for (extent, stride) in leaf.extents.iter().zip(&leaf.strides) {
                let _ = write!(text, " [{extent} by {stride}]");
            }
            text
        })
        .collect();
    format!(
        "struct {:?} size {} align {} {{ {} }}",
        element.name,
        element.size,
        element.align,
        leaves.join(", ")
    )
}

fn print_step(text: &mut String, step: &Step) {
    let steps = |text: &mut String, steps: &[Step]| {
        text.push_str(" {");
        for step in steps {
            text.push(' ');
            print_step(text, step);
        }
        text.push_str(" }");
    };
    match step {
        Step::Launch(launch) => {
            let _ = write!(text, "{launch}");
        }
        Step::Repeat { symbol, low, high, step, body } => {
            let [low, high, step] = [low, high, step].map(|expr: &Expr| print_expression(expr));
            let _ = write!(text, "repeat {symbol} = {low}..{high} by {step}");
            steps(text, body);
        }
        Step::Branch { condition, then, otherwise } => {
            let _ = write!(text, "if {}", print_expression(condition));
            steps(text, then);
            text.push_str(" else");
            steps(text, otherwise);
        }
        Step::While { condition, test, body } => {
            let _ = write!(text, "while {condition} after");
            steps(text, test);
            text.push_str(" do");
            steps(text, body);
        }
    }
}

/// One instruction in text form, its regions left out; for messages.
pub fn print_inst(kernel: &Kernel, inst: Inst) -> String {
    let mut text = String::new();
    let options = PrintOptions { spans: false };
    let mut tiled = kernel.launches.values().filter(|launch| launch.tiling.is_some());
    let tiling = tiled.find(|launch| holds(kernel, launch.body, inst));
    let tiling = tiling.and_then(|launch| launch.tiling.as_deref());
    BodyPrinter { kernel, tiling, options, text: &mut text }.header(inst);
    text
}

/// Whether an instruction stands in a block or below; of a broken kernel too.
fn holds(kernel: &Kernel, block: Block, inst: Inst) -> bool {
    let mut blocks = vec![block];
    let mut next = 0;
    while let Some(block) = blocks.get(next).copied() {
        next += 1;
        let Some(data) = kernel.blocks.get(block) else { continue };
        if data.insts.contains(&inst) {
            return true;
        }
        for data in data.insts.iter().filter_map(|inst| kernel.insts.get(*inst)) {
            let fresh: Vec<Block> =
                data.regions.iter().copied().filter(|region| !blocks.contains(region)).collect();
            blocks.extend(fresh);
        }
    }
    false
}
