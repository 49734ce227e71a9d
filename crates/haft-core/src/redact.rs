//! Literal secrets in definitions: masked when read, and preserved when the mask is written back.
//!
//! A user who can write a definition may not be allowed to see its secrets. A mask therefore means the stored
//! value only as long as the value is sent to the same server; for another URL the secret has to be entered again.

mod address;
mod literals;
mod server;

pub use literals::literal_secrets;
pub use server::{CredentialLiteral, RedactedServer, redact_transport};

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::implementation::Implementation;
use crate::secret::MASK;
use crate::spec::ToolSpec;

/// Parts of a key that mark its value as secret, ignoring `-`, `_` and case.
const SENSITIVE: [&str; 9] = [
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
    "cookie",
    "credential",
    "privatekey",
];
/// Additional suffixes that mark a header or query parameter as secret.
const SENSITIVE_SUFFIXES: [&str; 5] = ["key", "auth", "signature", "session", "sig"];
/// Authentication schemes that precede a credential.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];
/// Keys whose values are URLs.
const URL_KEYS: [&str; 3] = ["url", "token_url", "server_url"];
/// Keys that look sensitive but are not.
const NOT_SENSITIVE: [&str; 5] =
    ["tokenurl", "maxtokens", "credentialsref", "credentialref", "tokenendpoint"];

/// Returns the spec with every literal secret of its implementation masked.
pub fn masked(spec: &ToolSpec) -> ToolSpec {
    let mut copy = spec.clone();
    if let Ok(mut value) = serde_json::to_value(&spec.implementation)
        && mask(&mut value, Context::default())
        && let Ok(implementation) = serde_json::from_value::<Implementation>(value)
    {
        copy.implementation = implementation;
    }
    copy
}

/// Returns whether a spec contains a literal secret, that is, whether [`masked`] would change it.
pub fn has_literal_secret(spec: &ToolSpec) -> bool {
    serde_json::to_value(&spec.implementation).is_ok_and(|mut value| mask(&mut value, Context::default()))
}

/// Restores masked secrets: `***` in a field means the stored value of that field, as long as it is sent to the same
/// server as before. Steps are matched by name.
///
/// Returns the fields for which there is no such value.
pub fn restore(spec: &mut ToolSpec, earlier: Option<&ToolSpec>) -> Vec<String> {
    let Ok(mut value) = serde_json::to_value(&spec.implementation) else { return Vec::new() };
    let before = earlier
        .filter(|earlier| earlier.implementation.kind() == spec.implementation.kind())
        .and_then(|earlier| serde_json::to_value(&earlier.implementation).ok());
    let trust = Trust::between(&value, before.as_ref());
    let mut unmask = Unmask::default();
    if let Value::Object(map) = &mut value {
        for (key, item) in map {
            let place = format!("implementation.{key}");
            let earlier = before.as_ref().and_then(|before| before.get(key));
            match (key.as_str(), item) {
                ("steps", Value::Array(steps)) => unmask.steps(steps, earlier, &trust),
                ("auth", item) => unmask.value(item, earlier.filter(|_| trust.auth), &place),
                (key, item) => unmask.entry(key, item, earlier.filter(|_| trust.all), &place),
            }
        }
    }
    if unmask.changed
        && let Ok(implementation) = serde_json::from_value::<Implementation>(value)
    {
        spec.implementation = implementation;
    }
    unmask.lost
}

#[derive(Clone, Copy, Default)]
struct Context {
    /// Whether the key marks the value as secret.
    sensitive: bool,
    /// Whether the map is the `auth` of an HTTP tool, whose `value` and `key` are secret too.
    auth: bool,
    /// Whether the map holds headers or query parameters.
    parameters: bool,
}

fn mask(value: &mut Value, context: Context) -> bool {
    match value {
        Value::String(text) => {
            let hide = context.sensitive && is_literal(text);
            if hide {
                MASK.clone_into(text);
            }
            hide
        }
        Value::Array(items) => {
            items.iter_mut().filter_map(|item| mask(item, context).then_some(())).count() > 0
        }
        Value::Object(map) => mask_map(map, context),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn mask_map(map: &mut Map<String, Value>, context: Context) -> bool {
    let mut any = false;
    for (key, item) in map.iter_mut() {
        if let (true, Value::String(text)) = (URL_KEYS.contains(&key.as_str()), &mut *item)
            && let Some(masked) = address::masked(text)
        {
            *text = masked;
            any = true;
            continue;
        }
        let sensitive = context.sensitive
            || is_sensitive(key)
            || (context.parameters && is_sensitive_parameter(key))
            || (context.auth && matches!(key.as_str(), "value" | "key"));
        let parameters = matches!(key.as_str(), "headers" | "query");
        any |= mask(item, Context { sensitive, auth: key == "auth", parameters });
    }
    any
}

fn plain(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Returns whether a key suggests that its value is secret, such as `api_key` or `password`.
pub fn is_sensitive(key: &str) -> bool {
    let plain = plain(key);
    !NOT_SENSITIVE.contains(&plain.as_str()) && SENSITIVE.iter().any(|part| plain.contains(part))
}

/// Returns whether a header or parameter of this name carries a secret.
pub fn is_sensitive_parameter(name: &str) -> bool {
    let plain = plain(name);
    is_sensitive(name) || SENSITIVE_SUFFIXES.iter().any(|end| plain.ends_with(end))
}

/// Prefixes of the keys of known services.
const KEY_PREFIXES: [&str; 18] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "gsk_",
    "xai-",
    "hf_",
    "pplx-",
    "AIza",
    "AKIA",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "eyJ",
];
/// Names of credentials are words; a longer run of letters and digits is a key.
const MIN_KEY_LENGTH: usize = 24;

/// Returns whether the name of a credential looks like the key itself.
pub fn looks_like_key(text: &str) -> bool {
    let text = text.trim();
    let is_known =
        KEY_PREFIXES.iter().any(|prefix| text.len() > prefix.len() + 4 && text.starts_with(prefix));
    let is_random = |run: &str| {
        let digits = run.chars().filter(char::is_ascii_digit).count();
        run.len() >= MIN_KEY_LENGTH && digits >= 4 && digits < run.len()
    };
    is_known
        || text.split_once(' ').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        || text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_random)
}

/// Returns whether a text may contain a literal secret. References such as `${TOKEN}` and authentication schemes such
/// as `Bearer` are not secret.
fn is_literal(text: &str) -> bool {
    let mut rest = text;
    loop {
        let start = [rest.find("${"), rest.find("{{")].into_iter().flatten().min();
        let Some((before, reference)) = start.and_then(|at| rest.split_at_checked(at)) else {
            return has_secret_word(rest);
        };
        // `name=${VALUE}`, such as in a cookie.
        let named = before.strip_suffix('=').map(|before| {
            before.trim_end_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        });
        if has_secret_word(named.unwrap_or(before)) {
            return true;
        }
        let end = if reference.starts_with("${") { "}" } else { "}}" };
        let Some((_, after)) = reference.split_once(end) else { return true };
        rest = after;
    }
}

fn has_secret_word(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.into_iter().any(|word| !SCHEMES.contains(&word.to_ascii_lowercase().as_str()))
}

/// Which stored values are still sent to the same server.
struct Trust {
    /// Values that all requests share.
    all: bool,
    /// The authentication.
    auth: bool,
    /// The default URL of the steps, now and before.
    base: (String, String),
}

impl Trust {
    fn between(now: &Value, before: Option<&Value>) -> Self {
        let Some(before) = before else {
            return Self { all: false, auth: false, base: Default::default() };
        };
        let same = |key: &str| now.get(key).map(address) == before.get(key).map(address);
        // The key of a function is valid for one provider only.
        let called = |value: &Value| {
            let of_function = value.get("type").is_some_and(|kind| kind == "function");
            of_function.then(|| (value.get("function").cloned(), value.pointer("/config/provider").cloned()))
        };
        let all = origins(now).is_subset(&origins(before))
            && same("server_url")
            && same("server")
            && called(now) == called(before);
        let token = |value: &Value| value.pointer("/auth/token_url").map(address);
        Self { all, auth: all && token(now) == token(before), base: (url(now), url(before)) }
    }

    /// Returns whether a step still sends its request to the same server.
    fn step(&self, now: &Value, before: &Value) -> bool {
        let own = |step: &Value, base: &str| match url(step) {
            own if own.is_empty() => address::origin(base),
            own => address::origin(&own),
        };
        own(now, &self.base.0) == own(before, &self.base.1)
    }
}

fn address(value: &Value) -> String {
    address::origin(value.as_str().unwrap_or_default())
}

fn url(request: &Value) -> String {
    request.get("url").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the origins that the requests of a tool are sent to.
fn origins(tool: &Value) -> HashSet<String> {
    let base = url(tool);
    let steps = tool.get("steps").and_then(Value::as_array).filter(|steps| !steps.is_empty());
    match steps {
        None => HashSet::from([address::origin(&base)]),
        Some(steps) => steps
            .iter()
            .map(url)
            .map(|own| address::origin(if own.is_empty() { &base } else { &own }))
            .collect(),
    }
}

/// Replaces masks by stored values.
#[derive(Default)]
struct Unmask {
    changed: bool,
    lost: Vec<String>,
}

impl Unmask {
    fn steps(&mut self, steps: &mut [Value], earlier: Option<&Value>, trust: &Trust) {
        for (index, step) in steps.iter_mut().enumerate() {
            let mut all = earlier.and_then(Value::as_array).into_iter().flatten();
            let before = all.find(|before| before.get("name") == step.get("name"));
            let before = before.filter(|before| trust.step(step, before));
            self.value(step, before, &format!("implementation.steps[{index}]"));
        }
    }

    fn entry(&mut self, key: &str, item: &mut Value, earlier: Option<&Value>, place: &str) {
        let (true, Value::String(text)) = (URL_KEYS.contains(&key), &mut *item) else {
            return self.value(item, earlier, place);
        };
        match address::restored(text, earlier.and_then(Value::as_str)) {
            address::Restored::Unchanged => {}
            address::Restored::Whole(whole) => {
                *text = whole;
                self.changed = true;
            }
            address::Restored::Lost => self.lost.push(place.to_owned()),
        }
    }

    fn value(&mut self, value: &mut Value, earlier: Option<&Value>, place: &str) {
        match value {
            Value::String(text) if text == MASK => match earlier {
                Some(before @ Value::String(_)) => {
                    *value = before.clone();
                    self.changed = true;
                }
                _ => self.lost.push(place.to_owned()),
            },
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let before = earlier.and_then(|list| list.get(index));
                    self.value(item, before, &format!("{place}[{index}]"));
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    let before = earlier.and_then(|map| map.get(key));
                    self.entry(key, item, before, &format!("{place}.{key}"));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
