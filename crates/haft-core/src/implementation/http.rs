//! The settings of HTTP tools: requests, steps, authentication.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which template notation the strings of an implementation use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notation {
    /// `${name}`: a declared argument, else a secret, else `${version}`.
    #[default]
    Dollar,
    /// `{{name}}` for arguments, `${NAME}` for secrets only.
    Braces,
}

impl Notation {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_default(&self) -> bool {
        *self == Self::Dollar
    }
}

/// One HTTP request, or `steps` of several.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Http {
    /// The only request, or what every step starts from.
    #[serde(flatten)]
    pub request: HttpRequest,
    /// Several requests, in order; a later one reads `steps.NAME` of an earlier one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<HttpStep>,
    /// How long one attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What a failure becomes.
    #[serde(skip_serializing_if = "ErrorMode::is_default")]
    pub error_mode: ErrorMode,
    /// How requests prove who sends them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Which notation the templates use.
    #[serde(skip_serializing_if = "Notation::is_default")]
    pub templates: Notation,
}

impl Http {
    /// Returns how long one attempt may take.
    pub fn timeout(&self) -> Duration {
        self.timeout_ms.map_or(Duration::from_secs(10), Duration::from_millis)
    }
}

/// What one request says and how its answer is read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpRequest {
    /// The method; `GET` where none is named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// The URL template; it starts with `http://` or `https://`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Query parameters, each value a template.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub query: Map<String, Value>,
    /// How lists and maps are spelled, by the name of the query parameter or form field; those that are not named
    /// are repeated once per item.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub styles: BTreeMap<String, ParamStyle>,
    /// How an argument that is a list or a map is spelled where it stands in the URL or in a header, by the name of
    /// the argument; those that are not named are JSON.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub text_styles: BTreeMap<String, TextStyle>,
    /// The query parameters and form fields whose values keep the reserved characters that cannot end them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_reserved: Vec<String>,
    /// Header templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body: a string is a text template, anything else a structure whose strings are templates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Whether no body, and no content type, is sent where none of the body's values was given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional_body: bool,
    /// Which status codes are a success; empty means 200 to 299.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub success_codes: Vec<u16>,
    /// How the answer is read; `None` means by its content type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseEncoding>,
    /// What is taken of the answer: a `JSONPath` (starts with `$`) or a regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract: Option<String>,
}

/// How a list or a map is spelled in a query or a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParamStyle {
    /// `a=1,2`; a map is `a=key,value,key,value`.
    Comma,
    /// `a=1%202`.
    Space,
    /// `a=1|2`.
    Pipe,
    /// `a[key]=value`, to any depth.
    DeepObject,
    /// `key=value`: the entries of a map stand for themselves.
    Spread,
    /// One JSON text.
    Json,
}

impl ParamStyle {
    /// Every style.
    pub const ALL: [ParamStyle; 6] =
        [Self::Comma, Self::Space, Self::Pipe, Self::DeepObject, Self::Spread, Self::Json];

    /// Returns the spelling used in every dialect.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Comma => "comma",
            Self::Space => "space",
            Self::Pipe => "pipe",
            Self::DeepObject => "deep_object",
            Self::Spread => "spread",
            Self::Json => "json",
        }
    }
}

/// How a list or a map is spelled within a text: a path or a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextStyle {
    /// `1,2`; a map is `key,value,key,value`.
    Comma,
    /// `1,2`; a map is `key=value,key=value`.
    Pairs,
    /// `1.2`; a map is `key=value.key=value`.
    Dot,
    /// What stands before it from the last `;` is repeated: `;a=` is `;a=1;a=2`. A map after `;` is
    /// `key=value;key=value`.
    Semicolon,
}

impl TextStyle {
    /// Every style.
    pub const ALL: [TextStyle; 4] = [Self::Comma, Self::Pairs, Self::Dot, Self::Semicolon];

    /// Returns the spelling used in every dialect.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Comma => "comma",
            Self::Pairs => "pairs",
            Self::Dot => "dot",
            Self::Semicolon => "semicolon",
        }
    }
}

/// One request of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpStep {
    /// The name under which later steps read its value.
    pub name: String,
    /// The request.
    #[serde(flatten)]
    pub request: HttpRequest,
}

/// How an answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseEncoding {
    /// As JSON; anything else is an error.
    Json,
    /// As text.
    Text,
}

/// What a failed request becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorMode {
    /// A failed call.
    #[default]
    Fail,
    /// The value `null`.
    Empty,
}

impl ErrorMode {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_default(&self) -> bool {
        *self == Self::Fail
    }
}

/// How requests prove who sends them. Every text is a template, so that it can name a secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", expecting = "an object")]
pub enum Auth {
    /// `Authorization: Bearer TOKEN`.
    Bearer {
        /// The token.
        token: String,
    },
    /// `Authorization: Basic …`.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: String,
    },
    /// A key in a header or in the query.
    ApiKey {
        /// The name of the header or parameter.
        name: String,
        /// The key.
        value: String,
        /// Where it goes.
        #[serde(rename = "in", default)]
        place: ApiKeyLocation,
    },
    /// A signature over the request.
    Hmac(HmacAuth),
    /// An access token of an authorisation server.
    Oauth2(OAuth2),
}

/// Where an API key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiKeyLocation {
    /// Into a header.
    #[default]
    Header,
    /// Into the query.
    Query,
}

/// A signature over the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HmacAuth {
    /// The key.
    pub key: String,
    /// The hash: `sha256` or `sha512`.
    #[serde(default = "sha256")]
    pub algorithm: String,
    /// The header that carries the signature.
    #[serde(default = "signature_header")]
    pub header: String,
    /// What stands before the signature, such as `sha256=`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// How the signature is spelled: `hex` or `base64`.
    #[serde(default = "hex")]
    pub encoding: String,
    /// What is signed, with `{method}`, `{path}`, `{query}`, `{timestamp}` and `{body}` put in.
    #[serde(default = "signed_body")]
    pub sign: String,
    /// The header that carries the Unix time, where the other side wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_header: Option<String>,
}

fn sha256() -> String {
    "sha256".to_owned()
}

fn signature_header() -> String {
    "X-Signature".to_owned()
}

fn hex() -> String {
    "hex".to_owned()
}

fn signed_body() -> String {
    "{body}".to_owned()
}

/// An access token of an authorisation server, fetched once and refreshed by one caller at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OAuth2 {
    /// Where tokens come from.
    pub token_url: String,
    /// Who asks.
    pub client_id: String,
    /// The proof of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client_secret: String,
    /// With it the grant is `refresh_token`, without it `client_credentials`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// What is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// For whom the token is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}
