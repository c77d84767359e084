//! Replays recorded exchanges with a real Keystone: requests must have the recorded method, path, headers and
//! body, and the recorded responses must be understood.

use openstack::{Cloud, Domain, Error, ErrorKind, Interface, Login, Project, Secret, Token, User, validate};
use reqwest::Url;
use secrecy::SecretString;
use serde_json::Value;

use crate::cloud::{Asked, Reply, Stub, is_login, session};

fn exchanges() -> Vec<Value> {
    let recorded: Value =
        serde_json::from_str(include_str!("exchanges/keystone-30.json")).expect("the recording is JSON");
    recorded["exchanges"].as_array().expect("a list").clone()
}

fn exchange(name: &str) -> Value {
    exchanges()
        .into_iter()
        .find(|one| one["name"] == name)
        .unwrap_or_else(|| panic!("{name} is not recorded"))
}

/// Difference between a request and the recorded one, if any.
fn difference(asked: &Asked, recorded: &Value) -> Option<String> {
    let path =
        if asked.query.is_empty() { asked.path.clone() } else { format!("{}?{}", asked.path, asked.query) };
    let same = recorded["method"] == asked.method.as_str()
        && recorded["path"] == path
        && recorded["body"] == asked.body;
    let headers = recorded["headers"].as_object().expect("headers");
    let other = headers.iter().find(|(name, value)| **value != asked.header(name));
    match other {
        _ if !same => Some(format!("{} {path} {}", asked.method, asked.body)),
        Some((name, _)) => Some(format!("{name}: {}", asked.header(name))),
        None => None,
    }
}

/// A Keystone that accepts one login and one other request, which must match the recordings.
async fn replay(login: &str, question: &str) -> Stub {
    let (login, question) = (exchange(login), exchange(question));
    Stub::start(move |asked, _| {
        let recorded = if is_login(asked) { &login } else { &question };
        if let Some(difference) = difference(asked, &recorded["request"]) {
            return Some(Reply::new(418, &serde_json::json!({"error": {"message": difference}})));
        }
        let answer = &recorded["response"];
        let mut reply = Reply {
            status: answer["status"]
                .as_u64()
                .and_then(|status| u16::try_from(status).ok())
                .expect("a status"),
            headers: Vec::new(),
            body: answer["body"].to_string(),
        };
        for name in ["x-subject-token", "x-openstack-request-id"] {
            if let Some(value) = answer["headers"][name].as_str() {
                reply = reply.with(name, value);
            }
        }
        Some(reply)
    })
    .await
}

fn cloud(stub: &Stub) -> Cloud {
    let domain = || Domain::Name("Default".to_owned());
    Cloud {
        identity: Url::parse(&format!("{}/v3", stub.url)).expect("an address"),
        login: Login::Password {
            user: User::Name("allot".to_owned(), domain()),
            password: Secret::Text(SecretString::from("PASSWORD")),
            project: Project::Name("service".to_owned(), domain()),
        },
        ..stub.cloud()
    }
}

/// Validates the token of a recorded exchange.
async fn ask(question: &str) -> Result<Option<Token>, Error> {
    let stub = replay("log in", question).await;
    let token =
        exchange(question)["request"]["headers"]["x-subject-token"].as_str().expect("a token").to_owned();
    validate(&session(cloud(&stub)), &SecretString::from(token)).await
}

#[tokio::test]
async fn a_login_is_as_it_was_and_the_catalog_is_read() {
    let stub = replay("log in", "validate member").await;
    let said = session(cloud(&stub)).own_token().await.expect("a token");
    assert_eq!(
        (said.user.name.as_str(), said.roles.as_slice()),
        ("allot", ["service".to_owned()].as_slice())
    );
    assert_eq!(said.lifetime(), jiff::SignedDuration::from_hours(1));
    let found = said.catalog.find("reservation", Some("RegionOne"), Interface::Public);
    assert!(found.is_ok_and(|url| url.path() == "/v1"));
    let found = said.catalog.find("compute", None, Interface::Public);
    assert!(found.is_err_and(|reason| reason.contains("of compute it has no endpoint")));

    let recorded = exchange("log in with an application credential");
    let stub = replay("log in with an application credential", "validate member").await;
    let id = &recorded["request"]["body"]["auth"]["identity"]["application_credential"]["id"];
    let login = Login::ApplicationCredential {
        id: id.as_str().expect("an identifier").to_owned(),
        secret: Secret::Text(SecretString::from("SECRET")),
    };
    let said = session(Cloud { login, ..cloud(&stub) }).own_token().await.expect("a token");
    assert_eq!(said.project.map(|project| project.name).as_deref(), Some("service"));

    let stub = replay("log in with a wrong password", "validate member").await;
    let error = session(cloud(&stub)).own_token().await.expect_err("refused");
    assert!(matches!(error.kind, ErrorKind::LoginRefused(_)) && error.request_id.is_some(), "{error}");
}

#[tokio::test]
async fn tokens_stand_for_what_keystone_says() {
    let ask = async |question: &str| ask(question).await.expect(question).expect(question);
    let member = ask("validate member").await;
    let project = member.project.expect("a project");
    assert_eq!((member.user.name.as_str(), project.name.as_str()), ("alice", "p-alice"));
    let mut roles = member.roles;
    roles.sort_unstable();
    assert_eq!(roles, ["member", "reader"], "the role that member implies is there");
    assert!(member.catalog.0.is_empty() && member.application_credential.is_none());

    let other = ask("validate member of another domain").await;
    assert_eq!(
        (other.user.domain.as_str(), other.project.expect("a project").domain.as_str()),
        ("lab", "lab")
    );
    for unscoped in ["validate unscoped", "validate system", "validate domain"] {
        assert!(ask(unscoped).await.project.is_none(), "{unscoped}");
    }
    let trust = ask("validate trust").await;
    assert_eq!((trust.user.name.as_str(), trust.project.is_some()), ("alice", true));

    let credential = ask("validate application credential").await.application_credential.expect("one");
    assert_eq!(credential.access_rules, None);
    let credential =
        ask("validate application credential with rules").await.application_credential.expect("one");
    let rules = credential.access_rules.expect("rules");
    assert!(rules.iter().any(|rule| rule.allows("reservation", "GET", "/v1/leases")));
    assert!(!rules.iter().any(|rule| rule.allows("reservation", "POST", "/v1/leases")));
}

#[tokio::test]
async fn tokens_that_are_none_and_rights_that_are_missing_are_told_apart() {
    for none in ["validate unknown", "validate a revoked token"] {
        assert!(ask(none).await.expect(none).is_none(), "{none}");
    }
    let error = ask("validate without the role").await.expect_err("forbidden");
    assert_eq!(error.status(), Some(403));
    let text = error.to_string();
    assert!(
        text.contains("identity: validate token: answered 403: You are not authorized")
            && text.contains("(req-"),
        "{text}"
    );
}

#[test]
fn nothing_that_was_recorded_is_a_secret() {
    assert!(
        !include_str!("exchanges/keystone-30.json").contains("gAAAA"),
        "that is how Keystone's tokens begin"
    );
    for exchange in exchanges() {
        let identity = &exchange["request"]["body"]["auth"]["identity"];
        let secrets =
            [&identity["password"]["user"]["password"], &identity["application_credential"]["secret"]];
        assert!(
            secrets.iter().all(|secret| secret.is_null() || **secret == "PASSWORD" || **secret == "SECRET")
        );
    }
}
