//! The ladder of the passes, as a table.

use crate::commands::ladder::{Ladder, climb};
use crate::commands::run::open;
use crate::exit::Result;
use crate::subject::Subject;
use crate::table::with;
use krn_runtime::{Device, Selection};

/// What `krn ladder` prints, before it is text.
pub struct Steps {
    /// The GPU that was measured; nothing where the emulator counted.
    pub device: Option<String>,
    /// ` with n = 1000`.
    pub sizes: String,
    /// The sizes at which results were checked, where these are others.
    pub checked: Option<String>,
    /// Head first.
    pub rows: Vec<Vec<String>>,
    /// Passes that changed nothing.
    pub same: Vec<String>,
    pub agrees: bool,
    pub has_ptxas: bool,
}

/// Climbs, on the machine where there is one.
pub fn steps(subject: &Subject<'_>, machine: Option<&Device>) -> Result<Steps> {
    let emulator;
    let device = match machine {
        Some(machine) => machine,
        None => {
            emulator = open(Selection::Emulator)?;
            &emulator
        }
    };
    climb(subject, device, |ladder: &Ladder<'_>| Steps {
        device: (!device.is_emulator()).then(|| device.description()),
        sizes: with(ladder.sizes),
        checked: (ladder.checked.dims != ladder.sizes.dims).then(|| with(ladder.checked)),
        rows: ladder.table(),
        same: ladder.same(),
        agrees: ladder.agrees(),
        has_ptxas: ladder.ptxas.is_some(),
    })
}
