//! The router: the API at `/api`, its tool routes also at `/tools`, MCP, and the pages beside it.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware;
use axum::routing::{any, get, post};
use haft_core::agent::AgentDefinition;
use haft_core::artifact::ArtifactDefinition;
use haft_core::outcome::ErrorCode;
use haft_core::retrieval::PipelineDefinition;
use serde_json::Value;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::edge::Edge;
use crate::error::ApiError;
use crate::mcp::Mcp;
use crate::query::QueryParameters;
use crate::routes::mcp::McpState;
use crate::routes::{
    account_providers, accounts, agents, applications, apply, approval_grants, approvals, audit_log,
    authorize_page, bundle_publish, bundle_tools, bundles, call_histogram, calls, chat_answers, chats,
    credentials, definitions, deliveries, device_oauth, device_page, events, examples, groups, health,
    import, import_items, import_registry, installation, invoke, key, lifecycle, limits, login, mcp,
    mcp_logins, mcp_servers, models, oauth, open_sessions, people, pipeline_documents, pipelines, policy,
    policy_explain, render, resource_routes, revisions, runs, scim, search, sessions, sign_on, sign_on_pages,
    stats, tenants, test, token_rates, tokens, tool, tools, toolsets, usage, validate, webhooks,
    workspace_files, workspaces,
};
use crate::{audit_layer, docs, document, openai, schemas, socket, ui};
use haft_platform::Installation;

/// The OpenAPI document that the routes are added to.
#[derive(OpenApi)]
#[openapi(
    info(title = "haft", description = "The tool platform for LLM agents", license(name = "MIT OR Apache-2.0")),
    tags((name = "tools"), (name = "bundles"), (name = "calls"), (name = "definitions"), (name = "life cycle")),
    security(("bearer" = []))
)]
struct Document;

/// Builds the whole HTTP surface.
pub(crate) fn edge(app: &Arc<Installation>, mcp: &Arc<Mcp>) -> Edge {
    let (api, document) = api(app);
    let mut document = document::complete(&document);
    let query_parameters = QueryParameters::new(&mut document);
    document::name_wildcards(&mut document);
    let document: Arc<str> = document.to_string().into();
    let serve_document = get(move || {
        let document = Arc::clone(&document);
        async move { ([("content-type", "application/json")], document.to_string()) }
    });
    let (tools, _) = tool_routes(app).with_state(Arc::clone(app)).split_for_parts();
    let (operation, _) = root_routes(app).split_for_parts();
    let routes = Router::new()
        .nest("/api", api.route("/openapi.json", serve_document.clone()))
        .route("/openapi.json", serve_document)
        .merge(tools)
        .merge(operation)
        .merge(mcp_routes().with_state(McpState { app: Arc::clone(app), mcp: Arc::clone(mcp) }))
        .merge(openai::router().with_state(Arc::clone(app)))
        .merge(socket::router().with_state(Arc::clone(app)))
        .merge(render_routes().with_state(Arc::clone(app)))
        .merge(device_routes().with_state(Arc::clone(app)))
        .merge(sign_on_routes().with_state(Arc::clone(app)))
        .merge(scim::router(app).with_state(Arc::clone(app)))
        .merge(oauth_routes().with_state(Arc::clone(app)))
        .merge(ui_routes().with_state(Arc::clone(app)))
        .route("/", get(ui::home))
        .route("/ui", get(ui::home))
        .route("/docs", get(docs::page))
        .route("/docs/start.js", get(docs::script))
        .route("/docs/{file}", get(docs::file))
        .route("/schemas", get(schemas::list))
        .route("/schemas/{file}", get(schemas::file))
        .route("/login/style.css", get(login::style))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed);
    Edge::new(Arc::clone(app), routes, query_parameters)
}

/// Builds the whole HTTP surface as a router, to be mounted in another program.
pub(crate) fn embeddable(app: &Arc<Installation>, mcp: &Arc<Mcp>) -> Router {
    let edge = Arc::new(edge(app, mcp));
    Router::new().fallback(move |request: Request| async move { edge.handle(request).await })
}

/// Returns the OpenAPI document of the API.
pub(crate) fn document(app: &Arc<Installation>) -> Value {
    let mut document = document::complete(&api(app).1);
    document::name_wildcards(&mut document);
    document
}

fn api(app: &Arc<Installation>) -> (Router, utoipa::openapi::OpenApi) {
    let all = tool_routes(app).merge(other_routes(app));
    let (router, mut document) = all.with_state(Arc::clone(app)).split_for_parts();
    document.servers = Some(vec![utoipa::openapi::Server::new("/api")]);
    let root = root_routes(app).into_openapi();
    let components = document.components.get_or_insert_default();
    components.schemas.extend(root.components.unwrap_or_default().schemas);
    for (path, mut item) in root.paths.paths {
        // Root routes are not below `/api`, so each names its own server.
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            operation.servers = Some(vec![utoipa::openapi::Server::new("/")]);
        }
        document.paths.paths.insert(path, item);
    }
    name_operations(&mut document);
    let components = document.components.get_or_insert_default();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.add_security_scheme("bearer", bearer);
    (router, document)
}

/// Sets every operation id from method and path: handler names repeat across modules, and ids must be unique.
fn name_operations(document: &mut utoipa::openapi::OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let words = path.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let words = words.collect::<Vec<_>>().join("_");
        let operations = [
            ("get", &mut item.get),
            ("put", &mut item.put),
            ("post", &mut item.post),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                operation.operation_id = Some(format!("{method}_{words}"));
            }
        }
    }
}

/// The tool routes, which are also served at the root.
fn tool_routes(app: &Arc<Installation>) -> OpenApiRouter<Arc<Installation>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(tools::list, tools::create))
        .routes(routes!(search::search))
        .routes(routes!(tools::built_ins))
        .routes(routes!(definitions::all))
        .routes(routes!(tool::get, tool::put, tool::patch, tool::delete))
        .routes(routes!(tool::source))
        .routes(routes!(tool::undelete))
        .routes(routes!(definitions::one))
        .routes(routes!(lifecycle::publish))
        .routes(routes!(lifecycle::deprecate))
        .routes(routes!(lifecycle::version))
        .routes(routes!(usage::get))
        .routes(routes!(examples::list))
        .routes(routes!(examples::put, examples::delete))
        .routes(routes!(revisions::list))
        .routes(routes!(revisions::restore))
        .routes(routes!(revisions::diff))
        .routes(routes!(bundles::list))
        .routes(routes!(bundles::get, bundles::put, bundles::patch, bundles::delete))
        .routes(routes!(bundle_publish::publish))
        .routes(routes!(toolsets::export_any))
        .routes(routes!(bundle_tools::get, bundle_tools::put, bundle_tools::patch, bundle_tools::delete))
        .layer(middleware::from_fn_with_state(Arc::clone(app), audit_layer::record))
        // The following routes change nothing, or write call records.
        .routes(routes!(invoke::invoke))
        .routes(routes!(test::run))
        .routes(routes!(examples::run))
        .routes(routes!(validate::run))
        .routes(routes!(bundle_tools::call))
        // Nested paths that older clients use; not in the OpenAPI document.
        .route("/tools/tools", get(tools::list))
        .route("/tools/tools/search", get(search::search))
}

fn other_routes(app: &Arc<Installation>) -> OpenApiRouter<Arc<Installation>> {
    OpenApiRouter::new()
        .routes(routes!(calls::list))
        .routes(routes!(call_histogram::get))
        .routes(routes!(calls::get))
        .routes(routes!(calls::events))
        .routes(routes!(render::address))
        .routes(routes!(calls::cancel))
        .routes(routes!(calls::result))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::get))
        .routes(routes!(approvals::approve))
        .routes(routes!(approvals::deny))
        .merge(grant_routes())
        .routes(routes!(chats::list, chats::create))
        .routes(routes!(chats::get, chats::patch, chats::delete))
        .routes(routes!(chats::messages, chat_answers::add_message))
        .routes(routes!(chat_answers::answer))
        .routes(routes!(chat_answers::stop))
        .routes(routes!(chat_answers::export))
        .routes(routes!(chats::message_manifest))
        .merge(workspace_routes())
        .merge(kinds_of_resources())
        .routes(routes!(runs::cancel))
        .routes(routes!(toolsets::list, toolsets::import))
        .routes(routes!(toolsets::get, toolsets::delete))
        .routes(routes!(toolsets::enable))
        .routes(routes!(toolsets::roll_back))
        .routes(routes!(toolsets::update))
        .routes(routes!(toolsets::export))
        .routes(routes!(toolsets::file))
        .routes(routes!(apply::apply))
        .routes(routes!(apply::export))
        .routes(routes!(credentials::list))
        .routes(routes!(credentials::get, credentials::put, credentials::delete))
        .routes(routes!(key::rotate))
        .routes(routes!(tenants::list, tenants::create))
        .routes(routes!(tenants::get, tenants::patch, tenants::delete))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::get, tokens::delete, token_rates::patch))
        .routes(routes!(tokens::rotate))
        .merge(people_and_groups())
        .merge(account_routes())
        .routes(routes!(sessions::create_link))
        .routes(routes!(sessions::get))
        .routes(routes!(open_sessions::list))
        .routes(routes!(open_sessions::end))
        .routes(routes!(policy::get, policy::put))
        .routes(routes!(webhooks::list, webhooks::create))
        .routes(routes!(webhooks::get, webhooks::patch, webhooks::delete))
        .routes(routes!(deliveries::list))
        .routes(routes!(deliveries::redeliver))
        .routes(routes!(deliveries::test))
        .routes(routes!(import::api))
        .routes(routes!(import::openapi))
        .routes(routes!(import_registry::registry))
        .routes(routes!(import_items::import_curl))
        .routes(routes!(import_items::import_tools))
        .routes(routes!(import_items::import_mcp))
        .merge(mcp_server_routes())
        .layer(middleware::from_fn_with_state(Arc::clone(app), audit_layer::record))
        // A run is recorded itself.
        .routes(routes!(runs::start))
        .routes(routes!(agents::check_definition))
        .routes(routes!(runs::list))
        .routes(routes!(runs::get))
        .routes(routes!(runs::steps))
        .routes(routes!(runs::events))
        .routes(routes!(models::list))
        .routes(routes!(pipelines::query))
        .routes(routes!(audit_log::list))
        .routes(routes!(limits::list))
        .routes(routes!(stats::get))
        .routes(routes!(installation::settings))
        .routes(routes!(installation::doctor))
        .routes(routes!(events::stream))
        .merge(explanations())
        .merge(callbacks())
}

/// Returns the routes of MCP servers.
fn mcp_server_routes() -> OpenApiRouter<Arc<Installation>> {
    OpenApiRouter::new()
        .routes(routes!(mcp_servers::list, mcp_servers::create))
        .routes(routes!(mcp_servers::get, mcp_servers::patch, mcp_servers::delete))
        .routes(routes!(mcp_servers::refresh))
        .routes(routes!(mcp_servers::changes))
        .routes(routes!(mcp_servers::findings))
        .routes(routes!(mcp_servers::review))
        .routes(routes!(mcp_servers::accept))
        .routes(routes!(mcp_servers::reject))
        .routes(routes!(mcp_logins::login))
        .routes(routes!(mcp_logins::logout))
}

/// Returns the routes of remembered approvals.
fn grant_routes() -> OpenApiRouter<Arc<Installation>> {
    OpenApiRouter::new().routes(routes!(approval_grants::list)).routes(routes!(approval_grants::delete))
}

/// Returns the routes to which logins at other servers lead back.
fn callbacks() -> OpenApiRouter<Arc<Installation>> {
    OpenApiRouter::new().routes(routes!(mcp_logins::callback)).routes(routes!(accounts::callback))
}

/// Returns the routes of accounts at other services, and their providers.
fn account_routes() -> OpenApiRouter<Arc<Installation>> {
    OpenApiRouter::new()
        .routes(routes!(accounts::list))
        .routes(routes!(accounts::put, accounts::revoke))
        .routes(routes!(accounts::connect))
        .routes(routes!(accounts::device_login))
        .routes(routes!(account_providers::list))
        .routes(routes!(account_providers::put, account_providers::delete))
        .routes(routes!(account_providers::holders))
}

/// Returns the routes that say what would happen to a call or a login.
fn explanations() -> OpenApiRouter<Arc<Installation>> {
    OpenApiRouter::new()
        .routes(routes!(policy_explain::explain))
        .routes(routes!(sign_on::list))
        .routes(routes!(sign_on::test))
}

/// Returns the routes of people, service accounts, groups and connected applications.
fn people_and_groups() -> OpenApiRouter<Arc<Installation>> {
    OpenApiRouter::new()
        .routes(routes!(people::list, people::invite))
        .routes(routes!(people::get, people::patch, people::delete))
        .routes(routes!(people::invite_again))
        .routes(routes!(people::hand_over))
        .routes(routes!(people::list_service_accounts, people::create_service_account))
        .routes(routes!(
            people::get_service_account,
            people::patch_service_account,
            people::delete_service_account
        ))
        .routes(routes!(groups::list, groups::create))
        .routes(routes!(groups::get, groups::patch, groups::delete))
        .routes(routes!(applications::list))
        .routes(routes!(applications::get, applications::delete))
        .routes(routes!(applications::list_clients, applications::create_client))
        .routes(routes!(applications::delete_client))
}

/// Agents, retrieval pipelines and code artifacts.
fn kinds_of_resources() -> OpenApiRouter<Arc<Installation>> {
    OpenApiRouter::new()
        .merge(resource_routes::routes::<AgentDefinition>())
        .routes(routes!(agents::tools))
        .merge(resource_routes::routes::<PipelineDefinition>())
        .routes(routes!(pipelines::reingest))
        .routes(routes!(pipelines::ingests))
        .routes(routes!(pipeline_documents::list, pipeline_documents::add))
        .routes(routes!(pipeline_documents::get, pipeline_documents::delete))
        .merge(resource_routes::routes::<ArtifactDefinition>())
}

/// The files of chats and of named workspaces.
fn workspace_routes() -> OpenApiRouter<Arc<Installation>> {
    OpenApiRouter::new()
        .routes(routes!(workspaces::list))
        .routes(routes!(workspaces::delete))
        .merge(workspace_files::router())
}

/// MCP, for requests of every method; the handler authenticates them. Not in the OpenAPI document.
fn mcp_routes() -> Router<McpState> {
    Router::new()
        .route("/mcp", any(mcp::handle))
        .route("/mcp/{*path}", any(mcp::handle))
        .route(mcp::METADATA, any(mcp::metadata))
        .route(&format!("{}/{{*path}}", mcp::METADATA), any(mcp::metadata))
}

/// Logins of command lines. Not in the OpenAPI document: the endpoints are those of RFC 8628, and the page is for people.
fn device_routes() -> Router<Arc<Installation>> {
    Router::new()
        .route("/oauth/device_authorization", post(device_oauth::authorize))
        .route("/device", get(device_page::page).post(device_page::decide))
}

/// Logins at issuers of OpenID Connect. Not in the OpenAPI document: the pages are for people.
fn sign_on_routes() -> Router<Arc<Installation>> {
    Router::new()
        .route("/login/oidc/{issuer}", get(sign_on_pages::begin))
        .route("/login/oidc/{issuer}/callback", get(sign_on_pages::callback))
        .route("/login/oidc/{issuer}/logout", get(sign_on_pages::logout))
        .route("/login/oidc/{issuer}/backchannel-logout", post(sign_on_pages::back_channel_logout))
}

/// The authorization server for applications. Not in the OpenAPI document: the endpoints are those of OAuth, and the page is
/// for people.
fn oauth_routes() -> Router<Arc<Installation>> {
    Router::new()
        .route(oauth::METADATA, get(oauth::metadata))
        .route(&format!("{}/{{*path}}", oauth::METADATA), get(oauth::metadata))
        .route("/oauth/authorize", get(authorize_page::page).post(authorize_page::decide))
        .route("/oauth/token", post(oauth::token))
        .route("/oauth/register", post(oauth::register))
        .route("/oauth/revoke", post(oauth::revoke))
        .route("/oauth/introspect", post(oauth::introspect))
}

/// The web interface.
fn ui_routes() -> Router<Arc<Installation>> {
    Router::new().route("/ui/", get(ui::index)).route("/ui/{*path}", get(ui::file))
}

/// The pages of rendered results; their addresses are signed. Not in the OpenAPI document.
fn render_routes() -> Router<Arc<Installation>> {
    Router::new()
        .route("/render/{address}", get(render::page))
        .route("/render/{address}/assets/{*path}", get(render::asset))
}

/// Routes at the root, beside the API.
fn root_routes(app: &Arc<Installation>) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(login::page, login::submit))
        .routes(routes!(login::logout))
        .with_state(Arc::clone(app))
}

async fn not_found(request: Request) -> ApiError {
    ApiError::not_found("route", request.uri().path())
}

async fn method_not_allowed(request: Request) -> ApiError {
    let message = format!("`{}` is not allowed on `{}`", request.method(), request.uri().path());
    ApiError::new(ErrorCode::MethodNotAllowed, message)
}
