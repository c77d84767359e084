//! Draws tags for exclusion, location, desired location and migration, with rules in the cluster's tags.

use chores::random::Random;

use super::model::Cluster;

const CLUSTER: [&str; 14] = [
    "htools:iextags:svc",
    "htools:iextags:svc:",
    "htools:iextags:role",
    "htools:iextags:",
    "htools:nlocation:rack",
    "htools:nlocation:power",
    "htools:nlocation:site",
    "htools:desiredlocation:site",
    "htools:desiredlocation:rack",
    "htools:migration:hv",
    "htools:allowmigration:hv:old::hv:new",
    "htools:allowmigration:hv:new::hv:old",
    "htools:allowmigration:hv:old::hv:new::x",
    "unrelated",
];
const NODE: [&str; 11] = [
    "rack:a",
    "rack:b",
    "rack:c",
    "power:1",
    "power:2",
    "site:x",
    "site:y",
    "hv:old",
    "hv:new",
    "hv:odd",
    "htools:standby:auto",
];
const INSTANCE: [&str; 10] =
    ["svc:dns", "svc:web", "svcother:x", "role:db", "role", "site:x", "site:y", "rack:a", "plain", "svc:"];

/// Adds tags to the cluster, its nodes and its instances. They come from short lists, so that they match.
pub fn decorate(random: &mut Random, cluster: &mut Cluster) {
    let owned = |tags: Vec<&str>| tags.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let count = 1 + random.below(7);
    cluster.tags = owned(random.some(&CLUSTER, count));
    if random.chance(20) {
        cluster.tags.reverse();
    }
    let migration = cluster.tags.iter().any(|t| t.starts_with("htools:migration"));
    for node in &mut cluster.nodes {
        let count = random.below(4);
        node.tags = owned(random.some(&NODE, count));
        if migration && random.chance(60) {
            node.tags.retain(|t| !t.starts_with("hv:"));
        }
    }
    let share = random.weighted(&[(40, 15), (40, 40), (20, 80)]);
    for instance in &mut cluster.instances {
        if random.chance(share) {
            let count = 1 + random.below(2);
            instance.tags = owned(random.some(&INSTANCE, count));
        }
    }
}

/// Tags for a requested instance.
pub fn for_instance(random: &mut Random) -> Vec<String> {
    let count = 1 + random.below(2);
    random.some(&INSTANCE, count).into_iter().map(str::to_owned).collect()
}
