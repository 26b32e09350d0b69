//! Schedules at random for any kernel: every directive, with names and sizes that make sense and some that do not.

/// A source of numbers that depends on its seed alone (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    fn one_of<'t, T>(&mut self, options: &'t [T]) -> &'t T {
        &options[self.below(options.len())]
    }
}

/// A `schedule` block for the kernel of that name, one directive a line. `axes` are the names of its loops, `arrays`
/// those of its arrays; neither may be empty of names that the kernel has, but both may be empty.
pub fn random_schedule(kernel: &str, axes: &[String], arrays: &[String], seed: u64) -> String {
    let mut numbers = Numbers(seed);
    let mut lines: Vec<String> = Vec::new();
    if axes.len() > 2 && arrays.len() > 1 && numbers.below(3) == 0 {
        lines = shaped(&mut numbers, axes, arrays);
    } else {
        let mut seen: Vec<String> = Vec::new();
        for _ in 0..1 + numbers.below(5) {
            let (subject, line) = directive(&mut numbers, axes, arrays);
            if !subject.is_empty() && !seen.contains(&subject) {
                seen.push(subject);
                lines.push(line);
            }
        }
    }
    let body: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    format!("schedule {kernel} {{\n{body}}}\n")
}

/// What says the shape of a product: sizes that fit together, for three of the axes and two of the arrays.
fn shaped(numbers: &mut Numbers, axes: &[String], arrays: &[String]) -> Vec<String> {
    let mut axes = axes.to_vec();
    // Mostly in the order of the names: where these are i, j and p, or m, n and p, the last one is the reduced one.
    if numbers.below(4) == 0 {
        let at = numbers.below(axes.len());
        axes.rotate_left(at);
    }
    let first = numbers.below(arrays.len() - 1);
    let [row, column, step] = [&axes[0], &axes[1], &axes[axes.len() - 1]];
    let (rows, columns) = (*numbers.one_of(&[16, 32, 64, 128]), *numbers.one_of(&[16, 32, 64, 128]));
    let (down, across) = (*numbers.one_of(&[1, 2, 4, 8]), *numbers.one_of(&[1, 2, 4, 8]));
    let steps = *numbers.one_of(&[4, 8, 16, 32]);
    let depth = 1 + numbers.below(4);
    let mut lines = vec![
        format!("tile {row}: {rows}, {column}: {columns}, {step}: {steps}"),
        format!("per_thread {row}: {down}, {column}: {across}"),
    ];
    for array in &arrays[first..first + 2] {
        let pad = *numbers.one_of(&["", "", " pad 4", " pad 8", " swizzle"]);
        lines.push(format!("stage {array}{pad} depth {depth}"));
    }
    if numbers.below(2) == 0 {
        lines.push(format!("unroll {step}: {}", numbers.one_of(&[1, 2, 4, 8])));
    }
    lines
}

/// What a directive is about, and its text; both empty where the kernel has no name for it.
fn directive(numbers: &mut Numbers, axes: &[String], arrays: &[String]) -> (String, String) {
    let powers = [1, 2, 4, 8, 16, 32, 64, 128];
    let word = *numbers.one_of(&[
        "block",
        "order",
        "tile",
        "tile",
        "per_thread",
        "per_thread",
        "stage",
        "stage",
        "unroll",
        "vectorize",
        "vectorize",
        "warps",
        "split",
        "split",
        "atomic",
        "fast_math",
        "tiles",
    ]);
    let none = (String::new(), String::new());
    match word {
        "block" => {
            let threads = *numbers.one_of(&[1, 16, 32, 48, 64, 96, 128, 256, 512, 1024]);
            ("block".to_string(), format!("block {threads}"))
        }
        "fast_math" => ("fast_math".to_string(), "fast_math".to_string()),
        "order" if axes.len() > 1 => {
            let mut names = axes.to_vec();
            for at in (1..names.len()).rev() {
                names.swap(at, numbers.below(at + 1));
            }
            names.truncate(2 + numbers.below(2));
            ("order".to_string(), format!("order {}", names.join(", ")))
        }
        // Tiles of several axes, with what a thread takes of them.
        "tiles" if axes.len() > 1 => {
            let at = numbers.below(axes.len() - 1);
            let (one, other) = (&axes[at], &axes[at + 1]);
            let sizes = [4, 8, 16, 32, 64];
            let (size, across) = (numbers.one_of(&sizes), numbers.one_of(&sizes));
            let each = numbers.one_of(&[1, 2, 4]);
            let text = format!("tile {one}: {size}, {other}: {across}; per_thread {one}: {each}");
            ("tiles".to_string(), text)
        }
        "stage" | "atomic" if !arrays.is_empty() => {
            let array = numbers.one_of(arrays);
            let how = if word == "stage" {
                *numbers.one_of(&["", "", " pad 1", " pad 4", " swizzle", " depth 1", " depth 2"])
            } else {
                ""
            };
            (format!("{word} {array}"), format!("{word} {array}{how}"))
        }
        "tile" | "per_thread" | "unroll" | "vectorize" | "warps" | "split" if !axes.is_empty() => {
            let axis = numbers.one_of(axes);
            let value = match word {
                "tile" => *numbers.one_of(&powers),
                "split" => *numbers.one_of(&[1, 2, 3, 7, 64]),
                "unroll" => *numbers.one_of(&[1, 2, 3, 5, 8]),
                _ => *numbers.one_of(&powers[..5]),
            };
            (format!("{word} {axis}"), format!("{word} {axis}: {value}"))
        }
        _ => none,
    }
}

#[cfg(test)]
mod tests {
    use super::random_schedule;

    #[test]
    fn every_directive_comes_up_and_the_seed_decides() {
        let (axes, array) = (["i".to_string(), "j".to_string()], ["x".to_string()]);
        let texts: Vec<String> = (0..300).map(|seed| random_schedule("k", &axes, &array, seed)).collect();
        let all = texts.concat();
        for word in [
            "block",
            "order",
            "tile",
            "per_thread",
            "stage",
            "unroll",
            "vectorize",
            "warps",
            "split",
            "atomic",
            "fast_math",
        ] {
            assert!(all.contains(word), "{word}");
        }
        let names = ["i", "j", "p"].map(String::from);
        let arrays = ["a", "b"].map(String::from);
        let shaped = |seed| random_schedule("k", &names, &arrays, seed).contains("stage b depth 2");
        assert!((0..300).any(shaped));
        assert_eq!(texts[7], random_schedule("k", &axes, &array, 7));
        assert!(!random_schedule("k", &[], &[], 1).contains("tile"));
    }
}
