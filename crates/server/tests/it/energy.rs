//! Power saving through the API. Tests are named after the criteria of EN.

use std::sync::Arc;

use axum::http::Method;
use leases::energy::PowerRules;
use leases::project::ProjectId;
use serde_json::{Value, json};
use service::{EnergyMode, EnergySettings, Settings};
use store::memory::MemoryStore;
use store::{Commit, NewNotification, Store};

use crate::site::{Site, hosts_lease};

fn saving(mode: EnergyMode) -> Settings {
    let rules = PowerRules { horizon: jiff::SignedDuration::from_hours(24), ..PowerRules::default() };
    Settings { energy: EnergySettings { mode, rules, ..EnergySettings::default() }, ..Settings::default() }
}

/// Three hosts that draw 200 watts when idle, and 20 when off.
async fn site(mode: EnergyMode) -> Site {
    let site = Site::still_of_settings(saving(mode)).await;
    site.add_hosts(3).await;
    for host in 1..=3 {
        let noted = json!({"power_idle_watts": "200", "power_busy_watts": "400", "power_off_watts": "20"});
        site.put(&format!("/v1/os-hosts/{host}"), &noted).await.ok(200);
    }
    // One pass observes the hosts and switches off those that aren't needed.
    site.pass(jiff::SignedDuration::from_mins(1)).await;
    site
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[tokio::test]
async fn energy_a_the_plan_says_how_many_are_needed_and_which_may_be_off() {
    let site = site(EnergyMode::DryRun).await;
    site.lease(&hosts_lease(2, 2, "2030-01-01 14:00", "2030-01-01 16:00")).await;
    let plan = site.get("/v1/energy/plan").await.ok(200);
    assert_eq!((&plan["mode"], &plan["end"]), (&json!("dry_run"), &json!("2030-01-02T10:01:30Z")), "{plan}");
    let pool = &plan["pools"][0];
    assert_eq!((&pool["pool"], &pool["pool_id"]), (&json!("freepool"), &Value::Null));
    let needed: Vec<_> = pool["needed"].as_array().expect("steps").iter().map(|n| &n["hosts"]).collect();
    assert_eq!(needed, [1, 3, 1], "{pool}");
    assert_eq!((&pool["hosts"], &pool["hosts_needed"]), (&json!(3), &json!(3)));
    let off = pool["off"].as_array().expect("hosts");
    assert!(off.iter().any(|rest| rest["on_by"] == "2030-01-01T13:53:00Z"), "{off:?}");
    let shorter = site.get("/v1/energy/plan?horizon=2h").await.ok(200);
    assert_eq!(number(&shorter["pools"][0]["saved_kwh"]), 0.72, "two hosts, two hours, 180 watts");
    for wrong in ["soon", "-1h", "0s", "900d"] {
        let answer = site.get(&format!("/v1/energy/plan?horizon={wrong}")).await.ok(400);
        assert!(answer["error_message"].as_str().expect("text").contains("horizon"), "{answer}");
    }
}

#[tokio::test]
async fn energy_f_the_report_says_what_was_saved_and_hosts_how_they_are() {
    let site = site(EnergyMode::On).await;
    site.pass(jiff::SignedDuration::from_hours(2)).await;
    let hosts = site.get("/v1/energy/hosts").await.ok(200);
    let off: Vec<&Value> =
        hosts["hosts"].as_array().expect("hosts").iter().filter(|host| host["power"] == "off").collect();
    assert_eq!(off.len(), 2, "{hosts}");
    assert_eq!((&off[0]["idle_watts"], &off[0]["boot_seconds"]), (&json!(200.0), &json!(300)), "{hosts}");
    assert!(off[0]["since"].is_string());
    let report = site.get("/v1/energy/report").await.ok(200);
    let pool = &report["pools"][0];
    let saved = number(&report["saved_kwh"]);
    assert!(saved > 0.68 && saved < 0.73, "{report}");
    assert!((number(&pool["saved_kwh"]) / number(&pool["off_host_hours"]) - 0.18).abs() < 1e-3, "{report}");
    assert_eq!((&pool["switched_off"], &pool["switched_on"]), (&json!(2), &json!(0)));
    let before = site.get("/v1/energy/report?start=2029-01-01&end=2029-02-01").await;
    assert!(!before.text.contains("-0.0"), "{}", before.text);
    let before = before.ok(200);
    assert_eq!((&before["pools"], &before["saved_kwh"]), (&json!([]), &json!(0.0)));
    site.get("/v1/energy/report?start=2030-01-02&end=2030-01-01").await.ok(400);
}

#[tokio::test]
async fn energy_f_the_report_says_what_hosts_used_in_all() {
    let site = site(EnergyMode::Off).await;
    site.lease(&hosts_lease(1, 1, "2030-01-01 11:00", "2030-01-01 12:00")).await;
    site.pass("2030-01-01T11:00:00Z".parse::<jiff::Timestamp>().expect("a time").duration_since(site.now()))
        .await;
    site.pass(jiff::SignedDuration::from_hours(3)).await;
    let asked = "/v1/energy/report?start=2030-01-01T10:30:00Z&end=2030-01-01T12:30:00Z";
    let report = site.get(asked).await.ok(200);
    let pool = &report["pools"][0];
    assert_eq!((number(&pool["busy_host_hours"]), number(&pool["idle_host_hours"])), (1.0, 5.0), "{report}");
    assert_eq!((number(&pool["busy_kwh"]), number(&pool["idle_kwh"])), (0.4, 1.0), "{report}");
    assert_eq!((number(&report["total_kwh"]), &pool["hosts_without_watts"]), (1.4, &json!(0)), "{report}");
}

#[tokio::test]
async fn energy_g_only_administrators_are_told_of_hosts() {
    let store = MemoryStore::new();
    let told = NewNotification {
        lease: None,
        project: ProjectId(String::new()),
        event_type: "host.boot_failed".to_owned(),
        payload: json!({"host_id": "7"}).to_string(),
    };
    let commit = Commit { notifications: vec![told], ..Commit::new(jiff::Timestamp::UNIX_EPOCH) };
    store.commit(&commit).await.expect("accepted");
    let site = Site::still(Arc::new(store)).await;
    let seen = async |token: &str| {
        let answer = site.send_as(token, Method::GET, "/v1/notifications", None).await.ok(200);
        answer["notifications"].clone()
    };
    let expected = json!([{
        "number": 1, "timestamp": "1970-01-01T00:00:00Z", "event_type": "host.boot_failed", "lease_id": null,
        "project_id": null, "payload": {"host_id": "7"},
    }]);
    assert_eq!(seen("admin").await, expected);
    assert_eq!(seen("member").await, json!([]));
}
