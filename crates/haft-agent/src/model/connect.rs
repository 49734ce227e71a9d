//! Creates a model from its settings.

use std::sync::Arc;

use haft_core::problem::excerpt;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::egress::ModelEgress;
use super::error::{ModelError, ModelErrorKind};
use super::exchange::Endpoint;
use super::http_model::HttpModel;
use super::provider::{Provider, ProviderChoice, WireFormat};
use super::retrying::Retrying;
use super::script::Scripted;
use super::settings::ModelSettings;
use super::stream::Model;
use super::text_tools::TextTools;
use super::wire::{Anthropic, Chat, Gemini, Responses, Target, Wire};

/// The maximum length of a name.
const MAX_NAME_LENGTH: usize = 256;

/// Headers that haft sets itself, or that would change how the request is read.
const RESERVED_HEADERS: [&str; 8] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "te",
    "transfer-encoding",
];

/// Creates a model. Nothing is sent before the first request.
pub fn connect(settings: &ModelSettings, egress: &ModelEgress) -> Result<Arc<dyn Model>, ModelError> {
    let shown = excerpt(settings.name.trim(), 100);
    let invalid = |detail: String| ModelError::new(ModelErrorKind::Settings, shown.clone(), detail);
    let choice = choose(settings).map_err(&invalid)?;
    let mut model: Arc<dyn Model> = match wire(choice.provider, settings) {
        Some(wire) => Arc::new(http_model(settings, egress, choice, wire).map_err(&invalid)?),
        None => Arc::new(Scripted::new(choice.name, settings.script.clone().unwrap_or_default())),
    };
    if settings.text_tools {
        model = Arc::new(TextTools::new(model));
    }
    if settings.retries.attempts > 0 {
        model = Arc::new(Retrying::new(model, settings.retries));
    }
    Ok(model)
}

fn choose(settings: &ModelSettings) -> Result<ProviderChoice, String> {
    let name = settings.name.trim();
    if name.is_empty() || name.len() > MAX_NAME_LENGTH || name.chars().any(char::is_control) {
        return Err(format!("`name`: expected 1 to {MAX_NAME_LENGTH} printable characters"));
    }
    if let Some(timeout) = settings.timeouts.invalid() {
        return Err(format!("`timeouts.{timeout}`: expected more than zero and at most a day"));
    }
    if let Some((price, value)) = settings.prices.as_ref().and_then(super::price::Prices::invalid) {
        return Err(format!("`prices.{price}`: {value} is not a price; expected a number of at least 0"));
    }
    ProviderChoice::new(settings.provider, name, settings.base_url.is_some()).ok_or_else(|| {
        format!(
            "the provider of `{}` is unknown; set `provider` ({}), `base_url`, or a name such as `ollama/llama3.2`",
            excerpt(name, 100),
            Provider::ALL.map(Provider::as_str).join(", ")
        )
    })
}

fn wire(provider: Provider, settings: &ModelSettings) -> Option<Box<dyn Wire>> {
    Some(match provider.format() {
        WireFormat::Chat => Box::new(Chat { provider }),
        WireFormat::Responses => Box::new(Responses),
        WireFormat::Messages => Box::new(Anthropic { caching: settings.prompt_caching }),
        WireFormat::Gemini => Box::new(Gemini),
        WireFormat::Script => return None,
    })
}

fn http_model(
    settings: &ModelSettings,
    egress: &ModelEgress,
    choice: ProviderChoice,
    wire: Box<dyn Wire>,
) -> Result<HttpModel, String> {
    let ProviderChoice { provider, name } = choice;
    let key = settings.credential.as_ref().filter(|key| !key.expose().trim().is_empty());
    if key.is_none() && provider.requires_key() && settings.base_url.is_none() {
        return Err(format!("missing credential: {provider} answers only with an API key"));
    }
    let target = Target { model: &name, streaming: settings.streaming };
    let url = url(settings, provider, &wire.path(target))?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let accepted =
        if settings.streaming { "text/event-stream, application/json" } else { "application/json" };
    headers.insert(ACCEPT, HeaderValue::from_static(accepted));
    for (header, value) in wire.headers(key) {
        let message = || "credential: contains characters that a header cannot carry".to_owned();
        headers.insert(header, header_value(value.expose()).ok_or_else(message)?);
    }
    let mut secrets: Vec<_> = key.into_iter().cloned().collect();
    for (header, value) in &settings.headers {
        let field = format!("`headers.{}`", excerpt(header, 60));
        let parsed =
            HeaderName::from_bytes(header.as_bytes()).map_err(|_| format!("{field}: invalid name"))?;
        if RESERVED_HEADERS.contains(&parsed.as_str()) {
            return Err(format!("{field}: reserved; remove it"));
        }
        let parsed_value = header_value(value.expose()).ok_or_else(|| format!("{field}: invalid value"))?;
        headers.insert(parsed, parsed_value);
        if value.expose().len() >= 8 {
            secrets.push(value.clone());
        }
    }
    let endpoint = Endpoint {
        model: name.clone(),
        egress: egress.guard(&url, settings.configured_by).clone(),
        clock: Arc::clone(&egress.clock),
        url,
        headers,
        timeouts: settings.timeouts,
        prices: settings.prices.clone(),
        secrets,
        provider,
    };
    Ok(HttpModel { name, streaming: settings.streaming, wire, endpoint: Arc::new(endpoint) })
}

/// Returns a header that is neither logged nor sent to another origin.
fn header_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text.trim()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Joins the base URL and the path of the wire format.
fn url(settings: &ModelSettings, provider: Provider, path: &str) -> Result<Url, String> {
    let base = match (&settings.base_url, provider.default_url()) {
        (Some(base), _) => base.trim(),
        (None, Some(base)) => base,
        (None, None) => return Err(format!("missing `base_url`: {provider} has no default address")),
    };
    let invalid = || format!("`base_url`: `{}` is not an `http` or `https` URL", excerpt(base, 100));
    let parsed = Url::parse(base).map_err(|_| invalid())?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err(invalid());
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("`base_url`: contains a user name or password; use the credential instead".to_owned());
    }
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut url = parsed;
    let joined = format!("{}/{path}", url.path().trim_end_matches('/'));
    url.set_path(&joined);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        url.query_pairs_mut().append_pair(name, value);
    }
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use haft_core::secret::Secret;
    use haft_executors::egress::EgressRules;
    use haft_runtime::clock::SystemClock;

    use super::*;
    use crate::model::{Prices, Timeouts};

    fn error(change: impl FnOnce(&mut ModelSettings)) -> String {
        let mut settings = ModelSettings::new("gpt-5");
        settings.credential = Some(Secret::new("sk-123456789".to_owned()));
        change(&mut settings);
        let egress = ModelEgress::new(&EgressRules::default(), &[], Arc::new(SystemClock)).unwrap();
        let message = connect(&settings, &egress).map_or_else(|error| error.to_string(), |_| "ok".to_owned());
        assert!(!format!("{message} {settings:?}").contains("sk-123456789"));
        message
    }

    #[test]
    fn invalid_settings_name_the_field() {
        assert_eq!(error(|_| {}), "ok");
        assert_eq!(error(|s| s.name = " ".to_owned()), ": `name`: expected 1 to 256 printable characters");
        assert!(error(|s| s.name = "llama3.2".to_owned()).starts_with(
            "llama3.2: the provider of `llama3.2` is unknown; set `provider` (openai, openai_chat,"
        ));
        assert_eq!(
            error(|s| s.credential = None),
            "gpt-5: missing credential: openai answers only with an API key"
        );
        assert_eq!(
            error(|s| s.credential = Some(Secret::new("sk-1\nx".to_owned()))),
            "gpt-5: credential: contains characters that a header cannot carry"
        );
        assert_eq!(
            error(|s| s.base_url = Some("localhost:11434".to_owned())),
            "gpt-5: `base_url`: `localhost:11434` is not an `http` or `https` URL"
        );
        assert_eq!(
            error(|s| s.base_url = Some("https://a:b@x.test".to_owned())),
            "gpt-5: `base_url`: contains a user name or password; use the credential instead"
        );
        assert_eq!(
            error(|s| s.provider = Some(Provider::OpenAiCompatible)),
            "gpt-5: missing `base_url`: openai_compatible has no default address"
        );
        assert_eq!(
            error(|s| s.timeouts = Timeouts { idle: std::time::Duration::ZERO, ..Timeouts::default() }),
            "gpt-5: `timeouts.idle`: expected more than zero and at most a day"
        );
        assert_eq!(
            error(|s| s.prices = Some(Prices::new(-1.0, 0.0))),
            "gpt-5: `prices.input`: -1 is not a price; expected a number of at least 0"
        );
        let header = |name: &str, value: &str| {
            error(|s| s.headers = BTreeMap::from([(name.to_owned(), Secret::new(value.to_owned()))]))
        };
        assert_eq!(header("X-Title", "haft"), "ok");
        assert_eq!(header("Host", "x"), "gpt-5: `headers.Host`: reserved; remove it");
        assert_eq!(header("a b", "x"), "gpt-5: `headers.a b`: invalid name");
        assert_eq!(header("x-a", "1\r\n2"), "gpt-5: `headers.x-a`: invalid value");
    }

    #[test]
    fn addresses_are_joined() {
        for (base, path, expected) in [
            ("https://x.test/v1", "chat/completions", "https://x.test/v1/chat/completions"),
            ("https://x.test/v1/", "chat/completions", "https://x.test/v1/chat/completions"),
            ("https://x.test", "responses", "https://x.test/responses"),
            (
                "https://x.test/openai?api-version=1",
                "models/a:stream?alt=sse",
                "https://x.test/openai/models/a:stream?api-version=1&alt=sse",
            ),
        ] {
            let mut settings = ModelSettings::new("m");
            settings.base_url = Some(base.to_owned());
            assert_eq!(url(&settings, Provider::OpenAi, path).unwrap().as_str(), expected);
        }
    }
}
