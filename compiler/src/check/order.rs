//! Dependency order: what must be checked before what, and who depends on himself.
//!
//! Written without recursion, so that a chain of a hundred thousand functions cannot exhaust the stack.

/// What [`dependency_order`] found.
pub(super) struct Order {
    /// Every node, after the nodes that it depends on (as far as there is no cycle).
    pub order: Vec<usize>,
    /// Cycles, each as the nodes on it: each depends on the next, the last one on the first.
    pub cycles: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// On the stack at this depth.
    Open(usize),
    Done,
}

/// `edges[a]` lists what `a` depends on. Linear in nodes and edges; of cycles, one is reported for each edge
/// that closes one.
pub(super) fn dependency_order(edges: &[Vec<usize>]) -> Order {
    let mut state = vec![State::New; edges.len()];
    let mut result = Order { order: Vec::with_capacity(edges.len()), cycles: Vec::new() };
    // (node, how many of its edges have been followed)
    let mut stack: Vec<(usize, usize)> = Vec::new();
    for root in 0..edges.len() {
        if state[root] != State::New {
            continue;
        }
        state[root] = State::Open(0);
        stack.push((root, 0));
        while let Some((node, next)) = stack.last_mut() {
            let node = *node;
            let Some(&target) = edges[node].get(*next) else {
                state[node] = State::Done;
                result.order.push(node);
                stack.pop();
                continue;
            };
            *next += 1;
            match state[target] {
                State::New => {
                    state[target] = State::Open(stack.len());
                    stack.push((target, 0));
                }
                State::Open(depth) => {
                    result.cycles.push(stack[depth..].iter().map(|(node, _)| *node).collect())
                }
                State::Done => {}
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_come_first_and_cycles_are_found() {
        let found = dependency_order(&[vec![1, 2], vec![2], vec![], vec![4], vec![3], vec![5]]);
        assert_eq!(found.order, [2, 1, 0, 4, 3, 5]);
        assert_eq!(found.cycles, [vec![3, 4], vec![5]]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let edges: Vec<Vec<usize>> =
            (0..200_000).map(|node| if node + 1 < 200_000 { vec![node + 1] } else { vec![] }).collect();
        assert_eq!(dependency_order(&edges).order[0], 199_999);
    }
}
