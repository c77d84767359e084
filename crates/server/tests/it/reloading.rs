//! Reloading of users, tokens, policy rules and certificates.

use axum::http::Method;
use serde_json::json;
use server::{AuthConfig, AuthMethod, Config, Difference};

use crate::site::{Site, TempFile};

fn tokens(entries: &[(&str, &str)]) -> String {
    let entry = |(token, role): &(&str, &str)| json!({"sha256": server::hash_token(&(*token).into()), "user": "u", "project": "p", "roles": [role]});
    json!({"tokens": entries.iter().map(entry).collect::<Vec<_>>()}).to_string()
}

async fn site(file: &TempFile, policy: &TempFile) -> Site {
    let auth = AuthConfig {
        methods: vec![AuthMethod::Tokens],
        tokens_file: Some(file.0.clone()),
        ..AuthConfig::default()
    };
    Site::with(Config { auth, policy_file: Some(policy.0.clone()), ..Config::default() }, None).await
}

#[tokio::test]
async fn a_token_that_was_deleted_is_refused_from_the_reload_on() {
    let file = TempFile::new("yaml", &tokens(&[("a", "reader"), ("b", "reader"), ("c", "member")]));
    let policy = TempFile::new("yaml", "# nothing\n");
    let site = site(&file, &policy).await;
    let status = async |token, path| site.send_as(token, Method::GET, path, None).await.status.as_u16();
    assert_eq!(status("b", "/v1/leases").await, 200);
    std::fs::write(&file.0, tokens(&[("a", "member"), ("c", "member"), ("d", "reader"), ("e", "reader")]))
        .expect("a file");
    std::fs::write(&policy.0, "blazar:oshosts:get: rule:project_reader_or_admin\n").expect("a file");
    assert_eq!(status("d", "/v1/leases").await, 401);
    let reloaded = site.app.reload().expect("the files are sound");
    assert_eq!(reloaded.tokens, Difference { added: 2, removed: 1, changed: 1 });
    assert_eq!(reloaded.rules, Difference { changed: 1, ..Difference::default() });
    assert_eq!((status("b", "/v1/leases").await, status("d", "/v1/leases").await), (401, 200));
    assert_eq!(status("d", "/v1/os-hosts").await, 200);
    assert_eq!(site.app.reload().expect("sound"), server::Reloaded::default(), "nothing has changed since");
}

#[tokio::test]
async fn one_file_that_is_wrong_leaves_all_as_it_was_and_nothing_of_it_is_said() {
    let sound = tokens(&[("a", "reader")]);
    for (extension, wrong, line) in [
        ("yaml", "secret_stuff: hunter2\n", 1),
        ("yaml", "tokens:\n  - sha256: hunter2\n    user: u\n    project: p\n    roles: []\n", 2),
        ("yaml", "tokens:\n  - {sha256: x, hunter2: y}\n", 2),
        ("yaml", "tokens: hunter2\n", 1),
        ("yaml", "tokens:\n- user: \"hunter2\n", 3),
        ("toml", "hunter2\n", 1),
        ("toml", "\nsecret_stuff = \"hunter2\"\n", 2),
        ("toml", "[[tokens]]\nsha256 = \"hunter2\"\nuser = \"u\"\nproject = \"p\"\nroles = []\n", 2),
        ("toml", "[[tokens]]\nsha256 = hunter2\n", 2),
        ("toml", "tokens = [\"hunter2, expected hunter2\"]\n", 1),
        ("toml", "[[tokens]]\nuser = \"a\"\nuser = \"hunter2\"\n", 3),
    ] {
        let file = TempFile::new(extension, "");
        // JSON is valid YAML, but not TOML.
        let begin = if extension == "yaml" { sound.clone() } else { toml_of("a") };
        std::fs::write(&file.0, &begin).expect("a file");
        let policy = TempFile::new("yaml", "# nothing\n");
        let site = site(&file, &policy).await;
        std::fs::write(&policy.0, "blazar:oshosts:get: \"@\"\n").expect("a file");
        std::fs::write(&file.0, wrong).expect("a file");
        let error = site.app.reload().expect_err(wrong).to_string();
        let place = format!("{}, line {line}", file.0.display());
        assert!(error.starts_with(&place), "{wrong}: {error}");
        assert!(!error.contains("hunter2") && !error.contains('\n'), "{error}");
        let status = async |path| site.send_as("a", Method::GET, path, None).await.status.as_u16();
        assert_eq!((status("/v1/leases").await, status("/v1/os-hosts").await), (200, 403));
    }
}

fn toml_of(token: &str) -> String {
    let sha256 = server::hash_token(&token.into());
    format!("[[tokens]]\nsha256 = \"{sha256}\"\nuser = \"u\"\nproject = \"p\"\nroles = [\"reader\"]\n")
}

#[tokio::test]
async fn a_reload_where_there_is_nothing_to_read_does_nothing() {
    let site = Site::open().await;
    assert_eq!(site.app.reload().expect("there is nothing wrong"), server::Reloaded::default());
}
