//! The settings of the mail server and the sender, read for every call.

use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use lettre::message::Mailbox;

use crate::settings::{PlatformSettings, Settings};
use crate::tool::failed;

/// The message for the model; the operator reads the details.
pub(super) const NOT_CONFIGURED: &str = "mail is not configured";

/// How the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsMode {
    /// With the `STARTTLS` command, before login and message.
    StartTls,
    /// With TLS from the start.
    Tls,
    /// Not at all, because `SMTP_TLS` is `none`.
    None,
}

/// A mail account.
pub(super) struct Account {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls_mode: TlsMode,
    pub(super) login: Option<(String, Secret)>,
    pub(super) from: Mailbox,
    /// Additional trusted certificates in PEM format.
    pub(super) trusted: Option<String>,
}

/// Loads the account of the tenant, or that of the platform if the tenant has no mail server.
pub(super) async fn load(call: &CallContext, platform: &PlatformSettings) -> Result<Account, CallError> {
    let Some(settings) = Settings::with_key(call, platform, "SMTP_HOST").await? else {
        return Err(missing("SMTP_HOST"));
    };
    let host = settings.plain("SMTP_HOST").await?.ok_or_else(|| missing("SMTP_HOST"))?;
    let tls_mode = tls_mode(settings.plain("SMTP_TLS").await?.as_deref())?;
    let port = port(settings.plain("SMTP_PORT").await?.as_deref(), tls_mode)?;
    let user = settings.plain("SMTP_USER").await?;
    let from = settings.plain("SMTP_FROM").await?;
    let login = match (&user, settings.secret("SMTP_PASS").await?) {
        (Some(user), Some(password)) => Some((user.clone(), password)),
        (None, None) => None,
        (Some(_), None) => return Err(missing("SMTP_PASS")),
        (None, Some(_)) => return Err(missing("SMTP_USER")),
    };
    let (name, sender) = match (from, user) {
        (Some(from), _) => ("SMTP_FROM", from),
        (None, Some(user)) => ("SMTP_USER", user),
        (None, None) => return Err(missing("SMTP_FROM")),
    };
    let from = sender.parse().map_err(|_| {
        let hint = if name == "SMTP_USER" { "; set `SMTP_FROM` to the sender address" } else { "" };
        invalid_setting(name, &format!("is not a valid e-mail address{hint}"))
    })?;
    Ok(Account { host, port, tls_mode, login, from, trusted: settings.plain("SMTP_CA").await? })
}

fn tls_mode(text: Option<&str>) -> Result<TlsMode, CallError> {
    match text.map(str::to_ascii_lowercase).as_deref() {
        None | Some("starttls") => Ok(TlsMode::StartTls),
        Some("tls") => Ok(TlsMode::Tls),
        Some("none") => Ok(TlsMode::None),
        Some(other) => {
            let message = format!("is `{}`; expected `starttls`, `tls` or `none`", excerpt(other, 20));
            Err(invalid_setting("SMTP_TLS", &message))
        }
    }
}

fn port(text: Option<&str>, tls_mode: TlsMode) -> Result<u16, CallError> {
    match (text, tls_mode) {
        (Some(text), _) => match text.parse() {
            Ok(port) if port != 0 => Ok(port),
            _ => Err(invalid_setting("SMTP_PORT", "is not a valid port; expected a number from 1 to 65535")),
        },
        (None, TlsMode::Tls) => Ok(465),
        (None, TlsMode::StartTls | TlsMode::None) => Ok(587),
    }
}

fn missing(name: &str) -> CallError {
    let message = format!(
        "mail is not configured: `{name}` is missing; store a credential with that name or set the environment variable"
    );
    CallError::new(ErrorCode::SecretMissing, message).for_model(NOT_CONFIGURED)
}

fn invalid_setting(name: &str, message: &str) -> CallError {
    failed(format!("mail is not configured: `{name}` {message}")).for_model(NOT_CONFIGURED)
}
