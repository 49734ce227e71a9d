//! The settings of HTTP tools: requests, steps, authentication.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The notation of templates in an implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = TemplateNotation))]
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
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Http {
    /// The only request, or the defaults of every step.
    #[serde(flatten)]
    pub request: HttpRequest,
    /// Several requests, in order; a later one reads `steps.NAME` of an earlier one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<HttpStep>,
    /// The timeout of one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The result of a failed request.
    #[serde(skip_serializing_if = "ErrorMode::is_default")]
    pub error_mode: ErrorMode,
    /// How requests are authenticated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// The template notation.
    #[serde(skip_serializing_if = "Notation::is_default")]
    pub templates: Notation,
}

impl Http {
    /// Returns the timeout of one attempt.
    pub fn timeout(&self) -> Duration {
        self.timeout_ms.map_or(Duration::from_secs(10), Duration::from_millis)
    }
}

/// One request, and how its response is read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct HttpRequest {
    /// The method; `GET` by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// The URL template; it starts with `http://` or `https://`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Query parameters, each value a template.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub query: Map<String, Value>,
    /// How lists and maps are serialized, by the name of the query parameter or form field; by default the parameter is
    /// repeated for each item.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub styles: BTreeMap<String, ParamStyle>,
    /// How list and map arguments are serialized in the URL path and in headers, by the name of the argument; by default
    /// as JSON.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub text_styles: BTreeMap<String, TextStyle>,
    /// The query parameters and form fields in whose values reserved characters are not percent-encoded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_reserved: Vec<String>,
    /// Header templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body: a text template, or a structure whose strings are templates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// The fields of the body whose values are files: a text, or an object with `text`, `base64`, or `path` of a file in
    /// the workspace, and optionally `name` and `media_type`. In `multipart/form-data` each is a part of its own; with
    /// another content type, the only field of the body is the file that is sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether the body and its content type are omitted if no argument of the body was given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional_body: bool,
    /// The status codes that count as success; by default 200 to 299.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub success_codes: Vec<u16>,
    /// How the response is read; by default according to its content type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseEncoding>,
    /// The part of the response to return: a `JSONPath` (starts with `$`) or a regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract: Option<String>,
}

/// How a list or map is serialized in a query or form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// `key=value`: the entries of a map are written without their parent key.
    Spread,
    /// One JSON text.
    Json,
}

impl ParamStyle {
    /// Every style.
    pub const ALL: [ParamStyle; 6] =
        [Self::Comma, Self::Space, Self::Pipe, Self::DeepObject, Self::Spread, Self::Json];

    /// Returns the name used in every dialect.
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

/// How a list or map is serialized in a path or header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum TextStyle {
    /// `1,2`; a map is `key,value,key,value`.
    Comma,
    /// `1,2`; a map is `key=value,key=value`.
    Pairs,
    /// `1.2`; a map is `key=value.key=value`.
    Dot,
    /// The text after the last `;` is repeated: `;a=` becomes `;a=1;a=2`. A map after `;` is
    /// `key=value;key=value`.
    Semicolon,
}

impl TextStyle {
    /// Every style.
    pub const ALL: [TextStyle; 4] = [Self::Comma, Self::Pairs, Self::Dot, Self::Semicolon];

    /// Returns the name used in every dialect.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Comma => "comma",
            Self::Pairs => "pairs",
            Self::Dot => "dot",
            Self::Semicolon => "semicolon",
        }
    }
}

/// One of several requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HttpStep {
    /// The name by which later steps refer to its value.
    pub name: String,
    /// The request.
    #[serde(flatten)]
    pub request: HttpRequest,
}

/// How a response is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResponseEncoding {
    /// As JSON; anything else is an error.
    Json,
    /// As text.
    Text,
    /// As the response of a GraphQL server: its `data`; `errors` fail the call.
    Graphql,
}

/// The result of a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = HttpErrorMode))]
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

/// The authentication of requests. All values are templates, so that they can refer to secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
        /// The location.
        #[serde(rename = "in", default)]
        location: ApiKeyLocation,
    },
    /// A signature over the request.
    Hmac(HmacAuth),
    /// An access token from an authorization server.
    Oauth2(OAuth2),
}

/// The location of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ApiKeyLocation {
    /// A header.
    #[default]
    Header,
    /// The query.
    Query,
}

/// A signature over the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HmacAuth {
    /// The key.
    pub key: String,
    /// The hash: `sha256` or `sha512`.
    #[serde(default = "sha256")]
    pub algorithm: String,
    /// The header that carries the signature.
    #[serde(default = "signature_header")]
    pub header: String,
    /// A prefix of the signature, such as `sha256=`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// The encoding of the signature: `hex` or `base64`.
    #[serde(default = "hex")]
    pub encoding: String,
    /// The text to sign, with the placeholders `{method}`, `{path}`, `{query}`, `{timestamp}` and `{body}`.
    #[serde(default = "signed_body")]
    pub sign: String,
    /// The header for the Unix time, if required.
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

/// OAuth 2 settings; tokens are cached and refreshed by one call at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OAuth2 {
    /// The token endpoint.
    pub token_url: String,
    /// The client id.
    pub client_id: String,
    /// The client secret.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub client_secret: String,
    /// The refresh token; without it the grant type is `client_credentials`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// The requested scopes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The audience of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}
