//! `haft auth`: tries what a login at an issuer would get.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haft_api::sign_on::SignOnTest;
use serde_json::{Value, json};

use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::input;
use crate::view;

/// Try logins at issuers
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what a login with some claims would get, and why; nobody is logged in
    #[command(after_help = examples!(
        "haft auth test --claims claims.json",
        "echo '{\"sub\": \"1\", \"groups\": [\"ops\"]}' | haft auth test --claims - --issuer corp"
    ))]
    Test(Test),
}

/// Show what a login would get
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Claims of an ID token as JSON; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    claims: PathBuf,
    /// Issuer: its id in the configuration [default: the only one]
    #[arg(long, value_name = "ID")]
    issuer: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Test(arguments) => test(&arguments, context).await,
    }
}

async fn test(arguments: &Test, context: &Context) -> Result<(), CliError> {
    let text = input::read_text(&arguments.claims)?;
    let claims: Value = serde_json::from_str(&text)
        .map_err(|error| CliError::usage(format!("the claims are not valid JSON: {error}")))?;
    if !claims.is_object() {
        return Err(CliError::usage("the claims are not a JSON object"));
    }
    let body = json!({"issuer": arguments.issuer, "claims": claims});
    let data = context.request(Request::post("/api/sign-on/test", body)).await?;
    context.output.show(&data, |output, test: SignOnTest| {
        let SignOnTest { issuer, subject, person, rules, tenants, warnings } = test;
        let name = match person.email {
            Some(email) => format!("{} <{email}>", person.name),
            None => person.name,
        };
        output.fields(&[
            ("issuer", issuer),
            ("subject", subject),
            ("person", name),
            ("result", person.outcome.description().to_owned()),
        ])?;
        let rows = rules.into_iter().map(|rule| {
            let result = rule.error.unwrap_or_else(|| view::yes_no(rule.matched));
            let when = output.brief(rule.when.as_deref().unwrap_or("always"), 60);
            vec![rule.number.to_string(), when, rule.tenant, rule.role, result]
        });
        let rows: Vec<_> = rows.collect();
        if !rows.is_empty() {
            output.line("")?;
            output.table(&["RULE", "WHEN", "TENANT", "ROLE", "MATCHED"], rows)?;
        }
        let rows = tenants.into_iter().map(|one| {
            let tools = view::allow_list(one.rights.tools.as_deref());
            let groups = one.groups.join(", ");
            vec![
                one.tenant,
                one.rights.role.as_str().to_owned(),
                view::yes_no(one.rights.elevated),
                tools,
                groups,
            ]
        });
        let rows: Vec<_> = rows.collect();
        if !rows.is_empty() {
            output.line("")?;
            output.table(&["TENANT", "ROLE", "ELEVATED", "TOOLS", "GROUPS"], rows)?;
        }
        for warning in &warnings {
            output.warn(warning);
        }
        Ok(())
    })
}
