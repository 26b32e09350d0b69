//! One launch becomes one entry: its parameters, the prologue that reads them, and the body.

use super::super::builder::EntryBuilder;
use super::super::instruction::*;
use super::super::module::{Entry, Length, Param, Variable};
use super::super::operand::{Operand, Symbol as PtxSymbol};
use super::super::types::{Space, Type};
use super::offsets::OffsetMemo;
use super::plan::{EntryArgument, GridPlan, SelectedLaunch};
use super::selector::{Maps, Selector, signed_type};
use super::shared::{self, SharedPlan};
use super::signs;
use super::{Globals, SelectError, SelectOptions};
use crate::analysis::{Endless, Multiprocessor, SharedLifetimes};
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Symbol};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::manifest::{Expr, Layout};
use crate::source::{SourceFile, Span};
use cranelift_entity::{EntityRef, SecondaryMap};
use smallvec::smallvec;
use std::sync::Arc;

/// An entry as data, and how it is launched.
pub(crate) struct SelectedEntry {
    pub(super) entry: Entry,
    pub(super) launch: SelectedLaunch,
    /// Whether the launch sizes its shared memory.
    pub(super) dynamic_shared: bool,
}

/// What a launch's body uses, found before anything is emitted.
#[derive(Default)]
struct Used {
    symbols: SecondaryMap<Symbol, bool>,
    buffers: SecondaryMap<Buffer, bool>,
    /// Allocations (leaves of SoA buffers) that are touched.
    leaves: SecondaryMap<Buffer, Vec<bool>>,
    checks: bool,
    loops: Vec<Inst>,
    conjunctions: Vec<Inst>,
}

pub(super) fn select_entry(
    kernel: &Kernel,
    launch: Launch,
    behind_checks: bool,
    globals: &Globals,
    source: &SourceFile,
    options: &SelectOptions,
) -> Result<SelectedEntry, SelectError> {
    let data = &kernel.launches[launch];
    let mut builder = EntryBuilder::new(data.name.clone());
    builder.keep_off(Arc::clone(&globals.names));
    let mut selector = Selector {
        kernel,
        globals,
        source,
        options,
        builder,
        maps: Maps::new(kernel),
        symbols: SecondaryMap::new(),
        bases: SecondaryMap::new(),
        extents: SecondaryMap::new(),
        error_record: None,
        failed: None,
        checks: Default::default(),
        recordings: Vec::new(),
        load_guard: None,
        draws: Vec::new(),
        angles: Vec::new(),
        launch,
        ranges: None,
        guard: None,
        offsets: OffsetMemo::default(),
        last_span: Span::default(),
        last_line: 0,
        params: Vec::new(),
    };
    let mut used = Used::default();
    scan(&mut selector, data.body, &mut used);
    let lifetimes = SharedLifetimes::of(kernel, data.body);
    let shared = shared::layout(kernel, &lifetimes, |buffer| used.buffers[buffer]);
    for (_, offset) in &shared.offsets {
        symbols_of(offset, &mut used);
    }
    for inst in std::mem::take(&mut used.conjunctions) {
        selector.fuse_range_test(inst);
    }
    selector.prologue(launch, behind_checks, &used);
    selector.shared_bases(&shared);
    selector.block(data.body)?;
    selector.builder.emit(Leave { op: LeaveOp::Ret });
    selector.record_failures();
    let threads = data.threads.unwrap_or(1);
    let arguments = selector.params.iter().map(|(argument, _)| *argument).collect();
    let grid = data.grid.as_ref().map_or(GridPlan::single(), |counts| GridPlan { counts: counts.clone() });
    let dynamic_shared = shared.dynamic;
    let shared_bytes = if dynamic_shared { shared.total } else { Expr::Int(0) };
    signs::hide_signs(&mut selector.builder);
    let mut entry = selector.builder.finish();
    entry.bounds.required = Some([threads, 1, 1]);
    // More than a multiprocessor has threads for, and the assembler ignores the number altogether.
    let most = Multiprocessor::of(options.capability).blocks_of(u64::from(threads));
    entry.bounds.min_blocks_per_sm = data.resident.map(|blocks| blocks.min(most));
    let launch = SelectedLaunch { entry: entry.name.clone(), grid, threads, shared_bytes, arguments };
    Ok(SelectedEntry { entry, launch, dynamic_shared })
}

/// Counts the uses of values as subscripts that selection takes apart.
fn count_subscripts(selector: &mut Selector<'_>, inst: Inst, buffer: Buffer, leaf: u32) {
    let (data, buffer) = (&selector.kernel.insts[inst], &selector.kernel.buffers[buffer]);
    use Opcode::{Address, CopyAsync, Load, LoadIf, LoadVector, Store, StoreEach, StoreIf, StoreVector};
    let plain = matches!(
        data.opcode,
        Load | LoadIf | Store | StoreEach | StoreIf | LoadVector | StoreVector | Address | CopyAsync
    );
    if !plain || matches!(buffer.layout, Layout::Aosoa(_)) {
        return;
    }
    let mut axes = buffer.extents.len() + buffer.element.leaves[leaf as usize].extents.len();
    // The source's address, into which a literal is folded too.
    axes += usize::from(data.opcode == CopyAsync);
    // The last subscripts of the other places.
    axes +=
        data.each_operands(axes).filter(|_| data.opcode == StoreEach).map_or(0, |each| each.places.len() - 1);
    for index in data.arguments.iter().take(axes) {
        selector.maps.subscripts[*index] += 1;
    }
}

/// Counts the uses of values by instructions of their own block that do the value's operation themselves: stores of casts to what
/// they store, casts to integers of floats that are rounded.
fn count_absorbed(selector: &mut Selector<'_>, inst: Inst, block: Block) {
    let kernel = selector.kernel;
    let data = &kernel.insts[inst];
    let (scalar, values) = match (data.opcode, &data.payload) {
        (Opcode::Store | Opcode::StoreIf | Opcode::StoreVector, Payload::Access { buffer, leaf }) => {
            let written = kernel.written_values(data) - usize::from(data.opcode == Opcode::StoreIf);
            let rank = kernel.rank(*buffer, *leaf);
            let scalar = kernel.buffers[*buffer].element.leaves[*leaf as usize].scalar;
            (scalar, &data.arguments[rank..rank + written])
        }
        (Opcode::StoreEach, Payload::Access { buffer, leaf }) => {
            let Some(each) = kernel.each_stored(data) else { return };
            (kernel.buffers[*buffer].element.leaves[*leaf as usize].scalar, each.values)
        }
        (Opcode::Pack, Payload::Cast(scalar)) => (*scalar, &data.arguments[..]),
        (Opcode::Cast, Payload::Cast(scalar)) if scalar.is_integer() => (*scalar, &data.arguments[..]),
        _ => return,
    };
    for value in values {
        let Some(other) = kernel.defining_inst(*value) else { continue };
        let other_data = &kernel.insts[other];
        let does = match other_data.opcode {
            Opcode::Cast => {
                let is_same = other_data.payload == Payload::Cast(scalar);
                is_same && scalar.is_narrow() && data.opcode != Opcode::Cast
            }
            Opcode::Floor | Opcode::Ceil | Opcode::Round | Opcode::Trunc => data.opcode == Opcode::Cast,
            _ => false,
        };
        if does && selector.maps.home[other].expand() == Some(block) {
            selector.maps.absorbed[*value] += 1;
        }
    }
}

/// Notes what a sum with a literal is a sum of, of which that has been noted before.
fn note_sum(selector: &mut Selector<'_>, inst: Inst) {
    let kernel = selector.kernel;
    let Some((value, literal)) = kernel.result_of(inst).and_then(|sum| kernel.split_sum(sum)) else {
        return;
    };
    let (root, added) = selector.maps.rooted(kernel, value);
    let sum = added.checked_add(literal).map_or((value, literal), |all| (root, all));
    selector.maps.sums[inst] = (sum.0.into(), sum.1);
}

/// Looks at everything in a block.
fn scan(selector: &mut Selector<'_>, block: Block, used: &mut Used) {
    let kernel = selector.kernel;
    for (at, &inst) in kernel.blocks[block].insts.iter().enumerate() {
        if let Payload::Constant(Constant::Int(Scalar::I64, 0)) = kernel.insts[inst].payload {
            selector.maps.zero = kernel.result_of(inst).into();
        }
        let data = &kernel.insts[inst];
        selector.maps.home[inst] = block.into();
        selector.maps.place[inst] = at as u32;
        for &region in &data.regions {
            selector.maps.owner[region] = inst.into();
        }
        for &argument in &data.arguments {
            selector.maps.uses[argument] += 1;
        }
        if matches!(data.opcode, Opcode::Add | Opcode::Sub) {
            note_sum(selector, inst);
        }
        count_absorbed(selector, inst, block);
        match &data.payload {
            Payload::Symbol(symbol) => used.symbols[*symbol] = true,
            Payload::Access { buffer, leaf } | Payload::Atomic { buffer, leaf, .. } => {
                let first = !std::mem::replace(&mut used.buffers[*buffer], true);
                let soa = kernel.buffers[*buffer].layout == Layout::Soa;
                let allocation = if soa { *leaf as usize } else { 0 };
                let leaves = &mut used.leaves[*buffer];
                if leaves.len() <= allocation {
                    leaves.resize(allocation + 1, false);
                }
                leaves[allocation] = true;
                count_subscripts(selector, inst, *buffer, *leaf);
                if first {
                    for extent in kernel.buffers[*buffer].extents.iter().skip(1) {
                        symbols_of(extent, used);
                    }
                }
            }
            _ => {}
        }
        used.checks |= matches!(data.opcode, Opcode::Check | Opcode::Print);
        used.loops.extend(data.opcode.is_loop().then_some(inst));
        used.conjunctions.extend((data.opcode == Opcode::And).then_some(inst));
        for &region in &data.regions {
            scan(selector, region, used);
        }
    }
}

fn symbols_of(expr: &Expr, used: &mut Used) {
    match expr {
        Expr::Symbol(index) => used.symbols[Symbol::new(*index)] = true,
        Expr::Unary(_, operand) => symbols_of(operand, used),
        Expr::Binary(_, left, right) => {
            symbols_of(left, used);
            symbols_of(right, used);
        }
        Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) => {}
    }
}

impl Selector<'_> {
    /// Declares the parameters and reads them: pointers of the signature's arrays, of scratch buffers and statics, then
    /// symbols, then the error record.
    fn prologue(&mut self, launch: Launch, behind_checks: bool, used: &Used) {
        let kernel = self.kernel;
        let mut buffers: Vec<Buffer> = kernel.buffers.keys().filter(|buffer| used.buffers[*buffer]).collect();
        buffers.sort_by_key(|buffer| match kernel.buffers[*buffer].kind {
            BufferKind::Argument { position, .. } => (0, position, buffer.index()),
            _ => (1, 0, buffer.index()),
        });
        for &buffer in &buffers {
            match kernel.buffers[buffer].kind {
                BufferKind::Argument { .. } | BufferKind::Scratch | BufferKind::Static(_) => {
                    for leaf in 0..used.leaves[buffer].len() {
                        if used.leaves[buffer][leaf] {
                            self.pointer_param(buffer, leaf);
                        }
                    }
                }
                _ => {}
            }
        }
        for symbol in kernel.symbols.keys().filter(|symbol| used.symbols[*symbol]) {
            if let Some(known) = kernel.known_symbol(launch, symbol) {
                self.symbols[symbol] = Some(Operand::Int(known));
                continue;
            }
            self.symbol_param(symbol);
        }
        let may_run_on = (used.checks || behind_checks) && self.may_run_on(used);
        let follows = may_run_on && behind_checks;
        if used.checks || follows {
            let param = self.builder.param(Param::global_pointer("error_record", 8));
            self.params.push((EntryArgument::ErrorRecord, param));
            let record = self.read_pointer(param, "error_record");
            self.error_record = Some(record);
            if may_run_on {
                self.note_failures(follows.then_some(record));
            }
        }
        let mut lists: Vec<Vec<Operand>> = vec![Vec::new()];
        for &buffer in &buffers {
            self.module_or_local_base(buffer);
            let extents = kernel.buffers[buffer].extents.iter().skip(1);
            let extents: Vec<Operand> = extents.map(|extent| self.host_expression(extent)).collect();
            let known = lists.iter().position(|list| *list == extents);
            let number = known.unwrap_or_else(|| {
                lists.push(extents.clone());
                lists.len() - 1
            });
            self.extents[buffer] = (number as u32, extents);
        }
    }

    /// Whether a failed check may leave some loop without an end.
    fn may_run_on(&self, used: &Used) -> bool {
        let mut endless = Endless::of_loops(self.kernel);
        used.loops.iter().any(|inst| endless.may_run_on(*inst))
    }

    fn pointer_param(&mut self, buffer: Buffer, leaf: usize) {
        let data = &self.kernel.buffers[buffer];
        let mut name = data.name.clone();
        if data.layout == Layout::Soa {
            name = format!("{name}_{}", data.element.leaves[leaf].path.replace('.', "_"));
        }
        let name = self.free_name(&name);
        let param = self.builder.param(Param::global_pointer(name.clone(), data.element.align.max(1) as u32));
        self.params.push((EntryArgument::Buffer(buffer, leaf), param));
        let reg = self.read_pointer(param, &name);
        let bases = &mut self.bases[buffer];
        if bases.len() <= leaf {
            bases.resize(leaf + 1, None);
        }
        bases[leaf] = Some(reg);
    }

    fn read_pointer(
        &mut self,
        param: super::super::operand::ParamId,
        name: &str,
    ) -> super::super::operand::Reg {
        let raw = self.builder.reg_for(Type::U64, &format!("{name}_param"));
        let dst = self.builder.reg_for(Type::U64, &format!("{name}_base"));
        self.builder.emit(Ld {
            space: Space::Param,
            ty: Type::U64,
            dst: smallvec![raw],
            address: param.into(),
            ..Default::default()
        });
        self.builder.emit(Cvta { to: true, space: Space::Global, ty: Type::U64, dst, a: raw.into() });
        dst
    }

    /// Parameter names are the user's; two that fall together are told apart by a number.
    fn free_name(&self, name: &str) -> String {
        let is_used = |candidate: &str| {
            self.builder.is_outside(candidate)
                || self.builder.entry().params.values().any(|param| param.name == candidate)
        };
        let stem: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        let stem = format!("p_{stem}");
        if !is_used(&stem) {
            return stem;
        }
        (2..).map(|number| format!("{stem}_{number}")).find(|candidate| !is_used(candidate)).unwrap_or(stem)
    }

    fn symbol_param(&mut self, symbol: Symbol) {
        let data = &self.kernel.symbols[symbol];
        let storage = data.scalar;
        let name = self.free_name(&data.name);
        // Narrow and boolean scalars travel as their bits.
        let param_ty = match storage {
            Scalar::Bool => Type::U8,
            Scalar::F16 | Scalar::BF16 => Type::B16,
            other => signed_type(other),
        };
        let param = self.builder.param(Param::scalar(name, param_ty));
        self.params.push((EntryArgument::Symbol(symbol), param));
        let hint = data.name.replace('.', "_");
        let operand = self.load_wide(Space::Param, param.into(), storage, None, false, &hint);
        self.symbols[symbol] = Some(operand);
    }

    /// Shared buffers lie one after the other in one array of the block.
    fn shared_bases(&mut self, plan: &SharedPlan) {
        if plan.offsets.is_empty() {
            return;
        }
        let symbol = match (plan.dynamic, self.globals.dynamic_shared, &plan.total) {
            (true, Some(variable), _) => PtxSymbol::Module(variable),
            (_, _, total) => {
                let bytes = total.evaluate_int(&[]).unwrap_or(0).max(1) as u64;
                let variable = Variable::array("shared", Space::Shared, Type::B8, bytes);
                PtxSymbol::Entry(self.builder.variable(Variable { align: 16, ..variable }))
            }
        };
        for (buffer, offset) in &plan.offsets {
            if let Expr::Int(offset) = offset {
                self.note_tile(*buffer, symbol, *offset as u64);
            }
            let dst = self.builder.reg_for(Type::U64, &format!("{}_base", self.kernel.buffers[*buffer].name));
            match offset {
                Expr::Int(offset) => {
                    self.builder.emit(Mov { ty: Type::U64, dst, a: Operand::Symbol(symbol, *offset) });
                }
                other => {
                    let start = self.temp(Type::U64);
                    self.builder.emit(Mov { ty: Type::U64, dst: start, a: Operand::Symbol(symbol, 0) });
                    let b = self.host_expression(other);
                    let (op, ty, a) = (IntBinaryOp::Add, Type::S64, start.into());
                    self.builder.emit(IntBinary { op, ty, dst, a, b, ..Default::default() });
                }
            }
            self.bases[*buffer] = vec![Some(dst)];
        }
    }

    /// Constants and private arrays have addresses that no parameter brings.
    fn module_or_local_base(&mut self, buffer: Buffer) {
        let data = &self.kernel.buffers[buffer];
        let symbol = match data.kind {
            BufferKind::Argument { .. }
            | BufferKind::Scratch
            | BufferKind::Static(_)
            | BufferKind::Shared => return,
            BufferKind::Constant(id) => match self.globals.constants[id] {
                Some((variable, _)) => PtxSymbol::Module(variable),
                None => return,
            },
            BufferKind::Private => {
                let count: i128 =
                    data.extents.iter().map(|extent| extent.evaluate_int(&[]).unwrap_or(0)).product();
                let bytes =
                    (count.max(0) as u64).saturating_mul(data.element.size).max(1).next_multiple_of(4);
                let variable = self.builder.variable(Variable {
                    align: 16,
                    length: Length::Array(bytes),
                    ..Variable::array(data.name.clone(), Space::Local, Type::B8, bytes)
                });
                self.note_tile(buffer, PtxSymbol::Entry(variable), 0);
                PtxSymbol::Entry(variable)
            }
        };
        let dst = self.builder.reg_for(Type::U64, &format!("{}_base", data.name));
        self.builder.emit(Mov { ty: Type::U64, dst, a: Operand::Symbol(symbol, 0) });
        self.bases[buffer] = vec![Some(dst)];
    }
}
