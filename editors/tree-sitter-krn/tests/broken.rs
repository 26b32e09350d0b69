//! Texts with mistakes in them, and odd ones without: both parsers must say the same of each.

use crate::acceptance::{cases, difference};
use crate::{compiler_tree, grammar_tree, sources};
use krn_compiler::source::SourceFile;
use krn_compiler::syntax::{Token, laid_out};

/// Numbers from a seed: a linear congruence does for places and choices.
pub struct Choices(pub u64);

impl Choices {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

/// What is put in at random.
const PIECES: &[&str] = &[
    "(", ")", "[", "]", "{", "}", ",", ":", ";", "->", ".", "..", "..=", "=", "+=", "min=", "+", "-", "!",
    "<", "==", "&&", "as", "in", "if", "else", "let", "var", "for", "forall", "while", "break", "assert",
    "print", "where", "step", "inout", "true", "kernel", "fn", "schedule", "x", "sum", "max", "1", "1.",
    "0x1f", "2.5f16", "1e3", "/* c */", "// c\n", "\n", "#", "f32[n]",
];

/// How many changes are tried on each file: `KRN_CASES=2000 cargo test -p tree-sitter-krn broken::` tries the most.
fn changes() -> usize {
    (cases() as usize / 10).min(200)
}

/// The tokens that the text has.
pub fn tokens(file: &SourceFile) -> Vec<Token> {
    let mut tokens = laid_out(file);
    tokens.retain(|token| token.span.start < token.span.end);
    tokens
}

/// One token changed: taken away, doubled, exchanged with the next, or something put before it; or a line end put before it
/// or taken away.
pub fn changed(text: &str, tokens: &[Token], choices: &mut Choices) -> String {
    let at = choices.below(tokens.len());
    let (start, end) = (tokens[at].span.start as usize, tokens[at].span.end as usize);
    let (before, own, after) = (&text[..start], &text[start..end], &text[end..]);
    match choices.below(6) {
        0 => format!("{before} {after}"),
        1 => format!("{before}{own} {own}{after}"),
        2 => match tokens.get(at + 1) {
            Some(next) => {
                let next = next.span.start as usize..next.span.end as usize;
                format!("{before}{}{}{own}{}", &text[next.clone()], &text[end..next.start], &text[next.end..])
            }
            None => before.to_string(),
        },
        3 => format!("{before}\n{own}{after}"),
        4 => format!("{} {own}{after}", before.trim_end()),
        _ => format!("{before} {} {own}{after}", PIECES[choices.below(PIECES.len())]),
    }
}

#[test]
fn files_with_a_token_changed_are_taken_and_refused_by_both() {
    let mut choices = Choices(1);
    let (mut wrong, mut taken, mut refused) = (Vec::new(), 0, 0);
    for (path, text) in sources::all() {
        let tokens = tokens(&SourceFile::new(path.as_str(), text.as_str()));
        // Of large files a part is as good as all.
        if tokens.is_empty() || text.len() > 20_000 {
            continue;
        }
        for _ in 0..changes() {
            let text = changed(&text, &tokens, &mut choices);
            match compiler_tree::accepted(&text) {
                Ok(_) => taken += 1,
                Err(_) => refused += 1,
            }
            wrong.extend(difference(&text).map(|difference| format!("{path}: {difference}\n{text}")));
        }
    }
    wrong.sort_by_key(String::len);
    assert!(wrong.is_empty(), "{} texts, such as\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n\n"));
    assert!(taken > 500 && refused > 2_000, "{taken} texts were taken and {refused} refused");
}

/// Texts that changes of files are not likely to come by.
#[test]
fn odd_texts_are_taken_and_refused_by_both() {
    let statements = [
        "a = b\n - c\n + d",
        "let v = V {\n x: 1,\n y: 2\n }\n z = v",
        "a = b /* c */ \n /* d \n */ e = f",
        "a = b // c\n // d\n + e",
        "a = b /* \n */ c = d",
        "a = /* /* nested */ */ b",
        "a = b /* open",
        "a = b // \u{202e} c",
        "if a\n{\n b = c\n}\nelse\n{\n d = e\n}",
        "a = if c { 1 } else if d { 2 } else { 3 }",
        "a = if c { 1 }",
        "if c { 1 } else { 2 } + 3",
        "if a == V { x: 1 } { b = c }",
        "if (a == V { x: 1 }) { b = c }",
        "a = b < c < d",
        "a = (b < c) == d",
        "a = -u[i - 1].x else -v[j] else 0.0 * w",
        "a = b as f32 as i32 + -c as f32",
        "a = x else 0",
        "y[i, c in 0..3] = z[c]",
        "y[i + 1 in 0..3] = z",
        "y[(c) in 0..3] = z",
        "for step in 0..step step step { step = step }",
        "for i in n\nstep 2 { a += i }",
        "forall i in n, j in 0..=m, { a[i, j] = 0 }",
        "x min= y; z max= w",
        "min = max\n max = min",
        "x\n min= y",
        "x min== y",
        "a = max(b, c) + max(c: b[c]) + min(c in 0..n, d: b[c])",
        "a = sum(i in n)",
        "a = sum /* c */ (i: b[i])",
        "a = max(f(x: 1))",
        "a = 1.; b = 1.5f32; c = 0x1_ffu8; d = 0b1i32; e = 0o17; f = 0bf16; g = 2f64; h = 1_0e-3",
        "a = 1e",
        "a = 1else",
        "a = 0x",
        "a = 0b12",
        "a = 0o8",
        "a = 1.5u8",
        "a = 1e5i32",
        "a = 0o17f32",
        "a = 1.x + 1._y",
        "a = 3q",
        "a = .5",
        "a.5 = 3",
        "a = größe",
        "a = \"b\"",
        "let x: f32[3] = [1.0, 2.0, 3.0,]",
        "let x: f32[] = y",
        "let e[c in 0..n, d]: f32 = a[c, d]",
        "let let = 3",
        "let fn = 3",
        "let x",
        "let x\n= 3",
        "var x = { let t = y; t * t }",
        ";;a = b;;c = d;",
        "a = b;\n;c = d",
        "while a { break }",
        "break\nbreak",
        "a = f\n(b)",
        "a = b\n[c]",
        "a = V {}",
        "a = []",
        "a = [1, 2,]",
        "!a\n!b",
        "a = b !=\n c\n != d",
        "a <<= 1 >> 2; b ^= c | d & e",
    ];
    let files = [
        "",
        ";;",
        "\u{feff}const A: i32 = 3",
        "const A: i32 = 3; static b: u32 static c: f32[2] = [1.0, 2.0]",
        "const A: i32 \u{feff}= 3",
        "const A: i32\n= f\n(3)",
        "struct S { x: f32, y: f32[3], }",
        "struct S { x }",
        "fn f(a: f32, b: S,) -> f32 { a }",
        "fn f(a: inout f32) -> f32 { a }",
        "fn f() { 1 }",
        "fn max(a: f32) -> f32 { max(a, 0.0) }",
        "kernel k(x: inout f32[n], y: f32) -> z: f32[n], where n > 0, injective(x in 0..n), injective(x), { }",
        "kernel k(x: f32[n]) -> f32[n] { }",
        "kernel k() where injective(x in 0..n) && n > 1 { }",
        "kernel k() where max(x in 0..n) { }",
        "kernel k(kernel: f32) { }",
        "kernel k() { } }",
        "kernel k() {",
        "let x = 1",
        "schedule { allow W0601, W0604 }",
        "schedule k for sm_90 where m >= 4096, n % 4 == 0, { tile i: 32, j: 32\n stage a pad 1 depth 2, b swizzle; fast_math }",
        "schedule k { layout x: aosoa(32)\n block 256 }",
        "schedule k { tile i: 32,\n j: 32 }",
        "schedule k { stage a pad\n 1 }",
        "schedule k { tile i: 32, }",
        "schedule k { unroll p\n\n fast_math }",
        "schedule k { tile: 3 }",
        "schedule k { block 1.5 }",
    ];
    let bodies = statements.map(|text| format!("kernel k(x: f32) {{\n {text}\n}}\n"));
    let texts: Vec<&str> = files.into_iter().chain(bodies.iter().map(String::as_str)).collect();
    let wrong: Vec<String> = texts
        .iter()
        .flat_map(|text| difference(text).map(|difference| format!("{text}\n{difference}")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let taken = texts.iter().filter(|text| grammar_tree::accepted(text).is_some()).count();
    assert!(taken > 40 && texts.len() - taken > 20, "{taken} of {} were taken", texts.len());
}
