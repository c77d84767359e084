//! Preemptible instances through the API. Tests are named after the features of PRE.

use jiff::SignedDuration;
use leases::preemption::{Class, EndState, Mark};
use serde_json::{Value, json};
use service::Settings;

use crate::site::{Site, hosts_lease};

fn instance(hints: &Value) -> Value {
    json!({"name": "batch", "vcpus": 2, "memory_mb": 2048, "disk_gb": 10, "scheduler_hints": hints})
}

#[tokio::test]
async fn pre_03_b_a_hint_makes_an_instance_preemptible_and_its_owner_is_told_until_when_it_is_safe() {
    let mut settings = Settings::default();
    settings.preemption.allowed = true;
    settings.plan_rules.clear_ahead = Some(SignedDuration::from_mins(2));
    let site = Site::of_settings(settings).await;
    site.add_hosts(1).await;
    site.lease(&hosts_lease(1, 1, "2030-01-01 12:00", "2030-01-01 13:00")).await;
    let post = async |hints: Value| site.post("/v1/instances", &instance(&hints)).await;
    let made = post(json!({"preemptible": true})).await.ok(201)["instance"].clone();
    assert_eq!((&made["kind"], &made["lease_id"]), (&json!("preemptible"), &Value::Null));
    assert_eq!(made["safe_until"], "2030-01-01T11:58:00Z", "{made}");
    let listed = site.get("/v1/instances").await.ok(200);
    assert_eq!(listed["instances"][0]["kind"], "preemptible");
    // A regular instance can't use a host that is leased later.
    let regular = post(json!({"preemptible": false})).await;
    assert_eq!(regular.status, 409);
    let wrong = post(json!({"preemptible": "sometimes"})).await;
    assert_eq!(wrong.error(), (400, "Malformed parameter scheduler_hints.preemptible".to_owned()));
    let lease = json!({"preemptible": true, "lease": "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753"});
    assert_eq!(
        post(lease).await.error(),
        (400, "Malformed parameter scheduler_hints.preemptible".to_owned())
    );
}

#[tokio::test]
async fn pre_03_a_administrators_list_projects_whose_instances_are_preemptible() {
    let mut settings = Settings::default();
    settings.preemption.allowed = true;
    settings.preemption.projects.extend("spot-?".parse());
    let site = Site::of_settings(settings).await;
    site.add_hosts(1).await;
    let kind = async || {
        let made = site.post("/v1/instances", &instance(&json!({}))).await.ok(201);
        made["instance"]["kind"].as_str().expect("a kind").to_owned()
    };
    assert_eq!(kind().await, "regular");
    let put =
        async |pattern: &str| site.put(&format!("/v1/preemptible/projects/{pattern}"), &Value::Null).await;
    let listed = put("%2A").await.ok(200)["project"].clone();
    assert_eq!((&listed["pattern"], listed["created_at"].is_string()), (&json!("*"), true));
    assert_eq!(put("%2A").await.ok(200)["project"], listed, "it is listed already");
    assert_eq!(kind().await, "preemptible");
    let by_settings = json!({"pattern": "spot-?", "created_at": null});
    let all = site.get("/v1/preemptible/projects").await.ok(200);
    assert_eq!(all, json!({"projects": [by_settings, listed]}));
    site.delete("/v1/preemptible/projects/%2A").await.ok(204);
    assert_eq!(kind().await, "regular");
    let again = site.delete("/v1/preemptible/projects/%2A").await;
    assert_eq!(again.error(), (404, "No projects are listed as *".to_owned()));
    let fixed = site.delete("/v1/preemptible/projects/spot-%3F").await;
    assert_eq!(fixed.error(), (409, "spot-? is listed in the settings, preemptible.projects".to_owned()));
    for pattern in ["%20", "a%00b", &"x".repeat(256)] {
        assert_eq!(put(pattern).await.status, 400, "{pattern}");
    }
}

#[tokio::test]
async fn pre_03_c_d_properties_of_flavors_and_images_make_it_preemptible_where_the_operator_allows_that() {
    let mut settings = Settings::default();
    settings.preemption.allowed = true;
    settings.preemption.marks.remove(&Mark::Image);
    let site = Site::of_settings(settings).await;
    site.add_hosts(1).await;
    let preemptible = json!({"blazar:preemptible": "true"});
    let request = |more: Value| {
        let mut body = instance(&json!({}));
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    let made = site.post("/v1/instances", &request(json!({"flavor_properties": preemptible}))).await.ok(201);
    assert_eq!(made["instance"]["kind"], "preemptible");
    let image = site.post("/v1/instances", &request(json!({"image_properties": preemptible}))).await;
    let not_allowed = "The instance's image makes it preemptible, which is not allowed here";
    assert_eq!(image.error(), (403, not_allowed.to_owned()));
    let both = json!({"flavor_properties": preemptible, "scheduler_hints": {"preemptible": false}});
    let both = site.post("/v1/instances", &request(both)).await;
    let contradiction = "The instance's flavor makes it preemptible, and its hint says that it is not";
    assert_eq!(both.error(), (400, contradiction.to_owned()));
}

#[tokio::test]
async fn pre_07_an_instance_says_of_which_class_it_is_and_how_much_notice_it_has() {
    let mut settings = Settings::default();
    settings.preemption.allowed = true;
    settings.preemption.classes =
        vec![Class::new("batch", SignedDuration::from_mins(5), EndState::Stop).expect("a class")];
    let site = Site::of_settings(settings).await;
    site.add_hosts(1).await;
    let post = async |hints: Value| site.post("/v1/instances", &instance(&hints)).await;
    let made = post(json!({"preemptible_class": "batch"})).await.ok(201)["instance"].clone();
    let shown = [&made["kind"], &made["preemptible_class"], &made["notice_seconds"]];
    assert_eq!(shown, [&json!("preemptible"), &json!("batch"), &json!(300)]);
    let id = made["id"].as_str().expect("text");
    let started = site.post(&format!("/v1/instances/{id}/start"), &Value::Null).await;
    let (status, why) = started.error();
    assert_eq!((&made["end_state"], status), (&json!("stop"), 409));
    assert!(why.ends_with("one can be started that is SHELVED_OFFLOADED"), "{why}");
    let usual = post(json!({"preemptible": true})).await.ok(201)["instance"].clone();
    assert_eq!((&usual["preemptible_class"], &usual["notice_seconds"]), (&Value::Null, &Value::Null));
    let unknown = post(json!({"preemptible_class": "gold"})).await;
    let none = "There is no class 'gold' of preemptible instances; there are: batch";
    assert_eq!(unknown.error(), (400, none.to_owned()));
    let both = post(json!({"preemptible_class": "batch", "preemptible": false})).await;
    let contradiction = "The instance's hint makes it preemptible, and its hint says that it is not";
    assert_eq!(both.error(), (400, contradiction.to_owned()));
}

#[tokio::test]
async fn pre_04_a_scheduler_asks_for_many_hosts_at_once() {
    let mut settings = Settings::default();
    settings.preemption.allowed = true;
    settings.plan_rules.clear_ahead = Some(SignedDuration::from_mins(2));
    let site = Site::of_settings(settings).await;
    site.add_hosts(2).await;
    site.lease(&hosts_lease(1, 1, "2030-01-01 12:00", "2030-01-01 13:00")).await;
    let ask = async |body: Value| site.post("/v1/instances/filter", &body).await;
    let answer = ask(json!({"scheduler_hints": {"preemptible": true}})).await.ok(200);
    assert_eq!(answer["kind"], "preemptible");
    let untils: Vec<&Value> =
        answer["hosts"].as_array().expect("a list").iter().map(|host| &host["until"]).collect();
    assert!(untils.contains(&&json!("2030-01-01T11:58:00Z")) && untils.contains(&&Value::Null), "{answer}");
    let names = json!(["elsewhere", answer["hosts"][0]["host"]]);
    let answer = ask(json!({"hosts": names, "vcpus": 99, "memory_mb": 1})).await.ok(200);
    let hosts = answer["hosts"].clone();
    let free = json!({"host": "elsewhere", "allowed": true, "until": null, "reason": null});
    assert_eq!((&hosts[0], &hosts[1]["allowed"]), (&free, &json!(false)));
    let wrong = ask(json!({"hosts": "elsewhere"})).await;
    assert_eq!(wrong.error(), (400, "Malformed parameter hosts".to_owned()));
}

#[tokio::test]
async fn pre_15_where_the_operator_does_not_allow_it_that_is_said() {
    let site = Site::of_settings(Settings::default()).await;
    site.add_hosts(1).await;
    let refused = site.post("/v1/instances", &instance(&json!({"preemptible": true}))).await;
    assert_eq!(refused.error(), (403, "Preemptible instances are not allowed here".to_owned()));
    let plain = site.post("/v1/instances", &instance(&json!({}))).await.ok(201);
    assert_eq!(
        (&plain["instance"]["kind"], &plain["instance"]["safe_until"]),
        (&json!("regular"), &Value::Null)
    );
}

#[tokio::test]
async fn an_instance_shows_when_it_has_run_for_as_long_as_it_may() {
    let mut settings = Settings::default();
    settings.preemption.allowed = true;
    settings.plan_rules.max_lifetime = Some(SignedDuration::from_hours(24));
    let site = Site::of_settings(settings).await;
    site.add_hosts(1).await;
    for preemptible in [true, false] {
        site.post("/v1/instances", &instance(&json!({ "preemptible": preemptible }))).await.ok(201);
    }
    site.pass(SignedDuration::from_mins(1)).await;
    let shown = site.get("/v1/instances").await.ok(200);
    let of = |kind: &str| {
        let all = shown["instances"].as_array().expect("a list");
        all.iter().find(|instance| instance["kind"] == kind).cloned().expect("it runs")
    };
    let (limited, regular) = (of("preemptible"), of("regular"));
    let at = |field: &str| {
        let text = limited[field].as_str().unwrap_or_else(|| panic!("{field}: {limited}"));
        text.parse::<jiff::Timestamp>().expect("a date")
    };
    assert_eq!(at("deadline").duration_since(at("launched_at")), SignedDuration::from_hours(24));
    assert_eq!(at("deadline").duration_since(at("safe_until")), SignedDuration::from_mins(1), "its notice");
    let departure = (&limited["departure"]["asked_at"], &limited["departure"]["gone_by"]);
    assert_eq!(departure, (&limited["safe_until"], &limited["deadline"]));
    assert_eq!((&regular["departure"], &regular["deadline"]), (&Value::Null, &Value::Null));
}
