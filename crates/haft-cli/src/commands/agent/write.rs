//! `haft agent create` and `update`.

use std::path::{Path, PathBuf};

use clap::Args;
use haft_api::agent::AgentView;
use haft_core::agent::AgentDefinition;
use haft_core::problem::join;
use haft_definition::agent::{ReadAgent, read};
use http::Method;
use serde_json::{Value, json};

use super::command::path;
use crate::client::{Body, Request};
use crate::context::Context;
use crate::error::{ApiError, CliError};
use crate::input;
use crate::view;

/// Create the agents of a file
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// YAML or JSON file with one or several agents; `-` reads stdin
    file: PathBuf,
    /// Publish them
    #[arg(long)]
    publish: bool,
}

/// Replace the definition of an agent
#[derive(Debug, Args)]
pub(crate) struct Update {
    /// YAML or JSON file with one or several agents; `-` reads stdin
    file: PathBuf,
    /// Agent to replace: slug or id [default: the slug in the file]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Publish them
    #[arg(long)]
    publish: bool,
}

pub(super) async fn create(arguments: Create, context: &Context) -> Result<(), CliError> {
    let agents = agents(&arguments.file, context)?;
    let requests = agents.into_iter().map(|agent| Request::post("/api/agents", body(&agent.definition)));
    store(requests.collect(), arguments.publish, "created", context).await
}

pub(super) async fn update(arguments: Update, context: &Context) -> Result<(), CliError> {
    let mut agents = agents(&arguments.file, context)?;
    if let (Some(reference), [only]) = (&arguments.agent, agents.as_mut_slice()) {
        let request =
            Request::new(Method::PUT, path(reference)).with_body(Body::Json(body(&only.definition)));
        return store(vec![request], arguments.publish, "updated", context).await;
    }
    if arguments.agent.is_some() {
        let message = format!("`--agent` needs a file with one agent; the file has {}", agents.len());
        return Err(CliError::usage(message));
    }
    let requests = agents.iter().map(|agent| {
        let place = path(agent.definition.slug.as_str());
        Request::new(Method::PUT, place).with_body(Body::Json(body(&agent.definition)))
    });
    store(requests.collect(), arguments.publish, "updated", context).await
}

fn body(definition: &AgentDefinition) -> Value {
    serde_json::to_value(definition).unwrap_or_default()
}

/// Reads the agents of a file, and prints the warnings about them.
fn agents(file: &Path, context: &Context) -> Result<Vec<ReadAgent>, CliError> {
    let text = input::read_text(file)?;
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("agent");
    let agents = read(&text, stem).map_err(|problems| {
        let mut error = ApiError::local(422, "invalid_definition", join(&problems));
        error.details = json!({ "errors": problems });
        CliError::Api(Box::new(error))
    })?;
    for agent in &agents {
        for warning in &agent.warnings {
            context.output.warn(&warning.to_string());
        }
    }
    Ok(agents)
}

async fn store(requests: Vec<Request>, publish: bool, done: &str, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let mut stored = Ok(Vec::new());
    for request in requests {
        let mut result = client.data(request).await;
        if let (Ok(agent), true) = (&result, publish) {
            result = match view::read::<AgentView>(agent) {
                Ok(stored) => {
                    let place = format!("{}/publish", path(stored.definition.slug.as_str()));
                    client.data(Request::post(place, json!({}))).await
                }
                Err(error) => Err(error),
            };
        }
        match (result, &mut stored) {
            (Ok(agent), Ok(agents)) => agents.push(agent),
            (Err(error), _) => {
                stored = Err(error);
                break;
            }
            (Ok(_), Err(_)) => break,
        }
    }
    client.close().await;
    let stored = stored?;
    let agents = stored.iter().map(view::read).collect::<Result<Vec<AgentView>, CliError>>()?;
    for warning in agents.iter().flat_map(|agent| &agent.warnings) {
        context.output.warn(&view::problem(warning));
    }
    let data = match stored.as_slice() {
        [only] => only.clone(),
        _ => json!({ "agents": stored }),
    };
    context.output.data(&data, |output| {
        for agent in &agents {
            output.note(&format!("{done} `{}`, revision {}", agent.definition.slug, agent.revision));
        }
        Ok(())
    })
}
