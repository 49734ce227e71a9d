//! What the commands for people, service accounts and groups have in common.

use clap::Args;
use haft_api::people::{ActorView, ProvisionedView, RightsView};
use http::Method;
use serde_json::{Map, Value, json};

use super::token::{RateLimit, Role, rate_text};
use crate::client::{Body, Client, Request, segment};
use crate::context::Context;
use crate::error::{ApiError, CliError};
use crate::output::Output;
use crate::{input, view};

/// People, service accounts or groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// The singular noun.
    noun: &'static str,
    /// The path of all of them.
    path: &'static str,
}

pub(super) const PEOPLE: Kind = Kind { noun: "person", path: "/api/people" };
pub(super) const SERVICE_ACCOUNTS: Kind = Kind { noun: "service account", path: "/api/service-accounts" };
pub(super) const GROUPS: Kind = Kind { noun: "group", path: "/api/groups" };

/// Those of one kind in a tenant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Members<'a> {
    kind: Kind,
    /// The tenant; `None` for the own one.
    tenant: Option<&'a str>,
}

impl<'a> Members<'a> {
    /// Names those of a kind in a tenant.
    pub(super) fn new(kind: Kind, tenant: Option<&'a str>) -> Self {
        Self { kind, tenant }
    }

    /// Lists all of them.
    pub(super) fn list(self) -> Request {
        Request::get(self.kind.path).query("page_size", "500").query_some("tenant", self.tenant)
    }

    /// Creates one with the given fields.
    pub(super) fn create(self, mut fields: Map<String, Value>) -> Request {
        fields.extend(self.tenant.map(|tenant| ("tenant".to_owned(), json!(tenant))));
        Request::post(self.kind.path, Value::Object(fields))
    }

    /// Reads one of them.
    pub(super) fn get(self, reference: &str) -> Request {
        self.at(Method::GET, reference, "")
    }

    /// Returns a request about one of them, at a path below it.
    pub(super) fn at(self, method: Method, reference: &str, below: &str) -> Request {
        Request::new(method, format!("{}/{}{below}", self.kind.path, segment(reference)))
            .query_some("tenant", self.tenant)
    }

    /// Returns the person or the service account of the tenant that a reference means.
    pub(super) async fn find_actor(self, reference: &str, client: &Client) -> Result<ActorView, CliError> {
        find(reference, self.tenant, client).await
    }
}

/// The tools that somebody may see and call.
#[derive(Debug, Args)]
pub(super) struct ToolOptions {
    /// Tools to see and call: names, `bundle:*`, patterns, `tag:NAME`
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    tools: Option<Vec<String>>,
    /// Allow every tool
    #[arg(long, conflicts_with = "tools")]
    all_tools: bool,
    /// Allow no tool
    #[arg(long, conflicts_with_all = ["tools", "all_tools"])]
    no_tools: bool,
}

impl ToolOptions {
    /// Returns the value in requests; `None` if no option is given.
    pub(super) fn value(self) -> Option<Value> {
        match self {
            Self { all_tools: true, .. } => Some(Value::Null),
            Self { no_tools: true, .. } => Some(json!([])),
            Self { tools, .. } => tools.map(Value::from),
        }
    }
}

/// The membership of a new person or service account.
#[derive(Debug, Args)]
pub(super) struct NewMembership {
    /// Role
    #[arg(long, default_value = "caller")]
    role: Role,
    /// Run tools that need approval without it
    #[arg(long)]
    elevated: bool,
    #[command(flatten)]
    tools: ToolOptions,
    /// How many calls to allow per period, with sessions and tokens together, e.g. `60/1m` [default: no limit]
    #[arg(long, value_name = "CALLS/PERIOD")]
    rate_limit: Option<RateLimit>,
    /// Group to join: name or id; repeatable
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
}

impl NewMembership {
    /// Returns the fields of the request.
    pub(super) fn fields(self) -> [(&'static str, Option<Value>); 5] {
        let Self { role, elevated, tools, rate_limit, groups } = self;
        [
            ("role", role.name().map(Value::from)),
            ("elevated", elevated.then_some(json!(true))),
            ("tools", tools.value()),
            ("rate_limit", rate_limit.map(|rate| rate.body())),
            ("groups", (!groups.is_empty()).then(|| Value::from(groups))),
        ]
    }
}

/// What `edit` changes of a person or a service account.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(super) struct MembershipChange {
    /// New name
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Role
    #[arg(long)]
    role: Option<Role>,
    /// Run tools that need approval without it
    #[arg(long, conflicts_with = "no_elevated")]
    elevated: bool,
    /// Wait for approval where tools need it
    #[arg(long)]
    no_elevated: bool,
    #[command(flatten)]
    tools: ToolOptions,
    /// How many calls to allow per period, with sessions and tokens together, e.g. `60/1m`
    #[arg(long, value_name = "CALLS/PERIOD")]
    rate_limit: Option<RateLimit>,
    /// Remove the rate limit
    #[arg(long, conflicts_with = "rate_limit")]
    no_rate_limit: bool,
    /// Group to be a member of: name or id; replaces the list; repeatable
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Leave all groups
    #[arg(long, conflicts_with = "groups")]
    no_groups: bool,
}

impl MembershipChange {
    /// Returns the fields of the request.
    pub(super) fn fields(self) -> [(&'static str, Option<Value>); 6] {
        let Self { name, role, elevated, no_elevated, tools, rate_limit, no_rate_limit, groups, no_groups } =
            self;
        let rate = rate_limit.map(|rate| rate.body()).or(no_rate_limit.then_some(Value::Null));
        let is_given = no_groups || !groups.is_empty();
        [
            ("name", name.map(Value::from)),
            ("role", role.and_then(Role::name).map(Value::from)),
            ("elevated", switch(elevated, no_elevated)),
            ("tools", tools.value()),
            ("rate_limit", rate),
            ("groups", is_given.then(|| Value::from(groups))),
        ]
    }
}

/// Returns the value of an option and its opposite; `None` if neither is given.
pub(super) fn switch(on: bool, off: bool) -> Option<Value> {
    (on || off).then_some(json!(on))
}

/// Returns the fields that have a value.
pub(super) fn given(fields: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Changes the given fields of a person, a service account or a group.
pub(super) async fn patch(
    members: Members<'_>,
    reference: &str,
    changes: Map<String, Value>,
    done: &str,
    context: &Context,
) -> Result<(), CliError> {
    if changes.is_empty() {
        return Err(CliError::usage("nothing to change: pass at least one option; see `--help`"));
    }
    let request = members.at(Method::PATCH, reference, "").with_body(Body::Json(Value::Object(changes)));
    let data = context.request(request).await?;
    context.output.data(&data, |output| {
        output.note(&format!("{done} {} `{reference}`", members.kind.noun));
        Ok(())
    })
}

/// Ends the sessions, tokens and running work of a person or a service account.
pub(super) async fn disable(
    members: Members<'_>,
    reference: &str,
    context: &Context,
) -> Result<(), CliError> {
    let changes = given([("status", Some(json!("disabled")))]);
    patch(members, reference, changes, "disabled", context).await
}

/// Lets a person or a service account act again.
pub(super) async fn enable(members: Members<'_>, reference: &str, context: &Context) -> Result<(), CliError> {
    let changes = given([("status", Some(json!("active")))]);
    patch(members, reference, changes, "enabled", context).await
}

/// Deletes a person, a service account or a group; asks before, unless `yes` is set.
pub(super) async fn delete(
    members: Members<'_>,
    reference: &str,
    yes: bool,
    context: &Context,
) -> Result<(), CliError> {
    let noun = members.kind.noun;
    if !yes && !input::confirm(&format!("Delete the {noun} `{reference}`?"))? {
        context.output.note("nothing was deleted");
        return Ok(());
    }
    let data = context.request(members.at(Method::DELETE, reference, "")).await?;
    context.output.data(&data, |output| {
        output.note(&format!("deleted {noun} `{reference}`"));
        Ok(())
    })
}

/// Prints a person or a service account.
pub(super) fn show(output: &Output, actor: &ActorView) -> Result<(), CliError> {
    let responsible = actor.responsible.as_ref();
    output.fields(&[
        (actor.kind.noun(), format!("{} ({})", actor.name, actor.id)),
        ("e-mail", actor.email.clone().unwrap_or_default()),
        ("description", actor.description.clone()),
        ("responsible", responsible.map(|person| person.name.clone()).unwrap_or_default()),
        ("status", actor.status.as_str().to_owned()),
        ("tenant", actor.tenant.clone()),
        ("other tenants", if actor.is_shared { "yes" } else { "" }.to_owned()),
        ("managed by SCIM", actor.provisioned.as_ref().map(provisioned).unwrap_or_default()),
        ("groups", group_names(actor)),
        ("membership", rights(&actor.membership)),
        ("rights", rights(&actor.rights)),
        ("rate limit", rate_text(actor.rate_limit.as_ref())),
        ("tokens", actor.tokens.to_string()),
        ("sessions", actor.sessions.to_string()),
        ("created", view::moment(actor.created_at)),
        ("last seen", last_seen(actor)),
    ])
}

/// Says how an identity provider knows a person.
fn provisioned(own: &ProvisionedView) -> String {
    match &own.external_id {
        Some(id) => format!("{} (external id {id})", own.user_name),
        None => own.user_name.clone(),
    }
}

/// Returns the names of the groups of a person or a service account.
pub(super) fn group_names(actor: &ActorView) -> String {
    actor.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns when a person or a service account last made a request.
pub(super) fn last_seen(actor: &ActorView) -> String {
    actor.last_seen_at.map_or_else(|| "never".to_owned(), view::moment)
}

/// Returns the role of rights in tables.
pub(super) fn role(rights: &RightsView) -> String {
    if rights.platform { "platform admin" } else { rights.role.as_str() }.to_owned()
}

/// Returns rights as one line.
pub(super) fn rights(rights: &RightsView) -> String {
    let elevated = if rights.elevated { "; elevated" } else { "" };
    format!("{}; tools: {}{elevated}", role(rights), view::allow_list(rights.tools.as_deref()))
}

/// Notes that a list has more items than its first page.
pub(super) fn note_rest(output: &Output, shown: usize, total: usize, items: &str) {
    if total > shown {
        output.note(&format!("\n{shown} of {total} {items}"));
    }
}

/// Returns the person or the service account of a tenant that an id, an e-mail address or a name refers to.
pub(super) async fn find(
    reference: &str,
    tenant: Option<&str>,
    client: &Client,
) -> Result<ActorView, CliError> {
    for kind in [PEOPLE, SERVICE_ACCOUNTS] {
        match client.data(Members::new(kind, tenant).get(reference)).await {
            Err(CliError::Api(error)) if error.code == "not_found" => {}
            found => return view::read(&found?),
        }
    }
    let message = format!("no person or service account `{reference}` found");
    Err(CliError::Api(Box::new(ApiError::local(404, "not_found", message))))
}
