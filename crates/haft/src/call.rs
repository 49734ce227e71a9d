//! A call that is configured step by step, and its response.

use std::sync::Arc;
use std::time::Duration;

use haft_core::executor::{CallEvent, EventSink};
use haft_core::id::CallId;
use haft_core::outcome::{CallError, ErrorCode};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::tools::Tools;

/// Configures a call. Created by [`Tools::call`].
///
/// ```
/// # use haft::{CallEvent, Context, ToolDef, Tools};
/// # use serde_json::{Value, json};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let tools = Tools::new();
/// tools.register(ToolDef::with_context("count", |context: Context, _: Value| async move {
///     context.progress(0.5, "half way");
///     2
/// }))?;
///
/// let (sender, events) = std::sync::mpsc::channel();
/// let value = tools
///     .call("count")
///     .args(json!({}))
///     .timeout(Duration::from_secs(5))
///     .on_event(move |event| drop(sender.send(event)))
///     .send()
///     .await?;
/// assert_eq!(value, 2);
/// assert_eq!(events.recv()?, CallEvent::Progress(0.5, "half way".to_owned()));
/// # Ok(())
/// # }
/// ```
#[must_use = "the tool is called by `send` or `response`"]
pub struct CallBuilder<'a> {
    tools: &'a Tools,
    name: &'a str,
    args: Result<Map<String, Value>, CallError>,
    options: CallOptions,
}

/// The settings of one call.
#[derive(Default)]
pub(crate) struct CallOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) events: Option<Arc<dyn EventSink>>,
}

impl<'a> CallBuilder<'a> {
    pub(crate) fn new(tools: &'a Tools, name: &'a str) -> Self {
        Self { tools, name, args: Ok(Map::new()), options: CallOptions::default() }
    }

    /// Sets the arguments: anything that serializes to a JSON object.
    pub fn args(mut self, args: impl Serialize) -> Self {
        self.args = to_json(args).and_then(into_object);
        self
    }

    /// Overrides the timeout of the definition; at most ten minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets a callback for the progress and the output lines of the running tool. It runs on the tool's task and must
    /// not block.
    pub fn on_event(mut self, callback: impl Fn(CallEvent) + Send + Sync + 'static) -> Self {
        self.options.events = Some(Arc::new(EventCallback(callback)));
        self
    }

    /// Calls the tool and returns its value. Dropping the future cancels the call.
    pub async fn send(self) -> Result<Value, CallError> {
        self.response().await?.outcome
    }

    /// Calls the tool and returns its outcome with the call's id and duration. The error is that of a rejected call;
    /// a call that ran and failed is a [`CallResponse`].
    pub async fn response(self) -> Result<CallResponse, CallError> {
        let mut call = self.tools.begin(self.name, self.args?, self.options).await?;
        let outcome = self.tools.pipeline().execute(&mut call).await;
        Ok(CallResponse { id: call.id(), duration: call.elapsed(), outcome })
    }
}

/// The response of a finished call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResponse {
    /// The id of the call, as the tool and the middleware saw it.
    pub id: CallId,
    /// The value or the error of the tool.
    pub outcome: Result<Value, CallError>,
    /// The duration of the call.
    pub duration: Duration,
}

struct EventCallback<F>(F);

impl<F: Fn(CallEvent) + Send + Sync> EventSink for EventCallback<F> {
    fn emit(&self, event: CallEvent) {
        (self.0)(event);
    }
}

/// Serializes the arguments of a call.
pub(crate) fn to_json(args: impl Serialize) -> Result<Value, CallError> {
    serde_json::to_value(args).map_err(|error| {
        let message = format!("cannot serialize the arguments as JSON: {error}");
        CallError::new(ErrorCode::InvalidArguments, message)
    })
}

/// Returns the arguments of a call, which have to be an object; `null` means no arguments.
pub(crate) fn into_object(args: Value) -> Result<Map<String, Value>, CallError> {
    let kind = match args {
        Value::Object(map) => return Ok(map),
        Value::Null => return Ok(Map::new()),
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
    };
    let message = format!("arguments must be a JSON object such as `{{\"name\": \"value\"}}`, got {kind}");
    Err(CallError::new(ErrorCode::InvalidArguments, message))
}
