//! Linear algebra over GF(2). A vector is the bits of a `u128`; addition is xor.

/// A basis in echelon form: no two vectors have the same highest bit.
#[derive(Clone, Default)]
pub struct Span {
    basis: Vec<u128>,
}

impl Span {
    /// The span of some vectors.
    pub fn of(vectors: impl IntoIterator<Item = u128>) -> Span {
        let mut span = Span::default();
        for vector in vectors {
            span.insert(vector);
        }
        span
    }

    /// What is left of a vector when the basis is subtracted; 0 where the span holds it.
    fn reduced(&self, mut vector: u128) -> u128 {
        // The basis is sorted, highest first, so that one pass clears all leading bits.
        for base in &self.basis {
            vector = vector.min(vector ^ base);
        }
        vector
    }

    pub fn holds(&self, vector: u128) -> bool {
        self.reduced(vector) == 0
    }

    /// Adds a vector. Says whether the span has grown.
    pub fn insert(&mut self, vector: u128) -> bool {
        let rest = self.reduced(vector);
        if rest == 0 {
            return false;
        }
        let at = self.basis.partition_point(|base| *base > rest);
        self.basis.insert(at, rest);
        true
    }

    pub fn dimension(&self) -> usize {
        self.basis.len()
    }
}

/// A basis of the vectors that lie in the span of both lists (Zassenhaus).
pub fn intersection(left: &[u128], right: &[u128]) -> Vec<u128> {
    // Rows are pairs (sum, part of the left one); where the sum vanishes, the left part lies in both spans.
    let mut pairs: Vec<(u128, u128)> = Vec::new();
    let mut both = Span::default();
    let mut common = Vec::new();
    let rows = left.iter().map(|vector| (*vector, *vector)).chain(right.iter().map(|vector| (*vector, 0)));
    for (mut sum, mut part) in rows {
        for (base, base_part) in &pairs {
            if sum ^ base < sum {
                (sum, part) = (sum ^ base, part ^ base_part);
            }
        }
        if sum != 0 {
            let at = pairs.partition_point(|pair| pair.0 > sum);
            pairs.insert(at, (sum, part));
        } else if both.insert(part) {
            common.push(part);
        }
    }
    common
}

/// Solves rows · x = right sides with as few ones in x as pivots: for each column its value as a combination
/// of right sides (a mask of rows), or `None` where the column is free and taken as zero. `None` where rows
/// depend on each other. Columns are tried in ascending order, so that the first that can be a pivot is one.
pub fn right_inverse(rows: &[u128], columns: usize) -> Option<Vec<Option<u128>>> {
    let mut rows: Vec<(u128, u128)> = rows.iter().enumerate().map(|(at, row)| (*row, 1 << at)).collect();
    let mut pivots = vec![None; columns];
    let mut done = 0;
    for (column, pivot) in pivots.iter_mut().enumerate() {
        let Some(found) = (done..rows.len()).find(|row| rows[*row].0 >> column & 1 == 1) else { continue };
        rows.swap(done, found);
        let (row, right) = rows[done];
        for (at, other) in rows.iter_mut().enumerate() {
            if at != done && other.0 >> column & 1 == 1 {
                *other = (other.0 ^ row, other.1 ^ right);
            }
        }
        *pivot = Some(done);
        done += 1;
    }
    (done == rows.len()).then(|| pivots.into_iter().map(|pivot| pivot.map(|row| rows[row].1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intersections_lie_in_both_spans_and_have_their_dimension() {
        for seed in 0u128..200 {
            let vector = |at: u128| (seed + 1).wrapping_mul(2_654_435_761 + 97 * at) >> 7 & 0x3f;
            let (left, right): (Vec<u128>, Vec<u128>) =
                ((0..3).map(vector).collect(), (3..7).map(vector).collect());
            let (of_left, of_right) = (Span::of(left.clone()), Span::of(right.clone()));
            let common = intersection(&left, &right);
            assert!(common.iter().all(|vector| of_left.holds(*vector) && of_right.holds(*vector)));
            let count = (0..64).filter(|vector| of_left.holds(*vector) && of_right.holds(*vector)).count();
            assert_eq!(1 << Span::of(common).dimension(), count);
        }
    }

    #[test]
    fn a_right_inverse_solves() {
        let rows = [0b1011, 0b0110];
        let columns = right_inverse(&rows, 4).unwrap();
        for wanted in 0..4u128 {
            let value = |rows: &u128| (rows & wanted).count_ones() as u128 & 1;
            let solution: u128 = (0..4).map(|at| columns[at].as_ref().map_or(0, value) << at).sum();
            let got =
                rows.iter().enumerate().map(|(at, row)| ((row & solution).count_ones() as u128 & 1) << at);
            assert_eq!(got.sum::<u128>(), wanted);
        }
        assert_eq!(right_inverse(&[3, 3], 2), None);
    }
}
