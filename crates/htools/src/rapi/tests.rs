//! Tests with well-behaved and misbehaving servers.

use std::fs;

use super::*;
use crate::http::fake::{IMPATIENT, PATIENT, Reply, Server, identity};

const POLICY: &str = r#"{"minmax":[],"std":{"memory-size":128,"cpu-count":1,"disk-size":1024,"disk-count":1,
    "nic-count":1,"spindle-use":1},"disk-templates":["drbd"],"vcpu-ratio":4,"spindle-ratio":32}"#;

/// The document for a request.
pub(crate) fn document(path: &str) -> String {
    let node = |name: &str| {
        format!(
            r#"{{"name":"{name}","offline":false,"drained":false,"ndparams":{{"exclusive_storage":false,
            "spindle_count":2}},"tags":["t"],"group.uuid":"u1","mtotal":1024.5,"mnode":64,"mfree":512,
            "dtotal":null,"ctotal":4,"cnos":1}}"#
        )
    };
    let instance = r#"{"name":"i1","disk_usage":10,"disk.sizes":[6,4],"disk.spindles":[1,null],
        "beparams":{"vcpus":2,"auto_balance":false,"spindle_use":3,"memory":128},"oper_ram":100,"pnode":"n1",
        "snodes":["n2"],"status":"running","tags":[],"disk_template":"drbd"}"#;
    if path.contains("/2/groups") {
        format!(
            r#"[{{"name":"g1","uuid":"u1","alloc_policy":"preferred","ipolicy":{POLICY},"tags":[],"more":[{{}}]}}]"#
        )
    } else if path.contains("/2/nodes") {
        format!("[{},{}]", node("n1"), node("n2"))
    } else if path.contains("/2/instances") {
        format!("[{instance}]")
    } else {
        format!(r#"{{"master":"n2","tags":["c"],"ipolicy":{POLICY},"default_hypervisor":"kvm"}}"#)
    }
}

fn first_line(head: &str) -> &str {
    head.lines().next().unwrap_or_default()
}

fn well(head: &str) -> Reply {
    Reply::Document(200, document(first_line(head)))
}

fn load_from(server: &Server, limits: Limits) -> Result<ClusterData, RapiError> {
    load_within(&format!("http://127.0.0.1:{}", server.port), None, limits)
}

/// Name of the error that a server causes, as the reference prints it.
fn failure(limits: Limits, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> String {
    let server = Server::start(reply);
    let message = load_from(&server, limits).unwrap_err().to_string();
    let place = format!("Curl error for 'http://127.0.0.1:{}/2/groups?bulk=1', error ", server.port);
    message.strip_prefix(&place).unwrap_or_else(|| panic!("{message}")).to_owned()
}

#[test]
fn four_documents_make_a_cluster() {
    let server = Server::start(well);
    let data = load_from(&server, PATIENT).unwrap();
    assert_eq!(
        server.heads().iter().map(|head| first_line(head).to_owned()).collect::<Vec<_>>(),
        [
            "GET /2/groups?bulk=1 HTTP/1.1",
            "GET /2/nodes?bulk=1 HTTP/1.1",
            "GET /2/instances?bulk=1 HTTP/1.1",
            "GET /2/info HTTP/1.1"
        ]
    );
    assert!(server.heads().iter().all(|head| !head.to_lowercase().contains("authorization")));
    assert_eq!((data.groups.len(), data.nodes.len(), data.instances.len()), (1, 2, 1));
    assert_eq!((data.nodes[0].master, data.nodes[1].master), (false, true));
    assert!(data.nodes.iter().all(|node| node.kvm));
    assert_eq!((data.nodes[0].total_memory, data.nodes[0].total_disk), (1024.5, 0.0));
    let instance = &data.instances[0];
    assert_eq!((instance.memory, instance.disks.len(), instance.auto_balance), (100, 2, false));
}

#[test]
fn a_name_and_password_go_to_the_server_and_nowhere_else() {
    let server = Server::start(well);
    load_within(&format!("us%40er:p%3aw@127.0.0.1:{}", server.port), None, PATIENT).unwrap();
    // us@er:p:w
    let sent = "authorization: basic dxnazxi6cdp3";
    assert!(server.heads().iter().all(|head| head.to_lowercase().contains(sent)), "{:?}", server.heads());

    let server = Server::start(|_| Reply::Document(401, String::new()));
    let address = format!("http://user:secret@127.0.0.1:{}", server.port);
    let error = load_within(&address, None, PATIENT).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "Curl error for 'http://user@127.0.0.1:{}/2/groups?bulk=1', error CurlHttpReturnedError (HTTP status 401)",
            server.port
        )
    );
}

#[test]
fn a_server_that_misbehaves_is_named_with_what_it_did() {
    let head = b"HTTP/1.1 200 Fine\r\nContent-Length: 1000\r\n\r\n[";
    assert_eq!(
        failure(PATIENT, |_| Reply::Document(500, String::new())),
        "CurlHttpReturnedError (HTTP status 500)"
    );
    let page = "<!DOCTYPE html><p>Hello";
    assert!(failure(PATIENT, |_| Reply::Document(200, page.to_owned())).contains("a page of HTML"));
    assert_eq!(failure(PATIENT, |_| Reply::Bytes(head.to_vec())), "CurlPartialFile");
    assert_eq!(failure(PATIENT, |_| Reply::Bytes(Vec::new())), "CurlGotNothing");
    assert_eq!(failure(PATIENT, |_| Reply::Bytes(b"hello\r\n\r\n".to_vec())), "CurlUnspportedProtocol");
    assert_eq!(failure(IMPATIENT, |_| Reply::Silence), "CurlOperationTimeout");
    assert_eq!(failure(IMPATIENT, |_| Reply::Drip), "CurlOperationTimeout");
}

#[test]
fn an_answer_without_measure_is_refused() {
    let small = Limits { most_bytes: 100, ..PATIENT };
    assert_eq!(failure(small, well), "the answer is longer than 100 bytes");
    // The answer has neither a length nor an end, so only counting bytes helps.
    let endless = |_: &str| Reply::Bytes([b"HTTP/1.1 200 Fine\r\n\r\n", [b'['; 1000].as_slice()].concat());
    assert_eq!(failure(small, endless), "the answer is longer than 100 bytes");
}

#[test]
fn nobody_there_and_nobody_of_that_name() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let check = |address: &str, expect: &str| {
        let message = load_within(address, None, PATIENT).unwrap_err().to_string();
        assert!(message.ends_with(expect), "{message}");
    };
    check(&format!("http://127.0.0.1:{port}"), "CurlCouldntConnect");
    check("foo://127.0.0.1:1", "CurlUnspportedProtocol");
    check("http://a b:1", "CurlUrlMalformat");
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = Server::start(well);
    let target = format!("Location: http://127.0.0.1:{}/\r\n", elsewhere.port);
    let moved = format!("HTTP/1.1 302 Moved\r\n{target}Content-Length: 2\r\n\r\n{{}}");
    let server = Server::start(move |_| Reply::Bytes(moved.clone().into_bytes()));
    let message = load_from(&server, PATIENT).unwrap_err().to_string();
    assert!(message.ends_with("(HTTP status 302, a redirection, which is not followed)"), "{message}");
    assert!(elsewhere.heads().is_empty());
}

#[test]
fn certificates_are_verified_if_authorities_are_given() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let ours = identity(&["localhost"]);
    let trusted = file("trusted.pem", &ours.certificate.pem());
    let other = file("other.pem", &identity(&["localhost"]).certificate.pem());
    let server = Server::start_tls(&ours, well);
    let load = |host: &str, authorities: Option<&Path>| {
        load_within(&format!("https://{host}:{}", server.port), authorities, PATIENT)
    };
    let refused = |result: Result<ClusterData, RapiError>| {
        let message = result.unwrap_err().to_string();
        assert!(message.contains("the server's certificate is refused"), "{message}");
    };
    // Any certificate is accepted, for any host.
    load("127.0.0.1", None).unwrap();
    load("localhost", Some(&trusted)).unwrap();
    refused(load("127.0.0.1", Some(&trusted)));
    refused(load("localhost", Some(&other)));

    let unusable = |path: &Path, expect: &str| {
        let message = load("localhost", Some(path)).unwrap_err().to_string();
        assert!(message.contains(expect), "{message}");
    };
    unusable(&file("empty.pem", "nothing here"), "holds no certificate");
    unusable(&directory.path().join("missing.pem"), "missing.pem");
}

#[test]
fn a_server_without_encryption_is_no_tls_server() {
    let server = Server::start(|_| Reply::Silence);
    // Sends bytes without a TLS handshake, then closes the connection.
    let says = |what: &'static [u8]| {
        let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = plain.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = plain.accept().unwrap();
            let _ = io::Read::read(&mut stream, &mut [0; 1000]);
            io::Write::write_all(&mut stream, what).unwrap();
        });
        port
    };
    let load = |port, limits| load_within(&format!("https://127.0.0.1:{port}"), None, limits).unwrap_err();
    for what in [b"HTTP/1.0 400 Bad request\r\n\r\n".as_slice(), b""] {
        let message = load(says(what), PATIENT).to_string();
        assert!(message.ends_with("CurlSSLConnectError"), "{message}");
    }
    assert!(load(server.port, IMPATIENT).to_string().ends_with("CurlOperationTimeout"));
}

#[test]
fn documents_are_read_from_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["groups", "nodes", "instances", "info"] {
        let text = document(&format!("/2/{name}"));
        fs::write(directory.path().join(format!("{name}.json")), text).unwrap();
    }
    let address = format!("file://{}", directory.path().display());
    assert_eq!(load(&address, None).unwrap(), load_from(&Server::start(well), PATIENT).unwrap());
    fs::remove_file(directory.path().join("info.json")).unwrap();
    let message = load(&address, None).unwrap_err().to_string();
    assert!(message.contains("/info.json: "), "{message}");
}

/// Error in a document after a replacement.
fn complaint(kind: &str, old: &str, new: &str) -> String {
    let text = |name: &str| {
        let text = document(&format!("/2/{name}"));
        if name == kind {
            assert!(text.contains(old), "{old} is not in {text}");
            text.replacen(old, new, 1).into_bytes()
        } else {
            text.into_bytes()
        }
    };
    let documents = Documents {
        groups: text("groups"),
        nodes: text("nodes"),
        instances: text("instances"),
        info: text("info"),
    };
    documents.load().unwrap_err().to_string()
}

#[test]
fn complaints_name_the_thing_and_the_key() {
    let check = |kind, old, new, expect: &str| assert_eq!(complaint(kind, old, new), expect);
    check("groups", "\"g1\"", "5", "Parsing new group: key 'name': Unable to read String");
    check("groups", "\"u1\"", "null", "Group 'g1': key 'uuid': Unable to read String");
    check(
        "groups",
        "preferred",
        "odd",
        "Group 'g1': key 'alloc_policy': Invalid string value for type AllocPolicy: \"odd\"",
    );
    check(
        "nodes",
        "1024.5",
        "null",
        "Node 'n1', error while parsing data: key 'mtotal': Unable to read Double",
    );
    check(
        "nodes",
        "spindle_count",
        "x",
        "Node 'n1', error while parsing data: key 'spindle_count' not found, object contains only \
         [\"exclusive_storage\",\"x\"]",
    );
    check("nodes", "\"u1\"", "\"zz\"", "Unknown group 'zz' for node n1");
    check("nodes", "\"u1\"", "null", "Unknown group '00000000-0000-0000-0000-000000000000' for node n1");
    check("instances", "\"n2\"", "\"zz\"", "Unknown node 'zz' for instance i1");
    check(
        "instances",
        "\"vcpus\":2",
        "\"vcpus\":null",
        "Instance 'i1', error while parsing data: key 'vcpus': Unable to read Int",
    );
    check(
        "instances",
        "oper_ram",
        "x",
        "Instance 'i1', error while parsing data: key 'oper_ram' not found, object contains only [\"name\",\
         \"disk_usage\",\"disk.sizes\",\"disk.spindles\",\"beparams\",\"x\",\"pnode\",\"snodes\",\"status\",\
         \"tags\",\"disk_template\"]",
    );
    check("info", "\"n2\"", "\"zz\"", "Master node zz unknown");
    check(
        "info",
        "\"tags\"",
        "\"x\"",
        "Parsing cluster data: key 'tags' not found, object contains only \
         [\"master\",\"x\",\"ipolicy\",\"default_hypervisor\"]",
    );
    check("info", "{", "{,", "Parsing cluster info: expected a string at line 1 column 2");
}
