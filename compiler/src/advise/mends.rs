//! Proposals as edits of the text: directives changed, taken away and added, and facts.

use crate::check::typed::{DirectiveKind, Kernel, Schedule};
use crate::diagnostic::edit::Edit;
use crate::ir::kernel as ir;
use crate::ir::schedule::Directive;
use crate::source::{SourceFile, Span};
use crate::syntax::ast::{self, Item};
use crate::syntax::parse_alone;

/// What might help.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Proposal {
    /// To leave out the user's directives of these words, one after the other, and take what the compiler chooses then.
    Rechoose(&'static [&'static str]),
    /// Another directive in the place of the user's one of this word about this name.
    Replace { word: &'static str, about: String, line: String },
    /// A line more in the schedule.
    Directive(String),
    /// A fact more behind `where`.
    Fact(String),
    /// Another text in the place of a statement; the advice, as the help line begins.
    Rewrite { span: Span, text: String, advice: String },
}

/// A directive of the user's; those that stand in one line of commas go together.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Group {
    pub span: Span,
    pub text: String,
    pub word: &'static str,
    /// What each of them is about: an axis or an array; nothing for `block` and `order`.
    pub about: Vec<String>,
}

/// The user's directives of these words for the target.
pub(crate) fn groups(source: &SourceFile, typed: &Kernel, target: &str, words: &[&str]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let Some(schedule) = typed.schedule_for(target) else { return groups };
    if schedule.directives.is_empty() {
        return groups;
    }
    let (file, _) = parse_alone(source, &typed.name);
    let lines = file.items.iter().find_map(|item| match item {
        Item::Schedule(item) if item.span == schedule.span => Some(item.directives.as_slice()),
        _ => None,
    });
    for directive in &schedule.directives {
        let word = word(&directive.kind);
        let around = |line: &&ast::Directive| {
            line.span.start <= directive.span.start && directive.span.end <= line.span.end
        };
        let line = lines.and_then(|lines| lines.iter().find(around));
        let Some(line) = line.filter(|_| words.contains(&word)) else { continue };
        let about = about(typed, &directive.kind);
        match groups.iter_mut().find(|group| group.span == line.span) {
            Some(group) => group.about.extend(about),
            None => groups.push(Group {
                span: line.span,
                text: source.slice(line.span).to_string(),
                word,
                about: about.into_iter().collect(),
            }),
        }
    }
    groups
}

fn about(typed: &Kernel, kind: &DirectiveKind) -> Option<String> {
    match kind {
        DirectiveKind::Layout { array, .. }
        | DirectiveKind::Cache { array, .. }
        | DirectiveKind::Stage { array, .. }
        | DirectiveKind::Atomic { array } => Some(typed.arrays[*array].name.clone()),
        DirectiveKind::Tile { axis, .. }
        | DirectiveKind::PerThread { axis, .. }
        | DirectiveKind::Unroll { axis, .. }
        | DirectiveKind::Vectorize { axis, .. }
        | DirectiveKind::Warps { axis, .. }
        | DirectiveKind::Split { axis, .. } => Some(axis.clone()),
        DirectiveKind::Block(_) | DirectiveKind::Order(_) | DirectiveKind::FastMath | DirectiveKind::Tf32 => {
            None
        }
    }
}

fn word(kind: &DirectiveKind) -> &'static str {
    match kind {
        DirectiveKind::Block(_) => "block",
        DirectiveKind::Order(_) => "order",
        DirectiveKind::Layout { .. } => "layout",
        DirectiveKind::Cache { .. } => "cache",
        DirectiveKind::Tile { .. } => "tile",
        DirectiveKind::PerThread { .. } => "per_thread",
        DirectiveKind::Stage { .. } => "stage",
        DirectiveKind::Unroll { .. } => "unroll",
        DirectiveKind::Vectorize { .. } => "vectorize",
        DirectiveKind::Warps { .. } => "warps",
        DirectiveKind::Split { .. } => "split",
        DirectiveKind::Atomic { .. } => "atomic",
        DirectiveKind::FastMath => "fast_math",
        DirectiveKind::Tf32 => "tf32",
    }
}

impl Group {
    /// The text without the directive: with its whole line, where nothing else stands there.
    pub fn removal(&self, source: &SourceFile) -> Edit {
        let text = source.text();
        let (start, end) = (self.span.start as usize, self.span.end as usize);
        let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let rest = &text[end..];
        let after = rest.find('\n').map_or(rest.len(), |at| at + 1);
        if text[line..start].trim().is_empty() && rest[..after].trim().is_empty() {
            return Edit::replace(Span::new(line as u32, (end + after) as u32), "");
        }
        // A separator goes with it.
        let semicolon = rest.trim_start().starts_with(';').then(|| rest.find(';')).flatten();
        Edit::replace(Span::new(self.span.start, (end + semicolon.map_or(0, |at| at + 1)) as u32), "")
    }

    /// What the compiler chose in a kernel without the directive, as a directive in its place; `None` where it chose nothing
    /// that could be written, or different things for different launches.
    pub fn chosen(&self, without: &ir::Kernel) -> Option<String> {
        if self.about.is_empty() {
            return chosen(without, |directive| {
                directive.to_string().split(' ').next() == Some(self.word) && directive.subject().is_none()
            });
        }
        let mut texts = Vec::new();
        for about in &self.about {
            texts.extend(chosen(without, |directive| {
                directive.to_string().split(' ').next() == Some(self.word)
                    && directive.subject() == Some(about)
            }));
        }
        let mut texts = texts.into_iter();
        let mut line = texts.next()?;
        // `tile i: 32` and `tile j: 64` are `tile i: 32, j: 64`.
        for text in texts {
            line.push_str(", ");
            line.push_str(text.split_once(' ').map_or("", |(_, rest)| rest));
        }
        Some(line)
    }
}

/// The one directive of this kind that all launches have chosen.
fn chosen(kernel: &ir::Kernel, wanted: impl Fn(&Directive) -> bool) -> Option<String> {
    let mut found: Option<&Directive> = None;
    for choice in kernel.schedule.choices.iter().filter(|choice| wanted(&choice.directive)) {
        let live = kernel.launches.values().any(|launch| launch.name == choice.launch);
        if !(choice.launch.is_empty() || live) {
            continue;
        }
        if !choice.reproducible || found.is_some_and(|known| *known != choice.directive) {
            return None;
        }
        found = Some(&choice.directive);
    }
    found.map(Directive::to_string)
}

/// The schedule with one line more; a schedule of its own where the kernel has none for the target.
pub(crate) fn add_directive(source: &SourceFile, typed: &Kernel, target: &str, line: &str) -> Edit {
    let Some(schedule) = typed.schedule_for(target) else {
        return Edit::insert(typed.span.end, format!("\n\nschedule {} {{\n    {line}\n}}", typed.name));
    };
    into_schedule(source, schedule, line)
}

fn into_schedule(source: &SourceFile, schedule: &Schedule, line: &str) -> Edit {
    let close = schedule.span.end as usize - 1;
    let before = &source.text()[..close];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    if before[start..].trim().is_empty() {
        return Edit::insert(start as u32, format!("    {line}\n"));
    }
    let end = before.trim_end().len();
    let text = if before.trim_end().ends_with('{') { format!(" {line} ") } else { format!("; {line}") };
    Edit::insert(end as u32, text)
}

/// The kernel with one fact more.
pub(crate) fn add_fact(source: &SourceFile, name: &str, fact: &str) -> Option<Edit> {
    let (file, _) = parse_alone(source, name);
    let kernel = file.items.iter().find_map(|item| match item {
        Item::Kernel(kernel) if kernel.name.name == name => Some(kernel),
        _ => None,
    })?;
    Some(match kernel.facts.last() {
        Some(last) => Edit::insert(last.span.end, format!(", {fact}")),
        None => Edit::insert(kernel.body.span.start, format!("where {fact} ")),
    })
}
