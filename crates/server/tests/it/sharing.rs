//! Several servers on one store.

use std::sync::Arc;

use ambient::SeededIds;
use axum::body::Body;
use axum::http::{Method, Request};
use fleet::simulated::{Layout, Model};
use jiff::SignedDuration;
use serde_json::{Value, json};
use server::{App, Config};
use service::Settings;
use simulation::{Setup, World};
use tower::ServiceExt;

use crate::site::NOW;

async fn status(router: &axum::Router, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Body::from(body.to_string())).expect("a request");
    let response = router.clone().oneshot(request).await.expect("infallible");
    let status = response.status().as_u16();
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.expect("a body");
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test]
async fn a_server_that_cannot_reach_the_store_denies_no_lease_that_another_may_have_made() {
    let layout = Layout::uniform(1, 1, &Model::of_size(16, 65_536, 1000));
    let begins = NOW.parse().expect("an instant");
    let setup = Setup { seed: 1, begins, layout, settings: Settings::default(), enforcer: None };
    let world = World::shared(setup, &[SignedDuration::ZERO; 2], |fleet| fleet).await.expect("opens");
    let router = |number| {
        let ids = Arc::new(SeededIds::new(1));
        server::router(App::new(Arc::clone(world.service_of(number)), ids, Config::default()).expect("sound"))
    };
    let (one, other) = (router(0), router(1));
    let (made, before) = status(&other, Method::GET, "/v1/leases", &Value::Null).await;
    assert_eq!((made, &before["leases"]), (200, &json!([])));
    let lease = json!({"name": "a", "start_date": "2030-01-02 10:00", "end_date": "2030-01-03 10:00",
                       "reservations": []});
    let (made, lease) = status(&one, Method::POST, "/v1/leases", &lease).await;
    assert_eq!(made, 201, "{lease}");
    let path = format!("/v1/leases/{}", lease["lease"]["id"].as_str().expect("an identifier"));
    world.store_of(1).set_down(true);
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let (status, said) = status(&other, method.clone(), &path, &json!({"name": "b"})).await;
        assert_eq!(status, 503, "{method}: {said}");
    }
    // The last known state can still be read.
    assert_eq!(status(&other, Method::GET, "/v1/leases", &Value::Null).await.0, 200);
    world.store_of(1).set_down(false);
    assert_eq!(status(&other, Method::DELETE, &path, &Value::Null).await.0, 204);
}
