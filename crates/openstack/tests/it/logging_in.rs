//! Tests of logins: one for all calls, renewed when necessary and not more often.

use openstack::{Api, Call, ErrorKind, Microversion, Secret};
use serde_json::json;

use crate::cloud::{Reply, Stub, is_login, session};

fn list_servers() -> Call {
    Call::get(Api::Compute(Microversion { major: 2, minor: 96 }), "list servers", &["servers"])
}

#[tokio::test]
async fn many_calls_at_once_share_one_login() {
    let stub =
        Stub::start(|asked, _| (!is_login(asked)).then(|| Reply::new(200, &json!({"servers": []})))).await;
    let session = stub.session();
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let session = session.clone();
            tokio::spawn(async move { session.call(&list_servers()).await })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic").expect("an answer");
    }
    let counts = stub.counts();
    assert_eq!(counts["POST /v3/auth/tokens"], 1);
    assert_eq!(counts["GET /compute/v2.1/servers"], 50);
    let asked = stub.asked();
    let login = asked.iter().find(|asked| is_login(asked)).expect("it was there");
    assert_eq!(login.body["auth"]["identity"]["password"]["user"]["name"], "allot");
    assert_eq!(login.header("x-auth-token"), "");
    let call = asked.iter().find(|asked| !is_login(asked)).expect("it was there");
    assert_eq!(
        (call.header("x-auth-token"), call.header("openstack-api-version")),
        ("token-1", "compute 2.96")
    );
}

#[tokio::test]
async fn a_token_that_is_refused_is_replaced_once() {
    // The first token is revoked, the second one is valid.
    let stub = Stub::start(|asked, _| {
        (!is_login(asked)).then(|| match asked.header("x-auth-token") {
            "token-1" => Reply::new(401, &json!({"error": {"message": "gone"}})),
            _ => Reply::new(200, &json!({})),
        })
    })
    .await;
    let session = stub.session();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let session = session.clone();
            tokio::spawn(async move { session.call(&list_servers()).await.map(|answer| answer.status) })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.expect("no panic"), Ok(200));
    }
    assert_eq!(
        stub.counts()["POST /v3/auth/tokens"],
        2,
        "whoever was refused uses the token that another one got"
    );
}

#[tokio::test]
async fn a_service_that_refuses_every_token_is_asked_twice() {
    let stub = Stub::start(|asked, _| (!is_login(asked)).then(|| Reply::new(401, &json!({})))).await;
    let error = stub.session().call(&list_servers()).await.expect_err("refused");
    assert_eq!((error.status(), error.request_id.as_deref()), (Some(401), Some("req-stub")));
    assert_eq!(stub.counts()["GET /compute/v2.1/servers"], 2);
}

#[tokio::test]
async fn a_token_that_is_over_is_replaced_at_the_next_call() {
    // This Keystone's tokens expire at once, so each call logs in. The third login and all later ones fail.
    let stub = Stub::start(|_, _| None).await;
    let lasting = stub.clone();
    let stub = Stub::start(move |asked, before| {
        let token = format!("token-{}", before + 1);
        match is_login(asked) {
            true if before < 2 => Some(Reply::new(201, &lasting.token(0)).with("x-subject-token", &token)),
            true => Some(Reply::new(500, &json!({}))),
            false => Some(Reply::new(200, &json!({}))),
        }
    })
    .await;
    let session = stub.session();
    for _ in 0..2 {
        assert!(session.own_token().await.is_ok());
    }
    let error = session.own_token().await.expect_err("no login, and no token that is valid");
    assert_eq!(error.status(), Some(500));
    assert!(!session.is_login_refused());
    assert_eq!(stub.counts()["POST /v3/auth/tokens"], 3);
}

#[tokio::test]
async fn a_login_that_is_refused_is_not_tried_again_by_everybody_who_waits() {
    let stub = Stub::start(|asked, _| {
        let message = "The request you have made requires authentication: s3cret";
        is_login(asked).then(|| Reply::new(401, &json!({"error": {"code": 401, "message": message}})))
    })
    .await;
    let session = stub.session();
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let session = session.clone();
            tokio::spawn(async move { session.call(&list_servers()).await.map(|answer| answer.status) })
        })
        .collect();
    for call in calls {
        let error = call.await.expect("no panic").expect_err("refused");
        assert!(matches!(error.kind, ErrorKind::LoginRefused(_)), "{error}");
        let text = format!("{error} {error:?}");
        assert!(text.contains("identity: log in: ") && text.contains("(req-stub)"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
    assert!(session.is_login_refused());
    assert_eq!(
        stub.counts()["POST /v3/auth/tokens"],
        1,
        "Keystone counts wrong passwords, and locks users out"
    );
}

#[tokio::test]
async fn a_new_password_is_read_at_the_next_login_and_one_that_is_missing_is_named() {
    let path = std::env::temp_dir().join(format!("openstack-it-{}", std::process::id()));
    let stub = Stub::start(|asked, _| (!is_login(asked)).then(|| Reply::new(401, &json!({})))).await;
    let mut cloud = stub.cloud();
    if let openstack::Login::Password { password, .. } = &mut cloud.login {
        *password = Secret::File(path.clone());
    }
    let error = session(cloud.clone()).own_token().await.expect_err("no file");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    std::fs::write(&path, "one\n").expect("a file");
    let session = session(cloud);
    session.own_token().await.expect("a token");
    std::fs::write(&path, "two\n").expect("a file");
    // The rejected token causes another login.
    session.call(&list_servers()).await.expect_err("refused");
    let passwords: Vec<_> = stub
        .asked()
        .iter()
        .filter(|asked| is_login(asked))
        .map(|asked| asked.body["auth"]["identity"]["password"]["user"]["password"].clone())
        .collect();
    assert_eq!(passwords, ["one", "two"]);
    std::fs::remove_file(&path).expect("it is there");
}

#[tokio::test]
async fn what_is_no_answer_to_a_login_is_an_error() {
    for (reply, wanted) in [
        (Reply { status: 201, headers: Vec::new(), body: "{}".to_owned() }, "X-Subject-Token"),
        (
            Reply { status: 201, headers: Vec::new(), body: "<html>".to_owned() }
                .with("x-subject-token", "t"),
            "cannot be read",
        ),
        (
            Reply { status: 302, headers: Vec::new(), body: String::new() }
                .with("location", "http://127.0.0.1:1/"),
            "answered 302",
        ),
        (Reply { status: 201, headers: Vec::new(), body: " ".repeat(5 << 20) }, "longer than"),
    ] {
        let stub = Stub::start(move |_, _| Some(reply.clone())).await;
        let error = stub.session().own_token().await.expect_err(wanted);
        assert!(error.to_string().contains(wanted), "{error}");
    }
}
