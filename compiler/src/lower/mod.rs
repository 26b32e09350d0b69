//! Typed kernel to IR in phase `abstract`.
//!
//! Every kernel-level statement becomes a launch (or steps around launches); struct values are taken apart
//! into their scalar leaves; mutable names become SSA values carried through regions; local arrays live in
//! local memory where their extents are small constants, and in scratch memory, one a parallel iteration,
//! otherwise. Nothing is optimised here: what is computed twice or not used is left to the passes.
//!
//! | file | what |
//! |---|---|
//! | `kernel_level.rs` | statements at kernel level: the launch plan |
//! | `statements.rs` | statements within a launch |
//! | `expressions.rs`, `builtins.rs`, `reduce.rs` | values |
//! | `access.rs` | loads, stores, bounds checks, guards |
//! | `structs.rs` | struct types and their leaves |
//! | `ranges.rs` | ranges of loops, away from the ends of i64 |
//! | `assigned.rs` | which names a region assigns; which expressions are pure |
//! | `injections.rs` | checks of facts about the values of arrays |
//! | `host.rs` | expressions that the host evaluates |
//! | `locals.rs` | local arrays: local memory or scratch |
//! | `naming.rs` | the names of values |

mod access;
mod assigned;
mod builtins;
mod expressions;
mod host;
mod injections;
mod iterations;
mod kernel_level;
mod locals;
mod naming;
mod own;
mod powers;
mod ranges;
mod reduce;
mod schedules;
mod statements;
mod structs;

use crate::check::typed::{
    self, ArrayId, ArrayRole, DimId, IndexId, LocalId, Numbers, ParamId, Program, ReductionId, SignatureItem,
    SiteId, Type,
};
use crate::data::Scalar;
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::ir::builder::KernelBuilder;
use crate::ir::entities::{Buffer, ConstantArray, OwnCombiner, Site, StaticArray, Symbol, Value};
use crate::ir::kernel::{
    self as ir, ArgumentData, ArrayData, BufferData, BufferKind, Module, SiteData, SymbolData,
};
use crate::manifest::{
    self, AssertionManifest, Direction, FactManifest, PrintManifest, PrintedIndex, PrintedOperand, SymbolKind,
};
use crate::source::{SourceFile, Span};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use host::Limit;
use rustc_hash::FxHashSet;

/// How a program is lowered.
#[derive(Clone, Copy, Debug)]
pub struct LowerOptions<'a> {
    /// `sm_90`: picks among schedules.
    pub target: &'a str,
    /// Takes what the device would check for proved.
    pub unchecked: bool,
    /// Lets `print` tell the host; it is left out otherwise.
    pub prints: bool,
    /// Writes behind each name which definition of the name the value is, for debuggers.
    pub names: bool,
}

impl<'a> LowerOptions<'a> {
    pub fn for_target(target: &'a str) -> Self {
        Self { target, unchecked: false, prints: false, names: false }
    }
}

/// The constant arrays of a program.
pub fn constants(program: &Program) -> PrimaryMap<ConstantArray, ArrayData> {
    let array = |constant: &typed::Constant| ArrayData {
        name: constant.name.clone(),
        element: constant.element.clone(),
        extents: constant.extents.clone(),
        bytes: constant.bytes.clone(),
    };
    program.constants.values().map(array).collect()
}

/// Lowers every kernel of a checked program.
///
/// # Errors
/// What the host could not evaluate before a launch: codes E06xx.
pub fn lower(
    program: &Program,
    source: &SourceFile,
    options: LowerOptions<'_>,
) -> Result<Module, Diagnostics> {
    let mut module = Module { constants: constants(program), ..Module::default() };
    for variable in program.statics.values() {
        module.statics.push(ArrayData {
            name: variable.name.clone(),
            element: variable.element.clone(),
            extents: variable.extents.clone(),
            bytes: variable.bytes.clone(),
        });
    }
    let mut diagnostics = Diagnostics::new();
    let mut taken: FxHashSet<String> = program.kernels.iter().map(|kernel| kernel.name.clone()).collect();
    for kernel in &program.kernels {
        let mut lowerer = Lowerer::new(program, kernel, source, options);
        let plan = lowerer.kernel();
        diagnostics.extend(lowerer.diagnostics);
        let mut finished = lowerer.builder.finish(plan);
        name_launches(&mut finished, &mut taken);
        module.kernels.push(finished);
    }
    if diagnostics.has_errors() { Err(diagnostics) } else { Ok(module) }
}

/// A kernel's only launch has its name; several are numbered, past names that other kernels have.
fn name_launches(kernel: &mut ir::Kernel, taken: &mut FxHashSet<String>) {
    if kernel.launches.len() == 1 {
        for launch in kernel.launches.values_mut() {
            launch.name = kernel.name.clone();
        }
        return;
    }
    let mut number = 0;
    for launch in kernel.launches.values_mut() {
        loop {
            number += 1;
            let name = format!("{}_{number}", kernel.name);
            if taken.insert(name.clone()) {
                launch.name = name;
                break;
            }
        }
    }
}

/// Where a local array lives.
#[derive(Clone)]
enum Storage {
    /// Indexed by the array's subscripts alone.
    Plain(Buffer),
    /// In scratch, one copy an iteration of the loops around: the subscripts are followed by these.
    Expanded(Buffer, Vec<Value>),
}

/// An axis of an open `forall` whose range the host knows.
#[derive(Clone)]
struct OwnAxis {
    index: Value,
    low: Value,
    /// For the host, from 0.
    extent: manifest::Expr,
}

/// A loop that is open.
enum OpenLoop {
    Forall {
        /// Its axes that the host can count.
        own: Vec<OwnAxis>,
        /// Whether these are all.
        is_counted: bool,
    },
    /// So many nested loops in order.
    Ordered(usize),
}

/// How a kernel-level name is read in a launch.
#[derive(Clone)]
enum KernelLocal<'a> {
    /// Computed afresh wherever it is used.
    Recompute(&'a typed::Expr),
    /// Kept in a rank-0 scratch buffer.
    Stored(Buffer),
}

struct Lowerer<'a> {
    program: &'a Program,
    typed: &'a typed::Kernel,
    source: &'a SourceFile,
    options: LowerOptions<'a>,
    builder: KernelBuilder,
    diagnostics: Diagnostics,
    /// Of the statements, where names say which definitions they are.
    numbers: Option<Numbers>,
    dims: SecondaryMap<DimId, Option<Symbol>>,
    /// One symbol a scalar leaf.
    params: SecondaryMap<ParamId, Vec<Symbol>>,
    arrays: SecondaryMap<ArrayId, Option<Storage>>,
    /// Values of the names that are in scope in the current launch: one a scalar leaf.
    locals: SecondaryMap<LocalId, Option<Vec<Value>>>,
    indices: SecondaryMap<IndexId, Option<Value>>,
    /// Those of the IR.
    sites: SecondaryMap<SiteId, Option<Site>>,
    /// Kernel-level `for` names.
    counters: SecondaryMap<IndexId, Option<Symbol>>,
    /// The kernel's own reductions that were met.
    combiners: SecondaryMap<ReductionId, PackedOption<OwnCombiner>>,
    kernel_locals: Vec<(LocalId, KernelLocal<'a>)>,
    /// Kernel-level conditions that only the device knows; every launch under them tests them first.
    conditions: Vec<(Buffer, bool)>,
    /// The loops of the launch that are open, its root loop first.
    around: Vec<OpenLoop>,
}

impl<'a> Lowerer<'a> {
    fn new(
        program: &'a Program,
        kernel: &'a typed::Kernel,
        source: &'a SourceFile,
        options: LowerOptions<'a>,
    ) -> Self {
        Self {
            program,
            typed: kernel,
            source,
            options,
            builder: KernelBuilder::new(kernel.name.clone(), kernel.span),
            diagnostics: Diagnostics::new(),
            numbers: options.names.then(|| Numbers::of(kernel)),
            dims: SecondaryMap::new(),
            params: SecondaryMap::new(),
            arrays: SecondaryMap::new(),
            locals: SecondaryMap::new(),
            indices: SecondaryMap::new(),
            sites: SecondaryMap::new(),
            counters: SecondaryMap::new(),
            combiners: SecondaryMap::new(),
            kernel_locals: Vec::new(),
            conditions: Vec::new(),
            around: Vec::new(),
        }
    }

    fn kernel(&mut self) -> Vec<ir::Step> {
        self.declare_symbols();
        self.declare_arrays();
        self.declare_sites();
        self.declare_facts();
        self.declare_injections();
        self.apply_schedules();
        let mut plan = if self.options.unchecked { Vec::new() } else { self.check_injections() };
        plan.extend(self.initialise_results());
        let body = &self.typed.body;
        plan.extend(self.kernel_block(body));
        plan
    }

    /// Those of prints come last, and are left out with them, so that the others' numbers do not depend on prints.
    fn declare_sites(&mut self) {
        for printed in [false, true] {
            if printed && !self.options.prints {
                return;
            }
            for (id, site) in self.typed.sites.iter().filter(|(_, site)| site.printed == printed) {
                let name = |index: &IndexId| self.typed.indices[*index].name.clone();
                let assertion = site.assertion.as_ref().map(|known| AssertionManifest {
                    text: known.text.clone(),
                    indices: known.indices.iter().map(name).collect(),
                });
                let index = |index: &IndexId| PrintedIndex { name: name(index), number: index.as_u32() };
                let operand = |(text, ty): &(String, typed::Type)| PrintedOperand {
                    text: text.clone(),
                    element: structs::element_type(self.program, ty),
                };
                let print = site.print.as_ref().map(|known| PrintManifest {
                    indices: known.indices.iter().map(index).collect(),
                    operands: known.operands.iter().map(operand).collect(),
                });
                self.sites[id] = Some(self.builder.add_site(SiteData {
                    span: site.span,
                    array: site.array.clone(),
                    axis: site.axis,
                    unsigned: site.unsigned,
                    injection: site.injection,
                    assertion,
                    print,
                }));
            }
        }
    }

    /// The IR's site; that of a print only where prints are asked for.
    fn site(&self, site: SiteId) -> Site {
        self.sites[site].unwrap_or_else(|| Site::new(site.index()))
    }

    fn position(&self, wanted: SignatureItem) -> usize {
        self.typed.signature.iter().position(|item| *item == wanted).unwrap_or_default()
    }

    fn declare_symbols(&mut self) {
        for (id, dim) in &self.typed.dims {
            let argument = self.position(SignatureItem::Array(dim.array));
            let kind = SymbolKind::Dim { argument, axis: dim.axis, extent: dim.extent };
            let data = SymbolData { name: dim.name.clone(), kind, scalar: Scalar::I64 };
            self.dims[id] = Some(self.builder.add_symbol(data));
        }
        for (id, param) in &self.typed.params {
            let argument = self.position(SignatureItem::Param(id));
            let element = structs::element_type(self.program, &param.ty);
            let mut symbols = Vec::new();
            for place in structs::places(self.program, &param.ty) {
                let leaf = &element.leaves[place.leaf];
                let mut name = param.name.clone();
                if !leaf.path.is_empty() {
                    name = format!("{name}.{}", leaf.path);
                }
                for index in &place.indices {
                    name = format!("{name}.{index}");
                }
                let kind =
                    SymbolKind::Parameter { argument, leaf: place.leaf, element: place.position(leaf) };
                symbols.push(self.builder.add_symbol(SymbolData { name, kind, scalar: leaf.scalar }));
            }
            self.params[id] = symbols;
        }
    }

    fn declare_arrays(&mut self) {
        for (id, array) in &self.typed.arrays {
            let kind = match array.role {
                ArrayRole::Input => self.argument(id, Direction::In),
                ArrayRole::InOut => self.argument(id, Direction::InOut),
                ArrayRole::Result(_) => self.argument(id, Direction::Out),
                ArrayRole::Temporary => BufferKind::Scratch,
                ArrayRole::Constant(constant) => BufferKind::Constant(ConstantArray::new(constant.index())),
                ArrayRole::Static(variable) => BufferKind::Static(StaticArray::new(variable.index())),
                // Made where they are defined: their place depends on the loop around them.
                ArrayRole::Private => continue,
            };
            let buffer = self.add_buffer(array, kind);
            self.arrays[id] = Some(Storage::Plain(buffer));
        }
        let arguments = self.typed.signature.iter().map(|item| match item {
            SignatureItem::Param(id) => {
                let param = &self.typed.params[*id];
                let element = structs::element_type(self.program, &param.ty);
                Some(ArgumentData::Value { name: param.name.clone(), element })
            }
            SignatureItem::Array(id) => match &self.arrays[*id] {
                Some(Storage::Plain(buffer)) => Some(ArgumentData::array(*buffer)),
                _ => None,
            },
        });
        self.builder.kernel_mut().arguments = arguments.collect::<Option<Vec<_>>>().unwrap_or_default();
    }

    fn argument(&self, id: ArrayId, direction: Direction) -> BufferKind {
        BufferKind::Argument { position: self.position(SignatureItem::Array(id)), direction }
    }

    fn add_buffer(&mut self, array: &typed::Array, kind: BufferKind) -> Buffer {
        let extents = array.extents.iter().map(|extent| self.extent(extent)).collect();
        self.builder.add_buffer(BufferData {
            name: array.name.clone(),
            kind,
            element: array.element.clone(),
            extents,
            layout: manifest::Layout::Aos,
            layout_fixed: false,
            cache: None,
            runs_on: false,
        })
    }

    /// A shape expression for the host; a message where it has none.
    fn extent(&mut self, expr: &typed::Expr) -> manifest::Expr {
        let Some((extent, limits)) = self.host_expression(expr) else {
            self.not_for_the_host(expr.span, "this extent");
            return manifest::Expr::Int(0);
        };
        self.declare_limits(limits);
        extent
    }

    /// A bound of a loop that the host runs.
    fn bound(&mut self, expr: &typed::Expr) -> manifest::Expr {
        self.host_value(expr).unwrap_or_else(|| {
            self.not_for_the_host(expr.span, "this bound");
            manifest::Expr::Int(0)
        })
    }

    /// The launch checks them as it does facts.
    fn declare_limits(&mut self, limits: Vec<Limit>) {
        for Limit { condition, span, end } in limits {
            let line = self.source.line_column(span.start).0;
            let words: Vec<&str> = self.source.slice(span).split_whitespace().collect();
            let text = format!("{} {end}", words.join(" "));
            let facts = &mut self.builder.kernel_mut().facts;
            if !facts.iter().any(|fact| fact.condition == condition) {
                facts.push(FactManifest { condition, text, line });
            }
        }
    }

    fn not_for_the_host(&mut self, span: Span, what: &str) {
        self.diagnostics.push(
            Diagnostic::error(
                codes::E0601,
                span,
                format!("{what} cannot be evaluated before the launch"),
                "the host has to know this value",
            )
            .help(
                "use only dimensions, scalar parameters, literals, `+ - * / %`, `min`, `max`, comparisons, `&&`, \
                 `||` and `!` here",
            ),
        );
    }

    fn declare_facts(&mut self) {
        for fact in &self.typed.facts {
            match self.host_expression(&fact.condition) {
                Some((condition, limits)) => {
                    self.declare_limits(limits);
                    let line = self.source.line_column(fact.span.start).0;
                    let manifest = FactManifest { condition, text: fact.text.clone(), line };
                    self.builder.kernel_mut().facts.push(manifest);
                }
                None => self.not_for_the_host(fact.span, "this fact"),
            }
        }
    }

    /// The scalar types, as stored, of a value's leaves in order.
    fn storage(&self, ty: &Type) -> Vec<Scalar> {
        let element = structs::element_type(self.program, ty);
        structs::places(self.program, ty).iter().map(|place| element.leaves[place.leaf].scalar).collect()
    }
}
