//! The launches of a plan in their order, with what is repeated as often as the device says.

use crate::backend::{DevicePtr, StreamNumber};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::array::DeviceArray;
use crate::stream::record::ErrorRecord;

/// One step, once sizes are known: loops of the host are written out.
pub(crate) enum Todo<L> {
    Launch(L),
    /// A `while`: `test`, and as long as the scratch buffer of that number says so, `body` and `test` again.
    While {
        condition: usize,
        test: Sequence<L>,
        body: Sequence<L>,
    },
}

pub(crate) struct Sequence<L>(pub Vec<Todo<L>>);

impl<L> Sequence<L> {
    /// Carries it out. `goes_on` says whether the `while` with that condition has another turn, after so many.
    pub fn run(
        &self,
        launch: &mut dyn FnMut(&L) -> Result<()>,
        goes_on: &mut dyn FnMut(usize, u64) -> Result<bool>,
    ) -> Result<()> {
        for todo in &self.0 {
            match todo {
                Todo::Launch(known) => launch(known)?,
                Todo::While { condition, test, body } => {
                    let mut turns = 0;
                    test.run(launch, goes_on)?;
                    while goes_on(*condition, turns)? {
                        body.run(launch, goes_on)?;
                        test.run(launch, goes_on)?;
                        turns += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls back for each launch, once.
    pub fn each<'s>(&'s self, see: &mut dyn FnMut(&'s L)) {
        for todo in &self.0 {
            match todo {
                Todo::Launch(launch) => see(launch),
                Todo::While { test, body, .. } => {
                    test.each(see);
                    body.each(see);
                }
            }
        }
    }

    /// How many launches there are, each counted once.
    pub fn len(&self) -> usize {
        let mut count = 0;
        self.each(&mut |_| count += 1);
        count
    }

    /// Whether the device decides how often something is launched, so that the host waits for it.
    pub fn waits(&self) -> bool {
        self.0.iter().any(|todo| matches!(todo, Todo::While { .. }))
    }

    /// The one launch that it is, if so.
    pub fn single(&self) -> Option<&L> {
        match &self.0[..] {
            [Todo::Launch(launch)] => Some(launch),
            _ => None,
        }
    }
}

/// As [`goes_on`], for a launch on a stream of ours, whose scratch buffers are these.
pub(crate) fn goes_on_in(
    device: &Device,
    kernel: &str,
    (scratch, record): (&[DeviceArray], Option<&ErrorRecord>),
    stream: StreamNumber,
    (condition, turns): (usize, u64),
) -> Result<bool> {
    let cell = scratch.get(condition).and_then(|cell| cell.pointers().next());
    goes_on(device, kernel, (cell, record), turns, &mut |pointer, bytes| {
        device.backend.copy_out(stream, pointer, bytes)
    })
}

/// Waits for the stream that `read` reads on, and tells whether a `while` of a kernel has another turn after so many: what
/// lies at `condition` is true, and no check has failed.
///
/// # Errors
/// [`Error::Endless`] at the device's limit; a failed driver call.
pub(crate) fn goes_on(
    device: &Device,
    kernel: &str,
    (condition, record): (Option<DevicePtr>, Option<&ErrorRecord>),
    turns: u64,
    read: &mut dyn FnMut(DevicePtr, &mut [u8]) -> Result<()>,
) -> Result<bool> {
    let no_memory = || Error::Fault(format!("kernel `{kernel}`: the condition of a `while` has no memory"));
    let (mut holds, mut claimed) = ([0], [0; 4]);
    read(condition.ok_or_else(no_memory)?, &mut holds)?;
    if holds == [0] {
        return Ok(false);
    }
    if let Some(record) = record.and_then(ErrorRecord::pointer) {
        read(record, &mut claimed)?;
    }
    let more = claimed == [0; 4];
    match device.shared.turn_limit() {
        Some(limit) if more && turns >= limit => Err(Error::Endless { kernel: kernel.to_string(), turns }),
        _ => Ok(more),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test comes before each turn and after the last one.
    #[test]
    fn a_while_is_tested_before_each_turn() {
        let sequence = |launches: &str| Sequence(launches.chars().map(Todo::Launch).collect());
        let repeated = |condition| Todo::While { condition, test: sequence("t"), body: sequence("xy") };
        let all = Sequence(vec![Todo::Launch('a'), repeated(0), repeated(1), Todo::Launch('z')]);
        let (mut launched, mut asked) = (String::new(), Vec::new());
        let mut launch = |one: &char| {
            launched.push(*one);
            Ok(())
        };
        let mut goes_on = |condition, turns| {
            asked.push((condition, turns));
            Ok(condition == 0 && turns < 2)
        };
        all.run(&mut launch, &mut goes_on).expect("nothing fails");
        assert_eq!(launched, "atxytxyttz");
        assert_eq!(asked, [(0, 0), (0, 1), (0, 2), (1, 0)]);
        assert_eq!((all.len(), all.waits(), all.single()), (8, true, None));
        assert_eq!(sequence("a").single(), Some(&'a'));
    }
}
