//! Schedules: the directives that passes carry out, and what lowering does about layouts and caches.

use super::{Lowerer, Storage};
use crate::check::typed::{self, ArrayId, DirectiveKind};
use crate::data::CacheMode;
use crate::ir::entities::Buffer;
use crate::ir::schedule::{Conditional, Directive, Outcome, SAID, Scheduled};

impl Lowerer<'_> {
    /// The kernel follows the schedule that counts for all sizes; those for some sizes are kept beside it.
    pub(super) fn apply_schedules(&mut self) {
        let (typed, target) = (self.typed, self.options.target);
        if let Some(schedule) = typed.schedule_for(target) {
            self.apply_layouts(schedule);
            let (directives, caches) = self.lowered_schedule(schedule);
            let kernel = self.builder.kernel_mut();
            kernel.schedule.directives = directives;
            caches.into_iter().for_each(|(buffer, mode)| kernel.set_cache(buffer, mode));
        }
        for (schedule, condition) in typed.conditional_schedules(target) {
            // Conditions are read as mathematics, as facts are; what leaves its type is as large as it is.
            let Some((value, _)) = self.host_expression(&condition.value) else {
                self.not_for_the_host(condition.span, "this condition");
                continue;
            };
            let (directives, caches) = self.lowered_schedule(schedule);
            let (text, span) = (condition.text.clone(), condition.span);
            let conditional = Conditional { condition: value, text, span, directives, caches };
            self.builder.kernel_mut().schedule.conditional.push(conditional);
        }
    }

    fn apply_layouts(&mut self, schedule: &typed::Schedule) {
        for directive in &schedule.directives {
            let DirectiveKind::Layout { array, layout } = &directive.kind else { continue };
            if let Some(Storage::Plain(buffer)) = self.arrays[*array] {
                let data = &mut self.builder.kernel_mut().buffers[buffer];
                data.layout_fixed = true;
                data.layout = *layout;
                let array = self.typed.arrays[*array].name.clone();
                let chosen = Directive::Layout { array, layout: *layout };
                self.builder.kernel_mut().schedule.chose("", chosen, SAID);
            }
        }
    }

    /// What passes carry out, and how arrays are cached.
    fn lowered_schedule(&self, schedule: &typed::Schedule) -> (Vec<Scheduled>, Vec<(Buffer, CacheMode)>) {
        let typed = self.typed;
        let array_name = |array: &ArrayId| typed.arrays[*array].name.clone();
        let (mut directives, mut caches) = (Vec::new(), Vec::new());
        for directive in &schedule.directives {
            let passed_on = match &directive.kind {
                DirectiveKind::Block(threads) => Directive::Block(*threads),
                DirectiveKind::Order(names) => {
                    Directive::Order(names.iter().map(|name| typed.indices[*name].name.clone()).collect())
                }
                DirectiveKind::Tile { axis, size } => Directive::Tile { axis: axis.clone(), size: *size },
                DirectiveKind::PerThread { axis, count } => {
                    Directive::PerThread { axis: axis.clone(), count: *count }
                }
                DirectiveKind::Stage { array, place, depth } => {
                    Directive::Stage { array: array_name(array), place: *place, depth: *depth }
                }
                DirectiveKind::Unroll { axis, factor } => {
                    Directive::Unroll { axis: axis.clone(), factor: *factor }
                }
                DirectiveKind::Vectorize { axis, width } => {
                    Directive::Vectorize { axis: axis.clone(), width: *width }
                }
                DirectiveKind::Warps { axis, count } => {
                    Directive::Warps { axis: axis.clone(), count: *count }
                }
                DirectiveKind::Split { axis, pieces } => {
                    Directive::Split { axis: axis.clone(), pieces: *pieces }
                }
                DirectiveKind::Atomic { array } => Directive::Atomic { array: array_name(array) },
                DirectiveKind::FastMath => Directive::FastMath,
                DirectiveKind::Tf32 => Directive::Tf32,
                DirectiveKind::Layout { .. } => continue,
                DirectiveKind::Cache { array, mode } => {
                    if let Some(Storage::Plain(buffer)) = self.arrays[*array] {
                        caches.push((buffer, *mode));
                    }
                    continue;
                }
            };
            let span = directive.span;
            directives.push(Scheduled { directive: passed_on, span, outcome: Outcome::default() });
        }
        (directives, caches)
    }
}
