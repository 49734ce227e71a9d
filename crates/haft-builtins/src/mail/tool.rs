//! The tool: compose, connect, send.

use std::time::{Duration, Instant};

use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::spec::{RateLimit, Retry, ToolSpec};
use haft_runtime::egress::Egress;
use lettre::Message;
use lettre::address::Envelope;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use serde_json::json;

use super::account::{self, Account, Privacy};
use super::failure::{self, Refusal, Step};
use super::message::{self, Args, MAX_RECIPIENTS, MAX_SUBJECT};
use super::stream;
use crate::settings::PlatformSettings;
use crate::tool::{BuiltIn, Describe, describe, failed};

/// How long a server may take to greet: one that waits for TLS never does.
const GREETING_TIME: Duration = Duration::from_secs(20);
/// How long a polite end may take.
const QUIT_TIME: Duration = Duration::from_secs(1);

pub(crate) fn send_email(per_minute: u32) -> Result<ToolSpec, NameError> {
    let addresses = json!({"anyOf": [
        {"type": "string", "minLength": 3, "maxLength": 5000},
        {"type": "array", "items": {"type": "string", "minLength": 3, "maxLength": 500}, "minItems": 1, "maxItems": MAX_RECIPIENTS},
    ]});
    let with = |description: &str| {
        let mut schema = addresses.clone();
        if let Some(fields) = schema.as_object_mut() {
            fields.insert("description".to_owned(), description.into());
        }
        schema
    };
    let mut spec = describe(Describe {
        name: "send_email",
        description: "Send an e-mail from the address that is set up here. Use it only when the user wants a message \
                      sent: it cannot be taken back. Returns the message id and the recipients once the mail server has \
                      accepted the message.",
        category: "communication",
        tags: &["email", "send"],
        input: json!({
            "type": "object",
            "properties": {
                "to": with("The recipient, as name@example.com or Name <name@example.com>, or a list of them"),
                "subject": {"type": "string", "maxLength": MAX_SUBJECT, "description": "The subject, one line"},
                "body": {"type": "string", "description": "The text of the message"},
                "is_html": {"type": "boolean", "description": "Whether the body is HTML; plain text where it is left out"},
                "cc": with("Who gets a copy"),
                "bcc": with("Who gets a copy that the others do not see"),
                "reply_to": {"type": "string", "maxLength": 500, "description": "Where answers go"},
            },
            "required": ["to", "subject", "body"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {
                "sent": {"const": true}, "message_id": {"type": "string"},
                "recipients": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["sent", "message_id", "recipients"],
        }),
    })?;
    spec.network = true;
    spec.execution.timeout_ms = Some(60_000);
    // A message that may have been accepted is never sent again.
    spec.execution.retry = Some(Retry { attempts: 0, backoff_ms: 0 });
    // A model that goes round in circles must not fill anybody's mailbox.
    spec.execution.rate_limit =
        (per_minute > 0).then(|| RateLimit { calls: per_minute, per: "1m".to_owned() });
    Ok(spec)
}

/// Sends mail.
pub(crate) struct SendEmail {
    egress: Egress,
    platform: PlatformSettings,
}

impl SendEmail {
    pub(crate) fn new(egress: Egress, platform: PlatformSettings) -> Self {
        Self { egress, platform }
    }

    /// Connects, encrypts and logs in; the password goes out only where nobody can read it, or where that was wanted.
    async fn connect(&self, account: &Account) -> Result<AsyncSmtpConnection, CallError> {
        let addresses =
            self.egress.resolve(&account.host, account.port).await.map_err(failure::unresolved)?;
        let name = ClientId::Domain("localhost".to_owned());
        let tls = match account.privacy {
            Privacy::None => None,
            Privacy::Tls | Privacy::StartTls => Some(tls(account)?),
        };
        let failed = |error| failure::of_step(Step::Connect, &error);
        let mut stream = stream::connect(&addresses).await.map_err(|error| failure::unreachable(&error))?;
        if let (Privacy::Tls, Some(tls)) = (account.privacy, &tls) {
            stream = stream::encrypted(stream, tls.clone()).await.map_err(failed)?;
        }
        let greeted = AsyncSmtpConnection::connect_with_transport(stream, &name);
        let greeted = tokio::time::timeout(GREETING_TIME, greeted).await;
        let mut connection =
            greeted.map_err(|_| failure::no_greeting(account.privacy, GREETING_TIME))?.map_err(failed)?;
        if let (Privacy::StartTls, Some(tls)) = (account.privacy, tls) {
            if !connection.can_starttls() {
                return Err(failure::no_tls(&account.host));
            }
            connection.starttls(tls, &name).await.map_err(|error| failure::of_step(Step::Encrypt, &error))?;
        }
        if let Some((user, password)) = &account.login {
            let credentials = Credentials::new(user.clone(), password.expose().to_owned());
            connection
                .auth(DEFAULT_MECHANISMS, &credentials)
                .await
                .map_err(|error| failure::of_step(Step::LogIn, &error))?;
        }
        Ok(connection)
    }

    async fn send(&self, call: &CallContext, args: &Args) -> Outcome {
        let account = account::read(call, &self.platform).await?;
        let message = message::compose(args, account.from.clone())?;
        let mut connection = self.connect(&account).await?;
        hand_over(&mut connection, &message).await?;
        // The message is accepted; a server that does not say goodbye changes nothing.
        let _ = tokio::time::timeout(QUIT_TIME, connection.quit()).await;
        let id = message.headers().get_raw("Message-ID").unwrap_or_default();
        let recipients: Vec<String> = message.envelope().to().iter().map(ToString::to_string).collect();
        Ok(json!({"sent": true, "message_id": id, "recipients": recipients}))
    }
}

impl BuiltIn for SendEmail {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        // A little less than the call has, so that the reason is told.
        let time =
            call.deadline.saturating_duration_since(Instant::now()).saturating_sub(Duration::from_millis(50));
        tokio::time::timeout(time, self.send(call, &args)).await.unwrap_or_else(|_| {
            Err(CallError::new(ErrorCode::Timeout, "the mail server did not answer in time").retryable(false))
        })
    }
}

/// Hands a message over: to all of its recipients, or to nobody.
async fn hand_over(connection: &mut AsyncSmtpConnection, message: &Message) -> Result<(), CallError> {
    let (envelope, text) = (message.envelope(), message.formatted());
    let failed = |error| failure::of_step(Step::Send, &error);
    let options = mail_options(connection, envelope, &text)?;
    connection.command(Mail::new(envelope.from().cloned(), options)).await.map_err(failed)?;
    let mut refused = Vec::new();
    for address in envelope.to() {
        match connection.command(Rcpt::new(address.clone(), Vec::new())).await {
            Ok(_) => {}
            // The others are asked for as well, so that all of them can be mended at once.
            Err(error) if error.status().is_some() => {
                refused.push(Refusal { address: address.to_string(), error });
            }
            Err(error) => return Err(failed(error)),
        }
    }
    if !refused.is_empty() {
        // Without the message itself, nothing was sent.
        let _ = tokio::time::timeout(QUIT_TIME, connection.quit()).await;
        return Err(failure::refused_recipients(&refused, envelope.to().len()));
    }
    connection.command(Data).await.map_err(failed)?;
    connection.message(&text).await.map_err(failed)?;
    Ok(())
}

/// Says what the message needs of the server, which has to offer it.
fn mail_options(
    connection: &AsyncSmtpConnection,
    envelope: &Envelope,
    text: &[u8],
) -> Result<Vec<MailParameter>, CallError> {
    let server = connection.server_info();
    let mut options = Vec::new();
    let mut addresses = envelope.from().into_iter().chain(envelope.to());
    if addresses.any(|address| !AsRef::<str>::as_ref(address).is_ascii()) {
        if !server.supports_feature(Extension::SmtpUtfEight) {
            return Err(failed(
                "the mail server takes only addresses of ASCII letters (it offers no SMTPUTF8)",
            ));
        }
        options.push(MailParameter::SmtpUtfEight);
    }
    if !text.is_ascii() {
        if !server.supports_feature(Extension::EightBitMime) {
            return Err(failed(
                "the mail server takes only messages of ASCII letters (it offers no 8BITMIME)",
            ));
        }
        options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    Ok(options)
}

/// The certificate has to be of the name that the settings say, whatever address it resolved to.
fn tls(account: &Account) -> Result<TlsParameters, CallError> {
    let mut builder = TlsParameters::builder(account.host.clone());
    if let Some(pem) = &account.trusted {
        // Without a certificate in it, the text would be read as an empty list.
        let read = Certificate::from_pem(pem.as_bytes()).ok();
        let certificate = read.filter(|_| pem.contains("-----BEGIN CERTIFICATE-----")).ok_or_else(|| {
            failed("mail is not set up: `SMTP_CA` holds no certificate in PEM")
                .for_model("mail is not set up here")
        })?;
        builder = builder.add_root_certificate(certificate);
    }
    builder.build_rustls().map_err(|error| {
        failed(format!("TLS cannot be set up: {error}")).for_model("mail is not set up here")
    })
}
