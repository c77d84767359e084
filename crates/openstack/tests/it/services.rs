//! Tests of calls to services: endpoints, retries, errors, and TLS.

use std::time::Duration;

use openstack::{Api, Call, ErrorKind, Microversion};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::cloud::{Reply, Stub, is_login, session};

const PLACEMENT: Api = Api::Placement(Microversion { major: 1, minor: 39 });

fn change() -> Call {
    let call = Call::new(PLACEMENT, "change inventory", "POST".parse().expect("a method"), &["inventories"]);
    call.with_body(json!({"resource_provider_generation": 1}))
}

#[tokio::test]
async fn what_may_be_repeated_is_sent_again_until_it_succeeds_and_what_may_not_is_not() {
    let stub = Stub::start(|asked, before| {
        (!is_login(asked)).then(|| match before {
            0 | 1 => Reply::new(503, &json!({})).with("retry-after", "0"),
            _ => Reply::new(200, &json!({"done": true, "unknown": [1]})),
        })
    })
    .await;
    let session = stub.session();
    let answer = session
        .call(&Call::get(PLACEMENT, "list providers", &["resource_providers"]))
        .await
        .expect("it succeeds");
    assert_eq!(answer.json::<Value>().expect("JSON")["done"], true);
    let error = session.call(&change()).await.expect_err("once only");
    assert_eq!(error.to_string(), "placement: change inventory: answered 503 (req-stub)");
    assert_eq!(session.call(&change().repeatable()).await.map(|answer| answer.status), Ok(200));
    let counts = stub.counts();
    assert_eq!(counts["GET /placement/resource_providers"], 3);
    assert_eq!(counts["POST /placement/inventories"], 3);
}

#[tokio::test]
async fn a_service_that_wants_a_long_pause_is_not_waited_for() {
    let stub = Stub::start(|asked, _| {
        (!is_login(asked)).then(|| Reply::new(429, &json!({})).with("retry-after", "120"))
    })
    .await;
    let error = stub.session().call(&change()).await.expect_err("too many");
    assert_eq!((error.status(), error.retry_after()), (Some(429), Some(Duration::from_mins(2))));
    assert_eq!(stub.counts()["POST /placement/inventories"], 1);
}

#[tokio::test]
async fn a_generation_that_is_another_is_an_error_of_its_own() {
    let stub = Stub::start(|asked, before| {
        let code = if before == 0 { "placement.concurrent_update" } else { "placement.inventory.inuse" };
        let error = json!({"errors": [{"status": 409, "detail": "Generation conflict", "code": code}]});
        (!is_login(asked)).then(|| Reply::new(409, &error))
    })
    .await;
    let session = stub.session();
    let error = session.call(&change()).await.expect_err("a conflict");
    assert_eq!(error.kind, ErrorKind::GenerationConflict("Generation conflict".to_owned()));
    let error = session.call(&change()).await.expect_err("another conflict");
    assert_eq!(error.kind, ErrorKind::InUse("Generation conflict".to_owned()));
    assert_eq!(
        stub.counts()["POST /placement/inventories"],
        2,
        "the caller decides again, the client does not"
    );
}

#[tokio::test]
async fn a_service_that_is_not_in_the_catalog_is_named_with_what_there_is() {
    let stub = Stub::start(|_, _| None).await;
    let mut cloud = stub.cloud();
    let image = Call::get(Api::Image, "list images", &["v2", "images"]);
    let error = session(cloud.clone()).call(&image).await.expect_err("none");
    assert!(
        error.to_string().contains("the catalog has no image with interface internal in region RegionOne"),
        "{error}"
    );
    cloud.region = Some("Elsewhere".to_owned());
    let servers = Call::get(Api::Compute(Microversion { major: 2, minor: 1 }), "list servers", &["servers"]);
    let error = session(cloud).call(&servers).await.expect_err("none there");
    assert!(error.to_string().contains("it has internal in RegionOne, public in RegionOne"), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_too_long_or_none_at_all_is_an_error() {
    let stub =
        Stub::start(|asked, _| (!is_login(asked)).then(|| Reply::new(200, &json!("x".repeat(10_000))))).await;
    let call = Call::get(PLACEMENT, "list providers", &["resource_providers"]).at_most(1000);
    let error = stub.session().call(&call).await.expect_err("too long");
    assert_eq!(error.kind, ErrorKind::TooLong(1000));

    // Accepts connections and never responds.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut cloud = stub.cloud();
    cloud.identity =
        openstack::identity_url(&format!("http://{}", listener.local_addr().expect("an address")))
            .expect("one");
    cloud.timeout = Duration::from_millis(20);
    let error = session(cloud.clone()).own_token().await.expect_err("silence");
    assert!(matches!(error.kind, ErrorKind::NoAnswer(_)), "{error}");
    drop(listener);
    let error = session(cloud).own_token().await.expect_err("nobody");
    assert!(matches!(error.kind, ErrorKind::Unreachable(_) | ErrorKind::NoAnswer(_)), "{error}");
}

#[tokio::test]
async fn a_private_authority_is_believed_and_nobody_else() {
    let key = || KeyPair::generate().expect("a key");
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = key();
    let pem = authority.self_signed(&authority_key).expect("a certificate").pem();
    let own_key = key();
    let own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
    let own = own.signed_by(&own_key, &Issuer::new(authority, authority_key)).expect("a certificate");
    let stub = Stub::start(|_, _| None).await;
    let stub_token = stub.token(3600);
    let app = axum::Router::new().fallback(move || {
        let reply = Reply::new(201, &stub_token).with("x-subject-token", "t");
        async move { reply }
    });
    let _ = rustls::crypto::ring::default_provider().install_default();
    let pems = (own.pem().into_bytes(), own_key.serialize_pem().into_bytes());
    let tls = axum_server::tls_rustls::RustlsConfig::from_pem(pems.0, pems.1).await.expect("a certificate");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("an address");
    let server = axum_server::from_tcp_rustls(listener, tls).expect("a server");
    tokio::spawn(server.serve(app.into_make_service()));

    let mut cloud = stub.cloud();
    cloud.identity = openstack::identity_url(&format!("https://{address}")).expect("an address");
    cloud.retry.attempts = 1;
    let error = session(cloud.clone()).own_token().await.expect_err("an unknown authority");
    assert!(
        matches!(error.kind, ErrorKind::Unreachable(_)) && error.to_string().contains("certificate"),
        "{error}"
    );
    cloud.authorities = Some(pem.into_bytes());
    session(cloud.clone()).own_token().await.expect("a known authority");
    cloud.authorities = Some(b"nonsense".to_vec());
    assert!(openstack::Session::new(cloud, std::sync::Arc::new(ambient::SeededIds::new(1))).is_err());
}
