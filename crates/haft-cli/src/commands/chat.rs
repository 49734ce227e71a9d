//! `haft chat`: a chat with an agent in the terminal.

use clap::Args;
use haft_api::agent::AgentList;
use haft_api::chat::{ChatState, MessageList};
use haft_core::chat::{Chat, MessageRole};
use haft_core::runnable::Mode;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::agent::{Lines, Watch};
use super::tool::parse_mode;
use crate::client::{Client, LiveClient, Request, connect_live, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// How many earlier messages of a chat are shown.
const SHOWN_MESSAGES: usize = 20;

/// Chat with an agent
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Agent: slug or id [default: the agent of the chat, or the only one]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Chat to continue
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
    /// Mode: `debug` runs the newest revision, `production` the published one
    #[arg(long, value_parser = parse_mode)]
    mode: Option<Mode>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let live = connect_live(context).await?;
    let result = chat(&live, &arguments, context).await;
    live.close().await;
    result
}

async fn chat(live: &LiveClient, arguments: &Arguments, context: &Context) -> Result<(), CliError> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(CliError::io("listen for signals"))?;
    let chat = open(&live.client, arguments).await?;
    let id = chat.id.to_string();
    let mut lines = Lines::start();
    if lines.is_terminal {
        let agent = chat.agent.unwrap_or_default();
        context
            .output
            .note(&format!("chat {id} with `{agent}`; Ctrl-C stops an answer, `/quit` ends the chat"));
        show_earlier(&live.client, &id, context).await?;
    }
    let mut failure = None;
    while let Some(text) = next_message(&mut lines, &mut interrupt, context).await {
        match text.trim() {
            "" => continue,
            "/quit" | "/exit" => break,
            _ => {}
        }
        let request = Request::post(format!("/api/chats/{id}/messages"), json!({ "content": text }))
            .query_some("mode", arguments.mode.map(Mode::as_str));
        let stream = live.client.stream(request).await?;
        let mut watch = Watch {
            client: &live.client,
            output: &context.output,
            lines: &mut lines,
            interrupt: &mut interrupt,
        };
        let end = watch.run(stream).await?;
        failure = end.result().err();
        if let (Some(error), true) = (&failure, lines.is_terminal) {
            // A person can go on; a script learns of it by the exit code.
            context.output.warn(&error.to_string());
        }
    }
    match failure {
        Some(error) if !lines.is_terminal => Err(error),
        _ => Ok(()),
    }
}

/// Opens the chat, or creates one.
async fn open(client: &Client, arguments: &Arguments) -> Result<Chat, CliError> {
    let ChatState { chat, .. } = view::read(&open_state(client, arguments).await?)?;
    Ok(chat)
}

async fn open_state(client: &Client, arguments: &Arguments) -> Result<Value, CliError> {
    if let Some(id) = &arguments.chat {
        let path = format!("/api/chats/{}", segment(id));
        return match &arguments.agent {
            Some(agent) => {
                let request = Request::new(http::Method::PATCH, path)
                    .with_body(crate::client::Body::Json(json!({ "agent": agent })));
                client.data(request).await
            }
            None => client.data(Request::get(path)).await,
        };
    }
    let agent = match &arguments.agent {
        Some(agent) => agent.clone(),
        None => only_agent(client).await?,
    };
    client.data(Request::post("/api/chats", json!({ "agent": agent }))).await
}

async fn only_agent(client: &Client) -> Result<String, CliError> {
    let data = client.data(Request::get("/api/agents?page_size=100")).await?;
    let AgentList { agents, .. } = view::read(&data)?;
    let slugs: Vec<String> = agents.iter().map(|agent| agent.definition.slug.to_string()).collect();
    match slugs.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(CliError::Usage {
            message: "there is no agent to chat with".to_owned(),
            hint: Some("create one with `haft agent create FILE`".to_owned()),
        }),
        several => Err(CliError::Usage {
            message: "choose the agent with `--agent`".to_owned(),
            hint: Some(format!("one of {}", several.join(", "))),
        }),
    }
}

/// Shows the last messages of a chat that is continued.
async fn show_earlier(client: &Client, id: &str, context: &Context) -> Result<(), CliError> {
    let data =
        client.data(Request::get(format!("/api/chats/{}/messages?page_size=500", segment(id)))).await?;
    let MessageList { messages, .. } = view::read(&data)?;
    for message in messages.iter().skip(messages.len().saturating_sub(SHOWN_MESSAGES)) {
        let text = text_of(&message.content);
        let mark = if message.role == MessageRole::User { "> " } else { "" };
        if !text.is_empty() {
            context.output.line(&format!("{mark}{text}"))?;
        }
    }
    Ok(())
}

/// Returns the text of a message: its content, or the text blocks of it.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block.get("type") == Some(&json!("text")));
            texts.filter_map(|block| block.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Reads the next message; `None` at the end of the input or at Ctrl-C.
async fn next_message(lines: &mut Lines, interrupt: &mut Signal, context: &Context) -> Option<String> {
    if lines.is_terminal {
        context.output.ask("> ");
    }
    tokio::select! {
        line = lines.next() => line,
        _ = interrupt.recv() => {
            context.output.note("");
            None
        }
    }
}
