//! Rate limits.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::http::Method;
use server::{Config, Limits, RateLimit};

use crate::site::{Answer, Site, request};

/// More requests than the rate limit allows in the few seconds of the test.
const MANY: usize = 30;

async fn site() -> Site {
    let rate = RateLimit { per_second: Some(1), burst: 2 };
    Site::guarded_with(Config { limits: Limits { rate, ..Limits::default() }, ..Config::default() }).await
}

async fn send_from(site: &Site, address: &str, token: &str, path: &str) -> Answer {
    let address: SocketAddr = address.parse().expect("an address");
    let mut request = request(Method::GET, path, token, None);
    request.extensions_mut().insert(ConnectInfo(address));
    site.send(request).await
}

#[tokio::test]
async fn who_asks_too_often_is_told_when_to_ask_again_and_others_notice_nothing() {
    let site = site().await;
    let mut answers = Vec::new();
    for _ in 0..MANY {
        answers.push(site.send_as("member", Method::GET, "/v1/leases", None).await);
    }
    assert_eq!(answers[0].status, 200);
    let refused = answers.iter().find(|answer| answer.status != 200).expect("one is refused");
    assert_eq!(refused.error().0, 429);
    assert_eq!(refused.headers["retry-after"], "1");
    for other in ["foreign", "reader"] {
        assert_eq!(site.send_as(other, Method::GET, "/v1/leases", None).await.status, 200);
    }
    assert_eq!(site.send_as("", Method::GET, "/healthz", None).await.status, 200);
}

#[tokio::test]
async fn whoever_fails_to_log_in_has_to_wait() {
    let site = site().await;
    let mut statuses = Vec::new();
    for _ in 0..MANY {
        statuses.push(send_from(&site, "192.0.2.1:1000", "wrong", "/v1/leases").await.status.as_u16());
    }
    assert_eq!(statuses[0], 401);
    assert!(statuses.contains(&429), "{statuses:?}");
    // Another address is another client, and so is a client with a valid token.
    assert_eq!(send_from(&site, "192.0.2.2:1000", "wrong", "/v1/leases").await.status, 401);
    assert_eq!(send_from(&site, "192.0.2.1:1000", "member", "/v1/leases").await.status, 200);
}

#[tokio::test]
async fn there_is_no_limit_unless_one_is_set() {
    let site = Site::guarded().await;
    for _ in 0..MANY {
        assert_eq!(site.send_as("member", Method::GET, "/v1/leases", None).await.status, 200);
        assert_eq!(send_from(&site, "192.0.2.1:1000", "wrong", "/v1/leases").await.status, 401);
    }
}
