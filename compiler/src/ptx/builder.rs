//! Builds one entry: registers with readable names, labels, and statements in order.

use rustc_hash::FxHashMap;

use super::instruction::{Guard, Instruction, Op};
use super::module::{Entry, Loc, Param, Register, Statement, Variable};
use super::operand::{EntryVariable, Label, ParamId, Reg, SpecialReg};
use super::types::{RegClass, Type};

/// Fills an [`Entry`]. Names are made unique by a counter a hint, so the same calls give the same names.
#[derive(Debug)]
pub struct EntryBuilder {
    entry: Entry,
    /// How many names each hint has given out; registers and labels are kept apart by the percent sign.
    taken: FxHashMap<String, u32>,
    last_loc: Option<Loc>,
}

impl EntryBuilder {
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let mut taken = FxHashMap::default();
        taken.insert(name.clone(), 1);
        for special in SpecialReg::all() {
            let stem = special.name().split('.').next().unwrap_or_default();
            taken.insert(stem.to_owned(), 1);
        }
        EntryBuilder { entry: Entry::new(name), taken, last_loc: None }
    }

    /// The entry so far.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The entry so far, for settings that need no builder (bounds, header).
    pub fn entry_mut(&mut self) -> &mut Entry {
        &mut self.entry
    }

    /// Adds a parameter; its name is taken as it is.
    pub fn param(&mut self, param: Param) -> ParamId {
        self.taken.entry(param.name.clone()).or_insert(1);
        self.entry.params.push(param)
    }

    /// Declares a `.shared` or `.local` variable; its name is made unique.
    pub fn variable(&mut self, mut variable: Variable) -> EntryVariable {
        variable.name = self.unique(sanitize(&variable.name));
        self.entry.variables.push(variable)
    }

    /// Keeps a name (of a module-level variable, say) from being given to a label or a variable.
    pub fn reserve(&mut self, name: &str) {
        self.taken.entry(name.to_owned()).or_insert(1);
    }

    /// A new register. `hint` needs no percent sign; what PTX does not allow in names becomes `_`; an empty
    /// hint stands for one or two letters that tell the class.
    pub fn reg(&mut self, class: RegClass, hint: &str) -> Reg {
        let stem = if hint.is_empty() { class_stem(class).to_owned() } else { sanitize(hint) };
        let name = self.unique(format!("%{stem}"));
        self.entry.registers.push(Register { name, class })
    }

    /// A new register of the class that best holds `ty`.
    pub fn reg_for(&mut self, ty: Type, hint: &str) -> Reg {
        self.reg(ty.class(), hint)
    }

    /// A new label, placed later by [`place`](Self::place).
    pub fn label(&mut self, hint: &str) -> Label {
        let name = self.unique(sanitize(hint));
        self.entry.labels.push(name)
    }

    /// Puts a label at the current end of the body.
    pub fn place(&mut self, label: Label) {
        self.entry.body.push(Statement::Label(label));
    }

    /// Appends an instruction.
    pub fn emit(&mut self, op: impl Into<Op>) {
        self.entry.body.push(Statement::Instruction(Instruction::new(op)));
    }

    /// Appends an instruction that takes effect where the guard holds.
    pub fn emit_if(&mut self, guard: impl Into<Guard>, op: impl Into<Op>) {
        self.entry.body.push(Statement::Instruction(Instruction::guarded(guard.into(), op)));
    }

    /// Appends a complete instruction.
    pub fn push(&mut self, instruction: Instruction) {
        self.entry.body.push(Statement::Instruction(instruction));
    }

    /// Appends a comment line; line breaks in `text` make several.
    pub fn comment(&mut self, text: &str) {
        for line in text.lines() {
            self.entry.body.push(Statement::Comment(line.trim_end().to_owned()));
        }
    }

    /// Attaches a comment to the end of the line of the instruction emitted last.
    pub fn remark(&mut self, text: &str) {
        if let Some(Statement::Instruction(instruction)) = self.entry.body.last_mut() {
            instruction.comment = Some(text.replace(['\n', '\r'], " ").trim().to_owned());
        }
    }

    /// Appends a blank line, unless the body is empty or ends in one.
    pub fn blank(&mut self) {
        if !matches!(self.entry.body.last(), None | Some(Statement::BlankLine)) {
            self.entry.body.push(Statement::BlankLine);
        }
    }

    /// The instructions that follow come from this place; repeated places print once.
    pub fn loc(&mut self, loc: Loc) {
        if self.last_loc != Some(loc) {
            self.last_loc = Some(loc);
            self.entry.body.push(Statement::Loc(loc));
        }
    }

    /// The finished entry, in canonical form: registers are renumbered class by class.
    pub fn finish(mut self) -> Entry {
        self.entry.canonicalize();
        self.entry
    }

    fn unique(&mut self, stem: String) -> String {
        let Some(count) = self.taken.get_mut(&stem) else {
            self.taken.insert(stem.clone(), 1);
            return stem;
        };
        let separator = if stem.ends_with(|last: char| last.is_ascii_digit()) { "_" } else { "" };
        let mut next = *count;
        loop {
            next += 1;
            let name = format!("{stem}{separator}{next}");
            if !self.taken.contains_key(&name) {
                self.taken.insert(stem, next);
                self.taken.insert(name.clone(), 1);
                return name;
            }
        }
    }
}

/// The letters that nvcc uses for each class.
const fn class_stem(class: RegClass) -> &'static str {
    match class {
        RegClass::Pred => "p",
        RegClass::B16 => "rs",
        RegClass::B32 => "r",
        RegClass::B64 => "rd",
        RegClass::B128 => "rq",
        RegClass::F32 => "f",
        RegClass::F64 => "fd",
    }
}

/// A PTX identifier near to `hint`.
fn sanitize(hint: &str) -> String {
    let mut name: String = hint
        .trim_start_matches('%')
        .chars()
        .map(
            |letter| {
                if letter.is_ascii_alphanumeric() || letter == '_' || letter == '$' { letter } else { '_' }
            },
        )
        .collect();
    if !super::verify::is_identifier(&name) || name.starts_with('_') {
        // No leading digit, and neither `_` nor `WARP_SZ`, which have a meaning.
        name.insert(0, 'v');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_deterministic() {
        let mut builder = EntryBuilder::new("k");
        let names = ["i", "i", "tid", "i", "2x", "π", "i2", ""].map(|hint| {
            let reg = builder.reg(RegClass::B32, hint);
            builder.entry().registers[reg].name.clone()
        });
        assert_eq!(names, ["%i", "%i2", "%tid2", "%i3", "%v2x", "%v_", "%i2_2", "%r"]);
        let label = builder.label("k");
        assert_eq!(builder.entry().labels[label], "k2");
    }
}
