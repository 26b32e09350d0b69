//! The checks of facts about the values of arrays, in launches before the kernel's first statement.
//!
//! `injective(idx in low..high)` has a scratch array with an owner for each value of the range. It is filled with a
//! number past all positions; each position of `idx` whose value lies in the range goes into its value's owner by an
//! atomic minimum; then a position that is not the owner of its value has an equal one before it, and fails the check.

use super::{Lowerer, Storage};
use crate::check::typed::{ExprKind, Injection, SignatureItem};
use crate::data::{ElementType, Scalar};
use crate::ir::entities::{Buffer, Value};
use crate::ir::kernel::{BufferData, BufferKind, Step};
use crate::ir::op::{Combiner, Opcode};
use crate::manifest::{BinaryOp as HostOp, Expr as Host, InjectionManifest, Layout};

/// The position of an element, and its value.
struct Element {
    /// In row-major order.
    position: Value,
    /// As an i64.
    value: Value,
    /// The value's place in the range, where it lies in it.
    slot: Value,
    in_range: Value,
}

impl<'a> Lowerer<'a> {
    pub fn declare_injections(&mut self) {
        for injection in &self.typed.injections {
            let argument = self.position(SignatureItem::Array(injection.array));
            let (low, high) = (self.extent(&injection.low), self.extent(&injection.high));
            let line = self.source.line_column(injection.span.start).0;
            let text = injection.text.clone();
            let manifest = InjectionManifest { argument, low, high, text, line };
            self.builder.kernel_mut().injections.push(manifest);
        }
    }

    pub fn check_injections(&mut self) -> Vec<Step> {
        let typed = self.typed;
        let mut steps = Vec::new();
        for (number, injection) in typed.injections.iter().enumerate() {
            let site = typed.sites.iter().find(|(_, site)| site.injection == Some(number));
            let (Some((site, _)), Some(Storage::Plain(values))) = (site, &self.arrays[injection.array])
            else {
                continue;
            };
            let (site, values) = (self.site(site), *values);
            let owners = self.owners(injection);
            steps.push(self.in_launch(injection.span, |lowerer| {
                let (zero, end) = (lowerer.builder.constant_index(0), lowerer.count(injection));
                let indices = lowerer.builder.begin_forall(&[("value", zero, end)]);
                let none = lowerer.builder.constant_index(i64::MAX);
                lowerer.builder.store(owners, 0, &indices, none);
                lowerer.builder.end_forall();
            }));
            steps.push(self.for_each_element(injection, values, &|lowerer, element| {
                lowerer.builder.atomic(owners, 0, Combiner::Min, &[element.slot], element.position);
            }));
            steps.push(self.for_each_element(injection, values, &|lowerer, element| {
                let owner = lowerer.builder.load(owners, 0, &[element.slot]);
                // The owner is the least position: this one is not above it.
                let one = lowerer.builder.constant_index(1);
                let past = lowerer.builder.binary(Opcode::Add, owner, one);
                lowerer.builder.check_reporting(site, element.position, past, element.value);
            }));
        }
        steps
    }

    /// One a value of the range.
    fn owners(&mut self, injection: &Injection) -> Buffer {
        let (low, high) = (self.extent(&injection.low), self.extent(&injection.high));
        let extents = vec![match is_its_end(injection) {
            true => high,
            false => Host::binary(HostOp::Max, Host::binary(HostOp::Sub, high, low), Host::Int(0)),
        }];
        self.builder.add_buffer(BufferData {
            name: format!("{}_owners", self.typed.arrays[injection.array].name),
            kind: BufferKind::Scratch,
            element: ElementType::scalar(Scalar::I64),
            extents,
            layout: Layout::Aos,
            layout_fixed: true,
            cache: None,
            runs_on: false,
        })
    }

    /// How many values the range has.
    fn count(&mut self, injection: &'a Injection) -> Value {
        let high = self.scalar(&injection.high);
        if is_its_end(injection) {
            return high;
        }
        let (low, zero) = (self.scalar(&injection.low), self.builder.constant_index(0));
        let length = self.builder.binary(Opcode::Sub, high, low);
        self.builder.binary(Opcode::Max, length, zero)
    }

    /// A launch that does something with each element whose value lies in the range.
    fn for_each_element(
        &mut self,
        injection: &'a Injection,
        values: Buffer,
        then: &dyn Fn(&mut Self, &Element),
    ) -> Step {
        let array = &self.typed.arrays[injection.array];
        self.in_launch(injection.span, |lowerer| {
            let zero = lowerer.builder.constant_index(0);
            let ends: Vec<Value> = array.extents.iter().map(|extent| lowerer.scalar(extent)).collect();
            let names: Vec<String> = (0..ends.len()).map(|axis| format!("position{axis}")).collect();
            let axes: Vec<(&str, Value, Value)> =
                names.iter().zip(&ends).map(|(name, end)| (name.as_str(), zero, *end)).collect();
            let indices = lowerer.builder.begin_forall(&axes);
            let element = lowerer.element(injection, values, &indices, &ends);
            lowerer.builder.begin_if(element.in_range);
            then(lowerer, &element);
            lowerer.builder.begin_else(&[]);
            lowerer.builder.end_if(&[]);
            lowerer.builder.end_forall();
        })
    }

    fn element(
        &mut self,
        injection: &'a Injection,
        values: Buffer,
        indices: &[Value],
        extents: &[Value],
    ) -> Element {
        let loaded = self.builder.load(values, 0, indices);
        let value = match self.builder.value_type(loaded) {
            Scalar::I64 => loaded,
            _ => self.builder.cast(loaded, Scalar::I64),
        };
        let (low, high) = (self.scalar(&injection.low), self.scalar(&injection.high));
        let above = self.builder.compare(Opcode::Ge, value, low);
        let below = self.builder.compare(Opcode::Lt, value, high);
        let in_range = self.builder.binary(Opcode::And, above, below);
        let slot = match injection.low.kind {
            ExprKind::Int(0) => value,
            _ => self.builder.binary(Opcode::Sub, value, low),
        };
        let mut position = indices[0];
        for (index, extent) in indices.iter().zip(extents).skip(1) {
            let rows = self.builder.binary(Opcode::Mul, position, *extent);
            position = self.builder.binary(Opcode::Add, rows, *index);
        }
        Element { position, value, slot, in_range }
    }
}

/// Whether the range begins at 0, and its end is not below that: then it has as many values.
fn is_its_end(injection: &Injection) -> bool {
    matches!(injection.low.kind, ExprKind::Int(0))
        && matches!(injection.high.kind, ExprKind::Dim(_) | ExprKind::Int(0..))
}
