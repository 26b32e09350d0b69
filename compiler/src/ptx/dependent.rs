//! Grids that start before those in front of them on a stream are done (programmatic dependent launch).

use super::instruction::modifier::GridDepAction;
use super::instruction::{GridDep, Instruction, Op};
use super::module::{Module, Statement};
use super::target::Target;

/// The module with entries that may be launched so: each thread first waits until the grids in front of its own are done
/// and all that they wrote is seen, and only then touches memory. Launched as always, it does the same as before. `None`
/// where the target cannot, and where an entry says by itself how it waits.
pub fn wait_for_grids(module: &Module) -> Option<Module> {
    if Target::find(&module.target)?.sm < 90 {
        return None;
    }
    let waits = |statement: &Statement| {
        matches!(statement, Statement::Instruction(Instruction { op: Op::GridDep(_), .. }))
    };
    if module.entries.iter().any(|entry| entry.body.iter().any(waits)) {
        return None;
    }
    let mut module = module.clone();
    for entry in &mut module.entries {
        let wait = GridDep { action: GridDepAction::Wait };
        entry.body.insert(0, Statement::Instruction(Instruction::new(wait)));
    }
    Some(module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::{parse, print, verify};

    fn module(target: &str) -> Module {
        let text = format!(
            ".version 7.8\n.target {target}\n.address_size 64\n\n.visible .entry one()\n{{\nTOP:\n    ret;\n}}\n\n\
             .visible .entry two()\n{{\n    ret;\n}}\n"
        );
        parse(&text).expect("it is PTX")
    }

    #[test]
    fn every_entry_waits_before_all_else() {
        let changed = wait_for_grids(&module("sm_90")).expect("the target has the instruction");
        let text = print(&changed);
        for body in text.split(".entry").skip(1) {
            let first = body.split(['{', ';']).nth(1).map(str::trim);
            assert_eq!(first, Some("griddepcontrol.wait"), "{text}");
        }
        assert!(verify(&changed).is_empty());
        assert_eq!(parse(&text).expect("its own text"), changed);
        assert!(wait_for_grids(&changed).is_none(), "it waits already");
        assert!(wait_for_grids(&module("sm_89")).is_none());
    }
}
