//! One function, and the libraries that call it.

use std::convert::Infallible;
use std::hint::black_box;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use futures_util::FutureExt as _;
use haft::{ToolDef, Tools};
use rig_agent::tool::{Tool, ToolContext, ToolSet};
use rmcp::handler::server::tool::{ToolCallContext, ToolRoute, ToolRouter};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolRequestParams, NumberOrString};
use rmcp::service::{Peer, RequestContext, RunningService, serve_directly};
use rmcp::{RoleServer, ServerHandler};
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

/// The row to which all others are compared.
pub const HAFT: &str = "haft, `Tools::execute_json`";
const NAME: &str = "forecast";
/// The default timeout of haft.
const DEADLINE: Duration = Duration::from_secs(30);
const TEXT: &str = r#"{"city": "Berlin", "days": 3}"#;

#[derive(Deserialize, JsonSchema)]
struct Forecast {
    city: String,
    days: u8,
}

#[expect(clippy::unused_async, reason = "all libraries call the same function")]
async fn forecast(args: Forecast) -> usize {
    args.city.len() + usize::from(args.days)
}

/// All variants, ready to be called.
pub struct Variants {
    tools: Tools,
    router: ToolRouter<Server>,
    peer: Peer<RoleServer>,
    schema: jsonschema::Validator,
    set: ToolSet,
    // The peer requires a running service.
    _service: RunningService<RoleServer, Server>,
}

impl Variants {
    /// The name, the form of the arguments, and what is checked, in the order of [`Variants::call`].
    pub const ROWS: [(&str, &str, &str); 7] = [
        ("the function itself", "values", "nothing"),
        ("the function, with arguments deserialized from JSON", "JSON object", "types (serde)"),
        (HAFT, "JSON object", "JSON Schema, types (serde), limits, deadline"),
        ("haft, from JSON text", "JSON text", "JSON Schema, types (serde), limits, deadline"),
        ("rmcp, `ToolRouter::call`", "JSON object", "types (serde)"),
        ("rmcp, with validation and limits", "JSON object", "JSON Schema, types (serde), deadline, panics"),
        ("rig, `ToolSet::execute`", "JSON text", "types (serde)"),
    ];

    pub fn new() -> Result<Self> {
        let schema = schema_for!(Forecast).as_value().as_object().cloned().context("not an object")?;
        let route = ToolRoute::new(
            rmcp::model::Tool::new(NAME, "Counts letters and days.", schema),
            |Parameters(args): Parameters<Forecast>| async { forecast(args).await.to_string() },
        );
        let schema = jsonschema::validator_for(&schema_for!(Forecast).to_value())?;
        let mut set = ToolSet::default();
        set.add_tool(RigTool);
        let (transport, _) = tokio::io::duplex(64);
        let service = serve_directly::<RoleServer, _, _, _, _>(Server, transport, None);
        Ok(Self {
            tools: Tools::builder()
                .tool(ToolDef::new(NAME, forecast).description("Counts letters and days."))
                .build()?,
            router: ToolRouter::new().with_route(route),
            peer: service.peer().clone(),
            schema,
            set,
            _service: service,
        })
    }

    /// Calls the function `times` times through one variant.
    pub async fn call(&self, variant: usize, times: u32) -> Result<()> {
        for _ in 0..times {
            let value = match variant {
                0 => json!(
                    forecast(Forecast { city: black_box("Berlin").to_owned(), days: black_box(3) }).await
                ),
                1 => json!(forecast(serde_json::from_value(object())?).await),
                2 => self.tools.execute_json(NAME, object()).await?,
                3 => self.tools.execute_json(NAME, serde_json::from_str(black_box(TEXT))?).await?,
                4 => self.rmcp(object()).await?,
                5 => self.checked_rmcp().await?,
                _ => self.rig().await?,
            };
            ensure!(black_box(value) == 9, "wrong value");
        }
        Ok(())
    }

    /// Adds the most important checks of haft to a router.
    async fn checked_rmcp(&self) -> Result<Value> {
        let args = object();
        ensure!(self.schema.is_valid(&args), "invalid arguments");
        let call = AssertUnwindSafe(self.rmcp(args)).catch_unwind();
        tokio::time::timeout(DEADLINE, call).await?.map_err(|_| anyhow!("the tool panicked"))?
    }

    async fn rmcp(&self, args: Value) -> Result<Value> {
        let Value::Object(args) = args else { anyhow::bail!("not an object") };
        let params = CallToolRequestParams::new(NAME).with_arguments(args);
        let context = RequestContext::new(NumberOrString::Number(1), self.peer.clone());
        let response = self.router.call(ToolCallContext::new(&Server, params, context)).await?;
        let rmcp::model::CallToolResponse::Complete(result) = response else { anyhow::bail!("not complete") };
        let text = result.content.first().and_then(|block| block.as_text()).context("no text")?;
        Ok(json!(text.text.parse::<u64>()?))
    }

    async fn rig(&self) -> Result<Value> {
        let result = self.set.execute(NAME, black_box(TEXT), &mut ToolContext::new()).await;
        result.output().as_json().cloned().context("no value")
    }
}

fn object() -> Value {
    json!({"city": black_box("Berlin"), "days": black_box(3)})
}

/// The service of the rmcp router.
struct Server;

impl ServerHandler for Server {}

/// The function as a rig tool.
struct RigTool;

impl Tool for RigTool {
    const NAME: &'static str = NAME;
    type Args = Forecast;
    type Output = usize;
    type Error = Infallible;

    fn description(&self) -> String {
        "Counts letters and days.".to_owned()
    }

    fn parameters(&self) -> Value {
        schema_for!(Forecast).to_value()
    }

    async fn call(&self, _: &mut ToolContext, args: Forecast) -> Result<usize, Infallible> {
        Ok(forecast(args).await)
    }
}
