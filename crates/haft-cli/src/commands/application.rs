//! `haft application`: manages the applications that people have connected, and those that admins create.

use clap::{Args, Subcommand};
use haft_api::application::{
    ApplicationClientList, ApplicationList, ApplicationView, CreatedApplicationClient,
};
use serde_json::{Value, json};

use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// Manage connected applications
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List connected applications
    #[command(visible_alias = "ls", after_help = examples!("haft application list", "haft application list --mine"))]
    List {
        /// Only those that you have connected; admins otherwise see all of the tenant
        #[arg(long)]
        mine: bool,
        /// Tenant, for platform admins [default: your own]
        #[arg(long, value_name = "ID")]
        tenant: Option<String>,
    },
    /// Show a connected application
    #[command(after_help = examples!("haft application show 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Show {
        /// Id of the connected application, from `haft application list`
        id: String,
    },
    /// Disconnect an application; its tokens stop working at once
    #[command(visible_aliases = ["rm", "delete"], after_help = examples!("haft application revoke 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Revoke {
        /// Id of the connected application, from `haft application list`
        id: String,
    },
    /// Create an application that people can connect, for clients that cannot register themselves
    #[command(after_help = examples!(
        "haft application create Intranet --redirect-uri https://intranet.example.com/callback --confidential",
        "haft application create Notebook --redirect-uri http://127.0.0.1/callback"
    ))]
    Create(Create),
    /// List the applications that admins have created
    #[command(after_help = examples!("haft application clients"))]
    Clients {
        /// Tenant, for platform admins [default: your own]
        #[arg(long, value_name = "ID")]
        tenant: Option<String>,
    },
    /// Delete an application that an admin has created; it is disconnected from everybody
    #[command(after_help = examples!("haft application delete-client haft_client_019a8f50b7b67a019a05a22a6e0af101"))]
    DeleteClient {
        /// The `client_id`, from `haft application clients`
        client_id: String,
    },
}

/// Create an application that people can connect
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Name of the application
    name: String,
    /// Where answers may go; repeatable
    #[arg(long = "redirect-uri", value_name = "URL", required = true)]
    redirect_uris: Vec<String>,
    /// The application has a secret, which is printed only once
    #[arg(long)]
    confidential: bool,
    /// Tenant, for platform admins [default: your own]
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::List { mine, tenant } => list(mine, tenant.as_deref(), context).await,
        Command::Show { id } => show(&id, context).await,
        Command::Revoke { id } => {
            let path = format!("/api/applications/{}", segment(&id));
            delete(path, format!("disconnected application `{id}`"), context).await
        }
        Command::Create(create) => self::create(create, context).await,
        Command::Clients { tenant } => clients(tenant.as_deref(), context).await,
        Command::DeleteClient { client_id } => {
            let path = format!("/api/application-clients/{}", segment(&client_id));
            delete(path, format!("deleted application `{client_id}`"), context).await
        }
    }
}

async fn list(mine: bool, tenant: Option<&str>, context: &Context) -> Result<(), CliError> {
    let request = Request::get("/api/applications?page_size=500")
        .query_some("actor", mine.then_some("me"))
        .query_some("tenant", tenant);
    let data = context.request(request).await?;
    context.output.show(&data, |output, list: ApplicationList| {
        let rows = list.applications.iter().map(|application| {
            vec![
                application.id.to_string(),
                application.name.clone(),
                owner(application),
                application.destination.clone(),
                application.role.as_str().to_owned(),
                view::allow_list(application.tools.as_deref()),
                view::moment(application.last_used_at),
                view::moment(application.expires_at),
                application.client_id.clone(),
                view::moment(application.created_at),
            ]
        });
        let columns = ["ID", "NAME", "PERSON", "ANSWERS GO TO", "ROLE", "TOOLS", "LAST USED", "EXPIRES"];
        output.list(&columns, &["CLIENT ID", "CREATED"], rows.collect())
    })
}

async fn show(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(format!("/api/applications/{}", segment(id)))).await?;
    context.output.show(&data, |output, application: ApplicationView| print(output, &application))
}

fn print(output: &Output, application: &ApplicationView) -> Result<(), CliError> {
    output.fields(&[
        ("application", format!("{} ({})", application.name, application.id)),
        ("client id", application.client_id.clone()),
        ("described by", view::optional(application.client_host.as_ref())),
        ("answers go to", application.destination.clone()),
        ("person", owner(application)),
        ("tenant", application.tenant.clone()),
        ("role", application.role.as_str().to_owned()),
        ("tools", view::allow_list(application.tools.as_deref())),
        ("connected", view::moment(application.created_at)),
        ("last used", application.last_used_at.map_or_else(|| "never".to_owned(), view::moment)),
        ("expires", application.expires_at.map_or_else(|| "never".to_owned(), view::moment)),
        ("if unused until", view::moment(application.idle_until)),
    ])
}

fn owner(application: &ApplicationView) -> String {
    application.actor.as_ref().map(|actor| actor.name.clone()).unwrap_or_default()
}

async fn create(create: Create, context: &Context) -> Result<(), CliError> {
    let Create { name, redirect_uris, confidential, tenant } = create;
    let mut body = json!({"name": name, "redirect_uris": redirect_uris, "confidential": confidential});
    if let (Some(tenant), Some(body)) = (tenant, body.as_object_mut()) {
        body.insert("tenant".to_owned(), Value::from(tenant));
    }
    let data = context.request(Request::post("/api/application-clients", body)).await?;
    context.output.show(&data, |output, created: CreatedApplicationClient| {
        if created.client_secret.is_some() {
            output.note("store the secret now: it is not shown again");
        }
        output.fields(&[
            ("client id", created.client.client_id),
            ("client secret", created.client_secret.unwrap_or_else(|| "none".to_owned())),
        ])
    })
}

async fn clients(tenant: Option<&str>, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/application-clients").query_some("tenant", tenant)).await?;
    context.output.show(&data, |output, list: ApplicationClientList| {
        let rows = list.clients.iter().map(|client| {
            vec![
                client.client_id.clone(),
                client.name.clone(),
                client.redirect_uris.join(", "),
                view::yes_no(client.confidential),
                view::moment(client.last_connected_at),
                view::moment(client.created_at),
            ]
        });
        let columns = ["CLIENT ID", "NAME", "REDIRECT URIS", "SECRET", "LAST CONNECTED"];
        output.list(&columns, &["CREATED"], rows.collect())
    })
}

async fn delete(path: String, note: String, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::delete(path)).await?;
    context.output.data(&data, |output| {
        output.note(&note);
        Ok(())
    })
}
