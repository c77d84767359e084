//! Shrinks a failing case while it still fails, so that people can read it.

use crate::generate::model::Case;

/// Shrinks a failing case. `fails` returns whether a smaller case still fails, and is called at most `budget`
/// times.
pub fn shrink(case: &Case, budget: usize, mut fails: impl FnMut(&Case) -> bool) -> Case {
    let mut best = case.clone();
    let mut left = budget;
    loop {
        let before = left;
        let mut improved = false;
        for part in PARTS {
            improved |= shrink_part(&mut best, part, &mut left, &mut fails);
        }
        if !improved || left == 0 || before == left {
            return best;
        }
    }
}

/// A list in a case whose items can be removed.
struct Part {
    count: fn(&Case) -> usize,
    remove: fn(&mut Case, usize),
}

const PARTS: &[Part] = &[
    Part { count: |c| c.cluster.instances.len(), remove: |c, i| drop(c.cluster.instances.remove(i)) },
    Part { count: |c| c.cluster.groups.len(), remove: |c, i| c.cluster.remove_group(i) },
    Part { count: |c| c.cluster.nodes.len(), remove: |c, i| c.cluster.remove_node(i) },
    Part { count: |c| c.options.len(), remove: |c, i| drop(c.options.remove(i)) },
    Part { count: |c| c.cluster.tags.len(), remove: |c, i| drop(c.cluster.tags.remove(i)) },
    Part { count: |c| c.cluster.nodes.len(), remove: |c, i| c.cluster.nodes[i].tags.clear() },
    Part { count: |c| c.cluster.instances.len(), remove: |c, i| c.cluster.instances[i].tags.clear() },
    Part { count: |c| c.cluster.groups.len(), remove: |c, i| c.cluster.groups[i].policy = None },
    Part { count: |_| 1, remove: |c, _| c.cluster.policy = None },
    Part { count: |c| c.utilisation.len(), remove: |c, i| drop(c.utilisation.remove(i)) },
    Part { count: request_lists, remove: remove_from_request },
];

/// Removes runs of items, long runs first.
fn shrink_part(
    best: &mut Case,
    part: &Part,
    left: &mut usize,
    fails: &mut impl FnMut(&Case) -> bool,
) -> bool {
    let mut improved = false;
    let mut run = (part.count)(best).div_ceil(2);
    while run > 0 {
        let mut end = (part.count)(best);
        while end >= run && *left > 0 {
            let mut smaller = best.clone();
            for item in (end - run..end).rev() {
                (part.remove)(&mut smaller, item);
            }
            end -= run;
            if smaller.files() == best.files() && smaller.arguments() == best.arguments() {
                continue;
            }
            *left -= 1;
            if fails(&smaller) {
                *best = smaller;
                improved = true;
                end = end.min((part.count)(best));
            }
        }
        run /= 2;
    }
    improved
}

/// Total number of items in the lists that are direct members of the request.
fn request_lists(case: &Case) -> usize {
    let mut count = 0;
    let mut copy = case.clone();
    each_list(&mut copy, |list| count += list.len());
    count
}

fn remove_from_request(case: &mut Case, item: usize) {
    let mut before = 0;
    each_list(case, |list| {
        let end = before + list.len();
        if (before..end).contains(&item) {
            list.remove(item - before);
        }
        before = end;
    });
}

fn each_list(case: &mut Case, mut visit: impl FnMut(&mut Vec<crate::json::Json>)) {
    if let Some(crate::json::Json::Object(members)) = &mut case.request {
        for (_, member) in members {
            if let crate::json::Json::List(list) = member {
                visit(list);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::generate::{self, model::Program};

    use super::*;

    #[test]
    fn leaves_only_what_matters() {
        let case =
            (0..1000).map(|s| generate::case(s, Program::Hbal)).find(|c| c.cluster.instances.len() > 20);
        let case = case.expect("some case has that many");
        let wanted = case.cluster.instances[11].name.clone();
        let small = shrink(&case, 1000, |c| c.cluster.instances.iter().any(|i| i.name == wanted));
        assert_eq!(small.cluster.instances.len(), 1);
        assert!(small.cluster.nodes.len() <= 2);
        assert!(small.options.is_empty() && small.cluster.tags.is_empty());
    }

    #[test]
    fn asks_no_more_than_allowed() {
        let mut asked = 0;
        let case = generate::case(5, Program::Hail);
        shrink(&case, 10, |_| {
            asked += 1;
            false
        });
        assert!(asked <= 10);
    }
}
