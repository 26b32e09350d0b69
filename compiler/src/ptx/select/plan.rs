//! Grids, launch plans and the manifest of a kernel.

use super::SelectError;
use crate::analysis::{GRID_LIMITS, stated_guard, upper_bound};
use crate::ir::entities::{Buffer, Launch, Symbol};
use crate::ir::kernel::{ArgumentData, BufferKind, Kernel, Step as IrStep};
use crate::manifest::{
    ArgumentKind, ArgumentManifest, BinaryOp, BufferManifest, Direction, Expr, KernelManifest,
    Launch as LaunchManifest, LaunchArgument, SiteManifest, Step, SymbolManifest, Variant,
};
use crate::source::SourceFile;
use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};

/// Blocks in x, y, z before clamping to the hardware's limits; where a count is beyond its limit, the entry loops.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct GridPlan {
    pub counts: [Expr; 3],
}

impl GridPlan {
    pub fn single() -> Self {
        Self { counts: [Expr::Int(1), Expr::Int(1), Expr::Int(1)] }
    }

    fn clamped(&self) -> [Expr; 3] {
        let clamp = |axis: usize| {
            let count = &self.counts[axis];
            if upper_bound(count).is_some_and(|most| most <= i128::from(GRID_LIMITS[axis])) {
                count.clone()
            } else {
                Expr::binary(BinaryOp::Min, count.clone(), Expr::Int(GRID_LIMITS[axis]))
            }
        };
        [clamp(0), clamp(1), clamp(2)]
    }
}

/// What an entry parameter stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EntryArgument {
    Buffer(Buffer, usize),
    Symbol(Symbol),
    ErrorRecord,
}

/// What selecting one launch found out.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SelectedLaunch {
    pub entry: String,
    pub grid: GridPlan,
    pub threads: u32,
    /// Asked for at launch; 0 where the entry declares what it needs.
    pub shared_bytes: Expr,
    pub arguments: Vec<EntryArgument>,
}

pub(super) fn kernel_manifest(
    kernel: &Kernel,
    launches: &SecondaryMap<Launch, Option<SelectedLaunch>>,
    source: &SourceFile,
) -> Result<KernelManifest, SelectError> {
    let error = |message: String| SelectError { kernel: kernel.name.clone(), message };
    let symbols = kernel
        .symbols
        .values()
        .map(|symbol| SymbolManifest {
            name: symbol.name.clone(),
            kind: symbol.kind.clone(),
            scalar: symbol.scalar,
        })
        .collect();
    let mut arguments = Vec::new();
    for argument in &kernel.arguments {
        arguments.push(match argument {
            ArgumentData::Value { name, element } => ArgumentManifest {
                name: name.clone(),
                kind: ArgumentKind::Value { element: element.clone() },
            },
            ArgumentData::Array { buffer, shape } => ArgumentManifest {
                name: kernel.buffers[*buffer].name.clone(),
                kind: ArgumentKind::Array {
                    direction: direction(kernel, *buffer).ok_or_else(|| {
                        error(format!(
                            "argument `{}` is not an argument buffer",
                            kernel.buffers[*buffer].name
                        ))
                    })?,
                    buffer: {
                        let manifest = buffer_manifest(kernel, *buffer);
                        match shape.clone() {
                            Some(extents) => BufferManifest { extents, ..manifest },
                            None => manifest,
                        }
                    },
                },
            },
        });
    }
    let mut used = EntitySet::<Buffer>::new();
    for argument in launches.values().flatten().flat_map(|selected| &selected.arguments) {
        if let EntryArgument::Buffer(buffer, _) = argument {
            used.insert(*buffer);
        }
    }
    // Memory that no launch is given need not be there.
    let is_needed =
        |buffer: &Buffer| kernel.buffers[*buffer].kind == BufferKind::Scratch && used.contains(*buffer);
    let scratch_order: Vec<Buffer> = kernel.buffers.keys().filter(is_needed).collect();
    let scratch = scratch_order.iter().map(|buffer| buffer_manifest(kernel, *buffer)).collect();
    let sites = kernel
        .sites
        .values()
        .map(|site| {
            let (line, column) = source.line_column(site.span.start);
            SiteManifest {
                array: site.array.clone(),
                axis: site.axis,
                unsigned: site.unsigned,
                injection: site.injection,
                assertion: site.assertion.clone(),
                print: site.print.clone(),
                line,
                column,
            }
        })
        .collect();
    let number_of = |buffer: Buffer| {
        let number = scratch_order.iter().position(|known| *known == buffer);
        number.ok_or_else(|| error(format!("no launch writes {buffer}, which the plan reads")))
    };
    let argument_of = |argument: &EntryArgument| {
        Some(match *argument {
            EntryArgument::Symbol(symbol) => LaunchArgument::Symbol(symbol.index()),
            EntryArgument::ErrorRecord => LaunchArgument::ErrorRecord,
            EntryArgument::Buffer(buffer, leaf) => match kernel.buffers[buffer].kind {
                BufferKind::Argument { position, .. } => {
                    LaunchArgument::Argument { argument: position, leaf }
                }
                BufferKind::Static(id) => LaunchArgument::Static(id.index()),
                _ => {
                    let scratch = scratch_order.iter().position(|known| *known == buffer)?;
                    LaunchArgument::Scratch { scratch, leaf }
                }
            },
        })
    };
    let launch_of = |launch: Launch| -> Result<Step, SelectError> {
        let Some(selected) = &launches[launch] else {
            return Err(error(format!("{launch} of the plan was not selected")));
        };
        let arguments = selected.arguments.iter().map(argument_of).collect::<Option<Vec<_>>>();
        Ok(Step::Launch(LaunchManifest {
            entry: selected.entry.clone(),
            grid: selected.grid.clamped(),
            block: [selected.threads, 1, 1],
            shared_bytes: selected.shared_bytes.clone(),
            arguments: arguments.ok_or_else(|| error("an entry argument has no source".to_string()))?,
        }))
    };
    Ok(KernelManifest {
        name: kernel.name.clone(),
        symbols,
        arguments,
        facts: kernel.facts.clone(),
        injections: kernel.injections.clone(),
        sites,
        variants: vec![Variant {
            guard: stated_guard(kernel),
            scratch,
            plan: steps(&kernel.plan, &launch_of, &number_of)?,
        }],
    })
}

fn steps(
    plan: &[IrStep],
    launch_of: &impl Fn(Launch) -> Result<Step, SelectError>,
    number_of: &impl Fn(Buffer) -> Result<usize, SelectError>,
) -> Result<Vec<Step>, SelectError> {
    plan.iter()
        .map(|step| {
            Ok(match step {
                IrStep::Launch(launch) => launch_of(*launch)?,
                IrStep::Repeat { symbol, low, high, step, body } => Step::Repeat {
                    symbol: symbol.index(),
                    low: low.clone(),
                    high: high.clone(),
                    step: step.clone(),
                    body: steps(body, launch_of, number_of)?,
                },
                IrStep::Branch { condition, then, otherwise } => Step::Branch {
                    condition: condition.clone(),
                    then: steps(then, launch_of, number_of)?,
                    otherwise: steps(otherwise, launch_of, number_of)?,
                },
                IrStep::While { condition, test, body } => Step::While {
                    scratch: number_of(*condition)?,
                    test: steps(test, launch_of, number_of)?,
                    body: steps(body, launch_of, number_of)?,
                },
            })
        })
        .collect()
}

fn direction(kernel: &Kernel, buffer: Buffer) -> Option<Direction> {
    match kernel.buffers[buffer].kind {
        BufferKind::Argument { direction, .. } => Some(direction),
        _ => None,
    }
}

fn buffer_manifest(kernel: &Kernel, buffer: Buffer) -> BufferManifest {
    let data = &kernel.buffers[buffer];
    BufferManifest {
        name: data.name.clone(),
        element: data.element.clone(),
        extents: data.extents.clone(),
        layout: data.layout,
    }
}
