//! Expressions of a wanted type. Every composite stands in parentheses, every literal carries its type.

use crate::accesses::parts_of;
use crate::choices::Choices;
use crate::scope::{ArrayName, Element, FunctionName, IndexName, MOST_LOOPS, Names, Parameter, Scope};
use crate::types::{DIMS, Extent, INTEGERS, NUMBERS, STORED, Stored, Wide};

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

    pub fn literal(&mut self, ty: Wide) -> String {
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

    pub fn divisor(&mut self, ty: Wide, scope: &Scope) -> String {
        let names: Vec<&(String, Wide)> = scope.variables.iter().filter(|(_, of)| *of == ty).collect();
        if names.is_empty() || self.choices.once_in(3) {
            let number = self.choices.one_of(&["3", "2", "7", "16"]);
            return format!("{number}{}", ty.name());
        }
        let at = self.choices.below(names.len());
        names[at].0.clone()
    }

    pub fn literal_shift(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
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
        let mut inner = scope.clone();
        let mut axes = Vec::new();
        // `argmax` over several names gives a position of names that start at 0 and do not hang on each other.
        let mut several = false;
        loop {
            axes.push(self.axis(scope, &mut inner));
            if axes.len() == 2 || inner.loops >= MOST_LOOPS || !self.choices.once_in(5) {
                break;
            }
            several = true;
        }
        let axes = axes.join(", ");
        if let Some(own) = self.own_reduction(ty, &axes, &inner, depth - 1) {
            return own;
        }
        let (operation, of) = match ty {
            Wide::Bool => (self.choices.one_of(&["any", "all"]), Wide::Bool),
            Wide::I64 => match self.choices.below(6) {
                0 => ("count", Wide::Bool),
                1 if !several => ("argmax", self.choices.one_of(&NUMBERS)),
                2 if !several => ("argmin", self.choices.one_of(&NUMBERS)),
                3 => ("sum", ty),
                4 => ("max", ty),
                _ => ("min", ty),
            },
            _ if ty.is_integer() && self.choices.once_in(3) => {
                (self.choices.one_of(&["xor", "or", "and"]), ty)
            }
            _ => (self.choices.one_of(&["sum", "max", "min", "sum", "prod"]), ty),
        };
        let body = self.expression(of, &inner, depth - 1);
        format!("{operation}({axes}: {body})")
    }

    /// A name and its range, written out.
    pub fn axis(&mut self, scope: &Scope, inner: &mut Scope) -> String {
        let extent = self.range(scope);
        let name = self.names.fresh("p");
        let end = extent.text();
        let (range, extent) = match (self.choices.below(9), scope.index_over(extent), scope.indices.last()) {
            // The triangles.
            (3, Some(outer), _) => (format!("0..={outer}"), extent),
            (4, Some(outer), _) => (format!("{outer}..{end}"), extent),
            (2, ..) => (format!("0..{end}"), extent),
            (5, ..) => (format!("1..{end}"), extent),
            // A window, and a length that hangs on data.
            (6, _, Some(outer)) => (format!("{} - 1..{} + 2", outer.name, outer.name), Extent::Other),
            (7, ..) => {
                let length = self.leaf(Wide::I64, scope);
                (format!("0..({length} & 7)"), Extent::Other)
            }
            _ => (end, extent),
        };
        inner.indices.push(IndexName { name: name.clone(), extent });
        inner.loops += 1;
        format!("{name} in {range}")
    }

    /// A range for a loop: a dimension, or a small number.
    pub fn range(&mut self, scope: &Scope) -> Extent {
        let choice = self.choices.below(scope.dims + 1);
        if choice < scope.dims { Extent::Dim(choice) } else { Extent::Fixed(self.choices.one_of(&[4, 1, 3])) }
    }

    fn call(&mut self, ty: Wide, scope: &Scope, depth: usize) -> String {
        let can = |function: &&FunctionName| {
            function.result == ty
                && function.parameters.iter().all(|parameter| match parameter {
                    Parameter::Value(_) => true,
                    Parameter::Array(stored, rank) => arrays_of(scope, *stored, *rank).next().is_some(),
                })
        };
        let functions: Vec<_> = scope.functions.iter().filter(can).cloned().collect();
        if functions.is_empty() {
            return self.operator(ty, scope, depth);
        }
        let at = self.choices.below(functions.len());
        let function = &functions[at];
        let arguments: Vec<String> = function
            .parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Value(ty) => self.expression(*ty, scope, depth - 1),
                Parameter::Array(stored, rank) => {
                    let names: Vec<&str> = arrays_of(scope, *stored, *rank).collect();
                    self.choices.one_of(&names).to_string()
                }
            })
            .collect();
        format!("{}({})", function.name, arguments.join(", "))
    }
}

/// The arrays that a function may be given: of an element type and so many axes.
fn arrays_of(scope: &Scope, stored: Stored, rank: usize) -> impl Iterator<Item = &str> {
    let fits =
        move |array: &&ArrayName| array.element == Element::Scalar(stored) && array.extents.len() == rank;
    scope.arrays.iter().filter(fits).map(|array| array.name.as_str())
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
