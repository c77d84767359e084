//! Tests of token validation.

use openstack::{ErrorKind, validate};
use secrecy::SecretString;
use serde_json::json;

use crate::cloud::{Reply, Stub, is_login};

#[tokio::test]
async fn a_token_is_asked_about_with_the_sessions_own() {
    let stub = Stub::start(|_, _| None).await;
    let said = stub.token(60);
    let stub = Stub::start(move |asked, _| (!is_login(asked)).then(|| Reply::new(200, &said))).await;
    let token =
        validate(&stub.session(), &SecretString::from("members")).await.expect("an answer").expect("valid");
    assert_eq!((token.user.id.as_str(), token.roles.as_slice()), ("u1", ["service".to_owned()].as_slice()));
    let asked = stub.asked().pop().expect("it was asked");
    assert_eq!((asked.path.as_str(), asked.query.as_str()), ("/v3/auth/tokens", "nocatalog=1"));
    assert_eq!((asked.header("x-auth-token"), asked.header("x-subject-token")), ("token-1", "members"));
    assert_eq!(
        asked.header("openstack-identity-access-rules"),
        "1.0",
        "else Keystone refuses tokens with rules"
    );
}

#[tokio::test]
async fn an_unknown_token_is_none_and_is_in_no_error() {
    let stub = Stub::start(|asked, _| {
        let error = |code: u16, message: &str| {
            Some(Reply::new(code, &json!({"error": {"code": code, "message": message}})))
        };
        match asked.header("x-subject-token") {
            "members" => error(404, "Could not find token: members."),
            "forbidden" => error(403, "You are not authorized to see forbidden."),
            "broken" => error(500, "An unexpected error: broken"),
            _ => None,
        }
    })
    .await;
    let session = stub.session();
    let ask = async |token: &str| validate(&session, &SecretString::from(token)).await;
    assert!(ask("members").await.expect("an answer").is_none());
    for token in ["forbidden", "broken"] {
        let error = ask(token).await.expect_err("no answer");
        assert!(matches!(error.kind, ErrorKind::Status { .. }), "{error}");
        let text = format!("{error} {error:?}");
        assert!(text.contains("[secret]") && !text.contains(token), "{text}");
    }
    let before = stub.asked().len();
    for wrong in ["", "a b", "a\nb", "é"] {
        assert!(ask(wrong).await.expect("an answer").is_none(), "{wrong:?}");
    }
    assert_eq!(stub.asked().len(), before, "what cannot be a token is not asked about");
}
