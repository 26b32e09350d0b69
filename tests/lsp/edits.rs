//! Files that somebody is typing: no panic, no hang, and no answer about another text.

use super::client::{Client, URI};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const ABOUT_A_PLACE: &[&str] = &[
    "hover",
    "completion",
    "signatureHelp",
    "definition",
    "references",
    "documentHighlight",
    "prepareRename",
];

const ABOUT_ALL: &[&str] = &[
    "documentSymbol",
    "semanticTokens/full",
    "foldingRange",
    "formatting",
    "codeLens",
    "codeAction",
    "inlayHint",
];

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    fs::read_to_string(path).expect("an example")
}

/// Asks for something at a place.
fn poke(client: &mut Client, at: usize, random: &mut impl Rng) {
    let (place, all) = (random.random_range(0..ABOUT_A_PLACE.len()), random.random_range(0..ABOUT_ALL.len()));
    let parameters = client.at_offset(at);
    client.ask_with(&format!("textDocument/{}", ABOUT_A_PLACE[place]), parameters);
    client.ask_all(ABOUT_ALL[all]);
}

/// What a server says of a text, but for what takes code generation.
fn said(client: &mut Client) -> Vec<Value> {
    let mut answers: Vec<Value> = ["documentSymbol", "semanticTokens/full", "foldingRange", "codeLens"]
        .iter()
        .map(|method| client.ask_all(method))
        .collect();
    // Of these some come later.
    let later = |code: &String| ["W06", "E05", "E06"].iter().any(|start| code.starts_with(start));
    let codes: Vec<String> = client.codes().into_iter().filter(|code| !later(code)).collect();
    answers.push(json!(codes));
    answers
}

#[test]
fn a_file_typed_character_by_character_is_answered_about() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut client = Client::open("");
    let text: String = example("n_body.krn")
        .lines()
        .filter(|line| !line.starts_with("//"))
        .map(|line| format!("{line}\n"))
        .collect();
    for (at, c) in text.char_indices() {
        client.replace(at, at, c.encode_utf8(&mut [0; 4]));
        if random.random_range(0..3) == 0 {
            poke(&mut client, at + c.len_utf8(), &mut random);
        }
    }
    assert_eq!(client.text, text);
    let mut fresh = Client::open(&text);
    assert_eq!(said(&mut client), said(&mut fresh));
    client.close();
    fresh.close();
}

#[test]
fn random_edits_leave_no_stale_answer() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let pieces = [
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "\n",
        "let ",
        "x",
        ".",
        ",",
        "sum(i: ",
        "schedule ",
        "/*",
        "*/",
        "// é\n",
        "𝄞",
        "=",
        "kernel k(",
        "else",
        "0.",
        "\"",
        "in 0..",
    ];
    for name in ["softmax.krn", "struct_update.krn", "schedules.krn"] {
        let mut client = Client::open(&example(name));
        for round in 0..60 {
            let boundary = |client: &Client, mut at: usize| {
                while !client.text.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let start = boundary(&client, random.random_range(0..=client.text.len()));
            let end =
                boundary(&client, (start + random.random_range(0..12)).min(client.text.len())).max(start);
            let piece = if random.random_range(0..3) == 0 {
                ""
            } else {
                pieces[random.random_range(0..pieces.len())]
            };
            client.replace(start, end, piece);
            poke(&mut client, start, &mut random);
            if round % 20 == 19 {
                let text = client.text.clone();
                let mut fresh = Client::open(&text);
                assert_eq!(said(&mut client), said(&mut fresh), "{name}, {round}:\n{text}");
            }
        }
        client.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
        client.close();
    }
}

/// What code generation says follows later: never of a text that is no more.
#[test]
fn hints_are_of_the_text_as_it_is() {
    let mut client = Client::open(&example("schedules.krn"));
    client.ask_all("inlayHint");
    for _ in 0..5 {
        client.replace(0, 0, "// one more line\n");
        client.ask_all("inlayHint");
    }
    let at = client.text.find("0.25").expect("it is there");
    client.replace(at, at + 4, "0.125");
    client.ask_all("inlayHint");
    client.refreshed();
    let text = client.text.clone();
    let mut fresh = Client::open(&text);
    fresh.ask_all("inlayHint");
    fresh.refreshed();
    let hints = client.ask_all("inlayHint");
    assert_eq!(hints, fresh.ask_all("inlayHint"));
    let list = hints.as_array().expect("a list");
    let has =
        |text: &str| list.iter().any(|hint| hint["label"].as_str().is_some_and(|label| label.contains(text)));
    assert!(has("sectors") && has("tile i: 32; tile j: 32"), "{hints}");
    client.close();
    fresh.close();
}
