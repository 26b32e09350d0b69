//! What can be seen, as the protocol's variables: names, sizes, arrays, tiles and registers, and what is in them.

use super::arrays::{self, Array};
use super::expression::{Expression, find_array};
use super::program::Program;
use super::values::{self, Shown, value};
use krn_compiler::check::typed::Type;
use krn_compiler::ptx::RegClass;
use krn_runtime::emulator::debug::Moment;

/// Elements that are shown where nobody says how many.
const ELEMENTS: u64 = 1000;

/// Something with variables in it.
#[derive(Clone, PartialEq, Debug)]
pub enum Handle {
    Names(usize),
    Sizes,
    Arrays(usize),
    Tiles(usize),
    Ptx(usize),
    /// A name: its parts, and its values in all lanes.
    Name(String, usize),
    /// An array, which is a tile or not.
    Array(String, bool, usize),
    Parts(Vec<(String, Shown)>),
    /// An expression in all lanes.
    Lanes(String),
}

/// A variable.
pub struct Variable {
    pub name: String,
    pub value: String,
    pub ty: String,
    /// The expression that gives it.
    pub expression: Option<String>,
    pub inside: Option<Handle>,
    /// How many elements there are inside.
    pub indexed: Option<u64>,
}

impl Variable {
    fn plain(name: impl Into<String>, value: impl Into<String>, ty: impl Into<String>) -> Self {
        let (name, value, ty) = (name.into(), value.into(), ty.into());
        Self { name, value, ty, expression: None, inside: None, indexed: None }
    }
}

/// What there is to see of a lane: titles, what is in them, and whether that takes long.
pub fn scopes(lane: usize) -> [(&'static str, Handle, bool); 5] {
    [
        ("Names", Handle::Names(lane), false),
        ("Sizes and parameters", Handle::Sizes, false),
        ("Arrays", Handle::Arrays(lane), false),
        ("Shared and local memory", Handle::Tiles(lane), false),
        ("PTX", Handle::Ptx(lane), true),
    ]
}

/// The variables in something: of elements those from `start` on, `count` of them.
pub fn inside(
    handle: &Handle,
    program: &Program,
    moment: &Moment<'_>,
    (start, count): (u64, Option<u64>),
) -> Vec<Variable> {
    match handle {
        Handle::Names(lane) => names(program, moment, *lane),
        Handle::Sizes => sizes(program),
        Handle::Arrays(lane) => {
            let all = arrays::global(program, moment);
            all.iter().map(|array| whole(array, false, moment, *lane)).collect()
        }
        Handle::Tiles(lane) => {
            arrays::tiles(moment).iter().map(|tile| whole(tile, true, moment, *lane)).collect()
        }
        Handle::Ptx(lane) => ptx(moment, *lane),
        Handle::Name(name, lane) => name_inside(program, moment, name, *lane),
        Handle::Lanes(text) => match Expression::parse(text) {
            Ok(expression) => lanes(moment, |lane| expression.evaluate(program, moment, lane)),
            Err(_) => Vec::new(),
        },
        Handle::Array(name, tile, lane) => {
            let list = if *tile { arrays::tiles(moment) } else { arrays::global(program, moment) };
            let found = list.into_iter().find(|array| array.name == *name);
            found.map_or(Vec::new(), |array| elements(&array, *tile, moment, *lane, (start, count)))
        }
        Handle::Parts(parts) => parts
            .iter()
            .map(|(way, value)| Variable::plain(way.trim_start_matches('.'), value.to_string(), ""))
            .collect(),
    }
}

fn type_name(program: &Program, ty: &Type) -> String {
    match ty {
        Type::Scalar(scalar) => scalar.name().to_string(),
        Type::Struct(id) => program.struct_name(*id).to_string(),
        Type::Array(element, extent) => format!("{}[{extent}]", type_name(program, element)),
    }
}

fn names(program: &Program, moment: &Moment<'_>, lane: usize) -> Vec<Variable> {
    let all = values::names(program, moment);
    let variable = |name: &krn_compiler::scopes::Visible| {
        let shown = match value(program, moment, name, lane) {
            Ok(value) => value.to_string(),
            Err(reason) => reason,
        };
        let plain = Variable::plain(&name.name, shown, type_name(program, &name.ty));
        let inside = Some(Handle::Name(name.name.clone(), lane));
        Variable { expression: Some(name.name.clone()), inside, ..plain }
    };
    all.iter().map(variable).collect()
}

fn lanes(moment: &Moment<'_>, value: impl Fn(usize) -> Result<Shown, String>) -> Vec<Variable> {
    let variable = |lane| {
        let shown = value(lane).map_or_else(|reason| reason, |value| value.to_string());
        Variable::plain(format!("lane {lane}"), shown, "")
    };
    (0..moment.lanes()).map(variable).collect()
}

fn name_inside(program: &Program, moment: &Moment<'_>, name: &str, lane: usize) -> Vec<Variable> {
    let all = values::names(program, moment);
    let Some(visible) = all.iter().rev().find(|known| known.name == name) else { return Vec::new() };
    let mut found = Vec::new();
    if let Ok(Shown::Parts(_, parts)) = value(program, moment, visible, lane) {
        let part = |(way, value): (String, Shown)| Variable {
            expression: Some(format!("{name}{way}")),
            ..Variable::plain(way.trim_start_matches('.'), value.to_string(), "")
        };
        found.extend(parts.into_iter().map(part));
    }
    found.extend(lanes(moment, |lane| value(program, moment, visible, lane)));
    found
}

fn sizes(program: &Program) -> Vec<Variable> {
    let dim = |(name, size): (&String, &i64)| Variable {
        expression: Some(name.clone()),
        ..Variable::plain(name, size.to_string(), "i64")
    };
    let param = |(name, given): (&String, &krn_compiler::data::HostArray)| {
        let value = values::given_value(given);
        let inside = match &value {
            Shown::Parts(_, parts) => Some(Handle::Parts(parts.clone())),
            _ => None,
        };
        let plain = Variable::plain(name, value.to_string(), &given.element.name);
        Variable { expression: Some(name.clone()), inside, ..plain }
    };
    let mut found: Vec<Variable> = program.sizes.dims.iter().map(dim).collect();
    found.extend(program.case.params.iter().map(param));
    found
}

fn whole(array: &Array, tile: bool, moment: &Moment<'_>, lane: usize) -> Variable {
    let inside = Some(Handle::Array(array.name.clone(), tile, lane));
    let plain = Variable::plain(&array.name, array.preview(moment, lane), array.ty());
    Variable { inside, indexed: Some(array.len()), ..plain }
}

/// An array that an expression names, as a whole.
pub fn array(program: &Program, moment: &Moment<'_>, name: &str, lane: usize) -> Option<Variable> {
    let is_tile = !arrays::global(program, moment).iter().any(|array| array.name == name);
    find_array(program, moment, name).ok().map(|array| whole(&array, is_tile, moment, lane))
}

fn elements(
    array: &Array,
    tile: bool,
    moment: &Moment<'_>,
    lane: usize,
    (start, count): (u64, Option<u64>),
) -> Vec<Variable> {
    let all = array.len();
    let count = count.filter(|count| *count > 0).unwrap_or(ELEMENTS).min(10 * ELEMENTS);
    let end = start.saturating_add(count).min(all);
    let element = |number| {
        let subscripts: Vec<String> = array.subscripts(number).iter().map(u64::to_string).collect();
        let subscripts = format!("[{}]", subscripts.join(", "));
        let found = array.element(moment, number, lane);
        let inside = match &found {
            Ok(Shown::Parts(_, parts)) => Some(Handle::Parts(parts.clone())),
            _ => None,
        };
        let shown = found.map_or_else(|reason| reason, |value| value.to_string());
        let expression = (!tile).then(|| format!("{}{subscripts}", array.name));
        Variable { expression, inside, ..Variable::plain(subscripts, shown, &array.element.name) }
    };
    (start..end).map(element).collect()
}

/// The instruction, and all registers: what a register holds is what it holds, whatever it is called.
fn ptx(moment: &Moment<'_>, lane: usize) -> Vec<Variable> {
    let mut found = vec![Variable::plain("next", moment.launch.text(moment.pc), "")];
    for (reg, register) in &moment.launch.entry().registers {
        let Some(bits) = moment.register(reg).map(|all| all[lane]) else { continue };
        let value = match register.class {
            RegClass::Pred => (bits != 0).to_string(),
            RegClass::F32 => format!("{:?}", f32::from_bits(bits as u32)),
            RegClass::F64 => format!("{:?}", f64::from_bits(bits)),
            RegClass::B16 => format!("{} ({bits:#x})", bits as u16 as i16),
            RegClass::B32 => format!("{} ({bits:#x})", bits as u32 as i32),
            RegClass::B64 => format!("{} ({bits:#x})", bits as i64),
            RegClass::B128 => continue,
        };
        found.push(Variable::plain(&register.name, value, register.class.to_string()));
    }
    found
}
