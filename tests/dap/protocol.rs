//! What is no proper session: garbage, wrong order, an editor that is gone.

use super::client::Client;
use serde_json::{Value, json};
use std::io::Write;

const TEXT: &str = "\
kernel twice(x: f32[n]) -> y: f32[n] {
    forall i in n {
        let v = x[i]
        y[i] = 2.0 * v
    }
}
";

fn raw(client: &mut Client, bytes: &[u8]) {
    let stdin = client.stdin.as_mut().expect("the adapter is there");
    stdin.write_all(bytes).expect("the adapter reads");
    stdin.flush().expect("the adapter reads");
}

#[test]
fn garbage_is_told_and_the_session_goes_on() {
    let mut client = Client::start(TEXT);
    raw(&mut client, b"no header\r\n\r\n");
    raw(&mut client, b"Content-Length: 5\r\n\r\n{{{{{");
    raw(&mut client, b"Content-Length: minus one\r\n\r\n");
    raw(&mut client, &[b"Content-Length: 3\r\n\r\n".as_slice(), &[0xff, 0xfe, 0]].concat());
    for nonsense in [json!(null), json!([1, 2]), json!("launch"), json!({ "type": "request" })] {
        client.send(&nonsense);
    }
    for arguments in [json!(null), json!(7), json!({ "threadId": "x" }), json!({ "threadId": -1 })] {
        for command in [
            "threads",
            "stackTrace",
            "scopes",
            "variables",
            "evaluate",
            "next",
            "disassemble",
            "pause",
            "nothing",
        ] {
            let message = json!({ "seq": 0, "type": "request", "command": command, "arguments": arguments });
            client.send(&message);
        }
    }
    client.launch(json!({ "sizes": { "n": 40 } }));
    client.begin();
    assert_eq!(client.ended(), 0);
    let told = client.said.iter().filter(|text| text.starts_with("krn dap: ")).count();
    assert_eq!(told, 4, "{:?}", client.said);
    assert!(client.hang_up().success());
}

#[test]
fn what_cannot_be_debugged_is_refused_in_words() {
    let mut client = Client::start("kernel k(x: f32[n]) -> y: f32[n] {\n    y[i] = x[j]\n}\n");
    let path = client.path().display().to_string();
    let refused = |client: &mut Client, mut configuration: Value| {
        configuration["program"] = path.clone().into();
        client.refused("launch", configuration)
    };
    assert!(client.refused("configurationDone", json!({})).contains("`launch` comes first"));
    assert!(client.refused("launch", json!({})).contains("program"));
    assert!(client.refused("attach", json!({})).contains("launch configuration"));
    let text = refused(&mut client, json!({}));
    assert!(text.contains("error[") && text.contains("t.krn:2:"), "{text}");
    std::fs::write(&path, TEXT).expect("a file");
    assert!(refused(&mut client, json!({ "kernel": "thrice" })).contains("`twice`"));
    assert!(refused(&mut client, json!({ "lane": 32 })).contains("lanes 0 to 31"));
    assert!(refused(&mut client, json!({ "without": ["nothing"] })).contains("nothing"));
    assert!(refused(&mut client, json!({ "target": "sm_1" })).contains("sm_1"));
    assert!(refused(&mut client, json!({ "sizes": { "m": 3 } })).contains('m'));
    // Nothing of that is in the way of a proper one.
    client.launch(json!({ "sizes": { "n": 3 } }));
    assert!(client.refused("launch", json!({ "program": path })).contains("already"));
    client.begin();
    assert_eq!(client.ended(), 0);
    assert!(client.refused("stackTrace", json!({ "threadId": 1 })).contains("runs"));
    assert!(client.refused("continue", json!({ "threadId": 1 })).contains("runs"));
}

#[test]
fn an_editor_that_is_gone_leaves_nothing_behind() {
    // Before anything is said, while the kernel stands still, and while it runs.
    assert!(Client::start(TEXT).hang_up().success());

    let mut client = Client::start(TEXT);
    client.launch(json!({ "stopOnEntry": true }));
    client.begin();
    client.stopped();
    assert!(client.hang_up().success());

    let mut client = Client::start(
        "kernel k(x: f32[n]) -> y: f32[n] {\n    forall i in n {\n        var v = x[i]\n        \
         for j in 0..1_000_000 { v = v * 1.5 + 0.5 }\n        y[i] = v\n    }\n}\n",
    );
    client.launch(json!({ "sizes": { "n": 100_000 } }));
    client.begin();
    assert!(client.hang_up().success());

    let mut client = Client::start(TEXT);
    client.launch(json!({ "stopOnEntry": true }));
    client.begin();
    client.stopped();
    client.ask("disconnect", json!({}));
    assert!(client.wait().success());
}

#[test]
fn a_run_that_takes_long_is_paused_and_ended() {
    let mut client = Client::start(
        "kernel k(x: f32[n]) -> y: f32[n] {\n    forall i in n {\n        var v = x[i]\n        \
         for j in 0..1_000_000 {\n            v = v * 1.5 + 0.5\n        }\n        y[i] = v\n    }\n}\n",
    );
    client.launch(json!({ "sizes": { "n": 1000 } }));
    client.begin();
    client.ask("pause", json!({ "threadId": 1 }));
    let stopped = client.stopped();
    assert_eq!(stopped["reason"], "pause");
    let thread = stopped["threadId"].as_i64().expect("a thread");
    client.go("next", thread);
    client.ask("terminate", json!({}));
    assert_eq!(client.ended(), 130);
}
