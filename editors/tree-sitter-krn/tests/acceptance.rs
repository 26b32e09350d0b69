//! What the grammar takes, beside what the compiler's parser takes.

use crate::{compiler_tree, grammar_tree, sources};
use proptest::prelude::*;

/// What the compiler's parser refuses though its form is right: an assignment to what is no place, a value that nobody
/// takes, an `else` behind what is no element. A grammar need not know.
const OF_MEANING: [&str; 3] = ["E0014", "E0015", "E0018"];

/// Limits: the size of integers, floats, nesting and names.
const LIMITS: [&str; 4] = ["E0006", "E0007", "E0013", "E0025"];

/// What is wrong with the grammar's reading of a text, if anything: it must take what the compiler takes, with the same
/// tree, and refuse the rest.
pub fn difference(text: &str) -> Option<String> {
    match (compiler_tree::accepted(text), grammar_tree::accepted(text)) {
        (Ok(own), Some(other)) if own == other => None,
        (Ok(own), Some(other)) => {
            let (own, other) = (own.print(text), other.print(text));
            let at = own.lines().zip(other.lines()).take_while(|(own, other)| own == other).count();
            let around = |printed: &str| {
                printed.lines().skip(at.saturating_sub(4)).take(8).collect::<Vec<_>>().join("\n")
            };
            Some(format!("the trees differ:\ncompiler:\n{}\ngrammar:\n{}", around(&own), around(&other)))
        }
        (Ok(_), None) => {
            let tree = grammar_tree::parse(text);
            Some(format!("the grammar refuses what the compiler takes: {}", tree.root_node().to_sexp()))
        }
        (Err(codes), Some(_)) if !may_be_taken(&codes, text) => {
            Some(format!("the grammar takes what the compiler refuses: {codes:?}"))
        }
        (Err(_), _) => None,
    }
}

fn may_be_taken(codes: &[&str], text: &str) -> bool {
    knows_no_more(codes) || goes_on_in_brackets(text)
}

/// Whether all that the compiler refuses is what the grammar need not know.
fn knows_no_more(codes: &[&str]) -> bool {
    codes.iter().all(|code| OF_MEANING.contains(code) || LIMITS.contains(code))
}

/// Where a statement cannot end, the grammar reads on in a line that starts with `(` or `[`: the compiler ends the
/// statement all the same, and says what it lacks.
fn goes_on_in_brackets(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let starts = |line: &&str| line.trim_start().starts_with(['(', '[']);
    (1..lines.len()).filter(|&at| starts(&lines[at])).any(|at| {
        // A comment would take the next line in.
        let before = lines[at - 1].find("//").map_or(lines[at - 1], |comment| &lines[at - 1][..comment]);
        let joined = format!("{before} {}", lines[at]);
        let text = [&lines[..at - 1], &[joined.as_str()], &lines[at + 1..]].concat().join("\n");
        compiler_tree::accepted(&text).map_or_else(|codes| knows_no_more(&codes), |_| true)
    })
}

#[test]
fn every_file_of_the_project_is_read_as_the_compiler_reads_it() {
    let (mut wrong, mut accepted) = (Vec::new(), 0);
    for (path, text) in sources::all() {
        accepted += usize::from(grammar_tree::accepted(&text).is_some());
        wrong.extend(difference(&text).map(|difference| format!("{path}: {difference}")));
    }
    assert!(wrong.is_empty(), "{} files\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(accepted > 200, "{accepted} files were taken");
}

/// Random kernels of each kind.
pub fn cases() -> u32 {
    std::env::var("KRN_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_kernels_are_read_as_the_compiler_reads_them(
        programs in (krn_generator::programs(), krn_generator::patterns(), krn_generator::locals(), krn_generator::forms())
    ) {
        for program in [programs.0, programs.1, programs.2, programs.3] {
            prop_assert!(grammar_tree::accepted(&program.source).is_some(), "{}", program.source);
            prop_assert_eq!(difference(&program.source), None);
        }
    }
}
