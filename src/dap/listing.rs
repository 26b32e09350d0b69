//! The PTX around an instruction, as the protocol's disassembly: addresses are places in the entry.

use super::program::Program;
use krn_runtime::emulator::debug::Moment;
use serde_json::{Value, json};

/// Most instructions of an answer.
const MOST: i64 = 10_000;

/// So many instructions, from `offset` instructions behind the one at `address` on. What lies outside of the entry is
/// said to be none.
pub fn disassembly(program: &Program, moment: &Moment<'_>, address: i64, offset: i64, count: i64) -> Value {
    let launch = moment.launch;
    let first = address.saturating_add(offset);
    let mut last_line = 0;
    let instruction = |place: i64| {
        let pc = usize::try_from(place).ok().filter(|pc| *pc < launch.instructions());
        let Some(pc) = pc else {
            let address = self::address(place);
            return json!({ "address": address, "instruction": "", "presentationHint": "invalid" });
        };
        let mut found = json!({ "address": self::address(place), "instruction": launch.text(pc) });
        if let Some(location) = launch.location(pc)
            && location.line != last_line
        {
            last_line = location.line;
            found["location"] = source(program);
            found["line"] = location.line.into();
            found["column"] = location.column.max(1).into();
        }
        found
    };
    let places = first..first.saturating_add(count.clamp(0, MOST));
    json!({ "instructions": places.map(instruction).collect::<Vec<_>>() })
}

/// How an instruction's place is written. Places before the entry stand at the end of the numbers.
pub fn address(place: i64) -> String {
    format!("{:#x}", place as u64)
}

/// A place, as it is written.
pub fn place(address: &str) -> Option<i64> {
    let bits = match address.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => address.parse().ok()?,
    };
    Some(bits as i64)
}

/// The file.
pub fn source(program: &Program) -> Value {
    let path = std::path::absolute(&program.path).unwrap_or_else(|_| program.path.clone());
    let name = program.path.file_name().map(|name| name.to_string_lossy().to_string());
    json!({ "name": name, "path": path.display().to_string() })
}
