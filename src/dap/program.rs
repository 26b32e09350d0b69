//! What is debugged: compiled with its names, at sizes, with its data.

use super::configuration::Configuration;
use crate::exit::{Failure, INPUT};
use crate::request::{Request, directives, pick};
use crate::{files, memory, messages};
use krn_compiler::check::typed::{Kernel, Numbers, Program as Typed, StructId};
use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::manifest::{KernelManifest, Step, SymbolKind, Value};
use krn_compiler::ptx::Statement;
use krn_compiler::source::{SourceFile, Span};
use krn_compiler::syntax::ast::Item;
use krn_compiler::{Compilation, CompileError, CompileOptions, Variants, syntax};
use krn_runtime::verify::{Case, Sizes};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A kernel that is ready to be run and looked at.
pub struct Program {
    pub path: PathBuf,
    pub source: SourceFile,
    pub compilation: Compilation,
    kernel: usize,
    pub numbers: Numbers,
    pub sizes: Sizes,
    pub case: Case,
    /// The values of the manifest's symbols; counters are 0.
    pub symbols: Vec<Value>,
    /// The kernel and the file's functions.
    items: Vec<Lines>,
    /// Lines that instructions of the kernel come from.
    lines: BTreeSet<u32>,
}

/// The lines of a kernel or a function.
struct Lines {
    name: String,
    is_function: bool,
    first: u32,
    last: u32,
    /// Arrays and sizes that calls give.
    given: Vec<String>,
}

impl Lines {
    fn has(&self, line: u32) -> bool {
        (self.first..=self.last).contains(&line)
    }
}

/// Why there is nothing to debug, in words.
fn words(failure: Failure) -> String {
    failure.message().to_string()
}

fn compiled(source: &SourceFile, options: &CompileOptions) -> Result<Compilation, String> {
    krn_compiler::compile(source, options).map_err(|error| match error {
        CompileError::Diagnostics(diagnostics) => {
            render(source, &diagnostics, RenderOptions { color: false, ..RenderOptions::default() })
        }
        other => other.to_string(),
    })
}

impl Program {
    /// # Errors
    /// What is wrong with the file or with what is asked for, in words.
    pub fn load(configuration: &Configuration) -> Result<Self, String> {
        let path = configuration.program.clone();
        let bytes = files::read_source(&path).map_err(words)?;
        let text = String::from_utf8(bytes).map_err(|_| format!("`{}` is no UTF-8", path.display()))?;
        let source = SourceFile::new(path.display().to_string(), text);
        let mut options = messages::options(&configuration.compile_arguments(), None).map_err(words)?;
        options.names = true;
        if !configuration.optimize {
            let pipeline = options.resolved_pipeline().map_err(|error| error.to_string())?;
            options.without.extend(pipeline.optional_names().map(str::to_string));
        }
        let first = compiled(&source, &options)?;
        let arguments = configuration.kernel_arguments();
        let typed = pick(&first.program, &arguments).map_err(words)?;
        let manifest = manifest_of(&first, typed).map_err(words)?;
        let said = directives(&source, typed).map_err(words)?;
        let request = Request::parse(&arguments, &[], manifest, said).map_err(words)?;
        let (sizes, case) = request
            .case((&first.program, typed, manifest), configuration.seed, |sizes| {
                memory::check(manifest, sizes, true, false)
            })
            .map_err(words)?;
        // The code for these sizes, so that the launch asks for no other.
        let name = typed.name.clone();
        options.only = Some(name.clone());
        options.variants = Variants::With(vec![sizes.symbol_values(manifest)]);
        let compilation = compiled(&source, &options)?;
        let kernels = &compilation.program.kernels;
        let kernel = kernels.iter().position(|kernel| kernel.name == name);
        let kernel = kernel.ok_or_else(|| format!("kernel `{name}` was not compiled"))?;
        let manifest = manifest_of(&compilation, &kernels[kernel]).map_err(words)?;
        let symbols = symbols(manifest, &sizes);
        let lines = lines(&compilation, manifest);
        let numbers = Numbers::of(&kernels[kernel]);
        let items = items(&source, &name);
        Ok(Self { path, source, compilation, kernel, numbers, sizes, case, symbols, items, lines })
    }

    pub fn typed(&self) -> &Typed {
        &self.compilation.program
    }

    pub fn kernel(&self) -> &Kernel {
        &self.compilation.program.kernels[self.kernel]
    }

    pub fn manifest(&self) -> Option<&KernelManifest> {
        let name = &self.kernel().name;
        self.compilation.compiled.manifest.kernels.iter().find(|known| known.name == *name)
    }

    /// The name of a struct's type.
    pub fn struct_name(&self, id: StructId) -> &str {
        &self.typed().structs[id].name
    }

    /// The function whose text a line stands in, by its number among the items.
    pub fn function(&self, line: u32) -> Option<usize> {
        self.items.iter().position(|item| item.is_function && item.has(line))
    }

    /// Whether a name is an array or a size that calls give the function that a line stands in.
    pub fn is_given(&self, line: u32, name: &str) -> bool {
        self.items.iter().any(|item| item.has(line) && item.given.iter().any(|given| given == name))
    }

    /// What a line stands in, by its name.
    pub fn item(&self, line: u32) -> Option<&str> {
        self.items.iter().find(|item| item.has(line)).map(|item| item.name.as_str())
    }

    /// The line with code that a breakpoint on a line is for: the same, or one further down in the same item.
    pub fn line_for(&self, line: u32) -> Option<u32> {
        let last = self.items.iter().find(|item| item.has(line))?.last;
        self.lines.range(line..=last).next().copied()
    }

    /// The byte offset of a one-based line and column.
    pub fn offset(&self, line: u32, column: u32) -> u32 {
        let text = self.source.text();
        let start: usize =
            text.split_inclusive('\n').take(line.saturating_sub(1) as usize).map(str::len).sum();
        let rest = self.source.line_text(line);
        let within =
            rest.char_indices().nth(column.saturating_sub(1) as usize).map_or(rest.len(), |(at, _)| at);
        (start + within) as u32
    }
}

fn manifest_of<'c>(compilation: &'c Compilation, kernel: &Kernel) -> Result<&'c KernelManifest, Failure> {
    let found = compilation.compiled.manifest.kernels.iter().find(|known| known.name == kernel.name);
    found.ok_or_else(|| Failure::new(INPUT, format!("kernel `{}` was not compiled", kernel.name)))
}

fn symbols(manifest: &KernelManifest, sizes: &Sizes) -> Vec<Value> {
    let named = sizes.symbol_values(manifest);
    let value = |symbol: &krn_compiler::manifest::SymbolManifest| match symbol.kind {
        SymbolKind::Counter => Value::Int(0),
        _ => named.get(&symbol.name).copied().unwrap_or(Value::Int(0)),
    };
    manifest.symbols.iter().map(value).collect()
}

/// The kernel and the functions of a file, by their lines.
fn items(source: &SourceFile, kernel: &str) -> Vec<Lines> {
    let (file, _) = syntax::parse(source);
    let line = |offset| source.line_column(offset).0;
    let lines = |name: &str, span: Span, is_function, given| {
        let (first, last) = (line(span.start), line(span.end));
        Lines { name: name.to_string(), is_function, first, last, given }
    };
    let item = |item: &Item| match item {
        Item::Function(item) => {
            let arrays = item.params.iter().filter(|param| param.ty.extents.is_some());
            let mut given: Vec<String> = arrays.map(|param| param.name.name.clone()).collect();
            let bound = syntax::bound_dimensions(item.params.iter().map(|param| &param.ty), &|_| true);
            given.extend(bound.iter().map(|bound| bound.name.name.clone()));
            Some(lines(&item.name.name, item.span, true, given))
        }
        Item::Kernel(item) if item.name.name == kernel => {
            Some(lines(&item.name.name, item.span, false, Vec::new()))
        }
        _ => None,
    };
    file.items.iter().filter_map(item).collect()
}

fn lines(compilation: &Compilation, manifest: &KernelManifest) -> BTreeSet<u32> {
    let mut entries = BTreeSet::new();
    for variant in &manifest.variants {
        Step::each_launch(&variant.plan, &mut |launch| {
            entries.insert(launch.entry.as_str());
        });
    }
    let module = &compilation.compiled.module;
    let bodies = module.entries.iter().filter(|entry| entries.contains(entry.name.as_str()));
    let loc = |statement: &Statement| match statement {
        Statement::Loc(loc) => Some(loc.line),
        _ => None,
    };
    bodies.flat_map(|entry| entry.body.iter().filter_map(loc)).collect()
}
