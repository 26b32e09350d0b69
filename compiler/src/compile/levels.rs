//! What a file's schedules say of warnings. Those of a kernel count before those of the whole file.

use crate::check::typed::{Kernel, Program, Schedule};
use crate::diagnostic::levels::ScopedLevel;
use crate::source::Span;

/// For warnings about text: what each schedule says of its kernel and of itself.
pub fn of_program(program: &Program) -> Vec<ScopedLevel> {
    let schedules = program
        .kernels
        .iter()
        .flat_map(|kernel| kernel.schedules.iter().flat_map(|schedule| of(kernel, schedule)));
    of_file(program).chain(schedules).collect()
}

/// For warnings about code: what the schedule that counts for the target says.
pub fn of_kernel(program: &Program, kernel: &Kernel, target: &str) -> Vec<ScopedLevel> {
    let schedule = kernel.schedule_for(target).into_iter();
    of_file(program).chain(schedule.flat_map(|schedule| of(kernel, schedule))).collect()
}

fn of_file(program: &Program) -> impl Iterator<Item = ScopedLevel> + '_ {
    let everywhere = Span::new(0, u32::MAX);
    program.levels.iter().map(move |said| ScopedLevel {
        code: said.code,
        level: said.level,
        scopes: vec![everywhere],
    })
}

fn of<'a>(kernel: &'a Kernel, schedule: &'a Schedule) -> impl Iterator<Item = ScopedLevel> + 'a {
    schedule.levels.iter().map(|said| ScopedLevel {
        code: said.code,
        level: said.level,
        scopes: vec![kernel.span, schedule.span],
    })
}
