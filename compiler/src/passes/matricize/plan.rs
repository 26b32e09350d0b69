//! What is copied, and in which order the axes of each class stand.

use super::found::Found;
use crate::analysis::contraction::Class;
use crate::analysis::{Answer, Conditions, ask};
use crate::ir::entities::{Launch, Value};
use crate::ir::kernel::Kernel;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::hoist_reductions::{BETWEEN, LAUNCH, LEAST_ROWS, LEAST_STEPS};
use crate::passes::pass::TargetFacts;

/// Rows, or columns, along one axis from which on tiles of that axis are full.
const FULL: i64 = 64;

/// How much of a step is saved, as a part, where tiles along one axis a side are not full (57 x 59 pixels of 60 channels, on an H100:
/// 147 us along one axis, 214 with copies).
const ALONG_ONE: i64 = 4;

/// The order of the axes of each class, and what is copied for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    pub batch: Vec<Value>,
    /// Of the rows, and of the columns.
    pub outer: [Vec<Value>; 2],
    pub steps: Vec<Value>,
    /// The operands of the rows, and of the columns.
    pub copied: [bool; 2],
    /// Whether the product has a launch of its own, before the one that stores results.
    pub apart: bool,
}

impl Plan {
    /// The same, and plans that copy more.
    pub fn larger(&self) -> Vec<Plan> {
        let apart = Plan { apart: true, ..self.clone() };
        let all = Plan { copied: [true; 2], ..apart.clone() };
        let mut plans = vec![self.clone(), apart, all];
        plans.dedup();
        plans
    }

    /// The axes of an operand in the order of its copy: neighbours along the rows, or columns, lie side by side.
    pub fn axes_of(&self, side: usize) -> [Vec<Value>; 3] {
        [self.batch.clone(), self.steps.clone(), self.outer[side].clone()]
    }

    /// The axes of the product in the order of its results.
    pub fn axes_of_results(&self) -> [Vec<Value>; 3] {
        [self.batch.clone(), self.outer[0].clone(), self.outer[1].clone()]
    }

    /// How many elements are copied.
    fn elements(&self, found: &Found) -> Expr {
        let copied = (0..2).filter(|side| self.copied[*side]).map(|side| self.axes_of(side));
        let copied = copied.chain(self.apart.then(|| self.axes_of_results()));
        let elements = copied.map(|axes| found.extents(&axes.concat()));
        elements.reduce(|left, right| binary(BinaryOp::Add, left, right)).unwrap_or(Expr::Int(0))
    }

    /// Whether the product is large enough for tiles, and what they save is more than the copies cost.
    pub fn pays(&self, kernel: &mut Kernel, launch: Launch, found: &Found, target: &TargetFacts) -> bool {
        let [rows, columns] = &self.outer;
        let steps = found.extents(&self.steps);
        let mut conditions = Conditions::new()
            .prefers_at_least(&found.extents(rows), LEAST_ROWS)
            .prefers_at_least(&found.extents(columns), LEAST_ROWS)
            .prefers_at_least(&steps, LEAST_STEPS as i64);
        let longest = |indices: &[Value]| {
            let extents = indices.iter().map(|index| found.extent(*index));
            extents.reduce(|left, right| binary(BinaryOp::Max, left, right)).unwrap_or(Expr::Int(1))
        };
        let is_one = self.steps.len() == 1;
        if is_one {
            // Else tiles along one axis of the rows, and one of the columns, do.
            let shorter = binary(BinaryOp::Min, longest(rows), longest(columns));
            conditions = conditions.prefers(binary(BinaryOp::Less, shorter, Expr::Int(FULL)));
        }
        let launches = self.copied.iter().filter(|copied| **copied).count() as i64 + i64::from(self.apart);
        let at_once = target.threads_at_once();
        let cost = binary(BinaryOp::Mul, self.elements(found), Expr::Int(BETWEEN));
        let cost = binary(BinaryOp::Add, cost, Expr::Int(launches * LAUNCH * at_once));
        // What a step takes as it is, of the time that it takes one thread of many: tiles that are made of quotients are nearly as
        // good as others, those along one axis are not full, and else there are none.
        let (of_cost, of_steps) = match (is_one, found.runs_along_last()) {
            (false, true) => (4, 1),
            (true, _) => (ALONG_ONE, 1),
            (false, false) => (1, 4),
        };
        let cost = times(cost, of_cost);
        let all = binary(BinaryOp::Mul, found.extents(&self.axes_of_results().concat()), steps);
        let saved = times(all, of_steps);
        let conditions = conditions.prefers(binary(BinaryOp::LessEqual, cost, saved));
        ask(kernel, launch, &conditions) == Answer::Yes
    }
}

fn times(expr: Expr, by: i64) -> Expr {
    if by == 1 { expr } else { binary(BinaryOp::Mul, expr, Expr::Int(by)) }
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::binary(op, left, right)
}

/// The plan that copies the fewest elements; `None` where nothing is to be copied.
pub fn least(kernel: &mut Kernel, launch: Launch, found: &Found) -> Option<Plan> {
    let [batch, rows, columns, steps] =
        [Class::Batch, Class::M, Class::N, Class::K].map(|class| found.of_class(class));
    let [left, right] = [0, 1].map(|side| &found.operands[side].subscripts);
    let own = found.stored.as_ref();
    let in_order = |indices: &[Value], of: Option<&Vec<Value>>| match of {
        Some(of) => of.iter().copied().filter(|index| indices.contains(index)).collect(),
        None => indices.to_vec(),
    };
    let mut plans: Vec<Plan> = Vec::new();
    for of_rows in [own, Some(left)] {
        for of_columns in [own, Some(right)] {
            for of_steps in [left, right] {
                let outer = [in_order(&rows, of_rows), in_order(&columns, of_columns)];
                let steps: Vec<Value> = in_order(&steps, Some(of_steps));
                let lies = |subscripts: &[Value], groups: [&[Value]; 2]| {
                    groups.into_iter().all(|group| stand_together(subscripts, group))
                };
                let copied = [0, 1].map(|side| {
                    let subscripts = &found.operands[side].subscripts;
                    !lies(subscripts, [&outer[side], &steps])
                });
                let apart = own.is_none_or(|own| !lies(own, [&outer[0], &outer[1]]));
                let plan = Plan { batch: in_order(&batch, own), outer, steps, copied, apart };
                let more = |known: &Plan| {
                    let of = |plan: &Plan| [plan.copied[0], plan.copied[1], plan.apart];
                    of(known).iter().zip(of(&plan)).all(|(known, own)| !*known || own)
                };
                if !plans.iter().any(more) {
                    plans.push(plan);
                }
            }
        }
    }
    plans
        .into_iter()
        .reduce(|best, other| {
            let less = Expr::binary(BinaryOp::Less, other.elements(found), best.elements(found));
            let is_less = ask(kernel, launch, &Conditions::new().prefers(less)) == Answer::Yes;
            if is_less { other } else { best }
        })
        .filter(|plan| plan.apart || plan.copied.contains(&true))
}

/// Whether indices are neighbouring subscripts, in their order.
fn stand_together(subscripts: &[Value], group: &[Value]) -> bool {
    group.is_empty() || subscripts.windows(group.len()).any(|window| window == group)
}
