//! Responses below `/v1` are never stored, and a request made for one user is never carried out as another. The headers
//! are checked in every response of every test ([`crate::contract::check_headers`]).

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::authorisation::{endpoints, furnished};
use crate::site::{Answer, Site, hosts_lease, request};

/// Operations below `/v1`, with names of existing objects in their paths.
async fn operations() -> (Site, Vec<(Method, String)>) {
    let (site, names) = furnished().await;
    let below = endpoints().into_iter().filter(|(_, path)| path.starts_with("/v1/"));
    let named = below.map(|(method, path)| {
        let path = names.iter().fold(path, |path, (name, value)| path.replace(name, value));
        (Method::from_bytes(method.as_bytes()).expect("a method"), path)
    });
    let operations = named.collect();
    (site, operations)
}

async fn send(
    site: &Site,
    method: &Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> Answer {
    let builder = Request::builder().method(method).uri(path);
    let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    site.send(builder.body(body).expect("a request")).await
}

#[tokio::test]
async fn no_answer_of_any_operation_may_be_stored_whatever_its_status_is() {
    let (site, operations) = operations().await;
    let token = ("x-auth-token", "admin");
    let version = ("openstack-api-version", "reservation 9.9");
    let mut seen = BTreeSet::new();
    for (method, path) in &operations {
        for headers in [
            &[][..],
            &[("x-auth-token", "wrong")],
            &[("x-auth-token", "foreign")],
            &[token, ("x-allot-user", "member")],
            &[token, version],
            &[token, ("content-type", "text/plain")],
            &[token],
        ] {
            let answer = send(&site, method, path, headers, None).await;
            seen.insert(answer.status.as_u16());
            send(&site, method, &format!("{path}.json"), headers, None).await;
            seen.insert(send(&site, &Method::TRACE, path, headers, None).await.status.as_u16());
        }
    }
    for path in ["/v1", "/v1/", "/v1/nosuch", "/v1/leases/", "/v1/calendar?start=x", "/v1/leases?limit=x"] {
        for token in ["", "admin"] {
            seen.insert(site.send_as(token, Method::GET, path, None).await.status.as_u16());
        }
    }
    let first = site.send_as("admin", Method::GET, "/v1/calendar", None).await;
    let tag = ("if-none-match", first.headers["etag"].to_str().expect("text"));
    seen.insert(send(&site, &Method::GET, "/v1/calendar", &[token, tag], None).await.status.as_u16());
    for status in [200, 204, 304, 400, 401, 403, 404, 405, 406, 412] {
        assert!(seen.contains(&status), "{status} is not among {seen:?}");
    }
    for path in ["/", "/versions", "/openapi.json", "/healthz", "/console/assets/nosuch.js"] {
        let headers = site.send_as("", Method::GET, path, None).await.headers;
        assert!(headers.get("cache-control").is_none_or(|value| value != "private, no-store"), "{path}");
    }
}

#[tokio::test]
async fn a_request_for_another_user_or_project_is_refused_by_every_operation() {
    let (site, operations) = operations().await;
    let message =
        "The request was made for another user or project than the one signed in now; it had no effect";
    let before = site.send_as("admin", Method::GET, "/v1/leases", None).await.ok(200);
    for (method, path) in operations {
        // A login has no user yet.
        if (&method, path.as_str()) == (&Method::POST, "/v1/session") {
            continue;
        }
        for meant in [
            &[("x-allot-user", "member"), ("x-allot-project", "p")][..],
            &[("x-allot-user", "admin"), ("x-allot-project", "q")],
            &[("x-allot-project", "q")],
        ] {
            let headers = [&[("x-auth-token", "admin")], meant].concat();
            let answer = send(&site, &method, &path, &headers, Some(&json!({}))).await;
            assert_eq!(answer.error(), (412, message.to_owned()), "{method} {path}");
        }
    }
    assert_eq!(site.send_as("admin", Method::GET, "/v1/leases", None).await.ok(200), before);
}

#[tokio::test]
async fn a_tab_of_one_user_changes_nothing_with_the_cookie_of_the_next() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 2).await;
    let log_in = async |token: &str| {
        let mut login = request(Method::POST, "/v1/session", "", Some(&json!({"token": token})));
        login.headers_mut().insert("x-allot-console", "1".parse().expect("a value"));
        let answer = site.send(login).await;
        let cookie = answer.headers["set-cookie"].to_str().expect("text").split(';').next();
        cookie.expect("a cookie").to_owned()
    };
    let member = log_in("member").await;
    let member = ("cookie", member.as_str());
    let foreign = log_in("foreign").await;
    let foreign = ("cookie", foreign.as_str());
    let lease = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 11:00");
    let as_member = [("x-allot-console", "1"), ("x-allot-user", "member"), ("x-allot-project", "p")];
    let sent = async |method: Method, path: &str, credentials: &[(&str, &str)], body: Option<&Value>| {
        send(&site, &method, path, &[credentials, &as_member].concat(), body).await.status.as_u16()
    };
    let post = async |credentials: &[(&str, &str)]| {
        sent(Method::POST, "/v1/leases", credentials, Some(&lease)).await
    };
    assert_eq!(post(&[foreign]).await, 412);
    assert_eq!(post(&[member, ("x-auth-token", "foreign")]).await, 412, "the token counts");
    assert_eq!(sent(Method::DELETE, "/v1/session", &[foreign], None).await, 412);
    assert_eq!(site.send_as("foreign", Method::GET, "/v1/leases", None).await.ok(200)["leases"], json!([]));
    assert_eq!(post(&[member]).await, 201);
    let headers = [("x-allot-console", "1"), foreign];
    assert_eq!(send(&site, &Method::DELETE, "/v1/session", &headers, None).await.status, 204);
}
