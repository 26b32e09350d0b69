//! Every command of `docs/memory.md`, with what it prints. INSTA_UPDATE=always writes the page anew.

use crate::tool_support::ended;
use std::path::Path;

/// What a line `$ krn … | grep 'words'` prints: the lines that hold the words.
fn printed(command: &str) -> String {
    let (command, words) = match command.split_once(" | grep '") {
        Some((command, rest)) => (command, rest.strip_suffix('\'').expect("a quoted text to look for")),
        None => (command, ""),
    };
    let arguments = command.strip_prefix("$ krn ").expect("a command of the tool").split(' ');
    let arguments: Vec<&str> = arguments.chain(["--device", "emulator"]).collect();
    let (out, _) = ended(&mut crate::tool_support::command(&arguments), 0);
    let lines: String = out
        .lines()
        .filter(|line| line.contains(words))
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    assert!(!lines.is_empty(), "{command}: no line has `{words}`\n{out}");
    lines
}

#[test]
fn the_tour_of_memory_shows_what_the_tool_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/memory.md");
    let page = std::fs::read_to_string(&path).expect("the page can be read");
    let (mut anew, mut commands, mut console) = (String::new(), 0, false);
    for line in page.lines() {
        let fence = line.starts_with("```");
        console = if fence { line == "```console" } else { console };
        if console && !fence && !line.starts_with("$ ") {
            // What was printed the last time.
            continue;
        }
        anew += &format!("{line}\n");
        if console && !fence {
            anew += &printed(line);
            commands += 1;
        }
    }
    assert_eq!(commands, 25);
    if std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
        std::fs::write(&path, &anew).expect("the page can be written");
    } else {
        assert!(anew == page, "docs/memory.md is out of date; INSTA_UPDATE=always writes it anew");
    }
}
