//! Every feature, once.

use super::client::{Client, URI};
use serde_json::{Value, json};

const TEXT: &str = "\
struct Point { x: f32, y: f32 }

const SCALE: f32 = 2.0

// The length
// of a point.
fn length(p: Point, factor: f32) -> f32 {
    sqrt(p.x * p.x + p.y * p.y) * factor
}

kernel lengths(point: Point[n], shift: f32) -> d: f32[n], total: f32 {
    forall i in n {
        let l = length(point[i], SCALE)
        d[i] = l * shift + exp(l)
    }
    total = sum(j: d[j])
}

schedule lengths {
    block 128
}

kernel turned(a: u8[m, n]) -> b: u8[n, m] {
    b[j, i] = a[i, j]
}
";

fn starts(client: &Client, locations: &Value) -> Vec<usize> {
    let list = locations.as_array().expect("a list");
    list.iter().map(|location| client.offset(&location["range"]["start"])).collect()
}

fn markdown(hover: &Value) -> String {
    hover["contents"]["value"].as_str().unwrap_or_else(|| panic!("{hover}")).to_string()
}

#[test]
fn names_are_explained_found_and_changed() {
    let mut client = Client::open(TEXT);
    assert_eq!(client.codes(), [""; 0]);
    let hover = |client: &mut Client, at: &str| markdown(&client.ask("hover", at));
    assert!(hover(&mut client, "l * shift").contains("let l: f32"));
    assert!(hover(&mut client, "j: d").contains("j in 0..n"));
    assert!(hover(&mut client, "point[i]").contains("point: Point[n]"));
    assert!(hover(&mut client, "Point[n]").contains("8 bytes, aligned to 4"));
    assert!(hover(&mut client, "n], total").contains("an extent of `point`"));
    let exp = hover(&mut client, "exp(l)");
    assert!(exp.contains("eˣ") && exp.contains("at most 2 ulp in `f32`"), "{exp}");
    assert!(hover(&mut client, "sum(j").contains("Over nothing 0"));
    assert!(hover(&mut client, "block 128").contains("1 to 1024"));
    assert!(hover(&mut client, "forall i").contains("in any order"));
    assert_eq!(client.ask("hover", "{\n    forall"), Value::Null);

    let defined = client.ask("definition", "length(point");
    assert_eq!(client.offset(&defined["range"]["start"]), TEXT.find("length(p:").expect("it is there"));
    let mut parameters = client.at("x: f32");
    parameters["context"] = json!({ "includeDeclaration": true });
    let uses = client.ask_with("textDocument/references", parameters);
    assert_eq!(starts(&client, &uses).len(), 3);
    assert_eq!(client.ask("documentHighlight", "SCALE)").as_array().map(Vec::len), Some(2));

    assert_ne!(client.ask("prepareRename", "l * shift"), Value::Null);
    let rename = |client: &Client, at: &str, name: &str| {
        let mut parameters = client.at(at);
        parameters["newName"] = json!(name);
        parameters
    };
    let parameters = rename(&client, "l * shift", "len");
    let edit = client.ask_with("textDocument/rename", parameters);
    let expected =
        TEXT.replace("let l =", "let len =").replace("l * shift + exp(l)", "len * shift + exp(len)");
    assert_eq!(client.after(&edit["changes"][URI]), expected);
    for (name, why) in [("shift", "something else"), ("let", "a word of the language"), ("1x", "is no name")]
    {
        let parameters = rename(&client, "l * shift", name);
        let message = client.refused("textDocument/rename", parameters);
        assert!(message.contains(why), "{name}: {message}");
    }
    client.close();
}

fn labels(items: &Value) -> Vec<String> {
    let list = items.as_array().expect("a list");
    list.iter().map(|item| item["label"].as_str().expect("a label").to_string()).collect()
}

#[test]
fn what_could_be_written_is_proposed() {
    let mut client = Client::open(TEXT);
    let mut proposed = |before: &str, typed: &str| {
        client.reopen(TEXT);
        let at = TEXT.find(before).expect("it is there");
        client.replace(at, at, typed);
        let place = client.at_offset(at + typed.len());
        labels(&client.ask_with("textDocument/completion", place))
    };
    let has =
        |list: &[String], wanted: &[&str]| wanted.iter().all(|name| list.iter().any(|known| known == name));
    let code = proposed("d[i] = l", "d[i] = ");
    assert!(
        has(
            &code,
            &["l", "i", "point", "shift", "n", "SCALE", "length", "exp", "sum", "forall", "assert", "print"]
        ),
        "{code:?}"
    );
    assert!(!has(&code, &["j"]) && !has(&code, &["block"]) && !has(&code, &["turned"]), "{code:?}");
    assert_eq!(proposed("d[i] = l", "let q = point[i]."), ["x", "y"]);
    assert_eq!(proposed("d[i] = l", "let q = point[i].x"), ["x", "y"]);
    assert_eq!(proposed("d[i] = l", "let q = l."), [""; 0]);
    let types = proposed("f32) -> d", "");
    assert!(has(&types, &["f32", "bf16", "Point"]) && !has(&types, &["l"]), "{types:?}");
    let directives = proposed("}\n\nkernel turned", "    ");
    assert!(has(&directives, &["tile", "stage", "fast_math"]) && !has(&directives, &["l"]), "{directives:?}");
    let names = proposed("}\n\nkernel turned", "    unroll ");
    assert_eq!(names, ["i", "j"]);
    let arrays = proposed("}\n\nkernel turned", "    layout ");
    assert!(has(&arrays, &["point", "d"]) && !has(&arrays, &["i"]), "{arrays:?}");
    assert!(has(&proposed("kernel turned", "k"), &["kernel", "fn", "schedule"]));
    assert!(has(&proposed(" {\n    block", " for "), &["sm_90", "sm_120"]));
    let sizes = proposed(" {\n    block", " where ");
    assert!(has(&sizes, &["n", "shift"]) && !has(&sizes, &["l"]) && !has(&sizes, &["sm_90"]), "{sizes:?}");
    assert_eq!(proposed("of a point.", "e"), [""; 0]);
}

#[test]
fn calls_show_their_parameters() {
    let mut client = Client::open(TEXT);
    let help = client.ask("signatureHelp", "SCALE)");
    assert_eq!(help["signatures"][0]["label"], "fn length(p: Point, factor: f32) -> f32");
    assert_eq!(help["signatures"][0]["parameters"][1]["label"], "factor: f32");
    assert_eq!(help["activeParameter"], 1);
    let at = TEXT.find("exp(l)").expect("it is there") + 4;
    let place = client.at_offset(at);
    let help = client.ask_with("textDocument/signatureHelp", place);
    assert_eq!(help["signatures"][0]["label"], "exp(x)");
    assert_eq!(client.ask("signatureHelp", "forall"), Value::Null);
}

#[test]
fn the_outline_colours_and_folds_of_a_file() {
    let mut client = Client::open(TEXT);
    let outline = client.ask_all("documentSymbol");
    let names: Vec<&str> =
        outline.as_array().expect("a list").iter().filter_map(|symbol| symbol["name"].as_str()).collect();
    assert_eq!(names, ["Point", "SCALE", "length", "lengths", "schedule lengths", "turned"]);
    assert_eq!(outline[3]["children"].as_array().map(Vec::len), Some(4));

    let data = client.ask_all("semanticTokens/full")["data"].clone();
    let numbers: Vec<u64> = data.as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
    let (mut line, mut start, mut found) = (0, 0, Vec::new());
    for token in numbers.chunks(5) {
        start = if token[0] > 0 { token[1] } else { start + token[1] };
        line += token[0];
        let text = TEXT.lines().nth(line as usize).expect("a line");
        found.push((&text[start as usize..(start + token[2]) as usize], token[3]));
    }
    for expected in [
        ("struct", 0),
        ("Point", 2),
        ("f32", 1),
        ("length", 3),
        ("shift", 4),
        ("l", 5),
        ("x", 6),
        ("2.0", 7),
        ("+", 8),
        ("// of a point.", 9),
    ] {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }

    let folds = client.ask_all("foldingRange");
    let line_of = |text: &str| TEXT[..TEXT.find(text).expect("it is there")].matches('\n').count();
    let has = |start: usize, end: usize| {
        folds
            .as_array()
            .expect("a list")
            .iter()
            .any(|fold| fold["startLine"] == start && fold["endLine"] == end)
    };
    assert!(has(line_of("// The length"), line_of("// of a point")), "{folds}");
    assert!(has(line_of("kernel lengths"), line_of("total = sum")), "{folds}");
}

#[test]
fn files_are_formatted() {
    let mut client = Client::open("kernel k(x:f32[n])->y:f32[n]{\ny[i]=2.0*x[i] // é\n}\n");
    let edits = client.ask_all("formatting");
    assert_eq!(client.after(&edits), "kernel k(x: f32[n]) -> y: f32[n] {\n    y[i] = 2.0 * x[i]  // é\n}\n");
    client.reopen(TEXT);
    assert_eq!(client.ask_all("formatting"), json!([]));
    client.reopen("kernel k(");
    assert_eq!(client.ask_all("formatting"), Value::Null);
}

#[test]
fn mistakes_come_with_their_mends() {
    let text = "kernel k(x: f32[m, n]) -> y: f32[n, m] {\n    y[j, i] = x[i, j] + z\n}\n";
    let mut client = Client::open(text);
    assert_eq!(client.codes(), ["E0101"]);
    let at = client.text.find(" + z").expect("it is there");
    client.replace(at, at + 4, "");
    assert_eq!(client.codes(), [""; 0]);
    // What only compiling tells follows.
    client.reopen(
        "kernel k(x: f32[m, n]) -> y: f32[m, n] {\n    y[i, j] = 2.0 * x[i, j]\n}\n\nschedule k {\n    order j, i\n}\n",
    );
    while !client.codes().contains(&"W0601".to_string()) {
        client.diagnostics = None;
    }
    let actions = client.ask_all("codeAction");
    let fixes: Vec<&Value> =
        actions.as_array().expect("a list").iter().filter(|action| action["kind"] == "quickfix").collect();
    let fix = fixes.first().unwrap_or_else(|| panic!("{actions}"));
    assert_eq!(fix["diagnostics"][0]["code"], "W0601");
    let fixed = client.after(&fix["edit"]["changes"][URI]);
    assert!(!fixed.contains("order j, i"), "{fixed}");
    client.reopen(&fixed);
    assert_eq!(client.codes(), [""; 0], "{fixed}");
}

#[test]
fn the_name_that_was_probably_meant_is_put_in() {
    let right = "kernel k(values: f32[n]) -> y: f32[n] {\n    y[i] = sqrt(values[i])\n}\n\n\
        schedule k {\n    block 128\n}\n";
    for (word, slip) in
        [("f32[n] {", "f23[n] {"), ("sqrt", "sqtr"), ("values[i]", "vaules[i]"), ("block", "blok")]
    {
        let text = right.replace(word, slip);
        let mut client = Client::open(&text);
        assert_eq!(client.codes().len(), 1, "{text}");
        let actions = client.ask_all("codeAction");
        let list = actions.as_array().expect("a list");
        let fix = list.iter().find(|action| action["kind"] == "quickfix").expect("a fix");
        assert!(fix["title"].as_str().is_some_and(|title| title.starts_with("did you mean")), "{fix}");
        assert_eq!(client.after(&fix["edit"]["changes"][URI]), right);
    }
}

#[test]
fn test_directives_are_renamed_with_what_they_name() {
    let text = "// Not dims here.\n// krn-test: dims dims=1,2; n=3\n// krn-test: in x=ramp(0, dims)\n\
        kernel k(x: i32[dims], y: f32[n]) -> z: f32[dims] {\n    z[i] = y[0] * x[i] as f32\n}\n";
    let mut client = Client::open(text);
    let mut parameters = client.at("dims], y");
    parameters["newName"] = json!("ends");
    let edit = client.ask_with("textDocument/rename", parameters);
    let expected =
        text.replace("dims=", "ends=").replace("(0, dims)", "(0, ends)").replace("[dims]", "[ends]");
    assert_eq!(client.after(&edit["changes"][URI]), expected);
}

#[test]
fn hints_show_what_nobody_wrote() {
    let mut client = Client::open(TEXT);
    let texts = |hints: &Value, client: &Client| -> Vec<(usize, String)> {
        let list = hints.as_array().expect("a list").iter();
        list.map(|hint| {
            (client.offset(&hint["position"]), hint["label"].as_str().expect("a label").to_string())
        })
        .collect()
    };
    let behind = |text: &str| TEXT.find(text).expect("it is there") + text.len();
    let first = client.ask_all("inlayHint");
    let first = texts(&first, &client);
    client.ask_all("inlayHint");
    assert!(first.contains(&(behind("let l"), ": f32".to_string())), "{first:?}");
    assert!(first.contains(&(behind("sum(j"), " in 0..n".to_string())), "{first:?}");
    assert!(first.contains(&(behind("    b[j, i"), " in 0..m".to_string())), "{first:?}");
    // Schedules and costs follow.
    client.refreshed();
    let then = client.ask_all("inlayHint");
    let then = texts(&then, &client);
    let schedule = then.iter().find(|(at, _)| *at == behind("kernel turned")).expect("a schedule");
    assert!(schedule.1.contains("stage a"), "{schedule:?}");
    let cost = then.iter().find(|(at, _)| *at == behind("= a[i, j]")).expect("a cost");
    assert!(cost.1.contains("sectors"), "{cost:?}");
    let written = then.iter().find(|(at, _)| *at == behind("    b[j, i]")).expect("what the write costs");
    assert!(written.1.contains("sectors"), "{written:?}");
    assert!(first.iter().all(|hint| then.contains(hint)));
    // Whoever asks twice has them made once.
    assert_eq!(client.refreshes, 1);
}

#[test]
fn a_client_that_does_not_ask_again_is_answered_when_all_hints_are_there() {
    let mut client = Client::open_plain(TEXT);
    let hints = client.ask_all("inlayHint");
    let labels: Vec<&str> =
        hints.as_array().expect("a list").iter().filter_map(|hint| hint["label"].as_str()).collect();
    assert!(labels.iter().any(|label| label.contains("stage a")), "{labels:?}");
    assert_eq!(client.refreshes, 0);
    // Typing ends the wait.
    let many: String =
        (0..400).map(|at| format!("kernel k{at}(x: f32[n]) -> y: f32[n] {{ y[i] = x[i] }}\n")).collect();
    client.reopen(&many);
    assert!(client.cut_off("inlayHint").contains("changed"));
    client.replace(0, 0, "kernel");
    assert!(client.ask_all("inlayHint").is_array(), "of a text with mistakes there is nothing to wait for");
}

#[test]
fn schedules_are_written_and_expressions_become_functions() {
    let mut client = Client::open(TEXT);
    let at = |client: &Client, text: &str| {
        let start = client.text.find(text).expect("it is there");
        let range = json!({ "start": client.position(start), "end": client.position(start + text.len()) });
        json!({ "textDocument": { "uri": URI }, "range": range, "context": { "diagnostics": [] } })
    };
    let action = |actions: &Value, title: &str| {
        actions.as_array().expect("a list").iter().find(|action| action["title"] == title).cloned()
    };
    let parameters = at(&client, "turned");
    let actions = client.ask_with("textDocument/codeAction", parameters);
    let write = action(&actions, "write the chosen schedule here").expect("an action");
    let resolved = client.ask_with("codeAction/resolve", write.clone());
    let written = client.after(&resolved["edit"]["changes"][URI]);
    assert!(written.starts_with(TEXT.trim_end()) && written.contains("\nschedule turned {\n"), "{written}");
    let parameters = at(&client, "l * shift + exp(l)");
    let actions = client.ask_with("textDocument/codeAction", parameters);
    let extract = action(&actions, "extract fn").expect("an action");
    let extracted = client.after(&extract["edit"]["changes"][URI]);
    assert!(
        extracted.contains(
            "fn extracted(l: f32, shift: f32) -> f32 {\n    l * shift + exp(l)\n}\n\nkernel lengths"
        ),
        "{extracted}"
    );
    assert!(extracted.contains("d[i] = extracted(l, shift)\n"), "{extracted}");
    // Functions see no arrays.
    let parameters = at(&client, "a[i, j]");
    let actions = client.ask_with("textDocument/codeAction", parameters);
    assert_eq!(action(&actions, "extract fn"), None);
    // An answer for another text is none.
    client.replace(0, 0, "\n");
    assert!(client.refused("codeAction/resolve", write).contains("changed"));
    for text in [written, extracted] {
        client.reopen(&text);
        assert!(!client.codes().iter().any(|code| code.starts_with('E')), "{text}");
    }
}

#[test]
fn kernels_are_run_from_the_editor() {
    let mut client = Client::open(TEXT);
    let lenses = client.ask_all("codeLens");
    let titles: Vec<&str> = lenses
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|lens| lens["command"]["title"].as_str())
        .collect();
    assert_eq!(titles, ["run", "profile", "show PTX", "report"].repeat(2));
    let execute = |client: &mut Client, command: &str, kernel: &str| {
        client.ask_with("workspace/executeCommand", json!({ "command": command, "arguments": [URI, kernel] }))
    };
    let ptx = execute(&mut client, "krn.ptx", "turned");
    assert!(ptx["output"].as_str().is_some_and(|text| text.contains(".entry turned")), "{ptx}");
    let run = execute(&mut client, "krn.run", "turned");
    assert_eq!(run["code"], 0);
    assert!(run["output"].as_str().is_some_and(|text| text.contains("verified")), "{run}");
    let none = execute(&mut client, "krn.run", "nothing");
    assert!(
        none["code"] != 0 && none["errors"].as_str().is_some_and(|text| text.contains("nothing")),
        "{none}"
    );
    assert!(
        client
            .refused("workspace/executeCommand", json!({ "command": "krn.x", "arguments": [URI, "k"] }))
            .contains("krn.x")
    );
    assert!(
        client.refused("textDocument/nothing", json!({ "textDocument": { "uri": URI } })).contains("nothing")
    );
    assert!(
        client
            .refused("textDocument/hover", json!({ "textDocument": { "uri": "file:///other.krn" } }))
            .contains("not open")
    );
    client.close();
}
