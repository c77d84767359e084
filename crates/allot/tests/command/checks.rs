//! `allot serve --check`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::shell::{Ran, command, file, fresh, run};

/// Number of mistakes. Warnings, such as of file modes, don't count.
fn mistakes(ran: &Ran) -> usize {
    ran.err.lines().filter(|line| line.starts_with("Error: ")).count()
}

#[test]
fn serve_check_reports_every_mistake_and_starts_nothing() {
    let hash = "password_hash = \"sesame\"\nprojects = { p = [\"member\"] }\n";
    let users = format!("[[users]]\nname = \"ann\"\n{hash}[[users]]\nname = \"ben\"\n{hash}");
    let users = file("users.toml", &users);
    let hooks = file("hooks.toml", "state_file = \"state\"\nhosts = []\nhooks.on_hold.exec = [\"./hold\"]\n");
    let policy = file("policy.yaml", "\"blazar:leases:get\": \"role:\"\n");
    let settings = format!(
        "database = \"sqlite:///no/such/directory/allot.db\"\nauth = \"basic:{users}\"\nfleet = \"hooks:{hooks}\"\n\
         policy_file = \"{policy}\"\n[notifications]\nexec = [\"./tell\", \"--mail\"]\n\
         [tls]\ncertificate = \"/no/certificate\"\nkey = \"/no/key\"\n\
         [log]\nlevel = \"loud\"\n[limits]\nbody_bytes = 0\npagge = 1\n"
    );
    let settings = file("allot.toml", &settings);
    let ran = run(command().args(["serve", "--check", "--config", &settings, "--public-url", "allot"]));
    assert_eq!((ran.status, &*ran.out), (1, ""), "{}", ran.err);
    let expected = [
        "--public-url: invalid value \"...\": ".to_owned(),
        format!("{settings}, line 11, log.level: invalid value \"loud\": \"loud\" is not a level"),
        format!(
            "{settings}, line 13, limits.body_bytes: invalid value \"0\": write a number of at least 1024"
        ),
        format!("{settings}, line 14: there is no setting limits.pagge"),
        format!("{users}, line 3: user ann: "),
        format!("{users}, line 7: user ben: "),
        format!("{hooks}, line 3, hooks.on_hold: ./hold: no such file"),
        format!("{policy}, line 1: "),
        format!("{settings}, line 6, notifications.exec: ./tell: no such file"),
        format!("{settings}, line 8, tls.certificate: /no/certificate: "),
        format!("{settings}, line 9, tls.key: /no/key: "),
        format!("{settings}, line 1, database: there is no directory /no/such/directory"),
    ];
    for mistake in &expected {
        assert!(ran.err.contains(&format!("Error: {mistake}")), "{mistake}: {}", ran.err);
    }
    assert_eq!(mistakes(&ran), expected.len(), "{}", ran.err);
    assert!(!ran.err.contains("sesame"), "{}", ran.err);
}

#[test]
fn serve_check_names_each_mistake_of_users_and_rules() {
    let users = "[[users]]\nname = \"ann\"\nnmae = \"x\"\npassword_hash = \"sesame\"\n\
                 projects = { p = [\"member\"] }\ndefault_project = \"q\"\n\
                 [[users]]\nname = \"ann\"\npassword_hash = \"sesame\"\nprojects = {}\n";
    let users = file("users.toml", users);
    let rules =
        "\"blazar:leases:get\": [1]\n\"blazar:leases:post\": \"role:\"\n\"blazar:lease:put\": \"@\"\n";
    let policy = file("policy.yaml", rules);
    let auth = format!("basic:{users}");
    let arguments = ["--database", "memory", "--auth", &auth, "--policy-file", &policy];
    let ran = run(command().args(["serve", "--check"]).args(arguments));
    let expected = [
        format!("{users}, line 3: there is an unknown field nmae; each entry of users needs name, "),
        format!("{users}, line 4: user ann: password_hash must be"),
        format!("{users}, line 6: user ann: default_project isn't"),
        format!("{users}, line 8: user ann: another user has this name"),
        format!("{users}, line 9: user ann: password_hash must be"),
        format!("{policy}, line 1: rule \"blazar:leases:get\": write the rule as text"),
        format!("{policy}, line 2: rule \"blazar:leases:post\": "),
        format!("{policy}, line 3: there is no rule \"blazar:lease:put\""),
    ];
    for mistake in &expected {
        assert!(ran.err.contains(&format!("Error: {mistake}")), "{mistake}: {}", ran.err);
    }
    assert_eq!((ran.status, mistakes(&ran)), (1, expected.len()), "{}", ran.err);
}

#[test]
fn serve_check_names_what_hooks_need_and_is_missing() {
    let hooks = "state_file = \"state\"\npass_environment = [\"NO_SUCH_VARIABLE_HERE\"]\nhosts = []\n[hooks.on_hold]\n\
                 webhook = \"http://127.0.0.1:1/\"\nsecret_header = { name = \"Authorization\", file = \"/no/secret\" }\n";
    let hooks = file("hooks.toml", hooks);
    let fleet = format!("hooks:{hooks}");
    let ran = run(command().args(["serve", "--check", "--database", "memory", "--fleet", &fleet]));
    let expected = [
        format!("{hooks}, line 2, pass_environment: NO_SUCH_VARIABLE_HERE is not set in the environment"),
        format!("{hooks}, line 6, hooks.on_hold: secret_header: /no/secret: "),
    ];
    assert!(expected.iter().all(|mistake| ran.err.contains(mistake)), "{}", ran.err);
    assert_eq!((ran.status, mistakes(&ran)), (1, 2), "{}", ran.err);
}

#[test]
fn serve_check_names_all_that_a_login_at_a_cloud_lacks() {
    let arguments = ["--auth", "keystone", "--fleet", "openstack", "--openstack-open-pool", "true"];
    let ran = run(command().args(["serve", "--check", "--database", "memory"]).args(arguments));
    let expected = [
        "--auth: keystone needs keystone.auth_url, ",
        "--auth: keystone needs keystone.secret_file, ",
        "--auth: keystone needs either keystone.username or keystone.application_credential",
        "--fleet: openstack needs openstack.auth_url, ",
        "--fleet: openstack needs openstack.secret_file, ",
        "--fleet: openstack needs either openstack.username or openstack.application_credential",
        "--openstack-open-pool: needs openstack.fence = allot-filter",
    ];
    for mistake in expected {
        assert!(ran.err.contains(&format!("Error: {mistake}")), "{mistake}: {}", ran.err);
    }
    assert_eq!((ran.status, mistakes(&ran)), (1, expected.len()), "{}", ran.err);
}

#[test]
fn serve_check_names_the_setting_of_a_secret_that_cannot_be_read() {
    let settings = "auth = \"keystone\"\nfleet = \"openstack\"\n\
                    [keystone]\nauth_url = \"http://127.0.0.1:1/v3\"\nusername = \"allot\"\n\
                    secret_file = \"/no/keystone.password\"\n\
                    [openstack]\nusername = \"allot\"\nsecret_file = \"/no/nova.password\"\n";
    let settings = file("allot.toml", settings);
    let ran = run(command().args(["serve", "--check", "--database", "memory", "--config", &settings]));
    for (line, setting, secret) in
        [(6, "keystone.secret_file", "keystone.password"), (9, "openstack.secret_file", "nova.password")]
    {
        let mistake =
            format!("Error: {settings}, line {line}, {setting}: cannot read the secret in /no/{secret}: ");
        assert!(ran.err.contains(&mistake), "{mistake}: {}", ran.err);
    }
    assert_eq!(ran.status, 1, "{}", ran.err);
}

#[test]
fn serve_check_names_the_url_of_a_keystone_that_does_not_answer() {
    let secret = file("keystone.password", "hush");
    let settings = format!(
        "auth = \"keystone\"\n[keystone]\nauth_url = \"http://127.0.0.1:1\"\nusername = \"allot\"\nsecret_file = \"{secret}\"\n"
    );
    let settings = file("allot.toml", &settings);
    let ran = run(command().args(["serve", "--check", "--database", "memory", "--config", &settings]));
    let mistake =
        format!("Error: {settings}, line 3, keystone.auth_url: cannot log in at http://127.0.0.1:1/v3: ");
    assert!(ran.err.contains(&mistake), "{mistake}: {}", ran.err);
    assert_eq!((ran.status, mistakes(&ran)), (1, 1), "{}", ran.err);
}

#[test]
fn serve_check_connects_to_the_message_bus() {
    let bus = file("bus.url", "rabbit://u:hush@127.0.0.1:1,u:hush@127.0.0.1:2/");
    let ran =
        run(command().args(["serve", "--check", "--database", "memory", "--message-bus-url-file", &bus]));
    for broker in ["127.0.0.1:1", "127.0.0.1:2"] {
        assert!(ran.err.contains(&format!("Error: --message-bus-url-file: {broker} ")), "{}", ran.err);
    }
    assert_eq!((ran.status, mistakes(&ran)), (1, 2), "{}", ran.err);
    assert!(!ran.err.contains("hush"), "{}", ran.err);
}

#[test]
fn serve_check_goes_on_after_a_file_or_a_setting_that_cannot_be_read() {
    let arguments = ["--config", "/no/allot.toml", "--limits-page", "many"];
    let ran = run(command().args(["serve", "--check"]).args(arguments));
    for mistake in ["cannot read the configuration /no/allot.toml: ", "--limits-page: invalid value"] {
        assert!(ran.err.contains(&format!("Error: {mistake}")), "{mistake}: {}", ran.err);
    }
    assert_eq!((ran.status, mistakes(&ran)), (1, 2), "{}", ran.err);
    let arguments = ["--fleet", "openstack", "--openstack-timeout", "soon", "--openstack-username", "allot"];
    let ran = run(command().args(["serve", "--check", "--database", "memory"]).args(arguments));
    for mistake in [
        "--openstack-timeout: invalid value",
        "--fleet: openstack needs openstack.auth_url, ",
        "--fleet: openstack needs openstack.secret_file, ",
    ] {
        assert!(ran.err.contains(&format!("Error: {mistake}")), "{mistake}: {}", ran.err);
    }
    assert_eq!((ran.status, mistakes(&ran)), (1, 3), "{}", ran.err);
}

#[test]
fn serve_check_skips_only_what_depends_on_a_wrong_setting() {
    let settings =
        "database = \"mysql://host\"\nauth = \"nobody\"\nlisten = \"0.0.0.0:0\"\n[tls]\nkey = \"/no/key\"\n";
    let settings = file("allot.toml", settings);
    let ran = run(command().args(["serve", "--check", "--config", &settings]));
    let expected = [
        "line 1, database: invalid value",
        "line 2, auth: invalid value",
        "line 5, tls.key: set tls.certificate",
    ];
    assert!(expected.iter().all(|mistake| ran.err.contains(mistake)), "{}", ran.err);
    assert_eq!((ran.status, mistakes(&ran)), (1, expected.len()), "{}", ran.err);
}

#[test]
fn serve_check_reports_a_mistake_once() {
    let bus = file("bus.url", "nonsense://host");
    let arguments = ["--message-bus-url-file", &bus, "--message-bus-nova-topics", "versioned_notifications"];
    let ran = run(command().args(["serve", "--check", "--database", "memory"]).args(arguments));
    assert_eq!((ran.status, mistakes(&ran)), (1, 1), "{}", ran.err);
}

#[test]
fn serve_check_reports_addresses_of_an_enforcer_that_nobody_would_ask() {
    let arguments = ["--enforcement-check-create-url", "http://127.0.0.1:1/"];
    let ran = run(command().args(["serve", "--check", "--database", "memory"]).args(arguments));
    assert!(
        ran.status == 1 && ran.err.contains("check-create-url: set enforcement.url as well"),
        "{}",
        ran.err
    );
}

#[test]
fn serve_check_reports_all_wrong_settings() {
    let config = file("allot.toml", "listn = 1\n[log]\nformat = \"xml\"\n");
    let ran = run(command().args(["serve", "--check", "--config", &config, "--limits-page", "many"]));
    assert_eq!((ran.status, mistakes(&ran)), (1, 3), "{}", ran.err);
}

#[test]
fn serve_check_names_the_wrong_one_of_several_values() {
    let settings = "[leases.max_duration]\n\"pool:gpu\" = \"soon\"\n\
                    [usage]\nprice_lease = [\"1\", \"rack:r1=2\"]\n";
    let ran = run(command().args(["serve", "--check", "--config", &file("allot.toml", settings)]));
    assert_eq!((ran.status, mistakes(&ran)), (1, 2), "{}", ran.err);
    for mistake in [
        "line 2, leases.max_duration.pool:gpu: invalid value \"soon\": write a duration",
        "line 4, usage.price_lease: invalid value \"1,rack:r1=2\": rack:r1: expected project:ID",
    ] {
        assert!(ran.err.contains(mistake), "{mistake}: {}", ran.err);
    }
}

#[test]
fn serve_check_of_a_valid_configuration_creates_no_file() {
    let directory = fresh("valid");
    fs::create_dir(&directory).expect("it is new");
    let ran = run(command().args(["serve", "--check"]).current_dir(&directory));
    assert_eq!((ran.status, &*ran.out), (0, "The configuration is valid.\n"), "{}", ran.err);
    assert_eq!(fs::read_dir(&directory).expect("it is there").count(), 0);
}

#[test]
fn serve_check_warns_of_what_a_start_would_warn_of() {
    let users = "[[users]]\nname = \"ann\"\nprojects = { p = [\"membre\", \"auditor\"] }\n\
                 password_hash = \"$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ\"\n";
    let users = file("users.toml", users);
    fs::set_permissions(&users, fs::Permissions::from_mode(0o644)).expect("ours");
    let policy = file("policy.yaml", "blazar:audit:get: rule:admin or role:auditor\n");
    let auth = format!("basic:{users}");
    let arguments = ["--database", "memory", "--auth", &auth, "--policy-file", &policy];
    let ran = run(command().args(["serve", "--check"]).args(arguments));
    assert_eq!((ran.status, &*ran.out), (0, "The configuration is valid.\n"), "{}", ran.err);
    for warning in [
        format!("Warning: {users}, line 1: user ann: unknown role membre: "),
        format!("Warning: {users}: secrets open to others, mode 0644"),
    ] {
        assert!(ran.err.contains(&warning), "{warning}: {}", ran.err);
    }
    assert_eq!(ran.err.lines().count(), 2, "{}", ran.err);
}

#[test]
fn serve_check_warns_of_nothing_that_is_already_a_mistake() {
    let sha256 = "0".repeat(64);
    let tokens =
        format!("[[tokens]]\nsha256 = \"{sha256}\"\nuser = \"tom\"\nproject = \"p\"\nroles = [\"member\"]\n");
    let tokens = file("tokens.toml", &tokens);
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).expect("ours");
    let hooks = "state_file = \"state\"\nhosts = []\n[hooks.on_hold]\nexce = [\"true\"]\n";
    let hooks = file("hooks.toml", hooks);
    fs::set_permissions(&hooks, fs::Permissions::from_mode(0o644)).expect("ours");
    let settings = format!(
        "listen = \"0.0.0.0:0\"\npublic_url = \"allot\"\nauth = \"tokens:{tokens}\"\nfleet = \"hooks:{hooks}\"\n\
         database = \"memory\"\n[tls]\ncertifcate = \"/no/certificate\"\n"
    );
    let settings = file("allot.toml", &settings);
    let ran = run(command().args(["serve", "--check", "--config", &settings]));
    for mistake in [
        format!("{settings}, line 2, public_url: invalid value"),
        format!("{settings}, line 7: there is no setting tls.certifcate"),
        format!("{hooks}, line 4, hooks.on_hold.exce: unknown key"),
    ] {
        assert!(ran.err.contains(&format!("Error: {mistake}")), "{mistake}: {}", ran.err);
    }
    assert_eq!((ran.status, ran.err.lines().count()), (1, 3), "{}", ran.err);
}
