//! What a schedule asks for, what became of it, and what the passes chose where it is silent.
//!
//! Directives name axes and arrays as the source does: one applies to every loop, or access, of that name. A pass
//! reads the directives that concern it in place of its own choice and says what it did with each; a directive that no
//! pass has carried out by the end of the pipeline is an error at its span, never ignored.

pub use super::choices::{Choice, Choices};
pub use super::directive::Directive;
use super::entities::Buffer;
use super::placement::{SharedTile, Spread};
use crate::data::CacheMode;
pub use crate::data::Placement;
use crate::manifest::Expr;
use crate::source::Span;

/// The reason of a choice that the user made.
pub const SAID: &str = "as the schedule says";

/// The directives that count for a kernel, in source order, and the choices of the passes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Schedule {
    pub directives: Vec<Scheduled>,
    /// What the source says of the sizes for which these directives count; `None` where they count for all.
    pub condition: Option<String>,
    /// Directives that count in the place of these where a condition holds: of several the first ones. There are none
    /// once it is known what the kernel is compiled for, and they are no part of the text form.
    pub conditional: Vec<Conditional>,
    /// What passes chose, in the order in which they did. No part of the text form.
    pub choices: Choices,
    /// Launches of which no directives say all that was done.
    pub unsaid: Vec<String>,
    /// How axes are spread over the machine, launch by launch, and how tiles lie in shared memory. Like choices no part
    /// of the text form.
    pub spreads: Vec<Spread>,
    pub tiles: Vec<SharedTile>,
    /// What no directive says, for people.
    pub remarks: Vec<Remark>,
    /// Axes over which a reduction is parallel in a launch that `rfactor` made: no `order` can name them together with
    /// those of loops.
    pub factored: Vec<String>,
    /// Axes of reductions that are loops in order in the source: of these a directive can say no more than how to unroll them.
    pub in_order: Vec<String>,
    /// Axes that count something else than any of the source does: no directive can name them.
    pub remade: Vec<String>,
}

/// Directives that count where a condition on sizes and parameters holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Conditional {
    pub condition: Expr,
    /// The condition as the source says it, and where.
    pub text: String,
    pub span: Span,
    pub directives: Vec<Scheduled>,
    /// How arrays are cached.
    pub caches: Vec<(Buffer, CacheMode)>,
}

/// A directive of the user's.
#[derive(Clone, PartialEq, Debug)]
pub struct Scheduled {
    pub directive: Directive,
    pub span: Span,
    pub outcome: Outcome,
}

/// What became of a directive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Outcome {
    /// No pass has looked at it, or none that did could use it.
    #[default]
    Open,
    Done,
    /// It gives leave to do something, which would be possible, and is predicted not to pay.
    Unneeded,
    Refused(Refusal),
}

/// Why a directive cannot be carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub kind: RefusalKind,
    pub reason: String,
    /// What to write instead, or for which kernels the directive works.
    pub help: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalKind {
    /// The kernel has no place for it.
    DoesNotFit,
    TooManyThreads,
    TooMuchSharedMemory,
    /// Another directive says otherwise.
    Contradiction,
}

/// What a pass did in a launch that no directive says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// The launch's name.
    pub launch: String,
    /// One line for a person.
    pub text: String,
    /// Whether it tells why a launch has not got a better form.
    pub refused: bool,
}

impl Schedule {
    /// The first directive for which `pick` gives something; it is marked as carried out.
    fn take<T>(&mut self, pick: impl Fn(&Directive) -> Option<T>) -> Option<T> {
        let found = self.directives.iter_mut().find_map(|known| Some((pick(&known.directive)?, known)));
        found.map(|(value, known)| {
            known.outcome = Outcome::Done;
            value
        })
    }

    fn get<T>(&self, pick: impl Fn(&Directive) -> Option<T>) -> Option<T> {
        self.directives.iter().find_map(|known| pick(&known.directive))
    }

    pub fn block(&self) -> Option<u32> {
        self.get(|directive| if let Directive::Block(threads) = directive { Some(*threads) } else { None })
    }

    /// Whether a directive says something about an axis or an array.
    pub fn speaks_of(&self, name: &str) -> bool {
        self.directives_of(name).next().is_some()
    }

    /// What directives say about an axis or an array.
    pub fn directives_of(&self, name: &str) -> impl Iterator<Item = &Directive> {
        self.directives.iter().map(|known| &known.directive).filter(move |directive| directive.names(name))
    }

    /// Whether there is an `order`.
    pub fn has_order(&self) -> bool {
        self.directives.iter().any(|known| matches!(known.directive, Directive::Order(_)))
    }

    pub fn tile(&self, name: &str) -> Option<u32> {
        self.get(|directive| match directive {
            Directive::Tile { axis, size } if axis == name => Some(*size),
            _ => None,
        })
    }

    pub fn per_thread(&self, name: &str) -> Option<u32> {
        self.get(|directive| match directive {
            Directive::PerThread { axis, count } if axis == name => Some(*count),
            _ => None,
        })
    }

    pub fn vectorize(&self, name: &str) -> Option<u32> {
        self.get(|directive| match directive {
            Directive::Vectorize { axis, width } if axis == name => Some(*width),
            _ => None,
        })
    }

    pub fn warps(&self, name: &str) -> Option<u32> {
        self.get(|directive| match directive {
            Directive::Warps { axis, count } if axis == name => Some(*count),
            _ => None,
        })
    }

    pub fn split(&self, name: &str) -> Option<u32> {
        self.get(|directive| match directive {
            Directive::Split { axis, pieces } if axis == name => Some(*pieces),
            _ => None,
        })
    }

    /// How the tiles of an array shall lie, if the array is to be staged.
    pub fn stage(&self, name: &str) -> Option<(Option<Placement>, Option<u32>)> {
        self.get(|directive| match directive {
            Directive::Stage { array, place, depth } if array == name => Some((*place, *depth)),
            _ => None,
        })
    }

    /// Whether some array is to be staged.
    pub fn stages(&self) -> bool {
        self.directives.iter().any(|known| matches!(known.directive, Directive::Stage { .. }))
    }

    /// By how much a serial loop shall be unrolled: `Some(None)` for all of it. The directive counts as carried out.
    pub fn take_unroll(&mut self, name: &str) -> Option<Option<u32>> {
        self.take(|directive| match directive {
            Directive::Unroll { axis, factor } if axis == name => Some(*factor),
            _ => None,
        })
    }

    pub fn unroll(&self, name: &str) -> Option<Option<u32>> {
        self.get(|directive| match directive {
            Directive::Unroll { axis, factor } if axis == name => Some(*factor),
            _ => None,
        })
    }

    pub fn atomic(&self, name: &str) -> bool {
        self.directives
            .iter()
            .any(|known| matches!(&known.directive, Directive::Atomic { array } if array == name))
    }

    pub fn fast_math(&self) -> bool {
        self.directives.iter().any(|known| known.directive == Directive::FastMath)
    }

    /// Whether factors of products of f32 may be rounded for matrix instructions.
    pub fn tf32(&self) -> bool {
        self.directives.iter().any(|known| known.directive == Directive::Tf32)
    }

    /// Says that the directives that `which` accepts are carried out.
    pub fn done(&mut self, which: impl Fn(&Directive) -> bool) {
        for known in self.directives.iter_mut().filter(|known| which(&known.directive)) {
            known.outcome = Outcome::Done;
        }
    }

    /// Says that what the directives that `which` accepts give leave to do is not worth it here.
    pub fn unneeded(&mut self, which: impl Fn(&Directive) -> bool) {
        for known in self.directives.iter_mut().filter(|known| which(&known.directive)) {
            if known.outcome != Outcome::Done {
                known.outcome = Outcome::Unneeded;
            }
        }
    }

    /// Says why the directives that `which` accepts cannot be carried out here. One that is carried out for another
    /// loop stays so; the first reason stays.
    pub fn refuse(&mut self, which: impl Fn(&Directive) -> bool, refusal: &Refusal) {
        for known in self.directives.iter_mut().filter(|known| which(&known.directive)) {
            if known.outcome == Outcome::Open {
                known.outcome = Outcome::Refused(refusal.clone());
            }
        }
    }

    /// Records what a pass did for a launch, unless it has recorded the same. What an earlier pass chose of the kind is
    /// replaced.
    pub fn chose(&mut self, launch: &str, directive: Directive, reason: impl Into<String>) {
        self.record(Choice {
            launch: launch.to_string(),
            directive,
            reason: reason.into(),
            reproducible: true,
        });
    }

    /// Records what a pass did, where the directive that says so would do a little more or less than that.
    pub fn noted(&mut self, launch: &str, directive: Directive, reason: impl Into<String>) {
        self.record(Choice {
            launch: launch.to_string(),
            directive,
            reason: reason.into(),
            reproducible: false,
        });
    }

    /// Records how many neighbours an access brings. A directive of the source may not say more than 4 where wider elements lie
    /// along the axis beside the narrow ones, so that more is only told, unless it was said.
    pub fn chose_vector(
        &mut self,
        launch: &str,
        axis: String,
        width: u32,
        reason: impl Into<String>,
        said: bool,
    ) {
        let directive = Directive::Vectorize { axis, width };
        match width > 4 && !said {
            true => self.noted(launch, directive, reason),
            false => self.chose(launch, directive, reason),
        }
    }

    /// Says that directives would not make passes do what they did, and will do, to a launch.
    pub fn leave_unsaid(&mut self, launch: &str) {
        self.unsaid.push(launch.to_string());
        let known: Vec<Choice> = self.choices.of(launch).cloned().collect();
        known.into_iter().for_each(|choice| self.record(choice));
    }

    fn record(&mut self, mut choice: Choice) {
        choice.reproducible &= !self.unsaid.contains(&choice.launch);
        let is_unrolled = matches!(choice.directive, Directive::Unroll { .. });
        let subject = choice.directive.subject().filter(|_| !is_unrolled);
        choice.reproducible &= !subject.is_some_and(|name| self.in_order.iter().any(|known| known == name));
        choice.reproducible &= !self.remade.iter().any(|name| choice.directive.names(name));
        self.choices.record(choice);
    }

    /// Records what no directive says.
    pub fn remark(&mut self, launch: &str, text: String) {
        let remark = Remark { launch: launch.to_string(), text, refused: false };
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Says why a launch has not got a better form.
    pub fn remark_against(&mut self, launch: &str, text: String) {
        self.remarks.push(Remark { launch: launch.to_string(), text, refused: true });
    }

    /// Why a launch has not got a better form: what was said last.
    pub fn refusal(&self, launch: &str) -> Option<&str> {
        let mut refusals = self.remarks.iter().filter(|remark| remark.refused && remark.launch == launch);
        refusals.next_back().map(|remark| remark.text.as_str())
    }

    /// Records how an axis is spread in a launch.
    pub fn spread(&mut self, spread: Spread) {
        self.spreads.retain(|known| known.launch != spread.launch || known.axis != spread.axis);
        self.spreads.push(spread);
    }

    /// Whether the tile that the schedule says of an axis is that of a launch.
    pub fn is_tiled(&self, launch: &str, name: &str) -> bool {
        let tiles =
            |choice: &Choice| matches!(&choice.directive, Directive::Tile { axis, .. } if axis == name);
        self.choices.of(launch).any(tiles)
    }

    /// Gives all that is known of a launch to its new name.
    pub fn rename_launch(&mut self, from: &str, to: &str) {
        self.choices.rename(from, to);
        self.unsaid.iter_mut().filter(|known| *known == from).for_each(|known| *known = to.to_string());
        let spreads = self.spreads.iter_mut().map(|spread| &mut spread.launch);
        let remarks = self.remarks.iter_mut().map(|remark| &mut remark.launch);
        spreads.chain(remarks).filter(|name| *name == from).for_each(|name| *name = to.to_string());
    }

    /// Gives a copy of a launch the choices of the original, and its axes.
    pub fn copy_choices(&mut self, from: &str, to: &str) {
        let copy = |choice: &Choice| Choice { launch: to.to_string(), ..choice.clone() };
        let copies: Vec<Choice> = self.choices.of(from).map(copy).collect();
        copies.into_iter().for_each(|copy| self.choices.push(copy));
        if self.unsaid.iter().any(|known| known == from) {
            self.unsaid.push(to.to_string());
        }
        let spreads = self.spreads.iter().filter(|spread| spread.launch == from);
        let copies: Vec<Spread> =
            spreads.map(|spread| Spread { launch: to.to_string(), ..spread.clone() }).collect();
        self.spreads.extend(copies);
        let remarks = self.remarks.iter().filter(|remark| remark.launch == from);
        let copies: Vec<Remark> =
            remarks.map(|remark| Remark { launch: to.to_string(), ..remark.clone() }).collect();
        self.remarks.extend(copies);
    }
}

impl Refusal {
    pub fn new(kind: RefusalKind, reason: impl Into<String>, help: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), help: help.into() }
    }
}
