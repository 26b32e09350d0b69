//! `krn report`: the page that it writes, as text. `tests/report_browser.rs` opens it.

use crate::report_support::{krn, report, root, unbalanced};
use crate::tool_support::{command, ended};

#[test]
fn the_page_needs_nothing_else_and_is_the_same_each_time() {
    let arguments = ["examples/matmul.krn", "-D", "m=64", "n=64", "k=32"];
    let page = report(&arguments);
    assert_eq!(page, report(&arguments), "two runs differ");
    // Nothing to fetch: no links but those within the page, no imports, no images from elsewhere.
    for attribute in ["src=", "srcset=", "data=", "action=", "<link", "<img", "<iframe", "@import", "url("] {
        assert!(!page.contains(attribute), "`{attribute}` in the page");
    }
    let mut links = page.match_indices("href=\"").map(|(at, found)| &page[at + found.len()..]);
    assert!(links.all(|link| link.starts_with('#')), "a link leads out of the page");
    assert!(!page.contains("http://") && !page.contains("https://"), "an address in the page");
    assert_eq!(unbalanced(&page), None);
    assert!(page.len() < 4 << 20, "{} bytes", page.len());
}

#[test]
fn the_page_holds_what_the_commands_print() {
    let page = report(&["examples/matmul.krn"]);
    let plain = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let text = strip(&page);
    let same = |text: &str| plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    // The sizes of the page. What `krn build` makes for others comes behind.
    let sizes = ["--for", "m=32,k=32,n=32"];
    for (command, wanted, end) in [
        (&["explain", "examples/matmul.krn"][..], "stage a pad 4", None),
        (&["build", "examples/matmul.krn"][..], "fma.rn.f32", Some("\n.visible .entry")),
        (&["build", "examples/matmul.krn", "--emit", "ir"][..], "launch launch0", Some("\nkernel ")),
    ] {
        let printed = krn(&[command, &sizes].concat());
        let first = |end: &str| {
            let mut ends = printed.match_indices(end).map(|(at, _)| at).filter(|at| *at > 0);
            if printed.starts_with("kernel ") { ends.next() } else { ends.nth(1) }
        };
        let printed = &printed[..end.and_then(first).unwrap_or(printed.len())];
        // What is declared in front is for entries of other sizes too.
        let of_file = |line: &str| line.starts_with(".extern") || line.contains(": representative sizes ");
        let own = |line: &&str| !line.contains(" @") && !of_file(line);
        let mut lines = printed.lines().filter(own).map(same);
        assert!(printed.contains(wanted));
        assert!(lines.all(|line| text.contains(&line)), "{command:?} prints what the page lacks");
    }
    for row in krn(&["ladder", "examples/matmul.krn", "--device", "emulator"]).lines() {
        if let Some(pass) = row.trim().strip_prefix("+ ") {
            let row = pass.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(&row), "the ladder lacks {row}");
        }
    }
    assert!(text.contains("estimated") && text.contains("no time"));
    assert!(text.contains("changed nothing"));
}

/// The text of a page, runs of white space as one space.
fn strip(page: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for c in page.chars() {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                text.push(' ');
            }
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn names_and_comments_are_escaped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a&b<i>.krn");
    let text = "// </pre></style><script>alert(\"1\")</script> & co\n\
                kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] } // <b>\n";
    std::fs::write(&path, text).expect("a file");
    let page = report(&[&path.display().to_string()]);
    assert!(page.contains("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; co"));
    assert!(!page.contains("<script>alert") && !page.contains("<b>") && !page.contains("<i>"));
    assert_eq!(page.matches("<script>").count(), 1);
    assert_eq!(unbalanced(&page), None);
}

#[test]
fn every_example_has_a_report() {
    let mut files: Vec<String> = std::fs::read_dir(root().join("examples"))
        .expect("the examples")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".krn"))
        .collect();
    files.sort();
    assert!(files.len() > 20);
    // A third of them, unless tests run in full.
    files.retain(|name| xtask::is_in_share(name, 3));
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(name) = files.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let page = example(name);
                    assert_eq!(unbalanced(&page), None, "{name}");
                    assert!(page.contains("Source and PTX") && page.len() < 5 << 20, "{name}");
                }
            });
        }
    });
}

/// The report of an example's first kernel.
fn example(name: &str) -> String {
    let path = format!("examples/{name}");
    let text = std::fs::read_to_string(root().join(&path)).expect("an example");
    let first = text.lines().find_map(|line| line.strip_prefix("kernel ")).expect("a kernel");
    let kernel: String = first.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let mut arguments = vec![path.as_str(), "--kernel", &kernel];
    // Indices that are data must lie within their arrays.
    arguments.extend(match name {
        "gather_scatter.krn" => &["-D", "n=128", "m=128", "--in", "from=random(0,128)"][..],
        "spmv_csr.krn" => {
            &["-D", "ends=33", "nonzeros=100", "cols=50", "--in", "start=ramp(0,100)", "column=random(0,50)"]
        }
        _ => &[],
    });
    report(&arguments)
}

#[test]
fn what_cannot_be_reported_is_told_and_leaves_the_old_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let page = folder.path().join("page.html");
    std::fs::write(&page, "old").expect("a file");
    let path = page.display().to_string();
    let run = |arguments: &[&str], code: i32, wanted: &str| {
        let mut command = command(&["report"]);
        let (_, err) = ended(command.args(arguments).args(["-o", &path]), code);
        assert!(err.contains(wanted), "{err}");
        assert_eq!(std::fs::read_to_string(&page).expect("the old page"), "old");
    };
    run(&["examples/sum.krn"], 2, "pick one of");
    run(&["examples/nothing.krn"], 5, "nothing.krn");
    run(&["examples/matmul.krn", "--gpu", "h300"], 2, "there is no such GPU");
    let outside = ["--in", "from=random(m + 5, m + 9)"];
    run(
        &[&["examples/gather_scatter.krn", "--kernel", "gather"][..], &outside].concat(),
        4,
        "outside axis 0",
    );
    let names: Vec<_> = std::fs::read_dir(&folder).expect("the folder").collect();
    assert_eq!(names.len(), 1, "temporary files are left");
}
