//! Files of utilization and of measured loads, with the options that name them.

use chores::random::Random;

use super::Drawn;
use crate::generate::model::Cluster;
use crate::json::Json;

/// Utilization of instances (`-U`).
pub(super) fn utilisation(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    let figure = |random: &mut Random| -> String {
        match random.below(4) {
            0 => random.below(5).to_string(),
            1 => format!("{:.1}", random.unit() * 3.0),
            2 => format!("{:.5}", random.unit() * 2.0),
            _ => format!("0.{}", random.below(10)),
        }
    };
    for instance in &cluster.instances {
        if random.chance(85) {
            let figures: Vec<String> = (0..4).map(|_| figure(random)).collect();
            drawn.utilisation.push(format!("{} {}", instance.name, figures.join(" ")));
        }
    }
    if random.chance(30) {
        drawn.utilisation.push("nosuch.instance 1 2 3 4".to_owned());
    }
    if random.chance(3) {
        drawn.utilisation.push("# a comment".to_owned());
    }
    drawn.add(["-U", "utilisation"]);
}

/// Measured loads (`--mond-data`).
pub(super) fn mond(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    let complete = random.chance(80);
    let mut answers = Vec::new();
    for node in &cluster.nodes {
        if !complete && random.chance(30) {
            continue;
        }
        let load = format!("{:.2}", random.unit() * 8.0);
        let cpus = vec![Json::number(&load), Json::number("0.5")];
        let data = Json::object([
            ("cpu_number", Json::number(2)),
            ("cpus", Json::List(cpus)),
            ("cpu_total", Json::number(&load)),
        ]);
        let report = Json::object([
            ("name", Json::text("cpu-avg-load")),
            ("version", Json::text("B")),
            ("format_version", Json::number(1)),
            ("timestamp", Json::number(1_379_507_272_000_000_000_i64)),
            ("category", Json::Null),
            ("kind", Json::number(0)),
            ("data", data),
        ]);
        answers.push(Json::object([("node", Json::text(&node.name)), ("reports", Json::List(vec![report]))]));
    }
    drawn.mond = Some(Json::List(answers));
    if random.chance(90) {
        drawn.add(["--mond", "--mond-data", "mond.json"]);
    } else {
        // without `--mond`, the file has no effect
        drawn.add(["--mond-data", "mond.json"]);
    }
}
