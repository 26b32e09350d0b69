//! Every elementary function as a kernel of its own: printed, parsed back, and assembled by NVIDIA's `ptxas`.

use krn_compiler::ptx::instruction::{Ld, Leave, LeaveOp, St};
use krn_compiler::ptx::math::{MathFunction, emit, emit_fast};
use krn_compiler::ptx::module::Version;
use krn_compiler::ptx::{
    Address, Base, Entry, EntryBuilder, Module, Operand, Param, ParamId, Reg, Space, Type, parse, print,
};
use xtask::ptxas::Assembler;

/// A kernel `y[0] = f(x[0], x[1])`, accurate or fast; `None` if there is no fast form.
fn kernel(function: MathFunction, ty: Type, fast: bool) -> Option<Entry> {
    let mut builder =
        EntryBuilder::new(format!("{}_{ty}{}", function.name(), if fast { "_fast" } else { "" }));
    let pointer = |builder: &mut EntryBuilder, param: ParamId, name: &str| {
        let dst = builder.reg_for(Type::U64, name);
        builder.emit(Ld {
            space: Space::Param,
            ty: Type::U64,
            dst: vec![dst].into(),
            address: param.into(),
            ..Default::default()
        });
        dst
    };
    let params = ["x", "y"].map(|name| builder.param(Param::global_pointer(name, 8)));
    let [x, y] = [0, 1].map(|i| pointer(&mut builder, params[i], ["px", "py"][i]));
    let args: Vec<Reg> = (0..function.arity() as i64)
        .map(|i| {
            let dst = builder.reg_for(ty, "arg");
            let address = Address::new(Base::Reg(x), 8 * i);
            builder.emit(Ld {
                space: Space::Global,
                ty,
                dst: vec![dst].into(),
                address,
                ..Default::default()
            });
            dst
        })
        .collect();
    let result = if fast {
        emit_fast(&mut builder, function, &args)?
    } else {
        emit(&mut builder, function, ty, &args)
    };
    builder.emit(St {
        space: Space::Global,
        ty,
        src: vec![Operand::Reg(result)].into(),
        address: y.into(),
        ..Default::default()
    });
    builder.emit(Leave { op: LeaveOp::Ret });
    Some(builder.finish())
}

fn module(target: &str) -> Module {
    let version = match target {
        "sm_100" | "sm_120" => Version::new(8, 7),
        "sm_89" | "sm_90" | "sm_90a" => Version::new(8, 0),
        "sm_86" => Version::new(7, 1),
        // tanh.approx; everything else is older.
        _ => Version::new(7, 0),
    };
    let mut module = Module::new(version, target);
    for function in MathFunction::ALL.iter().copied() {
        module
            .entries
            .extend([Type::F32, Type::F64].into_iter().filter_map(|ty| kernel(function, ty, false)));
        module.entries.extend(kernel(function, Type::F32, true));
    }
    module.canonicalize();
    module
}

#[test]
fn functions_print_and_parse_back() {
    let module = module("sm_75");
    let parsed = parse(&print(&module)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(parsed, module);
}

#[test]
fn functions_assemble_for_every_target() {
    let assembler = Assembler::find().unwrap_or_else(|error| panic!("{error}"));
    let complaints = assembler
        .assemble_for_targets(&xtask::tested_targets(krn_compiler::TARGETS), |target| print(&module(target)));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
