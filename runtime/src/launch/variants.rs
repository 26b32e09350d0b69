//! The code of a module, kernel by kernel: the variants that are known, and those that are compiled for a launch.
//!
//! Which variant runs is a function of the sizes alone: guards of a kernel exclude each other, so it does not matter which
//! of them are known when somebody asks. What runs where no guard holds and nobody can compile is the general plan.

use crate::backend::{LoadedModule, MachineCode};
use crate::device::Device;
use crate::device::watch::NewVariant;
use crate::error::compile::CompileFailure;
use crate::error::{Error, Result};
use crate::launch::code::Code;
use crate::launch::decisive::{by_guard, by_plan, by_signature, either};
use crate::launch::sizes::Sizes;
use crate::launch::turns::has_while;
use krn_compiler::manifest::{
    ArgumentKind, BufferManifest, Guard, KernelManifest, LaunchArgument, Manifest, Step, Variant,
};
use krn_compiler::{CompiledModule, Origin, ptx};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Objections that a message about new code lists at most.
const OBJECTIONS: usize = 4;

/// What all handles of a module share.
pub(crate) struct ModuleCode {
    pub manifest: Arc<Manifest>,
    kernels: Vec<Variants>,
    /// What has the statics, where there are any.
    statics: Option<Arc<Code>>,
    /// Of the statics, once they are loaded.
    addresses: OnceLock<Vec<u64>>,
    origin: Option<Origin>,
}

/// The variants of a kernel.
struct Variants {
    /// Those of the manifest, and behind them those that were compiled for launches.
    known: RwLock<Vec<Arc<KnownVariant>>>,
    /// What the general plan is chosen by where no guard of the manifest holds.
    decisive: Vec<bool>,
    /// Held by the thread that compiles.
    compiling: Mutex<()>,
}

/// A variant with its code.
pub(crate) struct KnownVariant {
    pub variant: Variant,
    code: Arc<Code>,
    /// One an argument: whether it is one by value that a plan is made for.
    decisive: Vec<bool>,
    pub has_checks: bool,
    /// Whether graphs that it is captured into need code of their own.
    needs_graph_code: bool,
    has_statics: bool,
    /// Names and types of the kernel's arguments, for messages.
    pub heads: Arc<[String]>,
}

/// The variant that runs, loaded.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub known: Arc<KnownVariant>,
    pub loaded: Arc<dyn LoadedModule>,
    /// One an argument: whether it is one by value on which this choice, or what is launched, depends.
    pub decisive: Vec<bool>,
}

impl KnownVariant {
    fn new(kernel: &KernelManifest, variant: Variant, code: Arc<Code>) -> Arc<Self> {
        let decisive = either(&by_signature(kernel), &by_guard(kernel, &variant.guard));
        let decisive = either(&decisive, &by_plan(kernel, &variant));
        let (mut has_checks, mut has_statics) = (false, false);
        each_argument(&variant.plan, &mut |argument| {
            has_checks |= *argument == LaunchArgument::ErrorRecord;
            has_statics |= matches!(argument, LaunchArgument::Static(_));
        });
        let heads = kernel.arguments.iter().map(|argument| {
            let (ArgumentKind::Array { buffer: BufferManifest { element, .. }, .. }
            | ArgumentKind::Value { element }) = &argument.kind;
            format!("{}: {}", argument.name, element.name)
        });
        let heads = heads.collect();
        let needs_graph_code = has_while(&variant.plan) || kernel.print_bytes() > 0;
        Arc::new(Self { variant, code, decisive, has_checks, needs_graph_code, has_statics, heads })
    }

    /// The PTX of its entries.
    pub fn ptx(&self) -> ptx::Module {
        let names = entries(&self.variant.plan);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.code.module().part(&names)
    }

    /// Its plan and the PTX of its entries, which are called by their numbers.
    fn numbered(&self) -> (Vec<Step>, ptx::Module) {
        let names = entries(&self.variant.plan);
        let number = |name: &String| names.iter().position(|known| known == name).unwrap_or(0).to_string();
        let (mut plan, mut ptx) = (self.variant.plan.clone(), self.ptx());
        each_entry(&mut plan, &mut |name| *name = number(name));
        ptx.entries.iter_mut().for_each(|entry| entry.name = number(&entry.name));
        ptx.entries.sort_by(|left, right| left.name.cmp(&right.name));
        (plan, ptx)
    }

    /// Whether it launches the same code in the same way, whatever the entries are called.
    fn is_same(&self, other: &Self) -> bool {
        let scratch = self.variant.scratch == other.variant.scratch;
        scratch && self.variant.plan.len() == other.variant.plan.len() && self.numbered() == other.numbered()
    }

    /// The same code for the sizes of another guard.
    fn with_guard(&self, kernel: &KernelManifest, guard: Guard) -> Arc<Self> {
        let variant = Variant { guard, ..self.variant.clone() };
        Self::new(kernel, variant, Arc::clone(&self.code))
    }
}

impl ModuleCode {
    /// Of the PTX, or of the machine code that was made of it. Nothing is loaded yet.
    pub fn new(compiled: &CompiledModule, machine: Option<MachineCode<'_>>) -> Self {
        let manifest = Arc::new(compiled.manifest.clone());
        let module = Arc::new(compiled.module.clone());
        let has_statics = !manifest.statics.is_empty();
        let machine = machine.map(|machine| Code::machine(&module, machine, has_statics));
        let variants = |kernel: &KernelManifest| {
            let known = kernel.variants.iter().map(|variant| {
                let code = machine.clone();
                let code = code.unwrap_or_else(|| Code::entries(&module, entries(&variant.plan)));
                KnownVariant::new(kernel, variant.clone(), code)
            });
            let guards = kernel.variants.iter().map(|variant| by_guard(kernel, &variant.guard));
            let nothing = vec![false; kernel.arguments.len()];
            let decisive = guards.fold(nothing, |all, guard| either(&all, &guard));
            Variants { known: RwLock::new(known.collect()), decisive, compiling: Mutex::default() }
        };
        let kernels = manifest.kernels.iter().map(variants).collect();
        let symbols = || manifest.statics.iter().map(|variable| variable.symbol.clone()).collect();
        let statics = has_statics.then(|| machine.unwrap_or_else(|| Code::variables(&module, symbols())));
        let origin = compiled.origin.clone();
        Self { kernels, statics, addresses: OnceLock::new(), origin, manifest }
    }

    /// The variant of a kernel that runs for these sizes, loaded. Where nobody has it, it is compiled, and loaded; on a
    /// stream that is captured that is an error.
    pub fn variant(
        &self,
        device: &Device,
        kernel: usize,
        sizes: Sizes<'_>,
        captured: bool,
    ) -> Result<Chosen> {
        let manifest = &self.manifest.kernels[kernel];
        let variants = &self.kernels[kernel];
        let mut compiled = None;
        let known = match variants.find(manifest, sizes)? {
            Some(known) => Some(known),
            None if captured && self.origin.is_some() => return Err(not_prepared(manifest, sizes)),
            None => match &self.origin {
                Some(origin) => variants.compile(manifest, sizes, origin, &mut compiled)?,
                None => None,
            },
        };
        let (known, decisive) = match known {
            Some(known) => (Arc::clone(&known), known.decisive.clone()),
            None => {
                let known = variants.general(manifest)?;
                let decisive = either(&known.decisive, &variants.decisive);
                (known, decisive)
            }
        };
        let has_statics = known.has_statics && self.addresses.get().is_none();
        if captured && (known.code.loaded().is_none() || has_statics) {
            return Err(not_prepared(manifest, sizes));
        }
        if known.needs_graph_code && !captured {
            device.backend.prepare_graphs()?;
        }
        let (loaded, assemble) = known.code.load(device)?;
        let loaded = Arc::clone(loaded);
        if has_statics {
            self.addresses(device)?;
        }
        if compiled.is_some() || assemble.is_some() {
            let (compile, why) = match compiled {
                Some(Compiled { time, why }) => (Some(time), why),
                None => (None, "this code was not launched before".to_string()),
            };
            device.shared.watchers.tell(&NewVariant {
                kernel: manifest.name.clone(),
                sizes: sizes.named(manifest),
                guard: known.variant.guard.in_words(&manifest.symbol_names()),
                why,
                compile,
                assemble,
            });
        }
        Ok(Chosen { known, loaded, decisive })
    }

    /// Where the statics are, by their numbers, if they are loaded.
    pub fn known_addresses(&self) -> &[u64] {
        self.addresses.get().map_or(&[], Vec::as_slice)
    }

    /// Where the statics are, by their numbers.
    pub fn addresses(&self, device: &Device) -> Result<&[u64]> {
        if let Some(known) = self.addresses.get() {
            return Ok(known);
        }
        let Some(statics) = &self.statics else { return Ok(&[]) };
        let (loaded, _) = statics.load(device)?;
        let variables = self.manifest.statics.iter();
        let addresses = variables.map(|variable| loaded.symbol(&variable.symbol).map(|(address, _)| address));
        let addresses = addresses.collect::<Result<Vec<u64>>>()?;
        Ok(self.addresses.get_or_init(|| addresses))
    }

    /// What the driver said of the code that is loaded.
    pub fn log(&self) -> String {
        let mut logs: Vec<String> = Vec::new();
        for variants in &self.kernels {
            for known in variants.all() {
                let log = known.code.loaded().map(|loaded| loaded.log().to_string()).unwrap_or_default();
                if !log.is_empty() && !logs.contains(&log) {
                    logs.push(log);
                }
            }
        }
        logs.join("\n")
    }
}

/// What compiling was about.
struct Compiled {
    time: Duration,
    why: String,
}

impl Variants {
    fn all(&self) -> Vec<Arc<KnownVariant>> {
        // A panic elsewhere leaves the list whole: it is changed in single steps.
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first variant whose guard holds.
    fn find(&self, kernel: &KernelManifest, sizes: Sizes<'_>) -> Result<Option<Arc<KnownVariant>>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        for known in known.iter() {
            match sizes.satisfy(&known.variant.guard) {
                Some(true) => return Ok(Some(Arc::clone(known))),
                Some(false) => {}
                None => return Err(undecided(kernel, sizes)),
            }
        }
        Ok(None)
    }

    /// The plan that is right for all sizes.
    fn general(&self, kernel: &KernelManifest) -> Result<Arc<KnownVariant>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let general = kernel.variants.len().checked_sub(1).and_then(|last| known.get(last));
        let no_plan = || Error::Argument { kernel: kernel.name.clone(), message: "has no plan".to_string() };
        general.cloned().ok_or_else(no_plan)
    }

    /// Asks the compiler, unless another thread just has. `None` where its answer is not for these sizes: no guard that can
    /// be worked out holds.
    fn compile(
        &self,
        kernel: &KernelManifest,
        sizes: Sizes<'_>,
        origin: &Origin,
        compiled: &mut Option<Compiled>,
    ) -> Result<Option<Arc<KnownVariant>>> {
        // Nothing is changed under the lock that a panic could leave half done.
        let _guard = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.find(kernel, sizes)? {
            return Ok(Some(known));
        }
        let start = Instant::now();
        let answer = origin
            .specialize(&kernel.name, &sizes.known(kernel))
            .map_err(|error| Error::Compile(Box::new(CompileFailure::of(origin.source(), error))))?;
        let CompiledModule { module, mut manifest, .. } = answer;
        let of_kernel = manifest.kernels.iter_mut().find(|found| found.name == kernel.name);
        let Some(variant) = of_kernel.and_then(|found| found.variants.pop()) else { return Ok(None) };
        match sizes.satisfy(&variant.guard) {
            Some(true) => {}
            Some(false) => return Ok(None),
            None => return Err(undecided(kernel, sizes)),
        }
        let all = self.all();
        let code = Code::entries(&Arc::new(module), entries(&variant.plan));
        let mut known = KnownVariant::new(kernel, variant, code);
        // The general code, mostly: what is loaded of it serves these sizes as well.
        if let Some(same) = all.iter().find(|other| known.is_same(other)) {
            known = same.with_guard(kernel, known.variant.guard.clone());
        }
        self.known.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&known));
        *compiled = Some(Compiled { time: start.elapsed(), why: why(kernel, sizes, &all) });
        Ok(Some(known))
    }
}

/// Why none of the known variants serves.
fn why(kernel: &KernelManifest, sizes: Sizes<'_>, known: &[Arc<KnownVariant>]) -> String {
    let mut broken: Vec<String> = Vec::new();
    for known in known {
        if let Some(objection) = sizes.objection(&known.variant.guard, kernel)
            && !broken.contains(&objection)
            && broken.len() < OBJECTIONS
        {
            broken.push(objection);
        }
    }
    format!("no known code is for these sizes, since not {}", broken.join(", nor "))
}

/// The names of the entries that a plan launches, each once.
fn entries(plan: &[Step]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    Step::each_launch(plan, &mut |launch| {
        if !names.contains(&launch.entry) {
            names.push(launch.entry.clone());
        }
    });
    names
}

/// Calls `change` with the name of the entry of each launch.
fn each_entry(plan: &mut [Step], change: &mut dyn FnMut(&mut String)) {
    for step in plan {
        match step {
            Step::Launch(launch) => change(&mut launch.entry),
            Step::Repeat { body, .. } => each_entry(body, change),
            Step::Branch { then, otherwise, .. } => {
                each_entry(then, change);
                each_entry(otherwise, change);
            }
            Step::While { test, body, .. } => {
                each_entry(test, change);
                each_entry(body, change);
            }
        }
    }
}

fn each_argument(plan: &[Step], see: &mut dyn FnMut(&LaunchArgument)) {
    Step::each_launch(plan, &mut |launch| launch.arguments.iter().for_each(&mut *see));
}

/// `m = 70, n = 90`
fn listed(kernel: &KernelManifest, sizes: Sizes<'_>) -> String {
    let name = |(name, value): (String, krn_compiler::manifest::Value)| format!("{name} = {value}");
    let named: Vec<String> = sizes.named(kernel).into_iter().map(name).collect();
    named.join(", ")
}

#[cold]
fn not_prepared(kernel: &KernelManifest, sizes: Sizes<'_>) -> Error {
    Error::NotPrepared { kernel: kernel.name.clone(), sizes: listed(kernel, sizes) }
}

#[cold]
fn undecided(kernel: &KernelManifest, sizes: Sizes<'_>) -> Error {
    let unknown = sizes.unknown.iter().map(|symbol| format!("`{}`", kernel.symbols[*symbol].name));
    let unknown: Vec<String> = unknown.collect();
    let message = format!("which code runs depends on {}: `prepare` needs it too", unknown.join(" or "));
    Error::Argument { kernel: kernel.name.clone(), message }
}
