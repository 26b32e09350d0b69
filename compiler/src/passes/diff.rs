//! Line by line, what a pass changed.

use rustc_hash::FxHashMap;
use similar::algorithms::{Capture, Compact, DiffHook, Replace, histogram};
pub use similar::{DiffOp, group_diff_ops};

/// Lines of context around a change.
const CONTEXT: usize = 2;

/// The lines that are only in `before` with `-`, those only in `after` with `+`, and a little around them; `...`
/// stands for what is left out. Empty where nothing changed.
pub fn diff(before: &str, after: &str) -> String {
    let [old, new] = [before, after].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let mut text = String::new();
    let mut shown = 0;
    for group in group_diff_ops(changes(&old, &new), CONTEXT) {
        for op in group {
            let (_, removed, added) = op.as_tag_tuple();
            if removed.start > shown {
                text.push_str("...\n");
            }
            shown = removed.end;
            let [before, after] = if matches!(op, DiffOp::Equal { .. }) { [" ", ""] } else { ["-", "+"] };
            let added = if after.is_empty() { 0..0 } else { added };
            for (sign, line) in old[removed]
                .iter()
                .map(|line| (before, line))
                .chain(new[added].iter().map(|line| (after, line)))
            {
                text.push_str(format!("{sign} {line}").trim_end());
                text.push('\n');
            }
        }
    }
    text
}

/// What became of the lines of a text, from its first to its last one. It depends on the texts alone, never on time.
pub fn changes(before: &[&str], after: &[&str]) -> Vec<DiffOp> {
    // Numbers in the place of lines, one algorithm, and what tidies up its answer after it: each is generic in the others.
    let mut known: FxHashMap<&str, usize> = FxHashMap::default();
    let [old, new] = [before, after].map(|lines| {
        let mut numbers = Vec::with_capacity(lines.len());
        for line in lines {
            let next = known.len();
            numbers.push(*known.entry(line).or_insert(next));
        }
        numbers
    });
    let mut found = Capture::new();
    let Ok(()) = histogram::diff(&mut found, &old[..], 0..old.len(), &new[..], 0..new.len());
    let mut tidied = Compact::new(Replace::new(Capture::new()), &old[..], &new[..]);
    for op in found.into_ops() {
        let Ok(()) = op.apply_to_hook(&mut tidied);
    }
    let Ok(()) = tidied.finish();
    tidied.into_inner().into_inner().into_ops()
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn changes_stand_with_their_surroundings() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\n";
        assert_eq!(diff(before, before), "");
        assert_eq!(diff(before, "a\nb\nc\nd\ne\nF\ng\nh\n"), "...\n  d\n  e\n- f\n+ F\n  g\n  h\n");
        assert_eq!(diff("a\n", ""), "- a\n");
    }
}
