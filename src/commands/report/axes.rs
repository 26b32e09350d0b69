//! How each axis of the launches that ran is spread over the machine, at the sizes of the page.

use super::svg::hierarchy::Level;
use krn_compiler::ir::kernel::{Kernel, Level as IrLevel};
use krn_compiler::ir::placement::Spread;
use krn_compiler::manifest::{Expr, SymbolKind, Value};
use krn_runtime::verify::Sizes;

/// An axis of a launch.
pub struct Axis {
    pub entry: String,
    pub name: String,
    /// Iterations; `None` where dimensions alone do not say it.
    pub extent: Option<u64>,
    pub levels: Vec<Level>,
}

/// Of the entries in `ran`, in their order.
pub fn axes(kernel: &Kernel, sizes: &Sizes, ran: &[&str]) -> Vec<Axis> {
    let spreads = &kernel.schedule.spreads;
    let of_entry = |entry: &&str| {
        let entry = entry.to_string();
        spreads.iter().filter(move |spread| spread.launch == entry)
    };
    ran.iter().flat_map(of_entry).map(|spread| axis(kernel, sizes, spread)).collect()
}

fn axis(kernel: &Kernel, sizes: &Sizes, spread: &Spread) -> Axis {
    let extent = spread.extent.as_ref().and_then(|extent| evaluate(kernel, sizes, extent));
    let sized: u64 = spread.factors.iter().filter_map(|factor| factor.size).product();
    let mut each = sized;
    let mut levels = Vec::new();
    for factor in &spread.factors {
        let count = match factor.size {
            Some(size) => {
                each /= size.max(1);
                Some(size)
            }
            None => extent.map(|extent| extent.div_ceil(sized.max(1))),
        };
        levels.push(Level { name: name(factor.level), count, each });
    }
    Axis { entry: spread.launch.clone(), name: spread.axis.clone(), extent, levels }
}

fn name(level: IrLevel) -> &'static str {
    match level {
        IrLevel::Grid | IrLevel::Cluster => "block",
        IrLevel::Warp => "warp",
        IrLevel::Lane => "lane",
        IrLevel::Serial => "serial",
        IrLevel::Vector => "vector",
    }
}

/// The value of an expression over dimensions; `None` where it needs anything else.
fn evaluate(kernel: &Kernel, sizes: &Sizes, expr: &Expr) -> Option<u64> {
    if !over_dimensions(kernel, expr) {
        return None;
    }
    let value = |name: &str| Value::Int(sizes.dims.get(name).copied().unwrap_or(0).into());
    let symbols: Vec<Value> = kernel.symbols.values().map(|symbol| value(&symbol.name)).collect();
    u64::try_from(expr.evaluate_int(&symbols)?).ok()
}

fn over_dimensions(kernel: &Kernel, expr: &Expr) -> bool {
    match expr {
        Expr::Symbol(at) => kernel
            .symbols
            .values()
            .nth(*at)
            .is_some_and(|symbol| matches!(symbol.kind, SymbolKind::Dim { .. })),
        Expr::Unary(_, operand) => over_dimensions(kernel, operand),
        Expr::Binary(_, left, right) => over_dimensions(kernel, left) && over_dimensions(kernel, right),
        Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) => true,
    }
}
