//! The client that the public MCP conformance suites run against their servers (`tools/conformance`).
//!
//! It uses haft's client as haft does: a configured server, its list of tools, and the `mcp` executor. The program acts
//! as the person: it logs in and calls every tool once.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the suite passes the scenario in the environment and shows the output"
)]

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::account::AccountUser;
use haft_core::catalog::StoreError;
use haft_core::executor::{CallContext, Executor as _};
use haft_core::id::CallId;
use haft_core::mcp::{ListedTool, McpServer, OAuthClient, OAuthGrant, Phase, StreamableHttp, Transport};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::outcome::Outcome;
use haft_core::secret::{GrantId, RefreshLock, RefreshTokens, Secret, SecretError, SecretSource};
use haft_core::spec::ToolSpec;
use haft_definition::mcp_import::import;
use haft_executors::egress::{Egress, EgressRules, OutgoingRequest};
use haft_mcp::client::{BegunLogin, Callback, ClientParts, McpClients, McpExecutor, McpServerStore};
use haft_sandbox::{EngineName, Sandbox, Settings};
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};
use url::Url;

type AnyError = Box<dyn Error + Send + Sync>;

/// The redirect URL; nothing listens there.
const REDIRECT: &str = "http://127.0.0.1:18789/api/mcp-servers/oauth/callback";
/// How many logins a scenario may require.
const MAX_LOGINS: usize = 3;

/// The secret of a scenario, and the logins.
#[derive(Default)]
struct MemorySecrets {
    client_secret: Option<Secret>,
    logins: Arc<MemoryLogins>,
}

#[derive(Default)]
struct MemoryLogins(Mutex<HashMap<String, Secret>>);

impl SecretSource for MemorySecrets {
    fn secret<'a>(
        &'a self,
        _tenant: &'a TenantId,
        _name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(std::future::ready(Ok(self.client_secret.clone())))
    }

    fn refresh_tokens(&self) -> Option<Arc<dyn RefreshTokens>> {
        Some(Arc::clone(&self.logins) as _)
    }
}

impl RefreshTokens for MemoryLogins {
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
        let mut logins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match token {
            Some(token) => drop(logins.insert(grant.key.clone(), token.clone())),
            None => drop(logins.remove(&grant.key)),
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The imported tools.
#[derive(Default)]
struct ImportedTools(Mutex<Vec<ToolSpec>>);

impl McpServerStore for ImportedTools {
    fn servers(&self) -> BoxFuture<'_, Result<Vec<McpServer>, StoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn listed<'a>(
        &'a self,
        server: &'a McpServer,
        tools: Vec<ListedTool>,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        let imported =
            import(server, &tools, |_| Vec::new()).tools.into_iter().map(|tool| tool.spec).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = imported;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

struct Person {
    tenant: TenantId,
    id: BundleSlug,
    egress: Egress,
    clients: Arc<McpClients>,
    tools: Arc<ImportedTools>,
    logins: usize,
}

impl Person {
    /// Waits for the connection, and logs in if the server requires it.
    async fn connected(&mut self) -> Result<(), AnyError> {
        loop {
            let state = self.clients.state(&self.tenant, &self.id).ok_or("server not found")?;
            match state.phase {
                Phase::Connected => return Ok(()),
                Phase::NeedsAuth => self.log_in().await?,
                Phase::Error if state.failures >= 2 => return Err(state.error.unwrap_or_default().into()),
                Phase::Starting | Phase::Connecting | Phase::Disconnected | Phase::Error => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }

    /// Opens the authorization URL and follows its redirect.
    async fn log_in(&mut self) -> Result<(), AnyError> {
        self.logins += 1;
        if self.logins > MAX_LOGINS {
            return Err("too many logins".into());
        }
        let everybody = AccountUser { tenant: self.tenant.clone(), actor: None };
        let BegunLogin { url, data, .. } = self.clients.begin_login(&self.id, &everybody, REDIRECT).await?;
        let request = OutgoingRequest {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: None,
            accepted_statuses: vec![301, 302, 303, 307],
        };
        let page = self.egress.send(request).await.map_err(|error| format!("{error:?}"))?;
        let back = page.headers().get("location").ok_or("no redirect")?.to_str()?;
        let back = Url::parse(back)?;
        let get = |name: &str| {
            back.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
        };
        let callback = Callback {
            state: Secret::new(get("state").unwrap_or_default()),
            code: get("code").map(Secret::new),
            iss: get("iss"),
            error: get("error"),
        };
        self.clients.finish_login((&self.tenant, &self.id), &data, callback).await?;
        Ok(())
    }

    /// Calls a tool; if it requires a login, logs in and calls it again.
    async fn call(&mut self, tool: &ToolSpec, args: &Map<String, Value>) -> Outcome {
        loop {
            let outcome = self.call_once(tool, args).await;
            let state = self.clients.state(&self.tenant, &self.id).map(|state| state.phase);
            let needs_scope = outcome
                .as_ref()
                .err()
                .and_then(|error| error.details.as_deref())
                .is_some_and(|details| details.get("required_scope").is_some());
            let done = outcome.is_ok() || !(needs_scope || state == Some(Phase::NeedsAuth));
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
        let secrets: Arc<dyn SecretSource> = Arc::new(MemorySecrets::default());
        let call = CallContext::new(CallId(uuid::Uuid::now_v7()), self.tenant.clone(), deadline, secrets);
        prepared.run(&call, args).await
    }
}

/// Returns arguments that match a schema.
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

fn server(url: &str, scenario: &str, context: &Value) -> Result<McpServer, AnyError> {
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
async fn main() -> Result<(), AnyError> {
    let url = std::env::args().next_back().ok_or("usage: conformance_client URL")?;
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
    let imported = Arc::<ImportedTools>::default();
    let client_secret =
        ["client_secret", "private_key_pem"].into_iter().find_map(|name| context.get(name)?.as_str());
    let secrets = MemorySecrets {
        client_secret: client_secret.map(|text| Secret::new(text.to_owned())),
        ..MemorySecrets::default()
    };
    let clients = Arc::new(McpClients::new(ClientParts {
        sandbox,
        egress: egress.clone(),
        secrets: Arc::new(secrets),
        store: Arc::clone(&imported) as _,
        poll_interval: Duration::from_mins(1),
    }));
    let server = server(&url, &scenario, &context)?;
    let (tenant, id) = (server.tenant.clone(), server.id.clone());
    clients.set(server);
    let mut person = Person { tenant, id, egress, clients, tools: imported, logins: 0 };
    person.connected().await?;
    let tools = person.tools.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let requested = context.get("toolCalls").and_then(Value::as_array);
    for tool in &tools {
        let calls = requested.iter().copied().flatten();
        let mut calls: Vec<_> = calls
            .filter(|call| call.get("name").and_then(Value::as_str) == Some(tool.name.as_str()))
            .filter_map(|call| call.get("arguments")?.as_object().cloned())
            .collect();
        if tool.name.as_str() == "json_schema_echo" {
            // Expects the schema of the other tool as imported.
            let other = tools.iter().find(|other| other.name != tool.name);
            let schema = other.map(|other| other.input_schema.clone());
            calls.push(Map::from_iter([("schema".to_owned(), schema.unwrap_or_default().value())]));
        } else if requested.is_none() {
            calls.push(arguments(&tool.input_schema.value()));
        }
        for args in calls {
            let outcome = person.call(tool, &args).await;
            eprintln!("{}: {outcome:?}", tool.name);
        }
    }
    Ok(())
}
