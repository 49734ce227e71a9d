//! `haft person`: manages people.

use clap::{Args, Subcommand};
use haft_api::people::{ActorView, HandedOver, InvitationView, InvitedPerson, PeopleList};
use http::Method;
use serde_json::{Value, json};

use super::actor::{self, Members, MembershipChange, NewMembership, PEOPLE};
use crate::client::{Body, Request};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// The arguments of `haft person`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tenant, for platform admins [default: your own]
    // Clap sorts global options among those of a command: this one is the last before `--help`.
    #[arg(long, value_name = "ID", global = true, display_order = 9)]
    tenant: Option<String>,
    #[command(subcommand)]
    command: Command,
}

/// Manage people
#[derive(Debug, Subcommand)]
enum Command {
    /// Add a person and print a link with which they log in; it works once
    #[command(visible_aliases = ["create", "add"], after_help = concat!(
        "Without --tools and --no-tools, every tool is allowed; with --no-tools, those of the groups are.\n\n",
        examples!(
            "haft person invite \"Ann Smith\" --email ann@example.com --role editor",
            "haft person invite Bob --tools weather,web:* --group finance"
        )
    ))]
    Invite(Invite),
    /// List people
    #[command(visible_alias = "ls", after_help = examples!("haft person list", "haft person list -q ann --status active"))]
    List(List),
    /// Show a person with their rights
    #[command(after_help = examples!("haft person show ann@example.com"))]
    Show {
        /// Person: e-mail address, name or id
        person: String,
    },
    /// Change a person; what is not given stays
    #[command(after_help = examples!(
        "haft person edit ann@example.com --role admin",
        "haft person edit \"Ann Smith\" --email ann.smith@example.com --no-tools --group finance"
    ))]
    Edit(Edit),
    /// Disable a person: ends their sessions, tokens and running work
    #[command(after_help = examples!("haft person disable ann@example.com"))]
    Disable {
        /// Person: e-mail address, name or id
        person: String,
    },
    /// Enable a person
    #[command(after_help = examples!("haft person enable ann@example.com"))]
    Enable {
        /// Person: e-mail address, name or id
        person: String,
    },
    /// Delete a person with their tokens and sessions
    #[command(visible_alias = "rm", after_help = examples!("haft person delete ann@example.com"))]
    Delete {
        /// Person: e-mail address, name or id
        person: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Print a new link with which a person logs in; earlier links stop working
    #[command(after_help = examples!("haft person link ann@example.com"))]
    Link {
        /// Person: e-mail address, name or id
        person: String,
    },
    /// Give the chats of a person, and their responsibility for service accounts, to another person
    #[command(after_help = examples!("haft person hand-over ann@example.com --to bob@example.com"))]
    HandOver {
        /// Person: e-mail address, name or id
        person: String,
        /// Person who gets them: e-mail address, name or id
        #[arg(long, value_name = "PERSON")]
        to: String,
    },
}

/// Add a person and print a link with which they log in; it works once
#[derive(Debug, Args)]
struct Invite {
    /// Name of the person
    name: String,
    /// E-mail address; no two people have the same
    #[arg(long)]
    email: Option<String>,
    #[command(flatten)]
    membership: NewMembership,
    /// Administer tenants; needs the role `admin` in the tenant `default`
    #[arg(long)]
    platform: bool,
}

/// List people
#[derive(Debug, Args)]
struct List {
    /// Only people whose name or e-mail address contains this text
    #[arg(short = 'q', long = "search", value_name = "TEXT")]
    query: Option<String>,
    /// Only people with this status
    #[arg(long, value_parser = ["invited", "active", "disabled"])]
    status: Option<String>,
}

/// Change a person; what is not given stays
#[derive(Debug, Args)]
struct Edit {
    /// Person: e-mail address, name or id
    person: String,
    /// E-mail address; an empty one removes it
    #[arg(long)]
    email: Option<String>,
    #[command(flatten)]
    membership: MembershipChange,
    /// Administer tenants; needs the role `admin` in the tenant `default`
    #[arg(long, conflicts_with = "no_platform")]
    platform: bool,
    /// Do not administer tenants
    #[arg(long)]
    no_platform: bool,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let people = Members::new(PEOPLE, arguments.tenant.as_deref());
    match arguments.command {
        Command::Invite(arguments) => invite(arguments, people, context).await,
        Command::List(arguments) => list(&arguments, people, context).await,
        Command::Show { person } => show(&person, people, context).await,
        Command::Edit(arguments) => edit(arguments, people, context).await,
        Command::Disable { person } => actor::disable(people, &person, context).await,
        Command::Enable { person } => actor::enable(people, &person, context).await,
        Command::Delete { person, yes } => actor::delete(people, &person, yes, context).await,
        Command::Link { person } => link(&person, people, context).await,
        Command::HandOver { person, to } => hand_over(&person, &to, people, context).await,
    }
}

async fn invite(arguments: Invite, people: Members<'_>, context: &Context) -> Result<(), CliError> {
    let Invite { name, email, membership, platform } = arguments;
    let own = [
        ("name", Some(json!(name))),
        ("email", email.map(Value::from)),
        ("platform", platform.then_some(json!(true))),
    ];
    let fields = actor::given(own.into_iter().chain(membership.fields()));
    let (data, needs_server) = request_link(people.create(fields), context).await?;
    context.output.show(&data, |output, InvitedPerson { person, invitation }| {
        output.note(&format!("invited `{}`", person.name));
        show_link(output, &invitation, needs_server)
    })
}

async fn link(person: &str, people: Members<'_>, context: &Context) -> Result<(), CliError> {
    let request = people.at(Method::POST, person, "/invitation").with_body(Body::Json(json!({})));
    let (data, needs_server) = request_link(request, context).await?;
    context
        .output
        .show(&data, |output, invitation: InvitationView| show_link(output, &invitation, needs_server))
}

/// Sends a request whose response has a link; returns its data, and whether a server must be started to open the link.
async fn request_link(request: Request, context: &Context) -> Result<(Value, bool), CliError> {
    let client = context.client().await?;
    let needs_server = client.engine().is_some();
    let data = client.data(request).await;
    client.close().await;
    Ok((data?, needs_server))
}

fn show_link(output: &Output, invitation: &InvitationView, needs_server: bool) -> Result<(), CliError> {
    if needs_server {
        output.note("no server is running; start it with `haft serve` before the link is opened");
    }
    let end = view::moment(invitation.expires_at);
    output.note(&format!("send this link to the person; it works once, until {end}, and is not shown again"));
    output.line(&invitation.url)
}

async fn list(arguments: &List, people: Members<'_>, context: &Context) -> Result<(), CliError> {
    let request = people
        .list()
        .query_some("q", arguments.query.as_deref())
        .query_some("status", arguments.status.as_deref());
    let data = context.request(request).await?;
    context.output.show(&data, |output, PeopleList { people, total, .. }| {
        let shown = people.len();
        let header = ["ID", "NAME", "E-MAIL", "STATUS", "ROLE", "GROUPS", "LAST SEEN"];
        let wide = ["ELEVATED", "TOOLS", "TOKENS", "SESSIONS", "TENANT", "CREATED"];
        output.list(&header, &wide, people.iter().map(row).collect())?;
        actor::note_rest(output, shown, total, "people; narrow the list with `--search`");
        Ok(())
    })
}

fn row(person: &ActorView) -> Vec<String> {
    vec![
        person.id.to_string(),
        person.name.clone(),
        person.email.clone().unwrap_or_default(),
        person.status.as_str().to_owned(),
        actor::role(&person.rights),
        actor::group_names(person),
        actor::last_seen(person),
        view::yes_no(person.rights.elevated),
        view::allow_list(person.rights.tools.as_deref()),
        person.tokens.to_string(),
        person.sessions.to_string(),
        person.tenant.clone(),
        view::moment(person.created_at),
    ]
}

async fn show(person: &str, people: Members<'_>, context: &Context) -> Result<(), CliError> {
    let data = context.request(people.get(person)).await?;
    context.output.show(&data, |output, person: ActorView| actor::show(output, &person))
}

async fn edit(arguments: Edit, people: Members<'_>, context: &Context) -> Result<(), CliError> {
    let Edit { person, email, membership, platform, no_platform } = arguments;
    let own = [("email", email.map(Value::from)), ("platform", actor::switch(platform, no_platform))];
    let changes = actor::given(own.into_iter().chain(membership.fields()));
    actor::patch(people, &person, changes, "changed", context).await
}

async fn hand_over(person: &str, to: &str, people: Members<'_>, context: &Context) -> Result<(), CliError> {
    let request = people.at(Method::POST, person, "/hand-over").with_body(Body::Json(json!({"to": to})));
    let data = context.request(request).await?;
    context.output.show(&data, |output, HandedOver { chats, service_accounts }| {
        output.note(&format!(
            "handed over from `{person}` to `{to}`: chats: {chats}, service accounts: {service_accounts}"
        ));
        Ok(())
    })
}
