//! What a file's schedules say of warnings.

use crate::check::typed::{Kernel, Program, Schedule};
use crate::diagnostic::levels::ScopedLevel;

/// For warnings about text: what each schedule says of its kernel and of itself.
pub fn of_program(program: &Program) -> Vec<ScopedLevel> {
    let kernels = program.kernels.iter();
    kernels.flat_map(|kernel| kernel.schedules.iter().flat_map(|schedule| of(kernel, schedule))).collect()
}

/// For warnings about code: what the schedule that counts for the target says.
pub fn of_kernel(kernel: &Kernel, target: &str) -> Vec<ScopedLevel> {
    kernel.schedule_for(target).map_or(Vec::new(), |schedule| of(kernel, schedule).collect())
}

fn of<'a>(kernel: &'a Kernel, schedule: &'a Schedule) -> impl Iterator<Item = ScopedLevel> + 'a {
    schedule.levels.iter().map(|said| ScopedLevel {
        code: said.code,
        level: said.level,
        scopes: vec![kernel.span, schedule.span],
    })
}
