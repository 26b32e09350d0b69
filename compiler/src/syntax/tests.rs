//! Tests of the whole way from text to tree.

use super::ast::{Expr, ExprKind, Item, StmtKind};
use super::*;

fn codes_of(text: &str) -> Vec<&'static str> {
    parse(&SourceFile::new("t.krn", text)).1.iter().map(|d| d.code.0).collect()
}

fn good(text: &str) -> ast::File {
    let file = SourceFile::new("t.krn", text);
    let (tree, reports) = parse(&file);
    let shown = crate::diagnostic::render::render(&file, &reports, Default::default());
    assert!(reports.is_empty(), "{shown}");
    tree
}

/// The expression of `const A: i32 = …`, fully parenthesised.
fn shape(text: &str) -> String {
    let tree = good(&format!("const A: i32 = {text}"));
    let Some(Item::Const(item)) = tree.items.first() else { panic!("no item") };
    show(&item.value)
}

fn show(e: &Expr) -> String {
    let all = |list: &[Expr]| list.iter().map(show).collect::<Vec<_>>().join(", ");
    match &e.kind {
        ExprKind::Int { value, suffix } => {
            format!("{value}{}", suffix.as_ref().map_or("", |s| s.name.as_str()))
        }
        ExprKind::Float { text, .. } => text.clone(),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Name(name) => name.name.clone(),
        ExprKind::Unary { op, operand } => format!("({op:?} {})", show(operand)),
        ExprKind::Binary { op, left, right, .. } => format!("({} {op:?} {})", show(left), show(right)),
        ExprKind::Cast { operand, ty } => format!("({} as {})", show(operand), ty.name.name),
        ExprKind::Call { callee, arguments } => format!("{}({})", callee.name, all(arguments)),
        ExprKind::Reduce { word, axes, body, .. } => format!("{}<{}>({})", word.name, axes.len(), show(body)),
        ExprKind::Index { base, subscripts } => format!("{}[{}]", show(base), all(subscripts)),
        ExprKind::Ranged { name, .. } => format!("{} in …", name.name),
        ExprKind::Guarded { access, otherwise } => format!("({} else {})", show(access), show(otherwise)),
        ExprKind::Field { base, field } => format!("{}.{}", show(base), field.name),
        ExprKind::StructLiteral { name, fields } => format!("{}{{{}}}", name.name, fields.len()),
        ExprKind::ArrayLiteral(parts) => format!("[{}]", all(parts)),
        ExprKind::If { condition, .. } => format!("if {}", show(condition)),
        ExprKind::Block(block) => format!("{{{}}}", block.value.as_deref().map_or(String::new(), show)),
        ExprKind::Error => "ERROR".to_string(),
    }
}

#[test]
fn precedence_is_as_documented() {
    assert_eq!(shape("a + b * c - d"), "((a Add (b Mul c)) Sub d)");
    assert_eq!(
        shape("a || b && c == d | e ^ f & g << h + i * -j as u8"),
        "(a Or (b And (c Equal (d BitOr (e BitXor (f BitAnd (g Shl (h Add (i Mul ((Negate j) as u8))))))))))"
    );
    assert_eq!(shape("!-x.y[1].z"), "(Not (Negate x.y[1].z))");
    assert_eq!(shape("-u[i] else -1.0 * 2"), "((Negate (u[i] else (Negate 1.0))) Mul 2)");
    assert_eq!(shape("a[i].x else b[j] else 0"), "(a[i].x else (b[j] else 0))");
    assert_eq!(shape("(a < b) == (c < d)"), "((a Less b) Equal (c Less d))");
    assert_eq!(shape("a as i32 < b as i32"), "((a as i32) Less (b as i32))");
}

#[test]
fn reductions_are_not_calls() {
    assert_eq!(shape("max(a, b) + max(c: x[c])"), "(max(a, b) Add max<1>(x[c]))");
    assert_eq!(shape("sum(p in 0..=n, q in m, r: V { x: p }.x)"), "sum<3>(V{1}.x)");
    assert_eq!(shape("count(i: any(j: a[i, j]))"), "count<1>(any<1>(a[i, j]))");
    assert_eq!(shape("min(max(a, b), c,)"), "min(max(a, b), c)");
}

#[test]
fn values_of_bodies_are_found() {
    assert_eq!(shape("{ let t = x; t * t }"), "{(t Mul t)}");
    assert_eq!(shape("if a < b { 1 } else if c { 2 } else { 3 } + 4"), "(if (a Less b) Add 4)");
    let tree =
        good("fn f(x: f32) -> f32 {\n let y = x\n if x < 0.0 { -x } else if x > 1.0 { 1.0 } else { y }\n}");
    let Item::Function(f) = &tree.items[0] else { panic!() };
    assert_eq!(f.body.statements.len(), 1);
    let Some(ExprKind::If { otherwise, .. }) = f.body.value.as_ref().map(|v| &v.kind) else { panic!() };
    assert!(matches!(otherwise.value.as_ref().map(|v| &v.kind), Some(ExprKind::If { .. })));
    let tree = good("kernel k(x: f32) { if a { b = c } else if d { e = f } }");
    let Item::Kernel(k) = &tree.items[0] else { panic!() };
    let StmtKind::If { otherwise: Some(block), .. } = &k.body.statements[0].kind else { panic!() };
    assert!(matches!(block.statements[0].kind, StmtKind::If { otherwise: None, .. }));
}

#[test]
fn braces_after_conditions_are_bodies() {
    good(
        "kernel k() { if a == b { c = d }\n while x { y = z }\n for i in 0..n { a = b }\n forall i in n, j in m { a = b } }",
    );
    good("kernel k(n: i32) where a == b, c <= d { x = V { a: 1 } }");
}

#[test]
fn several_mistakes_are_reported_and_none_twice() {
    let text = "kernel a(x: f32[n) {\n let = 3\n y = 4 4\n z[i = 3\n let q = 2\n w = (1 + \n let r = 4\n}\nkernal b() {}\nkernel c() { y = ] }\n";
    assert_eq!(codes_of(text), ["E0010", "E0011", "E0011", "E0010", "E0010", "E0012", "E0009"]);
    assert_eq!(
        codes_of("kernel a() {\n forall i in { x = 1 }\n y = @\n z = $ $ $\n}"),
        ["E0011", "E0001", "E0001", "E0001", "E0001"]
    );
    assert_eq!(codes_of("kernel a( {\n y = 3 +\n}\nkernel b() { = }"), ["E0010", "E0011"]);
    assert_eq!(codes_of("kernel a() {\n y[(c) in 0..3] = z\n}"), ["E0011"]);
}

#[test]
fn one_broken_kernel_leaves_the_others() {
    let (tree, _) = parse(&SourceFile::new("t", "kernel a( { ( }\nkernel b() { x = 1 }\nkernel c() {"));
    let mut names = tree.items.iter().filter_map(|item| match item {
        Item::Kernel(kernel) => Some(kernel.name.name.as_str()),
        _ => None,
    });
    assert!(names.any(|name| name == "b"));
}

/// Runs on a test thread's stack of 2 MiB.
#[test]
fn deep_input_is_refused_and_never_overflows() {
    let wrap = |expression: String| format!("const A: i32 = {expression}");
    let n = 100_000;
    for text in [
        wrap("(".repeat(n)),
        wrap("(".repeat(n) + "1" + &")".repeat(n)),
        wrap("[".repeat(n)),
        wrap("{".repeat(n)),
        wrap("- ".repeat(n) + "1"),
        wrap("1 + ".repeat(n) + "1"),
        wrap("a || b && ".repeat(n) + "1"),
        wrap("a[0] else ".repeat(n) + "1"),
        wrap(format!("a{}", ".b".repeat(n))),
        wrap(format!("a{}", "[0]".repeat(n))),
        wrap(format!("a{}", " as i32".repeat(n))),
        wrap("if a { 1 } else ".repeat(n) + "{ 2 }"),
        wrap("f(".repeat(n)),
        wrap("sum(i: ".repeat(n) + "1" + &")".repeat(n)),
        format!("kernel k() {{ {} }}", "if a { x = 1 } else ".repeat(n) + "{ x = 2 }"),
        format!("kernel k() {{ {} }}", "forall i in n { ".repeat(n) + &"}".repeat(n)),
    ] {
        let codes = codes_of(&text);
        assert!(codes.contains(&"E0013") || codes.contains(&"E0010"), "{} {codes:?}", &text[..40]);
        assert!(codes.len() < 5);
    }
}

/// The deepest things that are allowed fit the stack with room to spare, dropping included.
#[test]
fn the_deepest_legal_input_parses() {
    let d = nesting::MAX_DEPTH - 2;
    let mixed =
        |open: &str, close: &str| format!("kernel k() {{ x = {}1{} }}", open.repeat(d), close.repeat(d));
    for text in [
        mixed("(", ")"),
        mixed("1 + (", ")"),
        mixed("-(", ")"),
        mixed("f(", ")"),
        mixed("[", "]"),
        mixed("a[", "]"),
        mixed("sum(i: ", ")"),
        mixed("{ ", " }"),
        mixed("if a { ", " } else { 2 }"),
        mixed("V { x: ", " }"),
        format!("kernel k() {{ x = {}1{} }}", "a||b&&c==d|e^f&g<<h+i*-(".repeat(20), ")".repeat(20)),
        format!("kernel k() {{ {} x = 1 {} }}", "forall i in n {".repeat(d), "}".repeat(d)),
        format!("kernel k() {{ x = {}1 }}", "1 + ".repeat(nesting::MAX_HEIGHT - 8)),
        format!("kernel k() {{ x = {}1 }}", "-".repeat(nesting::MAX_HEIGHT - 8)),
        format!("kernel k() {{ {}{{ x = 1 }} }}", "if a { x = 1 } else ".repeat(nesting::MAX_HEIGHT / 2 - 8)),
    ] {
        std::thread::Builder::new()
            .stack_size(1 << 20)
            .spawn(move || {
                good(&text);
            })
            .unwrap()
            .join()
            .unwrap();
    }
}

#[test]
fn odd_files() {
    assert!(good("").items.is_empty());
    assert!(good("\u{feff}// nothing\r\n").items.is_empty());
    assert_eq!(good("const A: i32 = 1\r\nconst B: i32 = 2;\r\n").items.len(), 2);
    let (text, report) = invalid_utf8(b"ab\xffcd", 2);
    assert_eq!((text.as_str(), report.primary.span), ("ab\u{fffd}cd", Span::new(2, 5)));
}

#[test]
fn one_kernel_is_parsed_without_the_others() {
    let text = "struct S { x: f32 }\nkernel a(p: S[n]) -> y: f32[n] { y[i] = p[i].x }\nkernel b( = ;\n\
                schedule b { block }\nschedule a { block 64 }\nfn f(x: f32) -> f32 { x }\n";
    let file = SourceFile::new("t.krn", text);
    assert!(!parse(&file).1.is_empty());
    let (tree, reports) = parse_alone(&file, "a");
    assert!(reports.is_empty(), "{reports:?}");
    let kinds: Vec<&str> = tree
        .items
        .iter()
        .map(|item| match item {
            ast::Item::Struct(_) => "struct",
            ast::Item::Kernel(kernel) => kernel.name.name.as_str(),
            ast::Item::Schedule(schedule) => &text[schedule.span.start as usize..schedule.span.end as usize],
            ast::Item::Function(_) => "fn",
            _ => "other",
        })
        .collect();
    // In their places in the whole text.
    assert_eq!(kinds, ["struct", "a", "schedule a { block 64 }", "fn"]);
}
