//! Rules and refusals on small handmade pools.

use std::collections::BTreeSet;

use super::*;

const MEMORY: usize = 1;

/// Nodes with 8 virtual CPUs and 16 MiB, all of them candidates.
fn pool(nodes: u64, wanted: usize) -> Request {
    let node = |id| Node::new(NodeId(id), Role::Candidate, vec![8, 16]);
    let weights = CostWeights::default();
    Request { nodes: (0..nodes).map(node).collect(), guests: Vec::new(), wanted, n_plus_one: None, weights }
}

impl Request {
    /// Adds a guest that costs as many points to move as it has MiB.
    fn with(mut self, node: u64, vcpus: u64, memory_mib: u64) -> Self {
        let id = GuestId(self.guests.len() as u128);
        self.guests.push(Guest { memory_mib, ..Guest::new(id, NodeId(node), vec![vcpus, memory_mib]) });
        self
    }

    fn guest(mut self, at: usize, change: impl Fn(&mut Guest)) -> Self {
        change(&mut self.guests[at]);
        self
    }

    fn node(mut self, at: usize, change: impl Fn(&mut Node)) -> Self {
        change(&mut self.nodes[at]);
        self
    }

    fn redundant(mut self) -> Self {
        let nodes = self.nodes.iter().map(|node| node.id).collect();
        self.n_plus_one = Some(NPlusOne { nodes, dimensions: vec![MEMORY] });
        self
    }

    fn planned(&self) -> Plan {
        let plan = plan(self, Effort::default()).unwrap();
        assert_eq!(check(self, &plan), Ok(()));
        plan
    }

    fn refused(&self) -> Refusal {
        plan(self, Effort::default()).unwrap_err()
    }
}

fn moved(plan: &Plan) -> Vec<(u128, u64)> {
    plan.moves.iter().map(|mov| (mov.guest.0, mov.to.0)).collect()
}

fn no_choice() -> Refusal {
    Refusal::NoRoom { wanted: 1, shortages: Vec::new() }
}

#[test]
fn the_cheapest_node_is_cleared_into_the_fullest() {
    let request = pool(3, 1).with(0, 1, 8).with(1, 1, 4).with(2, 1, 6);
    let plan = request.planned();
    assert_eq!(plan.cleared, [NodeId(1)]);
    assert_eq!(moved(&plan), [(1, 0)]);
    assert_eq!(plan.cost, Cost { memory_mib: 4, weighted: 4, ..Cost::default() });
    assert_eq!(plan.lower_bound, 4);
}

#[test]
fn the_weights_decide_what_is_cheap() {
    let mut request = pool(2, 1).with(0, 1, 8).with(1, 1, 4).guest(1, |guest| {
        guest.disk_gib = 2;
        guest.downtime_ms = 3;
        guest.priority = 5;
    });
    assert_eq!(request.planned().cleared, [NodeId(0)]);
    request.weights = CostWeights { per_gib_of_disk: 0, per_ms_of_downtime: 0, ..request.weights };
    assert_eq!(request.planned().cleared, [NodeId(1)]);
    request.weights =
        CostWeights { per_mib_of_memory: 0, per_gib_of_disk: 7, per_ms_of_downtime: 2, ..request.weights };
    request = request.node(0, |node| node.role = Role::Receiver);
    let cost = Cost { memory_mib: 4, disk_gib: 2, downtime_ms: 3, weighted: 44, ..Cost::default() };
    assert_eq!(request.planned().cost, cost);
}

#[test]
fn a_surcharge_makes_a_node_the_last_choice() {
    let request = pool(2, 1).node(0, |node| node.surcharge = 5).with(1, 1, 4);
    assert_eq!(request.planned().cleared, [NodeId(1)]);
    let request = request.with(1, 1, 2);
    let plan = request.planned();
    assert_eq!((plan.cleared, plan.cost.surcharge, plan.cost.weighted), (vec![NodeId(0)], 5, 5));
}

#[test]
fn who_waits_moves_nobody() {
    let mut request = pool(2, 1).with(0, 1, 4).with(1, 1, 8).node(0, |node| node.free_in_seconds = Some(3));
    assert_eq!(request.planned().waits, []);
    request.weights.per_second_of_waiting = 1;
    let plan = request.planned();
    assert_eq!((plan.waits, plan.cleared, plan.moves), (vec![(NodeId(0), 3)], vec![], vec![]));
    assert_eq!(plan.cost, Cost { waiting_seconds: 3, weighted: 3, ..Cost::default() });
}

#[test]
fn a_node_that_cannot_be_cleared_is_waited_for() {
    let request = pool(2, 1).with(0, 1, 4).with(1, 1, 4);
    let request = request.guest(0, |guest| guest.movable = false).guest(1, |guest| guest.movable = false);
    let others = Unclearable { unmovable: 2, ..Unclearable::default() };
    assert_eq!(request.refused(), Refusal::TooFewCandidates { wanted: 1, clearable: 0, others });
    let request = request.node(1, |node| node.free_in_seconds = Some(60));
    assert_eq!(request.planned().waits, [(NodeId(1), 60)]);
}

#[test]
fn it_is_said_why_candidates_are_too_few() {
    let request = pool(5, 3)
        .node(0, |node| node.role = Role::Closed)
        .node(1, |node| node.role = Role::Receiver)
        .with(2, 1, 1)
        .guest(0, |guest| guest.movable = false)
        .with(3, 1, 1)
        .guest(1, |guest| guest.requires = BTreeSet::from([Label(7)]));
    let others = Unclearable { not_candidates: 2, unmovable: 1, without_destination: 1 };
    let refusal = request.refused();
    assert_eq!(refusal, Refusal::TooFewCandidates { wanted: 3, clearable: 1, others });
    assert_eq!(
        refusal.to_string(),
        "3 nodes are wanted, but only 1 can be cleared: 2 are no candidates, 1 have guests that may not be moved, \
         1 have guests that no other node can take"
    );
}

#[test]
fn a_lack_of_room_is_told_by_dimension() {
    let request = pool(3, 2).with(0, 1, 6).with(1, 1, 6).with(2, 1, 6);
    let shortages = vec![Shortage { dimension: MEMORY, lacking: 2 }];
    let refusal = request.refused();
    assert_eq!(refusal, Refusal::NoRoom { wanted: 2, shortages });
    let text =
        "no choice of 2 nodes leaves enough room for their guests; there is a lack of 2 of dimension 1";
    assert_eq!(refusal.to_string(), text);
}

#[test]
fn what_fits_in_sum_but_not_in_pieces_is_refused_for_certain() {
    // The receivers have 12 and 7 MiB free, so either guest of 9 MiB finds a place, but not both.
    let request = pool(4, 2).with(0, 1, 9).with(1, 1, 9).with(2, 1, 4).with(3, 1, 9);
    let request =
        request.node(2, |node| node.role = Role::Receiver).node(3, |node| node.role = Role::Receiver);
    assert_eq!(request.refused(), Refusal::NoRoom { wanted: 2, shortages: Vec::new() });
    let hurried = Effort { exhaustive_looks: 0, ..Effort::default() };
    assert_eq!(plan(&request, hurried), Err(Refusal::SearchExhausted { wanted: 2, found: 1 }));
}

#[test]
fn guests_go_only_where_their_labels_are() {
    let request = pool(3, 1)
        .with(0, 1, 4)
        .guest(0, |guest| guest.requires = BTreeSet::from([Label(1)]))
        .with(1, 1, 5)
        .with(2, 1, 9)
        .node(1, |node| node.labels = BTreeSet::from([Label(1), Label(2)]));
    assert_eq!(moved(&request.planned()), [(0, 1)]);
}

#[test]
fn guests_of_a_group_never_meet() {
    let apart = |guest: &mut Guest| guest.exclusion = BTreeSet::from([ExclusionGroup(1)]);
    let request = pool(3, 1).with(0, 1, 1).with(0, 1, 1).with(1, 1, 9).with(2, 1, 5);
    let request = request.guest(0, apart).guest(1, apart);
    let mut targets: Vec<u64> = moved(&request.planned()).into_iter().map(|(_, to)| to).collect();
    targets.sort_unstable();
    assert_eq!(targets, [1, 2]);
    let request = request.guest(2, apart).node(1, |node| node.role = Role::Receiver);
    let request = request.node(2, |node| node.role = Role::Receiver);
    assert_eq!(request.refused(), no_choice());
}

#[test]
fn closed_nodes_receive_nobody_and_receivers_are_not_taken() {
    let request = pool(3, 1).with(0, 1, 4).with(1, 1, 1).with(2, 1, 1);
    let request = request.node(1, |node| node.role = Role::Closed).node(2, |node| node.role = Role::Receiver);
    let plan = request.planned();
    assert_eq!((plan.cleared.clone(), moved(&plan)), (vec![NodeId(0)], vec![(0, 2)]));
}

#[test]
fn what_is_too_full_already_receives_only_what_needs_nothing_of_it() {
    let request = pool(2, 1).with(0, 1, 0).with(1, 9, 1).node(1, |node| node.role = Role::Receiver);
    let others = Unclearable { not_candidates: 1, without_destination: 1, ..Unclearable::default() };
    assert_eq!(request.refused(), Refusal::TooFewCandidates { wanted: 1, clearable: 0, others });
    let request = request.guest(0, |guest| guest.size[0] = 0);
    assert_eq!(moved(&request.planned()), [(0, 1)]);
}

#[test]
fn a_moved_guest_gives_way_to_one_that_goes_nowhere_else() {
    let request = pool(3, 1)
        .with(0, 1, 6)
        .with(0, 1, 4)
        .guest(1, |guest| guest.requires = BTreeSet::from([Label(1)]))
        .with(1, 1, 10)
        .with(2, 1, 9)
        .node(1, |node| node.labels = BTreeSet::from([Label(1)]))
        .node(1, |node| node.role = Role::Receiver)
        .node(2, |node| node.role = Role::Receiver);
    let hurried = Effort { exhaustive_looks: 0, ..Effort::default() };
    let plan = plan(&request, hurried).unwrap();
    assert_eq!(check(&request, &plan), Ok(()));
    assert_eq!(moved(&plan).into_iter().collect::<BTreeSet<_>>(), BTreeSet::from([(0, 2), (1, 1)]));
}

#[test]
fn without_room_for_a_lost_node_nothing_is_cleared() {
    // Guests of 8 and 4 MiB would share one node, and the other node has 8 MiB free.
    let request = pool(3, 1).with(0, 1, 8).with(1, 1, 8).with(2, 1, 4);
    assert_eq!(request.planned().cleared, [NodeId(2)]);
    assert_eq!(request.redundant().refused(), no_choice());
}

#[test]
fn room_that_a_lost_node_needs_is_left() {
    let labelled = |node: &mut Node| node.labels = BTreeSet::from([Label(1)]);
    // Only node 0 could replace node 3.
    let request = pool(4, 1).with(0, 1, 9).with(1, 1, 8).with(2, 1, 6).with(3, 1, 4);
    let request = request.node(0, labelled).node(3, labelled);
    let mut request = request.guest(3, |guest| guest.requires = BTreeSet::from([Label(1)]));
    for at in [0, 1, 3] {
        request.nodes[at].role = Role::Receiver;
    }
    let careless = request.planned();
    assert_eq!(moved(&careless), [(2, 0)]);
    let request = request.redundant();
    assert_eq!(moved(&request.planned()), [(2, 1)]);
    assert_eq!(check(&request, &careless), Err(Violation::NotRedundant { steps: 1, node: NodeId(3) }));
}

#[test]
fn redundancy_that_is_hard_to_see_is_shown() {
    // With 8 and 5 MiB free, first fit decreasing finds places for 5, 4 and 3; with 7 and 5 it does not.
    let mut request = pool(4, 1).with(0, 1, 5).with(0, 1, 4).with(0, 1, 3).with(3, 1, 1);
    for (at, memory_mib) in [12, 8, 5, 1].into_iter().enumerate() {
        request.nodes[at].capacity[MEMORY] = memory_mib;
        request.nodes[at].role = if at == 3 { Role::Candidate } else { Role::Receiver };
    }
    // Virtual CPUs count for moves, but not for lost nodes.
    request.nodes[2].capacity[0] = 0;
    let request = request.redundant();
    let plan = request.planned();
    assert_eq!(moved(&plan), [(3, 1)]);
    let places = vec![(GuestId(0), NodeId(2)), (GuestId(1), NodeId(1)), (GuestId(2), NodeId(1))];
    assert_eq!(plan.refuges, [Refuge { node: NodeId(0), places }]);
    let not_redundant = Err(Violation::NotRedundant { steps: 1, node: NodeId(0) });
    assert_eq!(check(&request, &Plan { refuges: Vec::new(), ..plan.clone() }), not_redundant);
    let mut wrong = plan.clone();
    wrong.refuges[0].places[2].1 = NodeId(2);
    assert_eq!(check(&request, &wrong), not_redundant);
    let mut partial = plan;
    partial.refuges[0].places.pop();
    assert_eq!(check(&request, &partial), not_redundant);
}

#[test]
fn a_node_that_nobody_could_replace_before_is_no_obstacle_and_receives_nobody() {
    let request = pool(3, 1).with(0, 1, 2).with(1, 1, 3).with(2, 1, 20).redundant();
    let request = request.node(2, |node| node.capacity[MEMORY] = 32);
    assert_eq!(moved(&request.planned()), [(0, 1)]);
}

#[test]
fn requests_that_contradict_themselves_are_told_so() {
    let refused = |request: Request| match request.refused() {
        Refusal::Malformed(what) => what,
        other => panic!("{other}"),
    };
    let good = || pool(2, 1).with(0, 1, 1).with(1, 1, 1);
    assert_eq!(refused(good().node(1, |node| node.id = NodeId(0))), Malformed::DuplicateNode(NodeId(0)));
    assert_eq!(refused(good().guest(1, |g| g.id = GuestId(0))), Malformed::DuplicateGuest(GuestId(0)));
    let (guest, node) = (GuestId(1), NodeId(9));
    assert_eq!(refused(good().guest(1, |g| g.node = NodeId(9))), Malformed::UnknownNode { guest, node });
    assert_eq!(refused(good().guest(1, |g| g.size.push(1))), Malformed::Dimensions);
    assert_eq!(refused(good().guest(1, |g| g.size[0] = LARGEST_AMOUNT + 1)), Malformed::TooLarge);
    let rule = |nodes: &[u64], dimensions: &[usize]| Request {
        n_plus_one: Some(NPlusOne {
            nodes: nodes.iter().map(|id| NodeId(*id)).collect(),
            dimensions: dimensions.to_vec(),
        }),
        ..good()
    };
    assert_eq!(refused(rule(&[0, 9], &[MEMORY])), Malformed::UnknownMember(NodeId(9)));
    assert_eq!(refused(rule(&[0], &[])), Malformed::RedundantDimensions);
    assert_eq!(refused(rule(&[0], &[2])), Malformed::RedundantDimensions);
}

#[test]
fn nothing_wanted_is_nothing_done() {
    let plan = pool(2, 0).with(0, 1, 1).planned();
    assert_eq!((plan.cleared, plan.moves, plan.cost), (vec![], vec![], Cost::default()));
    let nothing = Request { nodes: Vec::new(), ..pool(0, 0) };
    assert_eq!(nothing.planned().cost.weighted, 0);
}

#[test]
fn the_largest_costs_do_not_overflow() {
    let most = |guest: &mut Guest| {
        (guest.memory_mib, guest.disk_gib, guest.downtime_ms, guest.priority) =
            (u64::MAX, u64::MAX, u64::MAX, 9);
    };
    let request = pool(4, 2).with(0, 1, 1).with(1, 1, 1).with(2, 1, 1).with(3, 1, 1);
    let request = (0..4).fold(request, |request, at| request.guest(at, most));
    assert_eq!(request.planned().lower_bound, u64::MAX);
}
