//! The client that the public conformance suite of MCP starts against its own servers (`tools/conformance`).
//!
//! It is haft's client and nothing else: a configured server, its list, and its tools by the `mcp` executor. What is
//! here is what a person would do: log in, and call every tool once.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the suite says by the environment what it wants, and shows what is printed"
)]

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::executor::{CallContext, Executor as _};
use haft_core::id::CallId;
use haft_core::mcp::{ListedTool, McpServer, OAuthClient, OAuthGrant, Phase, StreamableHttp, Transport};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::outcome::Outcome;
use haft_core::secret::{GrantId, RefreshLock, RefreshTokens, Secret, SecretError, SecretSource};
use haft_core::spec::ToolSpec;
use haft_definition::mcp_import::import;
use haft_mcp::client::{Callback, ClientParts, McpClients, McpExecutor, McpServerStore};
use haft_runtime::egress::{Egress, EgressRules, OutgoingRequest};
use haft_sandbox::{EngineName, Sandbox, Settings};
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};
use url::Url;

type Fault = Box<dyn Error + Send + Sync>;

/// Where people are sent back to; nobody listens there.
const REDIRECT: &str = "http://127.0.0.1:18789/api/mcp-servers/oauth/callback";
/// How often somebody would agree to the same login before they gave up.
const MAX_LOGINS: usize = 3;

/// The one secret that a scenario may give, and the logins.
#[derive(Default)]
struct Memory {
    client_secret: Option<Secret>,
    kept: Arc<Kept>,
}

#[derive(Default)]
struct Kept(Mutex<HashMap<String, Secret>>);

impl SecretSource for Memory {
    fn secret<'a>(
        &'a self,
        _tenant: &'a TenantId,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(std::future::ready(Ok(self.client_secret.clone())))
    }

    fn refresh_tokens(&self) -> Option<Arc<dyn RefreshTokens>> {
        Some(Arc::clone(&self.kept) as _)
    }
}

impl RefreshTokens for Kept {
    fn read<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&grant.key).cloned();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn begin<'a>(&'a self, grant: &'a GrantId) -> BoxFuture<'a, Result<RefreshLock, SecretError>> {
        Box::pin(async move { Ok(RefreshLock { token: self.read(grant).await?, number: 0 }) })
    }

    fn end<'a>(
        &'a self,
        grant: &'a GrantId,
        _turn: i64,
        token: Option<&'a Secret>,
    ) -> BoxFuture<'a, Result<(), SecretError>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match token {
            Some(token) => drop(kept.insert(grant.key.clone(), token.clone())),
            None => drop(kept.remove(&grant.key)),
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The tools as haft takes them.
#[derive(Default)]
struct Home(Mutex<Vec<ToolSpec>>);

impl McpServerStore for Home {
    fn servers(&self) -> BoxFuture<'_, Result<Vec<McpServer>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn listed<'a>(
        &'a self,
        server: &'a McpServer,
        tools: Vec<ListedTool>,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        let taken = import(server, &tools).tools.into_iter().map(|tool| tool.spec).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = taken;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

struct Person {
    tenant: TenantId,
    id: BundleSlug,
    egress: Egress,
    clients: Arc<McpClients>,
    home: Arc<Home>,
    logins: usize,
}

impl Person {
    /// Waits until the server answers, and logs in where it wants that.
    async fn connected(&mut self) -> Result<(), Fault> {
        loop {
            let state = self.clients.state(&self.tenant, &self.id).ok_or("there is no server")?;
            match state.phase {
                Phase::Connected => return Ok(()),
                Phase::NeedsAuth => self.log_in().await?,
                Phase::Error if state.failures >= 2 => return Err(state.error.unwrap_or_default().into()),
                Phase::Connecting | Phase::Disconnected | Phase::Error => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }

    /// Opens the address, agrees, and comes back.
    async fn log_in(&mut self) -> Result<(), Fault> {
        self.logins += 1;
        if self.logins > MAX_LOGINS {
            return Err("the server wants one login after another".into());
        }
        let url = self.clients.begin_login(&self.tenant, &self.id, "a person", REDIRECT).await?;
        let request = OutgoingRequest {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: None,
            accepted_statuses: vec![301, 302, 303, 307],
        };
        let page = self.egress.send(request).await.map_err(|error| format!("{error:?}"))?;
        let back = page.headers().get("location").ok_or("the page leads nowhere")?.to_str()?;
        let back = Url::parse(back)?;
        let get = |name: &str| {
            back.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
        };
        let callback = Callback {
            state: get("state").unwrap_or_default(),
            code: get("code").map(Secret::new),
            iss: get("iss"),
            error: get("error"),
        };
        self.clients.finish_login(callback).await?;
        Ok(())
    }

    /// Calls a tool; a login that it wants is made, and then it is called again.
    async fn call(&mut self, tool: &ToolSpec, args: &Map<String, Value>) -> Outcome {
        loop {
            let outcome = self.call_once(tool, args).await;
            let state = self.clients.state(&self.tenant, &self.id).map(|state| state.phase);
            let wants_more = matches!(&outcome, Err(error) if error.message.contains("log in to it again"));
            let done = outcome.is_ok() || !(wants_more || state == Some(Phase::NeedsAuth));
            if done || self.log_in().await.is_err() || self.connected().await.is_err() {
                return outcome;
            }
        }
    }

    async fn call_once(&self, tool: &ToolSpec, args: &Map<String, Value>) -> Outcome {
        let executor = McpExecutor::default();
        executor.connect(&self.clients);
        let prepared = executor.prepare(&Arc::new(tool.clone()), None).map_err(|problems| {
            haft_core::outcome::CallError::internal(haft_core::problem::join(&problems))
        })?;
        let deadline = Instant::now() + Duration::from_secs(20);
        let secrets: Arc<dyn SecretSource> = Arc::new(Memory::default());
        let call = CallContext::new(CallId(uuid::Uuid::now_v7()), self.tenant.clone(), deadline, secrets);
        prepared.run(&call, args).await
    }
}

/// Arguments that a schema takes.
fn arguments(schema: &Value) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let value = |schema: &Value| match schema.get("type").and_then(Value::as_str) {
        Some("number" | "integer") => json!(7),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("null") => Value::Null,
        _ => schema.get("default").cloned().unwrap_or_else(|| json!("test")),
    };
    properties.map(|(name, schema)| (name.clone(), value(schema))).collect()
}

fn server(url: &str, scenario: &str, context: &Value) -> Result<McpServer, Fault> {
    let text = |name: &str| context.get(name).and_then(Value::as_str).map(str::to_owned);
    let client_id = match scenario {
        "auth/basic-cimd" => Some("https://conformance-test.local/client-metadata.json".to_owned()),
        _ => text("client_id"),
    };
    let client_secret = text("client_secret").map(|_| "${CLIENT_SECRET}".to_owned());
    let grant = match scenario {
        "auth/client-credentials-basic" | "auth/client-credentials-jwt" => OAuthGrant::ClientCredentials,
        _ => OAuthGrant::AuthorizationCode,
    };
    let private_key = text("private_key_pem").map(|_| "${PRIVATE_KEY}".to_owned());
    let oauth = client_id.map(|id| OAuthClient {
        client_id: Some(id),
        client_secret,
        private_key,
        scopes: Vec::new(),
        grant,
    });
    let transport =
        Transport::Http(StreamableHttp { url: url.to_owned(), oauth, ..StreamableHttp::default() });
    let id = BundleSlug::new("conformance")?;
    Ok(McpServer { accept_changes: true, ..McpServer::new(id, TenantId::default_tenant(), transport) })
}

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let url = std::env::args().next_back().ok_or("say the address of the server")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context: Value = match std::env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text)?,
        Err(_) => Value::Null,
    };
    let rules =
        EgressRules { private_hosts: vec!["localhost".into(), "127.0.0.1".into()], ..Default::default() };
    let egress = Egress::new(&rules)?;
    let scratch = tempfile::tempdir()?;
    let sandbox = Sandbox::open(Settings {
        engine: EngineName::Bubblewrap,
        scratch: scratch.path().join("run"),
        hidden: Vec::new(),
        read_only: Vec::new(),
        image: None,
    })?;
    let home = Arc::<Home>::default();
    let client_secret =
        ["client_secret", "private_key_pem"].into_iter().find_map(|name| context.get(name)?.as_str());
    let secrets =
        Memory { client_secret: client_secret.map(|text| Secret::new(text.to_owned())), ..Memory::default() };
    let clients = Arc::new(McpClients::new(ClientParts {
        sandbox,
        egress: egress.clone(),
        secrets: Arc::new(secrets),
        home: Arc::clone(&home) as _,
    }));
    let server = server(&url, &scenario, &context)?;
    let (tenant, id) = (server.tenant.clone(), server.id.clone());
    clients.set(server);
    let mut person = Person { tenant, id, egress, clients, home, logins: 0 };
    person.connected().await?;
    let tools = person.home.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let wanted = context.get("toolCalls").and_then(Value::as_array);
    for tool in &tools {
        let asked = wanted.iter().copied().flatten();
        let mut asked: Vec<_> = asked
            .filter(|call| call.get("name").and_then(Value::as_str) == Some(tool.name.as_str()))
            .filter_map(|call| call.get("arguments")?.as_object().cloned())
            .collect();
        if tool.name.as_str() == "json_schema_echo" {
            // It wants the schema of the other tool, as it was taken.
            let other = tools.iter().find(|other| other.name != tool.name);
            let schema = other.map(|other| other.input_schema.clone());
            asked.push(Map::from_iter([("schema".to_owned(), schema.unwrap_or_default())]));
        } else if wanted.is_none() {
            asked.push(arguments(&tool.input_schema));
        }
        for args in asked {
            let outcome = person.call(tool, &args).await;
            eprintln!("{}: {outcome:?}", tool.name);
        }
    }
    Ok(())
}
