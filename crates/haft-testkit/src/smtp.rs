//! An SMTP server on loopback with STARTTLS, TLS and logins.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// The behavior of a mail server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpBehavior {
    /// Supports STARTTLS, and logins only after it.
    StartTls,
    /// Uses TLS from the start.
    Tls,
    /// Supports logins without encryption.
    Plain,
    /// Accepts connections and never sends anything.
    Silent,
    /// Sends an endless line without encryption.
    Endless,
    /// Uses TLS from the start and sends an endless line.
    EndlessTls,
    /// Rejects every recipient.
    NoRecipients,
    /// Rejects recipients whose name starts with `no`.
    SomeRecipients,
    /// Rejects every login.
    NoLogins,
}

/// A message that a server accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The envelope sender.
    pub from: String,
    /// The envelope recipients.
    pub to: Vec<String>,
    /// The user name and password of the client, if it logged in.
    pub login: Option<(String, String)>,
    /// Whether the connection was encrypted.
    pub encrypted: bool,
    /// Headers and body.
    pub text: String,
}

/// A mail server on a free loopback port; it ends when this is dropped.
pub struct SmtpServer {
    /// The address of the server.
    pub address: SocketAddr,
    /// The certificate for `localhost` in PEM format.
    pub certificate: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    mails: Mutex<Vec<Mail>>,
    lines: Mutex<Vec<String>>,
}

impl Drop for SmtpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SmtpServer {
    /// Starts a server.
    pub async fn start(behavior: SmtpBehavior) -> io::Result<Self> {
        let generated =
            rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(vec![generated.cert.der().clone()], key)
            })
            .map_err(io::Error::other)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, shared) = (listener.local_addr()?, Arc::<Shared>::default());
        let state = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, shared) = (acceptor.clone(), Arc::clone(&state));
                // An error ends the session.
                tokio::spawn(async move { serve(stream, behavior, acceptor, &shared).await });
            }
        });
        Ok(Self { address, certificate: generated.cert.pem(), shared, task })
    }

    /// Returns the accepted messages.
    pub fn mails(&self) -> Vec<Mail> {
        self.shared.mails.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the lines that clients sent without encryption.
    pub fn clear_lines(&self) -> Vec<String> {
        self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// An SMTP session.
struct Session<'a> {
    stream: BufReader<Box<dyn Stream>>,
    shared: &'a Shared,
    encrypted: bool,
    login: Option<(String, String)>,
    from: String,
    to: Vec<String>,
}

async fn serve(
    stream: TcpStream,
    behavior: SmtpBehavior,
    acceptor: TlsAcceptor,
    shared: &Shared,
) -> io::Result<()> {
    let stream: Box<dyn Stream> = match behavior {
        SmtpBehavior::Silent => {
            let _open = stream;
            return std::future::pending().await;
        }
        SmtpBehavior::Tls | SmtpBehavior::EndlessTls => Box::new(acceptor.accept(stream).await?),
        _ => Box::new(stream),
    };
    if matches!(behavior, SmtpBehavior::Endless | SmtpBehavior::EndlessTls) {
        return write_endlessly(stream).await;
    }
    let encrypted = behavior == SmtpBehavior::Tls;
    let stream = BufReader::new(stream);
    let mut session = Session { stream, shared, encrypted, login: None, from: String::new(), to: Vec::new() };
    session.send("220 localhost ESMTP").await?;
    while let Some(line) = session.line().await? {
        let upper = line.to_ascii_uppercase();
        if upper.starts_with("STARTTLS") && behavior == SmtpBehavior::StartTls {
            session.send("220 go ahead").await?;
            let inner = session.stream.into_inner();
            let stream: Box<dyn Stream> = Box::new(acceptor.accept(inner).await?);
            session.stream = BufReader::new(stream);
            session.encrypted = true;
        } else if upper.starts_with("QUIT") {
            session.send("221 bye").await?;
            return Ok(());
        } else {
            session.handle(behavior, &line, &upper).await?;
        }
    }
    Ok(())
}

/// Writes an endless line.
async fn write_endlessly(mut stream: Box<dyn Stream>) -> io::Result<()> {
    stream.write_all(b"220 ").await?;
    loop {
        stream.write_all(&[b'x'; 16 * 1024]).await?;
    }
}

impl Session<'_> {
    async fn send(&mut self, line: &str) -> io::Result<()> {
        self.stream.get_mut().write_all(format!("{line}\r\n").as_bytes()).await?;
        self.stream.get_mut().flush().await
    }

    async fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim_end_matches(['\r', '\n']).to_owned();
        if !self.encrypted {
            self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.clone());
        }
        Ok(Some(line))
    }

    async fn handle(&mut self, behavior: SmtpBehavior, line: &str, upper: &str) -> io::Result<()> {
        if upper.starts_with("EHLO") {
            let extensions = match (behavior, self.encrypted) {
                (SmtpBehavior::StartTls, false) => "250-localhost\r\n250-8BITMIME\r\n250 STARTTLS",
                _ => "250-localhost\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN",
            };
            return self.send(extensions).await;
        }
        if let Some(token) = upper.starts_with("AUTH PLAIN ").then(|| line.get(11..)).flatten() {
            return self.log_in(behavior, token).await;
        }
        if upper.starts_with("MAIL FROM:") {
            self.from = address(line);
            return self.send("250 ok").await;
        }
        if upper.starts_with("RCPT TO:") {
            let is_rejected = match behavior {
                SmtpBehavior::NoRecipients => true,
                SmtpBehavior::SomeRecipients => address(line).starts_with("no"),
                _ => false,
            };
            if is_rejected {
                return self.send("550 5.1.1 no such user here").await;
            }
            self.to.push(address(line));
            return self.send("250 ok").await;
        }
        if upper == "DATA" {
            self.send("354 go ahead").await?;
            return self.data().await;
        }
        self.send("500 unknown command").await
    }

    async fn log_in(&mut self, behavior: SmtpBehavior, token: &str) -> io::Result<()> {
        let decoded = STANDARD.decode(token).unwrap_or_default();
        let text = String::from_utf8_lossy(&decoded).into_owned();
        let mut parts = text.split('\0').skip(1).map(str::to_owned);
        self.login = parts.next().zip(parts.next());
        match behavior {
            SmtpBehavior::NoLogins => self.send("535 5.7.8 the password `wrong` is not right").await,
            _ => self.send("235 welcome").await,
        }
    }

    async fn data(&mut self) -> io::Result<()> {
        let mut text = String::new();
        while let Some(line) = self.line().await? {
            if line == "." {
                break;
            }
            text.push_str(line.strip_prefix('.').unwrap_or(&line));
            text.push('\n');
        }
        let mail = Mail {
            from: std::mem::take(&mut self.from),
            to: std::mem::take(&mut self.to),
            login: self.login.clone(),
            encrypted: self.encrypted,
            text,
        };
        self.shared.mails.lock().unwrap_or_else(PoisonError::into_inner).push(mail);
        self.send("250 queued").await
    }
}

/// Returns the text between `<` and `>`.
fn address(line: &str) -> String {
    let rest = line.split_once('<').map_or("", |(_, rest)| rest);
    rest.split('>').next().unwrap_or_default().to_owned()
}
