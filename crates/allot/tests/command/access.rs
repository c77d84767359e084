//! Access to a service by Keystone or TLS, and machines behind hooks.

use std::fs;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::service::{Running, database, hashed};
use crate::shell::{command, file, fresh, run};

#[test]
fn a_user_of_a_local_keystone_gets_in_with_the_options_and_the_variables_of_openstack() {
    let users = format!(
        "[[users]]\nname = \"ann\"\npassword_hash = \"{}\"\nprojects = {{ physics = [\"admin\"], art = [\"member\"] }}\n",
        hashed("password", "secret\n")
    );
    let users = file("users.toml", &users);
    let service = Running::start("memory", &["--auth", &format!("local-keystone:{users}")]);
    let auth_url = format!("{}/identity", service.url);
    let ask = |project: &str, password: &str| {
        let mut command = command();
        command
            .env("OS_AUTH_URL", &auth_url)
            .env("OS_USERNAME", "ann")
            .env("OS_PASSWORD", password)
            .env("OS_PROJECT_NAME", project)
            .env("OS_USER_DOMAIN_NAME", "Default")
            .env("OS_PROJECT_DOMAIN_ID", "default");
        command
    };
    // No URL of the service is given: it comes from the catalog.
    let ran = run(ask("physics", "secret").args(["host", "create", "r1-h01"]));
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    let ran = run(ask("art", "secret").args(["host", "list"]));
    assert!(ran.status == 1 && ran.err.contains("Only administrators may list hosts (rule"), "{}", ran.err);
    let ran = run(ask("physics", "wrong").args(["host", "list"]));
    assert!(ran.status == 1 && ran.err.contains("requires authentication"), "{}", ran.err);
    let ran = run(ask("physics", "secret").env_remove("OS_PASSWORD").args(["host", "list"]));
    assert!(ran.status == 2 && ran.err.contains("--os-password"), "{}", ran.err);

    let by_options = format!(
        "host list --os-auth-url {auth_url}/v3 --os-username ann --os-password secret --os-project-name physics"
    );
    assert!(service.says(&by_options).contains("r1-h01"));
}

/// Certificate of an authority, then a certificate that it signed for the loopback address, with its key.
fn certificates() -> (String, String, String) {
    let key = || KeyPair::generate().expect("a key");
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = key();
    let authority_certificate = authority.self_signed(&authority_key).expect("a certificate");
    let own_key = key();
    let own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address");
    let own = own.signed_by(&own_key, &Issuer::new(authority, authority_key)).expect("a certificate");
    (authority_certificate.pem(), own.pem(), own_key.serialize_pem())
}

#[test]
fn a_service_with_a_certificate_is_asked_by_those_who_trust_its_authority_and_by_no_others() {
    let (authority, certificate, key) = certificates();
    let (certificate, key) = (file("service.crt", &certificate), file("service.key", &key));
    let service = Running::start("memory", &["--tls-certificate", &certificate, "--tls-key", &key]);
    assert!(service.url.starts_with("https://127.0.0.1:"), "{}", service.url);
    let trusting = file("authority.crt", &authority);
    service.says(&format!("host create r1-h01 --ca-file {trusting}"));
    let made = service.says(&format!("lease create web --hosts 1 --for 1d --wait --os-cacert {trusting}"));
    assert!(made.contains("ACTIVE"), "{made}");
    let ran = service.allot("lease list");
    assert!(ran.status == 3 && ran.err.contains("certificate"), "{}", ran.err);
    let in_the_clear = service.url.replace("https://", "http://");
    let ran = run(command().args(["lease", "list", "--url", &in_the_clear]));
    assert_ne!(ran.status, 0, "{}", ran.out);
    assert_eq!(service.stop(), 0);
}

#[test]
fn hosts_of_a_rack_change_hands_by_its_hooks_from_the_first_request_to_the_last() {
    let rack = fresh("rack");
    fs::create_dir_all(&rack).expect("a directory");
    let log = rack.join("log");
    let note = format!("echo $ALLOT_MOMENT $ALLOT_HOST >> {}", log.display());
    let hook = |moment: &str| format!("[hooks.{moment}]\nexec = [\"sh\", \"-c\", \"{note}\"]\n");
    let hooks: String = ["on_fence", "on_hold", "on_release"].map(hook).concat();
    let config = format!(
        "state_file = \"{}\"\n\
         [[hosts]]\nid = 1\nname = \"node1\"\nvcpus = 8\nmemory_mib = 4096\n{hooks}",
        rack.join("state.json").display()
    );
    let database = database();
    let fleet = format!("hooks:{}", file("rack.toml", &config));
    let service = Running::start(&database, &["--fleet", &fleet]);
    service.says("host create node1");
    assert!(service.says("lease create web --hosts 1 --for 1d --wait").contains("ACTIVE"));
    assert_eq!(service.stop(), 0);
    // Another process knows the hosts that the previous one handed over.
    let service = Running::start(&database, &["--fleet", &fleet]);
    service.says("lease delete web");
    assert!(service.says("lease list").contains("no leases"));
    let log = fs::read_to_string(log).expect("hooks were called");
    assert_eq!(log, "on_fence node1\non_hold node1\non_release node1\n");
    assert_eq!(service.stop(), 0);
}

/// Headers of web hooks contain tokens, so the file is treated as secret.
#[test]
fn what_is_wrong_with_a_file_of_hooks_is_said_by_line_and_without_what_is_in_it() {
    let hook = "[[hosts]]\nid = 1\nname = \"node1\"\nvcpus = 8\nmemory_mib = 4096\n[hooks.on_hold]\n";
    let cases = [
        ("token: hunter2\n".to_owned(), "line 1: invalid TOML"),
        ("\n\nstate_file = \"hunter2\n".to_owned(), "line 3: invalid TOML"),
        ("state_file = \"f\"\nhosst = 1\n".to_owned(), "line 2, hosst: unknown key, expected"),
        ("state_file = \"f\"\nhosts = \"hunter2\"\n".to_owned(), "line 2, hosts: wrong type, expected"),
        (format!("state_file = \"f\"\n{hook}exec = \"hunter2\"\n"), "line 8, hooks.on_hold.exec: wrong type"),
        (
            format!("state_file = \"f\"\n{hook}exce = \"hunter2\"\n"),
            "line 8, hooks.on_hold.exce: unknown key",
        ),
        (
            format!("state_file = \"f\"\n{hook}time_limit_seconds = \"hunter2\"\n"),
            "line 8, hooks.on_hold.time_limit_seconds: wrong type",
        ),
    ];
    for (text, wanted) in cases {
        let fleet = format!("hooks:{}", file("hooks.toml", &text));
        let ran = run(command().args(["serve", "--database", "memory", "--fleet", &fleet]));
        assert_eq!(ran.status, 1, "{text}: {}", ran.err);
        assert!(ran.err.contains(wanted) && !ran.err.contains("hunter2"), "{text}: {}", ran.err);
    }
}
