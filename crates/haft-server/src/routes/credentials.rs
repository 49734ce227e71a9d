//! `/credentials`: stored secrets. Values are never returned.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::secret::{CredentialSelector, MASK, Secret, SecretSource as _};
use haft_core::token::Role;
use haft_store::{Credential, CredentialInfo, CredentialPurpose, CredentialValue};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::credential_references::CredentialReferences;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, success};

/// A stored credential, without its value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CredentialView {
    #[schema(example = "API_TOKEN")]
    name: String,
    /// The category.
    #[schema(example = "custom")]
    category: String,
    /// The provider that it is for.
    #[schema(required, example = "web_search")]
    provider_key: Option<String>,
    /// The variant of the provider.
    #[schema(required, example = "serper")]
    provider_variant: Option<String>,
    description: String,
    /// Always `***`.
    #[schema(example = "***")]
    value: &'static str,
    /// The fields, each with the value `***`; `null` for a plain value.
    #[schema(required, example = json!({"api_key": "***"}))]
    payload: Option<BTreeMap<String, &'static str>>,
    /// The tools, as `bundle:name@version`, and MCP servers that refer to it.
    #[schema(example = json!(["user-created:weather@1.0.0"]))]
    used_by: Vec<String>,
    /// Why it cannot be decrypted.
    #[schema(required)]
    error: Option<String>,
    created_at: Timestamp,
    modified_at: Timestamp,
}

impl CredentialView {
    fn new(info: CredentialInfo, references: &CredentialReferences) -> Self {
        let CredentialPurpose { category, provider_key, provider_variant, description } = info.purpose;
        Self {
            used_by: references.of(&info.name),
            name: info.name,
            category,
            provider_key,
            provider_variant,
            description,
            value: MASK,
            payload: info.fields.map(|fields| fields.into_iter().map(|field| (field, MASK)).collect()),
            error: info.error,
            created_at: info.created_at,
            modified_at: info.modified_at,
        }
    }
}

/// A page of credentials.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CredentialList {
    credentials: Vec<CredentialView>,
    total: usize,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// List stored credentials, without their values.
#[utoipa::path(
    get, path = "/credentials", tag = "credentials",
    params(("category" = Option<String>, Query, description = "Only credentials of this category"),
        ("provider_key" = Option<String>, Query, description = "Only credentials for this provider"), PageParams),
    responses((status = 200, body = Success<CredentialList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let page = params.page("credentials")?;
    let (category, provider) = (params.get("category"), params.get("provider_key"));
    let mut all = app.store().credentials(&identity.tenant).await?;
    all.retain(|info| {
        category.is_none_or(|category| info.purpose.category == category)
            && (provider.is_none() || info.purpose.provider_key.as_deref() == provider)
    });
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |credential| credential.name.clone());
    let references = CredentialReferences::collect(&app, &identity.tenant).await?;
    let credentials = selected.into_iter().map(|info| CredentialView::new(info, &references)).collect();
    Ok(success(CredentialList { credentials, total, next_page_token }).into_response())
}

/// Return a stored credential, without its value.
#[utoipa::path(
    get, path = "/credentials/{name}", tag = "credentials", params(("name" = String, Path, example = "API_TOKEN")),
    responses((status = 200, body = Success<CredentialView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    Ok(success(view(&app, &identity, &name).await?).into_response())
}

async fn view(app: &App, identity: &Identity, name: &str) -> Result<CredentialView, ApiError> {
    let info = find(app, identity, name).await?.ok_or_else(|| ApiError::not_found("credential", name))?;
    let references = CredentialReferences::collect(app, &identity.tenant).await?;
    Ok(CredentialView::new(info, &references))
}

async fn find(app: &App, identity: &Identity, name: &str) -> Result<Option<CredentialInfo>, ApiError> {
    let all = app.store().credentials(&identity.tenant).await?;
    Ok(all.into_iter().find(|info| info.name == name))
}

/// A credential: a `value` or a `payload`, and what it is for. Without either, the stored secret is kept.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct CredentialBody {
    /// The secret.
    #[schema(example = "s3cr3t")]
    value: Option<String>,
    /// Several secrets by name. A field with the value `***` keeps its stored value.
    #[schema(example = json!({"api_key": "s3cr3t", "endpoint": "https://search.example.com"}))]
    payload: Option<BTreeMap<String, String>>,
    /// The category: lower-case letters, digits, `_`, `-` or `.`; default: `custom`.
    #[schema(example = "custom")]
    category: Option<String>,
    /// The provider that it is for.
    #[schema(example = "web_search")]
    provider_key: Option<String>,
    /// The variant of the provider.
    #[schema(example = "serper")]
    provider_variant: Option<String>,
    #[schema(max_length = 500)]
    description: Option<String>,
}

/// Store or replace a credential.
#[utoipa::path(
    put, path = "/credentials/{name}", tag = "credentials", params(("name" = String, Path, example = "API_TOKEN")), request_body = CredentialBody,
    responses((status = 200, body = Success<CredentialView>))
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    // The parser's message could quote the value.
    let body: CredentialBody = body.json().map_err(|_| {
        ApiError::bad_request(
            "invalid request body: expected `{\"value\": \"…\"}` with the secret as a string, or `{\"payload\": {…}}` \
             with strings; optional: `category`, `provider_key`, `provider_variant`, `description`",
        )
    })?;
    let stored = find(&app, &identity, &name).await?;
    let value = value(&app, &identity, &name, (body.value, body.payload), stored.is_some()).await?;
    // What the body does not name stays as it is.
    let purpose = stored.map(|info| info.purpose).unwrap_or_default();
    let purpose = CredentialPurpose {
        category: body.category.unwrap_or(purpose.category),
        provider_key: body.provider_key.or(purpose.provider_key),
        provider_variant: body.provider_variant.or(purpose.provider_variant),
        description: body.description.unwrap_or(purpose.description),
    };
    let credential = Credential { value, purpose };
    app.store().store_credential(identity.tenant.clone(), name.clone(), credential).await?;
    audit::note(&identity, "credential.put", &name);
    Ok(success(view(&app, &identity, &name).await?).into_response())
}

/// Returns the secret to store: the new one, with masked fields as they are stored, or the stored one.
async fn value(
    app: &App,
    identity: &Identity,
    name: &str,
    new: (Option<String>, Option<BTreeMap<String, String>>),
    is_stored: bool,
) -> Result<CredentialValue, ApiError> {
    match new {
        (Some(_), Some(_)) => Err(ApiError::bad_request("`value` and `payload` exclude each other")),
        (Some(value), None) if value == MASK => {
            Err(ApiError::bad_request("`***` masks the stored value; enter the new value"))
        }
        (Some(value), None) => Ok(CredentialValue::Plain(Secret::new(value))),
        (None, Some(payload)) => {
            let stored = stored_fields(app, identity, name).await?.unwrap_or_default();
            let mut fields = BTreeMap::new();
            for (field, value) in payload {
                let value = if value == MASK {
                    stored.get(&field).cloned().ok_or_else(|| {
                        let field = excerpt(&field, 60);
                        let message = format!(
                            "`payload.{field}`: `***` masks a value that is not stored; enter the value"
                        );
                        ApiError::bad_request(message)
                    })?
                } else {
                    Secret::new(value)
                };
                fields.insert(field, value);
            }
            Ok(CredentialValue::Fields(fields))
        }
        (None, None) if is_stored => match stored_fields(app, identity, name).await? {
            Some(fields) => Ok(CredentialValue::Fields(fields)),
            None => stored_text(app, identity, name).await.map(CredentialValue::Plain),
        },
        (None, None) => Err(ApiError::bad_request(
            "invalid request body: expected `value` or `payload` with the secret of the new credential",
        )),
    }
}

async fn stored_text(app: &App, identity: &Identity, name: &str) -> Result<Secret, ApiError> {
    let found = app.store().credential(&identity.tenant, CredentialSelector::Name(name)).await;
    let found = found.map_err(|error| {
        ApiError::new(ErrorCode::Internal, format!("{error}: {}; enter the value again", error.source))
    })?;
    found.ok_or_else(|| ApiError::not_found("credential", name))
}

async fn stored_fields(
    app: &App,
    identity: &Identity,
    name: &str,
) -> Result<Option<BTreeMap<String, Secret>>, ApiError> {
    let info = find(app, identity, name).await?;
    if info.is_none_or(|info| info.fields.is_none()) {
        return Ok(None);
    }
    let text = stored_text(app, identity, name).await?;
    let fields: BTreeMap<String, String> = serde_json::from_str(text.expose()).unwrap_or_default();
    Ok(Some(fields.into_iter().map(|(field, value)| (field, Secret::new(value))).collect()))
}

/// Delete a credential. One that tools refer to is deleted only with `force=true`.
#[utoipa::path(
    delete, path = "/credentials/{name}", tag = "credentials",
    params(("name" = String, Path, example = "API_TOKEN"),
        ("force" = Option<bool>, Query, description = "Delete it although tools refer to it")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "Tools refer to it; `details.used_by` has their names"))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(name): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let force = params.flag("force")?;
    let used_by = view(&app, &identity, &name).await?.used_by;
    if !used_by.is_empty() && !force {
        let message = format!(
            "credential `{name}` is in use by {}; delete it anyway with `force=true` (`haft secret rm --force`)",
            excerpt(&used_by.join(", "), 300)
        );
        return Err(ApiError::new(ErrorCode::Conflict, message).with_details(json!({"used_by": used_by})));
    }
    app.store().delete_credential(identity.tenant.clone(), name.clone()).await?;
    audit::note(&identity, "credential.delete", &name);
    Ok(reply::message(format!("Credential '{name}' deleted")))
}
