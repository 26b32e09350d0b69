//! Prints: the next free record is taken, and filled where there is one.
//!
//! ```text
//! print site0: v1, v2        →    atom.add slot, [prints], 1
//!                                 setp.ge full, slot, 4096
//!                                 @full bra printed
//!                                 mad record, slot, bytes, prints
//!                                 st [record], site …
//!                                 printed:
//! ```
//!
//! Threads come to it in any order. What a record says beside the numbers is for the host to sort by, so that equal
//! runs tell the same. Where there is no room nothing is written but the counter.

use super::super::instruction::*;
use super::super::operand::{Address, Axis, Base, Operand, SpecialReg};
use super::super::types::{Space, Type};
use super::SelectError;
use super::selector::{Selector, signed_type};
use crate::data::Scalar;
use crate::ir::entities::Inst;
use crate::ir::kernel::Payload;
use crate::manifest::{
    FAILURE_BYTES, PRINT_COUNTER, PRINT_HEADER, PRINT_RECORDS, PRINT_ROUND, PrintManifest,
};
use cranelift_entity::EntityRef;
use smallvec::smallvec;

impl Selector<'_> {
    /// Tells the host numbers.
    pub fn print(&mut self, inst: Inst) -> Result<(), SelectError> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let (Payload::Site(site), Some(memory)) = (&data.payload, self.error_record) else {
            return Err(self.error(format!("{inst} has no site")));
        };
        let bytes = kernel.sites.values().filter_map(|site| site.print.as_ref()).map(PrintManifest::bytes);
        let bytes = bytes.max().unwrap_or(PRINT_HEADER) as i64;
        let mut numbers = Vec::with_capacity(data.arguments.len());
        for value in &data.arguments {
            let (scalar, operand) = (self.scalar(*value), self.operand(*value));
            numbers.push(match scalar {
                Scalar::Bool => {
                    let holds = self.register(*value);
                    (Type::U32, self.selp(Type::B32, holds, Operand::Int(1), Operand::Int(0)).into())
                }
                scalar => (signed_type(scalar), operand),
            });
        }
        let slot = self.temp(Type::B64);
        self.builder.emit(Atom {
            space: Space::Global,
            op: AtomOp::Add,
            ty: Type::U64,
            dst: slot,
            address: Address::new(Base::Reg(memory), FAILURE_BYTES as i64),
            a: Operand::Int(1),
            ..Default::default()
        });
        let printed = self.builder.label("printed");
        let full = self.setp(Compare::Ge, Type::U64, slot.into(), Operand::Int(PRINT_RECORDS as i64));
        self.builder.emit_if(full, Bra { uni: false, target: printed });
        let record = self.temp(Type::B64);
        self.builder.emit(IntMad {
            part: MulPart::Lo,
            ty: Type::U64,
            dst: record,
            a: slot.into(),
            b: Operand::Int(bytes),
            c: memory.into(),
            ..Default::default()
        });
        let first = (FAILURE_BYTES + PRINT_COUNTER) as i64;
        let store = |selector: &mut Self, offset: i64, ty: Type, value: Operand| {
            let address = Address::new(Base::Reg(record), first + offset);
            let src = smallvec![value];
            selector.builder.emit(St { space: Space::Global, ty, address, src, ..Default::default() });
        };
        store(self, 0, Type::U32, Operand::Int(site.index() as i64));
        let places = [
            (4, SpecialReg::Tid(Axis::X)),
            (8, SpecialReg::GridId),
            (16, SpecialReg::Ctaid(Axis::X)),
            (20, SpecialReg::Ctaid(Axis::Y)),
            (24, SpecialReg::Ctaid(Axis::Z)),
        ];
        for (offset, special) in places {
            let (bits, ty) = match special.bits() {
                64 => (Type::B64, Type::U64),
                _ => (Type::B32, Type::U32),
            };
            let place = self.temp(bits);
            self.builder.emit(Mov { ty, dst: place, a: special.into() });
            store(self, offset, ty, place.into());
        }
        let round = self.temp(Type::B32);
        let address = Address::new(Base::Reg(memory), PRINT_ROUND as i64);
        self.builder.emit(Ld {
            space: Space::Global,
            ty: Type::U32,
            dst: smallvec![round],
            address,
            ..Default::default()
        });
        store(self, 28, Type::U32, round.into());
        for (at, (ty, value)) in numbers.into_iter().enumerate() {
            store(self, PRINT_HEADER as i64 + 8 * at as i64, ty, value);
        }
        self.builder.place(printed);
        Ok(())
    }
}
