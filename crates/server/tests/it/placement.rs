//! Questions about clusters: permissions, and limits on their cost. A script replaces the program. The
//! program's own tests check its answers.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use axum::http::Method;
use serde_json::json;
use server::{Config, PlacementConfig};

use crate::site::{Site, TempFile};

/// Configuration with a script as the program, and the script's file.
fn answering(script: &str) -> (PlacementConfig, TempFile) {
    let file = TempFile::new("sh", &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&file.0, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let config = PlacementConfig {
        program: Some(file.0.clone()),
        clusters: BTreeMap::from([("lab".to_owned(), "--master=lab.example.org".to_owned())]),
        ..PlacementConfig::default()
    };
    (config, file)
}

async fn site(placement: PlacementConfig) -> Site {
    Site::guarded_with(Config { placement, ..Config::default() }).await
}

const PATH: &str = "/v1/placement/drain";

#[tokio::test]
async fn the_program_is_told_of_a_file_and_of_options_and_of_nothing_else() {
    let (config, _script) = answering(
        r#"for word; do words="$words\"$word\", "; done; echo "{\"words\": [$words\"\"], \"text\": \"$(cat cluster.data)\", \"env\": $(env | grep -c -v -E '^(PWD|SHLVL|_|OLDPWD|MIMALLOC_ARENA_EAGER_COMMIT)=')}""#,
    );
    let site = site(config).await;
    let body = json!({"text": "a cluster", "nodes": ["--save=x"], "offline": ["n2"]});
    let answer = site.send_as("member", Method::POST, PATH, Some(&body)).await.ok(200);
    let words: Vec<&str> =
        answer["drain"]["words"].as_array().expect("a list").iter().filter_map(|w| w.as_str()).collect();
    assert!(words[2].starts_with("--text-data=/") && words[2].ends_with("/cluster.data"), "{words:?}");
    assert_eq!(
        (&words[..2], &words[3..]),
        (&["drain", "--json"][..], &["--offline=n2", "--", "--save=x", ""][..])
    );
    assert_eq!(answer["drain"]["text"], "a cluster");
    assert_eq!(answer["drain"]["env"], 0, "no setting of the service is told");
    let directory =
        std::path::Path::new(words[2].split_once('=').expect("an option").1).parent().expect("a directory");
    assert!(!directory.exists(), "nothing is left");
}

#[tokio::test]
async fn named_clusters_are_for_those_who_may_know_them() {
    let (config, _script) = answering(r#"[ "$3" = --master=lab.example.org ] && echo '{"ok": true}'"#);
    let site = site(config).await;
    let names = site.send_as("admin", Method::GET, "/v1/placement/clusters", None).await.ok(200);
    assert_eq!(names, json!({"clusters": ["lab"]}));
    let body = json!({"cluster": "lab", "nodes": ["n1"]});
    let answer = site.send_as("admin", Method::POST, PATH, Some(&body)).await.ok(200);
    assert_eq!(answer, json!({"drain": {"ok": true}}));
    for cluster in ["lab", "nosuch"] {
        let body = json!({"cluster": cluster, "nodes": ["n1"]});
        let refused = site.send_as("member", Method::POST, PATH, Some(&body)).await;
        assert_eq!(
            refused.error(),
            (403, "Policy doesn't allow blazar:placement:clusters to be performed".to_owned())
        );
    }
}

#[tokio::test]
async fn the_fleet_is_described_to_the_program_for_administrators() {
    let (config, _script) = answering(
        r#"for word; do words="$words\"$word\", "; done; echo "{\"words\": [$words\"\"], \"nodes\": $(grep -c '^r1-h0' cluster.data)}""#,
    );
    let site = site(config).await;
    site.add_hosts_as("admin", 2).await;
    let ask = async |token: &str, question: &str, body: serde_json::Value| {
        site.send_as(token, Method::POST, &format!("/v1/placement/{question}"), Some(&body)).await
    };
    // Hosts appear after the loop has observed them.
    loop {
        let drained = ask("admin", "drain", json!({"fleet": true, "nodes": ["r1-h01"]})).await.ok(200);
        if drained["drain"]["nodes"] == 2 {
            break;
        }
        tokio::task::yield_now().await;
    }
    let words = |answer: &serde_json::Value, question: &str| answer[question]["words"].to_string();
    let balanced = ask("admin", "balance", json!({"fleet": true})).await.ok(200);
    assert!(words(&balanced, "balance").contains("--group=freepool"), "{balanced}");
    let other = ask("admin", "balance", json!({"fleet": true, "group": "g"})).await.ok(200);
    assert!(!words(&other, "balance").contains("--group=freepool"), "{other}");
    let fit = ask("admin", "fit", json!({"fleet": true, "shape": "1g,1g,1"})).await.ok(200);
    assert!(words(&fit, "fit").contains("--independent-groups"), "{fit}");
    let refused = ask("member", "drain", json!({"fleet": true, "nodes": ["r1-h01"]})).await;
    assert_eq!(
        refused.error(),
        (403, "Policy doesn't allow blazar:placement:fleet to be performed".to_owned())
    );
}

#[tokio::test]
async fn what_a_named_cluster_complains_of_is_for_the_operator() {
    let (config, _script) =
        answering("echo 'Error: failed to load data, aborting: lab.example.org: refused' >&2; exit 2");
    let site = site(config).await;
    let body = json!({"cluster": "lab", "nodes": ["n1"]});
    let answer = site.send_as("admin", Method::POST, PATH, Some(&body)).await;
    assert_eq!(answer.error(), (503, "The cluster lab cannot be read at present".to_owned()));
    let body = json!({"text": "", "nodes": ["n1"]});
    let answer = site.send_as("admin", Method::POST, PATH, Some(&body)).await;
    assert_eq!(answer.error(), (400, "failed to load data, aborting: lab.example.org: refused".to_owned()));
}

#[tokio::test]
async fn a_question_that_computes_for_too_long_ends() {
    let (config, _script) = answering("while :; do :; done");
    let site = site(PlacementConfig { compute_time: std::time::Duration::from_secs(1), ..config }).await;
    let body = json!({"text": "", "nodes": ["n1"]});
    let answer = site.send_as("member", Method::POST, PATH, Some(&body)).await;
    let (status, message) = answer.error();
    assert!(
        status == 400 && message.starts_with("The question takes more than 1 s of computing"),
        "{message}"
    );
    assert_eq!(answer.json()["hint"], "the operator's setting is placement.compute_time");
}

#[tokio::test]
async fn bodies_and_answers_have_limits() {
    let (config, _script) = answering("head -c 20000000 /dev/zero");
    let site = site(PlacementConfig { cluster_bytes: 2 << 20, ..config }).await;
    let sized = |bytes: usize| json!({"text": "x".repeat(bytes), "nodes": ["n1"]});
    let answer = site.send_as("member", Method::POST, PATH, Some(&sized(3 << 20))).await;
    assert_eq!(answer.error(), (413, "The body of a request may be 2097152 bytes long".to_owned()));
    let answer = site.send_as("member", Method::POST, PATH, Some(&sized(1 << 20))).await;
    assert_eq!(
        answer.error(),
        (400, "The answer would be longer than 16777216 bytes: ask for less".to_owned())
    );
    let long = json!({"text": "", "nodes": ["n".repeat(256)]});
    let answer = site.send_as("member", Method::POST, PATH, Some(&long)).await;
    assert_eq!(
        answer.error(),
        (400, "Malformed parameter nodes[0]: it has 256 characters and may have 255".to_owned())
    );
}

#[tokio::test]
async fn a_user_asks_one_question_at_once_and_others_wait_their_turn() {
    // The computation runs until the test has seen the responses to the other requests.
    let gate = TempFile::new("gate", "");
    let (config, _script) =
        answering(&format!("while [ -e {} ]; do sleep 0.02; done; echo '{{}}'", gate.0.display()));
    let site = std::sync::Arc::new(site(config).await);
    let body = json!({"text": "", "nodes": ["n1"]});
    let ask = |token: &'static str| {
        let (site, body) = (std::sync::Arc::clone(&site), body.clone());
        tokio::spawn(async move { site.send_as(token, Method::POST, PATH, Some(&body)).await })
    };
    let first = ask("member");
    let second = loop {
        // The requests can arrive in any order. The second one exceeds the limit.
        tokio::task::yield_now().await;
        let refused = site.send_as("member", Method::POST, PATH, Some(&json!({}))).await;
        if refused.status == 429 {
            break refused;
        }
    };
    assert_eq!(second.error().1, "Too many requests at once: wait for answers");
    let other = ask("foreign");
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!first.is_finished() && !other.is_finished());
    drop(gate);
    assert_eq!(first.await.expect("no panic").ok(200), json!({"drain": {}}));
    assert_eq!(other.await.expect("no panic").ok(200), json!({"drain": {}}));
}

/// A site with 40 members `m0`, `m1` and so on, each in its own project.
async fn site_of_many(placement: PlacementConfig) -> std::sync::Arc<Site> {
    let entry = |name: String| json!({"sha256": server::hash_token(&name.as_str().into()), "user": name, "project": name, "roles": ["member"]});
    let tokens: Vec<_> = (0..40).map(|number| entry(format!("m{number}"))).collect();
    let file = TempFile::new("yaml", &json!({"tokens": tokens}).to_string());
    let config = Config { auth: crate::site::by_tokens(&file), placement, ..Config::default() };
    std::sync::Arc::new(Site::with(config, None).await)
}

#[tokio::test]
async fn a_short_question_is_answered_while_long_ones_are_computed_and_wait() {
    let gate = TempFile::new("gate", "");
    let script =
        "[ $(wc -c < cluster.data) -lt 100000 ] || while [ -e GATE ]; do sleep 0.02; done; echo '{}'";
    let (config, _script) = answering(&script.replace("GATE", &gate.0.display().to_string()));
    let site = site_of_many(config).await;
    let ask = |number: usize, bytes: usize| {
        let site = std::sync::Arc::clone(&site);
        let body = json!({"text": "x".repeat(bytes), "nodes": ["n1", "n2", "n3"]});
        tokio::spawn(
            async move { site.send_as(&format!("m{number}"), Method::POST, PATH, Some(&body)).await },
        )
    };
    let long: Vec<_> = (0..16).map(|number| ask(number, 200_000)).collect();
    while long.iter().filter(|asked| asked.is_finished()).count() < 8 {
        tokio::task::yield_now().await;
    }
    for number in 20..30 {
        assert_eq!(ask(number, 1000).await.expect("no panic").ok(200), json!({"drain": {}}));
    }
    assert_eq!(long.iter().filter(|asked| asked.is_finished()).count(), 8, "the others are still taken on");
    drop(gate);
    let mut statuses = Vec::new();
    for asked in long {
        statuses.push(asked.await.expect("no panic").status.as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [[200; 8], [429; 8]].concat());
}

#[tokio::test]
async fn a_short_question_that_takes_long_makes_place_for_others_and_is_answered_all_the_same() {
    let gate = TempFile::new("gate", "");
    let script = "grep -q slow cluster.data && while [ -e GATE ]; do sleep 0.02; done; echo '{}'";
    let (config, _script) = answering(&script.replace("GATE", &gate.0.display().to_string()));
    let site = site_of_many(config).await;
    let ask = |number: usize, text: &'static str| {
        let site = std::sync::Arc::clone(&site);
        let body = json!({"text": text, "nodes": ["n1"]});
        tokio::spawn(
            async move { site.send_as(&format!("m{number}"), Method::POST, PATH, Some(&body)).await },
        )
    };
    let slow: Vec<_> = (0..8).map(|number| ask(number, "slow")).collect();
    // Lets the slow requests take all slots.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask(20, "quick").await.expect("no panic").ok(200), json!({"drain": {}}));
    assert!(slow.iter().all(|asked| !asked.is_finished()), "they are in the long lane");
    drop(gate);
    for asked in slow {
        assert_eq!(asked.await.expect("no panic").ok(200), json!({"drain": {}}));
    }
}

#[tokio::test]
async fn a_service_without_the_program_says_so() {
    let site = Site::open().await;
    let answer = site.post(PATH, &json!({"text": "", "nodes": ["n1"]})).await;
    assert_eq!(answer.error(), (404, "This service answers no questions about clusters".to_owned()));
    assert_eq!(site.get("/v1/placement/clusters").await.ok(200), json!({"clusters": []}));
}
