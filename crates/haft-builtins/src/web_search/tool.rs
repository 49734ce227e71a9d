//! The tool itself.

use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_runtime::egress::Egress;
use haft_runtime::http::{OverflowPolicy, exchange};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::access::{self, Own};
use super::provider::{Provider, Query};
use crate::settings::PlatformSettings;
use crate::tool::{BuiltIn, Describe, describe, invalid};

/// The largest answer of a service.
const MAX_ANSWER: u64 = 2 * 1024 * 1024;
/// How many hits come back where nobody says, and at most.
const USUAL_COUNT: usize = 10;
const MAX_COUNT: usize = 50;

pub(crate) fn spec() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: "web_search",
        description: "Search the web. Use it for what is new or what you do not know, then web_fetch to read a page. Returns \
                      {provider, results}, each result with title, url and snippet, best first.",
        category: "web",
        tags: &["web", "search", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "What to search for"},
                "count": {"type": "integer", "minimum": 1, "maximum": MAX_COUNT, "description": "How many results; 10 where it is left out"},
                "provider": {"enum": ["serper", "brave", "searxng"], "description": "Which service; the one that is set up where it is left out"},
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

/// Searches the web.
#[derive(Clone)]
pub(crate) struct WebSearch {
    egress: Egress,
    platform: PlatformSettings,
    /// What the definition says.
    own: Own,
}

impl WebSearch {
    pub(crate) fn new(egress: Egress, platform: PlatformSettings) -> Self {
        Self { egress, platform, own: Own::default() }
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
        Some(Own::read(config).map(|own| Self { own, ..self.clone() }))
    }

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        if args.query.trim().is_empty() {
            return Err(invalid("`query` is empty: say what to search for"));
        }
        let count = args.count.unwrap_or(USUAL_COUNT).clamp(1, MAX_COUNT);
        let wanted = args.provider.as_deref().and_then(Provider::parse);
        let access = access::find(call, &self.own, &self.platform, wanted).await?;
        let query = Query { text: args.query.trim(), count };
        let request = access.provider.request(&access.endpoint, access.key.as_ref(), query)?;
        let answer = exchange(&self.egress, call, request, MAX_ANSWER, OverflowPolicy::Fail).await?;
        if !answer.status.is_success() {
            return Err(answer.to_error(call));
        }
        let provider = access.provider.as_str();
        let read: Value = serde_json::from_str(&answer.text()).map_err(|_| {
            let hint = match access.provider {
                Provider::Searxng => ": switch its `json` format on (`search.formats` in its settings)",
                Provider::Serper | Provider::Brave => "",
            };
            CallError::new(ErrorCode::InvalidResponse, format!("`{provider}` did not answer in JSON{hint}"))
                .for_model("the search service gave no usable answer")
        })?;
        Ok(json!({"provider": provider, "results": access.provider.hits(&read, count)}))
    }
}
