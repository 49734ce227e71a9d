//! Composes the message from the arguments.

use haft_core::outcome::CallError;
use haft_core::problem::excerpt;
use lettre::Message;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, SinglePart};
use serde::Deserialize;

use crate::tool::{failed, invalid};

/// The maximum number of recipients: `to`, `cc` and `bcc` together.
pub(super) const MAX_RECIPIENTS: usize = 50;
/// The maximum length of the subject in characters.
pub(super) const MAX_SUBJECT: usize = 500;
/// The maximum length of the body in bytes.
pub(super) const MAX_BODY: usize = 1024 * 1024;

/// One address or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Addresses {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
pub(crate) struct Args {
    to: Addresses,
    cc: Option<Addresses>,
    bcc: Option<Addresses>,
    reply_to: Option<String>,
    subject: String,
    body: String,
    #[serde(default)]
    is_html: bool,
}

/// Composes the message. No argument can inject a header or an SMTP command.
pub(super) fn compose(args: &Args, from: Mailbox) -> Result<Message, CallError> {
    if args.subject.chars().count() > MAX_SUBJECT {
        return Err(invalid(format!("`subject` exceeds the limit of {MAX_SUBJECT} characters")));
    }
    if args.subject.chars().any(char::is_control) {
        return Err(invalid("`subject` contains a line break or another control character; use one line"));
    }
    if args.body.len() > MAX_BODY {
        return Err(invalid(format!("`body` exceeds the limit of {MAX_BODY} bytes")));
    }
    let (to, cc, bcc) = (
        mailboxes("to", Some(&args.to))?,
        mailboxes("cc", args.cc.as_ref())?,
        mailboxes("bcc", args.bcc.as_ref())?,
    );
    if to.is_empty() {
        return Err(invalid("`to` is empty; pass at least one recipient"));
    }
    if to.len() + cc.len() + bcc.len() > MAX_RECIPIENTS {
        return Err(invalid(format!(
            "too many recipients: the limit is {MAX_RECIPIENTS}; send several messages"
        )));
    }
    let mut builder = Message::builder().from(from).subject(&args.subject).message_id(None).date_now();
    builder = to.into_iter().fold(builder, lettre::message::MessageBuilder::to);
    builder = cc.into_iter().fold(builder, lettre::message::MessageBuilder::cc);
    builder = bcc.into_iter().fold(builder, lettre::message::MessageBuilder::bcc);
    if let Some(address) = &args.reply_to {
        builder = builder.reply_to(mailbox("reply_to", address)?);
    }
    let kind = if args.is_html { ContentType::TEXT_HTML } else { ContentType::TEXT_PLAIN };
    let body = SinglePart::builder().header(kind).body(args.body.clone());
    builder.singlepart(body).map_err(|error| failed(format!("cannot compose the message: {error}")))
}

/// Parses the addresses of a field; a string may contain several, separated by commas.
fn mailboxes(field: &str, addresses: Option<&Addresses>) -> Result<Vec<Mailbox>, CallError> {
    match addresses {
        None => Ok(Vec::new()),
        Some(Addresses::One(text)) => comma_separated(field, text),
        Some(Addresses::Several(list)) => {
            if list.len() > MAX_RECIPIENTS {
                return Err(invalid(format!(
                    "`{field}`: too many recipients: the limit is {MAX_RECIPIENTS}; send several messages"
                )));
            }
            list.iter().map(|text| mailbox(field, text)).collect()
        }
    }
}

fn comma_separated(field: &str, text: &str) -> Result<Vec<Mailbox>, CallError> {
    // A comma inside a quoted name does not separate addresses.
    let (mut parts, mut is_quoted, mut is_escaped) = (vec![String::new()], false, false);
    for c in text.chars() {
        match c {
            ',' if !is_quoted => parts.push(String::new()),
            _ => parts.last_mut().into_iter().for_each(|part| part.push(c)),
        }
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
    }
    parts.iter().map(|part| mailbox(field, part)).collect()
}

fn mailbox(field: &str, text: &str) -> Result<Mailbox, CallError> {
    let text = text.trim();
    let parsed =
        text.parse::<Mailbox>().ok().filter(|_| !text.chars().any(char::is_control) && text.len() <= 500);
    parsed.ok_or_else(|| {
        invalid(format!(
            "`{field}`: `{}` is not a valid e-mail address; use `name@example.com` or `Name <name@example.com>`",
            excerpt(text, 100)
        ))
    })
}
