//! Where names are found, in PTX with bindings put in by hand, and that a debugger sees what runs.

use super::{Debugger, Holding, Launched, Moment, Names};
use crate::emulator::fault::Fault;
use crate::emulator::{ArgValue, Emulator, LaunchConfig, LaunchError};
use krn_compiler::data::Scalar;
use krn_compiler::ptx::{self, Binding, Operand, Statement};
use std::sync::Mutex;

/// A loop from 0 to 4 that adds its counter to a sum, and stores that at the end.
const TEXT: &str = "
.version 7.8
.target sm_90
.address_size 64

.visible .entry k(.param .u64 p)
{
    .reg .pred %more;
    .reg .b32 %j, %s, %twice;
    .reg .b64 %p;
    ld.param.u64 %p, [p];
    mov.u32 %s, 0;
    mov.u32 %j, 0;
head:
    add.u32 %twice, %j, %j;
    add.u32 %s, %s, %j;
    add.u32 %j, %j, 1;
    setp.lt.u32 %more, %j, 4;
    @%more bra head;
    st.global.u32 [%p], %s;
    ret;
}
";

/// The module, with names: `before` and `after` of an instruction, by how it starts.
fn module(bindings: &[(&str, &str, &str)]) -> ptx::Module {
    let mut module = ptx::parse(TEXT).expect("it is PTX");
    let entry = &mut module.entries[0];
    for (name, register, behind) in bindings {
        let reg = entry.registers.iter().find(|(_, data)| data.name == *register).expect("a register").0;
        let text = |statement: &Statement| match statement {
            Statement::Label(label) => entry.labels[*label].clone(),
            Statement::Instruction(instruction) => {
                let text = ptx::print_instruction(entry, &module.variables, instruction);
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            }
            _ => String::new(),
        };
        let at = entry.body.iter().position(|statement| text(statement).starts_with(behind)).expect(behind);
        let (at, value) = (at as u32 + 1, Operand::Reg(reg));
        entry.bindings.push(Binding { name: (*name).into(), ty: Scalar::U32, at, value });
    }
    module
}

/// What the debugger sees of lane 1, as lines.
#[derive(Default)]
struct Seen {
    names: Vec<&'static str>,
    lines: Mutex<Vec<String>>,
    failed: Mutex<Vec<String>>,
}

impl Debugger for Seen {
    fn begins(&self, _: &Launched<'_>) {}

    fn instruction(&self, moment: &Moment<'_>) {
        let names: &Names<'_> = moment.launch.names();
        let mut line = moment.launch.text(moment.pc);
        for name in &self.names {
            let said = match names.holding(moment.pc, name) {
                Holding::Here(operand, _) => {
                    moment.bits(operand).map_or("?".into(), |bits| bits[1].to_string())
                }
                Holding::Elsewhere => "-".to_string(),
                Holding::Several(count) => format!("{count} copies"),
                Holding::Nowhere => "nowhere".to_string(),
            };
            line.push_str(&format!(" | {name}: {said}"));
        }
        self.lines.lock().expect("no panic").push(line);
    }

    fn failed(&self, moment: &Moment<'_>, fault: &Fault) {
        self.failed
            .lock()
            .expect("no panic")
            .push(format!("{} lanes {:x}: {fault}", moment.pc, moment.active));
    }

    fn ends(&self) {}
}

fn run(module: &ptx::Module, seen: &Seen, bytes: u64) -> Result<u32, LaunchError> {
    let mut emulator = Emulator::tracking();
    let p = emulator.alloc(bytes, "p").expect("memory");
    let loaded = emulator.load_module(module).expect("it loads");
    let config = LaunchConfig::linear(1, 2);
    emulator.launch_debugged(&loaded, "k", &config, &[ArgValue::from(p)], seen, false)?;
    let mut out = [0; 4];
    emulator.copy_out(p, &mut out).expect("it is there");
    Ok(u32::from_le_bytes(out))
}

#[test]
fn names_are_of_the_round_that_runs_and_gone_where_their_register_is_written() {
    let module = module(&[
        ("j", "%j", "head"),
        ("s", "%s", "head"),
        ("twice", "%twice", "add.u32 %twice"),
        ("next", "%s", "add.u32 %s"),
        ("end", "%s", "@%more bra"),
        ("copy", "%j", "head"),
        ("copy", "%s", "head"),
    ]);
    let seen = Seen { names: vec!["j", "s", "twice", "next", "end", "copy", "no"], ..Seen::default() };
    assert_eq!(run(&module, &seen, 64), Ok(6));
    let lines = seen.lines.into_inner().expect("no panic");
    insta::assert_snapshot!(format!("{}\n", lines[..14].join("\n")));
    assert!(lines.iter().any(|line| line.contains("st.global") && line.contains("end: 6")));
}

#[test]
fn a_failing_instruction_is_shown_before_the_launch_ends() {
    let seen = Seen::default();
    assert!(matches!(run(&module(&[]), &seen, 2), Err(LaunchError::Fault(_))));
    let failed = seen.failed.into_inner().expect("no panic");
    assert_eq!(failed.len(), 1);
    assert!(failed[0].contains("lanes 3: out-of-bounds store"), "{failed:?}");
}
