//! Connections that are safe from eavesdroppers and from impostors of the server.

use std::net::Ipv4Addr;

use store::Store;
use store::conformance::sample::{add_hosts, commit};
use store_postgres::{PostgresStore, Servers};

use crate::own_server;

/// An address of this machine that concurrent tests don't use.
fn own_address() -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 77, high, low)
}

fn servers(address: Ipv4Addr, options: &str) -> Servers {
    format!("postgres://postgres@{address}/postgres?{options}").parse().expect("an address")
}

/// A certificate for the address, and its key.
fn certificate(address: Ipv4Addr) -> (String, String) {
    let signed = rcgen::generate_simple_self_signed([address.to_string()]).expect("a certificate");
    (signed.cert.pem(), signed.signing_key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_spoken_with_a_server_that_shows_a_certificate_of_the_authority_and_with_no_other() {
    let (server, address) = (own_server(), own_address());
    let (known, key) = certificate(address);
    server.speak_tls(address, &known, &key).expect("it starts again");
    let directory = tempfile::tempdir().expect("a directory");
    let trusted = |name: &str, certificate: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, certificate).expect("a file");
        format!("sslmode=verify-full&sslrootcert={}", path.display())
    };

    let store =
        PostgresStore::open(servers(address, &trusted("known.crt", &known))).await.expect("it is known");
    store.commit(&commit(add_hosts([1]))).await.expect("accepted");
    let open = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_addr IS NOT NULL";
    assert_eq!(server.run(open), Ok("t".to_owned()));

    let other = trusted("other.crt", &certificate(address).0);
    let error = PostgresStore::open(servers(address, &other)).await.expect_err("it is unknown").to_string();
    assert!(error.contains("certificate"), "{error}");
    let error = PostgresStore::open(servers(address, "sslmode=disable")).await.expect_err("in the clear");
    assert!(error.to_string().contains("no encryption"), "{error}");
}
