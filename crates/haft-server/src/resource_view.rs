//! What requests and responses of every kind of resource have in common.

use std::sync::Arc;

use axum::http::HeaderMap;
use haft_core::Timestamp;
use haft_core::resource::{Resource, ResourceSpec};
use haft_core::tool::Status;
use haft_store::ResourceQuery;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::error::ApiError;
use crate::params::{Page, Params};

/// A changed state of a resource.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ResourcePatch {
    /// Whether it may be used.
    pub(crate) enabled: bool,
}

/// The state of a resource beside its definition.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResourceState {
    /// The status.
    status: Status,
    /// Whether it may be used.
    enabled: bool,
    /// The number of the newest revision.
    revision: u32,
    /// The number of the published revision, which production uses.
    #[schema(required)]
    published_revision: Option<u32>,
    /// The file that defines it, relative to the home folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Why its file cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Who created it.
    #[schema(value_type = Option<String>, required)]
    created_by: Option<Arc<str>>,
    /// Who stored the newest revision.
    #[schema(value_type = Option<String>, required)]
    modified_by: Option<Arc<str>>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When its definition last changed.
    #[schema(value_type = String, format = DateTime)]
    modified_at: Timestamp,
    /// When it was published.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    published_at: Option<Timestamp>,
}

impl ResourceState {
    /// Returns the state of a resource.
    pub(crate) fn of<S: ResourceSpec>(resource: &Resource<S>) -> Self {
        Self {
            status: resource.status,
            enabled: resource.enabled,
            revision: resource.revision,
            published_revision: resource.published_revision(),
            path: resource.path.clone(),
            error: resource.error.clone(),
            created_by: resource.created_by.clone(),
            modified_by: resource.modified_by.clone(),
            created_at: resource.created_at,
            modified_at: resource.modified_at,
            published_at: resource.published_at,
        }
    }
}

/// Which resources are listed.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only documents the parameters that `Page::of_resources` reads")]
pub(crate) struct ResourceListParams {
    /// A part of the slug, the name or the description.
    q: Option<String>,
    /// The status.
    status: Option<Status>,
}

impl Page {
    /// Returns the page of a list of resources, with one item more: it tells whether there is a next page.
    pub(crate) fn of_resources(&self, params: &Params) -> Result<ResourceQuery, ApiError> {
        let expected = "`draft`, `published`, `deprecated`, `disabled`";
        Ok(ResourceQuery {
            q: params.get("q").map(str::to_owned),
            status: params.choice("status", Status::parse, expected)?,
            after: self.after.clone(),
            skip: self.skip,
            limit: self.size.saturating_add(1),
        })
    }
}

/// Returns the revision that `If-Match` expects.
pub(crate) fn expected_revision(headers: &HeaderMap) -> Result<Option<u32>, ApiError> {
    let Some(value) = headers.get("if-match") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim().trim_matches('"');
    if text == "*" {
        return Ok(None);
    }
    let invalid = || ApiError::bad_request("`If-Match` must be the number of a revision");
    text.parse().map(Some).map_err(|_| invalid())
}
