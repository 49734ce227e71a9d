//! `haft secret`: manages secrets, which tools refer to as `${NAME}`.

use clap::{Args, Subcommand};
use haft_api::credential::{CredentialList, CredentialView};
use http::Method;
use serde_json::{Map, Value, json};

use crate::client::{Body, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::input;
use crate::view;

/// Manage secrets, which tools refer to as `${NAME}`
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Store a secret; the value is read from stdin, or prompted for
    #[command(visible_alias = "create", after_help = examples!(
        "haft secret set WEATHER_API_KEY < key.txt",
        "echo -n VALUE | haft secret set NAME",
        "echo '${vault:apps/weather#api_key}' | haft secret set WEATHER_API_KEY",
        "haft secret set search --provider web_search --variant serper --fields < fields.json"
    ))]
    Set(Set),
    /// List the names of secrets
    #[command(visible_alias = "ls", after_help = examples!("haft secret list"))]
    List,
    /// Show what a secret is for and what uses it, without its value
    #[command(after_help = examples!("haft secret show WEATHER_API_KEY"))]
    Show {
        /// Name of the secret
        name: String,
    },
    /// Delete a secret
    #[command(visible_alias = "delete", after_help = examples!("haft secret rm WEATHER_API_KEY"))]
    Rm {
        /// Name of the secret
        name: String,
        /// Delete it even if tools use it
        #[arg(long)]
        force: bool,
    },
}

/// Store a secret
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Name of the secret
    name: String,
    /// Read several values as a JSON object of strings; tools refer to one as `${NAME.field}`
    #[arg(long)]
    fields: bool,
    /// Category [default: custom]
    #[arg(long, value_name = "CATEGORY")]
    category: Option<String>,
    /// Provider that the secret is for, e.g. `web_search`
    #[arg(long, value_name = "KEY")]
    provider: Option<String>,
    /// Variant of the provider, e.g. `serper`
    #[arg(long, value_name = "VARIANT")]
    variant: Option<String>,
    /// Description
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Set(arguments) => set(arguments, context).await,
        Command::List => list(context).await,
        Command::Show { name } => show(&name, context).await,
        Command::Rm { name, force } => remove(&name, force, context).await,
    }
}

async fn set(arguments: Set, context: &Context) -> Result<(), CliError> {
    let name = &arguments.name;
    let value = input::read_secret(&format!("Value of {name}"))?;
    let mut body = Map::new();
    if arguments.fields {
        // The error of the parser could quote a value.
        let fields: Map<String, Value> = serde_json::from_str(value.expose()).map_err(|_| {
            CliError::usage(
                "the fields are not valid JSON; expected an object such as `{\"api_key\": \"…\"}`",
            )
        })?;
        body.insert("payload".to_owned(), Value::Object(fields));
    } else {
        body.insert("value".to_owned(), value.expose().into());
    }
    let purpose = [
        ("category", &arguments.category),
        ("provider_key", &arguments.provider),
        ("provider_variant", &arguments.variant),
        ("description", &arguments.description),
    ];
    for (key, text) in purpose {
        if let Some(text) = text {
            body.insert(key.to_owned(), json!(text));
        }
    }
    let body = Body::Json(Value::Object(body));
    let request = Request::new(Method::PUT, format!("/api/credentials/{}", segment(name))).with_body(body);
    let data = context.request(request).await?;
    context.output.data(&data, |output| {
        let reference = if arguments.fields { format!("{name}.FIELD") } else { name.clone() };
        output.note(&format!("stored secret `{name}`; tools refer to it as `${{{reference}}}`"));
        Ok(())
    })
}

async fn list(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/credentials?page_size=500")).await?;
    context.output.show(&data, |output, list: CredentialList| {
        let rows = list.credentials.into_iter().map(|credential| {
            vec![
                credential.name.clone(),
                credential.category.clone(),
                provider(&credential),
                credential.used_by.len().to_string(),
                view::moment(credential.modified_at),
                credential.used_by.join(", "),
            ]
        });
        output.list(&["NAME", "CATEGORY", "PROVIDER", "USED BY", "CHANGED"], &["USERS"], rows.collect())
    })
}

async fn show(name: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(format!("/api/credentials/{}", segment(name)))).await?;
    context.output.show(&data, |output, credential: CredentialView| {
        let provider = provider(&credential);
        let fields = credential.payload.unwrap_or_default().into_keys().collect::<Vec<_>>();
        let lines = [
            ("name", credential.name),
            ("category", credential.category),
            ("provider", provider),
            ("description", credential.description),
            ("fields", fields.join(", ")),
            ("used by", credential.used_by.join(", ")),
            ("changed", view::moment(credential.modified_at)),
            ("error", credential.error.unwrap_or_default()),
        ];
        for (label, text) in lines.into_iter().filter(|(_, text)| !text.is_empty()) {
            output.line(&format!("{label}: {text}"))?;
        }
        Ok(())
    })
}

/// Returns the provider and its variant, such as `web_search/serper`.
fn provider(credential: &CredentialView) -> String {
    let key = credential.provider_key.as_deref().unwrap_or_default();
    match &credential.provider_variant {
        Some(variant) => format!("{key}/{variant}"),
        None => key.to_owned(),
    }
}

async fn remove(name: &str, force: bool, context: &Context) -> Result<(), CliError> {
    let request = Request::delete(format!("/api/credentials/{}", segment(name)));
    let request = if force { request.query("force", "true") } else { request };
    let data = context.request(request).await?;
    context.output.data(&data, |output| {
        output.note(&format!("deleted secret `{name}`"));
        Ok(())
    })
}
