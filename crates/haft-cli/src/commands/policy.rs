//! `haft policy`: manages the policy rules.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use haft_api::policy::ExplanationView;
use haft_core::policy::{PolicyRule, PolicyRules};
use http::Method;
use serde_json::{Map, Value, json};

use super::token::Role;
use super::tool::CallArguments;
use crate::client::{Body, Request, explain};
use crate::context::Context;
use crate::error::CliError;
use crate::input;
use crate::view;

/// Manage policy rules: who may call which tool with which arguments
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the rules
    #[command(after_help = examples!("haft policy show", "haft policy show --json > policy.json"))]
    Show {
        #[command(flatten)]
        scope: Scope,
    },
    /// Replace the rules; rules that fail their examples are rejected
    #[command(after_help = examples!("haft policy set policy.yaml", "haft policy set platform.yaml --platform"))]
    Set(File),
    /// Check rules and their examples, and change nothing
    #[command(after_help = examples!("haft policy test policy.yaml"))]
    Test(File),
    /// Show what would happen to a call, which rule decides, and why the others do not match
    #[command(after_help = examples!(
        "haft policy explain pay -a amount=250 --as-role caller",
        "haft policy explain bank:pay --args '{\"amount\": 250}' --as-token ci --as-surface mcp"
    ))]
    Explain(Box<Explain>),
}

/// Whose rules.
#[derive(Debug, Args)]
pub(crate) struct Scope {
    /// The rules of the platform, which hold for every tenant
    #[arg(long)]
    platform: bool,
}

/// A file with rules.
#[derive(Debug, Args)]
pub(crate) struct File {
    /// Rules as YAML or JSON; `-` reads stdin
    file: PathBuf,
    #[command(flatten)]
    scope: Scope,
}

/// Show what would happen to a call
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
    #[command(flatten)]
    values: CallArguments,
    /// Role of the caller [default: that of the token, or `caller`]
    #[arg(long, value_name = "ROLE")]
    as_role: Option<Role>,
    /// Name or id of the caller's token
    #[arg(long, value_name = "TOKEN")]
    as_token: Option<String>,
    /// Person who calls: id, e-mail address or name, for admins
    #[arg(long, value_name = "PERSON", conflicts_with = "as_token")]
    as_person: Option<String>,
    /// Tenant of the caller, for admins of the platform
    #[arg(long, value_name = "TENANT")]
    as_tenant: Option<String>,
    /// Agent that makes the call
    #[arg(long, value_name = "AGENT")]
    as_agent: Option<String>,
    /// Surface of the call, such as `mcp` [default: rest]
    #[arg(long, value_name = "SURFACE")]
    as_surface: Option<String>,
    /// The caller runs tools that need approval without it
    #[arg(long)]
    as_elevated: bool,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Show { scope } => show(&scope, context).await,
        Command::Set(file) => set(&file, context).await,
        Command::Test(file) => test(&file, context).await,
        Command::Explain(arguments) => explain_call(&arguments, context).await,
    }
}

impl Scope {
    fn name(&self) -> Option<&'static str> {
        self.platform.then_some("platform")
    }
}

async fn show(scope: &Scope, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/policy").query_some("scope", scope.name())).await?;
    context.output.show(&data, |output, policy: PolicyRules| {
        if policy.rules.is_empty() {
            output.note("there are no rules: the settings of each tool apply");
            return Ok(());
        }
        let rows = policy.rules.into_iter().map(|rule| {
            let matching = matching(&rule);
            vec![
                rule.name,
                rule.effect.as_str().to_owned(),
                matching,
                output.brief(rule.when.as_deref().unwrap_or_default(), 60),
                rule.examples.len().to_string(),
            ]
        });
        output.list(&["NAME", "EFFECT", "MATCH", "WHEN", "EXAMPLES"], &[], rows.collect())
    })
}

/// Returns what a rule matches, on one line.
fn matching(rule: &PolicyRule) -> String {
    let fields = json!(rule.matching);
    let fields = fields.as_object().into_iter().flatten();
    let fields = fields.map(|(key, patterns)| {
        let patterns: Vec<_> = patterns.as_array().into_iter().flatten().map(view::readable).collect();
        format!("{key}: {}", patterns.join(", "))
    });
    view::first_line(&fields.collect::<Vec<_>>().join("; "), 60)
}

async fn set(file: &File, context: &Context) -> Result<(), CliError> {
    let data = context.request(put(file)?).await?;
    context.output.show(&data, |output, policy: PolicyRules| {
        output.note(&format!("stored {}", count(&policy)));
        Ok(())
    })
}

async fn test(file: &File, context: &Context) -> Result<(), CliError> {
    let data = context.request(put(file)?.query("dry_run", "true")).await?;
    context.output.show(&data, |output, policy: PolicyRules| {
        output.note(&format!("{} passed; nothing was stored", count(&policy)));
        Ok(())
    })
}

fn put(file: &File) -> Result<Request, CliError> {
    let text = input::read_text(Path::new(&file.file))?;
    let is_json = text.trim_start().starts_with('{');
    let content_type = if is_json { "application/json" } else { "application/yaml" };
    let request = Request::new(Method::PUT, "/api/policy").with_body(Body::Text { content_type, text });
    Ok(request.query_some("scope", file.scope.name()))
}

fn count(policy: &PolicyRules) -> String {
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let examples: usize = policy.rules.iter().map(|rule| rule.examples.len()).sum();
    format!("{} with {}", plural(policy.rules.len(), "rule"), plural(examples, "example"))
}

async fn explain_call(arguments: &Explain, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let response = match arguments.values.read(&arguments.tool, &client, &context.output).await {
        Ok(args) => client.data(Request::post("/api/policy/explain", arguments.body(&args))).await,
        Err(error) => Err(error),
    };
    let response = match response {
        Err(error) => Err(explain(error, &arguments.tool, &client).await),
        response => response,
    };
    client.close().await;
    let data = response?;
    context.output.show(&data, |output, explanation: ExplanationView| {
        let decided = match explanation.rule {
            Some(rule) => format!("decided by `{rule}`"),
            None => "nothing says otherwise".to_owned(),
        };
        output.line(&format!("{}: {decided}", explanation.effect.as_str()))?;
        if let Some(reason) = explanation.reason {
            output.line(&format!("reason: {reason}"))?;
        }
        output.line("")?;
        let rows = explanation
            .considered
            .into_iter()
            .map(|one| vec![one.rule, one.effect.as_str().to_owned(), view::yes_no(one.matched), one.why]);
        output.table(&["RULE", "EFFECT", "MATCHED", "WHY"], rows.collect())
    })
}

impl Explain {
    fn body(&self, args: &Value) -> Value {
        let mut caller = Map::new();
        let role = self.as_role.map(|role| json!(role.name()));
        let texts = [
            ("token", &self.as_token),
            ("person", &self.as_person),
            ("tenant", &self.as_tenant),
            ("agent", &self.as_agent),
            ("surface", &self.as_surface),
        ];
        caller.extend(role.map(|role| ("role".to_owned(), role)));
        caller.extend(
            texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text.as_ref()?)))),
        );
        if self.as_elevated {
            caller.insert("elevated".to_owned(), json!(true));
        }
        let mut body = json!({"tool": self.tool, "args": args});
        if let (Value::Object(body), false) = (&mut body, caller.is_empty()) {
            body.insert("as".to_owned(), Value::Object(caller));
        }
        body
    }
}
