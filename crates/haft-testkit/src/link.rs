//! A TCP proxy between a node and its database that a test can disconnect and reconnect.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Forwards connections to an address while it is whole.
#[derive(Debug)]
pub struct Link {
    /// Where it listens.
    pub addr: SocketAddr,
    whole: watch::Sender<bool>,
}

impl Link {
    /// Listens on a free port and forwards every connection to `target`.
    pub async fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let (whole, state) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(forward(stream, target, state.clone()));
            }
        });
        Ok(Self { addr, whole })
    }

    /// Closes all connections; new ones are closed at once.
    pub fn cut(&self) {
        self.whole.send_replace(false);
    }

    /// Forwards new connections again.
    pub fn mend(&self) {
        self.whole.send_replace(true);
    }
}

/// Copies both ways until one side ends or the link is cut.
async fn forward(mut near: TcpStream, target: SocketAddr, mut whole: watch::Receiver<bool>) {
    if !*whole.borrow_and_update() {
        return;
    }
    let Ok(mut far) = TcpStream::connect(target).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
        _ = whole.wait_for(|whole| !whole) => {}
    }
}
