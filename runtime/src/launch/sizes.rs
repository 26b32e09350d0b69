//! Values of a kernel's symbols, of which some may not be known.

use krn_compiler::manifest::{Expr, Guard, KernelManifest, SymbolKind, Value};

/// For which sizes code is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Sizes<'a> {
    /// By symbol. Of those that are not known it means nothing.
    pub values: &'a [Value],
    /// The symbols that are not known, beside counters.
    pub unknown: &'a [usize],
}

impl<'a> Sizes<'a> {
    /// Of a launch, which knows all of them.
    pub fn of_launch(values: &'a [Value]) -> Self {
        Self { values, unknown: &[] }
    }

    /// Whether a condition holds; `None` where that depends on what is not known.
    pub fn holds(&self, condition: &Expr) -> Option<bool> {
        if !self.unknown.is_empty() {
            let mut unknown = false;
            condition.each_symbol(&mut |symbol| unknown |= self.unknown.contains(&symbol));
            if unknown {
                return None;
            }
        }
        Some(condition.holds(self.values))
    }

    /// Whether a guard holds; `None` where that depends on what is not known.
    pub fn satisfy(&self, guard: &Guard) -> Option<bool> {
        if self.unknown.is_empty() {
            return Some(guard.holds(self.values));
        }
        let mut all = Some(true);
        for condition in guard.conditions() {
            match self.holds(condition) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => all = None,
            }
        }
        all
    }

    /// The condition of a guard that does not hold, in words.
    pub fn objection(&self, guard: &Guard, kernel: &KernelManifest) -> Option<String> {
        let broken = guard.conditions().find(|condition| self.holds(condition) == Some(false))?;
        Some(broken.in_words(&kernel.symbol_names()))
    }

    /// What the compiler is told, by symbol.
    pub fn known(&self, kernel: &KernelManifest) -> Vec<Option<Value>> {
        let all = kernel.symbols.iter().zip(self.values).enumerate();
        all.map(|(at, (symbol, value))| {
            let known = symbol.kind != SymbolKind::Counter && !self.unknown.contains(&at);
            known.then_some(*value)
        })
        .collect()
    }

    /// What is known, by name.
    pub fn named(&self, kernel: &KernelManifest) -> Vec<(String, Value)> {
        let known = self.known(kernel);
        let named = kernel.symbols.iter().zip(known);
        named.filter_map(|(symbol, value)| Some((symbol.name.clone(), value?))).collect()
    }
}
