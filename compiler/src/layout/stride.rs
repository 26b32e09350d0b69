//! Strides: what a step of a digit adds to an offset.

/// How many bits of offset a step of a digit adds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stride {
    Known(i64),
    /// So many times a parameter of the kernel (its number), whose value the compiler does not know.
    Dynamic(u32, i64),
}

impl Stride {
    pub(super) fn times(self, factor: u64) -> Stride {
        match self {
            Stride::Known(stride) => Stride::Known(stride.wrapping_mul(factor as i64)),
            Stride::Dynamic(_, 0) => Stride::Known(0),
            Stride::Dynamic(parameter, times) => {
                Stride::Dynamic(parameter, times.wrapping_mul(factor as i64))
            }
        }
    }

    /// The stride, or how often the parameter is taken.
    pub(super) fn number(self) -> i64 {
        match self {
            Stride::Known(number) | Stride::Dynamic(_, number) => number,
        }
    }

    pub(super) fn parameter(self) -> Option<u32> {
        match self {
            Stride::Known(_) => None,
            Stride::Dynamic(parameter, _) => Some(parameter),
        }
    }

    /// Low bits of the offset that a step never changes; 64 for a stride of 0.
    pub(super) fn tz(self) -> u32 {
        self.number().trailing_zeros()
    }
}
