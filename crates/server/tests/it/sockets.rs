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

/// A client needs a provider of cryptography even where it does not encrypt.
fn provide_cryptography() {
    // Fails only if there is one already.
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
    let tls = TlsConfig { certificate: certificate.0.clone(), key: key.0.clone() };
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
async fn a_certificate_that_cannot_be_read_is_named() {
    let tls = TlsConfig { certificate: "/nosuch.crt".into(), key: "/nosuch.key".into() };
    let app = app(Config { tls: Some(tls), ..anywhere() }).await;
    let listener = server::bind(&app).expect("a port");
    let (_stop, stopped) = watch::channel(false);
    let error = server::serve(app, listener, stopped).await.expect_err("no certificate").to_string();
    assert!(error.contains("/nosuch.crt"), "{error}");
}
