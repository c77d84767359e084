//! Free capacity over time.

use axum::http::Method;
use serde_json::{Value, json};

use crate::site::{Site, hosts_lease};

const FROM: &str = "start=2030-01-02T00:00:00Z&end=2030-01-03T00:00:00Z";

/// Hours at which the free count changes, with the new count.
fn steps(answer: &Value) -> Vec<(String, u64)> {
    let steps = answer["availability"]["steps"].as_array().expect("a list");
    let hour = |step: &Value| step["start"].as_str().expect("text")[11..16].to_owned();
    steps.iter().map(|step| (hour(step), step["free"].as_u64().expect("a number"))).collect()
}

fn found(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(hour, free)| ((*hour).to_owned(), *free)).collect()
}

#[tokio::test]
async fn free_hosts_are_said_in_steps_and_the_earliest_times_for_a_length() {
    let site = Site::open().await;
    site.add_hosts(3).await;
    site.lease(&hosts_lease(2, 2, "2030-01-02 10:00", "2030-01-02 12:00")).await;
    site.lease(&hosts_lease(3, 3, "2030-01-02 14:00", "2030-01-02 15:00")).await;
    let answer = site.get(&format!("/v1/availability?{FROM}&amount=2&duration=4h")).await.ok(200);
    assert_eq!(
        steps(&answer),
        found(&[("00:00", 3), ("10:00", 1), ("12:00", 3), ("14:00", 0), ("15:00", 3)])
    );
    let availability = &answer["availability"];
    assert_eq!(
        (&availability["total"], &availability["resource_type"]),
        (&json!(3), &json!("physical:host"))
    );
    let best = availability["best"].as_array().expect("a list");
    let starts: Vec<&str> = best.iter().map(|window| window["start"].as_str().expect("text")).collect();
    assert_eq!(starts, ["2030-01-02T00:00:00Z", "2030-01-02T04:00:00Z", "2030-01-02T15:00:00Z"]);
    let without = site.get(&format!("/v1/availability?{FROM}")).await.ok(200);
    assert!(without["availability"].get("best").is_none());
}

#[tokio::test]
async fn hosts_are_chosen_by_expressions_and_instances_are_counted_by_room() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    site.put("/v1/os-hosts/1", &json!({"rack": "r9"})).await.ok(200);
    let one = site
        .get(&format!("/v1/availability?{FROM}&resource_properties=[%22==%22,%22$rack%22,%22r9%22]"))
        .await;
    assert_eq!(one.ok(200)["availability"]["total"], 1);
    let asked = async |expression: &str| {
        site.get(&format!("/v1/availability?{FROM}&resource_properties={expression}")).await
    };
    let unknown = asked("[%22==%22,%22$rak%22,%22r9%22]").await.error();
    assert_eq!(
        unknown,
        (400, "Malformed requirements: no host has a property rak; there is rack".to_owned())
    );
    // The expression can hold without the unknown name, or has no unknown name.
    for (expression, total) in [
        ("[%22or%22,[%22==%22,%22$rack%22,%22r9%22],[%22==%22,%22$rak%22,%22r9%22]]", 1),
        ("[%22not%22,[%22==%22,%22$rak%22,%22r9%22]]", 2),
        ("[%22==%22,%22$rack%22,%22r8%22]", 0),
    ] {
        assert_eq!(asked(expression).await.ok(200)["availability"]["total"], total, "{expression}");
    }
    let slots = json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 11:00", "reservations": [
        {"resource_type": "virtual:instance", "vcpus": 8, "memory_mb": 512, "disk_gb": 1, "amount": 1, "affinity": null,
         "resource_properties": ""}]});
    site.lease(&slots).await;
    let room = site.get(&format!("/v1/availability?{FROM}&vcpus=8&memory_mb=512")).await.ok(200);
    assert_eq!(steps(&room), found(&[("00:00", 4), ("10:00", 3), ("11:00", 4)]), "16 vCPUs a host");
}

/// Requests of `blazar flavor-instance-availability` in Chameleon's python-blazarclient, and the columns that
/// it prints.
#[tokio::test]
async fn chameleons_python_blazarclient_reads_the_room_for_instances_of_flavors() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 2).await;
    for (id, public) in [("m1", true), ("secret", false)] {
        let flavor = json!({"id": id, "name": id, "vcpus": 8, "ram": 512, "disk": 1, "os-flavor-access:is_public": public});
        site.send_as("admin", Method::POST, "/v1/flavors", Some(&flavor)).await.ok(201);
    }
    let lease = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 11:00");
    site.send_as("member", Method::POST, "/v1/leases", Some(&lease)).await.ok(201);
    let ask = async |query: &str| {
        let path = format!("/v1/flavor-instances/availability{query}");
        site.send_as("foreign", Method::GET, &path, None).await
    };
    let answer = ask("?flavor_id=m1&start_date=2030-01-02%2009:00&end_date=2030-01-02%2012:00").await.ok(200);
    let row = |start: &str, end: &str, available: u64| {
        json!({"start": format!("2030-01-02 {start}"), "end": format!("2030-01-02 {end}"),
            "available": available, "total": 4})
    };
    let rows = [row("09:00", "10:00", 4), row("10:00", "11:00", 2), row("11:00", "12:00", 4)];
    assert_eq!(answer, json!({"flavor_instances": [{"flavor_id": "m1", "availability": rows}]}));
    let all = ask("").await.ok(200);
    let flavors = all["flavor_instances"].as_array().expect("a list");
    assert_eq!(flavors.len(), 1, "the other flavor is not for members");
    assert_eq!(flavors[0]["availability"].as_array().expect("a list").len(), 3);
    assert_eq!(ask("?flavor_id=secret").await.error(), (400, "Flavor secret not found".to_owned()));
}

#[tokio::test]
async fn a_member_of_another_project_learns_numbers_and_nothing_else() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 1).await;
    let lease = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 11:00");
    site.send_as("member", Method::POST, "/v1/leases", Some(&lease)).await.ok(201);
    let path = format!("/v1/availability?{FROM}");
    let answer = site.send_as("foreign", Method::GET, &path, None).await;
    assert!(!answer.text.contains("r1-h01") && !answer.text.contains("member"), "{}", answer.text);
    assert_eq!(steps(&answer.ok(200)), found(&[("00:00", 1), ("10:00", 0), ("11:00", 1)]));
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_by_name() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    for (query, message) in [
        ("start=2030-01-03&end=2030-01-02", "The end must not be before the start"),
        ("start=soon", "Malformed parameter start"),
        ("duration=0h", "Malformed parameter duration"),
        ("vcpus=1&flavor_id=f", "Malformed parameter vcpus: ask for one of flavor_id, vcpus and network_id"),
        ("vcpus=x&memory_mb=1", "Malformed parameter vcpus"),
        ("memory_mb=1", "Malformed parameter memory_mb: it says nothing about physical:host"),
        ("flavor_id=nosuch", "Flavor nosuch not found"),
        ("amount=0", "Malformed parameter min and max (must be greater than or equal to 1)"),
    ] {
        let answer = site.get(&format!("/v1/availability?{query}")).await;
        assert_eq!(answer.error(), (400, message.to_owned()), "{query}");
    }
}
