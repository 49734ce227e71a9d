//! Reads HTTP implementations of all dialects.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::execution;
use super::fields::{Fields, item_path, unknown};
use haft_core::implementation::{
    ApiKeyLocation, Auth, ErrorMode, HmacAuth, Http, HttpRequest, HttpStep, Notation, OAuth2, ParamStyle,
    ResponseEncoding, TextStyle,
};
use haft_core::problem::excerpt;
use haft_core::secret::{ExternalReference, SourceKind};

/// Reads all fields except the type.
pub(super) fn read(fields: &mut Fields<'_>, notation: Notation) -> Http {
    let request = request(fields);
    let mut steps = Vec::new();
    for mut step in fields.nested_list("steps").unwrap_or_default() {
        let name = step.required_text("name", "the name by which later steps refer to its value");
        let request = self::request(&mut step);
        steps.extend(name.map(|name| HttpStep { name, request }));
    }
    let modes = [("fail", ErrorMode::Fail), ("empty", ErrorMode::Empty)];
    let notations = [("dollar", Notation::Dollar), ("braces", Notation::Braces)];
    Http {
        request,
        steps,
        timeout_ms: timeout(fields),
        error_mode: fields.choice("error_mode", &modes).unwrap_or_default(),
        auth: auth(fields),
        templates: fields.choice("templates", &notations).unwrap_or(notation),
    }
}

fn timeout(fields: &mut Fields<'_>) -> Option<u64> {
    execution::timeout(fields)
}

fn request(fields: &mut Fields<'_>) -> HttpRequest {
    let encodings = [
        ("json", ResponseEncoding::Json),
        ("text", ResponseEncoding::Text),
        ("graphql", ResponseEncoding::Graphql),
    ];
    HttpRequest {
        method: fields.text("method").unwrap_or_default(),
        url: fields.alias(&["url", "url_template"]).and_then(|key| fields.text(key)).unwrap_or_default(),
        query: fields.object("query").unwrap_or_default(),
        styles: styles(fields, "styles", &ParamStyle::ALL.map(|style| (style.as_str(), style))),
        text_styles: styles(fields, "text_styles", &TextStyle::ALL.map(|style| (style.as_str(), style))),
        allow_reserved: fields.texts("allow_reserved").unwrap_or_default(),
        headers: fields.text_map("headers").unwrap_or_default(),
        body: body(fields),
        files: fields.texts("files").unwrap_or_default(),
        optional_body: fields.flag("optional_body").unwrap_or_default(),
        success_codes: success_codes(fields),
        response: fields
            .alias(&["response", "response_encoding"])
            .and_then(|key| fields.choice(key, &encodings)),
        extract: fields.alias(&["extract", "extract_expr"]).and_then(|key| fields.text(key)),
    }
}

fn styles<T: Copy>(
    fields: &mut Fields<'_>,
    key: &'static str,
    known: &[(&'static str, T)],
) -> BTreeMap<String, T> {
    let mut styles = BTreeMap::new();
    for (name, text) in fields.text_map(key).unwrap_or_default() {
        if let Some((_, style)) = known.iter().find(|(word, _)| *word == text) {
            styles.insert(name, *style);
        } else {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            fields.error(
                &format!("{key}.{}", excerpt(&name, 60)),
                "invalid_value",
                unknown("value", &text, &words),
            );
        }
    }
    styles
}

fn body(fields: &mut Fields<'_>) -> Option<Value> {
    if fields.has("body_template") {
        fields.alias(&["body_template", "body"]);
        // In `tool.json` an empty template means no body.
        return fields.text("body_template").filter(|text| !text.is_empty()).map(Value::String);
    }
    fields.ignore(&["body_template"]);
    fields.value("body")
}

fn success_codes(fields: &mut Fields<'_>) -> Vec<u16> {
    let Some(key) = fields.alias(&["success_codes"]) else { return Vec::new() };
    let mut codes = Vec::new();
    for (index, code) in fields.list(key).unwrap_or_default().into_iter().enumerate() {
        match code.as_u64().and_then(|code| u16::try_from(code).ok()) {
            Some(code) => codes.push(code),
            None => {
                fields.error(&item_path(key, index), "wrong_type", "expected a status code such as 200");
            }
        }
    }
    codes
}

fn auth(fields: &mut Fields<'_>) -> Option<Auth> {
    let credential = fields.alias(&["credential", "credentials_ref"]).and_then(|key| fields.text(key));
    let mut auth = match (fields.nested("auth"), &credential) {
        (Some(auth), _) => auth,
        (None, Some(_)) => Fields::new(fields.path("auth"), Map::new(), fields.report()),
        (None, None) => return None,
    };
    let own = auth.alias(&["credential", "credentials_ref"]).and_then(|key| auth.text(key));
    if let Some(name) = own.or(credential) {
        use_credential(&mut auth, &name);
    }
    let kinds = [("bearer", 0), ("basic", 1), ("api_key", 2), ("hmac", 3), ("oauth2", 4)];
    if !auth.has("type") {
        auth.missing("type", "`bearer`, `basic`, `api_key`, `hmac` or `oauth2`");
    }
    let Some(kind) = auth.choice("type", &kinds) else {
        auth.rest();
        return None;
    };
    match kind {
        0 => Some(Auth::Bearer { token: auth.required_text("token", "the token, such as `${API_TOKEN}`")? }),
        1 => {
            let username = auth.required_text("username", "the user name");
            let password = auth.required_text("password", "the password, such as `${PASSWORD}`");
            Some(Auth::Basic { username: username?, password: password? })
        }
        2 => {
            let name = auth.required_text("name", "the name of the header or query parameter");
            let value = auth.required_text("value", "the key, such as `${API_KEY}`");
            let locations = [("header", ApiKeyLocation::Header), ("query", ApiKeyLocation::Query)];
            let location = auth.choice("in", &locations).unwrap_or_default();
            Some(Auth::ApiKey { name: name?, value: value?, location })
        }
        3 => hmac(&mut auth).map(Auth::Hmac),
        _ => oauth2(&mut auth).map(Auth::Oauth2),
    }
}

/// Fills the fields that a stored credential provides: `credential: github` is short for `token: ${github}`. A field that
/// is given stays.
fn use_credential(auth: &mut Fields<'_>, name: &str) {
    auth.put("type", "bearer".to_owned());
    let fields: &[(&str, &str)] = match auth.peek("type").and_then(Value::as_str) {
        Some("bearer") => &[("token", "")],
        Some("basic") => &[("username", "username"), ("password", "password")],
        Some("api_key") => &[("value", "")],
        Some("hmac") => &[("key", "")],
        Some("oauth2") => &[("client_id", "client_id"), ("client_secret", "client_secret")],
        _ => &[],
    };
    let external = ExternalReference::parse(name).and_then(Result::ok);
    let has_fields =
        external.is_none_or(|external| external.kind == SourceKind::Vault && external.key.is_none());
    let needed = fields.iter().filter(|(field, part)| !part.is_empty() && !auth.has(field));
    let needed: Vec<String> = needed.map(|(field, _)| format!("`{field}`")).collect();
    if !has_fields && !needed.is_empty() {
        let (name, needed) = (excerpt(name, 60), needed.join(" and "));
        let message = format!(
            "`{name}` is one text and has no {needed}; use a path of `vault:` without `#`, or write {needed} instead"
        );
        auth.error("credential", "invalid_value", message);
    }
    let separator = if external.is_some() { "#" } else { "." };
    for (field, part) in fields {
        let is_whole = part.is_empty() || !has_fields;
        let reference = if is_whole { name.to_owned() } else { format!("{name}{separator}{part}") };
        auth.put(field, format!("${{{reference}}}"));
    }
}

fn hmac(auth: &mut Fields<'_>) -> Option<HmacAuth> {
    let key = auth.required_text("key", "the key, such as `${SIGNING_KEY}`");
    let mut or = |name, default: &str| auth.text(name).unwrap_or_else(|| default.to_owned());
    let algorithm = or("algorithm", "sha256");
    let header = or("header", "X-Signature");
    let prefix = or("prefix", "");
    let encoding = or("encoding", "hex");
    let sign = or("sign", "{body}");
    let timestamp_header = auth.text("timestamp_header");
    Some(HmacAuth { key: key?, algorithm, header, prefix, encoding, sign, timestamp_header })
}

fn oauth2(auth: &mut Fields<'_>) -> Option<OAuth2> {
    let token_url = auth.required_text("token_url", "the URL of the token endpoint");
    let client_id = auth.required_text("client_id", "the client id");
    Some(OAuth2 {
        client_secret: auth.text("client_secret").unwrap_or_default(),
        refresh_token: auth.text("refresh_token"),
        scopes: auth.texts("scopes").unwrap_or_default(),
        audience: auth.text("audience"),
        token_url: token_url?,
        client_id: client_id?,
    })
}
