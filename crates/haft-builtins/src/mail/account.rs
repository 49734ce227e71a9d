//! The mail server and the sender, read anew for every call.

use haft_core::executor::CallContext;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use lettre::message::Mailbox;

use crate::settings::{PlatformSettings, Settings};
use crate::tool::failed;

/// How the connection is kept private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Privacy {
    /// TLS is asked for before anything is said.
    StartTls,
    /// TLS from the start.
    Tls,
    /// None; the operator has said so.
    None,
}

/// What is needed to send mail.
pub(super) struct Account {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) privacy: Privacy,
    pub(super) login: Option<(String, Secret)>,
    pub(super) from: Mailbox,
    /// Certificates that are trusted besides the public ones.
    pub(super) trusted: Option<String>,
}

/// Reads the settings; those of the tenant where it has a mail server of its own.
pub(super) async fn read(call: &CallContext, platform: &PlatformSettings) -> Result<Account, CallError> {
    let Some(settings) = Settings::of_owner(call, platform, "SMTP_HOST").await? else {
        return Err(missing("SMTP_HOST"));
    };
    let host = settings.plain("SMTP_HOST").await?.ok_or_else(|| missing("SMTP_HOST"))?;
    let privacy = privacy(settings.plain("SMTP_TLS").await?.as_deref())?;
    let port = port(settings.plain("SMTP_PORT").await?.as_deref(), privacy)?;
    let user = settings.plain("SMTP_USER").await?;
    let from = settings.plain("SMTP_FROM").await?;
    let login = match (&user, settings.get("SMTP_PASS").await?) {
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
        let hint = if name == "SMTP_USER" { "; set `SMTP_FROM` to the address of the sender" } else { "" };
        unusable(name, &format!("is not an e-mail address{hint}"))
    })?;
    Ok(Account { host, port, privacy, login, from, trusted: settings.plain("SMTP_CA").await? })
}

fn privacy(text: Option<&str>) -> Result<Privacy, CallError> {
    match text.map(str::to_ascii_lowercase).as_deref() {
        None | Some("starttls") => Ok(Privacy::StartTls),
        Some("tls") => Ok(Privacy::Tls),
        Some("none") => Ok(Privacy::None),
        Some(other) => {
            let why = format!("is `{}`; it has to be `starttls`, `tls` or `none`", excerpt(other, 20));
            Err(unusable("SMTP_TLS", &why))
        }
    }
}

fn port(text: Option<&str>, privacy: Privacy) -> Result<u16, CallError> {
    match (text, privacy) {
        (Some(text), _) => match text.parse() {
            Ok(port) if port != 0 => Ok(port),
            _ => Err(unusable("SMTP_PORT", "is not a port: a number from 1 to 65535")),
        },
        (None, Privacy::Tls) => Ok(465),
        (None, Privacy::StartTls | Privacy::None) => Ok(587),
    }
}

fn missing(name: &str) -> CallError {
    let message = format!(
        "mail is not set up: `{name}` is missing; store a credential of that name, or set the variable where haft reads it"
    );
    CallError::new(ErrorCode::SecretMissing, message).for_model("mail is not set up here")
}

fn unusable(name: &str, why: &str) -> CallError {
    failed(format!("mail is not set up: `{name}` {why}")).for_model("mail is not set up here")
}
