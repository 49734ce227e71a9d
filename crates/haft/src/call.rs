//! Calling a tool.

use std::sync::Arc;
use std::time::Duration;

use haft_core::executor::{CallEvent, EventSink};
use haft_core::id::CallId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::runnable::Mode;
use haft_runtime::pipeline::{self, Request};
use haft_runtime::registry::ResolvedTool;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::tools::Tools;

impl Tools {
    /// Calls a tool and waits for its value. The arguments are anything that is a JSON object: `json!({…})`, a map, a
    /// struct; `()` where there are none.
    ///
    /// The error has a text for the operator and, by [`CallError::model_text`], one for the model. Dropping the
    /// future cancels the call.
    pub async fn execute(&self, name: &str, args: impl Serialize) -> Result<Value, CallError> {
        self.execute_json(name, json(args)?).await
    }

    /// Calls a tool with arguments that are JSON already, as a model sends them; they are taken as they are, and so
    /// cost nothing.
    ///
    /// ```
    /// # use haft::{ToolDef, Tools};
    /// # use serde_json::{Value, json};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tools = Tools::new();
    /// tools.register(ToolDef::new("keys", |args: Value| async move { args.as_object().map_or(0, |map| map.len()) }))?;
    /// let arguments = r#"{"city": "Oslo", "days": 3}"#;
    /// assert_eq!(tools.execute_json("keys", serde_json::from_str(arguments)?).await?, json!(2));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn execute_json(&self, name: &str, args: Value) -> Result<Value, CallError> {
        let asked = Asked { args: only_object(args)?, timeout: None, events: None };
        let mut call = self.begin(name, self.wanted(name).await, asked)?;
        self.pipeline().execute(&mut call).await
    }

    /// Calls a tool and reads its value as a type.
    ///
    /// ```
    /// # use haft::{Json, ToolDef, Tools};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize, schemars::JsonSchema)]
    /// struct Point {
    ///     x: i32,
    ///     y: i32,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tools = Tools::new();
    /// tools.register(ToolDef::new("mirror", |p: Point| async move { Json(Point { x: p.y, y: p.x }) }))?;
    /// let point: Point = tools.execute_as("mirror", Point { x: 1, y: 2 }).await?;
    /// assert_eq!((point.x, point.y), (2, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn execute_as<T: DeserializeOwned>(
        &self,
        name: &str,
        args: impl Serialize,
    ) -> Result<T, CallError> {
        let value = self.execute(name, args).await?;
        serde_path_to_error::deserialize(&value).map_err(|error| {
            let message =
                format!("the value is not what the program expects: `{}`: {}", error.path(), error.inner());
            CallError::new(ErrorCode::InvalidOutput, message)
                .for_model("the tool returned an unexpected result")
        })
    }

    /// Starts a call that is said step by step: [`Call::args`], [`Call::timeout`], [`Call::on_event`], and at last
    /// [`Call::send`].
    pub fn call<'a>(&'a self, name: &'a str) -> Call<'a> {
        Call { tools: self, name, args: Ok(Map::new()), timeout: None, events: None }
    }

    /// Finds a tool, and compiles it where nobody has called it yet.
    async fn wanted(&self, name: &str) -> Result<ResolvedTool, CallError> {
        let found = self.find(name)?;
        self.pipeline().compile(&found, MODE).await;
        Ok(found)
    }

    /// Makes the checks of a call.
    #[inline]
    fn begin(
        &self,
        name: &str,
        found: Result<ResolvedTool, CallError>,
        asked: Asked,
    ) -> Result<pipeline::Call, CallError> {
        let told = self.on_refused().map(|tell| (tell, Value::Object(asked.args.clone())));
        let begun = found.and_then(|found| {
            let Asked { args, timeout, events } = asked;
            let request = Request {
                principal: Arc::clone(self.principal()),
                args,
                mode: MODE,
                surface: "library",
                timeout,
                labels: None,
                events,
            };
            self.pipeline().begin(found, request)
        });
        if let (Err(error), Some((tell, sent))) = (&begun, told) {
            tell(name, sent, error);
        }
        begun
    }
}

/// A program runs the newest definitions: it publishes none.
const MODE: Mode = Mode::Debug;

/// What is asked of a tool.
struct Asked {
    args: Map<String, Value>,
    timeout: Option<Duration>,
    events: Option<Arc<dyn EventSink>>,
}

/// A call that is being said. Made by [`Tools::call`].
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
/// let (told, events) = std::sync::mpsc::channel();
/// let value = tools
///     .call("count")
///     .args(json!({}))
///     .timeout(Duration::from_secs(5))
///     .on_event(move |event| drop(told.send(event)))
///     .send()
///     .await?;
/// assert_eq!(value, 2);
/// assert_eq!(events.recv()?, CallEvent::Progress(0.5, "half way".to_owned()));
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is called until `send`"]
pub struct Call<'a> {
    tools: &'a Tools,
    name: &'a str,
    args: Result<Map<String, Value>, CallError>,
    timeout: Option<Duration>,
    events: Option<Arc<dyn EventSink>>,
}

impl Call<'_> {
    /// Sets the arguments: anything that is a JSON object.
    pub fn args(mut self, args: impl Serialize) -> Self {
        self.args = json(args).and_then(only_object);
        self
    }

    /// Gives the call another time than the definition does, up to ten minutes.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// Takes what the tool tells while it runs: progress, and lines of output. It is called where the tool runs, and
    /// must not block.
    pub fn on_event(mut self, take: impl Fn(CallEvent) + Send + Sync + 'static) -> Self {
        self.events = Some(Arc::new(Listener(take)));
        self
    }

    /// Calls the tool and waits for its value. Dropping the future cancels the call.
    pub async fn send(self) -> Result<Value, CallError> {
        self.reply().await?.outcome
    }

    /// Calls the tool and waits for everything that there is to know of the call. An error is a call that was refused;
    /// one that ran and failed is a [`Reply`].
    pub async fn reply(self) -> Result<Reply, CallError> {
        let Self { tools, name, args, timeout, events } = self;
        let asked = Asked { args: args?, timeout, events };
        let mut call = tools.begin(name, tools.wanted(name).await, asked)?;
        let outcome = tools.pipeline().execute(&mut call).await;
        Ok(Reply { id: call.id(), duration: call.elapsed(), outcome })
    }
}

/// A call that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The call, as the tool and the layers knew it.
    pub id: CallId,
    /// What it came to.
    pub outcome: Result<Value, CallError>,
    /// How long it took.
    pub duration: Duration,
}

struct Listener<F>(F);

impl<F: Fn(CallEvent) + Send + Sync> EventSink for Listener<F> {
    fn emit(&self, event: CallEvent) {
        (self.0)(event);
    }
}

/// Makes the arguments of a call of whatever a program has.
fn json(args: impl Serialize) -> Result<Value, CallError> {
    serde_json::to_value(args).map_err(|error| no_object(&format!("what cannot be written as JSON: {error}")))
}

#[inline]
fn only_object(args: Value) -> Result<Map<String, Value>, CallError> {
    match args {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::Bool(_) => Err(no_object("a boolean")),
        Value::Number(_) => Err(no_object("a number")),
        Value::String(_) => Err(no_object("a text")),
        Value::Array(_) => Err(no_object("a list")),
    }
}

fn no_object(found: &str) -> CallError {
    let message =
        format!("the arguments have to be an object, such as `{{\"name\": \"value\"}}`; found {found}");
    CallError::new(ErrorCode::InvalidArguments, message)
}
