//! The iterations of loops that literals count.

/// All places of a space, the last axis fastest.
pub(super) fn places<R: Iterator<Item = i64> + Clone>(axes: impl Iterator<Item = R>) -> Vec<Vec<i64>> {
    let mut places = vec![Vec::new()];
    for axis in axes {
        let longer = |place: &Vec<i64>| {
            let with = |index| place.iter().copied().chain([index]).collect::<Vec<i64>>();
            axis.clone().map(with).collect::<Vec<_>>()
        };
        places = places.iter().flat_map(longer).collect();
    }
    places
}
