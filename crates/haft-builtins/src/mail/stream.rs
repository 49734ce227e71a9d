//! The connection to a mail server, with a bound on what it may send: a line that never ends would fill the memory.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::io::{AsyncRead as _, AsyncWrite as _};
#[expect(deprecated, reason = "the only way to encrypt a stream of one's own from its start")]
use lettre::transport::smtp::client::AsyncNetworkStream;
use lettre::transport::smtp::client::{AsyncTokioStream, TlsParameters};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How long one address of the server may take to answer.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// The most that a server may send in one conversation; a talkative one needs some kilobytes.
const MAX_COUNT: usize = 1024 * 1024;

/// Connects to the first address that answers.
pub(super) async fn connect(addresses: &[SocketAddr]) -> io::Result<Box<dyn AsyncTokioStream>> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the mail server has no address");
    for address in addresses {
        match tokio::time::timeout(CONNECT_TIME, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(Box::new(Bounded { stream, left: MAX_COUNT })),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time"),
        }
    }
    Err(last)
}

/// Encrypts a connection before anything is said on it.
#[expect(deprecated, reason = "the only way to encrypt a stream of one's own from its start")]
pub(super) async fn encrypted(
    stream: Box<dyn AsyncTokioStream>,
    tls: TlsParameters,
) -> Result<Box<dyn AsyncTokioStream>, lettre::transport::smtp::Error> {
    let mut stream = AsyncNetworkStream::use_existing_tokio1(stream);
    stream.upgrade_tls(tls).await?;
    Ok(Box::new(Encrypted(stream)))
}

/// A connection that breaks where the other side sends too much.
#[derive(Debug)]
struct Bounded {
    stream: TcpStream,
    /// How many bytes may still come.
    left: usize,
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len().saturating_sub(before);
        let Some(left) = self.left.checked_sub(read) else {
            return Poll::Ready(Err(io::Error::other("it sent more than 1 MiB")));
        };
        self.left = left;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Bounded {
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

impl AsyncTokioStream for Bounded {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

/// An encrypted connection, in the form that a mailer takes.
#[expect(deprecated, reason = "the only way to encrypt a stream of one's own from its start")]
#[derive(Debug)]
struct Encrypted(AsyncNetworkStream);

impl AsyncRead for Encrypted {
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

impl AsyncWrite for Encrypted {
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

impl AsyncTokioStream for Encrypted {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
}
