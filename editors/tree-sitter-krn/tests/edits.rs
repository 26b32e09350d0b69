//! What an editor does: texts that grow letter by letter, and trees that are kept while the text changes.

use crate::{broken, grammar_tree, sources};
use krn_compiler::source::SourceFile;
use tree_sitter::{InputEdit, Point};

/// Where a byte stands, in lines and bytes of its line.
fn point(text: &str, at: usize) -> Point {
    let before = &text[..at];
    Point { row: before.matches('\n').count(), column: at - before.rfind('\n').map_or(0, |end| end + 1) }
}

/// The edit that makes one text of the other: what stands between the parts that both begin and end with.
fn edit(old: &str, new: &str) -> InputEdit {
    let start = old.bytes().zip(new.bytes()).take_while(|(old, new)| old == new).count();
    let start =
        (0..=start).rev().find(|at| old.is_char_boundary(*at) && new.is_char_boundary(*at)).unwrap_or(0);
    let most = old.len().min(new.len()) - start;
    let end = old.bytes().rev().zip(new.bytes().rev()).take(most).take_while(|(old, new)| old == new).count();
    let is_between =
        |end: &usize| old.is_char_boundary(old.len() - end) && new.is_char_boundary(new.len() - end);
    let end = (0..=end).rev().find(is_between).unwrap_or(0);
    InputEdit {
        start_byte: start,
        old_end_byte: old.len() - end,
        new_end_byte: new.len() - end,
        start_position: point(old, start),
        old_end_position: point(old, old.len() - end),
        new_end_position: point(new, new.len() - end),
    }
}

/// The scanner looks ahead of where tokens end; the parser must know how far, or it would keep what is no longer so.
#[test]
fn a_tree_that_is_kept_is_the_tree_of_the_new_text() {
    let mut choices = broken::Choices(2);
    let mut compared = 0;
    for (path, text) in sources::all() {
        let tokens = broken::tokens(&SourceFile::new(path.as_str(), text.as_str()));
        if tokens.is_empty() || text.len() > 20_000 {
            continue;
        }
        let (mut text, mut tokens) = (text, tokens);
        let mut tree = grammar_tree::parse(&text);
        for _ in 0..5 {
            let new = broken::changed(&text, &tokens, &mut choices);
            tree.edit(&edit(&text, &new));
            let kept = grammar_tree::parse_anew(&new, &tree);
            let fresh = grammar_tree::parse(&new);
            // How the parser gets over a mistake depends on what it had before.
            if !fresh.root_node().has_error() {
                compared += 1;
                assert_eq!(
                    kept.root_node().to_sexp(),
                    fresh.root_node().to_sexp(),
                    "{path}\n{text}\nnow\n{new}"
                );
            }
            (text, tree) = (new, kept);
            tokens = broken::tokens(&SourceFile::new(path.as_str(), text.as_str()));
        }
    }
    assert!(compared > 100, "{compared} trees were compared");
}

/// Whatever is half-written is read to its end, and what stands before it keeps its items.
#[test]
fn half_written_files_keep_the_items_before() {
    for path in ["examples/n_body.krn", "examples/softmax.krn", "examples/schedules.krn"] {
        let text = std::fs::read_to_string(sources::root().join(path)).expect("an example");
        let whole = grammar_tree::parse(&text);
        let ends: Vec<usize> = (0..whole.root_node().named_child_count())
            .filter_map(|at| whole.root_node().named_child(at as u32))
            .filter(|child| child.kind().ends_with("_item"))
            .map(|child| child.end_byte())
            .collect();
        for length in (0..text.len()).filter(|length| text.is_char_boundary(*length)) {
            let tree = grammar_tree::parse(&text[..length]);
            let root = tree.root_node();
            assert!(root.end_byte() <= length);
            for end in ends.iter().filter(|end| **end + 1 < length) {
                let last = root.descendant_for_byte_range(end - 1, *end).expect("a node");
                assert!(
                    !last.is_error() && !last.is_missing(),
                    "{path}: {length} letters lose the item that ends at {end}"
                );
            }
        }
    }
}
