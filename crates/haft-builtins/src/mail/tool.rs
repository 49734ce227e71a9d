//! The definition and the function of `send_email`.

use std::time::{Duration, Instant};

use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::spec::{RateLimit, Retry, ToolSpec};
use haft_executors::egress::Egress;
use lettre::Message;
use lettre::address::Envelope;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use serde_json::json;

use super::account::{self, Account, NOT_CONFIGURED, TlsMode};
use super::error::{self, RejectedRecipient, Step};
use super::message::{self, Args, MAX_RECIPIENTS, MAX_SUBJECT};
use super::stream;
use crate::settings::PlatformSettings;
use crate::tool::{BuiltIn, Describe, describe, failed};

/// The timeout for the server's greeting, which a server that expects TLS never sends.
const GREETING_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout for `QUIT`.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);

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
        description: "Send an e-mail from the configured address. Use it only if the user asks for it: a sent message \
                      cannot be recalled. Returns the message id and the recipients after the mail server has accepted the \
                      message.",
        category: "communication",
        tags: &["email", "send"],
        input: json!({
            "type": "object",
            "properties": {
                "to": with("The recipient, as name@example.com or Name <name@example.com>, or an array of recipients"),
                "subject": {"type": "string", "maxLength": MAX_SUBJECT, "description": "The subject, on one line"},
                "body": {"type": "string", "description": "The text of the message"},
                "is_html": {"type": "boolean", "description": "Whether the body is HTML. Default: plain text"},
                "cc": with("Recipients of a copy"),
                "bcc": with("Recipients of a blind copy, hidden from the others"),
                "reply_to": {"type": "string", "maxLength": 500, "description": "The address for replies"},
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
    // No retries: the server may have accepted the message.
    spec.execution.retry = Some(Retry { attempts: 0, backoff_ms: 0 });
    // A model in a loop must not flood mailboxes.
    spec.execution.rate_limit =
        (per_minute > 0).then(|| RateLimit { calls: per_minute, per: "1m".to_owned() });
    Ok(spec)
}

/// The function of `send_email`.
pub(crate) struct SendEmail {
    egress: Egress,
    platform: PlatformSettings,
}

impl SendEmail {
    pub(crate) fn new(egress: Egress, platform: PlatformSettings) -> Self {
        Self { egress, platform }
    }

    /// Connects, encrypts and logs in. Without encryption it logs in only if `SMTP_TLS` is `none`.
    async fn connect(&self, account: &Account) -> Result<AsyncSmtpConnection, CallError> {
        let addresses =
            self.egress.resolve(&account.host, account.port).await.map_err(error::resolve_error)?;
        let name = ClientId::Domain("localhost".to_owned());
        let tls = match account.tls_mode {
            TlsMode::None => None,
            TlsMode::Tls | TlsMode::StartTls => Some(tls(account)?),
        };
        let failed = |error| error::step_error(Step::Connect, &error);
        let mut stream = stream::connect(&addresses).await.map_err(|error| error::connect_error(&error))?;
        if let (TlsMode::Tls, Some(tls)) = (account.tls_mode, &tls) {
            stream = stream::start_tls(stream, tls.clone()).await.map_err(failed)?;
        }
        let greeted = AsyncSmtpConnection::connect_with_transport(stream, &name);
        let greeted = tokio::time::timeout(GREETING_TIMEOUT, greeted).await;
        let mut connection = greeted
            .map_err(|_| error::greeting_timeout(account.tls_mode, GREETING_TIMEOUT))?
            .map_err(failed)?;
        if let (TlsMode::StartTls, Some(tls)) = (account.tls_mode, tls) {
            if !connection.can_starttls() {
                return Err(error::starttls_unsupported(&account.host));
            }
            connection
                .starttls(tls, &name)
                .await
                .map_err(|error| error::step_error(Step::Encrypt, &error))?;
        }
        if let Some((user, password)) = &account.login {
            let credentials = Credentials::new(user.clone(), password.expose().to_owned());
            connection
                .auth(DEFAULT_MECHANISMS, &credentials)
                .await
                .map_err(|error| error::step_error(Step::LogIn, &error))?;
        }
        Ok(connection)
    }

    async fn send(&self, call: &CallContext, args: &Args) -> Outcome {
        let account = account::load(call, &self.platform).await?;
        let message = message::compose(args, account.from.clone())?;
        let mut connection = self.connect(&account).await?;
        deliver(&mut connection, &message).await?;
        // The message is accepted, so an error of `QUIT` does not matter.
        let _ = tokio::time::timeout(QUIT_TIMEOUT, connection.quit()).await;
        let id = message.headers().get_raw("Message-ID").unwrap_or_default();
        let recipients: Vec<String> = message.envelope().to().iter().map(ToString::to_string).collect();
        Ok(json!({"sent": true, "message_id": id, "recipients": recipients}))
    }
}

impl BuiltIn for SendEmail {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        // Ends shortly before the deadline of the call, so that the error names the mail server.
        let timeout =
            call.deadline.saturating_duration_since(Instant::now()).saturating_sub(Duration::from_millis(50));
        tokio::time::timeout(timeout, self.send(call, &args))
            .await
            .unwrap_or_else(|_| Err(CallError::new(ErrorCode::Timeout, error::TIMED_OUT).retryable(false)))
    }
}

/// Delivers a message to all of its recipients or to nobody.
async fn deliver(connection: &mut AsyncSmtpConnection, message: &Message) -> Result<(), CallError> {
    let (envelope, text) = (message.envelope(), message.formatted());
    let failed = |error| error::step_error(Step::Send, &error);
    let options = mail_options(connection, envelope, &text)?;
    connection.command(Mail::new(envelope.from().cloned(), options)).await.map_err(failed)?;
    let mut rejected = Vec::new();
    for address in envelope.to() {
        match connection.command(Rcpt::new(address.clone(), Vec::new())).await {
            Ok(_) => {}
            // Continue with the others, so that the error lists all rejected recipients.
            Err(error) if error.status().is_some() => {
                rejected.push(RejectedRecipient { address: address.to_string(), error });
            }
            Err(error) => return Err(failed(error)),
        }
    }
    if !rejected.is_empty() {
        // Nothing is sent without the `DATA` command.
        let _ = tokio::time::timeout(QUIT_TIMEOUT, connection.quit()).await;
        return Err(error::recipients_error(&rejected, envelope.to().len()));
    }
    connection.command(Data).await.map_err(failed)?;
    connection.message(&text).await.map_err(failed)?;
    Ok(())
}

/// Returns the SMTP extensions that the message needs; the server must support them.
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
                "the mail server supports only ASCII addresses, because it lacks the SMTPUTF8 extension",
            ));
        }
        options.push(MailParameter::SmtpUtfEight);
    }
    if !text.is_ascii() {
        if !server.supports_feature(Extension::EightBitMime) {
            return Err(failed(
                "the mail server supports only ASCII messages, because it lacks the 8BITMIME extension",
            ));
        }
        options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    Ok(options)
}

/// Returns TLS parameters that require a certificate for the configured host name.
fn tls(account: &Account) -> Result<TlsParameters, CallError> {
    let mut builder = TlsParameters::builder(account.host.clone());
    if let Some(pem) = &account.trusted {
        // Text without a certificate would parse as an empty list.
        let parsed = Certificate::from_pem(pem.as_bytes()).ok();
        let certificate =
            parsed.filter(|_| pem.contains("-----BEGIN CERTIFICATE-----")).ok_or_else(|| {
                failed("mail is not configured: `SMTP_CA` contains no PEM certificate")
                    .for_model(NOT_CONFIGURED)
            })?;
        builder = builder.add_root_certificate(certificate);
    }
    builder
        .build_rustls()
        .map_err(|error| failed(format!("cannot configure TLS: {error}")).for_model(NOT_CONFIGURED))
}
