//! Decoding of loads, stores, atomics and copies.

use krn_compiler::ptx::instruction::*;
use krn_compiler::ptx::{Address, Base, Operand, Reg, RegClass, Space, Type};

use super::decoder::{Decoded, Decoder, width};
use crate::emulator::memory::{CONST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::emulator::opcodes::{
    AtomicForm, AtomicOp, CopyForm, CopyOp, IntOp, LoadForm, MemorySpace, MoveOp, StoreForm,
};
use crate::emulator::program::Place;
use crate::emulator::program::{Code, Fixed, Inst, NOWHERE};

pub(super) fn commit() -> Inst {
    Inst::new(Code::Copy(CopyOp::Commit))
}

pub(super) fn wait(op: &CpAsyncWait) -> Inst {
    Inst { imm: op.groups.map_or(-1, i64::from), ..Inst::new(Code::Copy(CopyOp::Wait)) }
}

/// A decoded address: base column, whether it has 64 bits, and the offset.
pub(super) struct Place64 {
    pub(super) space: MemorySpace,
    pub(super) base: u32,
    pub(super) wide: bool,
    pub(super) offset: i64,
}

fn memory_space(space: Space) -> Decoded<MemorySpace> {
    Ok(match space {
        Space::Generic => MemorySpace::Generic,
        Space::Global => MemorySpace::Global,
        Space::Shared => MemorySpace::Shared,
        Space::Const => MemorySpace::Const,
        Space::Local => MemorySpace::Local,
        Space::Param => MemorySpace::Param,
        Space::SharedCluster => return Err("shared memory of a cluster is not modelled".to_owned()),
    })
}

/// How far the generic addresses of a state space lie from its own.
fn window(space: Space) -> Decoded<u64> {
    Ok(match space {
        Space::Generic | Space::Global => 0,
        Space::Shared => SHARED_WINDOW,
        Space::Const => CONST_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Param => PARAM_WINDOW,
        Space::SharedCluster => return Err("shared memory of a cluster is not modelled".to_owned()),
    })
}

impl Decoder<'_> {
    pub(super) fn address(&mut self, space: Space, address: Address) -> Decoded<Place64> {
        let (space, base, offset) = match address.base {
            Base::Reg(reg) => {
                let bits = self.class(reg)?.bits();
                if bits != 32 && bits != 64 {
                    return Err(format!("{} cannot hold an address", self.name(reg)));
                }
                let base = self.src(Operand::Reg(reg), bits)?;
                let space = memory_space(space)?;
                return Ok(Place64 { space, base, wide: bits == 64, offset: address.offset });
            }
            Base::Symbol(symbol) => {
                let (own, at) = self.symbol(symbol)?;
                // A symbol without a space in the instruction is looked for in its own.
                let space = if space == Space::Generic { own } else { space };
                (space, at, address.offset)
            }
            Base::Absolute => (space, 0, address.offset),
        };
        let zero = self.fixed_column64(Fixed::Value(0));
        let offset = base.wrapping_add(offset as u64) as i64;
        Ok(Place64 { space: memory_space(space)?, base: zero, wide: true, offset })
    }

    /// The columns of the registers of a load or store, each element of `width` bytes, and whether they are wide.
    fn element_columns(&mut self, regs: &[Reg], ty: Type, write: bool) -> Decoded<(Vec<u32>, RegClass)> {
        let Some(first) = regs.first() else { return Err("it has no operands".to_owned()) };
        let class = self.class(*first)?;
        if class == RegClass::Pred || class.bits() < ty.bits().max(16) {
            return Err(format!("a .{class} register cannot hold a .{ty}"));
        }
        let mut columns = Vec::new();
        for reg in regs {
            if self.class(*reg)?.bits() != class.bits() {
                return Err("its registers differ in size".to_owned());
            }
            let parts = if class == RegClass::B128 { 2 } else { 1 };
            let start = self.column(*reg, class.bits())?;
            for column in start..start + parts {
                let place = if class.bits() >= 64 { Place::Wide64(column) } else { Place::Wide32(column) };
                if write {
                    self.current.writes.push(place)
                } else {
                    self.current.reads.push(place)
                }
                columns.push(column);
            }
        }
        Ok((columns, class))
    }

    /// The column itself for one element; the start of a new list for several.
    fn one_or_list(&mut self, columns: &[u32]) -> u32 {
        if let [column] = columns {
            return *column;
        }
        let start = self.program.lists.len() as u32;
        self.program.lists.extend_from_slice(columns);
        start
    }

    pub(super) fn ld(&mut self, op: &Ld) -> Decoded {
        let (columns, class) = self.element_columns(&op.dst, op.ty, true)?;
        let width = op.ty.bytes().min(8);
        if let (Space::Param, Base::Symbol(symbol)) = (op.space, op.address.base) {
            let (_, base) = self.symbol(symbol)?;
            let offset = base.wrapping_add(op.address.offset as u64);
            if let Some(inst) = self.known_param(op, &columns, class, offset, width) {
                return Ok(inst);
            }
        }
        let place = self.address(op.space, op.address)?;
        let form = LoadForm {
            space: place.space,
            width: width as u8,
            count: columns.len() as u8,
            signed: op.ty.is_signed(),
            wide: class.bits() >= 64,
            half: class.bits() == 16,
            ordered: matches!(op.order, AccessOrder::Relaxed(_) | AccessOrder::Acquire(_)),
            wide_base: place.wide,
        };
        let d = self.one_or_list(&columns);
        Ok(Inst { imm: place.offset, ..Inst::with(Code::Load(form), d, [place.base, 0, 0]) })
    }

    /// A load of parameters is a move, where offset and type are plain.
    fn known_param(
        &mut self,
        op: &Ld,
        columns: &[u32],
        class: RegClass,
        offset: u64,
        width: u32,
    ) -> Option<Inst> {
        let bytes = u64::from(width) * columns.len() as u64;
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.param_bytes);
        let signed_half = class.bits() == 16 && op.ty.is_signed() && width == 1;
        if !inside || !offset.is_multiple_of(bytes) || signed_half || columns.len() > 8 {
            return None;
        }
        let wide = class.bits() >= 64;
        let mut pairs = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            let signed = op.ty.is_signed() && class.bits() > 16;
            let fixed = Fixed::Param { offset: offset as u32 + at as u32 * width, bytes: width, signed };
            let from = if wide { self.fixed_column64(fixed) } else { self.fixed_column32(fixed) };
            pairs.push((*column, from));
        }
        Some(match (pairs.as_slice(), wide) {
            ([(to, from)], false) => Inst::with(Code::Move(MoveOp::Move32), *to, [*from, 0, 0]),
            ([(to, from)], true) => Inst::with(Code::Move(MoveOp::Move64), *to, [*from, 0, 0]),
            (pairs, false) => self.many(Code::Move(MoveOp::Many32), pairs),
            (pairs, true) => self.many(Code::Move(MoveOp::Many64), pairs),
        })
    }

    pub(super) fn st(&mut self, op: &St) -> Decoded {
        let width = op.ty.bytes().min(8);
        // Constants come as columns of the size that the registers have, or that the type needs.
        let known = op.src.iter().find_map(|operand| operand.reg());
        let class = match known {
            Some(reg) => self.class(reg)?,
            None => op.ty.class(),
        };
        let mut columns = Vec::new();
        for operand in &op.src {
            match operand {
                Operand::Reg(reg) => {
                    let (own, own_class) = self.element_columns(&[*reg], op.ty, false)?;
                    if own_class.bits() != class.bits() {
                        return Err("its registers differ in size".to_owned());
                    }
                    columns.extend(own);
                }
                constant if class.bits() <= 64 => {
                    // At the type's own size: a float constant must not be widened to its register.
                    let fixed = self.fixed_value(*constant, op.ty.bits().max(16))?;
                    columns.push(if class.bits() == 64 {
                        self.fixed_column64(fixed)
                    } else {
                        self.fixed_column32(fixed)
                    });
                }
                _ => return Err("128 bits can only be stored from registers".to_owned()),
            }
        }
        if columns.is_empty() {
            return Err("it has no operands".to_owned());
        }
        let place = self.address(op.space, op.address)?;
        let form = StoreForm {
            space: place.space,
            width: width as u8,
            count: columns.len() as u8,
            wide: class.bits() >= 64,
            wide_base: place.wide,
        };
        let b = self.one_or_list(&columns);
        Ok(Inst { imm: place.offset, ..Inst::with(Code::Store(form), 0, [place.base, b, 0]) })
    }

    pub(super) fn atom(&mut self, op: &Atom) -> Decoded {
        self.atomic(op.space, op.op, op.ty, Some(op.dst), op.address, op.a, op.b)
    }

    pub(super) fn red(&mut self, op: &Red) -> Decoded {
        self.atomic(op.space, op.op, op.ty, None, op.address, op.a, None)
    }

    #[allow(clippy::too_many_arguments)]
    fn atomic(
        &mut self,
        space: Space,
        op: AtomOp,
        ty: Type,
        dst: Option<Reg>,
        address: Address,
        a: Operand,
        b: Option<Operand>,
    ) -> Decoded {
        let bits = width(ty)?;
        let place = self.address(space, address)?;
        let a = self.src(a, bits)?;
        let b = match b {
            Some(b) => self.src(b, bits)?,
            None if op == AtomOp::Cas => return Err("cas needs a new value".to_owned()),
            None => 0,
        };
        let mut result = None;
        let d = match dst {
            Some(reg) => {
                let column = self.dst(reg, bits)?;
                result = Some(if bits == 64 { Place::Wide64(column) } else { Place::Wide32(column) });
                column
            }
            None => NOWHERE,
        };
        let op = AtomicOp { op, ty };
        if place.space != MemorySpace::Shared {
            self.atomics.push((op, result));
        }
        let form = AtomicForm { space: place.space, op, wide_base: place.wide };
        Ok(Inst { imm: place.offset, ..Inst::with(Code::Atomic(form), d, [place.base, a, b]) })
    }

    pub(super) fn cvta(&mut self, op: &Cvta) -> Decoded {
        let distance = window(op.space)?;
        let bits = width(op.ty)?;
        if bits != 64 {
            return Err("addresses have 64 bits".to_owned());
        }
        let a = self.src(op.a, 64)?;
        let d = self.dst(op.dst, 64)?;
        if distance == 0 {
            return Ok(Inst::with(Code::Move(MoveOp::Move64), d, [a, 0, 0]));
        }
        let b = self.fixed_column64(Fixed::Value(distance));
        let code = if op.to { IntOp::Sub } else { IntOp::Add };
        Ok(Inst::with(Code::Int64(code), d, [a, b, 0]))
    }

    pub(super) fn cp_async(&mut self, op: &CpAsync) -> Decoded {
        if !matches!(op.bytes, 4 | 8 | 16) {
            return Err(format!("cp.async of {} bytes does not exist", op.bytes));
        }
        let to = self.address(Space::Shared, op.dst)?;
        let from = self.address(Space::Global, op.src)?;
        let from_bytes = op.src_bytes.map_or(Ok(NOWHERE), |bytes| self.src(bytes, 32))?;
        let form = CopyForm {
            to: to.space,
            to_base: to.base,
            to_base_is_wide: to.wide,
            to_offset: to.offset,
            from: from.space,
            from_base: from.base,
            from_base_is_wide: from.wide,
            from_offset: from.offset,
            bytes: op.bytes,
            from_bytes,
        };
        let imm = self.program.copies.len() as i64;
        self.program.copies.push(form);
        Ok(Inst { imm, ..Inst::new(Code::Copy(CopyOp::Begin)) })
    }
}
