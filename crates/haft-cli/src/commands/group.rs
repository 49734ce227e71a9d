//! `haft group`: manages groups of people and service accounts.

use clap::{Args, Subcommand};
use haft_api::people::{ActorName, GroupList, GroupView};
use http::Method;
use serde_json::{Value, json};

use super::actor::{self, GROUPS, Members, ToolOptions};
use super::token::Role;
use crate::client::{Body, Client};
use crate::context::Context;
use crate::error::{ApiError, CliError};
use crate::output::Output;
use crate::view;

/// The arguments of `haft group`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tenant, for platform admins [default: your own]
    // Clap sorts global options among those of a command: this one is the last before `--help`.
    #[arg(long, value_name = "ID", global = true, display_order = 9)]
    tenant: Option<String>,
    #[command(subcommand)]
    command: Command,
}

/// Manage groups
#[derive(Debug, Subcommand)]
enum Command {
    /// Create a group
    #[command(visible_alias = "add", after_help = concat!(
        "Without --tools and --all-tools, the group adds no tools to those of its members.\n\n",
        examples!(
            "haft group create finance --tools bank:* --role caller",
            "haft group create finance --tools bank:* --member ann@example.com --member bob@example.com"
        )
    ))]
    Create(Create),
    /// List groups
    #[command(visible_alias = "ls", after_help = examples!("haft group list"))]
    List,
    /// Show a group with its members
    #[command(after_help = examples!("haft group show finance"))]
    Show {
        /// Group: name or id
        group: String,
    },
    /// Change a group; what is not given stays
    #[command(after_help = examples!("haft group edit finance --tools bank:*,invoices", "haft group edit finance --name accounting"))]
    Edit(Edit),
    /// Delete a group; its members stay
    #[command(visible_alias = "rm", after_help = examples!("haft group delete finance"))]
    Delete {
        /// Group: name or id
        group: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Add people and service accounts to a group
    #[command(after_help = examples!("haft group add-member finance ann@example.com bob@example.com"))]
    AddMember {
        /// Group: name or id
        group: String,
        /// People and service accounts: e-mail address, name or id
        #[arg(required = true, value_name = "MEMBER")]
        members: Vec<String>,
    },
    /// Remove people and service accounts from a group
    #[command(after_help = examples!("haft group remove-member finance ann@example.com"))]
    RemoveMember {
        /// Group: name or id
        group: String,
        /// People and service accounts: e-mail address, name or id
        #[arg(required = true, value_name = "MEMBER")]
        members: Vec<String>,
    },
}

/// Create a group
#[derive(Debug, Args)]
struct Create {
    /// Name of the group
    name: String,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Role that its members have at least
    #[arg(long, default_value = "viewer")]
    role: Role,
    /// Members run tools that need approval without it
    #[arg(long)]
    elevated: bool,
    #[command(flatten)]
    tools: ToolOptions,
    /// Member: e-mail address, name or id; repeatable
    #[arg(long = "member", value_name = "MEMBER")]
    members: Vec<String>,
}

/// Change a group; what is not given stays
#[derive(Debug, Args)]
struct Edit {
    /// Group: name or id
    group: String,
    /// New name
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Role that its members have at least
    #[arg(long)]
    role: Option<Role>,
    /// Members run tools that need approval without it
    #[arg(long, conflicts_with = "no_elevated")]
    elevated: bool,
    /// Members wait for approval where tools need it
    #[arg(long)]
    no_elevated: bool,
    #[command(flatten)]
    tools: ToolOptions,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let groups = Members::new(GROUPS, arguments.tenant.as_deref());
    match arguments.command {
        Command::Create(arguments) => create(arguments, groups, context).await,
        Command::List => list(groups, context).await,
        Command::Show { group } => {
            let data = context.request(groups.get(&group)).await?;
            context.output.show(&data, |output, group: GroupView| show(output, &group))
        }
        Command::Edit(arguments) => edit(arguments, groups, context).await,
        Command::Delete { group, yes } => actor::delete(groups, &group, yes, context).await,
        Command::AddMember { group, members } => add_members(&group, &members, groups, context).await,
        Command::RemoveMember { group, members } => remove_members(&group, &members, groups, context).await,
    }
}

async fn create(arguments: Create, groups: Members<'_>, context: &Context) -> Result<(), CliError> {
    let Create { name, description, role, elevated, tools, members } = arguments;
    let fields = actor::given([
        ("name", Some(json!(name))),
        ("description", description.map(Value::from)),
        ("role", role.name().map(Value::from)),
        ("elevated", elevated.then_some(json!(true))),
        ("tools", tools.value()),
        ("members", (!members.is_empty()).then(|| Value::from(members))),
    ]);
    let data = context.request(groups.create(fields)).await?;
    context.output.data(&data, |output| {
        output.note(&format!("created group `{name}`"));
        Ok(())
    })
}

async fn list(groups: Members<'_>, context: &Context) -> Result<(), CliError> {
    let data = context.request(groups.list()).await?;
    context.output.show(&data, |output, GroupList { groups, total, .. }| {
        let shown = groups.len();
        let rows = groups.into_iter().map(|group| {
            vec![
                group.name,
                actor::role(&group.rights),
                view::allow_list(group.rights.tools.as_deref()),
                group.members.len().to_string(),
                output.brief(&group.description, 80),
                group.id.to_string(),
                view::yes_no(group.rights.elevated),
                group.tenant,
                view::moment(group.created_at),
            ]
        });
        let header = ["NAME", "ROLE", "TOOLS", "MEMBERS", "DESCRIPTION"];
        output.list(&header, &["ID", "ELEVATED", "TENANT", "CREATED"], rows.collect())?;
        actor::note_rest(output, shown, total, "groups");
        Ok(())
    })
}

fn show(output: &Output, group: &GroupView) -> Result<(), CliError> {
    output.fields(&[
        ("group", format!("{} ({})", group.name, group.id)),
        ("description", group.description.clone()),
        ("tenant", group.tenant.clone()),
        ("rights", actor::rights(&group.rights)),
        ("created", view::moment(group.created_at)),
        ("changed", view::moment(group.modified_at)),
        ("members", group.members.len().to_string()),
    ])?;
    let line = |member: &ActorName| format!("  {}, {} ({})", member.name, member.kind.noun(), member.id);
    group.members.iter().try_for_each(|member| output.line(&line(member)))
}

async fn edit(arguments: Edit, groups: Members<'_>, context: &Context) -> Result<(), CliError> {
    let Edit { group, name, description, role, elevated, no_elevated, tools } = arguments;
    let changes = actor::given([
        ("name", name.map(Value::from)),
        ("description", description.map(Value::from)),
        ("role", role.and_then(Role::name).map(Value::from)),
        ("elevated", actor::switch(elevated, no_elevated)),
        ("tools", tools.value()),
    ]);
    actor::patch(groups, &group, changes, "changed", context).await
}

async fn add_members(
    group: &str,
    references: &[String],
    groups: Members<'_>,
    context: &Context,
) -> Result<(), CliError> {
    let client = context.client().await?;
    let data = with_members(group, references, groups, &client).await;
    client.close().await;
    context.output.data(&data?, |output| {
        output.note(&format!("added `{}` to group `{group}`", references.join("`, `")));
        Ok(())
    })
}

async fn remove_members(
    group: &str,
    references: &[String],
    groups: Members<'_>,
    context: &Context,
) -> Result<(), CliError> {
    let client = context.client().await?;
    let data = without_members(group, references, groups, &client).await;
    client.close().await;
    context.output.data(&data?, |output| {
        output.note(&format!("removed `{}` from group `{group}`", references.join("`, `")));
        Ok(())
    })
}

/// Adds members; those that others add at the same time stay. The server ignores those that the group has already.
async fn with_members(
    group: &str,
    references: &[String],
    groups: Members<'_>,
    client: &Client,
) -> Result<Value, CliError> {
    store(group, json!({"add_members": references}), groups, client).await
}

async fn without_members(
    group: &str,
    references: &[String],
    groups: Members<'_>,
    client: &Client,
) -> Result<Value, CliError> {
    let members = members(group, groups, client).await?;
    let ids = members.iter().map(id).collect::<Vec<_>>();
    let mut removed = Vec::new();
    for reference in references {
        let named = members.iter().filter(|member| member.name == *reference).map(id).collect::<Vec<_>>();
        let former = match named.as_slice() {
            _ if ids.contains(reference) => reference.clone(),
            [only] => only.clone(),
            _ => groups.find_actor(reference, client).await?.id.to_string(),
        };
        if !ids.contains(&former) {
            let message = format!("`{reference}` is not a member of group `{group}`");
            return Err(CliError::Api(Box::new(ApiError::local(404, "not_found", message))));
        }
        removed.push(former);
    }
    store(group, json!({"remove_members": removed}), groups, client).await
}

fn id(member: &ActorName) -> String {
    member.id.to_string()
}

async fn members(group: &str, groups: Members<'_>, client: &Client) -> Result<Vec<ActorName>, CliError> {
    let GroupView { members, .. } = view::read(&client.data(groups.get(group)).await?)?;
    Ok(members)
}

/// Changes the members of a group.
async fn store(group: &str, change: Value, groups: Members<'_>, client: &Client) -> Result<Value, CliError> {
    client.data(groups.at(Method::PATCH, group, "").with_body(Body::Json(change))).await
}
