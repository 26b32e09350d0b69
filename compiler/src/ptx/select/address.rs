//! Buffers and their layouts become addresses.
//!
//! The address is that of the allocation and what [`LeafPlaces`] says of the element's row-major position and of the
//! subscripts of the leaf's fixed arrays.

use super::super::instruction::*;
use super::super::operand::{Address, Base, Operand, Reg};
use super::super::types::{Space, Type};
use super::SelectError;
use super::offsets::OffsetKey;
use super::selector::Selector;
use crate::data::LeafPlaces;
use crate::ir::entities::{Buffer, Value};
use crate::ir::kernel::{BufferKind, Short};
use crate::manifest::{BinaryOp, Expr, UnaryOp};

impl Selector<'_> {
    /// The address of a leaf, and the state space that it lies in. `indices`: one an axis of the buffer, then
    /// one a fixed-array axis of the leaf.
    pub fn address(
        &mut self,
        buffer: Buffer,
        leaf: u32,
        indices: &[Value],
    ) -> Result<(Space, Address), SelectError> {
        let data = &self.kernel.buffers[buffer];
        let places = LeafPlaces::new(&data.element, data.layout, leaf as usize);
        let (element, within) = indices.split_at(data.extents.len());
        let space = self.space(buffer);
        let Some(base) = self.bases[buffer].get(places.allocation).copied().flatten() else {
            return Err(self.error(format!("`{}` has no base address in this launch", data.name)));
        };
        let (mut reg, mut constant) = match places.group {
            None => self.offset_from(base, buffer, element, places.element),
            Some((width, bytes)) => {
                let position = self.position(buffer, element);
                let shift = width.trailing_zeros() as i64;
                let which = self.shift(ShiftOp::Right, Type::U64, position, shift.into());
                let in_group = self.logic(LogicBinaryOp::And, Type::B64, position, (width as i64 - 1).into());
                let group = self.multiply_add(which.into(), bytes, base.into());
                (self.multiply_add(in_group.into(), places.element, group.into()), 0)
            }
        };
        constant += places.start as i64;
        for (index, stride) in within.iter().zip(places.axes) {
            (reg, constant) = self.add_scaled(reg, constant, *index, stride);
        }
        Ok((space, Address::new(Base::Reg(reg), constant)))
    }

    /// Bytes from one place to the next one along the last subscript, where they are always as many.
    pub fn last_stride(&self, buffer: Buffer, leaf: u32) -> Option<i64> {
        let data = &self.kernel.buffers[buffer];
        let places = LeafPlaces::new(&data.element, data.layout, leaf as usize);
        let bytes = places.axes.last().copied().unwrap_or(places.element);
        if places.group.is_some() { None } else { bytes.try_into().ok() }
    }

    pub fn space(&self, buffer: Buffer) -> Space {
        match self.kernel.buffers[buffer].kind {
            BufferKind::Constant(id) => self.globals.constants[id].map_or(Space::Global, |(_, space)| space),
            BufferKind::Private => Space::Local,
            BufferKind::Shared => Space::Shared,
            _ => Space::Global,
        }
    }

    /// `base + position * scale`, as a register and a constant byte offset: constants that are added to subscripts
    /// go into the offset, so that neighbours share a register.
    fn offset_from(&mut self, base: Reg, buffer: Buffer, indices: &[Value], scale: u64) -> (Reg, i64) {
        let (indices, bytes) = self.constant_part(buffer, indices, scale);
        if indices.iter().all(|index| self.constant_int(*index) == Some(0)) {
            return (base, bytes);
        }
        let key = OffsetKey { extents: self.extents[buffer].0, scale, base: Some(base), stride: 0 };
        if let Some(reg) = self.offsets.find(key, &indices) {
            return (reg, bytes);
        }
        let hint = [self.kernel.buffers[buffer].name.as_str(), "_at"].concat();
        if indices.len() > 1
            && let Some(reg) = self.step_from_neighbour(buffer, key, &indices, &hint)
        {
            self.offsets.insert(key, &indices, reg);
            return (reg, bytes);
        }
        let offset = self.byte_offset(buffer, &indices, scale);
        let dst = self.builder.reg_for(Type::U64, &hint);
        self.builder.emit(IntBinary {
            op: IntBinaryOp::Add,
            ty: Type::S64,
            dst,
            a: base.into(),
            b: offset.into(),
            ..Default::default()
        });
        self.offsets.insert(key, &indices, dst);
        (dst, bytes)
    }

    /// The subscripts without the constants added to them, and those constants in bytes. A constant is taken only
    /// where what it is multiplied by is constant too, and while the sum fits an instruction's offset.
    fn constant_part(&self, buffer: Buffer, indices: &[Value], scale: u64) -> (Short<Value>, i64) {
        let extents = &self.extents[buffer].1;
        let mut rest = Short::from_slice(indices);
        let mut total = 0i64;
        let mut stride = i64::try_from(scale).ok();
        for at in (0..indices.len()).rev() {
            let (root, literal) = self.maps.rooted(self.kernel, rest[at]);
            // All of it may be a literal.
            let whole = self.constant_int(root).and_then(|whole| i64::try_from(whole).ok());
            let (root, literal) =
                match (self.maps.zero.expand(), whole.and_then(|whole| whole.checked_add(literal))) {
                    (Some(zero), Some(all)) => (zero, all),
                    _ => (root, literal),
                };
            if let Some(stride) = stride
                && let Some(sum) = literal.checked_mul(stride).and_then(|bytes| bytes.checked_add(total))
                && i32::try_from(sum).is_ok()
            {
                rest[at] = root;
                total = sum;
            }
            // Axis `at` has the extent number `at - 1`: the first one's is not needed.
            stride = match (stride, at.checked_sub(1).map(|before| extents[before])) {
                (Some(stride), Some(Operand::Int(extent))) => stride.checked_mul(extent),
                _ => None,
            };
        }
        // One subscript that is all constant.
        if let [only] = rest.as_slice()
            && let Some(constant) = self.constant_int(*only)
            && let Ok(sum) = i64::try_from(constant * i128::from(scale) + i128::from(total))
            && i32::try_from(sum).is_ok()
        {
            return (Short::new(), sum);
        }
        (rest, total)
    }

    fn byte_offset(&mut self, buffer: Buffer, indices: &[Value], scale: u64) -> Reg {
        let key = OffsetKey { extents: self.extents[buffer].0, scale, base: None, stride: 0 };
        if let Some(reg) = self.offsets.find(key, indices) {
            return reg;
        }
        let position = self.position(buffer, indices);
        let offset = self.scaled(position, scale);
        let reg = self.in_register(offset, Type::B64);
        self.offsets.insert(key, indices, reg);
        reg
    }

    /// The row-major position of an element, by Horner's rule.
    fn position(&mut self, buffer: Buffer, indices: &[Value]) -> Operand {
        let key = OffsetKey { extents: self.extents[buffer].0, scale: 0, base: None, stride: 0 };
        if let Some(reg) = self.offsets.find(key, indices) {
            return reg.into();
        }
        let Some((first, rest)) = indices.split_first() else { return Operand::Int(0) };
        let mut position = self.operand(*first);
        for (at, index) in rest.iter().enumerate() {
            let extent = self.extents[buffer].1[at];
            let index = self.operand(*index);
            if position == Operand::Int(0) {
                position = index;
                continue;
            }
            let dst = self.builder.reg_for(Type::B64, "position");
            self.builder.emit(IntMad {
                part: MulPart::Lo,
                ty: Type::S64,
                dst,
                a: position,
                b: extent,
                c: index,
                ..Default::default()
            });
            position = dst.into();
        }
        if !rest.is_empty()
            && let Operand::Reg(reg) = position
        {
            self.offsets.insert(key, indices, reg);
        }
        position
    }

    pub(super) fn scaled(&mut self, position: Operand, scale: u64) -> Operand {
        match scale {
            1 => position,
            _ if scale.is_power_of_two() => {
                let dst = self.builder.reg_for(Type::B64, "offset");
                let amount = Operand::Int(scale.trailing_zeros().into());
                self.builder.emit(Shift { op: ShiftOp::Left, ty: Type::B64, dst, a: position, b: amount });
                dst.into()
            }
            _ => {
                let dst = self.builder.reg_for(Type::B64, "offset");
                self.builder.emit(IntBinary {
                    op: IntBinaryOp::Mul,
                    part: MulPart::Lo,
                    ty: Type::S64,
                    dst,
                    a: position,
                    b: Operand::Int(scale as i64),
                    ..Default::default()
                });
                dst.into()
            }
        }
    }

    fn multiply_add(&mut self, a: Operand, scale: u64, c: Operand) -> Reg {
        let dst = self.builder.reg_for(Type::U64, "");
        self.builder.emit(IntMad {
            part: MulPart::Lo,
            ty: Type::S64,
            dst,
            a,
            b: Operand::Int(scale as i64),
            c,
            ..Default::default()
        });
        dst
    }

    fn add_scaled(&mut self, reg: Reg, constant: i64, index: Value, stride: u64) -> (Reg, i64) {
        if let Some(known) = self.constant_int(index) {
            return (reg, constant + known as i64 * stride as i64);
        }
        let index = self.operand(index);
        (self.multiply_add(index, stride, reg.into()), constant)
    }

    /// Emits a host expression over symbols as i64 arithmetic. Only integer arithmetic stands in extents.
    pub fn host_expression(&mut self, expr: &Expr) -> Operand {
        match expr {
            Expr::Int(value) => Operand::Int(*value),
            Expr::Symbol(index) => {
                let symbol = cranelift_entity::EntityRef::new(*index);
                let operand = self.symbols[symbol].unwrap_or(Operand::Int(0));
                self.widen_to_i64(operand, self.kernel.symbols[symbol].scalar.widened())
            }
            Expr::Unary(UnaryOp::Negate, operand) => {
                let operand = self.host_expression(operand);
                self.int(IntBinaryOp::Sub, Type::S64, Operand::Int(0), operand).into()
            }
            Expr::Binary(op, left, right) => {
                let left = self.host_expression(left);
                let right = self.host_expression(right);
                self.host_binary(*op, left, right)
            }
            Expr::Float(_) | Expr::Bool(_) | Expr::Unary(UnaryOp::Not, _) => Operand::Int(0),
        }
    }

    pub fn host_binary(&mut self, op: BinaryOp, left: Operand, right: Operand) -> Operand {
        let int = match op {
            BinaryOp::Add => IntBinaryOp::Add,
            BinaryOp::Sub => IntBinaryOp::Sub,
            BinaryOp::Mul => IntBinaryOp::Mul,
            BinaryOp::Min => IntBinaryOp::Min,
            BinaryOp::Max => IntBinaryOp::Max,
            BinaryOp::Div => return self.divide(Type::S64, left, right, None, false),
            BinaryOp::Rem => return self.divide(Type::S64, left, right, None, true),
            BinaryOp::CeilDiv => {
                let less = self.int(IntBinaryOp::Sub, Type::S64, right, Operand::Int(1));
                let sum = self.int(IntBinaryOp::Add, Type::S64, left, less.into());
                return self.divide(Type::S64, sum.into(), right, None, false);
            }
            // Extents and strides are integers: the checker lets nothing else in.
            _ => return Operand::Int(0),
        };
        self.int(int, Type::S64, left, right).into()
    }
}
