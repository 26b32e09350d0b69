//! Expressions over what can be seen: watches, conditions of breakpoints. They are read by the language's own parser, and
//! computed as the language does, but for types: integers have no width, and an integer beside a float is one.

use super::arrays::{self, Array};
use super::program::Program;
use super::values::{self, Shown};
use krn_compiler::source::SourceFile;
use krn_compiler::syntax::ast::{BinaryOp, Expr, ExprKind, Item, UnaryOp};
use krn_compiler::syntax::parse;
use krn_runtime::emulator::debug::Moment;

/// An expression.
#[derive(Clone, Debug)]
pub struct Expression {
    pub text: String,
    tree: Expr,
}

impl Expression {
    /// # Errors
    /// It is no expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let file = SourceFile::new("watch", format!("fn watch() -> i64 {{\n{text}\n}}\n"));
        let (parsed, diagnostics) = parse(&file);
        let wrong = || format!("`{text}` is no expression");
        if diagnostics.has_errors() || parsed.items.len() != 1 {
            return Err(wrong());
        }
        match parsed.items.into_iter().next() {
            Some(Item::Function(function)) if function.body.statements.is_empty() => {
                let tree = *function.body.value.ok_or_else(wrong)?;
                Ok(Self { text: text.to_string(), tree })
            }
            _ => Err(wrong()),
        }
    }

    /// The name of an array, if it is no more than that.
    pub fn name(&self) -> Option<&str> {
        match &self.tree.kind {
            ExprKind::Name(name) => Some(&name.name),
            _ => None,
        }
    }

    /// Its value in a lane.
    ///
    /// # Errors
    /// Why it has none.
    pub fn evaluate(&self, program: &Program, moment: &Moment<'_>, lane: usize) -> Result<Shown, String> {
        Evaluator { program, moment, lane }.value(&self.tree)
    }
}

struct Evaluator<'e, 'm> {
    program: &'e Program,
    moment: &'e Moment<'m>,
    lane: usize,
}

impl Evaluator<'_, '_> {
    fn value(&self, expr: &Expr) -> Result<Shown, String> {
        match &expr.kind {
            ExprKind::Int { value, .. } => {
                i128::try_from(*value).map(Shown::Int).map_err(|_| format!("{value} is too large"))
            }
            ExprKind::Float { value, .. } => Ok(Shown::F64(*value)),
            ExprKind::Bool(value) => Ok(Shown::Bool(*value)),
            ExprKind::Name(name) => self.name(&name.name),
            ExprKind::Unary { op, operand } => match (op, self.value(operand)?) {
                (UnaryOp::Negate, Shown::Int(value)) => {
                    value.checked_neg().map(Shown::Int).ok_or_else(|| "too large".to_string())
                }
                (UnaryOp::Negate, Shown::F32(value)) => Ok(Shown::F32(-value)),
                (UnaryOp::Negate, Shown::F64(value)) => Ok(Shown::F64(-value)),
                (UnaryOp::Not, Shown::Bool(value)) => Ok(Shown::Bool(!value)),
                (_, value) => Err(format!("`{value}` is not of a type for that operator")),
            },
            // The second operand counts where the first one leaves that open, as in the language.
            ExprKind::Binary { op: BinaryOp::And, left, right, .. } => {
                Ok(Shown::Bool(self.truth(left)? && self.truth(right)?))
            }
            ExprKind::Binary { op: BinaryOp::Or, left, right, .. } => {
                Ok(Shown::Bool(self.truth(left)? || self.truth(right)?))
            }
            ExprKind::Binary { op, left, right, .. } => binary(*op, self.value(left)?, self.value(right)?),
            ExprKind::Index { base, subscripts } => {
                let ExprKind::Name(name) = &base.kind else {
                    return Err("only arrays are subscripted here".to_string());
                };
                let array = find_array(self.program, self.moment, &name.name)?;
                let mut numbers = Vec::with_capacity(subscripts.len());
                for subscript in subscripts {
                    match self.value(subscript)? {
                        Shown::Int(number) => numbers.push(number),
                        other => return Err(format!("`{other}` is no subscript")),
                    }
                }
                let number = array.number(&numbers)?;
                array.element(self.moment, number, self.lane)
            }
            ExprKind::Field { base, field } => {
                let value = self.value(base)?;
                let Shown::Parts(name, parts) = value else {
                    return Err(format!("`{value}` has no field `{}`", field.name));
                };
                let within = |way: &str| {
                    let rest = way.trim_start_matches('.').strip_prefix(&field.name)?;
                    (rest.is_empty() || rest.starts_with(['.', '['])).then(|| rest.to_string())
                };
                let mut found: Vec<(String, Shown)> =
                    parts.into_iter().filter_map(|(way, value)| Some((within(&way)?, value))).collect();
                match found.len() {
                    0 => Err(format!("`{name}` has no field `{}`", field.name)),
                    1 if found[0].0.is_empty() => Ok(found.remove(0).1),
                    _ => Ok(Shown::Parts(field.name.clone(), found)),
                }
            }
            _ => {
                Err("that is not computed here: names, numbers, `x[i]`, `p.x` and operators are".to_string())
            }
        }
    }

    fn truth(&self, expr: &Expr) -> Result<bool, String> {
        match self.value(expr)? {
            Shown::Bool(value) => Ok(value),
            other => Err(format!("`{other}` is no condition")),
        }
    }

    fn name(&self, name: &str) -> Result<Shown, String> {
        let (program, moment, lane) = (self.program, self.moment, self.lane);
        if let Some(visible) = values::names(program, moment).iter().rev().find(|known| known.name == name) {
            let value = values::value(program, moment, visible, lane);
            return value.map_err(|reason| format!("`{name}`: {reason}"));
        }
        is_the_kernels(program, moment, name)?;
        if let Some(size) = program.sizes.dims.get(name) {
            return Ok(Shown::Int((*size).into()));
        }
        if let Some(given) = program.case.params.get(name) {
            return Ok(values::given_value(given));
        }
        match find_array(program, moment, name) {
            Ok(array) if array.extents.is_empty() => array.element(moment, 0, lane),
            Ok(_) => Err(format!("`{name}` is an array: give it subscripts")),
            Err(_) => Err(format!("there is no name `{name}` here")),
        }
    }
}

/// Whether a name means what it does in the kernel.
///
/// # Errors
/// Where it is an array or a size that calls give a function, in the function's text.
fn is_the_kernels(program: &Program, moment: &Moment<'_>, name: &str) -> Result<(), String> {
    let location = moment.launch.location(moment.pc);
    match location.is_some_and(|location| program.is_given(location.line, name)) {
        true => Err(format!(
            "`{name}` is what a call gives the function: look at it by the caller's name, behind `step out`"
        )),
        false => Ok(()),
    }
}

/// An array by its name: one of the kernel's own before a tile of the same name.
///
/// # Errors
/// Where there is none, or the name is not the kernel's.
pub fn find_array(program: &Program, moment: &Moment<'_>, name: &str) -> Result<Array, String> {
    is_the_kernels(program, moment, name)?;
    let mut all = arrays::global(program, moment);
    all.extend(arrays::tiles(moment));
    let found = all.into_iter().find(|array| array.name == name);
    found.ok_or_else(|| format!("there is no array `{name}` here"))
}

fn binary(op: BinaryOp, left: Shown, right: Shown) -> Result<Shown, String> {
    use BinaryOp::{
        Add, BitAnd, BitOr, BitXor, Div, Equal, Greater, GreaterEqual, Less, LessEqual, Mul, NotEqual, Rem,
        Shl, Shr, Sub,
    };
    let order = |less: bool, equal: bool, greater: bool| match op {
        Equal => Some(equal),
        NotEqual => Some(!equal),
        Less => Some(less),
        LessEqual => Some(less || equal),
        Greater => Some(greater),
        GreaterEqual => Some(greater || equal),
        _ => None,
    };
    let wrong =
        |left: &Shown, right: &Shown| format!("`{left}` and `{right}` are not of types for that operator");
    match (&left, &right) {
        (Shown::Int(a), Shown::Int(b)) => {
            if let Some(truth) = order(a < b, a == b, a > b) {
                return Ok(Shown::Bool(truth));
            }
            let count = u32::try_from(*b).ok().filter(|count| *count < 64);
            let value = match op {
                Add => a.checked_add(*b),
                Sub => a.checked_sub(*b),
                Mul => a.checked_mul(*b),
                Div => Some(a.checked_div(*b).unwrap_or(0)),
                Rem => Some(a.checked_rem(*b).unwrap_or(0)),
                BitAnd => Some(a & b),
                BitOr => Some(a | b),
                BitXor => Some(a ^ b),
                Shl => count.and_then(|count| a.checked_mul(1 << count)),
                Shr => count.map(|count| a >> count),
                _ => None,
            };
            value.map(Shown::Int).ok_or_else(|| "the result is too large".to_string())
        }
        (Shown::Bool(a), Shown::Bool(b)) if matches!(op, Equal | NotEqual) => {
            Ok(Shown::Bool((a == b) == (op == Equal)))
        }
        (Shown::F32(a), Shown::F32(b)) => float(op, *a, *b)
            .map(Shown::F32)
            .or_else(|| order(a < b, a == b, a > b).map(Shown::Bool))
            .ok_or_else(|| wrong(&left, &right)),
        // Beside a float of 32 bits anything else is a literal, which is of its type.
        (Shown::F32(a), Shown::Int(_) | Shown::F64(_)) => {
            let b = number(&right).map_or(f32::NAN, |b| b as f32);
            binary(op, Shown::F32(*a), Shown::F32(b))
        }
        (Shown::Int(_) | Shown::F64(_), Shown::F32(b)) => {
            let a = number(&left).map_or(f32::NAN, |a| a as f32);
            binary(op, Shown::F32(a), Shown::F32(*b))
        }
        (a, b) => {
            let (Some(x), Some(y)) = (number(a), number(b)) else { return Err(wrong(&left, &right)) };
            let value = float64(op, x, y).map(Shown::F64);
            value.or_else(|| order(x < y, x == y, x > y).map(Shown::Bool)).ok_or_else(|| wrong(&left, &right))
        }
    }
}

fn number(value: &Shown) -> Option<f64> {
    match value {
        Shown::Int(value) => Some(*value as f64),
        Shown::F32(value) => Some((*value).into()),
        Shown::F64(value) => Some(*value),
        Shown::Bool(_) | Shown::Parts(..) => None,
    }
}

fn float(op: BinaryOp, a: f32, b: f32) -> Option<f32> {
    Some(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Rem => a % b,
        _ => return None,
    })
}

fn float64(op: BinaryOp, a: f64, b: f64) -> Option<f64> {
    Some(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Rem => a % b,
        _ => return None,
    })
}
