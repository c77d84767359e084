//! Discards the rest of a request body that the client still sends after the response.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::EXPECT;
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt;
use http_body::{Frame, SizeHint};
use tokio::runtime::Handle;

use crate::app::App;

/// Serves a request and discards the unread rest of its body. Closing a connection while the client still
/// sends resets it, and the client loses the response that tells it why.
pub(crate) async fn discard(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    // The client sends such a body only after the handler starts to read it.
    let held_back = request.headers().contains_key(EXPECT);
    let request = request.map(|body| Body::new(Discarded { body, held_back, app }));
    next.run(request).await
}

/// A body whose rest is discarded in the background when it is dropped.
struct Discarded {
    body: Body,
    held_back: bool,
    app: App,
}

impl HttpBody for Discarded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.held_back = false;
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Discarded {
    fn drop(&mut self) {
        if self.held_back || self.body.is_end_stream() {
            return;
        }
        let (body, app) = (std::mem::take(&mut self.body), self.app.clone());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                let limits = app.inner.config.limits;
                let most = limits.body_bytes.max(app.inner.placement.cluster_bytes());
                tokio::select! {
                    () = app.stopping() => {}
                    _ = tokio::time::timeout(limits.read_time, discard_rest(body, most)) => {}
                }
            });
        }
    }
}

/// Reads until the end of the body, an error, or more than `most` bytes.
async fn discard_rest(body: Body, most: usize) {
    let mut pieces = body.into_data_stream();
    let mut read = 0;
    while let Some(Ok(piece)) = pieces.next().await {
        read += piece.len();
        if read > most {
            return;
        }
    }
}
