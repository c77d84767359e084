//! Paths, headers, versions and media types (API-addresses to API-errors).

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::json;

use crate::site::{Answer, Site, request};

async fn with_header(site: &Site, method: Method, path: &str, name: &str, value: &str) -> Answer {
    let request = Request::builder().method(method).uri(path).header(name, value).body(Body::from("{}"));
    site.send(request.expect("a request")).await
}

#[tokio::test]
async fn every_address_also_ends_in_json() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    for path in
        ["/v1/leases.json", "/v1/os-hosts.json", "/v1/os-hosts/1.json", "/v1/os-hosts/allocations.json?a=b"]
    {
        assert_eq!(site.get(path).await.status, 200, "{path}");
    }
    assert_eq!(
        site.get("/v1/leases/nosuch.json").await.error().1,
        "Object with {'lease_id': 'nosuch'} not found"
    );
}

#[tokio::test]
async fn addresses_that_lead_nowhere_are_not_found() {
    let site = Site::open().await;
    for path in ["/v1/leases/", "/v1/os-hosts/", "/v1/plugins", "/v2/leases", "/v1", "/nosuch"] {
        let answer = site.get(path).await;
        assert_eq!(answer.json(), json!({"error": 404, "error_message": "Not Found"}), "{path}");
        assert_eq!(answer.status, 404);
    }
    let answer = site.send(request(Method::PUT, "/v1/leases", "any", None)).await;
    assert_eq!(answer.json(), json!({"error": 405, "error_message": "Method Not Allowed"}));
    assert_eq!(answer.status, 405);
}

#[tokio::test]
async fn head_and_options_are_answered() {
    let site = Site::open().await;
    let head = site.send(request(Method::HEAD, "/v1/leases", "any", None)).await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
    let options = site.send(request(Method::OPTIONS, "/v1/leases", "any", None)).await;
    assert_eq!(options.status, 200);
    assert_eq!(options.headers["allow"], "GET,HEAD,POST");
}

#[tokio::test]
async fn the_versions_are_shown_to_everybody() {
    let site = Site::guarded().await;
    for path in ["/", "/versions"] {
        let answer = with_header(&site, Method::GET, path, "host", "leases.example:1234").await;
        assert_eq!(answer.status, 300);
        let version = &answer.json()["versions"][0];
        assert_eq!((&version["id"], &version["status"]), (&json!("v1.0"), &json!("CURRENT")));
        assert_eq!(version["links"], json!([{"href": "http://leases.example:1234/v1", "rel": "self"}]));
    }
}

#[tokio::test]
async fn a_version_that_there_is_not_is_not_acceptable() {
    let site = Site::open().await;
    let name = "openstack-api-version";
    for good in
        ["reservation 1.0", "reservation latest", "1.5", "compute 2.90", "compute 2.90, reservation 1.0", ""]
    {
        let answer = with_header(&site, Method::GET, "/v1/leases", name, good).await;
        assert_eq!(answer.status, 200, "{good}");
        assert_eq!(answer.headers[name], "reservation 1.0");
        assert_eq!(answer.headers["vary"], "OpenStack-API-Version");
    }
    for (bad, status) in
        [("reservation 1.5", 406), ("compute 2.1, reservation 2.0", 406), ("reservation x", 400)]
    {
        let answer = with_header(&site, Method::GET, "/v1/leases", name, bad).await;
        assert_eq!(answer.status, status, "{bad}");
        assert!(!answer.headers.contains_key(name));
    }
    let answer = with_header(&site, Method::GET, "/v1/leases", name, "reservation 1.5").await;
    let text = "Version 1.5 is not supported by the API. Minimum is 1.0 and maximum is 1.0.";
    assert_eq!(answer.json(), json!({"error": 406, "error_message": text}));
}

#[tokio::test]
async fn every_request_has_an_identifier_of_its_own() {
    let site = Site::guarded().await;
    let name = "x-openstack-request-id";
    let given = "req-ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753";
    for (path, status) in [("/v1/leases", 401), ("/nosuch", 401), ("/versions", 300), ("/openapi.json", 200)]
    {
        let answer = with_header(&site, Method::GET, path, name, given).await;
        assert_eq!(answer.status, status);
        let id = answer.headers[name].to_str().expect("text").to_owned();
        assert!(id.starts_with("req-") && id.len() == 40 && id != given, "{id}");
    }
}

#[tokio::test]
async fn only_json_is_understood_and_nothing_counts_as_nothing() {
    let site = Site::open().await;
    let post = Method::POST;
    for good in ["application/json", "application/json; charset=utf-8", ""] {
        let answer = with_header(&site, post.clone(), "/v1/leases", "content-type", good).await;
        assert_eq!(answer.error().1, "Missing parameter name,start_date,end_date", "{good}");
    }
    let answer = with_header(&site, post.clone(), "/v1/leases", "content-type", "text/plain").await;
    assert_eq!(answer.error(), (400, "Content type 'text/plain' isn't supported".to_owned()));
    for accept in ["text/html", "*/*"] {
        assert_eq!(with_header(&site, Method::GET, "/v1/leases", "accept", accept).await.status, 200);
    }
    let send = async |body: &'static str| {
        let request = Request::builder().method(Method::POST).uri("/v1/leases").body(Body::from(body));
        site.send(request.expect("a request")).await
    };
    assert_eq!(send("").await.error().1, "Missing parameter name,start_date,end_date");
    assert!(send("{").await.error().1.starts_with("Malformed JSON"));
    assert_eq!(send("[]").await.error(), (400, "Malformed parameter body".to_owned()));
    assert_eq!(send("{").await.status, 400);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused() {
    let site = Site::open().await;
    let answer = site.post("/v1/leases", &json!({"name": "x".repeat(1 << 20)})).await;
    assert_eq!(answer.error(), (413, "The body of a request may be 1048576 bytes long".to_owned()));
}
