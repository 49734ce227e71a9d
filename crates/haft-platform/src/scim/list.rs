//! Lists of users and groups: filtered, in the order in which they were created, in pages.

use haft_core::actor::ActorKind;
use haft_core::outcome::ErrorCode;
use haft_scim::{Filter, LIST_SCHEMA, MAX_RESULTS, Projection, ResourceType};
use haft_store::MemberKey;
use serde_json::{Value, json};

use super::error::ScimFailure;
use super::provider::{Object, Scim, actor_id};
use super::users::is_user;
use crate::error::ServiceError;
use crate::people::{Directory, Member, MemberFilter};

/// How many resources a page has, unless the request says it.
const DEFAULT_COUNT: i64 = 100;

/// What a request lists.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    pub filter: Option<String>,
    /// The position of the first one, from 1.
    pub start_index: Option<i64>,
    pub count: Option<i64>,
    pub projection: Projection,
}

impl Scim<'_> {
    /// Lists users, groups or both.
    pub async fn list(&self, resources: &[ResourceType], query: ListQuery) -> Result<Value, ScimFailure> {
        let filter = query.filter.as_deref().filter(|text| !text.trim().is_empty());
        let filter = filter.map(Filter::parse).transpose()?;
        let mut all = Vec::new();
        for resource in resources {
            match resource {
                ResourceType::User => all.extend(self.candidates(filter.as_ref()).await?),
                ResourceType::Group => {
                    let mut groups = Directory::load(self.app).await?.groups(&self.identity.tenant);
                    groups.sort_by_key(|found| found.group.id);
                    all.extend(groups.iter().map(|group| self.group_json(group)));
                }
            }
        }
        // A filter of many terms over many people must not hold up other requests.
        let selected = tokio::task::spawn_blocking(move || select(all, filter.as_ref(), &query)).await;
        selected.map_err(|error| {
            tracing::error!(%error, "the task of a list failed");
            ServiceError::new(ErrorCode::Internal, "an internal error occurred; see the server log").into()
        })
    }

    /// Returns the users that a filter may select: the one that it names, or all.
    async fn candidates(&self, filter: Option<&Filter>) -> Result<Vec<Object>, ScimFailure> {
        let required = |attribute| filter.and_then(|filter| filter.required_text(attribute));
        let members: Vec<Member> = if let Some(name) = required("userName") {
            // Who has neither user name nor address is identified by id.
            let found = self.member(MemberKey::UserName(name)).await?;
            let found = match (found, actor_id(name)) {
                (None, Some(id)) => self.member(MemberKey::Id(id)).await?,
                (found, _) => found,
            };
            found.into_iter().collect()
        } else if let Some(id) = required("externalId") {
            self.member(MemberKey::ExternalId(id)).await?.into_iter().collect()
        } else if let Some(id) = required("id") {
            match actor_id(id) {
                Some(id) => self.member(MemberKey::Id(id)).await?.into_iter().collect(),
                None => Vec::new(),
            }
        } else {
            let directory = Directory::load(self.app).await?;
            let tenant = &self.identity.tenant;
            let mut all = directory.members(self.app, tenant, ActorKind::Person, &MemberFilter::default());
            all.retain(|member| is_user(&member.actor));
            all.sort_by_key(|member| member.actor.id);
            all
        };
        Ok(members.iter().map(|member| self.user_json(member)).collect())
    }
}

fn select(mut all: Vec<Object>, filter: Option<&Filter>, query: &ListQuery) -> Value {
    all.retain(|resource| filter.is_none_or(|filter| filter.matches(resource)));
    let total = all.len();
    let start = query.start_index.unwrap_or(1).max(1);
    let count = query.count.unwrap_or(DEFAULT_COUNT).max(0);
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(MAX_RESULTS);
    let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
    let page = all.into_iter().skip(skipped).take(count).map(|mut resource| {
        query.projection.apply(&mut resource);
        Value::Object(resource)
    });
    let page: Vec<Value> = page.collect();
    json!({
        "schemas": [LIST_SCHEMA],
        "totalResults": total,
        "startIndex": start,
        "itemsPerPage": page.len(),
        "Resources": page,
    })
}
