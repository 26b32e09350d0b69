//! Runs a typed kernel of integers one iteration after the other, and notes who touches what.

use krn_compiler::check::typed::*;
use std::collections::{HashMap, HashSet};

/// The loops around an access: which, whether its iterations are unordered, and which iteration.
type Path = Vec<(usize, bool, i128)>;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Touch {
    Read,
    Write,
    /// The operator, and whether it is to be an atomic.
    Combine(CombineOp, bool),
}

struct Trace<'a> {
    kernel: &'a Kernel,
    symbols: HashMap<String, i128>,
    indices: HashMap<IndexId, i128>,
    locals: HashMap<LocalId, i128>,
    memory: HashMap<(ArrayId, Vec<i128>), i128>,
    written: HashSet<(ArrayId, Vec<i128>)>,
    path: Path,
    events: HashMap<Element, Vec<(Touch, Path)>>,
    /// A check has ended this iteration: it touches nothing any more.
    stopped: bool,
}

type Outcome<T> = Result<T, String>;

/// One element of an array.
type Element = (ArrayId, Vec<i128>);

/// An error says which claim is false.
pub fn run(program: &Program, kernel: &Kernel, symbols: &[(&str, i128)]) -> Outcome<()> {
    let _ = program;
    let mut trace = Trace {
        kernel,
        symbols: symbols.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
        indices: HashMap::new(),
        locals: HashMap::new(),
        memory: HashMap::new(),
        written: HashSet::new(),
        path: Vec::new(),
        events: HashMap::new(),
        stopped: false,
    };
    for fact in &kernel.facts {
        if trace.value(&fact.condition)? == 0 {
            return Ok(());
        }
    }
    for array in kernel.arrays.values() {
        for extent in &array.extents {
            if trace.value(extent)? < 0 {
                return Ok(());
            }
        }
    }
    trace.region(&kernel.body).map_err(|what| format!("{what} at {symbols:?}"))?;
    for (id, array) in &kernel.arrays {
        if array.role == ArrayRole::Result(ResultStart::Written) {
            let extents: Vec<i128> =
                array.extents.iter().map(|extent| trace.value(extent)).collect::<Outcome<_>>()?;
            for place in places(&extents) {
                if !trace.written.contains(&(id, place.clone())) {
                    return Err(format!("`{}`{place:?} is never written at {symbols:?}", array.name));
                }
            }
        }
    }
    Ok(())
}

fn places(extents: &[i128]) -> Vec<Vec<i128>> {
    extents.iter().fold(vec![Vec::new()], |all, extent| {
        all.into_iter().flat_map(|one| (0..*extent).map(move |at| [one.clone(), vec![at]].concat())).collect()
    })
}

impl Trace<'_> {
    /// Statements at kernel level: a barrier after each that iterates.
    fn region(&mut self, statements: &[Stmt]) -> Outcome<()> {
        for one in statements {
            match &one.kind {
                StmtKind::For { .. } | StmtKind::If { .. } => self.statement(one, true)?,
                _ => {
                    self.events.clear();
                    self.stopped = false;
                    self.statement(one, false)?;
                    self.races()?;
                }
            }
        }
        Ok(())
    }

    fn races(&self) -> Outcome<()> {
        for ((array, place), events) in &self.events {
            let name = &self.kernel.arrays[*array].name;
            for (at, (touch, path)) in events.iter().enumerate() {
                for (other, elsewhere) in &events[..at] {
                    let allowed = match (touch, other) {
                        (Touch::Read, Touch::Read) => true,
                        (Touch::Combine(a, meets), Touch::Combine(b, meet)) => a == b && *meets && *meet,
                        _ => false,
                    };
                    let differ = path.iter().zip(elsewhere).find(|(a, b)| a != b);
                    let unordered = differ.is_some_and(|(a, b)| a.0 == b.0 && a.1);
                    if unordered && !allowed {
                        return Err(format!(
                            "{other:?} and {touch:?} of `{name}`{place:?} meet: {elsewhere:?}, {path:?}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn block(&mut self, block: &Block, kernel_level: bool) -> Outcome<()> {
        if kernel_level {
            return self.region(&block.statements);
        }
        block.statements.iter().try_for_each(|one| self.statement(one, false))
    }

    fn statement(&mut self, one: &Stmt, kernel_level: bool) -> Outcome<()> {
        match &one.kind {
            StmtKind::Let { local, value } | StmtKind::Assign { local, value, .. } => {
                let value = self.value(value)?;
                self.locals.insert(*local, value);
                Ok(())
            }
            StmtKind::Store { axes, access, combine, value, .. } => self.axes(axes, true, &mut |trace| {
                let value = trace.value(value)?;
                let touch =
                    combine.map_or(Touch::Write, |combine| Touch::Combine(combine.op, combine.may_meet));
                let Some(place) = trace.place(access)? else { return Ok(()) };
                trace.note(access, &place, touch);
                let key = (access.array, place);
                let old = trace.memory.get(&key).copied().unwrap_or(0);
                let new = match combine.map(|combine| combine.op) {
                    None => value,
                    Some(CombineOp::Max) => old.max(value),
                    Some(_) => (old + value) as i32 as i128,
                };
                trace.memory.insert(key.clone(), new);
                if combine.is_none() {
                    trace.written.insert(key);
                }
                Ok(())
            }),
            StmtKind::Forall { axes, body } => self.axes(axes, true, &mut |trace| trace.block(body, false)),
            StmtKind::For { index, low, high, step, goes_on, body, .. } => {
                let (low, high, step) = (self.value(low)?, self.value(high)?, self.value(step)?);
                let id = std::ptr::from_ref(one) as usize;
                for at in (low..high).step_by(step as usize) {
                    self.indices.insert(*index, at);
                    self.path.push((id, false, at));
                    self.block(body, kernel_level)?;
                    self.path.pop();
                    if goes_on.is_some_and(|local| self.locals.get(&local) == Some(&0)) {
                        break;
                    }
                }
                Ok(())
            }
            StmtKind::While { condition, body } => {
                let id = std::ptr::from_ref(one) as usize;
                let mut turn = 0;
                loop {
                    self.path.push((id, false, turn));
                    let goes_on = self.value(condition)? != 0 && turn < 20;
                    if goes_on {
                        self.block(body, false)?;
                    }
                    self.path.pop();
                    turn += 1;
                    if !goes_on {
                        return Ok(());
                    }
                }
            }
            StmtKind::If { condition, then, otherwise } => {
                let branch = if self.value(condition)? != 0 { then } else { otherwise };
                self.block(branch, kernel_level)
            }
            StmtKind::DefineArray { .. } | StmtKind::Assert { .. } | StmtKind::Print { .. } => {
                Err(String::from("not generated"))
            }
        }
    }

    fn axes(
        &mut self,
        axes: &[Axis],
        unordered: bool,
        inside: &mut dyn FnMut(&mut Self) -> Outcome<()>,
    ) -> Outcome<()> {
        let Some((first, rest)) = axes.split_first() else { return inside(self) };
        let (low, high) = (self.value(&first.low)?, self.value(&first.high)?);
        let id = std::ptr::from_ref(first) as usize;
        for at in low..high {
            self.indices.insert(first.index, at);
            self.path.push((id, unordered, at));
            let before = self.stopped;
            self.axes(rest, unordered, inside)?;
            // Others of its loop go on; so does a reduction, without the term.
            self.stopped = before;
            self.path.pop();
        }
        Ok(())
    }

    /// Where an access goes; none where a check on the device stops it (or its guard takes over).
    fn place(&mut self, access: &Access) -> Outcome<Option<Vec<i128>>> {
        let mut place = Vec::new();
        let mut inside = true;
        for (axis, (subscript, check)) in access.subscripts.iter().zip(&access.checks).enumerate() {
            let at = self.value(subscript)?;
            let array = &self.kernel.arrays[access.array];
            let extent = self.value(&array.extents[axis].clone())?;
            if at < 0 || at >= extent {
                if *check == BoundsCheck::Proved {
                    return Err(format!("`{}` axis {axis} was proved, and is {at} of {extent}", array.name));
                }
                inside = false;
                self.stopped |= matches!(check, BoundsCheck::Runtime(_));
            }
            place.push(at);
        }
        Ok(inside.then_some(place))
    }

    /// What an element holds before the kernel: contents that hit both ends of small arrays, and that satisfy the facts
    /// about values, as barely as can be: what lies outside of their range is equal.
    fn start(&mut self, array: ArrayId, place: &[i128]) -> Outcome<i128> {
        let kernel = self.kernel;
        let Some(injection) = kernel.injections.iter().find(|known| known.array == array) else {
            return Ok((place.iter().sum::<i128>() * 3) % 7 - 1);
        };
        let (low, high) = (self.value(&injection.low)?, self.value(&injection.high)?);
        let inside = high - 1 - place[0] / 2;
        Ok(match place[0] % 4 {
            1 => low - 1,
            3 => high,
            _ if inside >= low => inside,
            _ => high,
        })
    }

    fn note(&mut self, access: &Access, place: &[i128], touch: Touch) {
        if self.stopped {
            return;
        }
        let path = self.path.clone();
        self.events.entry((access.array, place.to_vec())).or_default().push((touch, path));
    }

    fn value(&mut self, one: &Expr) -> Outcome<i128> {
        let wide = |value: i128| value as i64 as i128;
        Ok(match &one.kind {
            ExprKind::Bool(value) => i128::from(*value),
            ExprKind::Int(value) => *value,
            ExprKind::Local(local) => self.locals[local],
            ExprKind::Index(index) => self.indices[index],
            ExprKind::Dim(dim) => self.symbols[&self.kernel.dims[*dim].name],
            ExprKind::Param(param) => self.symbols[&self.kernel.params[*param].name],
            ExprKind::Negate(operand) => wide(-self.value(operand)?),
            ExprKind::Not(operand) => i128::from(self.value(operand)? == 0),
            ExprKind::Binary { op, left, right } => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                wide(match op {
                    BinaryOp::Add => left + right,
                    BinaryOp::Sub => left - right,
                    BinaryOp::Mul => left * right,
                    BinaryOp::Div => left.checked_div(right).unwrap_or(0),
                    BinaryOp::Rem => left.checked_rem(right).unwrap_or(0),
                    BinaryOp::And => left & right,
                    BinaryOp::Or => left | right,
                    BinaryOp::Xor => left ^ right,
                    BinaryOp::Shl => left << right.rem_euclid(64),
                    BinaryOp::Shr => left >> right.rem_euclid(64),
                })
            }
            ExprKind::Compare { op, left, right } => {
                let order = self.value(left)?.cmp(&self.value(right)?);
                i128::from(match op {
                    CompareOp::Equal => order.is_eq(),
                    CompareOp::NotEqual => order.is_ne(),
                    CompareOp::Less => order.is_lt(),
                    CompareOp::LessEqual => order.is_le(),
                    CompareOp::Greater => order.is_gt(),
                    CompareOp::GreaterEqual => order.is_ge(),
                })
            }
            ExprKind::Logical { and, left, right } => {
                let left = self.value(left)?;
                if (left != 0) == *and { self.value(right)? } else { left }
            }
            ExprKind::Cast { operand, .. } => self.value(operand)?,
            ExprKind::Call { builtin, arguments } => {
                let (left, right) = (self.value(&arguments[0])?, self.value(&arguments[1])?);
                match builtin {
                    Builtin::Min => left.min(right),
                    Builtin::Max => left.max(right),
                    _ => return Err(String::from("not generated")),
                }
            }
            ExprKind::Load { access, otherwise, .. } => match (self.place(access)?, otherwise) {
                (Some(place), _) => {
                    self.note(access, &place, Touch::Read);
                    let key = (access.array, place);
                    let name = &self.kernel.arrays[access.array].name;
                    if self.kernel.arrays[access.array].role == ArrayRole::Result(ResultStart::Written)
                        && !self.written.contains(&key)
                    {
                        return Err(format!("`{name}`{:?} is read before it is written", key.1));
                    }
                    match self.memory.get(&key) {
                        Some(value) => *value,
                        None => self.start(access.array, &key.1)?,
                    }
                }
                (None, Some(otherwise)) => self.value(otherwise)?,
                (None, None) => 0,
            },
            ExprKind::Reduce { axes, body, .. } => {
                let mut sum = 0;
                self.axes(axes, false, &mut |trace| {
                    sum += trace.value(body)?;
                    Ok(())
                })?;
                sum as i32 as i128
            }
            _ => return Err(String::from("not generated")),
        })
    }
}
