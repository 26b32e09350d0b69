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

/// The least of several times, each after a change: nothing is left of the answer before.
fn least(client: &mut Client, ask: impl Fn(&mut Client)) -> Duration {
    (0..7)
        .map(|_| {
            let end = client.text.len();
            client.replace(end, end, "\n");
            let start = Instant::now();
            ask(client);
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

/// 20 ms is what an optimised build must keep; one for debugging is slower, and shares the machine with other tests.
#[test]
fn answers_about_2000_lines_come_at_once() {
    let limit = if cfg!(debug_assertions) { Duration::from_millis(400) } else { Duration::from_millis(20) };
    let text = long();
    assert!(text.lines().count() > 1900);
    let mut client = Client::open(&text);
    let mut table = String::new();
    for method in ["hover", "completion", "signatureHelp", "definition", "references"] {
        let time = least(&mut client, |client| drop(client.ask(method, "exp(l)")));
        table.push_str(&format!("{method}: {time:?}\n"));
        assert!(time < limit, "{table}");
    }
    for method in
        ["documentSymbol", "semanticTokens/full", "foldingRange", "formatting", "codeLens", "inlayHint"]
    {
        let time = least(&mut client, |client| drop(client.ask_all(method)));
        table.push_str(&format!("{method}: {time:?}\n"));
        assert!(time < limit, "{table}");
    }
    let time = least(&mut client, |client| drop(client.codes()));
    table.push_str(&format!("diagnostics: {time:?}\n"));
    assert!(time < limit, "{table}");
    // What takes code generation, for the kernels that an editor shows at once.
    let start = Instant::now();
    client.ask_lines("inlayHint", 0, 40);
    client.refreshed();
    table.push_str(&format!("hints by code generation for 40 lines: {:?}\n", start.elapsed()));
    println!("{table}");
}
