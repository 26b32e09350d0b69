//! Selection: IR in phase `staged` or later to PTX and launch manifests.
//!
//! Selection reads what the passes decided and decides nothing about layout itself: the threads are explicit
//! (`thread_ops.rs`, `copies.rs`), buffers and their layouts become addresses (`address.rs`), regions become labels
//! (`control.rs`, `loops.rs`, `checks.rs`), and each op becomes the shortest PTX that has the meaning stated in
//! `check/typed.rs` (`arithmetic.rs`, `magic.rs`, `convert.rs`, `bits.rs`, `floats.rs`, `memory.rs`, `atomics.rs`).
//!
//! | file | what |
//! |---|---|
//! | `selector.rs` | the state of one entry: values to operands, emission helpers |
//! | `entry.rs` | one launch to one entry: parameters, prologue |
//! | `naming.rs` | where the source's names are |
//! | `signs.rs` | what `ptxas` must not see |
//! | `plan.rs` | grids, launch plans, the kernel's manifest |

mod address;
mod arithmetic;
mod atomics;
mod behind_checks;
mod bits;
mod checks;
mod combine;
mod compare;
mod control;
mod convert;
mod copies;
mod division;
mod entry;
mod floats;
mod fmod;
mod if_conversion;
mod loop_carried;
mod loops;
mod magic;
mod matrix;
mod memory;
mod naming;
mod narrow;
mod neighbours;
mod offsets;
mod outer;
mod plan;
mod prints;
mod random;
mod selector;
mod shared;
mod signs;
mod thread_ops;

use shared::is_dynamic;
pub use shared::{SharedPlan, plan as shared_plan};

use super::module::{Entry, Length, Module, SourceName, Variable, Version};
use super::operand::ModuleVariable;
use super::print::{print_entry, print_with};
use super::target::Target;
use super::types::{Space, Type};
use super::verify::{Frame, Problem};
use crate::data::constant_places;
use crate::ir;
use crate::ir::entities::{ConstantArray, Launch};
use crate::ir::kernel::Kernel;
use crate::manifest::{KernelManifest, Manifest, StaticManifest};
use crate::parallel;
use crate::source::SourceFile;
use crate::version::VERSIONS;
use behind_checks::behind_checks;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use entry::SelectedEntry;
use plan::SelectedLaunch;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// What selection is told beside the IR.
#[derive(Clone, Debug)]
pub struct SelectOptions {
    /// `sm_90`
    pub target: String,
    /// The compute capability as 10 × major + minor: 75, 90, 120.
    pub capability: u32,
    /// Keeps where the source's names are.
    pub names: bool,
}

/// Something in the IR that selection cannot express; a verified kernel has none but those about limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectError {
    pub kernel: String,
    pub message: String,
}

/// A selected module: its PTX, of the lowest version that knows what it uses, as data and as text, and its manifest.
#[derive(Clone, PartialEq, Debug)]
pub struct Selected {
    pub module: Module,
    pub text: String,
    pub manifest: Manifest,
}

/// Where the module's constant arrays went.
pub(super) struct Globals {
    pub constants: SecondaryMap<ConstantArray, Option<(ModuleVariable, Space)>>,
    /// The shared memory that a launch sizes; declared where some kernel has more than fits the static kind.
    pub dynamic_shared: Option<ModuleVariable>,
    /// Names outside of entries, their own among them: nothing in an entry is called so.
    pub names: Arc<FxHashSet<String>>,
}

/// Selects every kernel of the module. Names of entries are those of the launches.
pub fn select(
    module: &ir::kernel::Module,
    source: &SourceFile,
    options: &SelectOptions,
) -> Result<Selected, SelectError> {
    let kernels: Vec<&Kernel> = module.kernels.iter().collect();
    let selection = Selection::new(module, &kernels, source, options)?;
    let frame = selection.frame()?;
    let launches = module.kernels.iter().flat_map(|kernel| {
        let launches = kernel.launches.keys();
        launches.map(move |launch| (kernel, launch))
    });
    let entry = |(number, (kernel, launch)): (usize, (&Kernel, Launch))| {
        selection.entry(&kernel.part(launch), &frame, number)
    };
    let selected = parallel::map(launches.enumerate().collect(), entry);
    let selected = selected.into_iter().collect::<Result<_, _>>()?;
    drop(frame);
    selection.finish(&kernels, selected)
}

/// What entries are selected with, verified and printed, one by one.
pub(crate) struct Selection<'s> {
    source: &'s SourceFile,
    options: &'s SelectOptions,
    ptx: Module,
    statics: Vec<StaticManifest>,
    globals: Globals,
    /// Names of the entries.
    entries: Vec<String>,
    /// Of each entry, whether a check may have failed before its launch begins.
    behind_checks: Vec<bool>,
}

/// An entry that is selected, verified and printed.
pub(crate) struct EntryText {
    /// The entry as data, where somebody asks for it.
    entry: Option<Entry>,
    launch: SelectedLaunch,
    dynamic_shared: bool,
    version: Version,
    text: String,
}

impl EntryText {
    /// Gives back what the entry takes as data.
    pub fn forget_data(&mut self) {
        self.entry = None;
    }
}

impl<'s> Selection<'s> {
    /// For kernels, which take constants and statics from a module; of the kernels in it nothing is looked at.
    pub fn new(
        module: &ir::kernel::Module,
        kernels: &[&Kernel],
        source: &'s SourceFile,
        options: &'s SelectOptions,
    ) -> Result<Self, SelectError> {
        let Some(target) = Target::find(&options.target) else {
            let message = format!("`{}` is not a target that PTX is known for", options.target);
            return Err(SelectError { kernel: String::new(), message });
        };
        let mut ptx = Module::new(target.version, target.name);
        ptx.header = header(kernels);
        ptx.files.push(SourceName { index: 1, name: source.name().to_string() });
        let (globals, statics) = declare_globals(module, kernels, &mut ptx);
        let launches = kernels.iter().flat_map(|kernel| kernel.launches.values());
        let entries = launches.map(|launch| launch.name.clone()).collect();
        let behind_checks = kernels.iter().flat_map(|kernel| behind_checks(kernel)).collect();
        Ok(Self { source, options, ptx, statics, globals, entries, behind_checks })
    }

    /// What entries are verified against.
    pub fn frame(&self) -> Result<Frame<'_>, SelectError> {
        let (problems, frame) =
            Frame::new(&self.ptx, self.entries.iter().map(String::as_str).collect(), None);
        // What the verifier refuses, ptxas or the emulator would refuse later, without naming the kernel.
        refuse(problems)?;
        Ok(frame)
    }

    /// The only launch of a kernel as the entry of a number.
    pub fn entry(&self, part: &Kernel, frame: &Frame<'_>, number: usize) -> Result<EntryText, SelectError> {
        let (launch, behind_checks) = (Launch::new(0), self.behind_checks[number]);
        let SelectedEntry { entry, launch, dynamic_shared } =
            entry::select_entry(part, launch, behind_checks, &self.globals, self.source, self.options)?;
        let (problems, version) = frame.entry(number, &entry);
        refuse(problems)?;
        let text = print_entry(&self.ptx, &entry);
        Ok(EntryText { entry: Some(entry), launch, dynamic_shared, version, text })
    }

    /// Whether the module declares shared memory that launches size just where some entry has such. That is decided
    /// before the entries are selected, and a pass between may have left out what a launch had of it.
    pub fn declares(&self, entries: &[EntryText]) -> bool {
        self.globals.dynamic_shared.is_some() == entries.iter().any(|entry| entry.dynamic_shared)
    }

    /// The module of all entries, which are in the order of their numbers.
    pub fn finish(self, kernels: &[&Kernel], entries: Vec<EntryText>) -> Result<Selected, SelectError> {
        let Self { source, options, mut ptx, statics, .. } = self;
        let mut entries = entries.into_iter();
        let mut texts = Vec::with_capacity(entries.len());
        let mut manifests: Vec<KernelManifest> = Vec::with_capacity(kernels.len());
        for kernel in kernels {
            let mut launches = SecondaryMap::new();
            for (launch, text) in kernel.launches.keys().zip(&mut entries) {
                ptx.version = ptx.version.max(text.version);
                ptx.entries.extend(text.entry);
                texts.push(text.text);
                launches[launch] = Some(text.launch);
            }
            let mut manifest = plan::kernel_manifest(kernel, &launches, source)?;
            match manifests.last_mut() {
                // Variants of a kernel follow each other.
                Some(known) if known.name == manifest.name => known.variants.append(&mut manifest.variants),
                _ => manifests.push(manifest),
            }
        }
        let (name, target) = (source.name().to_string(), options.target.clone());
        let manifest = Manifest { source: name, target, statics, kernels: manifests };
        let text = print_with(&ptx, texts);
        Ok(Selected { module: ptx, text, manifest })
    }
}

/// What a module says of itself: who made it, and for which sizes, where the code is to stand for that of all others. Code
/// that is made for the sizes of a launch is the same for many, and names none.
fn header(kernels: &[&Kernel]) -> Vec<String> {
    let mut lines = vec![format!("krn {VERSIONS}")];
    let general = kernels.iter().filter(|kernel| kernel.specialization.is_general());
    lines.extend(general.filter_map(|kernel| {
        let sizes = kernel.sizes_in_words();
        (!sizes.is_empty()).then(|| format!("{}: representative sizes {sizes}", kernel.name))
    }));
    lines
}

/// An error of the first problem, if there is one.
fn refuse(problems: Vec<Problem>) -> Result<(), SelectError> {
    let Some(problem) = problems.into_iter().next() else { return Ok(()) };
    let kernel = problem.entry.as_ref().map_or_else(String::new, |(entry, _)| entry.clone());
    Err(SelectError { kernel, message: format!("the compiler made invalid PTX: {problem}") })
}

/// Declares constant arrays (in the constant bank while they fit, largest index last) and statics.
fn declare_globals(
    module: &ir::kernel::Module,
    kernels: &[&Kernel],
    ptx: &mut Module,
) -> (Globals, Vec<StaticManifest>) {
    let mut globals = Globals { constants: SecondaryMap::new(), dynamic_shared: None, names: Arc::default() };
    let launches = kernels.iter().flat_map(|kernel| kernel.launches.values());
    let mut names: FxHashSet<String> = launches.map(|launch| launch.name.clone()).collect();
    if kernels.iter().any(|kernel| is_dynamic(kernel)) {
        let variable = ptx.variables.push(Variable {
            align: 16,
            length: Length::Unsized,
            external: true,
            ..Variable::array(free(&names, "shared_memory".to_string()), Space::Shared, Type::B8, 0)
        });
        names.insert(ptx.variables[variable].name.clone());
        globals.dynamic_shared = Some(variable);
    }
    let places = constant_places(module.constants.values().map(|data| data.bytes.len().max(1) as u64));
    for ((id, data), place) in module.constants.iter().zip(places) {
        let space = if place.in_bank { Space::Const } else { Space::Global };
        let symbol = free(&names, format!("const_{}", data.name));
        let variable = global(&mut ptx.variables, &symbol, space, data, false);
        names.insert(ptx.variables[variable].name.clone());
        globals.constants[id] = Some((variable, space));
    }
    let mut statics = Vec::new();
    // No entry names them: each is given their addresses, so that code of several modules shares them.
    for data in module.statics.values() {
        let symbol = free(&names, format!("static_{}", data.name));
        let variable = global(&mut ptx.variables, &symbol, Space::Global, data, true);
        names.insert(ptx.variables[variable].name.clone());
        statics.push(StaticManifest {
            name: data.name.clone(),
            symbol,
            element: data.element.clone(),
            extents: data.extents.clone(),
        });
    }
    globals.names = Arc::new(names);
    (globals, statics)
}

/// A name that is not in use: the same, or the same with a number.
fn free(names: &FxHashSet<String>, name: String) -> String {
    if !names.contains(&name) {
        return name;
    }
    let mut numbered = (2..).map(|number| format!("{name}_{number}"));
    numbered.find(|candidate| !names.contains(candidate)).unwrap_or(name)
}

fn global(
    variables: &mut PrimaryMap<ModuleVariable, Variable>,
    name: &str,
    space: Space,
    data: &ir::kernel::ArrayData,
    visible: bool,
) -> ModuleVariable {
    let mut bytes = data.bytes.clone();
    // Whole words: combining into 8- and 16-bit elements works on the word around them.
    bytes.resize(bytes.len().max(1).next_multiple_of(4), 0);
    let all_zero = bytes.iter().all(|byte| *byte == 0);
    variables.push(Variable {
        name: name.to_string(),
        space,
        ty: Type::B8,
        align: 16,
        length: Length::Array(bytes.len() as u64),
        init: (!all_zero || space == Space::Const).then_some(bytes),
        external: false,
        visible,
    })
}
