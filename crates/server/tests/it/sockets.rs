//! Real sockets: serving, TLS, stopping.

use std::sync::Arc;

use ambient::SeededIds;
use server::{App, Config, TlsConfig};
use tokio::sync::watch;

use crate::site::{Site, TempFile};

async fn app(config: Config) -> App {
    let site = Site::open().await;
    App::new(Arc::clone(&site.service), Arc::new(SeededIds::new(1)), config).expect("the settings are sound")
}

/// A client needs a crypto provider even without TLS.
fn provide_cryptography() {
    // Fails only if a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn anywhere() -> Config {
    Config { listen: "127.0.0.1:0".parse().expect("an address"), ..Config::default() }
}

#[tokio::test]
async fn requests_are_served_until_the_server_is_stopped() {
    let app = app(anywhere()).await;
    let listener = server::bind(&app).expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = watch::channel(false);
    let served = tokio::spawn(server::serve(app, listener, stopped));
    provide_cryptography();
    let answer = reqwest::get(format!("http://{address}/versions")).await.expect("an answer");
    assert_eq!(answer.status().as_u16(), 300);
    let text = answer.text().await.expect("text");
    assert!(text.contains(&format!("http://{address}/v1")), "{text}");
    stop.send_replace(true);
    served.await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn tls_is_spoken_with_the_certificate_of_the_settings() {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = TempFile::new("crt", &signed.cert.pem());
    let key = TempFile::new("key", &signed.signing_key.serialize_pem());
    let tls = TlsConfig { certificate: certificate.0.clone(), key: key.0.clone(), client_ca: None };
    let app = app(Config { tls: Some(tls), ..anywhere() }).await;
    let listener = server::bind(&app).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(server::serve(app, listener, stopped));
    provide_cryptography();
    let known = reqwest::Certificate::from_pem(signed.cert.pem().as_bytes()).expect("a certificate");
    let client = reqwest::Client::builder().tls_certs_only([known]).build().expect("a client");
    let answer = client.get(format!("https://localhost:{port}/v1/leases")).send().await.expect("an answer");
    assert_eq!(answer.text().await.expect("text"), "{\"leases\":[]}");
    let plain = reqwest::get(format!("http://localhost:{port}/v1/leases")).await;
    assert!(plain.is_err(), "nothing is said in the clear");
}

#[tokio::test]
async fn a_client_without_a_certificate_of_the_authority_is_turned_away() {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = TempFile::new("crt", &own.cert.pem());
    let key = TempFile::new("key", &own.signing_key.serialize_pem());
    let (authority, known) = client_certificate();
    let (_, unknown) = client_certificate();
    let authority = TempFile::new("ca", &authority);
    let tls = TlsConfig {
        certificate: certificate.0.clone(),
        key: key.0.clone(),
        client_ca: Some(authority.0.clone()),
    };
    let app = app(Config { tls: Some(tls), ..anywhere() }).await;
    let listener = server::bind(&app).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(server::serve(app, listener, stopped));
    provide_cryptography();
    let trusted = reqwest::Certificate::from_pem(own.cert.pem().as_bytes()).expect("a certificate");
    let ask = async |identity: Option<&str>| {
        let mut client = reqwest::Client::builder().tls_certs_only([trusted.clone()]);
        if let Some(pem) = identity {
            client = client.identity(reqwest::Identity::from_pem(pem.as_bytes()).expect("an identity"));
        }
        let client = client.build().expect("a client");
        client.get(format!("https://localhost:{port}/healthz")).send().await
    };
    assert!(ask(None).await.is_err());
    assert!(ask(Some(&unknown)).await.is_err());
    assert_eq!(ask(Some(&known)).await.expect("an answer").status().as_u16(), 200);
}

/// The certificate of an authority, and a client certificate signed by it, with its key.
fn client_certificate() -> (String, String) {
    let key = || rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_key = key();
    let authority = params.self_signed(&authority_key).expect("a certificate");
    let client_key = key();
    let client = rcgen::CertificateParams::new(vec!["client".to_owned()]).expect("a name");
    let client = client.signed_by(&client_key, &rcgen::Issuer::new(params, authority_key));
    let client = client.expect("a certificate").pem();
    (authority.pem(), format!("{client}{}", client_key.serialize_pem()))
}

#[tokio::test]
async fn a_certificate_that_cannot_be_read_is_named() {
    let tls = TlsConfig { certificate: "/nosuch.crt".into(), key: "/nosuch.key".into(), client_ca: None };
    let app = app(Config { tls: Some(tls), ..anywhere() }).await;
    let listener = server::bind(&app).expect("a port");
    let (_stop, stopped) = watch::channel(false);
    let error = server::serve(app, listener, stopped).await.expect_err("no certificate").to_string();
    assert!(error.contains("/nosuch.crt"), "{error}");
}

#[tokio::test]
async fn new_connections_get_the_certificate_that_was_read_last_and_open_ones_go_on() {
    let signed = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let (old, new) = (signed(), signed());
    let certificate = TempFile::new("crt", &old.cert.pem());
    let key = TempFile::new("key", &old.signing_key.serialize_pem());
    let tls = TlsConfig { certificate: certificate.0.clone(), key: key.0.clone(), client_ca: None };
    let app = app(Config { tls: Some(tls), ..anywhere() }).await;
    let listener = server::bind(&app).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(server::serve(app.clone(), listener, stopped));
    provide_cryptography();
    let client = |pem: String| {
        let known = reqwest::Certificate::from_pem(pem.as_bytes()).expect("a certificate");
        reqwest::Client::builder().tls_certs_only([known]).build().expect("a client")
    };
    let url = format!("https://localhost:{port}/healthz");
    let open = client(old.cert.pem());
    let asks = async |client: &reqwest::Client| match client.get(&url).send().await {
        // Read the response to its end, so that the connection can be reused.
        Ok(answer) => answer.text().await.is_ok(),
        Err(_) => false,
    };
    assert!(asks(&open).await);
    assert!(!app.reload().expect("nothing is wrong").certificate, "it is the same");

    // A key that doesn't match the certificate changes nothing, and neither does an invalid key.
    std::fs::write(&certificate.0, new.cert.pem()).expect("a file");
    let error = app.reload().expect_err("the key is another's").to_string();
    assert!(error.contains(&certificate.0.display().to_string()), "{error}");
    std::fs::write(&key.0, "-----BEGIN hunter2\nhunter2\n-----END hunter2").expect("a file");
    let error = app.reload().expect_err("no key").to_string();
    assert!(error.contains(&key.0.display().to_string()) && !error.contains("hunter2"), "{error}");
    assert!(asks(&client(old.cert.pem())).await && !asks(&client(new.cert.pem())).await);

    std::fs::write(&key.0, new.signing_key.serialize_pem()).expect("a file");
    assert!(app.reload().expect("they belong together").certificate);
    assert!(asks(&client(new.cert.pem())).await && !asks(&client(old.cert.pem())).await);
    assert!(asks(&open).await, "on the connection that it has");
}
