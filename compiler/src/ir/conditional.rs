//! Directives that count for some sizes alone, and what follows for a kernel from those that count.

use super::entities::Buffer;
use super::kernel::Kernel;
use super::schedule::{Conditional, Directive, SAID};
use crate::data::CacheMode;

impl Kernel {
    /// Puts directives that count for the sizes that the kernel is compiled for into the place of those that count
    /// elsewhere. No pass has run.
    pub fn follow(&mut self, conditional: Conditional) {
        let Conditional { text, directives, caches, .. } = conditional;
        self.schedule.directives = directives;
        self.schedule.condition = Some(text);
        self.schedule.choices.retain(|choice| !matches!(choice.directive, Directive::Cache { .. }));
        self.buffers.values_mut().for_each(|buffer| buffer.cache = None);
        caches.into_iter().for_each(|(buffer, mode)| self.set_cache(buffer, mode));
    }

    /// Has accesses of an array cached as a schedule says.
    pub fn set_cache(&mut self, buffer: Buffer, mode: CacheMode) {
        let data = &mut self.buffers[buffer];
        data.cache = Some(mode);
        let chosen = Directive::Cache { array: data.name.clone(), mode };
        self.schedule.chose("", chosen, SAID);
    }
}
