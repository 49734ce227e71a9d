//! The tools of a program, and the ways to change and to narrow them.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use haft_core::catalog::FileForm;
use haft_core::name::ToolName;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::nearest;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_definition::export::{Definition, Format, definition, looks_distinct};
use haft_runtime::egress::EgressRules;
use haft_runtime::pipeline::{Pipeline, Principal};
use haft_runtime::registry::{Entry, ResolvedTool, Snapshot};
use haft_runtime::stages::Stage;
use serde_json::Value;

use crate::builder::Builder;
use crate::def::ToolDef;
use crate::error::{FilterError, RegisterError};
use crate::report::{Fault, LoadError, LoadReport, Loaded};
use crate::resources::Resources;
use crate::set::ToolSet;
use crate::watch::Watch;

/// The tools of a program: registered functions, and definitions from files.
///
/// Clones are of the same set, and so are the views that [`Tools::filter`] and [`Tools::layer`] make: what is
/// registered in one is in all of them, as far as their filters let it through.
///
/// ```
/// use haft::{ToolDef, Tools};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet {
///     /// Whom to greet
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
///     "Tool call failed: invalid arguments: \"name\" is a required property",
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
    /// The names that this view lets through; `None` lets all through.
    allowed: Option<Arc<HashSet<ToolName>>>,
    /// Who wants to know of calls that got to no tool.
    on_refused: Option<Arc<OnRefused>>,
}

/// Takes the name, the arguments and the error of a call that got to no tool.
pub(crate) type OnRefused = dyn Fn(&str, Value, &CallError) + Send + Sync;

impl Default for Tools {
    fn default() -> Self {
        Self::new()
    }
}

impl Tools {
    /// Starts without any tool, with the usual limits, and with no folder and no secret for tools.
    pub fn new() -> Self {
        Builder::default().assemble(&Resources::new(EgressRules::default(), None), None)
    }

    /// Starts with what tools may use.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn of(set: Arc<ToolSet>, pipeline: Arc<Pipeline>) -> Self {
        let principal = pipeline.principal(set.bundle.tenant.clone(), set.caller.clone());
        Self { set, pipeline, principal, allowed: None, on_refused: None }
    }

    /// Adds a tool. A name that is taken is refused, and so is a schema said by hand that the function cannot take.
    ///
    /// A definition that names the function (`type: builtin`) finds it from now on.
    pub fn register(&self, def: ToolDef) -> Result<(), RegisterError> {
        self.set.register(def)
    }

    /// Adds a function that definitions may name (`type: builtin`), without a tool of its own.
    ///
    /// ```
    /// # use haft::{FileForm, ToolDef, Tools};
    /// # use serde_json::{Value, json};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tools = Tools::new();
    /// tools.load_text(
    ///     FileForm::Yaml,
    ///     "name: shout\ndescription: Says it loudly\nparams: [{name: text, type: string, required: true}]\n\
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

    /// Takes out a tool, or a function; tells whether it was there. The tool of a file is back when the file changes,
    /// or is loaded by its name.
    pub fn remove(&self, name: &str) -> bool {
        self.lets_through(name) && self.set.remove(name)
    }

    /// Loads every definition beneath a folder: `.skill`, `.yaml`, `.yml` and `.json` in all dialects. What is good
    /// is loaded; what is not is told in the report, each file with its lines and reasons.
    ///
    /// Loading a folder again brings the set up to date with it. It reads files, and so takes its time: in async code
    /// call it at the start, or on a thread that may block.
    pub fn load_directory(&self, path: impl AsRef<Path>) -> Result<LoadReport, LoadError> {
        self.set.load_folder(path.as_ref())
    }

    /// Loads the definition in a file; returns the name of its tool, and doubts. A file that was loaded before is read
    /// again.
    pub fn load_file(&self, path: impl AsRef<Path>) -> Result<Loaded, LoadError> {
        self.set.load_file(path.as_ref())
    }

    /// Loads a definition; returns the name of its tool, and doubts.
    pub fn load_text(&self, form: FileForm, text: &str) -> Result<Loaded, LoadError> {
        self.set.load_text(form, text).map_err(|problems| LoadError { path: None, problems })
    }

    /// Loads a folder and follows it until the guard is dropped: what changes there is served within a second. A file
    /// that breaks takes its tool out of service; [`Tools::faults`] tells why.
    pub fn watch(&self, path: impl AsRef<Path>) -> Result<Watch, LoadError> {
        Watch::start(&self.set, path.as_ref())
    }

    /// Returns the names of the tools, in their order.
    pub fn names(&self) -> Vec<String> {
        self.entries(&self.snapshot()).map(|entry| entry.tool.spec.name.to_string()).collect()
    }

    /// Tells whether a tool is there and can run.
    pub fn is_ready(&self, name: &str) -> bool {
        let snapshot = self.snapshot();
        self.find(name).is_ok_and(|found| snapshot.is_runnable(&found.entry, Mode::Debug))
    }

    /// Says which tools cannot run now and why, and which files define none.
    pub fn faults(&self) -> Vec<Fault> {
        self.set.faults().into_iter().filter(|fault| self.lets_through(&fault.name)).collect()
    }

    /// Returns the tools that can run, in the form of a model's API, in the order of their names.
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

    /// Returns the same with an estimate of the tokens that each takes, and with what could not be said in this form:
    /// a tool that strict mode cannot describe is there without it, and a warning names the place.
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
        let offers = snapshot.offers(&self.set.bundle.tenant, Mode::Debug).into_iter();
        let may_all = self.set.caller.elevated;
        offers
            .filter(|offer| self.allows(offer.entry) && (may_all || !offer.spec.needs_approval()))
            .map(|offer| definition(offer.spec, &offer.name, format))
            .collect()
    }

    /// Makes a view that has only these tools. It can never run another one, by whatever reference; a filter of it
    /// only narrows further.
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
    /// assert_eq!(error.model_text(), "Tool call failed: there is no tool `write_file`; did you mean `read_file`?");
    ///
    /// let error = all.filter(["read_flie"]).unwrap_err();
    /// assert_eq!(error.to_string(), "no tool of this set is called `read_flie` (did you mean `read_file`?)");
    /// # Ok(())
    /// # }
    /// ```
    pub fn filter<N: AsRef<str>>(&self, names: impl IntoIterator<Item = N>) -> Result<Tools, FilterError> {
        let snapshot = self.snapshot();
        let mut allowed = HashSet::new();
        let mut unknown = Vec::new();
        for name in names {
            let name = name.as_ref();
            if let Some(known) = self.known(&snapshot, name) {
                allowed.insert(known);
            } else {
                let known = self.entries(&snapshot).map(|entry| entry.tool.spec.name.as_str());
                unknown.push((name.to_owned(), nearest(name, known).map(str::to_owned)));
            }
        }
        if unknown.is_empty() {
            Ok(Self { allowed: Some(Arc::new(allowed)), ..self.clone() })
        } else {
            Err(FilterError { unknown })
        }
    }

    /// Makes a view with one more layer around every call, around the layers that are there: the last one that was
    /// added sees a call first and its outcome last.
    #[must_use = "the layer is around the calls of the view that this returns"]
    pub fn layer(&self, stage: impl Stage + 'static) -> Tools {
        Self { pipeline: Arc::new(self.pipeline.layered(Arc::new(stage))), ..self.clone() }
    }

    /// Makes a view that tells of calls that got to no tool.
    pub(crate) fn telling_refused(
        &self,
        tell: impl Fn(&str, Value, &CallError) + Send + Sync + 'static,
    ) -> Tools {
        Self { on_refused: Some(Arc::new(tell)), ..self.clone() }
    }

    pub(crate) fn on_refused(&self) -> Option<&OnRefused> {
        self.on_refused.as_deref()
    }

    pub(crate) fn set(&self) -> &ToolSet {
        &self.set
    }

    pub(crate) fn principal(&self) -> &Arc<Principal> {
        &self.principal
    }

    pub(crate) fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// Finds what a caller means: a name, `bundle:name`, an id, or the name that a model was given.
    pub(crate) fn find(&self, name: &str) -> Result<ResolvedTool, CallError> {
        let snapshot = self.set.registry().current();
        // A name that may be one that a model was told is looked for among those first.
        if !looks_distinct(name)
            && let Some(entry) = snapshot.unique(&self.set.bundle.tenant, name)
            && self.allows(entry)
        {
            return Ok(snapshot.resolved(entry));
        }
        self.search(&snapshot, name)
    }

    fn search(&self, snapshot: &Snapshot, name: &str) -> Result<ResolvedTool, CallError> {
        let reference = name.parse::<ToolRef>();
        let tenant = &self.set.bundle.tenant;
        let found =
            reference.as_ref().map(|reference| snapshot.resolve_called(tenant, name, reference, Mode::Debug));
        match found {
            Ok(Ok(entry)) if self.allows(entry) => return Ok(snapshot.resolved(entry)),
            Ok(Err(error)) if self.lets_through(name) => {
                let error = CallError::from(error);
                if error.code != ErrorCode::NotFound {
                    return Err(error);
                }
            }
            _ => {}
        }
        let known = self.entries(snapshot).map(|entry| entry.tool.spec.name.as_str());
        let hint = nearest(name, known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let name = haft_core::problem::excerpt(name, 64);
        Err(CallError::new(ErrorCode::NotFound, format!("there is no tool `{name}`{hint}")))
    }

    /// Returns the name of the tool, or of the broken file, that a name of a filter means.
    fn known(&self, snapshot: &Snapshot, name: &str) -> Option<ToolName> {
        if let Ok(found) = self.find(name) {
            return Some(found.entry.tool.spec.name.clone());
        }
        let broken = snapshot.unreadable(&self.set.bundle.tenant).any(|file| file.name == name);
        if broken && self.lets_through(name) { ToolName::new(name).ok() } else { None }
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.set.registry().snapshot()
    }

    fn entries<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a Arc<Entry>> {
        snapshot.tools(&self.set.bundle.tenant).filter(|entry| self.allows(entry))
    }

    fn allows(&self, entry: &Entry) -> bool {
        self.lets_through(entry.tool.spec.name.as_str())
    }

    fn lets_through(&self, name: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(name))
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").field("names", &self.names()).finish_non_exhaustive()
    }
}
