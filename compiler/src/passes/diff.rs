//! Line by line, what a pass changed.

use similar::TextDiff;

/// Lines of context around a change.
const CONTEXT: usize = 2;

/// The lines that are only in `before` with `-`, those only in `after` with `+`, and a little around them; `...`
/// stands for what is left out. Empty where nothing changed.
pub fn diff(before: &str, after: &str) -> String {
    let lines = TextDiff::from_lines(before, after);
    let mut text = String::new();
    let mut shown = 0;
    for group in lines.grouped_ops(CONTEXT) {
        for op in group {
            if op.old_range().start > shown {
                text.push_str("...\n");
            }
            shown = op.old_range().end;
            for change in lines.iter_changes(&op) {
                text.push_str(format!("{} {}", change.tag(), change.value()).trim_end());
                text.push('\n');
            }
        }
    }
    text
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
