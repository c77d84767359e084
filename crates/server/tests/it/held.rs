//! Limits on the bytes that a client keeps in memory, with responses that it doesn't read and bodies that it
//! doesn't finish.

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use futures::stream::{self, FuturesUnordered};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::site::{Site, request};

/// More requests than the maximum number of unread responses of a client.
const MANY: usize = 400;

/// Sends a request, and leaves the body of the response unread.
async fn unread(site: &Site, request: Request<Body>) -> Response {
    site.router.clone().oneshot(request).await.expect("infallible")
}

/// A lease with about 60 KB of text.
fn large_lease(name: &str, day: u32) -> Value {
    let expression = format!("[\"=\", \"$rack\",{}\"r1\"]", " ".repeat(15_000));
    let reservation = json!({
        "resource_type": "physical:host", "min": 1, "max": 1,
        "hypervisor_properties": "", "resource_properties": expression,
    });
    json!({
        "name": name, "before_end_date": null, "events": [],
        "start_date": format!("2030-01-{day:02} 10:00"), "end_date": format!("2030-01-{day:02} 11:00"),
        "reservations": [reservation, reservation, reservation, reservation],
    })
}

async fn leases(site: &Site) -> usize {
    let list = site.send_as("reader", Method::GET, "/v1/leases", None).await.ok(200);
    list["leases"].as_array().map_or(0, Vec::len)
}

#[tokio::test]
async fn a_client_that_reads_no_responses_gets_no_more_of_them() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 4).await;
    let lease = site.send_as("member", Method::POST, "/v1/leases", Some(&large_lease("a", 2))).await.ok(201);
    let path = format!("/v1/leases/{}", lease["lease"]["id"].as_str().expect("an identifier"));
    let show = || request(Method::GET, &path, "member", None);

    let mut held = Vec::new();
    let refused = loop {
        let response = unread(&site, show()).await;
        if response.status() != 200 {
            break response;
        }
        held.push(response);
        assert!(held.len() < MANY, "all of them are in memory");
    };
    assert!(held.len() > 200, "16 MiB of 60 KB each, and not {}", held.len());
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(site.send_as("foreign", Method::GET, "/v1/leases", None).await.status, 200);

    // Changes are answered as long as they fit. The first that doesn't is rejected before it has any effect.
    held.truncate(held.len() - 2);
    let mut made = 1;
    for day in 3..30 {
        let body = large_lease("another", day);
        let response = unread(&site, request(Method::POST, "/v1/leases", "member", Some(&body))).await;
        if response.status() != 201 {
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
            break;
        }
        made += 1;
        held.push(response);
    }
    assert!((2..10).contains(&made), "{made}");
    assert_eq!(leases(&site).await, made);

    drop(held);
    assert_eq!(unread(&site, show()).await.status(), 200);
}

/// A body that never ends, after 1,000,000 bytes.
fn endless() -> Body {
    let start = stream::once(async { Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 1_000_000])) });
    Body::from_stream(start.chain(stream::pending()))
}

#[tokio::test]
async fn a_client_that_finishes_no_bodies_may_send_no_more_of_them() {
    let site = Site::guarded().await;
    let post = |body| {
        let builder = Request::builder().method(Method::POST).uri("/v1/leases");
        builder.header("x-auth-token", "member").body(body).expect("a request")
    };
    let mut unfinished: FuturesUnordered<_> =
        (0..20).map(|_| site.router.clone().oneshot(post(endless()))).collect();
    let first = unfinished.try_next().await.expect("infallible").expect("an answer");
    assert_eq!(first.status(), 429);
    assert_eq!(site.send_as("foreign", Method::GET, "/v1/leases", None).await.status, 200);
    drop(unfinished);
    assert_eq!(unread(&site, post(Body::from("{}"))).await.status(), 400);
}
