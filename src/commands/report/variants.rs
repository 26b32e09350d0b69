//! The entries of a kernel: which of them ran, and under what conditions the plan takes each.

use super::listing::Listing;
use crate::commands::profile::found::Profile;
use krn_compiler::ir::kernel::Module;
use krn_compiler::manifest::Expr;

pub struct Variant {
    /// Launches of it at the sizes of the page.
    pub launches: usize,
    /// What must hold at launch, each a line; the dimensions by their names.
    pub conditions: Vec<String>,
}

/// In the order of the listing.
pub fn variants(ir: &Module, listing: &Listing<'_>, profile: &Profile<'_>) -> Vec<Variant> {
    let variant = |name: &str| {
        let known = ir.kernels.iter().find_map(|kernel| {
            let launch = kernel.launches.values().find(|launch| launch.name == name)?;
            Some((kernel, launch))
        });
        let mut conditions = Vec::new();
        if let Some((kernel, launch)) = known {
            let symbols = kernel.symbol_names();
            let all = kernel.specialization.guard().conditions().chain(&launch.assume);
            for line in all.flat_map(Expr::parts).map(|condition| condition.in_words(&symbols)) {
                if !conditions.contains(&line) {
                    conditions.push(line);
                }
            }
        }
        let launches = profile.launches.iter().filter(|launch| launch.counted.entry == name).count();
        Variant { launches, conditions }
    };
    listing.entries.iter().map(|entry| variant(entry.name)).collect()
}
