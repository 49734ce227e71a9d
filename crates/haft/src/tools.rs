//! [`Tools`]: registers, loads, filters and calls the tools of a program.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use haft_core::catalog::FileForm;
use haft_core::name::{TenantId, ToolName};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::principal::AllowList;
use haft_core::problem::nearest;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_definition::export::{Definition, Format, definition};
use haft_executors::egress::EgressRules;
use haft_runtime::pipeline::{Call, Pipeline, Principal, Request};
use haft_runtime::registry::{Audience, Entry, Naming, ResolvedTool, Snapshot};
use haft_runtime::stages::Stage;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::builder::Builder;
use crate::call::{CallBuilder, CallOptions, into_object, to_json};
use crate::def::ToolDef;
use crate::error::{FilterError, RegisterError};
use crate::report::{LoadError, LoadReport, Loaded, NotReady};
use crate::resources::Resources;
use crate::search::SearchHit;
use crate::set::ToolSet;
use crate::watch::WatchGuard;

/// A program runs the newest revision of a definition; it does not publish revisions.
const MODE: Mode = Mode::Debug;

/// The tools of a program: registered functions, and definitions from files.
///
/// Clones share one set, and so do the views returned by [`Tools::filter`] and [`Tools::layer`]: a tool registered
/// through one of them is available in all whose filter allows it.
///
/// ```
/// use haft::{ToolDef, Tools};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet {
///     /// The person to greet
///     name: String,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tools = Tools::new();
/// tools.register(
///     ToolDef::new("greet", |args: Greet| async move { format!("Hello, {}!", args.name) })
///         .description("Greets someone by name."),
/// )?;
///
/// assert_eq!(tools.execute("greet", json!({"name": "Ada"})).await?, "Hello, Ada!");
///
/// let error = tools.execute("greet", json!({})).await.unwrap_err();
/// assert_eq!(
///     error.model_text(),
///     "Tool call failed: invalid arguments: missing required property `name`",
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tools {
    set: Arc<ToolSet>,
    pipeline: Arc<Pipeline>,
    /// The program itself.
    principal: Arc<Principal>,
    /// The names that this view allows; `None` allows all.
    allowed: Option<Arc<HashSet<ToolName>>>,
    on_rejected: Option<Arc<OnRejected>>,
}

/// A callback that receives the name, the arguments and the error of a call that was rejected before its tool ran.
type OnRejected = dyn Fn(&str, Value, &CallError) + Send + Sync;

impl Default for Tools {
    fn default() -> Self {
        Self::new()
    }
}

impl Tools {
    /// Creates an empty set with the default limits, without a sandbox folder and without secrets.
    pub fn new() -> Self {
        Builder::default().assemble(&Resources::new(EgressRules::default(), None), None)
    }

    /// Creates a builder, which configures sandboxes, secrets, hosts, limits and middleware.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn from_parts(set: Arc<ToolSet>, pipeline: Arc<Pipeline>) -> Self {
        let principal = Arc::clone(&set.principal);
        Self { set, pipeline, principal, allowed: None, on_rejected: None }
    }

    /// Registers a tool. Returns an error if the name is taken or if a hand-written schema does not match the
    /// function.
    ///
    /// Definitions that name the function (`type: builtin`) become ready.
    pub fn register(&self, def: ToolDef) -> Result<(), RegisterError> {
        self.set.register(def)
    }

    /// Registers a function that definitions can name (`type: builtin`), without a tool of its own.
    ///
    /// ```
    /// # use haft::{FileForm, ToolDef, Tools};
    /// # use serde_json::{Value, json};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tools = Tools::new();
    /// tools.load_text(
    ///     FileForm::Yaml,
    ///     "name: shout\ndescription: Converts a text to upper case\nparams: [{name: text, type: string, required: true}]\n\
    ///      implementation: {type: builtin, function: upper}\n",
    /// )?;
    /// assert!(!tools.is_ready("shout"));
    ///
    /// tools.register_function(ToolDef::new("upper", |args: Value| async move {
    ///     args["text"].as_str().unwrap_or_default().to_uppercase()
    /// }))?;
    /// assert_eq!(tools.execute("shout", json!({"text": "hey"})).await?, "HEY");
    /// assert_eq!(tools.names(), ["shout"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn register_function(&self, def: ToolDef) -> Result<(), RegisterError> {
        self.set.register_function(def)
    }

    /// Removes a tool or a function; returns whether it existed. A tool from a file comes back when the file changes
    /// or is loaded with [`Tools::load_file`].
    pub fn remove(&self, name: &str) -> bool {
        self.allows(name) && self.set.remove(name)
    }

    /// Loads every definition in a folder and its subfolders: `.skill`, `.yaml`, `.yml` and `.json` in all dialects.
    /// Valid files load; the report lists the errors of the others, with file and line.
    ///
    /// Loading a folder again updates the set: new, changed and deleted files are applied. The method blocks while it
    /// reads files; in async code, call it at startup or on a blocking thread.
    pub fn load_directory(&self, path: impl AsRef<Path>) -> Result<LoadReport, LoadError> {
        self.set.load_folder(path.as_ref())
    }

    /// Loads the definition in a file; returns the name of its tool and warnings. A file that was loaded before is
    /// read again.
    pub fn load_file(&self, path: impl AsRef<Path>) -> Result<Loaded, LoadError> {
        self.set.load_file(path.as_ref())
    }

    /// Loads a definition from a string; returns the name of its tool and warnings.
    pub fn load_text(&self, form: FileForm, text: &str) -> Result<Loaded, LoadError> {
        self.set.load_text(form, text).map_err(|problems| LoadError { path: None, problems })
    }

    /// Loads a folder and watches it until the guard is dropped: changes take effect within a second. If a file becomes
    /// invalid, its tool stops being ready; [`Tools::not_ready`] reports why.
    pub fn watch(&self, path: impl AsRef<Path>) -> Result<WatchGuard, LoadError> {
        WatchGuard::start(&self.set, path.as_ref())
    }

    /// Returns the names of the tools in alphabetical order.
    pub fn names(&self) -> Vec<String> {
        self.entries(&self.snapshot()).map(|entry| entry.tool.spec.name.to_string()).collect()
    }

    /// Returns whether a tool exists and can run.
    pub fn is_ready(&self, name: &str) -> bool {
        let snapshot = self.snapshot();
        self.find(name).is_ok_and(|found| snapshot.is_runnable(&found.entry, MODE))
    }

    /// Returns the tools that cannot run, with the reason, and the files that could not be loaded.
    pub fn not_ready(&self) -> Vec<NotReady> {
        self.set.not_ready().into_iter().filter(|tool| self.allows(&tool.name)).collect()
    }

    /// Returns the schemas of the tools that can run, in the format of a model API, ordered by name.
    ///
    /// ```
    /// # use haft::{Format, Param, Params, ToolDef, Tools};
    /// # use serde_json::{Value, json};
    /// # let tools = Tools::new();
    /// tools.register(
    ///     ToolDef::new("read_file", |args: Value| async move { args })
    ///         .description("Read contents of a file")
    ///         .params(Params::new().with("path", Param::string().describe("File path to read").required())),
    /// )?;
    /// assert_eq!(
    ///     tools.schema(Format::Anthropic),
    ///     [json!({
    ///         "name": "read_file",
    ///         "description": "Read contents of a file",
    ///         "input_schema": {
    ///             "type": "object",
    ///             "properties": {"path": {"type": "string", "description": "File path to read"}},
    ///             "required": ["path"],
    ///         },
    ///     })]
    /// );
    /// # Ok::<(), haft::RegisterError>(())
    /// ```
    pub fn schema(&self, format: Format) -> Vec<Value> {
        self.definitions(format).into_iter().map(|definition| definition.value).collect()
    }

    /// Returns the same schemas with an estimate of their tokens and with warnings about what the format cannot
    /// express: a tool that strict mode does not support is exported without it, and a warning names the field.
    ///
    /// ```
    /// # use haft::{Format, Param, Params, ToolDef, Tools};
    /// # use serde_json::{Value, json};
    /// # let tools = Tools::new();
    /// tools.register(
    ///     ToolDef::new("read_file", |args: Value| async move { args })
    ///         .params(Params::new().with("path", Param::string().required()).with("encoding", Param::string())),
    /// )?;
    /// let definitions = tools.definitions(Format::OpenAiStrict);
    /// let definition = &definitions[0];
    /// assert!(definition.warnings.is_empty() && definition.tokens < 100);
    /// assert_eq!(definition.value["function"]["strict"], true);
    /// assert_eq!(definition.value["function"]["parameters"]["required"], json!(["path", "encoding"]));
    /// # Ok::<(), haft::RegisterError>(())
    /// ```
    pub fn definitions(&self, format: Format) -> Vec<Definition> {
        let snapshot = self.snapshot();
        let offers = snapshot.offers(audience(&self.set.bundle.tenant)).into_iter();
        let elevated = self.set.principal.elevated;
        offers
            .filter(|offer| self.allows_entry(offer.entry) && (elevated || !offer.spec.needs_approval()))
            .map(|offer| definition(&offer.spec, &offer.name, format))
            .collect()
    }

    /// Returns the tools of this view that can run and fit a query in plain language, best first, at most `limit`.
    ///
    /// The ranking is that of the server: words of name, description, parameters and tags, and, with the feature
    /// `embedding`, their meaning. Queries have at most 4,000 characters; the rest is ignored. Every tool has some
    /// score: read the descriptions to see whether one fits.
    ///
    /// The first search indexes all tools (about 0.1 ms each), later ones what has changed since.
    ///
    /// ```
    /// # use haft::{ToolDef, Tools};
    /// # use serde_json::Value;
    /// # let tools = Tools::new();
    /// for (name, description) in [
    ///     ("convert_time", "Convert time between timezones"),
    ///     ("send_email", "Send a message to one or more recipients"),
    /// ] {
    ///     tools.register(ToolDef::new(name, |_: Value| async {}).description(description))?;
    /// }
    /// let hits = tools.search("what time is it in Tokyo when it is noon in Berlin", 1);
    /// assert_eq!(hits[0].name, "convert_time");
    /// # Ok::<(), haft::RegisterError>(())
    /// ```
    pub fn search(&self, query: &str, limit: usize) -> Vec<SearchHit> {
        let snapshot = self.snapshot();
        let elevated = self.set.principal.elevated;
        let accept = |entry: &Entry| {
            self.allows_entry(entry)
                && snapshot.is_runnable(entry, MODE)
                && (elevated || !entry.tool.spec.needs_approval())
        };
        let hits = self.set.search.search(&snapshot, &self.set.bundle.tenant, (query, limit), accept);
        hits.into_iter()
            .map(|(entry, hit)| SearchHit {
                name: entry.tool.spec.name.to_string(),
                description: entry.tool.spec.description.clone(),
                score: hit.score,
            })
            .collect()
    }

    /// Returns a view that contains only these tools. No reference of any form reaches another tool through it, and a
    /// filter on the view can only narrow it further.
    ///
    /// ```
    /// # use haft::{ToolDef, Tools};
    /// # use serde_json::{Value, json};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let all = Tools::new();
    /// # for name in ["read_file", "write_file", "web_search"] {
    /// #     all.register(ToolDef::new(name, |_: Value| async {}))?;
    /// # }
    /// let researcher = all.filter(["read_file", "web_search"])?;
    /// assert_eq!(researcher.names(), ["read_file", "web_search"]);
    /// let error = researcher.execute("write_file", json!({})).await.unwrap_err();
    /// assert_eq!(error.model_text(), "Tool call failed: tool `write_file` not found; did you mean `read_file`?");
    ///
    /// let error = all.filter(["read_flie"]).unwrap_err();
    /// assert_eq!(error.to_string(), "tool not found: `read_flie` (did you mean `read_file`?)");
    /// # Ok(())
    /// # }
    /// ```
    pub fn filter<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Result<Tools, FilterError> {
        let snapshot = self.snapshot();
        let mut allowed = HashSet::new();
        let mut unknown = Vec::new();
        for name in names {
            let name = name.as_ref();
            if let Some(tool) = self.tool_name(&snapshot, name) {
                allowed.insert(tool);
            } else {
                let known = self.entries(&snapshot).map(|entry| entry.tool.spec.name.as_str());
                unknown.push((name.to_owned(), nearest(name, known).map(str::to_owned)));
            }
        }
        if unknown.is_empty() {
            // Also for the calls that a tool makes: the pipeline checks the list.
            let names = allowed.iter().map(ToolName::as_str);
            let tools = AllowList::of_names(names);
            let principal = Arc::new(Principal { tools, ..Principal::clone(&self.principal) });
            Ok(Self { allowed: Some(Arc::new(allowed)), principal, ..self.clone() })
        } else {
            Err(FilterError { unknown })
        }
    }

    /// Returns a view with a further middleware layer around every call. The layer that was added last sees a call
    /// first and its outcome last.
    #[must_use = "the layer applies to calls through the returned view"]
    pub fn layer(&self, stage: impl Stage + 'static) -> Tools {
        Self { pipeline: Arc::new(self.pipeline.layered(Arc::new(stage))), ..self.clone() }
    }

    /// Calls a tool and returns its value. The arguments are anything that serializes to a JSON object: `json!({…})`,
    /// a map, a struct, or `()` for no arguments.
    ///
    /// The error has a message for the operator and one for the model, [`CallError::model_text`]. Dropping the future
    /// cancels the call.
    pub async fn execute(&self, name: &str, args: impl Serialize) -> Result<Value, CallError> {
        self.execute_json(name, to_json(args)?).await
    }

    /// Calls a tool with arguments that already are JSON, such as those that a model sends; they are not serialized
    /// again.
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
        let mut call = self.begin(name, into_object(args)?, CallOptions::default()).await?;
        self.pipeline.execute(&mut call).await
    }

    /// Calls a tool and deserializes its value.
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
                format!("the value does not match the expected type: `{}`: {}", error.path(), error.inner());
            CallError::new(ErrorCode::InvalidOutput, message)
                .for_model("the tool returned an unexpected result")
        })
    }

    /// Starts a call with options: [`CallBuilder::args`], [`CallBuilder::timeout`], [`CallBuilder::on_event`], then
    /// [`CallBuilder::send`].
    pub fn call<'a>(&'a self, name: &'a str) -> CallBuilder<'a> {
        CallBuilder::new(self, name)
    }

    /// Resolves the tool, compiles it if this is its first call, and runs the checks of a call.
    pub(crate) async fn begin(
        &self,
        name: &str,
        args: Map<String, Value>,
        options: CallOptions,
    ) -> Result<Call, CallError> {
        let rejected_args = self.on_rejected.as_ref().map(|_| Value::Object(args.clone()));
        let result = match self.find(name) {
            Ok(found) => {
                self.pipeline.compile(&found, MODE).await;
                let request = Request {
                    mode: MODE,
                    timeout: options.timeout,
                    events: options.events,
                    ..Request::new(Arc::clone(&self.principal), "library", args)
                };
                self.pipeline.begin(found, request)
            }
            Err(error) => Err(error),
        };
        if let (Err(error), Some(on_rejected), Some(args)) = (&result, &self.on_rejected, rejected_args) {
            on_rejected(name, args, error);
        }
        result
    }

    /// Returns a view that reports rejected calls to a callback.
    pub(crate) fn with_on_rejected(
        &self,
        callback: impl Fn(&str, Value, &CallError) + Send + Sync + 'static,
    ) -> Tools {
        Self { on_rejected: Some(Arc::new(callback)), ..self.clone() }
    }

    pub(crate) fn set(&self) -> &ToolSet {
        &self.set
    }

    pub(crate) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Resolves a name, `bundle:name`, an id, or the name under which a model sees a tool.
    pub(crate) fn find(&self, name: &str) -> Result<ResolvedTool, CallError> {
        let snapshot = self.snapshot();
        let tenant = &self.set.bundle.tenant;
        // A program may use names that the API reserves, which no reference can express.
        if let Some(entry) = snapshot.unique(tenant, name).filter(|entry| self.allows_entry(entry)) {
            return Ok(snapshot.resolved(entry));
        }
        let reference = name.parse::<ToolRef>();
        let found =
            reference.as_ref().map(|reference| snapshot.resolve_called(name, reference, audience(tenant)));
        match found {
            Ok(Ok(entry)) if self.allows_entry(entry) => return Ok(snapshot.resolved(entry)),
            Ok(Err(error)) if self.allows(name) => {
                let error = CallError::from(error);
                if error.code != ErrorCode::NotFound {
                    return Err(error);
                }
            }
            _ => {}
        }
        let known = self.entries(&snapshot).map(|entry| entry.tool.spec.name.as_str());
        let hint = nearest(name, known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let name = haft_core::problem::excerpt(name, 64);
        Err(CallError::new(ErrorCode::NotFound, format!("tool `{name}` not found{hint}")))
    }

    /// Returns the name of the tool, or of the invalid file, that a filter refers to.
    fn tool_name(&self, snapshot: &Snapshot, name: &str) -> Option<ToolName> {
        if let Ok(found) = self.find(name) {
            return Some(found.entry.tool.spec.name.clone());
        }
        let broken = snapshot.unreadable(&self.set.bundle.tenant).any(|file| file.name == name);
        if broken && self.allows(name) { ToolName::new(name).ok() } else { None }
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.set.registry().snapshot()
    }

    fn entries<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Arc<Entry>> {
        snapshot.tools(&self.set.bundle.tenant).filter(|entry| self.allows_entry(entry))
    }

    fn allows_entry(&self, entry: &Entry) -> bool {
        self.allows(entry.tool.spec.name.as_str())
    }

    fn allows(&self, name: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(name))
    }
}

/// Returns for whom the tools of a set are named.
fn audience(tenant: &TenantId) -> Audience<'_> {
    Audience { tenant, mode: MODE, naming: Naming::ByKind }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").field("names", &self.names()).finish_non_exhaustive()
    }
}
