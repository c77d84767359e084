//! Token keys and revocations.

use ::leases::project::UserId;
use sqlx::SqliteConnection;
use store::{Revocation, StoreError, TokenKey, TokenState};

use crate::columns::{instant, number, us, uuid};
use crate::error::unavailable;

pub(crate) async fn read(db: &mut SqliteConnection) -> Result<TokenState, StoreError> {
    let rows = sqlx::query!("SELECT number, secret, at_us FROM token_key ORDER BY number");
    let keys =
        rows.fetch_all(&mut *db).await.map_err(unavailable)?.into_iter().map(|row| {
            Ok(TokenKey { number: number(row.number)?, secret: row.secret, at: instant(row.at_us)? })
        });
    let keys = keys.collect::<Result<_, StoreError>>()?;
    let rows = sqlx::query!("SELECT user, token, at_us, until_us FROM revocation ORDER BY user, token");
    let revoked = rows.fetch_all(db).await.map_err(unavailable)?.into_iter().map(|row| {
        Ok(Revocation {
            user: UserId(row.user),
            token: if row.token.is_empty() { None } else { Some(uuid(&row.token)?) },
            at: instant(row.at_us)?,
            until: instant(row.until_us)?,
        })
    });
    Ok(TokenState { keys, revoked: revoked.collect::<Result<_, StoreError>>()? })
}

/// Adds a key, unless its number exists, and deletes keys with numbers below `oldest`.
pub(crate) async fn add_key(
    db: &mut SqliteConnection,
    key: &TokenKey,
    oldest: u32,
) -> Result<(), StoreError> {
    let at_us = us(key.at);
    let insertion = sqlx::query!(
        "INSERT INTO token_key (number, secret, at_us) VALUES (?, ?, ?) ON CONFLICT (number) DO NOTHING",
        key.number,
        key.secret,
        at_us,
    );
    insertion.execute(&mut *db).await.map_err(unavailable)?;
    let deletion = sqlx::query!("DELETE FROM token_key WHERE number < ?", oldest);
    deletion.execute(db).await.map_err(unavailable).map(drop)
}

/// Adds a revocation. Deletes ended revocations, and revocations that the new one covers.
pub(crate) async fn revoke(db: &mut SqliteConnection, revocation: &Revocation) -> Result<(), StoreError> {
    let at_us = us(revocation.at);
    let (whole, user) = (revocation.token.is_none(), &revocation.user.0);
    let deletion =
        sqlx::query!("DELETE FROM revocation WHERE until_us <= ? OR (? AND user = ?)", at_us, whole, user);
    deletion.execute(&mut *db).await.map_err(unavailable)?;
    insert(db, revocation).await
}

async fn insert(db: &mut SqliteConnection, revocation: &Revocation) -> Result<(), StoreError> {
    let token = revocation.token.map_or(Vec::new(), |token| token.to_be_bytes().to_vec());
    let (at_us, until_us) = (us(revocation.at), us(revocation.until));
    let insertion = sqlx::query!(
        "INSERT INTO revocation (user, token, at_us, until_us) VALUES (?, ?, ?, ?)
         ON CONFLICT (user, token) DO UPDATE SET at_us = excluded.at_us, until_us = excluded.until_us",
        revocation.user.0,
        token,
        at_us,
        until_us,
    );
    insertion.execute(db).await.map_err(unavailable).map(drop)
}

/// Replaces all keys and revocations.
pub(crate) async fn replace(db: &mut SqliteConnection, state: &TokenState) -> Result<(), StoreError> {
    sqlx::query!("DELETE FROM token_key").execute(&mut *db).await.map_err(unavailable)?;
    sqlx::query!("DELETE FROM revocation").execute(&mut *db).await.map_err(unavailable)?;
    for key in &state.keys {
        add_key(db, key, 0).await?;
    }
    for revocation in &state.revoked {
        insert(db, revocation).await?;
    }
    Ok(())
}
