//! The definition and the function of `web_search`.

use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_executors::egress::Egress;
use haft_executors::http::{OverflowPolicy, exchange};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::access::{self, DefinitionConfig};
use super::provider::{Provider, Query};
use crate::settings::PlatformSettings;
use crate::tool::{BuiltIn, Describe, describe, invalid};

/// The maximum size of a response.
const MAX_RESPONSE_BYTES: u64 = 2 * 1024 * 1024;
/// The default and the maximum number of results.
const DEFAULT_COUNT: usize = 10;
const MAX_COUNT: usize = 50;

pub(crate) fn spec() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: "web_search",
        description: "Search the web, for recent events or facts that you do not know. Use web_fetch to read a result. \
                      Returns {provider, results}; each result has title, url and snippet, best match first.",
        category: "web",
        tags: &["web", "search", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "The search query"},
                "count": {"type": "integer", "minimum": 1, "maximum": MAX_COUNT, "description": "The number of results. Default: 10"},
                "provider": {"enum": ["serper", "brave", "searxng"], "description": "The search provider. Default: the configured one"},
            },
            "required": ["query"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {
                "provider": {"type": "string"},
                "results": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"title": {"type": "string"}, "url": {"type": "string"}, "snippet": {"type": "string"}},
                        "required": ["title", "url", "snippet"],
                    },
                },
            },
            "required": ["provider", "results"],
        }),
    })?;
    spec.network = true;
    spec.execution.timeout_ms = Some(30_000);
    Ok(spec)
}

/// The function of `web_search`.
#[derive(Clone)]
pub(crate) struct WebSearch {
    egress: Egress,
    platform: PlatformSettings,
    config: DefinitionConfig,
}

impl WebSearch {
    pub(crate) fn new(egress: Egress, platform: PlatformSettings) -> Self {
        Self { egress, platform, config: DefinitionConfig::default() }
    }
}

#[derive(Deserialize)]
pub(crate) struct Args {
    query: String,
    count: Option<usize>,
    provider: Option<String>,
}

impl BuiltIn for WebSearch {
    type Args = Args;

    fn with_config(&self, config: &Map<String, Value>) -> Option<Result<Self, Problem>> {
        Some(DefinitionConfig::parse(config).map(|config| Self { config, ..self.clone() }))
    }

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        if args.query.trim().is_empty() {
            return Err(invalid("`query` is empty"));
        }
        let count = args.count.unwrap_or(DEFAULT_COUNT).clamp(1, MAX_COUNT);
        let requested = args.provider.as_deref().and_then(Provider::parse);
        let access = access::find(call, &self.config, &self.platform, requested).await?;
        let query = Query { text: args.query.trim(), count };
        let request = access.provider.request(&access.endpoint, access.key.as_ref(), query)?;
        let response =
            exchange(&self.egress, call, request, MAX_RESPONSE_BYTES, OverflowPolicy::Fail).await?;
        if !response.status.is_success() {
            return Err(response.to_error(call));
        }
        let provider = access.provider.as_str();
        let body: Value = serde_json::from_str(&response.text()).map_err(|_| {
            let hint = match access.provider {
                Provider::Searxng => "; enable the `json` format (`search.formats` in its settings)",
                Provider::Serper | Provider::Brave => "",
            };
            let message = format!("the response of `{provider}` is not valid JSON{hint}");
            CallError::new(ErrorCode::InvalidResponse, message)
                .for_model("the search provider returned an invalid response")
        })?;
        Ok(json!({"provider": provider, "results": access.provider.results(&body, count)}))
    }
}
