//! What there is to see of a kernel.

use super::accesses::Alike;
use super::axes::Axis;
use super::fragments::Fragment;
use super::listing::{Listing, Place};
use super::stages::Stage;
use super::steps::Steps;
use super::variants::Variant;
use crate::commands::profile::found::Profile;
use krn_compiler::SharedArray;
use std::collections::BTreeMap;

/// What the page shows.
pub struct Report<'a> {
    pub profile: Profile<'a>,
    /// The source's lines, cut at what PTX comes from.
    pub source: Vec<Vec<Fragment>>,
    /// What stands at each place: the first line of the expression that starts there.
    pub texts: BTreeMap<Place, String>,
    /// As `krn explain` prints it.
    pub schedule: String,
    pub stages: Vec<Stage>,
    pub listing: Listing<'a>,
    /// The entries, in the order of the listing.
    pub variants: Vec<Variant>,
    pub steps: Steps,
    /// What the warps access, and what lies in shared memory of the entries that ran.
    pub accesses: Vec<Alike>,
    pub shared: Vec<SharedArray>,
    pub axes: Vec<Axis>,
}
