//! Work in its order, with what is repeated as often as the device says.

use crate::error::Result;

/// One step, once sizes are known: loops of the host are written out.
#[derive(PartialEq)]
pub enum Todo<L, C = usize> {
    Launch(L),
    /// A `while`: `test`, and as long as the condition says so, `body` and `test` again.
    While {
        condition: C,
        test: Sequence<L, C>,
        body: Sequence<L, C>,
    },
}

#[derive(PartialEq)]
pub struct Sequence<L, C = usize>(pub Vec<Todo<L, C>>);

impl<L, C> Todo<L, C> {
    /// Carries it out. `goes_on` says whether the `while` with that condition has another turn, after so many.
    pub fn run(
        &self,
        launch: &mut dyn FnMut(&L) -> Result<()>,
        goes_on: &mut dyn FnMut(&C, u64) -> Result<bool>,
    ) -> Result<()> {
        match self {
            Todo::Launch(known) => launch(known),
            Todo::While { condition, test, body } => {
                let mut turns = 0;
                test.run(launch, goes_on)?;
                while goes_on(condition, turns)? {
                    body.run(launch, goes_on)?;
                    test.run(launch, goes_on)?;
                    turns += 1;
                }
                Ok(())
            }
        }
    }

    /// Calls back for each launch, once.
    pub fn each<'s>(&'s self, see: &mut dyn FnMut(&'s L)) {
        match self {
            Todo::Launch(launch) => see(launch),
            Todo::While { test, body, .. } => {
                test.each(see);
                body.each(see);
            }
        }
    }

    /// Whether it is a `while`.
    pub fn repeats(&self) -> bool {
        matches!(self, Todo::While { .. })
    }
}

impl<L, C> Sequence<L, C> {
    /// As [`Todo::run`], one after another.
    pub fn run(
        &self,
        launch: &mut dyn FnMut(&L) -> Result<()>,
        goes_on: &mut dyn FnMut(&C, u64) -> Result<bool>,
    ) -> Result<()> {
        self.0.iter().try_for_each(|todo| todo.run(launch, goes_on))
    }

    /// Calls back for each launch, once.
    pub fn each<'s>(&'s self, see: &mut dyn FnMut(&'s L)) {
        self.0.iter().for_each(|todo| todo.each(see));
    }

    /// How many launches there are, each counted once.
    pub fn len(&self) -> usize {
        let mut count = 0;
        self.each(&mut |_| count += 1);
        count
    }

    /// Whether the device decides how often something is launched.
    pub fn waits(&self) -> bool {
        self.0.iter().any(Todo::repeats)
    }

    /// The one launch that it is, if so.
    pub fn single(&self) -> Option<&L> {
        match &self.0[..] {
            [Todo::Launch(launch)] => Some(launch),
            _ => None,
        }
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
        let mut goes_on = |condition: &usize, turns| {
            asked.push((*condition, turns));
            Ok(*condition == 0 && turns < 2)
        };
        all.run(&mut launch, &mut goes_on).expect("nothing fails");
        assert_eq!(launched, "atxytxyttz");
        assert_eq!(asked, [(0, 0), (0, 1), (0, 2), (1, 0)]);
        assert_eq!((all.len(), all.waits(), all.single()), (8, true, None));
        let one: Sequence<char> = sequence("a");
        assert_eq!(one.single(), Some(&'a'));
    }
}
