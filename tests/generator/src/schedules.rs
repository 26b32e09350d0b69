//! The schedule of a program: block sizes, orders, layouts and cache modes at random.

use crate::choices::Choices;
use crate::kernel::Draft;
use crate::scope::Element;

/// The schedule's text; empty for no schedule.
pub fn schedule(choices: &mut Choices<'_>, draft: &Draft) -> String {
    let mut directives = Vec::new();
    if choices.once_in(3) {
        directives.push(format!("block {}", choices.one_of(&[32, 64, 256, 1024, 33, 1, 96])));
    } else if !choices.once_in(2) {
        return String::new();
    }
    let orders: Vec<&Vec<String>> = draft.parallel.iter().filter(|names| names.len() > 1).collect();
    if !orders.is_empty() && choices.once_in(2) {
        let mut names = orders[choices.below(orders.len())].clone();
        names.reverse();
        directives.push(format!("order {}", names.join(", ")));
    }
    for (array, only_read) in &draft.scheduled {
        let chosen = choices.below(5);
        if array.extents.is_empty() {
            continue;
        }
        if matches!(array.element, Element::Struct(_)) && chosen < 3 {
            let layout = ["aos", "soa", "aosoa(8)"][chosen];
            directives.push(format!("layout {}: {layout}", array.name));
        } else if chosen == 4 {
            let modes: &[&str] = if *only_read { &["nc", "ca", "cg", "cs"] } else { &["cs", "ca", "cg"] };
            directives.push(format!("cache {}: {}", array.name, choices.one_of(modes)));
        }
    }
    if directives.is_empty() {
        return String::new();
    }
    format!("\nschedule random {{ {} }}\n", directives.join("; "))
}
