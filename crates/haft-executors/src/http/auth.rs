//! The authentication of requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::Timestamp;
use haft_core::encode::percent_encode;
use haft_core::executor::CallContext;
use haft_core::implementation::{ApiKeyLocation, Auth};
use haft_core::outcome::CallError;
use haft_core::secret::Secret;
use haft_template::{EscapeContext, Template, Values};
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

use super::oauth::OAuthPlan;
use super::pairs::push_pair;
use super::prepare::Compiler;
use super::request::header_value;
use super::sign::{Signature, SignedParts};
use crate::egress::OutgoingRequest;

const FIELD: &str = "implementation.auth";

/// A compiled `auth`.
pub(super) enum AuthPlan {
    Bearer(Template),
    Basic { username: Template, password: Template },
    Header(HeaderName, Template),
    Query(String, Template),
    Hmac(Box<Signature>),
    OAuth2(Box<OAuthPlan>),
}

impl AuthPlan {
    pub(super) fn compile(compiler: &mut Compiler, auth: &Auth) -> Option<Self> {
        match auth {
            Auth::Bearer { token } => compiler.text(&format!("{FIELD}.token"), token).map(Self::Bearer),
            Auth::Basic { username, password } => {
                let username = compiler.text(&format!("{FIELD}.username"), username);
                let password = compiler.text(&format!("{FIELD}.password"), password);
                Some(Self::Basic { username: username?, password: password? })
            }
            Auth::ApiKey { name, value, location } => {
                let value = compiler.text(&format!("{FIELD}.value"), value);
                match location {
                    ApiKeyLocation::Header => {
                        Some(Self::Header(HeaderName::from_bytes(name.as_bytes()).ok()?, value?))
                    }
                    ApiKeyLocation::Query => Some(Self::Query(percent_encode(name), value?)),
                }
            }
            Auth::Hmac(hmac) => Signature::compile(compiler, hmac).map(|plan| Self::Hmac(Box::new(plan))),
            Auth::Oauth2(oauth) => {
                OAuthPlan::compile(compiler, oauth).map(|plan| Self::OAuth2(Box::new(plan)))
            }
        }
    }

    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let templates = match self {
            Self::Bearer(one) | Self::Header(_, one) | Self::Query(_, one) => vec![one],
            Self::Basic { username, password } => vec![username, password],
            Self::Hmac(signature) => vec![&signature.key],
            Self::OAuth2(plan) => plan.templates().collect(),
        };
        templates.into_iter().flat_map(Template::secrets)
    }

    /// Adds the credentials to a request. An OAuth2 token is fetched first and added by [`bearer`].
    pub(super) fn apply(
        &self,
        outgoing: &mut OutgoingRequest,
        call: &CallContext,
        values: &Values<'_>,
        now: Timestamp,
    ) -> Result<(), CallError> {
        match self {
            Self::Bearer(token) => {
                bearer(outgoing, &secret(token, EscapeContext::Header("authorization"), call, values)?)
            }
            Self::Basic { username, password } => {
                let username = secret(username, EscapeContext::Text, call, values)?;
                let password = secret(password, EscapeContext::Text, call, values)?;
                let pair = Secret::new(format!("{}:{}", username.expose(), password.expose()));
                let encoded = Secret::new(STANDARD.encode(pair.expose()));
                call.hide(encoded.clone());
                authorise(outgoing, AUTHORIZATION, &Secret::new(format!("Basic {}", encoded.expose())))
            }
            Self::Header(name, key) => {
                let key = secret(key, EscapeContext::Header(name.as_str()), call, values)?;
                authorise(outgoing, name.clone(), &key)
            }
            Self::Query(name, key) => {
                let key = secret(key, EscapeContext::Text, call, values)?;
                let mut query = outgoing.url.query().unwrap_or_default().to_owned();
                push_pair(name, key.expose(), &mut query);
                outgoing.url.set_query(Some(&query));
                Ok(())
            }
            Self::Hmac(signature) => {
                let key = secret(&signature.key, EscapeContext::Text, call, values)?;
                sign(signature, &key, outgoing, now)
            }
            Self::OAuth2(_) => Ok(()),
        }
    }
}

/// Adds a bearer token.
pub(super) fn bearer(outgoing: &mut OutgoingRequest, token: &Secret) -> Result<(), CallError> {
    authorise(outgoing, AUTHORIZATION, &Secret::new(format!("Bearer {}", token.expose())))
}

fn sign(
    signature: &Signature,
    key: &Secret,
    outgoing: &mut OutgoingRequest,
    now: Timestamp,
) -> Result<(), CallError> {
    let timestamp = now.as_second().to_string();
    let value = signature.sign(
        key.expose().as_bytes(),
        &SignedParts {
            method: outgoing.method.as_str(),
            path: outgoing.url.path(),
            query: outgoing.url.query().unwrap_or_default(),
            timestamp: &timestamp,
            body: outgoing.body.as_deref().unwrap_or_default(),
        },
    );
    if let Some(name) = &signature.timestamp_header {
        outgoing.headers.insert(name.clone(), HeaderValue::from(now.as_second()));
    }
    authorise(outgoing, signature.header.clone(), &Secret::new(value))
}

/// Sets a header that is not logged.
fn authorise(outgoing: &mut OutgoingRequest, name: HeaderName, value: &Secret) -> Result<(), CallError> {
    let mut value = header_value(&name, value.expose())?;
    value.set_sensitive(true);
    outgoing.headers.insert(name, value);
    Ok(())
}

/// Renders a template of a credential, which is redacted in the outcome.
pub(super) fn secret(
    template: &Template,
    context: EscapeContext<'_>,
    call: &CallContext,
    values: &Values<'_>,
) -> Result<Secret, CallError> {
    let rendered = template.render(context, values)?;
    let secret = Secret::new(rendered.text);
    if rendered.secret {
        call.hide(secret.clone());
    }
    Ok(secret)
}
