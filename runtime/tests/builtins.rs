//! Every built-in function of the compiler's table, in every type that it takes: it compiles, runs as the reference says,
//! and is folded where its arguments are constants. A function of which any of that is missing fails here.

use crate::support::{self, compiled};
use krn_compiler::builtins::{Builtin, Signature};
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_compiler::manifest::ArgumentKind;
use krn_runtime::verify::{Case, CheckOptions, Fill, check, choose_sizes, fill};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The functions with each type that they take, and a name for the kernel.
fn all() -> impl Iterator<Item = (Builtin, Scalar, String)> {
    Builtin::all().flat_map(|builtin| {
        let types = builtin.signature().types().iter();
        types.map(move |scalar| (builtin, *scalar, format!("{}_{}", builtin.name(), scalar.name())))
    })
}

/// The types of the arguments.
fn types(builtin: Builtin, scalar: Scalar) -> Vec<Scalar> {
    let mut types = vec![scalar; builtin.arity()];
    if builtin.signature() == Signature::Select {
        types[0] = Scalar::Bool;
    }
    types
}

/// A kernel that calls the function of all pairs or triples of its arrays' elements.
fn kernel(builtin: Builtin, scalar: Scalar, name: &str) -> String {
    let (arrays, indices, dims) = (["a", "b", "c"], ["i", "j", "k"], ["n", "m", "l"]);
    let count = builtin.arity();
    let list = |items: Vec<String>| items.join(", ");
    let parameters = types(builtin, scalar)
        .into_iter()
        .zip(arrays)
        .zip(dims)
        .map(|((ty, array), dim)| format!("{array}: {ty}[{dim}]"));
    let arguments = arrays[..count].iter().zip(indices).map(|(array, index)| format!("{array}[{index}]"));
    format!(
        "kernel {name}({}) -> y: {}[{}] {{\n    y[{}] = {}({})\n}}\n",
        list(parameters.collect()),
        builtin.signature().result(scalar),
        dims[..count].join(", "),
        indices[..count].join(", "),
        builtin.name(),
        list(arguments.collect()),
    )
}

/// Each function in each type, and those of f32 once more under `fast_math`: the function, the kernel's name, its text.
fn kernels() -> Vec<(Builtin, String, String)> {
    let mut kernels = Vec::new();
    for (builtin, scalar, name) in all() {
        kernels.push((builtin, name.clone(), kernel(builtin, scalar, &name)));
        if scalar == Scalar::F32 {
            let fast = format!("fast_{name}");
            let schedule = format!("schedule {fast} {{\n    fast_math\n}}\n");
            kernels.push((builtin, fast.clone(), kernel(builtin, scalar, &fast) + &schedule));
        }
    }
    kernels
}

#[test]
fn every_function_runs_as_the_reference_says_in_every_type() {
    let kernels = kernels();
    let text: String = kernels.iter().map(|(_, _, text)| text.as_str()).collect();
    let compilation = compiled(&text, &[]);
    let device = support::device();
    let module = device.load(&compilation.compiled).expect("it loads");
    for (number, (builtin, name, _)) in kernels.iter().enumerate() {
        let kernel = &compilation.program.kernels[number];
        assert_eq!(kernel.name, *name);
        let manifest = &compilation.compiled.manifest.kernels[number];
        let extent = [500, 60, 20][builtin.arity() - 1];
        let dims = ["n", "m", "l"].iter().take(builtin.arity()).map(|dim| (dim.to_string(), extent));
        let sizes = choose_sizes(manifest, &dims.collect(), &BTreeMap::new(), 1, |_| 1).expect("sizes");
        let plans = [
            Fill::Random,
            Fill::Special,
            Fill::Range { low: 0.0, high: 1.0 },
            Fill::Range { low: -90.0, high: 90.0 },
        ];
        let (mut compared, mut uncertain) = (0, 0);
        for plan in plans {
            let mut case = Case { params: sizes.params.clone(), arrays: BTreeMap::new() };
            for (array, shape) in &sizes.shapes {
                let argument = manifest.arguments.iter().find(|argument| argument.name == *array);
                let kind = argument.map(|argument| &argument.kind);
                let Some(ArgumentKind::Array { buffer, .. }) = kind else { continue };
                // Integers and booleans have no such range.
                let is_float = buffer.element.leaves[0].scalar.is_float();
                let range = matches!(plan, Fill::Range { .. });
                let plan = if range && !is_float { Fill::Random } else { plan };
                let seed = u64::from(array.as_bytes()[0]);
                let filled = fill(array, &buffer.element, shape, &plan.into(), seed).expect("an array");
                case.arrays.insert(array.clone(), filled);
            }
            let (_, report) = check(&module, &compilation.program, kernel, &case, &CheckOptions::default())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            for output in &report.outputs {
                let found = &output.report;
                assert_eq!(found.mismatches, 0, "{name} of {plan:?}: {:?}", found.worst);
                compared += found.compared;
                uncertain += found.uncertain;
            }
        }
        // What compares nothing must not pass. Of the approximate forms little is promised far from where they are meant for.
        let most = if name.starts_with("fast_") { 3 * compared / 4 } else { compared / 2 };
        assert!(compared > 0 && uncertain <= most, "{name}: {uncertain} of {compared} are uncertain");
    }
}

/// Arguments for which every function has a value, neither 0 nor infinite.
fn literals(builtin: Builtin, scalar: Scalar) -> Vec<&'static str> {
    let at = |scalar: Scalar, at: usize| match scalar {
        Scalar::Bool => ["true", "false", "true"][at],
        Scalar::F32 => ["0.75f32", "0.5f32", "0.875f32"][at],
        Scalar::F64 => ["0.75f64", "0.5f64", "0.875f64"][at],
        Scalar::I32 => ["-20i32", "7i32", "9i32"][at],
        Scalar::I64 => ["-20i64", "7i64", "9i64"][at],
        Scalar::U32 => ["1063256064u32", "7u32", "9u32"][at],
        Scalar::U64 => ["4604930618986332160u64", "7u64", "9u64"][at],
        other => panic!("built-in functions work in wide types, not in {other}"),
    };
    types(builtin, scalar).iter().enumerate().map(|(place, scalar)| at(*scalar, place)).collect()
}

/// A number of a type, as an array of one element.
fn array(scalar: Scalar, literal: &str) -> HostArray {
    let number = literal.trim_end_matches(scalar.name());
    let bytes = match scalar {
        Scalar::Bool => vec![u8::from(literal == "true")],
        Scalar::F32 => number.parse::<f32>().expect("a float").to_le_bytes().to_vec(),
        Scalar::F64 => number.parse::<f64>().expect("a float").to_le_bytes().to_vec(),
        _ => {
            let number: i128 = number.parse().expect("an integer");
            number.to_le_bytes()[..scalar.size() as usize].to_vec()
        }
    };
    HostArray { element: ElementType::scalar(scalar), shape: vec![1], bytes }
}

/// The one number of an array.
fn number(scalar: Scalar, array: &HostArray) -> f64 {
    let mut bytes = [0; 8];
    bytes[..array.bytes.len()].copy_from_slice(&array.bytes);
    match scalar {
        Scalar::F32 => f32::from_bits(u64::from_le_bytes(bytes) as u32).into(),
        Scalar::F64 => f64::from_le_bytes(bytes),
        _ => u64::from_le_bytes(bytes) as f64,
    }
}

/// A constant of the function is what the device computes of the same arguments, up to the last bits.
#[test]
fn every_function_of_constants_is_a_constant() {
    let mut text = String::new();
    for (builtin, scalar, name) in all() {
        let result = builtin.signature().result(scalar);
        let arrays = &["a", "b", "c"][..builtin.arity()];
        let parameters: Vec<String> = arrays
            .iter()
            .zip(types(builtin, scalar))
            .map(|(array, ty)| format!("{array}: {ty}[n]"))
            .collect();
        let elements: Vec<String> = arrays.iter().map(|array| format!("{array}[i]")).collect();
        let function = builtin.name();
        let (parameters, elements) = (parameters.join(", "), elements.join(", "));
        let literals = literals(builtin, scalar).join(", ");
        write!(
            text,
            "const FOLDED_{name}: {result} = {function}({literals})\n\
             kernel {name}({parameters}) -> computed: {result}[n], folded: {result}[n] {{\n\
             \x20   computed[i] = {function}({elements})\n\
             \x20   folded[i in 0..n] = FOLDED_{name}\n}}\n"
        )
        .expect("a string");
    }
    let compilation = compiled(&text, &[]);
    let module = support::device().load(&compilation.compiled).expect("it loads");
    for (builtin, scalar, name) in all() {
        let literals = literals(builtin, scalar);
        let inputs: Vec<HostArray> = types(builtin, scalar)
            .iter()
            .zip(literals)
            .map(|(scalar, literal)| array(*scalar, literal))
            .collect();
        let named: Vec<(&str, &HostArray)> = ["a", "b", "c"].into_iter().zip(&inputs).collect();
        let outputs = module.kernel(&name).and_then(|kernel| kernel.run(&named));
        let outputs = outputs.unwrap_or_else(|error| panic!("{name}: {error}")).arrays;
        let result = builtin.signature().result(scalar);
        let [computed, folded] = ["computed", "folded"].map(|name| {
            let output = outputs.iter().find(|(output, _)| output == name).expect("an output");
            number(result, &output.1)
        });
        // As many units as the functions promise, and the host's own.
        let epsilon = match result {
            Scalar::F32 => f64::from(f32::EPSILON),
            Scalar::F64 => f64::EPSILON,
            _ => 0.0,
        };
        let distance = (computed - folded).abs();
        assert!(distance <= 4.0 * epsilon * folded.abs(), "{name}: {computed}, but as a constant {folded}");
    }
}
