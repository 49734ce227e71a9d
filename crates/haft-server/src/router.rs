//! The one router: the API at `/api`, its tool part also at `/tools`, and what stands beside it.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware;
use axum::response::Redirect;
use axum::routing::get;
use haft_core::outcome::ErrorCode;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::edge::Edge;
use crate::error::ApiError;
use crate::routes::{
    bundle_tools, bundles, calls, changes, credentials, definitions, health, import, invoke, lifecycle,
    mcp_logins, mcp_servers, revisions, search, test, tokens, tool, tools, validate,
};
use crate::{audit, docs};

/// The document that the routes are entered into.
#[derive(OpenApi)]
#[openapi(
    info(title = "haft", description = "The tool platform for LLM agents", license(name = "MIT OR Apache-2.0")),
    tags((name = "tools"), (name = "bundles"), (name = "calls"), (name = "definitions"), (name = "life cycle")),
    security(("bearer" = []))
)]
struct Document;

impl App {
    /// Builds the whole HTTP surface.
    pub(crate) fn edge(self: &Arc<Self>) -> Edge {
        let (api, document) = api(self);
        let document: Arc<str> = document.to_json().unwrap_or_default().into();
        let serve_document = get(move || {
            let document = Arc::clone(&document);
            async move { ([("content-type", "application/json")], document.to_string()) }
        });
        let (tools, _) = tool_routes(self).with_state(Arc::clone(self)).split_for_parts();
        let (operation, _) = root_routes(self).split_for_parts();
        let routes = Router::new()
            .nest("/api", api.route("/openapi.json", serve_document.clone()))
            .route("/openapi.json", serve_document)
            .merge(tools)
            .merge(operation)
            .route("/", get(docs::page))
            .route("/docs", get(|| async { Redirect::permanent("/") }))
            .route("/docs/start.js", get(docs::start))
            .route("/docs/{file}", get(docs::file))
            .fallback(not_found)
            .method_not_allowed_fallback(method_not_allowed);
        Edge::new(Arc::clone(self), routes)
    }

    /// Builds the whole HTTP surface as a router, for who wants to put it into another program.
    pub fn router(self: &Arc<Self>) -> Router {
        let edge = Arc::new(self.edge());
        Router::new().fallback(move |request: Request| async move { edge.answer(request).await })
    }

    /// Returns the OpenAPI document of the API.
    pub fn openapi(self: &Arc<Self>) -> utoipa::openapi::OpenApi {
        api(self).1
    }
}

fn api(app: &Arc<App>) -> (Router, utoipa::openapi::OpenApi) {
    let all = tool_routes(app).merge(other_routes(app));
    let (router, mut document) = all.with_state(Arc::clone(app)).split_for_parts();
    document.servers = Some(vec![utoipa::openapi::Server::new("/api")]);
    for (path, mut item) in root_routes(app).into_openapi().paths.paths {
        // What stands at the root says so itself.
        if let Some(operation) = &mut item.get {
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

/// Names every operation by its method and path. The handlers' own names repeat from module to module, and a
/// client that goes by them would send one request in place of another.
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

/// The tool part, which also stands at the root.
fn tool_routes(app: &Arc<App>) -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(tools::list, tools::create))
        .routes(routes!(search::search))
        .routes(routes!(tools::built_ins))
        .routes(routes!(definitions::all))
        .routes(routes!(tool::get, tool::put, tool::patch, tool::delete))
        .routes(routes!(tool::source))
        .routes(routes!(definitions::one))
        .routes(routes!(lifecycle::publish))
        .routes(routes!(lifecycle::deprecate))
        .routes(routes!(lifecycle::version))
        .routes(routes!(revisions::list))
        .routes(routes!(revisions::restore))
        .routes(routes!(revisions::diff))
        .routes(routes!(bundles::list))
        .routes(routes!(bundles::get, bundles::put, bundles::patch, bundles::delete))
        .routes(routes!(bundle_tools::get, bundle_tools::put, bundle_tools::patch, bundle_tools::delete))
        .layer(middleware::from_fn_with_state(Arc::clone(app), audit::record))
        // What follows changes nothing, or has records of its own.
        .routes(routes!(invoke::invoke))
        .routes(routes!(test::run))
        .routes(routes!(validate::run))
        .routes(routes!(bundle_tools::call))
        // The nested spellings of the first document, not in the description.
        .route("/tools/tools", get(tools::list))
        .route("/tools/tools/search", get(search::search))
}

fn other_routes(app: &Arc<App>) -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(calls::list))
        .routes(routes!(calls::get))
        .routes(routes!(calls::events))
        .routes(routes!(calls::cancel))
        .routes(routes!(credentials::list))
        .routes(routes!(credentials::put, credentials::delete))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::delete))
        .routes(routes!(import::openapi))
        .routes(routes!(mcp_servers::list, mcp_servers::create))
        .routes(routes!(mcp_servers::get, mcp_servers::patch, mcp_servers::delete))
        .routes(routes!(mcp_servers::refresh))
        .routes(routes!(mcp_servers::changes))
        .routes(routes!(mcp_servers::accept))
        .routes(routes!(mcp_logins::login))
        .routes(routes!(mcp_logins::logout))
        .layer(middleware::from_fn_with_state(Arc::clone(app), audit::record))
        .routes(routes!(changes::list))
        .routes(routes!(mcp_logins::callback))
}

/// What stands at the root, beside the API.
fn root_routes(app: &Arc<App>) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .with_state(Arc::clone(app))
}

async fn not_found(request: Request) -> ApiError {
    ApiError::not_found("route", request.uri().path())
}

async fn method_not_allowed(request: Request) -> ApiError {
    let message = format!("`{}` is not allowed on `{}`", request.method(), request.uri().path());
    ApiError::new(ErrorCode::MethodNotAllowed, message)
}
