//! Line by line, what a pass changed.

/// Lines of context around a change.
const CONTEXT: usize = 2;

/// Texts of more lines than this are compared as a whole: the table of the comparison grows with the square.
const MAX_LINES: usize = 4000;

/// The lines that are only in `before` with `-`, those only in `after` with `+`, and a little around them; `...`
/// stands for what is left out. Empty where nothing changed.
pub fn diff(before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let lines = if old.len().max(new.len()) > MAX_LINES {
        old.iter().map(|line| ('-', *line)).chain(new.iter().map(|line| ('+', *line))).collect()
    } else {
        align(&old, &new)
    };
    let near = |at: usize| {
        let around = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(lines.len());
        lines[around].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut text = String::new();
    let mut skipped = false;
    for (at, (mark, line)) in lines.iter().enumerate() {
        if near(at) {
            if skipped {
                text.push_str("...\n");
            }
            text.push_str(format!("{mark} {line}").trim_end());
            text.push('\n');
        }
        skipped = !near(at);
    }
    text
}

/// Both texts along their longest common subsequence of lines.
fn align<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(char, &'t str)> {
    let width = new.len() + 1;
    let mut common = vec![0u16; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            lines.push(('-', old[i]));
            i += 1;
        } else {
            lines.push(('+', new[j]));
            j += 1;
        }
    }
    lines
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
