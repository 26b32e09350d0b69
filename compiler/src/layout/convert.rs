//! The cheapest way from one layout of a value to another.

use super::digits::Dimension;
use super::shuffle::{Round, needs, renamed, rounds};
use super::staging::{Costs, Staged, stage};
use super::{Error, Scope, ValueLayout};

/// How a value comes from one layout into another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Conversion {
    /// Each place holds already what it should.
    Nothing,
    /// Registers have other names: for each register of the result the one that it is.
    Registers(Vec<u64>),
    /// Shuffles inside each warp, the same in all.
    Shuffles(Vec<Round>),
    /// Stores to shared memory, a barrier of the scope, loads.
    Shared(Box<Staged>),
}

impl ValueLayout {
    /// The cheapest way to layout `to` through shared memory.
    ///
    /// # Errors
    /// Where the layouts have other axes, extents or numbers of threads.
    pub fn exchange(&self, to: &ValueLayout, element_bits: u64, costs: &Costs) -> Result<Staged, Error> {
        let to = self.alike(to)?;
        stage(self, &to, element_bits, self.conversion_scope(&to)?, costs)
    }

    /// The cheapest way to layout `to` of the same axes on the same threads, for elements of so many bits;
    /// `None` where values of other blocks of the cluster are needed. Layouts are walked place by place, so
    /// that time goes with registers times threads.
    ///
    /// # Errors
    /// Where the layouts have other axes, extents or numbers of threads.
    pub fn convert(
        &self,
        to: &ValueLayout,
        element_bits: u64,
        costs: &Costs,
    ) -> Result<Option<Conversion>, Error> {
        if self == to {
            return Ok(Some(Conversion::Nothing));
        }
        let to = self.alike(to)?;
        let scope = self.conversion_scope(&to)?;
        if scope == Scope::Cluster {
            return Ok(None);
        }
        let mut shuffles = None;
        // The scope may be larger than it needs to be where it is not known; what warps need settles it.
        if let Some(needs) = needs(self, &to) {
            if let Some(names) = renamed(&needs) {
                let same = names.iter().enumerate().all(|(result, name)| result as u64 == *name);
                let nothing = same && self.extents() == to.extents();
                return Ok(Some(if nothing { Conversion::Nothing } else { Conversion::Registers(names) }));
            }
            // A value of more than a bank is shuffled word by word.
            let words = element_bits.div_ceil(costs.banks.bank_bytes * 8).max(1);
            let (cost, rounds) = rounds(&needs, words * costs.shuffle, words * costs.select);
            shuffles = Some((cost * self.extent(Dimension::Warp), rounds));
        }
        let barrier = if scope <= Scope::Warp { 0 } else { costs.barrier };
        let staged = stage(self, &to, element_bits, scope, costs)?;
        let wavefronts: u64 = staged.wavefronts.iter().map(|it| it.count).sum();
        let shared = wavefronts * costs.wavefront + barrier * self.extent(Dimension::Warp);
        Ok(Some(match shuffles {
            Some((cost, rounds)) if cost <= shared => Conversion::Shuffles(rounds),
            _ => Conversion::Shared(Box::new(staged)),
        }))
    }
}
