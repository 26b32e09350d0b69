//! What passes chose for the launches of a kernel: found by launch, since a kernel may have thousands of them.

use super::directive::Directive;
use rustc_hash::FxHashMap;

/// A directive that would have made a pass do what it did, for one launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The launch's name.
    pub launch: String,
    pub directive: Directive,
    /// One line for a person.
    pub reason: String,
    /// Whether the directive, written by hand, would make the pass do just what it did, in every launch.
    pub reproducible: bool,
}

/// Choices in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// None where a later one has taken its place.
    list: Vec<Option<Choice>>,
    /// Where those of a launch are, by its name.
    places: FxHashMap<String, Vec<usize>>,
}

impl Choices {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Choice> {
        self.list.iter().flatten()
    }

    /// Those for a launch.
    pub fn of(&self, launch: &str) -> impl Iterator<Item = &Choice> {
        let places = self.places.get(launch).map_or(&[][..], |places| places);
        places.iter().filter_map(|place| self.list[*place].as_ref())
    }

    /// Appends a choice; what was chosen of the same subject for the launch goes.
    pub fn record(&mut self, choice: Choice) {
        let subject = |known: &Choice| known.directive.same_subject(&choice.directive);
        if let Some(places) = self.places.get_mut(&choice.launch) {
            let list = &mut self.list;
            places.retain(|place| {
                let same = list[*place].as_ref().is_some_and(subject);
                if same {
                    list[*place] = None;
                }
                !same
            });
        }
        self.push(choice);
    }

    /// Drops those that are not wanted.
    pub fn retain(&mut self, wanted: impl Fn(&Choice) -> bool) {
        let kept: Vec<Choice> = self.list.drain(..).flatten().filter(wanted).collect();
        self.places.clear();
        kept.into_iter().for_each(|choice| self.push(choice));
    }

    /// Gives the choices for a launch to its new name.
    pub fn rename(&mut self, from: &str, to: &str) {
        let Some(places) = self.places.remove(from) else { return };
        for place in &places {
            self.list[*place].iter_mut().for_each(|choice| choice.launch = to.to_string());
        }
        self.places.entry(to.to_string()).or_default().extend(places);
    }

    /// Appends a choice.
    pub fn push(&mut self, choice: Choice) {
        let place = self.list.len();
        match self.places.get_mut(&choice.launch) {
            Some(places) => places.push(place),
            None => drop(self.places.insert(choice.launch.clone(), vec![place])),
        }
        self.list.push(Some(choice));
    }

    /// Removes all of them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl PartialEq for Choices {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Choices {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_choice_of_a_subject_stands_at_the_end() {
        let choice = |launch: &str, directive| Choice {
            launch: launch.to_string(),
            directive,
            reason: String::new(),
            reproducible: true,
        };
        let split = |pieces| Directive::Split { axis: "p".to_string(), pieces };
        let mut choices = Choices::default();
        for (launch, directive) in [
            ("a", Directive::Block(64)),
            ("b", Directive::Block(96)),
            ("a", split(2)),
            ("a", Directive::Block(32)),
        ] {
            choices.record(choice(launch, directive));
        }
        let all: Vec<_> =
            choices.iter().map(|known| (known.launch.as_str(), known.directive.to_string())).collect();
        let expected = [("b", "block 96"), ("a", "split p: 2"), ("a", "block 32")];
        assert_eq!(all, expected.map(|(launch, line)| (launch, line.to_string())));
        let of = |launch| choices.of(launch).map(|known| known.directive.to_string()).collect::<Vec<_>>();
        assert_eq!(of("a"), ["split p: 2", "block 32"]);
        assert!(of("c").is_empty());
        // What stands is compared, not how it came there.
        let mut same = Choices::default();
        choices.iter().for_each(|known| same.push(known.clone()));
        assert_eq!(same, choices);
    }
}
