//! How long answers take for a long file.

use super::client::Client;
use std::time::{Duration, Instant};

/// A file of some 2,000 lines that has a bit of everything.
fn long() -> String {
    let mut text = String::from("struct Point { x: f32, y: f32 }\n\n");
    for at in 0..200 {
        text.push_str(&format!(
            "kernel k{at}(point: Point[n], shift: f32) -> d: f32[n], total: f32 {{
    forall i in n {{
        let l = sqrt(point[i].x * point[i].x + point[i].y * point[i].y)
        d[i] = l * shift + exp(l)
    }}
    total = sum(j: d[j])
}}

schedule k{at} {{ block 128 }}

"
        ));
    }
    text
}

/// How long answers took, each after a change, so that nothing is left of the answer before: from the question until the
/// whole answer is there, in order. What a client makes of its JSON is its own affair.
fn times(client: &mut Client, ask: impl Fn(&mut Client)) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..7)
        .map(|_| {
            let end = client.text.len();
            client.replace(end, end, "\n");
            let start = Instant::now();
            ask(client);
            client.arrived.duration_since(start)
        })
        .collect();
    times.sort();
    times
}

/// 20 ms is what an optimised build must keep; one for debugging is slower. The least counts: the machine has other work.
#[test]
fn answers_about_2000_lines_come_at_once() {
    let limit = if cfg!(debug_assertions) { Duration::from_millis(400) } else { Duration::from_millis(20) };
    let text = long();
    assert!(text.lines().count() > 1900);
    let mut client = Client::open(&text);
    let mut table = String::new();
    let mut note = |method: &str, times: Vec<Duration>| {
        table.push_str(&format!("{method}: {:?}, median {:?}\n", times[0], times[times.len() / 2]));
        assert!(times[0] < limit, "{table}");
    };
    for method in ["hover", "completion", "signatureHelp", "definition", "references"] {
        note(method, times(&mut client, |client| drop(client.ask(method, "exp(l)"))));
    }
    for method in
        ["documentSymbol", "semanticTokens/full", "foldingRange", "formatting", "codeLens", "inlayHint"]
    {
        note(method, times(&mut client, |client| drop(client.ask_all(method))));
    }
    note("diagnostics", times(&mut client, |client| drop(client.codes())));
    println!("{table}");
}

/// How long until the hints are there that take code generation, for the lines that an editor shows: of the text as it was
/// opened, and of the text that is being typed, a character every 30 ms, after the last one.
fn hints(client: &mut Client, lines: usize) -> (Duration, Duration) {
    let ask = |client: &mut Client| {
        let start = Instant::now();
        client.ask_lines("inlayHint", 0, lines);
        start
    };
    let start = ask(client);
    client.refreshed();
    let opened = start.elapsed();
    for _ in 0..10 {
        let end = client.text.len();
        client.replace(end, end, " ");
        ask(client);
        std::thread::sleep(Duration::from_millis(30));
    }
    let end = client.text.len();
    client.replace(end, end, "\n");
    // Answers about the last text but one may have asked for a refresh that nobody has looked at.
    client.codes();
    let start = ask(client);
    client.refreshed();
    (opened, start.elapsed())
}

/// 300 ms is what an optimised build must keep; one for debugging checks the IR after every pass.
#[test]
fn hints_that_take_code_generation_follow_soon() {
    let limit = if cfg!(debug_assertions) { Duration::from_secs(60) } else { Duration::from_millis(300) };
    let mut files = vec![("2,000 lines".to_string(), long())];
    for entry in std::fs::read_dir("examples").expect("the examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "krn") {
            files.push((path.display().to_string(), std::fs::read_to_string(path).expect("a kernel")));
        }
    }
    files.sort();
    let mut table = String::new();
    for (name, text) in files {
        let (opened, typed) = hints(&mut Client::open(&text), 60);
        table.push_str(&format!("{name}: {opened:?} when opened, {typed:?} when typed\n"));
        assert!(opened < limit && typed < limit, "{table}");
    }
    println!("{table}");
}
