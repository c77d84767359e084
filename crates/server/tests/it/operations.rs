//! Alerts and the dashboard for operators refer only to metrics that exist.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::site::Site;

fn read(path: &str) -> String {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn rules() -> Vec<Value> {
    let rules: Value = serde_yaml_ng::from_str(&read("ops/prometheus/rules.yaml")).expect("YAML");
    let groups = rules["groups"].as_array().expect("groups");
    groups.iter().flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect()
}

/// Names of all metrics, as Prometheus stores them.
async fn served() -> BTreeSet<String> {
    let site = Site::open().await;
    site.get("/v1/leases").await.ok(200);
    let text = site.get("/metrics").await.text;
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let names = types.flat_map(|(name, kind)| {
        let endings: &[&str] = match kind {
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        endings.iter().map(move |ending| format!("{name}{ending}"))
    });
    names.collect()
}

/// The service's metrics in an expression.
fn asked(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("allot_"))
}

#[tokio::test]
async fn alerts_ask_for_figures_that_are_served() {
    let served = served().await;
    for rule in rules() {
        let expression = rule["expr"].as_str().expect("an expression");
        for name in asked(expression) {
            assert!(served.contains(name), "{}: there is no {name} among {served:?}", rule["alert"]);
        }
        for part in ["/labels/severity", "/annotations/summary", "/annotations/description"] {
            assert!(rule.pointer(part).is_some_and(Value::is_string), "{}: no {part}", rule["alert"]);
        }
    }
}

#[test]
fn what_to_do_about_each_alert_is_documented() {
    let document = read("docs/how-to/operations.md");
    let mut names = BTreeSet::new();
    for rule in rules() {
        let name = rule["alert"].as_str().expect("a name");
        assert!(names.insert(name.to_owned()), "{name} occurs twice");
        assert!(document.contains(&format!("| `{name}` |")), "{name} is not in docs/how-to/operations.md");
    }
}

#[tokio::test]
async fn the_dashboard_asks_for_figures_that_are_served() {
    let served = served().await;
    let dashboard: Value = serde_json::from_str(&read("ops/grafana/leasing.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let identifiers: BTreeSet<_> =
        panels.iter().map(|panel| panel["id"].as_u64().expect("a number")).collect();
    assert_eq!(identifiers.len(), panels.len(), "each panel has a number of its own");
    for panel in panels {
        let targets = panel["targets"].as_array().expect("targets");
        let expressions: Vec<&str> =
            targets.iter().map(|target| target["expr"].as_str().expect("an expression")).collect();
        assert!(
            expressions.iter().any(|expression| asked(expression).next().is_some()),
            "{}",
            panel["title"]
        );
        for name in expressions.iter().flat_map(|expression| asked(expression)) {
            assert!(served.contains(name), "{}: there is no {name}", panel["title"]);
        }
    }
}
