//! Housekeeping through the API (HK).

use axum::http::Method;
use jiff::SignedDuration;
use leases::housekeeping::HousekeepingRules;
use leases::project::ProjectId;
use leases::requirement::Requirement;
use serde_json::{Value, json};
use service::Settings;

use crate::site::{Site, hosts_lease};

async fn kept(rules: HousekeepingRules) -> Site {
    let site = Site::of_settings(Settings { housekeeping: rules, ..Settings::default() }).await;
    site.add_hosts(4).await;
    site
}

#[tokio::test]
async fn hk_a_a_lease_that_nobody_uses_ends_with_a_reason() {
    let rules = HousekeepingRules {
        unused_warning: Some(SignedDuration::from_hours(6)),
        unused_reclaim: Some(SignedDuration::from_hours(9)),
        ..HousekeepingRules::default()
    };
    let site = kept(rules).await;
    let lease = site.lease(&hosts_lease(1, 1, "now", "2030-01-05 10:00")).await;
    let lease = site.until("2030-01-01T10:00:40Z", &lease, "ACTIVE").await;
    let types = async || {
        let told = site.get("/v1/notifications").await.ok(200);
        let all = told["notifications"].as_array().expect("a list").clone();
        all.iter().map(|one| one["event_type"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    site.clock.set("2030-01-01T16:00:40Z".parse().expect("an instant"));
    for _ in 0..10_000 {
        if types().await.contains(&"lease.unused".to_owned()) {
            break;
        }
        tokio::task::yield_now().await;
    }
    let lease = site.until("2030-01-01T19:10:00Z", &lease, "TERMINATED").await;
    let why = lease["status_reason"].as_str().expect("a reason");
    assert!(why.starts_with("it was ended because no instance ran in it within 9h"), "{why}");
    let types = types().await;
    for (event, times) in [("lease.unused", 1), ("lease.reclaimed", 1), ("lease.event.end_lease", 1)] {
        assert_eq!(types.iter().filter(|one| *one == event).count(), times, "{event}: {types:?}");
    }
}

#[tokio::test]
async fn hk_b_a_lease_that_would_stack_too_high_is_forbidden() {
    let mut settings = Settings::default();
    settings.rules.enforcement.max_stack = Some(SignedDuration::from_hours(2 * 24));
    let site = Site::of_settings(settings).await;
    site.add_hosts(2).await;
    let first = site.lease(&hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-03 10:00")).await;
    let refused = site.post("/v1/leases", &hosts_lease(1, 1, "2030-01-03 10:00", "2030-01-05 10:00")).await;
    let text = "Together with other leases of the project it would last 259200 seconds without a break of 17280 \
                seconds; at most 172800 seconds are allowed.";
    assert_eq!(refused.error(), (403, text.to_owned()));
    site.lease(&hosts_lease(1, 1, "2030-01-03 10:00", "2030-01-04 10:00")).await;
    let path = format!("/v1/leases/{}", first["id"].as_str().expect("an id"));
    let earlier = site.put(&path, &json!({"start_date": "2030-01-02 09:00"})).await;
    assert_eq!(earlier.error().0, 400);
    site.put(&path, &json!({"name": "other"})).await.ok(200);
}

#[tokio::test]
async fn hk_c_maintenance_is_planned_and_booked_by_administrators() {
    let maintenance_project = Some(ProjectId("operators".to_owned()));
    let site = kept(HousekeepingRules { maintenance_project, ..HousekeepingRules::default() }).await;
    let busy = site.lease(&hosts_lease(4, 4, "2030-01-01 11:00", "2030-01-01 12:00")).await;
    let body = json!({"hosts": ["r1-h01", "3"], "duration": "2h", "not_before": "2030-01-01 10:30"});
    let plan = site.post("/v1/maintenance?dry_run=true", &body).await.ok(200)["maintenance"].clone();
    let expected = |lease: &Value| {
        json!({"host_id": "1", "host": "r1-h01", "start_date": "2030-01-01T12:10:00Z",
            "end_date": "2030-01-01T14:10:00Z", "lease_id": lease})
    };
    assert_eq!((plan.as_array().map(Vec::len), &plan[0]), (Some(2), &expected(&Value::Null)));
    let booked = site.post("/v1/maintenance", &body).await.ok(201)["maintenance"].clone();
    assert_eq!(booked[0], expected(&booked[0]["lease_id"]));
    let path = format!("/v1/leases/{}", booked[0]["lease_id"].as_str().expect("booked"));
    let lease = site.get(&path).await.ok(200)["lease"].clone();
    assert_eq!(
        (&lease["name"], &lease["project_id"]),
        (&json!("maintenance of r1-h01"), &json!("operators"))
    );
    let full = json!({"hosts": ["1"], "duration": "2h", "before": "2030-01-01 13:00"});
    let refused = site.post("/v1/maintenance", &full).await;
    assert_eq!(refused.error(), (409, "There is no time for it on these hosts: r1-h01".to_owned()));
    let unknown = site.post("/v1/maintenance", &json!({"hosts": ["x"], "duration": "2h"})).await;
    assert_eq!(unknown.error().0, 404);
    assert_eq!(site.post("/v1/maintenance", &json!({"duration": "2h"})).await.error().0, 400);
    assert_eq!(busy["status"], "PENDING");
}

#[tokio::test]
async fn hk_g_an_owner_has_a_host_exchanged_if_the_operator_lets_it() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 3).await;
    let post = async |who, path: &str, body: &Value| site.send_as(who, Method::POST, path, Some(body)).await;
    let body = hosts_lease(1, 1, "now", "2030-01-01 12:00");
    let lease = post("member", "/v1/leases", &body).await.ok(201)["lease"].clone();
    let lease = site.until_as("member", "2030-01-01T10:00:40Z", &lease, "ACTIVE").await;
    let pool = format!("/v1/leasepools/{}", lease["reservations"][0]["id"].as_str().expect("an id"));
    let hosts = async || {
        let answer = site.send_as("member", Method::GET, &format!("{pool}/hosts"), None).await.ok(200);
        answer["hosts"][0]["id"].clone()
    };
    let (before, path) = (hosts().await, format!("{pool}/swap"));
    let off = post("member", &path, &json!({"host_id": before})).await;
    let text = "0 host(s) of the lease were exchanged; the operator allows 0";
    assert_eq!(off.error(), (409, text.to_owned()));
    assert_eq!(post("foreign", &path, &json!({"host_id": before})).await.error().0, 404);
    assert_eq!(post("member", &path, &json!({"host_id": "x"})).await.error().0, 400);
    post("admin", &path, &json!({"host_id": before})).await.ok(200);
    assert_ne!(hosts().await, before, "an administrator may always");
}

/// The example of `default_properties` on a documentation page.
fn documented(page: &str) -> Requirement {
    let line = page.lines().find(|line| line.contains("default_properties` ") && line.contains("`["));
    let line = line.expect("an example");
    let text = &line[line.find("`[").expect("an expression") + 1..];
    let text = &text[..text.find('`').expect("its end")];
    api::v1::read_requirement(&serde_json::from_str(text).expect("JSON")).expect("well formed")
}

#[tokio::test]
async fn hk_f_the_documented_example_keeps_gpu_hosts_for_last() {
    let example = documented(include_str!("../../../../docs/how-to/housekeeping.md"));
    assert_eq!(documented(include_str!("../../../../docs/reference/configuration.md")), example);
    let housekeeping = HousekeepingRules { default_properties: example, ..HousekeepingRules::default() };
    let site = Site::of_settings(Settings { housekeeping, ..Settings::default() }).await;
    site.add_hosts(3).await;
    for (id, gpu) in [("1", "yes"), ("3", "no")] {
        site.put(&format!("/v1/os-hosts/{id}"), &json!({"gpu": gpu})).await.ok(200);
    }
    let mut names = Vec::new();
    for _ in 0..3 {
        let lease = site.lease(&hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00")).await;
        names.push(lease["reservations"][0]["hosts"][0].clone());
    }
    let hosts = site.get("/v1/os-hosts").await.ok(200)["hosts"].clone();
    let name = |id: &str| {
        let mut hosts = hosts.as_array().expect("a list").iter();
        hosts.find(|host| host["id"] == id).expect("there")["hypervisor_hostname"].clone()
    };
    assert_eq!(names, [name("2"), name("3"), name("1")]);
}
