//! Two texts side by side: the lines around what differs, each line beside its partner.

use krn_compiler::passes::{DiffOp, changes, group_diff_ops};

/// Lines of context around a change.
const CONTEXT: usize = 2;

/// Lines that follow each other on both sides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Run<'t> {
    Same(Vec<&'t str>),
    /// What stood there, and what stands there now; one of the two may be empty.
    Changed(Vec<&'t str>, Vec<&'t str>),
}

/// A piece of both texts; line numbers count from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hunk<'t> {
    pub old_line: usize,
    pub new_line: usize,
    pub runs: Vec<Run<'t>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Diff<'t> {
    pub hunks: Vec<Hunk<'t>>,
    pub removed: usize,
    pub added: usize,
}

/// Compares line by line.
pub fn diff<'t>(old: &'t str, new: &'t str) -> Diff<'t> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let ops = changes(&old, &new);
    let mut diff = Diff::default();
    for op in &ops {
        let (_, left, right) = op.as_tag_tuple();
        if !matches!(op, DiffOp::Equal { .. }) {
            diff.removed += left.len();
            diff.added += right.len();
        }
    }
    for group in group_diff_ops(ops, CONTEXT) {
        let Some(first) = group.first() else { continue };
        let (_, left, right) = first.as_tag_tuple();
        let mut hunk = Hunk { old_line: left.start + 1, new_line: right.start + 1, runs: Vec::new() };
        for op in &group {
            let (_, left, right) = op.as_tag_tuple();
            let (left, right) = (&old[left], &new[right]);
            match (op, hunk.runs.last_mut()) {
                (DiffOp::Equal { .. }, _) => hunk.runs.push(Run::Same(left.to_vec())),
                (_, Some(Run::Changed(before, after))) => {
                    before.extend(left);
                    after.extend(right);
                }
                _ => hunk.runs.push(Run::Changed(left.to_vec(), right.to_vec())),
            }
        }
        diff.hunks.push(hunk);
    }
    diff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_beside_each_other_with_their_surroundings() {
        let old = "a\nb\nc\nd\ne\nf\ng\n";
        let new = "a\nb\nc\nD\nE\ne\nf\ng\n";
        let found = diff(old, new);
        assert_eq!((found.removed, found.added), (1, 2));
        let runs = vec![
            Run::Same(vec!["b", "c"]),
            Run::Changed(vec!["d"], vec!["D", "E"]),
            Run::Same(vec!["e", "f"]),
        ];
        assert_eq!(found.hunks, [Hunk { old_line: 2, new_line: 2, runs }]);
    }

    #[test]
    fn equal_texts_have_no_hunks_and_far_changes_have_their_own() {
        assert_eq!(diff("a\nb\n", "a\nb\n"), Diff::default());
        let old: String = (0..40).map(|line| format!("{line}\n")).collect();
        let new = old.replace("3\n", "three\n").replace("30\n", "thirty\n");
        assert!(diff(&old, &new).hunks.len() >= 2);
    }
}
