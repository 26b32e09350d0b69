//! Expressions of a wanted type. Every composite stands in parentheses, every literal carries its type.

use crate::choices::Choices;
use crate::scope::{ArrayName, Element, FIELDS, IndexName, MOST_LOOPS, Names, Scope};
use crate::types::{DIMS, Extent, INTEGERS, NUMBERS, STORED, Wide};

pub struct Expressions<'c, 'n> {
    pub choices: &'c mut Choices<'n>,
    pub names: &'c mut Names,
}

impl Expressions<'_, '_> {
    /// An expression of type `ty`, at most `depth` operators deep.
    pub fn expression(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
        if depth == 0 {
            return self.leaf(ty, scope);
        }
        match self.choices.below(14) {
            0..=3 => self.leaf(ty, scope),
            4..=6 => self.operator(ty, scope, depth),
            7 => self.builtin(ty, scope, depth),
            8 => self.conversion(ty, scope, depth),
            9 => {
                let condition = self.expression(Wide::Bool, scope, depth - 1);
                let then = self.expression(ty, scope, depth - 1);
                let otherwise = self.expression(ty, scope, depth - 1);
                of_type(format!("(if {condition} {{ {then} }} else {{ {otherwise} }})"), ty)
            }
            10 | 11 if scope.loops < MOST_LOOPS => self.reduction(ty, scope, depth),
            12 => self.call(ty, scope, depth),
            13 => {
                let name = self.names.fresh("t");
                let value = self.expression(ty, scope, depth - 1);
                let mut inner = scope.clone();
                inner.values.push((name.clone(), ty));
                let result = self.expression(ty, &inner, depth - 1);
                of_type(format!("({{ let {name} = {value}; {result} }})"), ty)
            }
            _ => self.operator(ty, scope, depth),
        }
    }

    /// An array element, a name or a literal; where none has the type, one of another type, converted.
    pub fn leaf(&mut self, ty: Wide, scope: &Scope) -> String {
        let kind = self.choices.below(8);
        if kind == 7 {
            return self.literal(ty);
        }
        if kind == 6 && ty == Wide::I64 && scope.dims > 0 {
            return DIMS[self.choices.below(scope.dims)].to_string();
        }
        if kind >= 5 && ty == Wide::I64 && !scope.indices.is_empty() {
            let index = self.choices.below(scope.indices.len());
            return scope.indices[index].name.clone();
        }
        let named = |of: Wide| -> Vec<String> {
            let names = scope.variables.iter().rev().chain(scope.values.iter().rev());
            names.filter(|(_, ty)| *ty == of).map(|(name, _)| name.clone()).collect()
        };
        let elements = |of: Wide| -> Vec<(ArrayName, &'static str)> {
            scope
                .arrays
                .iter()
                .flat_map(|array| parts_of(array, of).map(|part| (array.clone(), part)))
                .collect()
        };
        let (own_names, own_elements) = (named(ty), elements(ty));
        if kind >= 3 && !own_names.is_empty() || own_elements.is_empty() && !own_names.is_empty() {
            let at = self.choices.below(own_names.len());
            return own_names[at].clone();
        }
        if !own_elements.is_empty() {
            let at = self.choices.below(own_elements.len());
            let (array, part) = &own_elements[at];
            return self.element(array, part, ty, scope);
        }
        if ty == Wide::Bool {
            let of = self.choices.one_of(&NUMBERS);
            let (left, right) = (self.leaf(of, scope), self.leaf(of, scope));
            let operator = self.choices.one_of(&["<", ">=", "!="]);
            return format!("({left} {operator} {right})");
        }
        // Something of another type, converted.
        for of in NUMBERS {
            let (names, elements) = (named(of), elements(of));
            if !elements.is_empty() {
                let at = self.choices.below(elements.len());
                let (array, part) = &elements[at];
                return format!("({} as {})", self.element(array, part, of, scope), ty.name());
            }
            if let Some(name) = names.first() {
                return format!("({name} as {})", ty.name());
            }
        }
        self.literal(ty)
    }

    fn literal(&mut self, ty: Wide) -> String {
        let number = self.choices.below(8);
        match ty {
            Wide::Bool => ["false", "true"][number % 2].to_string(),
            Wide::F32 | Wide::F64 => {
                let text = ["1.0", "0.5", "0.0", "-2.0", "3.25", "0.1", "-0.75", "1000.0"][number];
                signed(text, ty)
            }
            Wide::I32 | Wide::I64 => {
                let text = ["1", "0", "2", "-1", "7", "-13", "100", "31"][number];
                signed(text, ty)
            }
            Wide::U32 | Wide::U64 => {
                let text = ["1", "0", "2", "3", "7", "13", "255", "31"][number];
                format!("{text}{}", ty.name())
            }
        }
    }

    /// Reads an element, or its part: with bare names where there are some, else guarded or brought into range.
    fn element(&mut self, array: &ArrayName, part: &str, ty: Wide, scope: &Scope) -> String {
        if array.extents.is_empty() {
            return format!("{}{part}", array.name);
        }
        let bare: Option<Vec<&str>> = array.extents.iter().map(|extent| scope.index_over(*extent)).collect();
        let (subscripts, guarded) = match bare {
            Some(bare) if !self.choices.once_in(5) => (bare.join(", "), false),
            _ => self.other_subscripts(array, scope),
        };
        let access = format!("{}[{subscripts}]{part}", array.name);
        if guarded { format!("({access} else {})", self.literal(ty)) } else { access }
    }

    /// Shifted names, wrapped names, numbers; and whether the access needs a guard.
    fn other_subscripts(&mut self, array: &ArrayName, scope: &Scope) -> (String, bool) {
        let mut guarded = false;
        let mut subscripts = Vec::new();
        for extent in &array.extents {
            let any = scope.indices.last().map(|index| index.name.clone());
            let same = scope.index_over(*extent).map(str::to_string);
            let text = match (self.choices.below(4), same, any) {
                (0, Some(same), _) => same,
                (1, Some(same), _) => {
                    guarded = true;
                    let shift = self.choices.one_of(&["- 1", "+ 1", "+ 2", "- 3"]);
                    format!("{same} {shift}")
                }
                // In range: the range is not empty, since a name runs over it here.
                (2, Some(same), _) => format!("({same} * 3 + 1) % {}", extent.text()),
                (_, _, Some(any)) => {
                    guarded = true;
                    format!("{any} * 2 - 1")
                }
                _ => {
                    guarded = true;
                    self.choices.one_of(&["0", "1", "3"]).to_string()
                }
            };
            subscripts.push(text);
        }
        (subscripts.join(", "), guarded && !array.extents.is_empty())
    }

    fn operator(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
        if ty == Wide::Bool {
            return self.condition(scope, depth);
        }
        let unary = self.choices.below(8);
        if unary == 7 && (ty.is_float() || ty.is_signed()) {
            return format!("(-{})", self.expression(ty, scope, depth - 1));
        }
        if unary == 6 && ty.is_integer() {
            return format!("(!{})", self.expression(ty, scope, depth - 1));
        }
        let left = self.expression(ty, scope, depth - 1);
        let operators: &[&str] = if ty.is_float() {
            &["+", "*", "-", "/"]
        } else {
            &["+", "*", "-", "&", "|", "^", "<<", ">>", "/", "%"]
        };
        let operator = self.choices.one_of(operators);
        let right = match operator {
            // A divisor that is zero at compile time is refused; one that is zero at run time is not.
            "/" | "%" if ty.is_integer() => self.divisor(ty, scope),
            "<<" | ">>" => self.literal_shift(ty, scope, depth),
            _ => self.expression(ty, scope, depth - 1),
        };
        format!("({left} {operator} {right})")
    }

    fn divisor(&mut self, ty: Wide, scope: &Scope) -> String {
        let names: Vec<&(String, Wide)> = scope.variables.iter().filter(|(_, of)| *of == ty).collect();
        if names.is_empty() || self.choices.once_in(3) {
            let number = self.choices.one_of(&["3", "2", "7", "16"]);
            return format!("{number}{}", ty.name());
        }
        let at = self.choices.below(names.len());
        names[at].0.clone()
    }

    fn literal_shift(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
        if self.choices.once_in(4) {
            let of = self.choices.one_of(&INTEGERS);
            let count = self.expression(of, scope, depth - 1);
            return format!("({count} & 31{})", of.name());
        }
        format!("{}{}", self.choices.below(32), ty.name())
    }

    fn condition(&mut self, scope: &Scope, depth: usize) -> String {
        match self.choices.below(5) {
            0..=2 => {
                let ty = self.choices.one_of(&NUMBERS);
                let left = self.expression(ty, scope, depth - 1);
                let operator = self.choices.one_of(&["<", ">", "<=", ">=", "==", "!="]);
                let right = self.expression(ty, scope, depth - 1);
                format!("({left} {operator} {right})")
            }
            3 => {
                let left = self.expression(Wide::Bool, scope, depth - 1);
                let operator = self.choices.one_of(&["&&", "||", "==", "!=", "&", "|", "^"]);
                let right = self.expression(Wide::Bool, scope, depth - 1);
                format!("({left} {operator} {right})")
            }
            _ => format!("(!{})", self.expression(Wide::Bool, scope, depth - 1)),
        }
    }

    fn builtin(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
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

    fn conversion(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
        if ty == Wide::Bool {
            return self.condition(scope, depth);
        }
        let from = self.choices.one_of(&[
            Wide::F32,
            Wide::I32,
            Wide::I64,
            Wide::Bool,
            Wide::U32,
            Wide::F64,
            Wide::U64,
        ]);
        let ways: Vec<&str> =
            STORED.iter().filter(|stored| stored.wide == ty).map(|stored| stored.name).collect();
        let to = self.choices.one_of(&ways);
        // `bool as f32` has no meaning: by way of an integer.
        let from = if from == Wide::Bool && ty.is_float() { Wide::I32 } else { from };
        format!("({} as {to})", self.expression(from, scope, depth - 1))
    }

    fn reduction(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
        let extent = self.range(scope);
        let name = self.names.fresh("p");
        let range = match (self.choices.below(5), scope.index_over(extent)) {
            // The lower triangle.
            (3, Some(outer)) => format!("0..={outer}"),
            (4, Some(outer)) => format!("{outer}..{}", extent.text()),
            (2, _) => format!("0..{}", extent.text()),
            _ => extent.text(),
        };
        let mut inner = scope.clone();
        inner.indices.push(IndexName { name: name.clone(), extent });
        inner.loops += 1;
        let (operation, of) = match ty {
            Wide::Bool => (self.choices.one_of(&["any", "all"]), Wide::Bool),
            Wide::I64 => match self.choices.below(6) {
                0 => ("count", Wide::Bool),
                1 => ("argmax", self.choices.one_of(&NUMBERS)),
                2 => ("argmin", self.choices.one_of(&NUMBERS)),
                3 => ("sum", ty),
                4 => ("max", ty),
                _ => ("min", ty),
            },
            _ => (self.choices.one_of(&["sum", "max", "min", "sum", "prod"]), ty),
        };
        let body = self.expression(of, &inner, depth - 1);
        format!("{operation}({name} in {range}: {body})")
    }

    /// A range for a loop: a dimension, or a small number.
    pub fn range(&mut self, scope: &Scope) -> Extent {
        let choice = self.choices.below(scope.dims + 1);
        if choice < scope.dims { Extent::Dim(choice) } else { Extent::Fixed(self.choices.one_of(&[4, 1, 3])) }
    }

    fn call(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
        let functions: Vec<_> =
            scope.functions.iter().filter(|function| function.result == ty).cloned().collect();
        if functions.is_empty() {
            return self.operator(ty, scope, depth);
        }
        let at = self.choices.below(functions.len());
        let function = &functions[at];
        let arguments: Vec<String> = function
            .parameters
            .iter()
            .map(|parameter| self.expression(*parameter, scope, depth - 1))
            .collect();
        format!("{}({})", function.name, arguments.join(", "))
    }
}

/// The parts of an array's elements that have the type: the element itself, or fields.
fn parts_of(array: &ArrayName, ty: Wide) -> impl Iterator<Item = &'static str> {
    let parts: Vec<(&'static str, Wide)> = match array.element {
        Element::Scalar(stored) => vec![("", stored.wide)],
        Element::Struct => vec![(".a", FIELDS[0].1.wide), (".b", FIELDS[1].1.wide), (".c", FIELDS[2].1.wide)],
    };
    parts.into_iter().filter(move |(_, wide)| *wide == ty).map(|(part, _)| part)
}

/// A choice or a block where the context may guess its type wrongly (`isnan` guesses `f32`): says it outright.
fn of_type(text: String, ty: Wide) -> String {
    if matches!(ty, Wide::F32 | Wide::Bool) { text } else { format!("({text} as {})", ty.name()) }
}

/// A literal with its type; a negative one in parentheses.
fn signed(text: &str, ty: Wide) -> String {
    match text.strip_prefix('-') {
        Some(positive) => format!("(-{positive}{})", ty.name()),
        None => format!("{text}{}", ty.name()),
    }
}
