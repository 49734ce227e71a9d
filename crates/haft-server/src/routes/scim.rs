//! `/scim/v2`: identity providers create, change and remove the people and groups of the tenant of their token (RFC 7644).
//! Requests and responses have the form of SCIM, not that of the API, so they are not in the OpenAPI document.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use haft_core::outcome::ErrorCode;
use haft_scim::{LIST_SCHEMA, Projection, ResourceType, ScimError, ScimType};
use serde_json::{Map, Value, json};

use crate::audit_layer;
use crate::authentication;
use crate::body::{Body, discard};
use crate::error::{ApiError, set_retry_after, status};
use crate::params::Params;
use crate::routes::sessions::origin;
use haft_platform::Installation;
use haft_platform::error::ServiceError;
use haft_platform::identity::Identity;
use haft_platform::scim::{ListQuery, Scim, ScimFailure};

/// Where the resources are.
const BASE: &str = "/scim/v2";
/// The media type.
const MEDIA_TYPE: &str = "application/scim+json";
/// The largest body, in bytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;
const ERROR_SCHEMA: &str = "urn:ietf:params:scim:api:messages:2.0:Error";
const ALL: [ResourceType; 2] = [ResourceType::User, ResourceType::Group];

/// The routes.
pub(crate) fn router(app: &Arc<Installation>) -> Router<Arc<Installation>> {
    let changes = Router::new()
        .route("/Users", get(list_users).post(create_user))
        .route("/Users/{id}", get(get_user).put(replace_user).patch(patch_user).delete(delete_user))
        .route("/Groups", get(list_groups).post(create_group))
        .route("/Groups/{id}", get(get_group).put(replace_group).patch(patch_group).delete(delete_group))
        .layer(middleware::from_fn_with_state(Arc::clone(app), audit_layer::record));
    let reads = Router::new()
        .route("/ServiceProviderConfig", get(service_provider_config))
        .route("/ResourceTypes", get(resource_types))
        .route("/ResourceTypes/{id}", get(resource_type))
        .route("/Schemas", get(schemas))
        .route("/Schemas/{id}", get(schema))
        .route("/.search", post(search_all))
        .route("/Users/.search", post(search_users))
        .route("/Groups/.search", post(search_groups));
    Router::new()
        .nest(BASE, reads.merge(changes).fallback(not_found).method_not_allowed_fallback(not_allowed))
}

/// An error in the form of SCIM.
struct Failure(ScimFailure);

impl<E: Into<ScimFailure>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl Failure {
    fn of_api(error: ApiError) -> Self {
        Self(ScimFailure::from(error.0))
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self(ScimFailure { error, kind }) = self;
        let status = status(error.code);
        let mut body = json!({
            "schemas": [ERROR_SCHEMA],
            "status": status.as_u16().to_string(),
            "detail": error.message,
        });
        if let (Some(kind), Some(object)) = (kind, body.as_object_mut()) {
            object.insert("scimType".to_owned(), kind.as_str().into());
        }
        let mut response = answer(status, &body);
        // Read by the audit log.
        response.extensions_mut().insert(error.code);
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        set_retry_after(&mut response, error.retry_after, None);
        response
    }
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], body.to_string()).into_response()
}

/// Who sends a request, and the URL that the paths of resources are appended to.
struct Provider {
    app: Arc<Installation>,
    identity: Identity,
    base: String,
}

impl Provider {
    /// Authenticates a request by its token: no browser page is an identity provider.
    async fn of(app: Arc<Installation>, headers: &HeaderMap) -> Result<Self, Failure> {
        let identity = authentication::authenticate_bearer(&app, headers).await.map_err(Failure::of_api)?;
        let base = format!("{}{BASE}", origin(&app, headers));
        let provider = Self { app, identity, base };
        provider.scim()?;
        Ok(provider)
    }

    fn scim(&self) -> Result<Scim<'_>, Failure> {
        Ok(Scim::new(self.app.context(), self.app.runs(), &self.identity, &self.base)?)
    }
}

/// Authenticates a request and reads its body.
async fn read(app: Arc<Installation>, request: Request) -> Result<(Provider, Map<String, Value>), Failure> {
    let provider = match Provider::of(app, request.headers()).await {
        Ok(provider) => provider,
        Err(failure) => {
            discard(request).await;
            return Err(failure);
        }
    };
    let limit = MAX_BODY_BYTES.min(provider.app.settings().server.max_body_bytes);
    let body = Body::read(request, limit, "1 MiB for SCIM, `server.max_body_bytes`").await;
    let body = body.map_err(Failure::of_api)?;
    let object = body.json().map_err(|ApiError(error)| {
        Failure(ScimFailure::from(ScimError::new(ScimType::InvalidSyntax, error.message)))
    })?;
    Ok((provider, object))
}

fn projection(params: &Params) -> Result<Projection, Failure> {
    let names = |name: &str| params.get(name).unwrap_or_default().to_owned();
    let (attributes, excluded) = (names("attributes"), names("excluded_attributes"));
    Ok(Projection::parse(attributes.split(','), excluded.split(','))?)
}

/// Returns a resource with the wanted attributes.
fn resource(status: StatusCode, mut found: Map<String, Value>, projection: &Projection) -> Response {
    let location = found.get("meta").and_then(|meta| meta.get("location")).and_then(Value::as_str);
    let location = location.and_then(|location| HeaderValue::from_str(location).ok());
    projection.apply(&mut found);
    let mut response = answer(status, &Value::Object(found));
    if let Some(location) = location.filter(|_| status == StatusCode::CREATED) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

async fn list(
    app: Arc<Installation>,
    resource: ResourceType,
    headers: &HeaderMap,
    params: Result<Params, ApiError>,
) -> Result<Response, Failure> {
    let provider = Provider::of(app, headers).await?;
    let params = params.map_err(Failure::of_api)?;
    let number = |name| params.parsed::<i64>(name, "an integer").map_err(Failure::of_api);
    let query = ListQuery {
        filter: params.get("filter").map(str::to_owned),
        start_index: number("start_index")?,
        count: number("count")?,
        projection: projection(&params)?,
    };
    Ok(answer(StatusCode::OK, &provider.scim()?.list(&[resource], query).await?))
}

async fn search(
    app: Arc<Installation>,
    resources: &[ResourceType],
    request: Request,
) -> Result<Response, Failure> {
    let (provider, body) = read(app, request).await?;
    let invalid = |name: &str, expected: &str| {
        ScimError::new(ScimType::InvalidValue, format!("invalid `{name}`: expected {expected}"))
    };
    let number = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| invalid(name, "an integer")),
    };
    let names = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(names)) => {
            let texts: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
            texts.ok_or_else(|| invalid(name, "a list of names"))
        }
        Some(_) => Err(invalid(name, "a list of names")),
    };
    let query = ListQuery {
        filter: match body.get("filter") {
            None | Some(Value::Null) => None,
            Some(Value::String(filter)) => Some(filter.clone()),
            Some(_) => return Err(invalid("filter", "a text").into()),
        },
        start_index: number("startIndex")?,
        count: number("count")?,
        projection: Projection::parse(
            names("attributes")?.into_iter(),
            names("excludedAttributes")?.into_iter(),
        )?,
    };
    Ok(answer(StatusCode::OK, &provider.scim()?.list(resources, query).await?))
}

async fn search_all(State(app): State<Arc<Installation>>, request: Request) -> Result<Response, Failure> {
    search(app, &ALL, request).await
}

async fn search_users(State(app): State<Arc<Installation>>, request: Request) -> Result<Response, Failure> {
    search(app, &[ResourceType::User], request).await
}

async fn search_groups(State(app): State<Arc<Installation>>, request: Request) -> Result<Response, Failure> {
    search(app, &[ResourceType::Group], request).await
}

/// The handlers of one type of resources.
macro_rules! handlers {
    ($type:expr, $list:ident, $create:ident, $get:ident, $replace:ident, $patch:ident, $delete:ident) => {
        async fn $list(
            State(app): State<Arc<Installation>>,
            headers: HeaderMap,
            params: Result<Params, ApiError>,
        ) -> Result<Response, Failure> {
            list(app, $type, &headers, params).await
        }

        async fn $create(
            State(app): State<Arc<Installation>>,
            params: Result<Params, ApiError>,
            request: Request,
        ) -> Result<Response, Failure> {
            let (provider, body) = read(app, request).await?;
            let projection = projection(&params.map_err(Failure::of_api)?)?;
            Ok(resource(StatusCode::CREATED, provider.scim()?.create($type, &body).await?, &projection))
        }

        async fn $get(
            State(app): State<Arc<Installation>>,
            Path(id): Path<String>,
            headers: HeaderMap,
            params: Result<Params, ApiError>,
        ) -> Result<Response, Failure> {
            let provider = Provider::of(app, &headers).await?;
            let projection = projection(&params.map_err(Failure::of_api)?)?;
            Ok(resource(StatusCode::OK, provider.scim()?.get($type, &id).await?, &projection))
        }

        async fn $replace(
            State(app): State<Arc<Installation>>,
            Path(id): Path<String>,
            params: Result<Params, ApiError>,
            request: Request,
        ) -> Result<Response, Failure> {
            let (provider, body) = read(app, request).await?;
            let projection = projection(&params.map_err(Failure::of_api)?)?;
            Ok(resource(StatusCode::OK, provider.scim()?.replace($type, &id, &body).await?, &projection))
        }

        async fn $patch(
            State(app): State<Arc<Installation>>,
            Path(id): Path<String>,
            params: Result<Params, ApiError>,
            request: Request,
        ) -> Result<Response, Failure> {
            let (provider, body) = read(app, request).await?;
            let projection = projection(&params.map_err(Failure::of_api)?)?;
            Ok(resource(StatusCode::OK, provider.scim()?.patch($type, &id, &body).await?, &projection))
        }

        async fn $delete(
            State(app): State<Arc<Installation>>,
            Path(id): Path<String>,
            headers: HeaderMap,
        ) -> Result<Response, Failure> {
            let provider = Provider::of(app, &headers).await?;
            provider.scim()?.delete($type, &id).await?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
    };
}

handlers!(ResourceType::User, list_users, create_user, get_user, replace_user, patch_user, delete_user);
handlers!(
    ResourceType::Group,
    list_groups,
    create_group,
    get_group,
    replace_group,
    patch_group,
    delete_group
);

async fn service_provider_config(
    State(app): State<Arc<Installation>>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let provider = Provider::of(app, &headers).await?;
    Ok(answer(StatusCode::OK, &haft_scim::service_provider_config(&provider.base)))
}

async fn resource_types(
    State(app): State<Arc<Installation>>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let provider = Provider::of(app, &headers).await?;
    Ok(documents(&haft_scim::resource_types(&provider.base)))
}

async fn resource_type(
    State(app): State<Arc<Installation>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let provider = Provider::of(app, &headers).await?;
    document(haft_scim::resource_types(&provider.base), ("resource type", &id))
}

async fn schemas(State(app): State<Arc<Installation>>, headers: HeaderMap) -> Result<Response, Failure> {
    let provider = Provider::of(app, &headers).await?;
    Ok(documents(&haft_scim::schemas(&provider.base)))
}

async fn schema(
    State(app): State<Arc<Installation>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let provider = Provider::of(app, &headers).await?;
    document(haft_scim::schemas(&provider.base), ("schema", &id))
}

fn documents(all: &[Value]) -> Response {
    let list = json!({
        "schemas": [LIST_SCHEMA],
        "totalResults": all.len(),
        "startIndex": 1,
        "itemsPerPage": all.len(),
        "Resources": all,
    });
    answer(StatusCode::OK, &list)
}

fn document(all: Vec<Value>, (kind, id): (&str, &str)) -> Result<Response, Failure> {
    let found = all.into_iter().find(|document| document.get("id").and_then(Value::as_str) == Some(id));
    let found = found.ok_or_else(|| ServiceError::not_found(kind, id))?;
    Ok(answer(StatusCode::OK, &found))
}

async fn not_found(request: Request) -> Failure {
    ServiceError::not_found("route", request.uri().path()).into()
}

async fn not_allowed(request: Request) -> Failure {
    let message = format!("`{}` is not allowed on `{}`", request.method(), request.uri().path());
    ServiceError::new(ErrorCode::MethodNotAllowed, message).into()
}
