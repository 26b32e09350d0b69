//! Which code runs for which sizes, when it is compiled and loaded, and who hears of it.

use crate::support::{self, compiled, device};
use krn_compiler::CompiledModule;
use krn_compiler::fat::{Fat, Image};
use krn_compiler::manifest::{BinaryOp, Expr, Guard, Step, UnaryOp};
use krn_runtime::{
    Argument, Array, Device, Error, Kernel, Launcher, Module, NewVariant, Operand, Stream, Value,
};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// `y = x + number`, with a parameter that no code depends on.
fn text(number: i32) -> String {
    format!("kernel k(p: i32, x: i32[n]) -> y: i32[n] {{ y[i] = x[i] + p + {number} }}\n")
}

/// A comparison of a symbol of the kernel.
fn compare(module: &CompiledModule, op: BinaryOp, symbol: &str, number: i64) -> Expr {
    let symbols = &module.manifest.kernels[0].symbols;
    let symbol = symbols.iter().position(|known| known.name == symbol).expect("a symbol of the kernel");
    Expr::binary(op, Expr::Symbol(symbol), Expr::Int(number))
}

fn chosen_by(condition: Expr) -> Guard {
    Guard { relies_on: Vec::new(), chosen_by: vec![condition] }
}

fn rename(plan: &mut [Step], name: &str) {
    for step in plan {
        if let Step::Launch(launch) = step {
            launch.entry = name.to_string();
        }
    }
}

/// A module whose general plan adds 1000, and which has a variant for what `special` says that adds 2000. Nobody can
/// compile another one.
fn two_variants(special: impl Fn(&CompiledModule) -> Expr) -> CompiledModule {
    let mut module = compiled(&text(1000), &[]).compiled;
    let other = compiled(&text(2000), &[]).compiled;
    let mut entry = other.module.entries[0].clone();
    entry.name = "k_special".to_string();
    module.module.entries.push(entry);
    let mut variant = other.manifest.kernels[0].variants[0].clone();
    rename(&mut variant.plan, "k_special");
    variant.guard = chosen_by(special(&module));
    let otherwise = Expr::Unary(UnaryOp::Not, special(&module).into());
    module.manifest.kernels[0].variants[0].guard = chosen_by(otherwise);
    module.manifest.kernels[0].variants.insert(0, variant);
    module.origin = None;
    module
}

/// A module whose general plan is for fewer than 64 elements; what else is wanted is compiled.
fn for_few() -> CompiledModule {
    let mut module = compiled(&text(1000), &[]).compiled;
    let kernel = &module.manifest.kernels[0];
    assert_eq!(kernel.variants.len(), 1, "element by element there is nothing to choose");
    let guard = chosen_by(compare(&module, BinaryOp::Less, "n", 64));
    module.manifest.kernels[0].variants[0].guard = guard;
    module
}

/// What the kernel adds to so many zeros.
fn added(kernel: &Kernel<'_>, device: &Device, p: i32, count: usize) -> Result<i32, Error> {
    let x = Array::<i32, 1>::zeros(device, [count])?;
    let p = krn_runtime::scalar(krn_runtime::Scalar::I32, &p.to_le_bytes());
    let results = kernel.launch(&[("p", Argument::Value(&p)), ("x", Argument::Array(x.dynamic()))])?;
    let y = Array::<i32, 1>::from_dynamic(results.into_iter().next().expect("one result").1)?.to_vec()?;
    assert!(y.iter().all(|value| *value == y[0]));
    Ok(y[0])
}

/// All that the device tells from now on.
fn watched(device: &Device) -> Arc<Mutex<Vec<NewVariant>>> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&told);
    device.watch_variants(move |new| list.lock().expect("nobody panics").push(new.clone()));
    told
}

#[test]
fn the_first_variant_whose_guard_holds_runs_else_the_general_plan() {
    let device = device();
    let mut module = two_variants(|module| compare(module, BinaryOp::GreaterEqual, "n", 100));
    // Not even the general plan was chosen for 64 to 99: without a compiler it runs all the same.
    let few = chosen_by(compare(&module, BinaryOp::Less, "n", 64));
    module.manifest.kernels[0].variants[1].guard = few;
    let module = device.load(&module).expect("good");
    let kernel = module.kernel("k").expect("there");
    for (count, wanted) in [(99, 1000), (100, 2000), (63, 1000), (64, 1000), (1000, 2000), (1, 1000)] {
        assert_eq!(added(&kernel, &device, 0, count).expect("it runs"), wanted, "{count}");
    }
}

#[test]
fn a_plan_is_made_for_the_values_that_its_guard_depends_on() {
    let device = device();
    let module = two_variants(|module| compare(module, BinaryOp::GreaterEqual, "p", 5));
    let module = Arc::new(device.load(&module).expect("good"));
    let launcher = Launcher::new(&module, "k").expect("there");
    let stream = device.stream().expect("opens");
    let x = Array::<i32, 1>::zeros(&device, [10]).expect("small");
    for p in [4, 5, 6, 4, 3, 5, 4] {
        let operands = [Operand::value(&p), Operand::Array(x.dynamic()), Operand::Absent];
        let y = launcher.launch(&stream, &operands).expect("it runs").remove(0);
        let y = Array::<i32, 1>::from_dynamic(y).expect("i32").to_vec().expect("copied");
        assert_eq!(y, [if p >= 5 { 2000 + p } else { 1000 + p }; 10]);
    }
}

#[test]
fn code_for_new_sizes_is_compiled_once_and_told() {
    let device = device();
    let told = watched(&device);
    let module = device.load(&for_few()).expect("good");
    let kernel = module.kernel("k").expect("there");
    let told = || std::mem::take(&mut *told.lock().expect("nobody panics"));
    assert_eq!(told(), []);
    for count in [10, 20] {
        assert_eq!(added(&kernel, &device, 3, count).expect("it runs"), 1003);
    }
    let [first] = &told()[..] else { panic!("one variant was loaded") };
    assert_eq!((first.kernel.as_str(), first.guard.as_str()), ("k", "n < 64"));
    assert!(first.compile.is_none() && first.assemble.is_some(), "{first}");
    let sizes =
        ["p", "n"].map(|name| first.sizes.iter().find(|(known, _)| known == name).map(|(_, size)| *size));
    assert_eq!(sizes, [Some(Value::Int(3)), Some(Value::Int(10))]);
    for count in [64, 1000, 64] {
        assert_eq!(added(&kernel, &device, 3, count).expect("it runs"), 1003);
    }
    let [second] = &told()[..] else { panic!("one variant was compiled") };
    assert!(second.compile.is_some() && second.why.contains("n < 64"), "{second}");
    // The compiler answered with the general code, which is there.
    assert!(second.assemble.is_none(), "{second}");
}

#[test]
fn documents_with_their_source_have_code_made_for_new_sizes() {
    let device = device();
    let told = watched(&device);
    let mut compiled = for_few();
    compiled.origin = support::compiled(&text(1000), &[]).compiled.origin;
    let mut image = Image::new("sm_90", compiled, None);
    // With the source the compiler is asked for 100; without, the general plan runs.
    for compiles in [true, false] {
        let document = Fat::new(vec![image.clone()]).to_json();
        let module = Module::from_fat(&device, &document).expect("good");
        let kernel = module.kernel("k").expect("there");
        for count in [10, 100] {
            assert_eq!(added(&kernel, &device, 3, count).expect("it runs"), 1003);
        }
        let new = std::mem::take(&mut *told.lock().expect("nobody panics"));
        assert_eq!(new.iter().any(|new| new.compile.is_some()), compiles, "{new:?}");
        image.source = None;
    }
}

#[test]
fn threads_that_want_the_same_code_wait_for_one_compilation() {
    let device = device();
    let told = watched(&device);
    let mut module = for_few();
    // So that what is compiled is none of the module's code.
    rename(&mut module.manifest.kernels[0].variants[0].plan, "k_other");
    module.module.entries[0].name = "k_other".to_string();
    let module = device.load(&module).expect("good");
    let kernel = module.kernel("k").expect("there");
    let start = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (device, start) = (&device, &start);
            scope.spawn(move || {
                start.wait();
                assert_eq!(added(&kernel, device, thread, 100).expect("it runs"), 1000 + thread);
            });
        }
    });
    let told = told.lock().expect("nobody panics");
    assert_eq!(told.iter().filter(|new| new.compile.is_some()).count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|new| new.assemble.is_some()).count(), 1, "{told:?}");
}

#[test]
fn what_is_captured_takes_code_that_is_there() {
    let device = device();
    let told = watched(&device);
    let module = Arc::new(device.load(&for_few()).expect("good"));
    let (kernel, launcher) =
        (module.kernel("k").expect("there"), Launcher::new(&module, "k").expect("there"));
    let stream = device.stream().expect("opens");
    let capture = |count: usize| {
        let x = Array::<i32, 1>::zeros(&device, [count])?;
        let launch = |stream: &Stream| {
            let operands = [Operand::value(&0i32), Operand::Array(x.dynamic()), Operand::Absent];
            launcher.launch(stream, &operands).map(drop)
        };
        stream.capture(launch)
    };
    let refused = |count: usize| match capture(count) {
        Err(error @ Error::NotPrepared { .. }) => error.to_string(),
        other => panic!("it was to be refused: {:?}", other.map(|graph| graph.len())),
    };
    // Not loaded, and not even compiled.
    assert!(refused(10).contains("kernel `k`: its code for n = 10, p = 0 is not loaded"), "{}", refused(10));
    assert!(refused(100).contains("call `prepare`"));
    assert!(told.lock().expect("nobody panics").is_empty(), "nothing was loaded either");
    kernel.prepare(&[("n", 10.into())]).expect("good");
    capture(10).expect("it is there").launch(&stream).expect("queued");
    refused(100);
    launcher.prepare(&[("n", 100.into()), ("p", 7.into())]).expect("good");
    assert_eq!(capture(1000).expect("the same code").len(), 1);
}

#[test]
fn preparing_checks_what_it_is_given() {
    let device = device();
    let text =
        "kernel k(a: f32, b: bool, x: f32[m, n]) -> y: f32[m, n] where n >= 2 { y[i, j] = a * x[i, j] }";
    let mut module = compiled(text, &[]).compiled;
    let load = |module: &CompiledModule| device.load(module).expect("good");
    let plain = load(&module);
    let kernel = plain.kernel("k").expect("there");
    let refused = |kernel: &Kernel<'_>, sizes: &[(&str, Value)]| {
        kernel.prepare(sizes).expect_err("it must not go through").to_string()
    };
    kernel.prepare(&[("m", 3.into()), ("n", 4.into())]).expect("all dimensions");
    let all = [("m", 3.into()), ("n", 4.into()), ("a", 0.5.into()), ("b", true.into())];
    kernel.prepare(&all).expect("all there is");
    assert_eq!(refused(&kernel, &[("m", 3.into())]), "kernel `k`: `prepare` needs a value for `n`");
    let unknown = refused(&kernel, &[("k", 3.into())]);
    assert!(unknown.contains("has no dimension or parameter `k`; it has "), "{unknown}");
    assert!(unknown.contains("`m`") && unknown.contains("`n`"), "{unknown}");
    assert!(refused(&kernel, &[("m", 3.into()), ("m", 3.into())]).contains("`m` was given twice"));
    assert!(refused(&kernel, &[("m", (-1).into())]).contains("`m` cannot be -1: it is a dimension"));
    assert!(refused(&kernel, &[("a", 1.into())]).contains("`a` cannot be 1: it is a `f32`"));
    assert!(refused(&kernel, &[("m", 3.into()), ("n", 1.into())]).contains("`where n >= 2` does not hold"));
    // Code that depends on a parameter.
    let symbols = &module.manifest.kernels[0].symbols;
    let Some(a) = symbols.iter().position(|symbol| symbol.name == "a") else {
        return; // A parameter that no condition can name.
    };
    let condition = Expr::binary(BinaryOp::Greater, Expr::Symbol(a), Expr::Float(0.0));
    module.manifest.kernels[0].variants[0].guard = chosen_by(condition);
    let module = load(&module);
    let kernel = module.kernel("k").expect("there");
    let undecided = refused(&kernel, &[("m", 3.into()), ("n", 4.into())]);
    assert!(undecided.contains("`a`") && undecided.contains("`prepare` needs it too"), "{undecided}");
    kernel.prepare(&[("m", 3.into()), ("n", 4.into()), ("a", 0.5.into())]).expect("decided");
}

#[test]
fn code_that_is_loaded_apart_shares_statics() {
    let device = device();
    let text = "
static calls: i32 = 5
static table: f32[4] = [1.0, 2.0, 4.0, 8.0]
kernel count(x: f32[n]) -> y: f32[n] { calls += 1; y[i] = x[i] + table[i % 4] }
kernel seen(x: i32[n]) -> y: i32[n] { y[i] = x[i] + calls }
kernel change(x: f32[4]) { table[i] = x[i] }
";
    let module = Module::from_source(&device, "apart.krn", text).expect("good");
    let kernel = |name: &str| module.kernel(name).expect("there");
    let floats = Array::<f32, 1>::zeros(&device, [4]).expect("small");
    let whole = Array::<i32, 1>::zeros(&device, [3]).expect("small");
    let seen = || {
        let results = kernel("seen").launch(&[("x", Argument::Array(whole.dynamic()))]).expect("it runs");
        let y = results.into_iter().next().expect("one").1;
        Array::<i32, 1>::from_dynamic(y).expect("i32").to_vec().expect("copied")
    };
    let count = || {
        let results = kernel("count").launch(&[("x", Argument::Array(floats.dynamic()))]).expect("it runs");
        let y = results.into_iter().next().expect("one").1;
        Array::<f32, 1>::from_dynamic(y).expect("f32").to_vec().expect("copied")
    };
    assert_eq!(count(), [1.0, 2.0, 4.0, 8.0]);
    assert_eq!(seen(), [6; 3]);
    kernel("change").launch(&[("x", Argument::Array(floats.dynamic()))]).expect("it runs");
    assert_eq!(count(), [0.0; 4]);
    assert_eq!(seen(), [7; 3]);
    module.static_value::<i32>("calls").expect("there").write(&[40]).expect("copied");
    assert_eq!(seen(), [40; 3]);
    assert_eq!(module.static_value::<i32>("calls").expect("there").read().expect("copied"), [40]);
}

/// Says what ran in a process of its own, whose only work is `test`.
fn process(test: &str, settings: &[(&str, &str)]) -> (String, String) {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args([&format!("variants::{test}"), "--exact", "--nocapture", "--test-threads=1"]);
    command.env("KRN_VARIANTS_CHILD", "1").envs(settings.iter().copied());
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}{errors}");
    (said, errors)
}

fn is_child() -> bool {
    std::env::var_os("KRN_VARIANTS_CHILD").is_some()
}

#[test]
fn the_log_has_a_line_for_each_new_code() {
    if is_child() {
        let device = device();
        let module = device.load(&for_few()).expect("good");
        let kernel = module.kernel("k").expect("there");
        for count in [10, 10, 100, 200] {
            added(&kernel, &device, 0, count).expect("it runs");
        }
        return;
    }
    let lines = |setting: &str| {
        let (_, errors) = process("the_log_has_a_line_for_each_new_code", &[("KRN_LOG", setting)]);
        let lines = errors.lines().filter(|line| line.starts_with("krn: kernel `k`, "));
        lines.map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(lines("other"), Vec::<String>::new());
    let lines = lines("other,variants");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("n = 10") && lines[0].contains("code for n < 64; not compiled, assembled in "));
    assert!(lines[1].contains("n = 100") && lines[1].contains("compiled in "), "{lines:?}");
}

/// Sums of floats, whose order shows in the last bits.
const SUMS: &str = "
kernel total(x: f32[n]) -> s: f32 { s = sum(i: x[i] * x[i]) }
kernel rows(x: f32[m, n]) -> s: f32[m] { s[i] = sum(j: x[i, j]) }
";
const COUNTS: [usize; 10] = [1, 3, 64, 100, 1000, 1024, 4096, 5000, 16384, 70000];

/// The bits of all results, with the sizes taken in their order or the other way round.
fn bits(backwards: bool) -> Vec<Vec<u32>> {
    let device = device();
    let module = device.load(&compiled(SUMS, &[]).compiled).expect("good");
    let mut all = vec![Vec::new(); COUNTS.len()];
    let mut order: Vec<usize> = (0..COUNTS.len()).collect();
    if backwards {
        order.reverse();
    }
    for at in order {
        let count = COUNTS[at];
        let values: Vec<f32> = (0..count).map(|i| 1.0 / (1.0 + (i * 7919 % 1013) as f32)).collect();
        let whole = Array::from_slice(&device, [count], &values).expect("small");
        let rows = if count.is_multiple_of(4) { 4 } else { 1 };
        let table = Array::from_slice(&device, [rows, count / rows], &values).expect("small");
        for (kernel, array) in [("total", whole.dynamic()), ("rows", table.dynamic())] {
            let kernel = module.kernel(kernel).expect("there");
            let results = kernel.launch(&[("x", Argument::Array(array))]).expect("it runs");
            let bytes = results[0].1.download().expect("copied").bytes;
            all[at].extend(bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().expect("4 bytes"))));
        }
    }
    all
}

#[test]
fn results_are_a_function_of_the_arguments_in_every_process() {
    if is_child() {
        println!("bits {:?}", bits(std::env::var_os("BACKWARDS").is_some()));
        return;
    }
    let test = "results_are_a_function_of_the_arguments_in_every_process";
    let wanted = format!("bits {:?}", bits(false));
    std::thread::scope(|scope| {
        let settings: [&'static [(&str, &str)]; 2] = [&[], &[("BACKWARDS", "1")]];
        let processes = settings.map(|settings| scope.spawn(move || process(test, settings).0));
        for process in processes {
            let said = process.join().expect("it ran");
            assert!(said.contains(&wanted), "{said} instead of {wanted}");
        }
    });
}
