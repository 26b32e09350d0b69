//! Factors become coordinates: which iteration of a distributed loop a thread runs.
//!
//! The grid's x axis walks the last axis that has a grid factor, y the one before it, z all earlier ones as one
//! mixed-radix number. Within a block, threads are numbered by warps (of the axes' warp factors, later axes
//! faster), then lanes. An entry loops over a grid axis wherever its block count may be beyond the hardware's
//! limit, so that every extent is covered.

use super::super::instruction::*;
use super::super::operand::{Axis as GridAxis, Label, Operand, Reg, SpecialReg};
use super::super::types::{RegClass, Type};
use super::SelectError;
use super::plan::GridPlan;
use super::selector::Selector;
use crate::analysis::may_exceed;
use crate::ir::entities::{Axis, Symbol, Value};
use crate::ir::kernel::{Factor, Kernel, Level};
use crate::manifest::{BinaryOp, Expr, SymbolKind};
use cranelift_entity::EntityRef;

/// One axis of a distributed loop while it is opened.
struct Distributed {
    low: Operand,
    high: Operand,
    extent: Option<Expr>,
    factors: Vec<Factor>,
    hint: String,
    /// This thread's block coordinate along the axis.
    block: Option<Coordinate>,
}

#[derive(Clone, Copy)]
enum Coordinate {
    /// Below 2^32.
    Narrow(Operand),
    Wide(Operand),
}

/// A loop that has been opened and must be closed after the body.
pub(super) struct OpenLoop {
    counter: Reg,
    step: Operand,
    limit: Operand,
    head: Label,
    done: Label,
    ty: Type,
}

pub(super) struct OpenForall {
    loops: Vec<OpenLoop>,
    skip: Option<Label>,
    pub indices: Vec<Operand>,
}

fn distributed(factor: &Factor) -> bool {
    matches!(factor.level, Level::Grid | Level::Warp | Level::Lane)
}

impl Selector<'_> {
    pub fn is_distributed(&self, axes: &[Axis]) -> bool {
        axes.iter().any(|axis| self.kernel.axes[*axis].factors.iter().any(distributed))
    }

    /// Opens a loop whose axes are spread over the grid: emits this thread's indices and the guards.
    pub fn open_forall(
        &mut self,
        axes: &[Axis],
        bounds: &[(Value, Value)],
    ) -> Result<OpenForall, SelectError> {
        if self.grid.is_some() {
            return Err(self.error("two loops of one launch are spread over the grid"));
        }
        let mut list = Vec::with_capacity(axes.len());
        for (axis, (low, high)) in axes.iter().zip(bounds) {
            let data = &self.kernel.axes[*axis];
            let extent = match (self.kernel.symbolic(*low), self.kernel.symbolic(*high)) {
                (Some(Expr::Int(0)), Some(to)) => Some(to),
                (Some(from), Some(to)) => Some(Expr::binary(BinaryOp::Sub, to, from)),
                // Only the device knows it: the grid's size does not depend on it, and a loop covers the rest.
                _ => None,
            };
            list.push(Distributed {
                low: self.operand(*low),
                high: self.operand(*high),
                extent,
                factors: data.factors.clone(),
                hint: data.name.clone(),
                block: None,
            });
        }
        let mut open = OpenForall { loops: Vec::new(), skip: None, indices: Vec::new() };
        self.open_grid(&mut list, &mut open)?;
        self.open_threads(&list, &mut open);
        Ok(open)
    }

    pub fn close_forall(&mut self, open: OpenForall) {
        if let Some(skip) = open.skip {
            self.builder.place(skip);
        }
        for opened in open.loops.into_iter().rev() {
            self.close_loop(opened);
        }
    }

    fn open_grid(&mut self, list: &mut [Distributed], open: &mut OpenForall) -> Result<(), SelectError> {
        let grid: Vec<usize> =
            (0..list.len()).filter(|at| list[*at].factors.iter().any(|f| f.level == Level::Grid)).collect();
        let mut plan = GridPlan::single();
        let mut counts: Vec<Expr> = Vec::with_capacity(grid.len());
        for at in &grid {
            let count = block_count(self.kernel, &list[*at]);
            counts.push(count.ok_or_else(|| {
                self.error(format!("the range of `{}` is not known to the host", list[*at].hint))
            })?);
        }
        let positions = grid.len();
        if positions > 2 {
            let leading = &grid[..positions - 2];
            plan.counts[2] = counts[..positions - 2]
                .iter()
                .cloned()
                .reduce(|product, count| Expr::binary(BinaryOp::Mul, product, count))
                .unwrap_or(Expr::Int(1));
            let linear = self.grid_coordinate(2, &plan.counts[2].clone(), "block_z", open);
            self.split_blocks(linear, leading, &counts, list);
        }
        if positions > 1 {
            let at = grid[positions - 2];
            plan.counts[1] = counts[positions - 2].clone();
            list[at].block = Some(self.grid_coordinate(1, &counts[positions - 2], "block_y", open));
        }
        if let Some(&at) = grid.last() {
            plan.counts[0] = counts[positions - 1].clone();
            list[at].block = Some(self.grid_coordinate(0, &counts[positions - 1], "block", open));
        }
        self.grid = Some(plan);
        Ok(())
    }

    /// Takes a linear block number apart, last axis fastest.
    fn split_blocks(
        &mut self,
        linear: Coordinate,
        axes: &[usize],
        counts: &[Expr],
        list: &mut [Distributed],
    ) {
        if let [only] = axes {
            list[*only].block = Some(linear);
            return;
        }
        let mut rest = self.wide(linear);
        for (position, &at) in axes.iter().enumerate().rev() {
            if position == 0 {
                list[at].block = Some(Coordinate::Wide(rest));
                break;
            }
            let count = self.host_expression(&counts[position]);
            let quotient = self.int(IntBinaryOp::Div, Type::U64, rest, count);
            let remainder = self.int(IntBinaryOp::Rem, Type::U64, rest, count);
            list[at].block = Some(Coordinate::Wide(remainder.into()));
            rest = quotient.into();
        }
    }

    fn grid_coordinate(
        &mut self,
        axis: usize,
        count: &Expr,
        hint: &str,
        open: &mut OpenForall,
    ) -> Coordinate {
        let which = GridAxis::ALL[axis];
        let narrow = self.builder.reg(RegClass::B32, hint);
        self.builder.emit(Mov { ty: Type::U32, dst: narrow, a: SpecialReg::Ctaid(which).into() });
        if !may_exceed(self.kernel, axis, count) {
            return Coordinate::Narrow(narrow.into());
        }
        let counter = self.builder.reg(RegClass::B64, &format!("{hint}_at"));
        self.builder.emit(Cvt {
            dst_ty: Type::U64,
            src_ty: Type::U32,
            dst: counter,
            a: narrow.into(),
            ..Default::default()
        });
        let stride32 = self.builder.reg(RegClass::B32, &format!("{hint}_count"));
        self.builder.emit(Mov { ty: Type::U32, dst: stride32, a: SpecialReg::Nctaid(which).into() });
        let stride = self.cvt(None, Type::U64, Type::U32, stride32.into());
        let limit = self.host_expression(count);
        let opened = self.open_loop(counter, limit, stride.into(), Type::S64, hint);
        open.loops.push(opened);
        Coordinate::Wide(counter.into())
    }

    /// `while counter < limit`; the counter has its first value already.
    pub fn open_loop(
        &mut self,
        counter: Reg,
        limit: Operand,
        step: Operand,
        ty: Type,
        hint: &str,
    ) -> OpenLoop {
        let head = self.builder.label(&format!("loop_{hint}"));
        let done = self.builder.label(&format!("end_{hint}"));
        let p = self.setp(Compare::Ge, ty, counter.into(), limit);
        self.builder.emit_if(p, Bra { uni: false, target: done });
        self.builder.place(head);
        OpenLoop { counter, step, limit, head, done, ty }
    }

    pub fn close_loop(&mut self, open: OpenLoop) {
        let OpenLoop { counter, step, limit, head, done, ty } = open;
        self.builder.emit(IntBinary {
            op: IntBinaryOp::Add,
            ty,
            dst: counter,
            a: counter.into(),
            b: step,
            ..Default::default()
        });
        let p = self.setp(Compare::Lt, ty, counter.into(), limit);
        self.builder.emit_if(p, Bra { uni: false, target: head });
        self.builder.place(done);
    }

    fn wide(&mut self, coordinate: Coordinate) -> Operand {
        match coordinate {
            Coordinate::Wide(operand) => operand,
            Coordinate::Narrow(Operand::Int(value)) => Operand::Int(value),
            Coordinate::Narrow(operand) => self.cvt(None, Type::U64, Type::U32, operand).into(),
        }
    }

    fn open_threads(&mut self, list: &[Distributed], open: &mut OpenForall) {
        let sizes = |axis: &Distributed, level: Level| -> u64 {
            axis.factors.iter().filter(|f| f.level == level).filter_map(|f| f.size).product()
        };
        let warps: Vec<u64> = list.iter().map(|axis| sizes(axis, Level::Warp)).collect();
        let lanes: Vec<u64> = list.iter().map(|axis| sizes(axis, Level::Lane)).collect();
        let lane_count: u64 = lanes.iter().product();
        self.threads = (warps.iter().product::<u64>() * lane_count) as u32;
        let threaded: Vec<usize> = (0..list.len()).filter(|at| warps[*at] * lanes[*at] > 1).collect();
        let tid = (self.threads > 1).then(|| {
            let tid = self.builder.reg(RegClass::B32, "tid");
            self.builder.emit(Mov { ty: Type::U32, dst: tid, a: SpecialReg::Tid(GridAxis::X).into() });
            tid
        });
        // One axis that has all warps and lanes, next to each other, takes the thread number as it is.
        let whole = match threaded.as_slice() {
            [only] => list[*only]
                .factors
                .windows(2)
                .any(|pair| pair[0].level == Level::Warp && pair[1].level == Level::Lane),
            _ => false,
        } || warps.iter().all(|size| *size == 1) && threaded.len() == 1;
        let (warp, lane) = match tid {
            Some(tid) if !whole => {
                let lane = self.remainder_by(tid.into(), lane_count);
                let warp = self.quotient_by(tid.into(), lane_count);
                (warp, lane)
            }
            _ => (Operand::Int(0), Operand::Int(0)),
        };
        let mut guards = Vec::new();
        for (at, axis) in list.iter().enumerate() {
            let later_warps: u64 = warps[at + 1..].iter().product();
            let later_lanes: u64 = lanes[at + 1..].iter().product();
            let mut terms: Vec<(Coordinate, u64)> = Vec::new();
            let mut stride = 1u64;
            for factor in axis.factors.iter().rev() {
                let size = factor.size.unwrap_or(1);
                match factor.level {
                    Level::Lane if whole => {
                        if let Some(tid) = tid.filter(|_| threaded.contains(&at)) {
                            terms.push((Coordinate::Narrow(tid.into()), stride));
                        }
                    }
                    Level::Warp if whole => {}
                    Level::Lane if size > 1 => {
                        let part = self.quotient_by(lane, later_lanes);
                        let part = self.remainder_by_if(part, size, lane_count / later_lanes);
                        terms.push((Coordinate::Narrow(part), stride));
                    }
                    Level::Warp if size > 1 => {
                        let total: u64 = warps.iter().product();
                        let part = self.quotient_by(warp, later_warps);
                        let part = self.remainder_by_if(part, size, total / later_warps);
                        terms.push((Coordinate::Narrow(part), stride));
                    }
                    Level::Lane | Level::Warp => {}
                    Level::Grid => {
                        if let Some(block) = axis.block {
                            terms.push((block, stride));
                        }
                    }
                    Level::Serial | Level::Vector | Level::Cluster => {
                        let counter = self.serial_factor(axis, factor, open);
                        terms.push((Coordinate::Wide(counter), stride));
                    }
                }
                stride *= size;
            }
            let index = self.compose(axis, terms);
            if needs_guard(axis) {
                guards.push(self.setp(Compare::Lt, Type::S64, index, axis.high));
            }
            open.indices.push(index);
        }
        if let Some(all) =
            guards.into_iter().reduce(|a, b| self.logic(LogicBinaryOp::And, Type::Pred, a.into(), b.into()))
        {
            let skip = self.builder.label("outside");
            let guard = super::super::operand::PredOperand { reg: all, negated: true };
            self.builder.emit_if(guard, Bra { uni: false, target: skip });
            open.skip = Some(skip);
        }
    }

    /// Opens a loop over a factor that each thread walks by itself.
    fn serial_factor(&mut self, axis: &Distributed, factor: &Factor, open: &mut OpenForall) -> Operand {
        let counter = self.builder.reg(RegClass::B64, &format!("{}_step", axis.hint));
        self.copy(counter, Type::B64, Operand::Int(0));
        let limit = match factor.size {
            Some(size) => Operand::Int(size as i64),
            None => {
                let length = if axis.low == Operand::Int(0) {
                    axis.high
                } else {
                    self.int(IntBinaryOp::Sub, Type::S64, axis.high, axis.low).into()
                };
                let inner = Operand::Int(axis_inner(axis, factor) as i64);
                self.host_binary(BinaryOp::CeilDiv, length, inner)
            }
        };
        let opened = self.open_loop(counter, limit, Operand::Int(1), Type::S64, &axis.hint);
        open.loops.push(opened);
        counter.into()
    }

    /// `low` plus the sum of coordinate times stride.
    fn compose(&mut self, axis: &Distributed, terms: Vec<(Coordinate, u64)>) -> Operand {
        let mut sum: Option<Operand> = (axis.low != Operand::Int(0)).then_some(axis.low);
        for (coordinate, stride) in terms {
            sum = Some(match (coordinate, sum) {
                (Coordinate::Narrow(operand), None) if stride == 1 => self.wide(Coordinate::Narrow(operand)),
                (Coordinate::Wide(operand), None) if stride == 1 => operand,
                (Coordinate::Wide(operand), Some(sum)) if stride == 1 => {
                    self.named_add(&axis.hint, sum, operand)
                }
                (Coordinate::Narrow(operand), Some(sum)) if stride == 1 => {
                    let wide = self.wide(Coordinate::Narrow(operand));
                    self.named_add(&axis.hint, sum, wide)
                }
                (Coordinate::Narrow(operand), Some(sum)) => {
                    let dst = self.builder.reg(RegClass::B64, &axis.hint);
                    let (part, ty) = (MulPart::Wide, Type::U32);
                    let b = Operand::Int(stride as i64);
                    self.builder.emit(IntMad { part, ty, dst, a: operand, b, c: sum, ..Default::default() });
                    dst.into()
                }
                (coordinate, sum) => {
                    let a = self.wide(coordinate);
                    let dst = self.builder.reg(RegClass::B64, &axis.hint);
                    let (part, ty, b) = (MulPart::Lo, Type::S64, Operand::Int(stride as i64));
                    match sum {
                        Some(c) => {
                            self.builder.emit(IntMad { part, ty, dst, a, b, c, ..Default::default() });
                        }
                        None => self.builder.emit(IntBinary {
                            op: IntBinaryOp::Mul,
                            part,
                            ty,
                            dst,
                            a,
                            b,
                            ..Default::default()
                        }),
                    }
                    dst.into()
                }
            });
        }
        sum.unwrap_or(axis.low)
    }

    fn named_add(&mut self, hint: &str, a: Operand, b: Operand) -> Operand {
        let dst = self.builder.reg(RegClass::B64, hint);
        self.builder.emit(IntBinary { op: IntBinaryOp::Add, ty: Type::S64, dst, a, b, ..Default::default() });
        dst.into()
    }

    fn quotient_by(&mut self, value: Operand, divisor: u64) -> Operand {
        match divisor {
            1 => value,
            _ if value == Operand::Int(0) => value,
            _ if divisor.is_power_of_two() => {
                let amount = Operand::Int(divisor.trailing_zeros().into());
                self.shift(ShiftOp::Right, Type::U32, value, amount).into()
            }
            _ => self.int(IntBinaryOp::Div, Type::U32, value, Operand::Int(divisor as i64)).into(),
        }
    }

    fn remainder_by(&mut self, value: Operand, divisor: u64) -> Operand {
        match divisor {
            1 => Operand::Int(0),
            _ if value == Operand::Int(0) => value,
            _ if divisor.is_power_of_two() => {
                self.logic(LogicBinaryOp::And, Type::B32, value, Operand::Int(divisor as i64 - 1)).into()
            }
            _ => self.int(IntBinaryOp::Rem, Type::U32, value, Operand::Int(divisor as i64)).into(),
        }
    }

    /// The remainder, left out where the value is below `range` and that is no more than the divisor.
    fn remainder_by_if(&mut self, value: Operand, divisor: u64, range: u64) -> Operand {
        if range <= divisor { value } else { self.remainder_by(value, divisor) }
    }
}

fn block_count(kernel: &Kernel, axis: &Distributed) -> Option<Expr> {
    let inner: u64 = axis.factors.iter().filter(|f| f.level != Level::Grid).filter_map(|f| f.size).product();
    if let Some(size) = axis.factors.iter().find(|f| f.level == Level::Grid).and_then(|f| f.size) {
        return Some(Expr::Int(size as i64));
    }
    let inner = inner as i64;
    // An empty range has no blocks, whatever its ends.
    let extent = match axis.extent.as_ref()? {
        Expr::Int(value) => {
            let value = (*value).max(0);
            return Some(Expr::Int(value / inner + i64::from(value % inner != 0)));
        }
        dimension @ Expr::Symbol(index) if is_dimension(kernel, *index) => dimension.clone(),
        other => Expr::binary(BinaryOp::Max, other.clone(), Expr::Int(0)),
    };
    Some(if inner == 1 { extent } else { Expr::binary(BinaryOp::CeilDiv, extent, Expr::Int(inner)) })
}

fn is_dimension(kernel: &Kernel, symbol: usize) -> bool {
    kernel.symbols.get(Symbol::new(symbol)).is_some_and(|data| matches!(data.kind, SymbolKind::Dim { .. }))
}

/// The product of the sizes of the factors inside this one.
fn axis_inner(axis: &Distributed, factor: &Factor) -> u64 {
    let at = axis.factors.iter().position(|known| std::ptr::eq(known, factor)).unwrap_or(0);
    axis.factors[at + 1..].iter().filter_map(|f| f.size).product()
}

/// Whether the product of the factors may reach past the end of the axis.
fn needs_guard(axis: &Distributed) -> bool {
    let fixed: u64 = axis.factors.iter().filter_map(|f| f.size).product();
    let open_ended = axis.factors.iter().any(|f| f.size.is_none());
    match &axis.extent {
        Some(Expr::Int(extent)) if *extent > 0 => {
            if open_ended {
                !(*extent as u64).is_multiple_of(fixed)
            } else {
                *extent as u64 != fixed
            }
        }
        _ => !(open_ended && fixed == 1),
    }
}
