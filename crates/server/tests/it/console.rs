//! The console's page and assets, security headers, and compression.

use std::io::Read;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::site::{Site, hosts_lease};

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

/// The response with its body as it was sent.
async fn sent(
    site: &Site,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> (StatusCode, HeaderMap, Vec<u8>) {
    let builder = Request::builder().method(method).uri(path);
    let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
    let request = builder.body(Body::empty()).expect("a request");
    let response = site.router.clone().oneshot(request).await.expect("infallible");
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 24).await.expect("a body");
    (parts.status, parts.headers, bytes.to_vec())
}

async fn get(site: &Site, path: &str, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
    sent(site, Method::GET, path, headers).await
}

#[tokio::test]
async fn a_browser_is_shown_the_page_without_a_token_and_others_the_versions() {
    for site in [Site::open().await, Site::guarded().await] {
        let (status, headers, body) = get(&site, "/", &[BROWSER]).await;
        assert_eq!(
            (status.as_u16(), &headers["content-type"]),
            (200, &"text/html; charset=utf-8".parse().expect(""))
        );
        assert!(String::from_utf8_lossy(&body).contains("<html"));
        assert_eq!(
            (&headers["vary"], &headers["cache-control"]),
            (&"Accept".parse().expect(""), &"no-cache".parse().expect(""))
        );
        let tag = headers["etag"].to_str().expect("text").to_owned();
        let (status, _, body) = get(&site, "/", &[BROWSER, ("if-none-match", &tag)]).await;
        assert_eq!((status.as_u16(), body.len()), (304, 0));
        for other in [&[][..], &[("accept", "*/*")], &[("accept", "application/json")]] {
            let (status, headers, body) = get(&site, "/", other).await;
            assert_eq!((status.as_u16(), &headers["vary"]), (300, &"Accept".parse().expect("")));
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(body["versions"][0]["id"], "v1.0", "{other:?}");
        }
    }
}

#[tokio::test]
async fn nothing_but_the_page_and_its_parts_is_shown_without_a_token() {
    let site = Site::guarded().await;
    for method in [Method::HEAD, Method::OPTIONS] {
        assert_eq!(sent(&site, method, "/", &[BROWSER]).await.0, 401, "load balancers expect that");
    }
    for path in ["/v1/leases", "/console", "/console/", "/console/index.html", "/index.html", "/nosuch"] {
        assert_eq!(get(&site, path, &[BROWSER]).await.0, 401, "{path}");
    }
    let assets = "/console/assets/";
    for name in ["nosuch.js", "..%2f..%2fCargo.toml", "%2e%2e/index.html", ""] {
        assert_eq!(get(&site, &format!("{assets}{name}"), &[]).await.0, 404, "{name}");
    }
}

#[tokio::test]
async fn the_parts_of_the_page_that_was_built_may_be_kept() {
    let site = Site::guarded().await;
    let page = String::from_utf8(get(&site, "/", &[BROWSER]).await.2).expect("text");
    let parts: Vec<&str> = page.split('"').filter(|text| text.starts_with("/console/assets/")).collect();
    // If the console wasn't built, the page says so and has no assets.
    assert_eq!(parts.is_empty(), page.contains("cargo xtask console"), "{page}");
    for path in parts {
        let (status, headers, body) = get(&site, path, &[]).await;
        assert_eq!(status, 200, "{path}");
        assert!(!body.is_empty() && headers["cache-control"].to_str().expect("text").contains("immutable"));
        assert_ne!(headers["content-type"], "application/octet-stream", "{path}");
    }
    for inline in ["<style", "style=", "onclick", "onload"] {
        assert!(!page.contains(inline), "the policy forbids {inline}");
    }
}

#[tokio::test]
async fn every_answer_says_what_browsers_may_do_with_it() {
    let site = Site::guarded().await;
    let token = ("x-auth-token", "admin");
    for (path, headers, status) in [
        ("/", &[BROWSER][..], 200),
        ("/", &[], 300),
        ("/v1/leases", &[], 401),
        ("/v1/leases", &[token], 200),
        ("/nosuch", &[token], 404),
        ("/console/assets/nosuch.js", &[], 404),
        ("/metrics", &[], 200),
        ("/openapi.json", &[], 200),
    ] {
        let (got, answered, _) = get(&site, path, headers).await;
        assert_eq!(got, status, "{path}");
        let header = |name: &str| answered[name].to_str().expect("text");
        assert_eq!((header("x-content-type-options"), header("referrer-policy")), ("nosniff", "same-origin"));
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(policy.contains("script-src 'self'"), status == 200 && path == "/", "{path}");
    }
}

fn unzipped(body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(body).read_to_end(&mut plain).expect("gzip");
    plain
}

#[tokio::test]
async fn a_long_list_is_compressed_as_the_client_prefers_and_is_the_same_list() {
    let site = Site::open().await;
    for number in 0..200 {
        let lease = json!({"name": format!("lease {number}"), "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 11:00"});
        site.lease(&lease).await;
    }
    let (_, headers, plain) = get(&site, "/v1/leases", &[]).await;
    assert!(!headers.contains_key("content-encoding") && plain.len() > 1 << 16, "{} bytes", plain.len());
    let accepting = async |value: &str| get(&site, "/v1/leases", &[("accept-encoding", value)]).await;
    let (status, headers, body) = accepting("deflate, gzip").await;
    assert_eq!((status.as_u16(), &headers["content-encoding"]), (200, &"gzip".parse().expect("")));
    assert!(!headers.contains_key("content-length"));
    assert!(
        headers.get_all("vary").iter().any(|vary| vary.as_bytes().eq_ignore_ascii_case(b"accept-encoding"))
    );
    assert!(body.len() * 5 < plain.len(), "{} of {} bytes", body.len(), plain.len());
    assert!(unzipped(&body) == plain, "the same list");
    let (_, headers, body) = accepting("gzip, deflate, br, zstd").await;
    assert_eq!(headers["content-encoding"], "zstd");
    assert_eq!(body[..4], [0x28, 0xb5, 0x2f, 0xfd], "the magic number of zstd");
    for none in ["br", "identity;q=0", "*;q=0", "gzip;q=0"] {
        let (status, headers, body) = accepting(none).await;
        assert_eq!((status.as_u16(), headers.contains_key("content-encoding")), (200, false), "{none}");
        assert!(body == plain);
    }
    let head = sent(&site, Method::HEAD, "/v1/leases", &[("accept-encoding", "gzip")]).await;
    assert_eq!((head.0.as_u16(), head.1.contains_key("content-encoding"), head.2.len()), (200, false, 0));
}

#[tokio::test]
async fn lists_and_calendars_are_compressed_and_answers_about_logins_are_not() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 4).await;
    let lease =
        json!({"name": "x".repeat(80), "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 11:00"});
    for _ in 0..12 {
        site.send_as("admin", Method::POST, "/v1/leases", Some(&lease)).await.ok(201);
    }
    let encoding = async |path: &str| {
        let headers = [("x-auth-token", "admin"), ("accept-encoding", "gzip")];
        let (status, headers, body) = get(&site, path, &headers).await;
        assert_eq!(
            (status.as_u16(), &headers["cache-control"]),
            (200, &"private, no-store".parse().expect(""))
        );
        let encoded = headers.contains_key("content-encoding");
        let plain = if encoded { unzipped(&body) } else { body };
        assert!(plain.len() > 1024, "{path}: {} bytes", plain.len());
        encoded
    };
    for path in [
        "/v1/leases",
        "/v1/leases.json",
        "/v1/os-hosts",
        "/v1/calendar?start=2030-01-02&end=2030-01-16&bucket=60",
    ] {
        assert!(encoding(path).await, "{path}");
    }
    for path in ["/v1/session", "/v1/session.json"] {
        assert!(!encoding(path).await, "{path}");
    }
}

#[tokio::test]
async fn what_is_short_and_what_changes_something_is_sent_as_it_is() {
    let site = Site::open().await;
    let gzip = [("accept-encoding", "gzip")];
    assert!(!get(&site, "/v1/leases", &gzip).await.1.contains_key("content-encoding"));
    let body = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 11:00");
    site.add_hosts(1).await;
    let request = |accepted: &str, body: &Value| {
        let builder = Request::builder().method(Method::POST).uri("/v1/leases");
        builder.header("accept-encoding", accepted).body(Body::from(body.to_string())).expect("a request")
    };
    // A change that was made must not be reported as rejected, whatever encodings the client accepts.
    let answer = site.send(request("*;q=0", &body)).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let mut other = body;
    other["start_date"] = json!("2030-01-03 10:00");
    other["end_date"] = json!("2030-01-03 11:00");
    let answer = site.send(request("gzip", &other)).await;
    assert!(answer.status == 201 && !answer.headers.contains_key("content-encoding"), "{}", answer.text);
}
