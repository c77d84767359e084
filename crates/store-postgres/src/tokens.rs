//! Token keys and revocations.

use leases::project::UserId;
use sqlx::PgConnection;
use store::{Revocation, StoreError, TokenKey, TokenState};

use crate::columns::{instant, number, plain, text, us};
use crate::error::TxError;

pub(crate) async fn read(db: &mut PgConnection) -> Result<TokenState, TxError> {
    let rows = sqlx::query!("SELECT number, secret, at_us FROM token_key ORDER BY number");
    let keys =
        rows.fetch_all(&mut *db).await?.into_iter().map(|row| {
            Ok(TokenKey { number: number(row.number)?, secret: row.secret, at: instant(row.at_us)? })
        });
    let keys = keys.collect::<Result<_, TxError>>()?;
    let rows = sqlx::query!("SELECT user_id, token, at_us, until_us FROM revocation");
    let revoked = rows.fetch_all(db).await?.into_iter().map(|row| {
        let corrupt = |_| StoreError::Corrupt("a token's identifier is not 16 bytes long".to_owned());
        let token = match row.token.as_slice() {
            [] => None,
            bytes => Some(bytes.try_into().map(u128::from_be_bytes).map_err(corrupt)?),
        };
        let (at, until) = (instant(row.at_us)?, instant(row.until_us)?);
        Ok(Revocation { user: UserId(plain(row.user_id)), token, at, until })
    });
    let mut revoked = revoked.collect::<Result<Vec<_>, TxError>>()?;
    // Sorted here, because the database orders text differently.
    revoked.sort_by(|a, b| (&a.user, a.token).cmp(&(&b.user, b.token)));
    Ok(TokenState { keys, revoked })
}

/// Adds a key, unless its number exists, and deletes keys with numbers below `oldest`.
pub(crate) async fn add_key(db: &mut PgConnection, key: &TokenKey, oldest: u32) -> Result<(), TxError> {
    let insertion = sqlx::query!(
        "INSERT INTO token_key (number, secret, at_us) VALUES ($1, $2, $3) ON CONFLICT (number) DO NOTHING",
        i64::from(key.number),
        key.secret,
        us(key.at),
    );
    insertion.execute(&mut *db).await?;
    sqlx::query!("DELETE FROM token_key WHERE number < $1", i64::from(oldest)).execute(db).await?;
    Ok(())
}

/// Adds a revocation. Deletes ended revocations, and revocations that the new one covers.
pub(crate) async fn revoke(db: &mut PgConnection, revocation: &Revocation) -> Result<(), TxError> {
    let deletion = sqlx::query!(
        "DELETE FROM revocation WHERE until_us <= $1 OR ($2 AND user_id = $3)",
        us(revocation.at),
        revocation.token.is_none(),
        &text(&revocation.user.0),
    );
    deletion.execute(&mut *db).await?;
    insert(db, revocation).await
}

async fn insert(db: &mut PgConnection, revocation: &Revocation) -> Result<(), TxError> {
    let insertion = sqlx::query!(
        "INSERT INTO revocation (user_id, token, at_us, until_us) VALUES ($1, $2, $3, $4)
         ON CONFLICT (user_id, token) DO UPDATE SET at_us = excluded.at_us, until_us = excluded.until_us",
        &text(&revocation.user.0),
        revocation.token.map_or(Vec::new(), |token| token.to_be_bytes().to_vec()),
        us(revocation.at),
        us(revocation.until),
    );
    insertion.execute(db).await?;
    Ok(())
}

/// Replaces all keys and revocations.
pub(crate) async fn replace(db: &mut PgConnection, state: &TokenState) -> Result<(), TxError> {
    sqlx::query!("DELETE FROM token_key").execute(&mut *db).await?;
    sqlx::query!("DELETE FROM revocation").execute(&mut *db).await?;
    for key in &state.keys {
        add_key(db, key, 0).await?;
    }
    for revocation in &state.revoked {
        insert(db, revocation).await?;
    }
    Ok(())
}
