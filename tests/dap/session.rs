//! Sessions as people have them: breakpoints, steps, lanes, arrays, tiles, PTX, failures.

use super::client::Client;
use serde_json::json;

const SUM: &str = "\
fn scaled(v: i64, by: i64) -> i64 {
    let part = v * by
    part + 1
}

kernel sums(x: i64[n], by: i64) -> y: i64[n] {
    forall i in n {
        let own = x[i]
        var s = 0
        for j in 0..3 {
            let term = scaled(own + j, by)
            s += term + j
        }
        y[i] = s
    }
}
";

fn sums(more: serde_json::Value) -> Client {
    let mut client = Client::start(SUM);
    let mut configuration = json!({ "sizes": { "n": 100 }, "set": { "by": 10 }, "inputs": { "x": "iota" } });
    for (name, value) in more.as_object().expect("fields") {
        configuration[name] = value.clone();
    }
    client.launch(configuration);
    client
}

#[test]
fn a_conditional_breakpoint_stops_one_lane_and_steps_go_on_from_there() {
    let mut client = sums(json!({}));
    let (own, term, part) = (client.line("let own"), client.line("let term"), client.line("let part"));
    let placed = client.set(json!([{ "line": own, "condition": "i == 37" }, { "line": 5 }]));
    assert_eq!((&placed[0]["verified"], &placed[0]["line"]), (&json!(true), &json!(own)));
    assert_eq!(placed[1]["verified"], false);
    client.begin();
    let stopped = client.stopped();
    assert_eq!((&stopped["reason"], &stopped["threadId"]), (&json!("breakpoint"), &json!(6)));
    assert_eq!(stopped["hitBreakpointIds"], json!([placed[0]["id"]]));
    assert_eq!(client.at(6), own as i64);
    assert_eq!(client.name(6, "i"), "37");
    let threads = client.ask("threads", json!({}));
    assert_eq!(threads["threads"].as_array().map(Vec::len), Some(32));
    assert_eq!(threads["threads"][5]["name"], "lane 5 · thread (37, 0, 0)");
    let stack = client.ask("stackTrace", json!({ "threadId": 6 }));
    assert_eq!(stack["stackFrames"][0]["name"], "sums · block (0, 0, 0) warp 1 lane 5");
    // Over the function, and then into it.
    client.go("next", 6);
    // What is a constant in the code has no instruction to stop at.
    assert_eq!(client.at(6), client.line("for j") as i64);
    assert_eq!(client.name(6, "own"), "37");
    while client.at(6) != term as i64 {
        client.go("next", 6);
    }
    client.go("stepIn", 6);
    assert_eq!(client.at(6), part as i64);
    assert_eq!((client.name(6, "v").as_str(), client.name(6, "by").as_str()), ("37", "10"));
    client.go("stepOut", 6);
    assert_eq!(client.at(6), term as i64);
    client.go("next", 6);
    assert_eq!(client.at(6), client.line("s += term") as i64);
    assert_eq!(client.name(6, "term"), "371");
    // Another lane of the warp, and all of them.
    assert_eq!(client.name(10, "term"), "411");
    let answer = client.ask("evaluate", json!({ "expression": "term + j", "frameId": 6 }));
    let lanes = client.inside(&answer["variablesReference"], json!({}));
    assert_eq!(lanes.len(), 32);
    assert_eq!(lanes[31], ("lane 31".to_string(), "631".to_string()));
    assert_eq!(client.finish(), 0);
    assert!(
        client.said.iter().any(|text| text.contains("y: i64[100] = 36, 66, 96, 126")),
        "{:?}",
        client.said
    );
}

#[test]
fn the_threads_of_another_warp_are_others() {
    let mut client = sums(json!({ "stopOnEntry": true }));
    let own = client.line("let own");
    client.set(json!([{ "line": own, "condition": "i == 37" }]));
    client.begin();
    let names = |client: &mut Client| client.ask("threads", json!({}))["threads"][5]["name"].clone();
    client.stopped();
    assert_eq!(names(&mut client), "lane 5 · thread (5, 0, 0)");
    // Within the warp nothing is told; of another one the thread in focus is gone before it is named anew.
    let mut told = Vec::new();
    for command in ["next", "continue"] {
        client.ask(command, json!({ "threadId": 1 }));
        client.stopped();
        told.push(client.seen("thread"));
    }
    assert_eq!(told, [vec![], vec![json!({ "reason": "exited", "threadId": 6 })]]);
    assert_eq!(names(&mut client), "lane 5 · thread (37, 0, 0)");
}

#[test]
fn watches_are_expressions_of_the_language() {
    let mut client = sums(json!({ "block": 0, "warp": 2, "lane": 3 }));
    let line = client.line("s += term");
    client.set(json!([{ "line": line, "condition": "j == 2" }]));
    client.begin();
    assert_eq!(client.stopped()["threadId"], 4);
    for (expression, value) in [
        ("i", "67"),
        ("x[i]", "67"),
        ("x[i - 1] + 1", "67"),
        ("s == 1353 && term == 691 && !(j > 2)", "true"),
        ("n / 7 % 5 - 3", "1"),
        ("-by * 2", "-20"),
        ("(1 << 4) | 3 ^ 1", "18"),
        ("1.5 * 2.0 < 4.0", "true"),
        ("x", "i64[100] = 0, 1, 2, 3, …"),
    ] {
        assert_eq!(client.watch(4, expression), value, "{expression}");
    }
    for (expression, reason) in [
        ("nobody", "there is no name `nobody` here"),
        ("x[100]", "`x` has the extent 100, and no element 100"),
        ("x[1, 2]", "`x` has 1 axes, and 2 subscripts are given"),
        ("y[99]", "nobody has written it yet"),
        ("i +", "`i +` is no expression"),
        ("i }\nfn f() -> i64 { 1", "is no expression"),
        ("if i > 1 { 2 } else { 3 }", "that is not computed here"),
        ("true + 1", "are not of types for that operator"),
    ] {
        let said = client.refused("evaluate", json!({ "expression": expression, "frameId": 4 }));
        assert!(said.contains(reason), "{expression}: {said}");
    }
    let sizes = client.see(4, "Sizes and parameters");
    assert_eq!(sizes, [("n".into(), "100".into()), ("by".into(), "10".into())]);
    assert_eq!(client.finish(), 0);
}

#[test]
fn what_a_call_gives_a_function_is_not_the_kernels_of_that_name() {
    let mut client = Client::start(
        "\
fn first(x: i64[n], by: i64) -> i64 {
    let part = x[0] * by
    part + n
}

kernel both(x: i64[n], y: i64[m]) -> z: i64[n] where m >= 1 {
    forall i in n {
        let own = x[i]
        z[i] = first(y, own)
    }
}
",
    );
    let (inside, outside) = (client.line("let part"), client.line("let own"));
    client.launch(json!({ "sizes": { "n": 40, "m": 3 }, "inputs": { "x": "iota", "y": "iota" } }));
    client.set(json!([{ "line": outside, "condition": "i == 1" }, { "line": inside }]));
    client.begin();
    client.stopped();
    assert_eq!(client.watch(2, "n"), "40");
    assert_eq!(client.watch(2, "x[7]"), "7");
    client.go("continue", 2);
    for name in ["x[0]", "x", "n"] {
        let said = client.refused("evaluate", json!({ "expression": name, "frameId": 2 }));
        assert!(said.contains("is what a call gives the function"), "{name}: {said}");
    }
    assert_eq!(client.watch(2, "y[2]"), "2");
}

#[test]
fn breakpoints_count_and_speak() {
    let mut client = sums(json!({ "sizes": { "n": 2 } }));
    let line = client.line("s += term");
    client.set(json!([{ "line": line, "logMessage": "{i}: {term} in round {j}, {gone}" }]));
    client.begin();
    assert_eq!(client.ended(), 0);
    let told: Vec<&String> = client.said.iter().filter(|text| text.contains("in round")).collect();
    assert_eq!(told.len(), 6, "{told:?}");
    assert_eq!(told[3], "1: 21 in round 1, <there is no name `gone` here>");

    let mut client = sums(json!({}));
    client.set(json!([{ "line": line, "hitCondition": ">= 3" }]));
    client.begin();
    let thread = client.stopped()["threadId"].as_i64().expect("a thread");
    assert_eq!(client.name(thread, "j"), "2");
    assert_eq!(client.finish(), 0);
}

#[test]
fn the_ptx_stands_beside() {
    let mut client = sums(json!({ "optimize": true, "stopOnEntry": true }));
    client.begin();
    let thread = client.stopped()["threadId"].as_i64().expect("a thread");
    let stack = client.ask("stackTrace", json!({ "threadId": thread }));
    let place = &stack["stackFrames"][0]["instructionPointerReference"];
    let asked = json!({ "memoryReference": place, "instructionOffset": -2, "instructionCount": 6 });
    let listing = client.ask("disassemble", asked)["instructions"].clone();
    assert_eq!(listing.as_array().map(Vec::len), Some(6));
    assert_eq!(&listing[2]["address"], place);
    let registers = client.see(thread, "PTX");
    assert_eq!(
        registers[0],
        ("next".to_string(), listing[2]["instruction"].as_str().expect("text").to_string())
    );
    assert!(registers.iter().any(|(name, _)| name.starts_with("%p_x")), "{registers:?}");
    client.ask("next", json!({ "threadId": thread, "granularity": "instruction" }));
    client.stopped();
    let stack = client.ask("stackTrace", json!({ "threadId": thread }));
    assert_eq!(stack["stackFrames"][0]["instructionPointerReference"], listing[3]["address"]);
    let asked = json!({ "memoryReference": "0x0", "instructionOffset": -1, "instructionCount": 2 });
    let listing = client.ask("disassemble", asked)["instructions"].clone();
    assert_eq!(listing[0]["presentationHint"], "invalid");
    assert_eq!(client.finish(), 0);
}

#[test]
fn arrays_of_structs_and_of_two_axes_are_seen_element_by_element() {
    let mut client = Client::start(
        "struct Body { at: f32, mass: f32 }\n\nkernel k(b: Body[n], w: f32[n, 3]) -> y: f32[n] {\n    \
         forall i in n {\n        let own = b[i]\n        y[i] = own.at * own.mass * w[i, 2]\n    }\n}\n",
    );
    client.launch(json!({ "sizes": { "n": 5 }, "inputs": { "b": "ones", "w": "iota" } }));
    let line = client.line("y[i] =");
    client.set(json!([{ "line": line }]));
    client.begin();
    client.stopped();
    assert_eq!(client.name(3, "own"), "Body { at: 1.0, mass: 1.0 }");
    assert_eq!(client.watch(3, "own.mass + 1.0"), "2.0");
    assert_eq!(client.watch(3, "b[i].at"), "1.0");
    assert_eq!(client.watch(3, "w[i, 2]"), "8.0");
    let answer = client.ask("evaluate", json!({ "expression": "w", "frameId": 1 }));
    assert_eq!(answer["indexedVariables"], 15);
    let some = client.inside(&answer["variablesReference"], json!({ "start": 7, "count": 2 }));
    assert_eq!(some, [("[2, 1]".into(), "7.0".into()), ("[2, 2]".into(), "8.0".into())]);
    assert_eq!(client.finish(), 0);
}

#[test]
fn tiles_in_shared_memory_hold_what_has_been_written() {
    let mut client = Client::start(
        "kernel transpose(a: f32[m, n]) -> b: f32[n, m] {\n    b[j, i] = a[i, j]\n}\n\n\
         schedule transpose {\n    tile i: 32, j: 32\n    stage a pad 1\n}\n",
    );
    client.launch(json!({ "sizes": { "m": 64, "n": 64 }, "inputs": { "a": "iota" }, "optimize": true, "stopOnEntry": true }));
    client.begin();
    client.stopped();
    let before = client.see(1, "Shared and local memory");
    assert_eq!(before.len(), 1, "{before:?}");
    assert!(before[0].1.contains("= ?, ?"), "{before:?}");
    // Up to the barrier and past it: then the tile is whole.
    let mut after = before.clone();
    for _ in 0..400 {
        client.ask("next", json!({ "threadId": 1, "granularity": "instruction" }));
        client.stopped();
        after = client.see(1, "Shared and local memory");
        if !after[0].1.contains('?') {
            break;
        }
    }
    assert!(after[0].1.contains("= 0.0, 1.0, 2.0") || after[0].1.contains("= 0.0, 64.0, 128.0"), "{after:?}");
    assert_eq!(client.finish(), 0);
}

#[test]
fn the_first_failed_check_stops_the_run() {
    let mut client = Client::start(
        "kernel gather(x: f32[n], at: i64[n]) -> y: f32[n] {\n    forall i in n {\n        \
         let where_ = at[i] + 60\n        y[i] = x[where_]\n    }\n}\n",
    );
    client.launch(json!({ "sizes": { "n": 100 }, "inputs": { "at": "iota" } }));
    client.begin();
    let stopped = client.stopped();
    assert_eq!(stopped["reason"], "exception");
    // Index 100 is that of thread 40.
    let thread = stopped["threadId"].as_i64().expect("a thread");
    assert_eq!(thread, 9);
    let told = client.ask("exceptionInfo", json!({ "threadId": thread }));
    assert_eq!(told["description"], "out of bounds: `x` axis 0, index 100, extent 100 (line 4)");
    assert_eq!(client.at(thread), 4);
    assert_eq!(client.watch(thread, "where_"), "100");
    client.set(json!([]));
    client.ask("continue", json!({ "threadId": thread }));
    assert_eq!(client.ended(), 4);
    assert!(client.said.iter().any(|text| text.contains("index 100")), "{:?}", client.said);
}

#[test]
fn an_assertion_that_fails_stops_the_run() {
    let mut client = Client::start(
        "kernel k(x: i64[n]) -> y: i64[n] {\n    forall i in n {\n        let own = x[i]\n        \
         assert own != 40\n        y[i] = own\n    }\n}\n",
    );
    client.launch(json!({ "sizes": { "n": 100 }, "inputs": { "x": "iota" } }));
    client.begin();
    let stopped = client.stopped();
    assert_eq!((&stopped["reason"], &stopped["threadId"]), (&json!("exception"), &json!(9)));
    let told = client.ask("exceptionInfo", json!({ "threadId": 9 }));
    assert_eq!(told["description"], "the assertion `own != 40` does not hold (line 4): i = 40");
    assert_eq!(client.at(9), 4);
    assert_eq!(client.watch(9, "own"), "40");
    client.set(json!([]));
    client.ask("continue", json!({ "threadId": 9 }));
    assert_eq!(client.ended(), 4);
    let text = "the assertion `own != 40` does not hold for i = 40";
    assert!(client.said.iter().any(|said| said.contains(text)), "{:?}", client.said);
}

#[test]
fn the_first_race_stops_the_run() {
    // That no two elements of `to` are equal is not checked: all threads write one element.
    let mut client = Client::start(
        "kernel scatter(x: f32[n], to: i64[n], y: inout f32[m]) where injective(to in 0..m) {\n    \
         forall i in n {\n        let own = x[i]\n        y[to[i]] = own\n    }\n}\n",
    );
    client.launch(json!({
        "sizes": { "n": 64, "m": 4 }, "inputs": { "x": "iota", "to": "zeros" }, "unchecked": true
    }));
    client.begin();
    let stopped = client.stopped();
    assert_eq!((&stopped["reason"], &stopped["threadId"]), (&json!("exception"), &json!(2)));
    let told = client.ask("exceptionInfo", json!({ "threadId": 2 }));
    let description = told["description"].as_str().expect("text");
    assert!(description.contains("race: a store in global memory"), "{description}");
    assert_eq!(client.at(2), 4);
    assert_eq!(client.watch(2, "own"), "1.0");
    client.ask("continue", json!({ "threadId": 2 }));
    assert_eq!(client.ended(), 4);
}

#[test]
fn the_first_read_of_what_nobody_has_written_stops_the_run() {
    // Unchecked, a subscript past the end of a row is one of a later row, which a later block writes.
    let mut client = Client::start(
        "kernel pick(x: f32[n], at: i64[n]) -> y: f32[n, 4], z: f32[n] {\n    forall i in n {\n        \
         let place = at[i] + 4000\n        y[i, c] = x[i] * c as f32\n        z[i] = y[i, place]\n    }\n}\n",
    );
    client.launch(json!({
        "sizes": { "n": 2000 }, "inputs": { "x": "iota", "at": "zeros" }, "unchecked": true
    }));
    client.begin();
    let stopped = client.stopped();
    assert_eq!((&stopped["reason"], &stopped["threadId"]), (&json!("exception"), &json!(1)));
    let told = client.ask("exceptionInfo", json!({ "threadId": 1 }));
    let description = told["description"].as_str().expect("text");
    assert!(description.contains("of `y`, which nobody has written so far"), "{description}");
    assert_eq!(client.at(1), 5);
    assert_eq!(client.watch(1, "place"), "4000");
    client.ask("continue", json!({ "threadId": 1 }));
    assert_eq!(client.ended(), 4);
}
