//! Random kernels, as text: a few statements with subscripts of the shapes that people write, and of shapes
//! that nearly are those.

use proptest::prelude::*;

/// An integer expression over these names.
fn subscript(names: &'static [&'static str]) -> BoxedStrategy<String> {
    let name = prop::sample::select(names);
    let leaf = prop_oneof![
        6 => name.clone().prop_map(String::from),
        2 => name.clone().prop_map(|name| format!("(t[{name}] as i64)")),
        1 => (0..3i32).prop_map(|value| format!("{value}i64")),
        1 => Just(String::from("n - 1")),
        1 => Just(String::from("s")),
    ];
    leaf.prop_recursive(2, 6, 2, move |inner| {
        let name = prop::sample::select(names);
        prop_oneof![
            3 => (inner.clone(), 0..3i32).prop_map(|(left, value)| format!("({left} + {value})")),
            2 => (inner.clone(), 1..3i32).prop_map(|(left, value)| format!("({left} - {value})")),
            2 => (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} + {right})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} - {right})")),
            3 => inner.clone().prop_map(|one| format!("(n - 1 - {one})")),
            2 => (2..4i32, inner.clone()).prop_map(|(by, one)| format!("{by} * {one}")),
            3 => (name, inner.clone()).prop_map(|(name, one)| format!("({name} * n + {one})")),
            1 => (inner.clone(), 2..4i32).prop_map(|(one, by)| format!("({one} / {by})")),
            1 => (inner.clone(), 2..4i32).prop_map(|(one, by)| format!("({one} % {by})")),
            1 => inner.clone().prop_map(|one| format!("({one} / n)")),
            1 => inner.clone().prop_map(|one| format!("({one} % n)")),
            1 => inner.clone().prop_map(|one| format!("min({one}, n - 1)")),
            1 => inner.clone().prop_map(|one| format!("max({one}, 0)")),
            1 => inner.clone().prop_map(|one| format!("(({one}) & 3)")),
            1 => (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("(({left}) ^ ({right}))")),
            1 => inner.clone().prop_map(|one| format!("(({one}) & s)")),
            1 => inner.clone().prop_map(|one| format!("(({one}) | s)")),
            1 => inner.prop_map(|one| format!("(t[{one}] as i64)")),
        ]
    })
    .boxed()
}

fn condition(names: &'static [&'static str]) -> BoxedStrategy<String> {
    let operator = prop::sample::select(&["<", "<=", ">", ">=", "==", "!="][..]);
    let one = (subscript(names), operator, subscript(names))
        .prop_map(|(left, operator, right)| format!("{left} {operator} {right}"));
    prop_oneof![
        4 => one.clone(),
        1 => (one.clone(), one.clone()).prop_map(|(left, right)| format!("{left} && {right}")),
        1 => (one.clone(), one).prop_map(|(left, right)| format!("{left} || {right}")),
    ]
    .boxed()
}

/// A target or source of a store: one of the arrays with subscripts.
fn element(names: &'static [&'static str], arrays: &'static [&'static str]) -> BoxedStrategy<String> {
    (prop::sample::select(arrays), subscript(names), subscript(names), prop::sample::select(names))
        .prop_map(|(array, first, second, name)| match array {
            "w" => format!("w[{first}, {second}]"),
            "bare w" => format!("w[{name}, {first}]"),
            "hits" => String::from("hits"),
            other => format!("{other}[{first}]"),
        })
        .boxed()
}

fn store(names: &'static [&'static str]) -> BoxedStrategy<String> {
    let operator = prop::sample::select(&["=", "=", "=", "=", "+=", "max="][..]);
    let written = element(names, &["u", "u", "w", "bare w", "y", "y", "z", "hits"]);
    let read = prop_oneof![
        3 => Just(String::from("1")),
        1 => element(names, &["u", "w", "bare w", "y", "z"]),
        1 => element(names, &["u", "w"]).prop_map(|read| format!("({read} else 0)")),
        1 => subscript(names).prop_map(|low| format!("sum(q in {low}..n: u[q])")),
    ];
    (written, operator, read)
        .prop_map(|(target, operator, value)| format!("{target} {operator} {value}"))
        .boxed()
}

fn body(names: &'static [&'static str]) -> BoxedStrategy<String> {
    prop_oneof![
        5 => store(names),
        2 => (store(names), store(names)).prop_map(|(a, b)| format!("{a}\n{b}")),
        2 => (condition(names), store(names)).prop_map(|(test, a)| format!("if {test} {{ {a} }}")),
        1 => (condition(names), store(names), store(names))
            .prop_map(|(test, a, b)| format!("if {test} {{ {a} }} else {{ {b} }}")),
        1 => (subscript(names), store(&["k", "i"]))
            .prop_map(|(value, a)| format!("let k = {value}\nif k >= 0 && k < n {{ {a} }}")),
        1 => (subscript(names), store(&["k", "i"]))
            .prop_map(|(value, a)| format!("var k = {value}\nk = k + 1\n{a}")),
        1 => (store(&["k", "i"]), 1..4i32).prop_map(|(a, step)| format!("for k in 0..n step {step} {{\n{a}\n}}")),
        1 => (store(&["k", "i"]), store(names)).prop_map(|(a, b)| format!("forall k in n {{\n{a}\n}}\n{b}")),
        1 => store(&["k", "i"]).prop_map(|a| format!("var k = i\nwhile k < n {{\n{a}\nk = k + 1\n}}")),
    ]
    .boxed()
}

fn statement() -> BoxedStrategy<String> {
    let outer = prop::sample::select(
        &["n", "n", "m", "0..n - 1", "1..n", "n / 2", "m * n", "(n + 1) / 2", "2 * n", "0..s", "s..n"][..],
    );
    let inner = prop::sample::select(&["n", "m", "0..i", "0..=i", "i + 1..n", "3"][..]);
    prop_oneof![
        3 => (outer, body(&["i"])).prop_map(|(range, body)| format!("forall i in {range} {{\n{body}\n}}")),
        3 => (prop::sample::select(&["m", "n", "2"][..]), inner, body(&["i", "j"]))
            .prop_map(|(range, inner, body)| format!("forall i in {range}, j in {inner} {{\n{body}\n}}")),
        1 => Just(String::from("y[i] = u[i]")),
        1 => Just(String::from("z[i] = 7")),
        1 => body(&["i"]).prop_map(|body| format!("for i in 0..m {{\nforall j in n {{\n{body}\n}}\n}}")),
        1 => (body(&["i"]), body(&["i"])).prop_map(|(a, b)| {
            format!("forall i in n / 2 {{\n{a}\n}}\nforall i in n / 2..n {{\n{b}\n}}")
        }),
    ]
    .boxed()
}

pub fn kernels() -> impl Strategy<Value = String> {
    let facts = prop::sample::subsequence(
        &["n % 2 == 0", "m <= n", "n == 2 * m", "s >= 0", "s < n", "m == n", "s != 0", "n >= 1"][..],
        0..3,
    );
    let lengths = prop::sample::select(&["n", "m * n", "2 * n", "n + 1"][..]);
    let statements = prop::collection::vec(statement(), 1..3);
    // What is written through `t` is refused without these.
    let values =
        ["t", "t in 0..n", "t in 1..=n", "t in 0..m", "t in 0..2", "t in -1..n - 1", "t in s..n + s"];
    let injective = prop_oneof![
        1 => Just(None),
        2 => prop::sample::select(values.to_vec()).prop_map(|values| Some(format!("injective({values})"))),
    ];
    (facts, injective, lengths, statements).prop_map(|(facts, injective, length, statements)| {
        let facts: Vec<String> = facts.into_iter().map(String::from).chain(injective).collect();
        let facts = if facts.is_empty() { String::new() } else { format!("\nwhere {}", facts.join(", ")) };
        let body = statements.join("\n");
        let results: Vec<String> = [format!("y: i32[{length}]"), String::from("z: i32[n]")]
            .into_iter()
            .filter(|result| body.contains(&result.replace(": i32", "")[..2]))
            .collect();
        let results = if results.is_empty() { String::new() } else { format!(" -> {}", results.join(", ")) };
        format!(
            "static hits: i32 = 0\nkernel probe(t: i32[n], u: inout i32[n], w: inout i32[m, n], s: i64){results}{facts} {{\n{body}\n}}\n"
        )
    })
}
