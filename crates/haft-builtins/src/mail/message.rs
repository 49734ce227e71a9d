//! The message.

use haft_core::outcome::CallError;
use haft_core::problem::excerpt;
use lettre::Message;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, SinglePart};
use serde::Deserialize;

use crate::tool::{failed, invalid};

/// The most recipients of one message, of all kinds together.
pub(super) const MAX_RECIPIENTS: usize = 50;
/// The longest subject, in characters.
pub(super) const MAX_SUBJECT: usize = 500;
/// The longest body, in bytes.
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

/// Makes the message; nothing in an argument can become a header or a command of its own.
pub(super) fn compose(args: &Args, from: Mailbox) -> Result<Message, CallError> {
    if args.subject.chars().count() > MAX_SUBJECT {
        return Err(invalid(format!("`subject` has more than {MAX_SUBJECT} characters")));
    }
    if args.subject.chars().any(char::is_control) {
        return Err(invalid(
            "`subject` has a line break or another control character; it has to be one line",
        ));
    }
    if args.body.len() > MAX_BODY {
        return Err(invalid(format!("`body` has more than {MAX_BODY} bytes")));
    }
    let (to, cc, bcc) =
        (all("to", Some(&args.to))?, all("cc", args.cc.as_ref())?, all("bcc", args.bcc.as_ref())?);
    if to.is_empty() {
        return Err(invalid("`to` is empty: name at least one recipient"));
    }
    if to.len() + cc.len() + bcc.len() > MAX_RECIPIENTS {
        return Err(invalid(format!(
            "there are more than {MAX_RECIPIENTS} recipients; send several messages"
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
    builder.singlepart(body).map_err(|error| failed(format!("the message cannot be made: {error}")))
}

/// Reads addresses; several may stand in one text, separated by commas.
fn all(field: &str, addresses: Option<&Addresses>) -> Result<Vec<Mailbox>, CallError> {
    match addresses {
        None => Ok(Vec::new()),
        Some(Addresses::One(text)) => several(field, text),
        Some(Addresses::Several(list)) => {
            if list.len() > MAX_RECIPIENTS {
                return Err(invalid(format!(
                    "`{field}` has more than {MAX_RECIPIENTS} recipients; send several messages"
                )));
            }
            list.iter().map(|text| mailbox(field, text)).collect()
        }
    }
}

fn several(field: &str, text: &str) -> Result<Vec<Mailbox>, CallError> {
    // A comma may also be a part of a quoted name.
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
            "`{field}`: `{}` is not an e-mail address; write `name@example.com` or `Name <name@example.com>`",
            excerpt(text, 100)
        ))
    })
}
