//! Tries proposals: compiles the file with each, and looks whether the place is gone and the kernel costs less.

use super::assembled::Usages;
use super::finding::{Find, Finding};
use super::mends::{Proposal, add_directive, add_fact, groups};
use super::score::score;
use super::subject::{Modelled, Subject};
use crate::analysis::model::representative_sizes;
use crate::diagnostic::Label;
use crate::diagnostic::edit::{Edit, apply_edits, moved};
use crate::ir::kernel::{Kernel, Module};
use crate::manifest::SymbolKind;
use crate::source::SourceFile;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

/// Texts that are compiled for one kernel at most.
const MOST_TRIALS: usize = 24;

/// A proposal that helps.
pub(super) struct Mend {
    pub edits: Vec<Edit>,
    pub help: String,
    pub labels: Vec<Label>,
    /// Whether some of it is left, which nothing mends.
    still: bool,
    /// What is left of the costs.
    score: f64,
}

/// One way to write a proposal down.
struct Candidate {
    edits: Vec<Edit>,
    /// `write `order i, j``
    advice: String,
    labels: Vec<Label>,
}

/// A text that compiled, and what the assembler says of it, once it was asked.
struct Tried {
    source: SourceFile,
    module: Module,
    usages: OnceCell<Option<Usages>>,
}

impl Tried {
    fn kernel(&self) -> &Kernel {
        &self.module.kernels[0]
    }
}

pub(super) struct Trials<'a> {
    subject: &'a Subject<'a>,
    compile: &'a dyn Fn(&SourceFile) -> Option<Module>,
    tried: FxHashMap<Vec<Edit>, Option<Tried>>,
}

impl<'a> Trials<'a> {
    pub fn new(subject: &'a Subject<'a>, compile: &'a dyn Fn(&SourceFile) -> Option<Module>) -> Self {
        Self { subject, compile, tried: FxHashMap::default() }
    }

    /// The kernel of the text after the edits; `None` where that does not compile, or enough was tried.
    fn compiled(&mut self, edits: &[Edit]) -> Option<&Tried> {
        if !self.tried.contains_key(edits) {
            if self.tried.len() == MOST_TRIALS {
                return None;
            }
            let source = self.subject.source;
            let text = SourceFile::new(source.name(), apply_edits(source.text(), edits));
            let module = (self.compile)(&text).filter(|module| !module.kernels.is_empty());
            let tried = module.map(|module| Tried { source: text, module, usages: OnceCell::new() });
            self.tried.insert(edits.to_vec(), tried);
        }
        self.tried.get(edits)?.as_ref()
    }

    /// The best mend of a finding, if any helps; of equals the first.
    pub fn best(&mut self, modelled: &Modelled<'_>, find: Find, finding: &Finding) -> Option<Mend> {
        let mut best: Option<Mend> = None;
        for proposal in &finding.proposals {
            for candidate in self.candidates(proposal) {
                let Some(mend) = self.judge(modelled, find, finding, candidate) else { continue };
                let better = |best: &Mend| match (mend.still, best.still) {
                    (false, true) => true,
                    (true, false) => false,
                    _ => mend.score < best.score * 0.99,
                };
                if best.as_ref().is_none_or(better) {
                    best = Some(mend);
                }
            }
        }
        best
    }

    fn candidates(&mut self, proposal: &Proposal) -> Vec<Candidate> {
        let subject = self.subject;
        let (source, typed) = (subject.source, subject.typed);
        match proposal {
            Proposal::Rechoose(words) => {
                let mut candidates = Vec::new();
                for group in groups(source, typed, subject.target, words) {
                    let label =
                        |message: &str| vec![Label { span: group.span, message: message.to_string() }];
                    let removal = vec![group.removal(source)];
                    let chosen = self.compiled(&removal).and_then(|tried| group.chosen(tried.kernel()));
                    if let Some(text) = chosen.filter(|text| *text != group.text) {
                        candidates.push(Candidate {
                            edits: vec![Edit::replace(group.span, text.clone())],
                            advice: format!("write `{text}` in the place of `{}`", group.text),
                            labels: label("because of this"),
                        });
                    }
                    candidates.push(Candidate {
                        edits: removal,
                        advice: format!("remove `{}`", group.text),
                        labels: label("because of this"),
                    });
                }
                candidates
            }
            Proposal::Replace { word, about, line } => {
                let groups = groups(source, typed, subject.target, &[word]);
                let own =
                    groups.into_iter().filter(|group| group.about == [about.clone()] && group.text != *line);
                own.map(|group| Candidate {
                    edits: vec![Edit::replace(group.span, line.clone())],
                    advice: format!("write `{line}` in the place of `{}`", group.text),
                    labels: vec![Label { span: group.span, message: "because of this".to_string() }],
                })
                .collect()
            }
            Proposal::Directive(line) => vec![Candidate {
                edits: vec![add_directive(source, typed, subject.target, line)],
                advice: match typed.schedule_for(subject.target) {
                    Some(_) => format!("add `{line}` to the schedule of `{}`", typed.name),
                    None => format!("write `schedule {} {{ {line} }}` behind the kernel", typed.name),
                },
                labels: Vec::new(),
            }],
            Proposal::Rewrite { span, text, advice } => vec![Candidate {
                edits: vec![Edit::replace(*span, text.clone())],
                advice: advice.clone(),
                labels: Vec::new(),
            }],
            Proposal::Fact(fact) => add_fact(source, &typed.name, fact)
                .map(|edit| Candidate {
                    edits: vec![edit],
                    advice: format!("if that holds, say `where {fact}`"),
                    labels: Vec::new(),
                })
                .into_iter()
                .collect(),
        }
    }

    fn judge(
        &mut self,
        modelled: &Modelled<'_>,
        find: Find,
        finding: &Finding,
        candidate: Candidate,
    ) -> Option<Mend> {
        let subject = self.subject;
        let tried = self.compiled(&candidate.edits)?;
        let mut after = Modelled::at(
            &tried.source,
            tried.kernel(),
            subject.capability,
            representative_sizes(tried.kernel())?,
        )?;
        let assembled = finding.gain.is_assembled() && modelled.usages.is_some();
        if assembled {
            after.usages = tried.usages.get_or_init(|| after.assembled(subject, &tried.module)).clone();
            after.usages.as_ref()?;
        }
        // With a fact there may be other extents: both are held against each other at the same.
        let same = at_extents(modelled, &after);
        let modelled = same.as_ref().unwrap_or(modelled);
        let start = moved(finding.place.start, &candidate.edits);
        let (old, new) =
            (modelled.at_place(finding.place.start, &finding.about), after.at_place(start, &finding.about));
        let (whole, score) = (score(modelled, assembled), score(&after, assembled));
        if score > whole * finding.gain.worth() || !finding.gain.is_reached(&old, &new) {
            return None;
        }
        let still =
            find(&after).iter().any(|other| other.about == finding.about && other.place.start == start);
        let said = finding.gain.spell(&new);
        let help = format!("{}{said}", candidate.advice);
        // Of what the kernel costs at the same extents: a fact is not better because it allows small ones alone.
        let score = score / whole.max(f64::MIN_POSITIVE);
        Some(Mend { edits: candidate.edits, help, labels: candidate.labels, still, score })
    }
}

/// The kernel as it is at the extents that it has after a mend; `None` where they are the same.
fn at_extents<'a>(modelled: &Modelled<'a>, after: &Modelled<'_>) -> Option<Modelled<'a>> {
    let mut sizes = modelled.sizes.clone();
    for ((size, new), symbol) in sizes.iter_mut().zip(&after.sizes).zip(modelled.kernel.symbols.values()) {
        if matches!(symbol.kind, SymbolKind::Dim { .. }) {
            *size = *new;
        }
    }
    if sizes == modelled.sizes {
        return None;
    }
    let same = Modelled::at(modelled.source, modelled.kernel, modelled.capability, sizes)?;
    Some(Modelled { usages: modelled.usages.clone(), ..same })
}
