//! The two structs of a program, and values of them.

use crate::expressions::Expressions;
use crate::scope::{Element, IndexName, MOST_LOOPS, Scope};
use crate::types::{Stored, Wide};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Structure {
    /// Numbers, narrow ones among them.
    S,
    /// With a struct and an array inside.
    T,
}

const fn stored(name: &'static str, wide: Wide) -> Stored {
    Stored { name, wide }
}

const PARTS_OF_S: [(&str, Stored); 3] =
    [(".a", stored("f32", Wide::F32)), (".b", stored("i16", Wide::I32)), (".c", stored("f16", Wide::F32))];

const PARTS_OF_T: [(&str, Stored); 9] = [
    (".d", stored("f64", Wide::F64)),
    (".s.a", stored("f32", Wide::F32)),
    (".s.b", stored("i16", Wide::I32)),
    (".s.c", stored("f16", Wide::F32)),
    (".v[0]", stored("f32", Wide::F32)),
    (".v[1]", stored("f32", Wide::F32)),
    (".v[2]", stored("f32", Wide::F32)),
    (".e", stored("u8", Wide::U32)),
    (".g", stored("bool", Wide::Bool)),
];

/// The declarations, and a function of structs.
pub const DECLARATIONS: &str = "struct S { a: f32, b: i16, c: f16 }
struct T { d: f64, s: S, v: f32[3], e: u8, g: bool }

struct U { a: f32, b: f16[2] }

fn mix(p: S, q: S) -> S { S { a: p.a + q.a, b: p.b - q.b, c: q.c } }

fn scaled(p: S, by: f32) -> S {
    var u = by * U { a: p.a, b: [p.c, p.a] } / 4
    u -= U { a: by, b: [1.0, p.c] } * 0.5
    S { a: u.a + u.b[1], b: p.b, c: u.b[0] }
}
";

impl Structure {
    pub fn name(self) -> &'static str {
        match self {
            Structure::S => "S",
            Structure::T => "T",
        }
    }

    /// Every scalar in it: how to get there, and its type.
    pub fn parts(self) -> &'static [(&'static str, Stored)] {
        match self {
            Structure::S => &PARTS_OF_S,
            Structure::T => &PARTS_OF_T,
        }
    }
}

impl Expressions<'_, '_> {
    /// A value of a struct.
    pub fn structure(&mut self, structure: Structure, scope: &Scope, depth: usize) -> String {
        let names: Vec<&String> =
            scope.structures.iter().filter(|(_, of)| *of == structure).map(|(name, _)| name).collect();
        match self.choices.below(10) {
            1 if !names.is_empty() => names[self.choices.below(names.len())].clone(),
            2 | 3 => self.structure_element(structure, scope, depth),
            4 if depth > 0 => {
                let condition = self.expression(Wide::Bool, scope, depth - 1);
                let then = self.structure(structure, scope, depth - 1);
                let otherwise = self.structure(structure, scope, depth - 1);
                format!("(if {condition} {{ ({then}) }} else {{ ({otherwise}) }})")
            }
            5 if depth > 0 && structure == Structure::S => {
                let (left, right) = (
                    self.structure(structure, scope, depth - 1),
                    self.structure(structure, scope, depth - 1),
                );
                format!("mix({left}, {right})")
            }
            6 if depth > 0 && structure == Structure::S && scope.loops < MOST_LOOPS => {
                let (extent, name) = (self.range(scope), self.names.fresh("p"));
                let mut inner = scope.clone();
                inner.indices.push(IndexName { name: name.clone(), extent });
                inner.loops += 1;
                format!("sum({name} in {}: {})", extent.text(), self.structure(structure, &inner, depth - 1))
            }
            7 | 8 if depth > 0 && structure == Structure::S => {
                let left = self.structure(structure, scope, depth - 1);
                let right = self.structure(structure, scope, depth - 1);
                let operator = self.choices.one_of(&["+ ", "- ", "+ -"]);
                format!("({left} {operator}{right})")
            }
            9 if depth > 0 && structure == Structure::S => {
                let value = self.structure(structure, scope, depth - 1);
                format!("scaled({value}, {})", self.expression(Wide::F32, scope, depth - 1))
            }
            _ => self.structure_literal(structure, scope, depth),
        }
    }

    fn structure_literal(&mut self, structure: Structure, scope: &Scope, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        match structure {
            Structure::S => {
                let fields: Vec<String> = [("a", Wide::F32), ("b", Wide::I32), ("c", Wide::F32)]
                    .iter()
                    .map(|(field, ty)| format!("{field}: {}", self.expression(*ty, scope, below)))
                    .collect();
                format!("S {{ {} }}", fields.join(", "))
            }
            Structure::T => {
                let d = self.expression(Wide::F64, scope, below);
                let s = self.structure(Structure::S, scope, below);
                let v: Vec<String> = (0..3).map(|_| self.expression(Wide::F32, scope, below)).collect();
                let e = self.expression(Wide::U32, scope, below);
                let g = self.expression(Wide::Bool, scope, below);
                format!("T {{ d: {d}, s: {s}, v: [{}], e: {e}, g: {g} }}", v.join(", "))
            }
        }
    }

    fn structure_element(&mut self, structure: Structure, scope: &Scope, depth: usize) -> String {
        let arrays: Vec<_> =
            scope.arrays.iter().filter(|array| array.element == Element::Struct(structure)).collect();
        if arrays.is_empty() {
            return self.structure_literal(structure, scope, depth);
        }
        let array = arrays[self.choices.below(arrays.len())].clone();
        if array.extents.is_empty() {
            return array.name;
        }
        let (subscripts, guarded) = self.subscripts(&array, scope);
        let access = format!("{}[{subscripts}]", array.name);
        if guarded {
            format!("({access} else {})", self.structure_literal(structure, scope, 0))
        } else {
            access
        }
    }
}
