//! Which entries show what NVIDIA's assembler says of all: of statements with one form, one is as legal as another.
//!
//! The form of a statement has its words, and of each operand no more than what it is: a register of a type, a constant, a
//! symbol.

use std::collections::{BTreeSet, HashMap};

const ENTRY: &str = "\n.visible .entry ";

/// A module with only those entries that have a form which no smaller one has, of all modules, and with its smallest one.
pub fn telling(modules: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = modules.iter().map(|module| module.split(ENTRY).collect()).collect();
    let mut entries: Vec<(usize, usize)> = Vec::new();
    for (module, parts) in parts.iter().enumerate() {
        entries.extend((1..parts.len()).map(|entry| (module, entry)));
    }
    entries.sort_by_key(|(module, entry)| (parts[*module][*entry].len(), *module, *entry));
    let mut known = BTreeSet::new();
    let mut taken: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); modules.len()];
    for (module, entry) in entries {
        let own = forms(parts[module][entry]);
        if !own.is_subset(&known) || taken[module].is_empty() {
            taken[module].insert(entry);
            known.extend(own);
        }
    }
    let rebuilt = parts.iter().zip(taken).map(|(parts, taken)| {
        let taken = taken.into_iter().flat_map(|entry| [ENTRY, parts[entry]]);
        [parts[0]].into_iter().chain(taken).collect()
    });
    rebuilt.collect()
}

/// The forms of an entry's statements, and of what is said of it before them.
fn forms(entry: &str) -> BTreeSet<String> {
    let mut types: HashMap<&str, &str> = HashMap::new();
    let mut forms = BTreeSet::new();
    let (head, body) = entry.split_once("\n{\n").expect("an entry has a body");
    // Its name, and those of its parameters, are symbols.
    forms.extend(head.lines().skip(1).map(|line| form(line, &types)));
    let mut statement = String::new();
    let mut declared = None;
    for line in body.lines().map(str::trim) {
        if let Some(of) = line.strip_prefix(".reg ") {
            declared = of.split_whitespace().next();
        }
        if let Some(ty) = declared {
            let names = line.split([' ', ',', ';']).filter(|word| word.starts_with('%'));
            types.extend(names.map(|name| (name, ty)));
            declared = declared.filter(|_| !line.ends_with(';'));
            continue;
        }
        if line.is_empty()
            || line == "}"
            || line.ends_with(':')
            || [".loc", "//"].iter().any(|no| line.starts_with(no))
        {
            continue;
        }
        statement.push_str(line);
        if line.ends_with(';') {
            forms.insert(form(&statement, &types));
            statement.clear();
        }
    }
    assert!(statement.is_empty(), "a statement ends with a semicolon: {statement}");
    forms
}

fn form(statement: &str, types: &HashMap<&str, &str>) -> String {
    let mut form = String::with_capacity(statement.len());
    let mut rest = statement;
    // Behind the guard and the mnemonic, and in declarations.
    let mut in_operands = statement.starts_with('.');
    while let Some(first) = rest.chars().next() {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_$%.".contains(letter);
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len()).max(first.len_utf8());
        let (word, after) = rest.split_at(end);
        rest = after;
        if first.is_whitespace() {
            form.push_str(if form.ends_with(' ') { "" } else { " " });
        } else if first == '-' && rest.starts_with(|next: char| next.is_ascii_digit()) {
            // The sign of a constant.
        } else if first == '%' {
            form.push_str(types.get(word).copied().unwrap_or(word));
        } else if first.is_ascii_digit() {
            form.push('#');
        } else if first == '.' || !is_part(first) {
            form.push_str(word);
        } else if in_operands {
            form.push('S');
        } else {
            form.push_str(word);
            in_operands = true;
        }
    }
    form
}

#[test]
fn statements_of_one_form_are_assembled_once() {
    let entry = |name: &str, body: &str| {
        format!(
            "{ENTRY}{name}(\n    .param .u64 p\n)\n{{\n    .reg .b32 %r, %a,\n        %b;\n    .reg .f32 %f;\n{body}}}\n"
        )
    };
    let add = entry("add", "    add.u32 %r, %a, 5;\n");
    let same = entry("same", "    add.u32  %b, %r, -17;\n    .loc 1 2 3\n$l:\n");
    let other = entry("other", "    add.u32 %r, %a, %b;\n    add.u32 %r, %a, 7;\n");
    let float = entry("float", "    @!%p bra $l;\n    mov.f32 %f, 0f3F800000;\n");
    let modules = [format!("head{add}{same}{other}"), format!("other head{same}"), format!("head{float}")];
    let texts = modules.each_ref().map(String::as_str);
    let taken = telling(&texts);
    assert_eq!(taken, [format!("head{add}{other}"), format!("other head{same}"), format!("head{float}")]);
    let forms = |body: &str| forms(entry("e", body).strip_prefix(ENTRY).expect("it begins so"));
    assert!(forms("    st.global.u32 [%a+4], %r;\n").contains("st.global.u32 [.b32+#], .b32;"));
    assert_ne!(forms("    mov.b32 %r, %f;\n"), forms("    mov.b32 %r, %a;\n"));
    assert_ne!(forms("    mov.u32 %r, %tid.x;\n"), forms("    mov.u32 %r, %tid.y;\n"));
    assert_eq!(forms("    ld.u32 %r, [one];\n"), forms("    ld.u32 %r, [two];\n"));
}
