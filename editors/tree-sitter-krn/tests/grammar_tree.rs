//! The tree of the grammar, with what the compiler's tree does not tell apart made equal.

use crate::node::Node;
use std::cell::RefCell;
use tree_sitter::{Parser, Tree};

/// Brackets with what they hold, which are for editors to fold and indent.
const LISTS: [&str; 9] = [
    "field_declarations",
    "parameters",
    "results",
    "facts",
    "extents",
    "directives",
    "arguments",
    "subscripts",
    "field_initializers",
];

thread_local! {
    static PARSER: RefCell<Parser> = RefCell::new(parser());
}

fn parser() -> Parser {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_krn::LANGUAGE.into())
        .expect("the library reads this version of the tables");
    parser
}

pub fn parse(text: &str) -> Tree {
    PARSER.with_borrow_mut(|parser| parser.parse(text, None)).expect("a parser with a language and no limit")
}

/// The tree of a text that was edited, from the one before, which has been told of the edit.
pub fn parse_anew(text: &str, before: &Tree) -> Tree {
    PARSER
        .with_borrow_mut(|parser| parser.parse(text, Some(before)))
        .expect("a parser with a language and no limit")
}

/// The tree; `None` where the text is refused.
pub fn accepted(text: &str) -> Option<Node> {
    let tree = parse(text);
    let root = tree.root_node();
    (!root.has_error()).then(|| {
        let items = convert_children(root);
        // What stands around the items belongs to no node of the compiler's.
        Node::new("source_file", 0, text.len(), items)
    })
}

fn convert_children(node: tree_sitter::Node<'_>) -> Vec<Node> {
    let mut cursor = node.walk();
    let mut out = Vec::new();
    if cursor.goto_first_child() {
        loop {
            let child = cursor.node();
            if LISTS.contains(&child.kind()) {
                out.extend(convert_children(child));
            } else if child.is_named() && !child.is_extra() {
                out.push(convert(child));
            } else if cursor.field_name() == Some("operator") && node.kind() != "unary_expression"
                || child.kind() == "inout"
            {
                out.push(Node::new(child.kind(), child.start_byte(), child.end_byte(), Vec::new()));
            }
            if !cursor.goto_next_sibling() {
                break;
            }
        }
    }
    out
}

fn convert(node: tree_sitter::Node<'_>) -> Node {
    let (start, end) = (node.start_byte(), node.end_byte());
    let has =
        |word| (0..node.child_count()).any(|at| node.child(at).is_some_and(|child| child.kind() == word));
    let children = convert_children(node);
    let kind = match node.kind() {
        // The compiler's tree has the expression itself, which takes the parentheses in.
        "parenthesized_expression" => {
            let inner = children.into_iter().next().expect("an expression in the parentheses");
            return Node { start, end, ..inner };
        }
        "if_statement" | "if_expression" => "if".to_string(),
        "let_declaration" => if has("var") { "var" } else { "let" }.to_string(),
        "range" => if has("..=") { "range ..=" } else { "range" }.to_string(),
        "unary_expression" => if has("!") { "unary !" } else { "unary -" }.to_string(),
        // Its number has no place of its own there.
        "directive_call" => {
            return Node::new("directive_call", start, end, children.into_iter().take(1).collect());
        }
        kind => kind.to_string(),
    };
    Node::new(kind, start, end, children)
}
