//! An answer that breaks off. The server drops what it has not written when a body fails, so the
//! failure of a body waits until the socket has taken what came before it.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use hyper::{
    body::{Bytes, Frame, SizeHint},
    rt::{Read, ReadBufCursor, Write},
};
use tokio::sync::{Notify, futures::OwnedNotified};

use super::forward::{Body, Failed};

/// A socket that reports when it has taken all that the server had to write: the server flushes it then.
pub(super) struct Flushing<S> {
    socket: S,
    flushed: Arc<Notify>,
}

impl<S> Flushing<S> {
    pub(super) fn new(socket: S, flushed: Arc<Notify>) -> Self {
        Self { socket, flushed }
    }
}

impl<S: Read + Unpin> Read for Flushing<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: Write + Unpin> Write for Flushing<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        self.flushed.notify_waiters();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, pieces)
    }
}

/// A body whose failure waits for the next flush of its socket.
pub(super) struct Flushed {
    body: Body,
    flushed: Arc<Notify>,
    failure: Option<(Failed, Pin<Box<OwnedNotified>>)>,
}

impl Flushed {
    pub(super) fn new(body: Body, flushed: Arc<Notify>) -> Self {
        Self { body, flushed, failure: None }
    }
}

impl hyper::body::Body for Flushed {
    type Data = Bytes;
    type Error = Failed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failed>>> {
        if self.failure.is_none() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Err(error)) => {
                    let flushed = Arc::clone(&self.flushed).notified_owned();
                    self.failure = Some((error, Box::pin(flushed)));
                }
                other => return Poll::Ready(other),
            }
        }
        if let Some((_, flushed)) = &mut self.failure {
            ready!(flushed.as_mut().poll(cx));
        }
        Poll::Ready(self.failure.take().map(|(error, _)| Err(error)))
    }

    fn is_end_stream(&self) -> bool {
        self.failure.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::{Response, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn what_came_before_a_failure_reaches_a_client_that_reads_slowly() {
        // A socket that takes 64 bytes at a time.
        let (mut client, server) = tokio::io::duplex(64);
        let flushed = Arc::new(Notify::new());
        let socket = Flushing::new(TokioIo::new(server), Arc::clone(&flushed));
        let service = service_fn(move |_| {
            let pieces = [Ok(Frame::data(Bytes::from(vec![b'x'; 5_000]))), Err("broke off".into())];
            let body = StreamBody::new(stream::iter(pieces)).boxed_unsync();
            let body = Flushed::new(body, Arc::clone(&flushed));
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        let serves = tokio::spawn(async move {
            http1::Builder::new().serve_connection(socket, service).await.unwrap_err();
        });
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        let (_, body) = str::from_utf8(&answer).unwrap().split_once("\r\n\r\n").unwrap();
        assert_eq!(body.matches('x').count(), 5_000);
        assert!(!body.contains("\r\n0\r\n"), "it has no end");
        serves.await.unwrap();
    }
}
