//! Tests of the room as a whole: what is printed parses back.

use proptest::prelude::*;

use super::generate::{self, Dice, Ground};
use super::instruction::{Instruction, Op};
use super::module::Version;
use super::{parse, print};

#[test]
fn versions_that_are_not_known_are_refused_by_name() {
    for (version, known) in
        [("7.8", true), ("8.8", true), ("9.1", true), ("7.9", false), ("10.0", false), ("99.7", false)]
    {
        let parsed = parse(&format!(".version {version}\n.target sm_90\n.address_size 64\n"));
        assert_eq!(parsed.is_ok(), known, "{version}");
        if let Err(error) = parsed {
            let wanted = format!("there is no PTX version {version} that is known here; the newest is 9.1");
            assert_eq!(error.message, wanted);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn printed_modules_parse_back(seed: u64) {
        let module = generate::module(seed);
        let text = print(&module);
        match parse(&text) {
            Ok(parsed) => prop_assert_eq!(parsed, module),
            Err(error) => prop_assert!(false, "{}\n{}", error, text),
        }
    }

    #[test]
    fn no_text_panics_the_parser(text in "\\PC{0,200}") {
        let _ = parse(&text);
        let _ = parse(&format!(".version 7.8 .target sm_90 .visible .entry k(.param .u64 p) {{ .reg .b32 a, b; {text} }}"));
    }

    #[test]
    fn no_damage_panics_the_parser(seed: u64, cuts in prop::collection::vec((0usize..20_000, 0usize..12), 1..6)) {
        let mut text = print(&generate::module(seed % 16)).into_bytes();
        for (at, length) in cuts {
            let at = at.min(text.len());
            let end = (at + length).min(text.len());
            text.drain(at..end);
        }
        let _ = parse(&String::from_utf8_lossy(&text));
    }
}

#[test]
fn every_family_prints_and_parses_back() {
    let dice = &mut Dice(1);
    let mut module = generate::empty_module("sm_100", Version::new(8, 8), dice);
    let entry = generate::stage("every", &module, dice, |builder, dice, labels, symbols| {
        builder.reg(super::RegClass::B128, "wide");
        builder.reg(super::RegClass::B128, "wide");
        for label in labels {
            builder.place(*label);
        }
        for template in Op::templates() {
            let mut filled = 0;
            for _ in 0..20_000 {
                let op = generate::fill(&template, dice, &Ground { builder, labels, symbols });
                if let Some((op, _)) = op {
                    builder.push(Instruction::new(op));
                    filled += 1;
                    if filled == 40 {
                        break;
                    }
                }
            }
            assert!(filled >= 40, "{template:?} was filled {filled} times only");
        }
    });
    module.entries.push(entry);
    let text = print(&module);
    let parsed = parse(&text).unwrap_or_else(|error| {
        panic!("{error}\n{}", text.lines().nth(error.line as usize - 1).unwrap_or_default())
    });
    assert_eq!(parsed, module);
}
