//! Calls of built-in functions.

use crate::expressions::Expressions;
use crate::scope::Scope;
use crate::types::Wide;

impl Expressions<'_, '_> {
    pub fn builtin(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
        if ty == Wide::Bool {
            let of = self.choices.one_of(&[Wide::F32, Wide::F64]);
            let test = self.choices.one_of(&["isnan", "isinf", "isfinite"]);
            return format!("{test}({})", self.expression(of, scope, depth - 1));
        }
        let two = ["min", "max"];
        let table: &[(&str, usize)] = if ty.is_float() {
            &[
                ("abs", 1),
                ("sqrt", 1),
                ("exp", 1),
                ("floor", 1),
                ("sin", 1),
                ("tanh", 1),
                ("log", 1),
                ("cos", 1),
                ("exp2", 1),
                ("log2", 1),
                ("log10", 1),
                ("log1p", 1),
                ("expm1", 1),
                ("tan", 1),
                ("erf", 1),
                ("rsqrt", 1),
                ("ceil", 1),
                ("round", 1),
                ("trunc", 1),
                ("sign", 1),
                ("copysign", 2),
                ("pow", 2),
                ("fma", 3),
                ("clamp", 3),
            ]
        } else if ty.is_signed() {
            &[
                ("abs", 1),
                ("sign", 1),
                ("popcount", 1),
                ("leading_zeros", 1),
                ("trailing_zeros", 1),
                ("clamp", 3),
            ]
        } else {
            &[("popcount", 1), ("leading_zeros", 1), ("trailing_zeros", 1), ("clamp", 3)]
        };
        let (name, count) = match self.choices.below(table.len() + 4) {
            0 | 1 => (self.choices.one_of(&two), 2),
            2 => {
                let condition = self.expression(Wide::Bool, scope, depth - 1);
                let first = self.expression(ty, scope, depth - 1);
                return format!("select({condition}, {first}, {})", self.expression(ty, scope, depth - 1));
            }
            3 => return self.random_or_bits(ty, scope, depth),
            other => table[other - 4],
        };
        let arguments: Vec<String> = (0..count).map(|_| self.expression(ty, scope, depth - 1)).collect();
        format!("{name}({})", arguments.join(", "))
    }

    fn random_or_bits(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
        let bits = self.choices.below(2) == 1;
        match (ty, bits) {
            (Wide::U32, true) => format!("to_bits({})", self.expression(Wide::F32, scope, depth - 1)),
            (Wide::U64, true) => format!("to_bits({})", self.expression(Wide::F64, scope, depth - 1)),
            (Wide::F64, true) => format!("from_bits({})", self.expression(Wide::U64, scope, depth - 1)),
            (Wide::U32 | Wide::F32, _) => {
                let name = match ty {
                    Wide::U32 => "rand_u32",
                    _ if bits => "rand_normal",
                    _ => "rand",
                };
                let counter = self.expression(Wide::I64, scope, depth - 1);
                format!("{name}(7u64, {counter})")
            }
            _ => self.leaf(ty, scope),
        }
    }
}
