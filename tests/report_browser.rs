//! `krn report` in a real browser: the page as a reader sees it and moves through it.
//!
//! A Chromium is needed: `cargo xtask setup` installs one where it can.

use crate::browser_support::Browser;
use crate::report_support;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What the tests ask the page with.
const HELPERS: &str = include_str!("browser_support/helpers.js");

/// The page of a kernel, in a folder of its own.
fn page(arguments: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("report.html");
    std::fs::write(&path, report_support::report(arguments)).expect("a page");
    (folder, path)
}

fn open(browser: &mut Browser, path: &Path, width: u32, scheme: &str) {
    browser.open(path, (width, 900), scheme);
    browser.evaluate(HELPERS);
}

fn strings(value: &Value) -> Vec<String> {
    let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_string)).collect()
}

#[test]
fn pages_load_and_what_belongs_together_lights_up() {
    let (_folder, path) = page(&["examples/matmul.krn", "-D", "m=64", "n=64", "k=32"]);
    let mut browser = Browser::start();
    open(&mut browser, &path, 1280, "light");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    lights_up(&mut browser);
    open(&mut browser, &path, 1280, "light");
    keyboard(&mut browser);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Pointing at either side.
fn lights_up(browser: &mut Browser) {
    assert_eq!(browser.evaluate("lit().length"), 0);
    let place = browser.evaluate("centre(document.querySelectorAll('.piece')[0])");
    browser.point(place[0].as_f64().expect("x"), place[1].as_f64().expect("y"));
    let at = browser.evaluate("document.querySelectorAll('.piece')[0].dataset.at");
    let wanted = browser.evaluate(&format!(
        "document.querySelectorAll('.run[data-at=\"{}\"]').length",
        at.as_str().expect("a place")
    ));
    assert!(wanted.as_u64().expect("a number") > 0);
    assert_eq!(browser.evaluate("lit('.run').length"), wanted, "the PTX of the piece");
    assert_eq!(browser.evaluate("new Set(lit('.run').map((run) => run.dataset.at)).size"), 1);
    let shows = "getComputedStyle(lit('.run')[0]).backgroundColor !== getComputedStyle(document.querySelector('.run:not(.lit)')).backgroundColor";
    // A kernel of one piece has no run that stays dark; this one has several.
    assert_eq!(browser.evaluate(shows), true, "what is lit looks different");
    browser.point(2.0, 2.0);
    assert_eq!(browser.evaluate("lit().length"), 0);
    // The other way.
    let place = browser.evaluate("reveal(document.querySelector('details[open] .run'))");
    browser.point(place[0].as_f64().expect("x"), place[1].as_f64().expect("y"));
    assert!(browser.evaluate("lit('.piece').length").as_u64() > Some(0), "the source of the PTX");
    browser.point(2.0, 2.0);
    assert_eq!(browser.evaluate("lit().length"), 0);
}

/// Tab reaches everything, Enter and space work, arrows walk.
fn keyboard(browser: &mut Browser) {
    browser.press("Tab");
    assert_eq!(browser.evaluate("document.activeElement.className"), "skip", "the skip link is first");
    assert_eq!(
        browser.evaluate("document.activeElement.getBoundingClientRect().left >= 0"),
        true,
        "and shows"
    );
    browser.press("Enter");
    assert_eq!(browser.evaluate("location.hash"), "#main");
    for _ in 0..60 {
        browser.press("Tab");
        if browser.evaluate("document.activeElement.matches('.piece')") == true {
            break;
        }
    }
    assert_eq!(browser.evaluate("document.activeElement.matches('.piece')"), true, "Tab reaches the source");
    assert_eq!(
        browser.evaluate("getComputedStyle(document.activeElement).outlineStyle"),
        "solid",
        "and is seen"
    );
    let here = "lit('.run').every((run) => run.dataset.at === document.activeElement.dataset.at)";
    assert!(browser.evaluate("lit('.run').length").as_u64() > Some(0) && browser.evaluate(here) == true);
    for key in ["Enter", " "] {
        browser.press(key);
        assert_eq!(
            browser.evaluate("document.activeElement.getAttribute('aria-pressed')"),
            "true",
            "{key:?}"
        );
        assert_eq!(browser.evaluate("firstLitIsSeen()"), true, "{key:?} scrolls to the PTX");
        assert_ne!(browser.evaluate("document.getElementById('said').textContent"), "");
        browser.press("Escape");
        assert_eq!(browser.evaluate("document.activeElement.getAttribute('aria-pressed')"), "false");
    }
    // Whatever opens, opens by keys.
    let folded = "document.activeElement.matches('details:has(pre.listing) > summary')";
    for _ in 0..60 {
        browser.press("Tab");
        if browser.evaluate(folded) == true {
            break;
        }
    }
    assert_eq!(browser.evaluate(folded), true, "Tab reaches what folds");
    browser.press("Enter");
    assert_eq!(browser.evaluate("document.activeElement.parentElement.open"), false);
    browser.press(" ");
    assert_eq!(browser.evaluate("document.activeElement.parentElement.open"), true);
    browser.press("Tab");
    assert_eq!(
        browser.evaluate("document.activeElement.matches('pre.listing')"),
        true,
        "Tab reaches the PTX"
    );
    browser.press("ArrowDown");
    let first = browser.evaluate("walkedTo()");
    assert!(browser.evaluate("lit('.piece').length").as_u64() > Some(0));
    browser.press("ArrowDown");
    assert_ne!(browser.evaluate("walkedTo()"), first, "the arrow walks on");
    browser.press("ArrowUp");
    assert_eq!(browser.evaluate("walkedTo()"), first);
    let unnamed = strings(&browser.evaluate("unnamed()"));
    assert_eq!(unnamed, Vec::<String>::new(), "what can be focused has a name");
    assert_eq!(strings(&browser.evaluate("brokenLinks()")), Vec::<String>::new());
}

#[test]
fn both_schemes_are_readable_and_nothing_overlaps() {
    for arguments in [
        &["examples/matmul.krn", "-D", "m=64", "n=64", "k=32"][..],
        &["examples/transpose.krn", "--kernel", "transpose", "-D", "m=96", "n=160"],
        &["examples/struct_update.krn", "--kernel", "one_field_aos", "-D", "n=4096"],
    ] {
        let (_folder, path) = page(arguments);
        let mut browser = Browser::start();
        let mut backgrounds = Vec::new();
        for scheme in ["light", "dark"] {
            open(&mut browser, &path, 1280, scheme);
            backgrounds.push(browser.evaluate("getComputedStyle(document.body).backgroundColor"));
            browser.evaluate(
                "for (const each of document.querySelectorAll('details')) { each.open = true; } lightAll()",
            );
            assert_eq!(strings(&browser.evaluate("pale()")), Vec::<String>::new(), "{arguments:?}, {scheme}");
            assert_eq!(
                strings(&browser.evaluate("paleShapes()")),
                Vec::<String>::new(),
                "{arguments:?}, {scheme}"
            );
        }
        assert_ne!(backgrounds[0], backgrounds[1], "dark is another colour");
        for width in [1280, 600] {
            open(&mut browser, &path, width, "light");
            assert_eq!(
                browser.evaluate("document.documentElement.scrollWidth <= innerWidth"),
                true,
                "{arguments:?} at {width}"
            );
            assert_eq!(
                strings(&browser.evaluate("outside()")),
                Vec::<String>::new(),
                "{arguments:?} at {width}"
            );
            assert_eq!(
                strings(&browser.evaluate("overlaps()")),
                Vec::<String>::new(),
                "{arguments:?} at {width}"
            );
        }
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn what_is_wrong_with_a_page_is_found() {
    let (_folder, path) = page(&["examples/saxpy.krn", "-D", "n=1000"]);
    let mut browser = Browser::start();
    open(&mut browser, &path, 1280, "light");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let mut found = |damage: &str, question: &str| {
        assert_eq!(strings(&browser.evaluate(question)), Vec::<String>::new());
        browser.evaluate(damage);
        assert_ne!(strings(&browser.evaluate(question)), Vec::<String>::new(), "{damage}");
    };
    found("document.querySelector('h2').style.color = '#ddd'", "pale()");
    found("document.querySelector('svg text').style.fill = '#ddd'", "paleShapes()");
    found("document.querySelector('figure').style.width = '2000px'", "outside()");
    found("document.querySelectorAll('.card')[1].style.marginLeft = '-80px'", "overlaps()");
    found("document.querySelector('a').href = '#nowhere'", "brokenLinks()");
    found("document.querySelector('summary').textContent = ''", "unnamed()");
    browser.evaluate("console.error('no'); fetch('file:///nowhere').catch(() => {}); 0");
    assert!(browser.complaints().len() >= 2, "the console, and the network");
}

#[test]
fn the_pictures_are_there() {
    let (_folder, path) = page(&["examples/matmul.krn", "-D", "m=64", "n=64", "k=32"]);
    let mut browser = Browser::start();
    open(&mut browser, &path, 1280, "light");
    let mut count = |selector: &str| {
        browser
            .evaluate(&format!("document.querySelectorAll('{selector}').length"))
            .as_u64()
            .expect("a number")
    };
    // Axes i, j and p; copies of a and b, the store of c; tiles of a and b, the padded one before and after.
    assert_eq!(count("svg.hierarchy"), 3);
    assert_eq!(count("svg.access"), 3);
    assert_eq!(count("svg.bank-map"), 3);
    assert!(count("svg.wavefronts") >= 4);
    assert_eq!((count("svg.roofline"), count("svg.roofline .point")), (1, 1));
    assert_eq!(count("svg.roofline .predicted"), 1, "nothing was measured");
    assert_eq!((count("svg.occupancy"), count("svg.occupancy rect.conflict")), (1, 1), "one limiter");
    assert_eq!(count("svg"), count("svg[role=img][aria-label]"), "each has a name");
    assert_eq!(count("svg"), count("figure svg"), "each has words beside it");
    // Of one axis, each bar is a level.
    assert_eq!(count("svg.hierarchy:first-of-type rect"), count("svg.hierarchy rect"));
    // 32 lanes of 16 bytes are 16 sectors: no byte is wasted.
    assert_eq!(count("svg.access .wasted"), 0);
    let (_folder, path) = page(&["examples/struct_update.krn", "--kernel", "one_field_aos", "-D", "n=4096"]);
    open(&mut browser, &path, 1280, "light");
    let wasted = browser.evaluate("document.querySelectorAll('svg.access .wasted').length");
    assert!(wasted.as_u64() > Some(0), "a field of a struct wastes what lies around it");
}
