//! Slow, huge and malicious clients on real sockets. The server must keep serving other clients, and keep
//! nothing of a client after it is gone. Tests don't measure time: an operation that never ends makes the
//! test hang.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::Value;
use server::{Config, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::site::{Site, hosts_lease};

/// Number of clients of some kinds.
const MANY: usize = 60;

/// A running server.
struct Served {
    address: SocketAddr,
    site: Site,
    stop: watch::Sender<bool>,
    ended: JoinHandle<Result<(), server::ServeError>>,
}

/// Short timeouts, to keep the tests short.
fn limits() -> Limits {
    Limits { read_time: Duration::from_secs(1), ..Limits::default() }
}

impl Served {
    async fn start(limits: Limits) -> Self {
        let listen = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let site = Site::with(Config { listen, limits, ..Config::default() }, None).await;
        let listener = server::bind(&site.app).expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = watch::channel(false);
        let ended = tokio::spawn(server::serve(site.app.clone(), listener, stopped));
        Self { address, site, stop, ended }
    }

    /// Connects from 127.0.0.`last`.
    async fn connect_from(&self, last: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0))).expect("a free port");
        socket.connect(self.address).await.expect("a connection")
    }

    async fn connect(&self) -> TcpStream {
        self.connect_from(2).await
    }

    /// Connects and sends `words`.
    async fn say(&self, words: &[u8]) -> TcpStream {
        let mut stream = self.connect().await;
        // A client whose connection was closed notices when it reads.
        let _ = stream.write_all(words).await;
        stream
    }

    /// Sends `words` and nothing else, and returns the response.
    async fn answer(&self, words: &[u8]) -> String {
        rest(self.say(words).await).await
    }

    async fn get(&self, path: &str) -> (StatusCode, String) {
        // Fails only if a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("a client");
        let answer = client.get(format!("http://{}{path}", self.address)).send().await.expect("an answer");
        (answer.status(), answer.text().await.expect("text"))
    }

    /// Checks that the server still serves a well-behaved client.
    async fn serves(&self) {
        for path in ["/healthz", "/v1/leases", "/v1/os-hosts"] {
            assert_eq!(self.get(path).await.0, 200, "{path}");
        }
    }

    async fn figure(&self, name: &str) -> usize {
        let text = self.get("/metrics").await.1;
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).parse::<f64>().expect("a number") as usize
    }

    /// Waits until this connection is the only one.
    async fn is_left_alone(&self) {
        while self.figure("allot_connections").await > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Reads until the connection ends.
async fn rest(mut stream: TcpStream) -> String {
    let mut all = Vec::new();
    // A reset ends the connection, too.
    let _ = stream.read_to_end(&mut all).await;
    String::from_utf8_lossy(&all).into_owned()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

fn post(headers: &str) -> String {
    format!("POST /v1/leases HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n\r\n")
}

#[tokio::test]
async fn clients_that_begin_and_do_not_go_on_are_sent_away() {
    let served = Served::start(limits()).await;
    let beginnings = [
        String::new(),
        "PRI * HT".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "GET /v1/leases HTTP/1.1\r\nhost: lo".to_owned(),
        post("content-length: 100") + "{",
        post("transfer-encoding: chunked") + "5\r\n{\"n",
        get("/v1/leases"),
    ];
    let mut silent = Vec::new();
    for number in 0..MANY {
        silent.push(served.say(beginnings[number % beginnings.len()].as_bytes()).await);
    }
    served.serves().await;
    let answers = join_all(silent.into_iter().map(rest)).await;
    let late = answers.iter().filter(|answer| answer.starts_with("HTTP/1.1 408 ")).count();
    assert!(late >= 2 * (MANY / beginnings.len()), "bodies that do not come are asked for no longer");
    served.is_left_alone().await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answers_is_sent_away() {
    let served = Served::start(limits()).await;
    let mut deaf = Vec::new();
    for _ in 0..4 {
        let mut stream = served.connect().await;
        let asking = async move {
            // Sends more than all buffers on the way can take.
            let request = get("/openapi.json");
            while stream.write_all(request.as_bytes()).await.is_ok() {}
        };
        deaf.push(tokio::spawn(asking));
    }
    served.serves().await;
    // These clients haven't read a byte, but their connections are closed.
    join_all(deaf).await;
    served.is_left_alone().await;
}

#[tokio::test]
async fn a_body_that_is_too_long_or_has_no_end_is_refused() {
    let served = Served::start(limits()).await;
    let huge = served.answer((post("content-length: 99999999999") + "{").as_bytes()).await;
    assert!(huge.starts_with("HTTP/1.1 4"), "{huge}");
    let mut endless = served.say(post("transfer-encoding: chunked").as_bytes()).await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let mut chunks = 0;
    while endless.write_all(chunk.as_bytes()).await.is_ok() {
        chunks += 1;
        assert!(chunks < 10_000, "somebody reads all of that");
    }
    served.serves().await;
    served.is_left_alone().await;
}

#[tokio::test]
async fn chunks_that_are_none_are_malformed_and_not_too_long() {
    let served = Served::start(limits()).await;
    for chunks in ["zz\r\n{}", "5\r\n{\"nameXX", "-1\r\n{}"] {
        let answer = served.answer((post("transfer-encoding: chunked") + chunks).as_bytes()).await;
        assert!(!answer.starts_with("HTTP/1.1 413"), "{chunks:?}: {answer}");
        assert!(answer.starts_with("HTTP/1.1 400"), "{chunks:?}: {answer}");
    }
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    let served = Served::start(limits()).await;
    let many =
        |what: &str, times: usize| format!("GET / HTTP/1.1\r\n{}\r\n", what.repeat(times)).into_bytes();
    let chunked = |chunks: &str| (post("transfer-encoding: chunked") + chunks).into_bytes();
    let hello = [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], &[7; 600]].concat();
    let sent = [
        b"\0\0\0\0\r\n\r\n".to_vec(),
        b"\r\n\r\n\r\n\r\nhello\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n".to_vec(),
        b"GET /\xff\xfe HTTP/1.1\r\nhost: \xff\r\n\r\n".to_vec(),
        get(&format!("/{}", "x".repeat(1 << 20))).into_bytes(),
        many("x: y\r\n", 50_000),
        many(&format!("x: {}\r\n", "y".repeat(1000)), 5000),
        post("content-length: -1").into_bytes(),
        post("content-length: 5\r\ncontent-length: 6").into_bytes(),
        post("content-length: 99999999999999999999999999").into_bytes(),
        chunked("ffffffffffffffffff\r\n{}"),
        chunked("-1\r\n{}"),
        chunked("zz\r\n{}"),
        chunked(&format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "x".repeat(1 << 20))),
        chunked(&format!("0\r\n{}\r\n", "x: y\r\n".repeat(50_000))),
        [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[0xff; 4096]].concat(),
        hello,
    ];
    for words in &sent {
        let answer = served.answer(words).await;
        let shown = String::from_utf8_lossy(&words[..words.len().min(60)]).into_owned();
        assert!(
            !answer.starts_with("HTTP/1.1 2") && !answer.starts_with("HTTP/1.1 5"),
            "{shown:?}: {answer}"
        );
    }
    served.serves().await;
    served.is_left_alone().await;
}

#[tokio::test]
async fn an_address_has_so_many_connections_and_others_have_the_rest() {
    let limits = Limits {
        connections: 60,
        connections_per_address: 40,
        read_time: Duration::from_secs(5),
        ..limits()
    };
    let served = Served::start(limits).await;
    let mut all = Vec::new();
    for _ in 0..200 {
        all.push(served.connect().await);
    }
    served.serves().await;
    while served.figure("allot_connections_refused_total").await < 160 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(served.figure("allot_connections").await, 41);
    drop(all);
    served.is_left_alone().await;
    let answer = served.answer(get("/healthz").as_bytes()).await;
    assert!(answer.ends_with("ok\n"), "its places are free again: {answer}");
}

#[tokio::test]
async fn requests_that_come_at_once_are_answered_one_after_the_other() {
    let served = Served::start(limits()).await;
    let paths = ["/healthz", "/v1/leases", "/v1/nosuch", "/healthz"];
    let requests: String = (0..MANY).map(|number| get(paths[number % paths.len()])).collect();
    let answers = served.answer(requests.as_bytes()).await;
    let statuses: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    let expected: Vec<&str> = (0..MANY).map(|number| ["200", "200", "404", "200"][number % 4]).collect();
    assert_eq!(statuses, expected);
}

#[tokio::test]
async fn requests_that_are_broken_off_leave_nothing_behind() {
    let served = Served::start(Limits { requests_at_once: 8, ..limits() }).await;
    served.site.add_hosts(1).await;
    let lease = hosts_lease(1, 1, "2030-01-01 20:00", "2030-01-01 21:00").to_string();
    let whole = format!("{}{lease}", post(&format!("content-length: {}", lease.len())));
    for number in 0..10 * MANY {
        // Sends the whole request in one of three cases, and a part of it otherwise.
        let end = if number % 3 == 0 { whole.len() } else { number * 7 % whole.len() };
        drop(served.say(&whole.as_bytes()[..end]).await);
    }
    for _ in 0..MANY {
        let mut half_closed = served.say(get("/v1/leases").as_bytes()).await;
        half_closed.shutdown().await.expect("a connection");
        drop(half_closed);
    }
    served.is_left_alone().await;
    served.serves().await;
    let leases: Value = serde_json::from_str(&served.get("/v1/leases").await.1).expect("JSON");
    assert_eq!(leases["leases"].as_array().map(Vec::len), Some(1), "there is one host: {leases}");
    for waiting in ["allot_waiting_writers", "allot_waiting_decisions"] {
        assert_eq!(served.figure(waiting).await, 0);
    }
}

#[tokio::test]
async fn a_client_that_says_no_more_is_answered_or_sent_away() {
    let served = Served::start(limits()).await;
    for words in [get("/v1/leases"), post("content-length: 50"), String::new()] {
        let mut stream = served.say(words.as_bytes()).await;
        stream.shutdown().await.expect("a connection");
        let answer = rest(stream).await;
        assert!(!answer.starts_with("HTTP/1.1 5"), "{answer}");
    }
    served.is_left_alone().await;
}

/// Reads until `words` were received.
async fn hear(stream: &mut TcpStream, words: &str) -> String {
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains(words) {
        let byte = stream.read_u8().await;
        heard.push(byte.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&heard))));
    }
    String::from_utf8_lossy(&heard).into_owned()
}

#[tokio::test]
async fn what_is_under_way_is_answered_when_the_server_ends_and_nothing_new_is_begun() {
    let served = Served::start(Limits { stop_read_time: Duration::from_mins(10), ..Limits::default() }).await;
    served.site.add_hosts(1).await;
    let lease = hosts_lease(1, 1, "2030-01-01 20:00", "2030-01-01 21:00").to_string();
    let head = post(&format!("expect: 100-continue\r\ncontent-length: {}", lease.len()));
    let mut begun = served.say(head.as_bytes()).await;
    hear(&mut begun, "100 Continue\r\n\r\n").await;
    let mut idle = served.say(get("/healthz").as_bytes()).await;
    hear(&mut idle, "ok\n").await;
    served.stop.send_replace(true);
    // Idle connections are closed first. After that, new ones are refused.
    assert_eq!(rest(idle).await, "");
    while TcpStream::connect(served.address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!served.ended.is_finished(), "somebody is not answered yet");
    begun.write_all(lease.as_bytes()).await.expect("it is still read");
    let answer = rest(begun).await;
    assert!(answer.starts_with("HTTP/1.1 201 Created"), "{answer}");
    served.ended.await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn who_waits_for_notifications_is_answered_when_the_server_ends() {
    let served = Served::start(Limits { requests_at_once: 1, ..Limits::default() }).await;
    let waiting = served.say(get("/v1/notifications?wait=60").as_bytes()).await;
    // The limit is one request at a time, so 429 shows that the first request is being served.
    while served.get("/v1/leases").await.0 != StatusCode::TOO_MANY_REQUESTS {
        tokio::task::yield_now().await;
    }
    served.stop.send_replace(true);
    let answer = rest(waiting).await;
    assert!(answer.ends_with("{\"notifications\":[],\"last\":0}"), "{answer}");
    served.ended.await.expect("no panic").expect("a clean end");
}

/// All limits but one are hours. If another one applied, the test would not end.
#[tokio::test]
async fn who_does_not_finish_a_request_does_not_keep_the_server_from_ending() {
    let hours = Duration::from_hours(10);
    let limits = Limits { read_time: hours, stop_time: hours, ..Limits::default() };
    let served = Served::start(limits).await;
    let mut unfinished = Vec::new();
    for words in [
        post("expect: 100-continue\r\ncontent-length: 100"),
        post("expect: 100-continue\r\ntransfer-encoding: chunked"),
    ] {
        let mut stream = served.say(words.as_bytes()).await;
        hear(&mut stream, "100 Continue\r\n\r\n").await;
        stream.write_all(b"1").await.expect("it is read");
        unfinished.push(stream);
    }
    served.stop.send_replace(true);
    served.ended.await.expect("no panic").expect("a clean end");
}

#[tokio::test]
async fn a_request_that_is_refused_early_is_answered_although_its_client_sends_more() {
    let served = Served::start(Limits::default()).await;
    // The first request is rejected for its length, the second for its path. Neither body is read.
    for (path, length, status) in [("/v1/leases", 6 << 20, "413"), ("/v1/nothing", 4 << 20, "404")] {
        let mut stream = served.connect().await;
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("a connection");
        stream.write_all(&vec![b' '; length]).await.expect("everything is taken");
        let heard = hear(&mut stream, "\r\n\r\n").await;
        assert!(heard.starts_with(&format!("HTTP/1.1 {status}")), "{heard}");
    }
    // A client that waits for `100 Continue` gets the final response instead.
    let mut polite = served.connect().await;
    let head = post(&format!("expect: 100-continue\r\ncontent-length: {}\r\n", 6 << 20));
    polite.write_all(head.as_bytes()).await.expect("a connection");
    assert!(hear(&mut polite, "\r\n\r\n").await.starts_with("HTTP/1.1 413"));
}
