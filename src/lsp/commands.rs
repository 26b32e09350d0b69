//! What the code lenses do: the tool itself, on the text as it is in the editor.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// Command, and what its lens is called. Arguments are the file's URI and the kernel's name.
pub const ALL: &[(&str, &str)] =
    &[("krn.run", "run"), ("krn.profile", "profile"), ("krn.ptx", "show PTX"), ("krn.report", "report")];

/// The arguments of the tool, which reads the text from standard input.
fn arguments(command: &str, kernel: &str) -> Option<Vec<String>> {
    let words: &[&str] = match command {
        "krn.run" => &["run", "-", "--kernel", kernel],
        "krn.profile" => &["profile", "-", "--kernel", kernel],
        "krn.ptx" => &["build", "-", "--kernel", kernel],
        "krn.report" => &["report", "-", "--kernel", kernel, "--output", "report.html"],
        _ => return None,
    };
    Some(words.iter().map(|word| (*word).to_string()).collect())
}

/// Runs the tool: what it prints, and its exit code.
///
/// # Errors
/// There is no such command, or the tool cannot be started.
pub fn execute(command: &str, kernel: &str, text: &str) -> Result<Value, String> {
    let mut words = arguments(command, kernel).ok_or(format!("there is no command `{command}`"))?;
    let page =
        (command == "krn.report").then(|| std::env::temp_dir().join(format!("krn-report-{kernel}.html")));
    if let (Some(page), Some(last)) = (&page, words.last_mut()) {
        *last = page.display().to_string();
    }
    let own = std::env::current_exe().map_err(|error| format!("the tool does not find itself: {error}"))?;
    let started = Command::new(own)
        .args(&words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child =
        started.map_err(|error| format!("`krn {}` cannot be started: {error}", words.join(" ")))?;
    let (mut stdin, mut stderr) = (child.stdin.take(), child.stderr.take());
    let text = text.to_string();
    let feed = std::thread::spawn(move || stdin.as_mut().map(|pipe| pipe.write_all(text.as_bytes())));
    let errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.as_mut().map(|pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let output = child.wait_with_output().map_err(|error| format!("`krn {}`: {error}", words.join(" ")))?;
    // A tool that ends without reading all of it says why.
    let _ = feed.join();
    let errors = errors.join().unwrap_or_default();
    Ok(json!({
        "code": output.status.code(),
        "output": String::from_utf8_lossy(&output.stdout),
        "errors": errors,
        "page": page,
    }))
}
