//! `haft service-account`: manages service accounts.

use clap::{Args, Subcommand};
use haft_api::people::{ActorView, ServiceAccountList};
use serde_json::{Value, json};

use super::actor::{self, Members, MembershipChange, NewMembership, SERVICE_ACCOUNTS};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// The arguments of `haft service-account`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tenant, for platform admins [default: your own]
    // Clap sorts global options among those of a command: this one is the last before `--help`.
    #[arg(long, value_name = "ID", global = true, display_order = 9)]
    tenant: Option<String>,
    #[command(subcommand)]
    command: Command,
}

/// Manage service accounts
#[derive(Debug, Subcommand)]
enum Command {
    /// Create a service account
    #[command(visible_alias = "add", after_help = concat!(
        "Without --tools and --no-tools, every tool is allowed; with --no-tools, those of the groups are.\n\n",
        examples!(
            "haft service-account create nightly-report --responsible ann@example.com --tools report,mail:send",
            "haft token create nightly-report --owner nightly-report"
        )
    ))]
    Create(Create),
    /// List service accounts
    #[command(visible_alias = "ls", after_help = examples!("haft service-account list"))]
    List,
    /// Show a service account with its rights
    #[command(after_help = examples!("haft service-account show nightly-report"))]
    Show {
        /// Service account: name or id
        service_account: String,
    },
    /// Change a service account; what is not given stays
    #[command(after_help = examples!("haft service-account edit nightly-report --tools report,mail:*"))]
    Edit(Edit),
    /// Disable a service account: ends its tokens and running work
    #[command(after_help = examples!("haft service-account disable nightly-report"))]
    Disable {
        /// Service account: name or id
        service_account: String,
    },
    /// Enable a service account
    #[command(after_help = examples!("haft service-account enable nightly-report"))]
    Enable {
        /// Service account: name or id
        service_account: String,
    },
    /// Delete a service account with its tokens
    #[command(visible_alias = "rm", after_help = examples!("haft service-account delete nightly-report"))]
    Delete {
        /// Service account: name or id
        service_account: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// Create a service account
#[derive(Debug, Args)]
struct Create {
    /// Name of the service account
    name: String,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Person who is responsible for it: e-mail address, name or id
    #[arg(long, value_name = "PERSON")]
    responsible: Option<String>,
    #[command(flatten)]
    membership: NewMembership,
}

/// Change a service account; what is not given stays
#[derive(Debug, Args)]
struct Edit {
    /// Service account: name or id
    service_account: String,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Person who is responsible for it: e-mail address, name or id; an empty text removes the person
    #[arg(long, value_name = "PERSON")]
    responsible: Option<String>,
    #[command(flatten)]
    membership: MembershipChange,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let accounts = Members::new(SERVICE_ACCOUNTS, arguments.tenant.as_deref());
    match arguments.command {
        Command::Create(arguments) => create(arguments, accounts, context).await,
        Command::List => list(accounts, context).await,
        Command::Show { service_account } => show(&service_account, accounts, context).await,
        Command::Edit(arguments) => edit(arguments, accounts, context).await,
        Command::Disable { service_account } => actor::disable(accounts, &service_account, context).await,
        Command::Enable { service_account } => actor::enable(accounts, &service_account, context).await,
        Command::Delete { service_account, yes } => {
            actor::delete(accounts, &service_account, yes, context).await
        }
    }
}

async fn create(arguments: Create, accounts: Members<'_>, context: &Context) -> Result<(), CliError> {
    let Create { name, description, responsible, membership } = arguments;
    let own = [
        ("name", Some(json!(name))),
        ("description", description.map(Value::from)),
        ("responsible", responsible.map(Value::from)),
    ];
    let fields = actor::given(own.into_iter().chain(membership.fields()));
    let data = context.request(accounts.create(fields)).await?;
    context.output.data(&data, |output| {
        output.note(&format!("created service account `{name}`"));
        Ok(())
    })
}

async fn list(accounts: Members<'_>, context: &Context) -> Result<(), CliError> {
    let data = context.request(accounts.list()).await?;
    context.output.show(&data, |output, ServiceAccountList { service_accounts, total, .. }| {
        let shown = service_accounts.len();
        let header = ["ID", "NAME", "STATUS", "ROLE", "RESPONSIBLE", "TOKENS", "LAST SEEN"];
        let wide = ["DESCRIPTION", "GROUPS", "ELEVATED", "TOOLS", "TENANT", "CREATED"];
        output.list(&header, &wide, service_accounts.iter().map(row).collect())?;
        actor::note_rest(output, shown, total, "service accounts");
        Ok(())
    })
}

fn row(account: &ActorView) -> Vec<String> {
    vec![
        account.id.to_string(),
        account.name.clone(),
        account.status.as_str().to_owned(),
        actor::role(&account.rights),
        account.responsible.as_ref().map(|person| person.name.clone()).unwrap_or_default(),
        account.tokens.to_string(),
        actor::last_seen(account),
        account.description.clone(),
        actor::group_names(account),
        view::yes_no(account.rights.elevated),
        view::allow_list(account.rights.tools.as_deref()),
        account.tenant.clone(),
        view::moment(account.created_at),
    ]
}

async fn show(account: &str, accounts: Members<'_>, context: &Context) -> Result<(), CliError> {
    let data = context.request(accounts.get(account)).await?;
    context.output.show(&data, |output, account: ActorView| actor::show(output, &account))
}

async fn edit(arguments: Edit, accounts: Members<'_>, context: &Context) -> Result<(), CliError> {
    let Edit { service_account, description, responsible, membership } = arguments;
    let own = [("description", description.map(Value::from)), ("responsible", responsible.map(Value::from))];
    let changes = actor::given(own.into_iter().chain(membership.fields()));
    actor::patch(accounts, &service_account, changes, "changed", context).await
}
