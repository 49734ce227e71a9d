//! HMAC signatures of requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::implementation::HmacAuth;
use haft_template::Template;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderName;
use sha2::{Sha256, Sha512};

use super::prepare::Compiler;

const FIELD: &str = "implementation.auth";

/// A compiled signature.
pub(super) struct Signature {
    pub(super) key: Template,
    pub(super) header: HeaderName,
    pub(super) timestamp_header: Option<HeaderName>,
    algorithm: Algorithm,
    encoding: Encoding,
    prefix: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy)]
enum Algorithm {
    Sha256,
    Sha512,
}

#[derive(Clone, Copy)]
enum Encoding {
    Hex,
    Base64,
}

/// One part of the signed text.
enum Part {
    Literal(String),
    Method,
    Path,
    Query,
    Timestamp,
    Body,
}

/// The parts of a request that can be signed.
pub(super) struct SignedParts<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) timestamp: &'a str,
    pub(super) body: &'a [u8],
}

impl Signature {
    pub(super) fn compile(compiler: &mut Compiler, auth: &HmacAuth) -> Option<Self> {
        let algorithm = match auth.algorithm.as_str() {
            "sha256" => Some(Algorithm::Sha256),
            "sha512" => Some(Algorithm::Sha512),
            _ => None,
        };
        let encoding = match auth.encoding.as_str() {
            "hex" => Some(Encoding::Hex),
            "base64" => Some(Encoding::Base64),
            _ => None,
        };
        let parts = parts(&auth.sign)
            .map_err(|message| compiler.problem(&format!("{FIELD}.sign"), "invalid_value", message))
            .ok();
        let timestamp_header = auth.timestamp_header.as_deref();
        let timestamp_header = timestamp_header.map(|name| HeaderName::from_bytes(name.as_bytes()).ok());
        Some(Self {
            key: compiler.text(&format!("{FIELD}.key"), &auth.key)?,
            header: HeaderName::from_bytes(auth.header.as_bytes()).ok()?,
            timestamp_header: match timestamp_header {
                Some(name) => Some(name?),
                None => None,
            },
            algorithm: algorithm?,
            encoding: encoding?,
            prefix: auth.prefix.clone(),
            parts: parts?,
        })
    }

    /// Returns the value of the signature header.
    pub(super) fn sign(&self, key: &[u8], signed: &SignedParts<'_>) -> String {
        let digest = match self.algorithm {
            Algorithm::Sha256 => digest::<Hmac<Sha256>>(key, &self.parts, signed),
            Algorithm::Sha512 => digest::<Hmac<Sha512>>(key, &self.parts, signed),
        };
        let text = match self.encoding {
            Encoding::Hex => haft_core::hash::hex(&digest),
            Encoding::Base64 => STANDARD.encode(&digest),
        };
        format!("{}{text}", self.prefix)
    }
}

fn digest<M: Mac + KeyInit>(key: &[u8], parts: &[Part], signed: &SignedParts<'_>) -> Vec<u8> {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(key) else { return Vec::new() };
    for part in parts {
        mac.update(match part {
            Part::Literal(text) => text.as_bytes(),
            Part::Method => signed.method.as_bytes(),
            Part::Path => signed.path.as_bytes(),
            Part::Query => signed.query.as_bytes(),
            Part::Timestamp => signed.timestamp.as_bytes(),
            Part::Body => signed.body,
        });
    }
    mac.finalize().into_bytes().to_vec()
}

fn parts(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        if !before.is_empty() {
            parts.push(Part::Literal(before.to_owned()));
        }
        let (name, next) = after.split_once('}').ok_or("unclosed `{`")?;
        parts.push(match name {
            "method" => Part::Method,
            "path" => Part::Path,
            "query" => Part::Query,
            "timestamp" => Part::Timestamp,
            "body" => Part::Body,
            _ => {
                return Err(
                    "unknown placeholder; use `{method}`, `{path}`, `{query}`, `{timestamp}` and `{body}`"
                        .to_owned(),
                );
            }
        });
        rest = next;
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest.to_owned()));
    }
    Ok(parts)
}
