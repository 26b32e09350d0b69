//! What names mean to an editor, held against what the checker finds: a use that it resolved leads to the same place.

use krn_compiler::check::typed::{Expr, ExprKind, Kernel};
use krn_compiler::check::walk::{Node, walk_statements};
use krn_compiler::check_source;
use krn_compiler::names::{Names, SymbolKind};
use krn_compiler::source::{SourceFile, Span};
use krn_compiler::syntax::parse;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn files() -> Vec<SourceFile> {
    let (mut found, mut folders) = (Vec::new(), vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && name != "node_modules" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".krn")
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push(SourceFile::new(path.display().to_string(), text));
            }
        }
    }
    found.sort_by(|a, b| a.name().cmp(b.name()));
    found
}

/// What the checker found: use, name, and the place where the name is given.
fn typed_uses(kernel: &Kernel) -> Vec<(Span, &str, Span)> {
    let mut found = Vec::new();
    walk_statements(&kernel.body, &mut |node| {
        let Node::Expr(Expr { kind, span, .. }) = node else { return };
        let (name, given) = match kind {
            ExprKind::Index(id) => (&kernel.indices[*id].name, kernel.indices[*id].span),
            ExprKind::Dim(id) => (&kernel.dims[*id].name, kernel.dims[*id].span),
            ExprKind::Param(id) => (&kernel.params[*id].name, kernel.params[*id].span),
            ExprKind::Local(id) => (&kernel.locals[*id].name, kernel.locals[*id].span),
            _ => return,
        };
        found.push((*span, name.as_str(), given));
    });
    found
}

#[test]
fn names_mean_what_the_checker_says() {
    let mut uses = 0;
    for file in files() {
        let (program, reports) = check_source(&file);
        if reports.has_errors() {
            continue;
        }
        let names = Names::of(&parse(&file).0);
        for kernel in &program.kernels {
            for (span, name, given) in typed_uses(kernel) {
                // A range that was inferred has the place of the name that it was inferred for.
                if file.slice(span) != name {
                    continue;
                }
                let Some(used) = names.uses.iter().find(|used| used.span == span) else { continue };
                let symbol = &names.symbols[used.symbol];
                // What a function's parameter stands for where it is inlined is no name of the text, or another one.
                let in_function =
                    symbol.owner.is_some_and(|at| names.symbols[at].kind == SymbolKind::Function);
                if !in_function {
                    assert_eq!(symbol.span, given, "{}: {}", file.name(), file.slice(span));
                    uses += 1;
                }
            }
            for index in kernel.indices.values() {
                let symbol = names.symbols.iter().find(|symbol| symbol.span == index.span);
                assert!(
                    symbol.is_some_and(|symbol| symbol.name == index.name),
                    "{}: {}",
                    file.name(),
                    index.name
                );
            }
        }
    }
    assert!(uses > 3000, "{uses}");
}

fn shown(text: &str, at: &str) -> Option<(SymbolKind, Vec<u32>)> {
    let file = SourceFile::new("t.krn", text);
    let names = Names::of(&parse(&file).0);
    let used = names.at(text.find(at)? as u32)?;
    Some((
        names.symbols[used.symbol].kind,
        names.uses_of(used.symbol).iter().map(|span| span.start).collect(),
    ))
}

#[test]
fn fields_schedules_and_shadowed_names_are_resolved() {
    let text = "struct P { x: f32, y: f32 }\nfn f(p: P) -> f32 { p.x }\n\
        kernel k(a: P[n]) -> b: P[n], c: f32[n] {\n    b[i] = P { x: a[i].y, y: f(a[i]) }\n\
        \x20   forall i in n { let t = a[i]; let t = t.x; c[i] = t }\n}\nschedule k { block 64; unroll i: 2; layout a: soa }\n";
    let places = |word: &str| text.match_indices(word).map(|(at, _)| at as u32).collect::<Vec<u32>>();
    // Both axes of that name are one thing, since the schedule calls them so.
    let (kind, uses) = shown(text, "i: 2").unwrap();
    assert_eq!((kind, uses.len()), (SymbolKind::Index, 7));
    assert_eq!(
        shown(text, "x: f32").unwrap(),
        (
            SymbolKind::Field,
            vec![places("x: f32")[0], places("p.x")[0] + 2, places("x: a")[0], places("t.x")[0] + 2]
        )
    );
    assert_eq!(shown(text, "t.x").unwrap().1, vec![places("t = a")[0], places("t.x")[0]]);
    assert_eq!(shown(text, "t }").unwrap().1, vec![places("t = t")[0], places("t }")[0]]);
    assert_eq!(shown(text, "n] {").unwrap().0, SymbolKind::Dimension);
    assert_eq!(shown(text, "a: soa").unwrap().0, SymbolKind::Parameter);
    assert_eq!(shown(text, "k {").unwrap().0, SymbolKind::Kernel);
    let text = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] }\nschedule k where n >= 64 { block 64 }\n";
    assert_eq!(shown(text, "n >= 64").unwrap().0, SymbolKind::Dimension);
    // What a half-written line gives is known all the same.
    let text = "kernel k(x: f32[n]) -> y: f32[n] {\n    let t = 2.0\n    y[i] = t * x[i\n}\n";
    assert_eq!(shown(text, "t * x").unwrap().0, SymbolKind::Let);
}

#[test]
fn what_is_visible_hides_what_it_shadows() {
    let text = "const A: f32 = 1.0\nkernel k(x: f32[n]) -> y: f32[n] {\n    forall i in n {\n        let A = x[i]\n        y[i] = A\n    }\n}\n";
    let file = SourceFile::new("t.krn", text);
    let names = Names::of(&parse(&file).0);
    let visible = |at: &str| -> BTreeMap<String, SymbolKind> {
        let list = names.visible(text.find(at).unwrap() as u32).into_iter();
        list.map(|at| (names.symbols[at].name.clone(), names.symbols[at].kind)).collect()
    };
    assert_eq!(visible("= A").get("A"), Some(&SymbolKind::Let));
    assert_eq!(visible("\n    forall").get("A"), Some(&SymbolKind::Constant));
    assert_eq!(visible("\n    forall").get("i"), None);
    assert!(["i", "n", "x", "y", "k"].iter().all(|name| visible("= A").contains_key(*name)));
}
