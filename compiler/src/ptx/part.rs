//! Parts of a module that a driver can load apart: some of its entries, or variables without code.

use super::grammar::Slot;
use super::module::{Entry, Module, Statement};
use super::operand::{Base, ModuleVariable, Operand, Symbol};
use cranelift_entity::{EntityRef, SecondaryMap};

impl Module {
    /// The entries of these names, in the order of the module, and the variables that they need. It says nothing at its top:
    /// equal entries of two modules are equal parts.
    pub fn part(&self, entries: &[&str]) -> Module {
        let mut part = self.frame();
        let chosen = self.entries.iter().filter(|entry| entries.contains(&entry.name.as_str()));
        part.entries = chosen.cloned().collect();
        let mut used: SecondaryMap<ModuleVariable, bool> = SecondaryMap::new();
        for entry in &mut part.entries {
            each_variable(entry, &mut |variable| used[*variable] = true);
        }
        let mut places = SecondaryMap::with_default(ModuleVariable::new(0));
        for (variable, data) in self.variables.iter().filter(|(variable, _)| used[*variable]) {
            places[variable] = part.variables.push(data.clone());
        }
        for entry in &mut part.entries {
            each_variable(entry, &mut |variable| *variable = places[*variable]);
        }
        part
    }

    /// The variables of these names, without code.
    pub fn variables_of(&self, names: &[&str]) -> Module {
        let mut part = self.frame();
        for variable in self.variables.values().filter(|variable| names.contains(&variable.name.as_str())) {
            part.variables.push(variable.clone());
        }
        part
    }

    fn frame(&self) -> Module {
        Module { files: self.files.clone(), ..Module::new(self.version, self.target.clone()) }
    }
}

/// Calls `visit` with each variable of the module that an entry names.
fn each_variable(entry: &mut Entry, visit: &mut impl FnMut(&mut ModuleVariable)) {
    for tile in &mut entry.tiles {
        if let Symbol::Module(variable) = &mut tile.variable {
            visit(variable);
        }
    }
    let mut operand = |operand: &mut Operand| {
        if let Operand::Symbol(Symbol::Module(variable), _) = operand {
            visit(variable);
        }
    };
    for statement in &mut entry.body {
        let Statement::Instruction(instruction) = statement else { continue };
        instruction.op.each_operand(|slot| match slot {
            Slot::Source(source, _)
            | Slot::SourceRange(source, _)
            | Slot::SourceSymbol(source, _)
            | Slot::SourceWide(source, _)
            | Slot::SourceAny(source, _) => operand(source),
            Slot::SourceVector(sources, _) => sources.iter_mut().for_each(&mut operand),
            Slot::SourceParts(sources, _) => sources.iter_mut().for_each(&mut operand),
            Slot::Address(address, _) => {
                if let Base::Symbol(symbol @ Symbol::Module(_)) = &mut address.base {
                    let mut source = Operand::Symbol(*symbol, 0);
                    operand(&mut source);
                    if let Operand::Symbol(changed, _) = source {
                        *symbol = changed;
                    }
                }
            }
            Slot::Write(..)
            | Slot::WriteWide(..)
            | Slot::WritePair(..)
            | Slot::WriteVector(..)
            | Slot::WriteParts(..)
            | Slot::WriteGroup(..)
            | Slot::ReadGroup(..)
            | Slot::Read(..)
            | Slot::Pred(_)
            | Slot::Number(..)
            | Slot::Label(_) => {}
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{generate, parse, print, verify};

    #[test]
    fn entries_stand_alone_with_the_variables_that_they_name() {
        for seed in 0..40 {
            let module = generate::module(seed);
            for entry in &module.entries {
                let part = module.part(&[&entry.name]);
                // All that is printed of the entry is the same: each variable has kept its name.
                let body = |text: &str| text[text.find(".visible .entry").unwrap_or(0)..].to_string();
                let alone = super::Module { entries: vec![entry.clone()], ..module.clone() };
                assert_eq!(body(&print(&part)), body(&print(&alone)), "seed {seed}");
                let problems = |module| verify(module).iter().map(ToString::to_string).collect::<Vec<_>>();
                assert_eq!(problems(&part), problems(&alone), "seed {seed}");
                for variable in part.variables.values() {
                    assert!(body(&print(&part)).contains(&variable.name), "{} is not needed", variable.name);
                }
            }
        }
    }

    #[test]
    fn variables_stand_without_code() {
        let text = ".version 7.8\n.target sm_90\n.address_size 64\n\n.visible .global .align 16 .b8 one[4];\n\
                    .const .align 16 .b8 two[4] = {1, 2, 3, 4};\n\n.visible .entry k()\n{\n    ret;\n}\n";
        let module = parse(text).expect("it is PTX");
        let part = module.variables_of(&["one"]);
        assert_eq!((part.variables.len(), part.entries.len()), (1, 0));
        assert_eq!(parse(&print(&part)).expect("its own text"), part);
        assert!(verify(&part).is_empty());
    }
}
