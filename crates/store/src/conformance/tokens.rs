//! Promises about token keys and revocations.

use std::sync::Arc;

use leases::project::UserId;

use super::sample::*;
use crate::{Revocation, Store, TokenKey, TokenState};

fn key(number: u32, secret: u8) -> TokenKey {
    TokenKey { number, secret: vec![secret; 32], at: at(i64::from(number)) }
}

fn revocation(user: &str, token: Option<u128>, from: i64, until: i64) -> Revocation {
    Revocation { user: UserId(user.to_owned()), token, at: at(from), until: at(until) }
}

/// Two keys and three revocations.
pub(super) async fn add_some_tokens(store: &Arc<dyn Store>) {
    store.add_token_key(&key(1, 7), 1).await.expect("works");
    store.add_token_key(&key(2, 8), 1).await.expect("works");
    for revocation in [
        revocation("a\0 \u{1a}\u{202e}", None, 1, 90),
        revocation("b", Some(u128::MAX), 1, 90),
        revocation("b", Some(0), 2, 80),
    ] {
        store.revoke_token(&revocation).await.expect("works");
    }
}

async fn tokens(store: &Arc<dyn Store>) -> TokenState {
    store.tokens().await.expect("works")
}

/// If two services create the first key at once, both sign with the stored one.
pub async fn of_parallel_keys_of_one_number_one_stands(store: &Arc<dyn Store>) {
    assert_eq!(tokens(store).await, TokenState::default());
    let (first, second) = (key(1, 7), key(1, 8));
    let (a, b) = tokio::join!(store.add_token_key(&first, 1), store.add_token_key(&second, 1));
    a.and(b).expect("works");
    let keys = tokens(store).await.keys;
    assert!(keys == [first.clone()] || keys == [second], "{keys:?}");
    let next = key(2, 9);
    store.add_token_key(&next, 1).await.expect("works");
    assert_eq!(tokens(store).await.keys, [keys[0].clone(), next.clone()]);
    store.add_token_key(&key(3, 1), 2).await.expect("works");
    assert_eq!(tokens(store).await.keys, [next, key(3, 1)], "the oldest was to go");
    assert!(!format!("{:?}", tokens(store).await).contains("9, 9"), "keys are not shown");
}

/// Revoking all tokens of a user replaces that user's other revocations.
pub async fn revocations_are_kept_until_their_tokens_end(store: &Arc<dyn Store>) {
    let add = async |revocation: &Revocation| store.revoke_token(revocation).await.expect("works");
    let [one, two, other] = [
        revocation("a", Some(1), 0, 10),
        revocation("a", Some(u128::MAX), 0, 20),
        revocation("b", Some(1), 0, 30),
    ];
    for revocation in [&one, &two, &other, &one] {
        add(revocation).await;
    }
    assert_eq!(tokens(store).await.revoked, [one, two.clone(), other.clone()]);
    let later = revocation("b", Some(2), 10, 30);
    add(&later).await;
    assert_eq!(tokens(store).await.revoked, [two.clone(), other, later]);
    let all = revocation("b", None, 15, 40);
    add(&all).await;
    assert_eq!(tokens(store).await.revoked, [two, all]);
}
