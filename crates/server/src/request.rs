//! Information about every request.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::Extensions;

/// The identifier of a request: `req-` and a UUID.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub String);

/// Address of the client. `None` if the request didn't arrive through a socket.
pub(crate) fn peer(extensions: &Extensions) -> Option<IpAddr> {
    let ConnectInfo(address) = extensions.get::<ConnectInfo<SocketAddr>>()?;
    Some(address.ip().to_canonical())
}
