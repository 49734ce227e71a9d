//! The connection to a mail server. It limits how much the server may send, because a line without an end would
//! otherwise fill the memory.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::io::{AsyncRead as _, AsyncWrite as _};
#[expect(deprecated, reason = "the only way to start TLS at once on a custom stream")]
use lettre::transport::smtp::client::AsyncNetworkStream;
use lettre::transport::smtp::client::{AsyncTokioStream, TlsParameters};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The timeout for connecting to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of bytes that a server may send in one session; normal sessions need a few kilobytes.
const MAX_RECEIVED: usize = 1024 * 1024;

/// Connects to the first address that accepts a connection.
pub(super) async fn connect(addresses: &[SocketAddr]) -> io::Result<Box<dyn AsyncTokioStream>> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the mail server has no address");
    for address in addresses {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(Box::new(LimitedStream { stream, remaining: MAX_RECEIVED })),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "connection timed out"),
        }
    }
    Err(last)
}

/// Starts TLS on a new connection.
#[expect(deprecated, reason = "the only way to start TLS at once on a custom stream")]
pub(super) async fn start_tls(
    stream: Box<dyn AsyncTokioStream>,
    tls: TlsParameters,
) -> Result<Box<dyn AsyncTokioStream>, lettre::transport::smtp::Error> {
    let mut stream = AsyncNetworkStream::use_existing_tokio1(stream);
    stream.upgrade_tls(tls).await?;
    Ok(Box::new(TlsStream(stream)))
}

/// A connection that fails if the server sends too much.
#[derive(Debug)]
struct LimitedStream {
    stream: TcpStream,
    /// The number of bytes that may still be received.
    remaining: usize,
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len().saturating_sub(before);
        let Some(remaining) = self.remaining.checked_sub(read) else {
            return Poll::Ready(Err(io::Error::other("the server sent more than 1 MiB")));
        };
        self.remaining = remaining;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for LimitedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl AsyncTokioStream for LimitedStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

/// An encrypted connection that implements the stream traits of tokio.
#[expect(deprecated, reason = "the only way to start TLS at once on a custom stream")]
#[derive(Debug)]
struct TlsStream(AsyncNetworkStream);

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.0).poll_read(context, buffer.initialize_unfilled()))?;
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(context)
    }
}

impl AsyncTokioStream for TlsStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
}
