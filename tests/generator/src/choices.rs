//! The list of numbers that decides everything.

/// Numbers to take choices from; zeros past the end.
pub struct Choices<'a> {
    numbers: &'a [u32],
    at: usize,
}

impl<'a> Choices<'a> {
    pub fn new(numbers: &'a [u32]) -> Self {
        Choices { numbers, at: 0 }
    }

    fn next(&mut self) -> u32 {
        let number = self.numbers.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        number
    }

    /// A number below `count` (which is at least 1).
    pub fn below(&mut self, count: usize) -> usize {
        self.next() as usize % count
    }

    /// True once in `times`; false for 0.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// One of several; the first for 0.
    pub fn one_of<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())]
    }

    /// The next numbers, to be chosen from later.
    pub fn take(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.next()).collect()
    }

    pub fn seed(&mut self) -> u64 {
        u64::from(self.next())
    }
}
