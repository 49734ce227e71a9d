//! The parts of requests and responses that all kinds of resources share.

use axum::http::HeaderMap;
use haft_core::resource::{Resource, ResourceSpec};
use haft_core::tool::Status;
use haft_store::{ResourceQuery, ResourceSource};
use serde::Deserialize;
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

/// Which resources are listed.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only documents the parameters that `Page::of_resources` reads")]
pub(crate) struct ResourceListParams {
    /// A part of the slug, the name or the description.
    q: Option<String>,
    /// The status.
    status: Option<Status>,
    /// The source of the definition: `file` (in the home folder) or `store`.
    #[param(pattern = "^(file|store)$")]
    source: Option<String>,
    /// Whether to list the deleted resources that can be restored, instead of the others; for editors.
    deleted: Option<bool>,
}

impl Page {
    /// Returns the page of a list of resources with one extra item, which shows whether there is a next page.
    pub(crate) fn of_resources(&self, params: &Params) -> Result<ResourceQuery, ApiError> {
        let expected = "`draft`, `published`, `deprecated`, `disabled`";
        let deleted = params.flag("deleted")?;
        // Several deleted ones can have the same slug, so their position is a number.
        let (after, skip) = if deleted {
            (None, self.after::<u32>()?.unwrap_or(0).saturating_add(self.skip))
        } else {
            (self.after.clone(), self.skip)
        };
        Ok(ResourceQuery {
            q: params.get("q").map(str::to_owned),
            status: params.choice("status", Status::parse, expected)?,
            after,
            skip,
            limit: self.size.saturating_add(1),
            deleted,
            source: params.choice("source", ResourceSource::parse, "`file`, `store`")?,
            slugs: None,
        })
    }

    /// Removes the extra item of a list of resources; returns the token of the next page.
    pub(crate) fn next_of_resources<S: ResourceSpec>(
        &self,
        query: &ResourceQuery,
        found: &mut Vec<Resource<S>>,
    ) -> Option<String> {
        let next = query.skip.saturating_add(self.size).to_string();
        self.truncate(
            found,
            |last| {
                if query.deleted { next.clone() } else { last.definition.slug().to_owned() }
            },
        )
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
