//! The command line as clap parses it, and the dispatch to commands.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};
use haft_core::secret::Secret;

use crate::commands::{
    account, agent, application, apply, approval, artifact, audit, auth, bundle, call, chat, complete,
    completions, connect, context, doctor, group, import, init, key, limits, login, login_link, logout, mcp,
    mcp_server, person, pipeline, policy, reindex, run, schema, secret, serve, service_account, tenant,
    token, tool, toolset, webhook, whoami, workspace,
};
use crate::context::Context;
use crate::error::CliError;
use crate::output::{Color, Form};

/// The tool platform for LLM agents
///
/// Commands use the server of `haft login` or a running one, and otherwise open the home folder themselves.
#[derive(Debug, Parser)]
#[command(name = "haft", version, max_term_width = 100, disable_help_flag = true)]
#[command(after_help = crate::help::GLOBAL_OPTIONS)]
pub(crate) struct Cli {
    /// The global options.
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command. They are hidden from the generated help, which lists them once, in `haft --help`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Globals {
    /// Home folder
    #[arg(long, global = true, value_name = "DIR", hide_short_help = true, hide_long_help = true)]
    pub(crate) home: Option<PathBuf>,
    /// Server to connect to
    #[arg(long, global = true, value_name = "URL", hide_short_help = true, hide_long_help = true)]
    pub(crate) server: Option<String>,
    /// Stored login to use, or `local` for the home folder
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true, hide_long_help = true)]
    pub(crate) context: Option<String>,
    /// Access token
    #[arg(long, global = true, value_name = "TOKEN", value_parser = parse_token)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    pub(crate) token: Option<Secret>,
    /// Print JSON
    #[arg(long, global = true, hide_short_help = true, hide_long_help = true)]
    pub(crate) json: bool,
    /// Format of the output
    #[arg(short, long, global = true, value_name = "FORMAT", value_parser = parse_form)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    // `toolset export` has an option with the same name for its file, so both have the same type.
    pub(crate) output: Option<String>,
    /// Print tables without a header
    #[arg(long, global = true, hide_short_help = true, hide_long_help = true)]
    pub(crate) no_headers: bool,
    /// Print neither notes nor progress
    #[arg(long, global = true, hide_short_help = true, hide_long_help = true)]
    pub(crate) quiet: bool,
    /// Use of colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(hide_short_help = true, hide_long_help = true)]
    pub(crate) color: Color,
    /// Log filter
    #[arg(long, global = true, value_name = "FILTER", value_parser = parse_log)]
    #[arg(hide_short_help = true, hide_long_help = true)]
    pub(crate) log: Option<String>,
    /// Print help
    #[arg(short, long, global = true, action = ArgAction::HelpShort)]
    help: Option<bool>,
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a clap value parser")]
pub(crate) fn parse_token(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text.to_owned()))
}

fn parse_form(text: &str) -> Result<String, String> {
    let names = Form::NAMES.map(|(name, _)| format!("`{name}`"));
    Form::parse(text).map(|_| text.to_owned()).ok_or_else(|| format!("expected {}", names.join(", ")))
}

fn parse_log(text: &str) -> Result<String, String> {
    crate::config::parse_log_filter(text).map_err(|expected| format!("expected {expected}"))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the server
    #[command(after_help = concat!(
        "The first start generates an admin token and stores it in the file `tokens` in the home\n\
         folder, where commands on this machine find it. HAFT_TOKEN sets an additional admin token.\n\n",
        examples!("haft serve", "haft serve --addr 127.0.0.1:8080 --mode production")
    ))]
    Serve(serve::Arguments),
    /// Serve the tools to an MCP client over standard input and output
    #[command(after_help = examples!("haft mcp", "haft mcp --bundle web"))]
    Mcp(mcp::Arguments),
    /// Create a home folder with a sample configuration and an example tool
    #[command(after_help = examples!("haft init", "haft init --home ./demo"))]
    Init,
    /// Check the installation
    #[command(after_help = examples!("haft doctor"))]
    Doctor,
    /// Rebuild the index from the definition files
    #[command(after_help = examples!("haft reindex"))]
    Reindex,
    /// Log in to a server: commands use it from then on
    #[command(after_help = concat!(
        "The login is approved in a browser, on any machine. With --token, a token is read from the\n\
         terminal without echo, or from stdin.\n\n",
        examples!("haft login https://haft.example.com", "haft login https://haft.example.com --token < token.txt")
    ))]
    Login(login::Arguments),
    /// Revoke the token of a login and forget it
    #[command(after_help = examples!("haft logout", "haft logout haft.example.com --keep-token"))]
    Logout(logout::Arguments),
    /// Show which server commands use, and what they may do there
    #[command(after_help = examples!("haft whoami", "haft whoami -o json"))]
    Whoami,
    /// Add haft to the configuration of an MCP client: Claude Code, Cursor, VS Code and others
    #[command(after_help = concat!(
        "The entry gets a token of its own with the role `caller`, or with --oauth none. The first change\n\
         of a file keeps a backup beside it.\n\n",
        examples!(
            "haft connect --list",
            "haft connect cursor",
            "haft connect claude --bundle web --tools web:*",
            "haft connect claude-desktop --print",
            "haft connect cursor --remove"
        )
    ))]
    Connect(Box<connect::Arguments>),
    /// Manage stored logins to servers
    #[command(subcommand)]
    #[command(after_help = examples!("haft context list", "haft context use haft.example.com", "haft context use local"))]
    Context(context::Command),
    /// Manage and call tools
    ///
    /// A tool is referred to by `name`, `bundle:name`, either with `@version`, or by id.
    #[command(subcommand)]
    #[command(after_help = examples!("haft tool list", "haft tool call weather -a city=Paris"))]
    Tool(tool::Command),
    /// Manage and run agents: models with instructions and tools
    ///
    /// An agent is referred to by its slug or id.
    #[command(subcommand)]
    #[command(after_help = examples!("haft agent create assistant.yaml", "haft agent run assistant \"What time is it in Tokyo?\""))]
    Agent(agent::Command),
    /// Chat with an agent in the terminal
    #[command(after_help = concat!(
        "Ctrl-C stops the answer, `/quit` or Ctrl-D ends the chat. Calls that need approval are asked here.\n\
         Without a terminal, each line of standard input is a message.\n\n",
        examples!(
            "haft chat --agent assistant",
            "haft chat --chat 019a8f50-b7b6-7a01-9a05-a22a6e0af101",
            "echo \"What time is it in Tokyo?\" | haft chat --agent assistant"
        )
    ))]
    Chat(chat::Arguments),
    /// Show, follow and stop runs of agents
    ///
    /// `haft agent run` starts one; `haft tool call` calls a tool.
    #[command(subcommand)]
    #[command(after_help = examples!("haft run list --status awaiting_approval", "haft run watch ID"))]
    Run(run::Command),
    /// Manage MCP servers whose tools haft uses
    #[command(subcommand)]
    #[command(after_help = examples!("haft mcp-server add time -- mcp-server-time", "haft mcp-server list"))]
    McpServer(mcp_server::Command),
    /// Create tools from API descriptions and registries
    #[command(after_help = examples!(
        "haft import petstore.yaml --bundle pets",
        "haft import https://api.example.com/graphql --tag query --bearer API_TOKEN --dry-run",
        "haft import shop.postman_collection.json"
    ))]
    Import(import::Arguments),
    /// Manage secrets, which tools refer to as `${NAME}`
    #[command(subcommand)]
    #[command(after_help = examples!("haft secret set WEATHER_API_KEY < key.txt", "haft secret list"))]
    Secret(secret::Command),
    /// Manage your accounts at providers, which tools use for you
    #[command(subcommand)]
    #[command(after_help = examples!("haft account list", "haft account connect github"))]
    Account(account::Command),
    /// Manage the encryption key of stored secrets
    #[command(subcommand)]
    #[command(after_help = examples!("haft key rotate"))]
    Key(key::Command),
    /// Manage bundles of tools
    #[command(subcommand)]
    #[command(after_help = examples!("haft bundle list", "haft bundle disable pets"))]
    Bundle(bundle::Command),
    /// Manage retrieval pipelines: documents that tools and agents search
    #[command(subcommand)]
    #[command(after_help = examples!("haft pipeline create handbook", "haft pipeline add handbook ./docs", "haft pipeline query handbook \"How do I install it?\""))]
    Pipeline(pipeline::Command),
    /// Manage code artifacts: stored programs with declared inputs, which tools run
    #[command(subcommand)]
    #[command(after_help = examples!("haft artifact create word-count count.sh --input text:string!", "haft artifact list"))]
    Artifact(artifact::Command),
    /// Manage toolsets: bundles that are installed as packages
    #[command(subcommand)]
    #[command(after_help = examples!("haft toolset new reports", "haft toolset install ./reports"))]
    Toolset(toolset::Command),
    /// Bring the installation to the state of a folder: shows the plan, asks, and applies all of it or nothing
    #[command(after_help = concat!(
        "The folder holds `bundles/<id>/` with definition files or a toolset each, `agents/`, `pipelines/`,\n\
         `artifacts/`, `mcp-servers.yaml` and `policy.yaml`. Only bundles and parts that are in the\n\
         folder are touched; only `--prune` deletes.\n\n",
        examples!(
            "haft apply ./platform",
            "haft apply ./platform --prune --yes",
            "haft apply ./platform --server https://haft.example.com --yes"
        )
    ))]
    Apply(apply::Apply),
    /// Show what `haft apply` would change
    #[command(after_help = concat!(
        "The exit code is 0 if there is nothing to change, and 11 if there is.\n\n",
        examples!("haft diff ./platform", "haft diff ./platform --prune --json")
    ))]
    Diff(apply::Diff),
    /// Write the installation to a folder that `haft apply` brings to another one; secrets become `${NAME}`
    #[command(after_help = examples!("haft export ./platform", "haft export ./platform --bundle weather --force"))]
    Export(apply::Export),
    /// Look at workspaces: the folders that calls work in
    #[command(subcommand)]
    #[command(after_help = examples!("haft workspace ls", "haft workspace cat report summary.md"))]
    Workspace(workspace::Command),
    /// Manage tenants
    #[command(subcommand)]
    #[command(after_help = examples!("haft tenant create acme", "haft token create ci --tenant acme --role editor"))]
    Tenant(tenant::Command),
    /// Manage people: invite, show, change, disable and delete them
    ///
    /// A person is referred to by e-mail address, id, or a name that only one person of the tenant has.
    #[command(after_help = examples!("haft person invite \"Ann Smith\" --email ann@example.com --role editor", "haft person list"))]
    Person(person::Arguments),
    /// Manage service accounts, which have tokens but never log in
    ///
    /// A service account is referred to by id, or a name that only one of the tenant has.
    #[command(after_help = examples!(
        "haft service-account create nightly-report --responsible ann@example.com",
        "haft token create nightly-report --owner nightly-report"
    ))]
    ServiceAccount(service_account::Arguments),
    /// Manage groups: rights that people and service accounts have in common
    #[command(after_help = examples!("haft group create finance --tools bank:*", "haft group add-member finance ann@example.com"))]
    Group(group::Arguments),
    /// Try what a login at an issuer would get
    #[command(subcommand)]
    #[command(after_help = examples!("haft auth test --claims claims.json"))]
    Auth(auth::Command),
    /// Manage applications that people have connected, such as hosted chat clients
    #[command(subcommand)]
    #[command(after_help = examples!("haft application list", "haft application revoke 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Application(application::Command),
    /// Manage access tokens
    #[command(subcommand)]
    #[command(after_help = examples!("haft token create ci --role caller --expires-in 90d", "haft token list"))]
    Token(token::Command),
    /// Decide about calls that wait for a person
    #[command(subcommand)]
    #[command(after_help = examples!("haft approval list --watch", "haft approval approve ID", "haft approval deny ID --reason \"not today\""))]
    Approval(approval::Command),
    /// Manage policy rules: who may call which tool with which arguments
    #[command(subcommand)]
    #[command(after_help = examples!("haft policy set policy.yaml", "haft policy explain pay -a amount=250"))]
    Policy(policy::Command),
    /// Manage webhooks: URLs that events are posted to
    #[command(subcommand)]
    #[command(after_help = examples!("haft webhook add https://example.com/hooks/haft", "haft webhook deliveries ID --status failed"))]
    Webhook(webhook::Command),
    /// Print a link that logs a browser in; it works once
    #[command(after_help = examples!("haft login-link"))]
    LoginLink,
    /// Show recorded calls
    #[command(subcommand)]
    #[command(after_help = examples!("haft call list --status error", "haft call show ID"))]
    Call(call::Command),
    /// Show limits and how much of them is used
    #[command(after_help = examples!("haft limits", "haft --json limits"))]
    Limits,
    /// List recorded changes and calls, newest first
    #[command(after_help = examples!("haft audit --since 24h", "haft audit --kind calls --decision denied", "haft audit export --since 7d --kind all > audit.jsonl"))]
    Audit(Box<audit::Arguments>),
    /// Print the JSON Schemas of definitions, for editors
    #[command(after_help = examples!("haft schema", "haft schema tool > tool.schema.json"))]
    Schema(schema::Arguments),
    /// Print a shell completion script
    #[command(after_help = examples!(
        "haft completions bash > ~/.local/share/bash-completion/completions/haft",
        "haft completions zsh > ~/.zfunc/_haft",
        "haft completions fish > ~/.config/fish/completions/haft.fish"
    ))]
    Completions(completions::Arguments),
    /// Complete a command line
    #[command(name = "__complete", hide = true)]
    Complete(complete::Arguments),
}

impl Command {
    /// Runs the command.
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Serve(arguments) => serve::run(arguments, context).await,
            Self::Mcp(arguments) => mcp::run(arguments, context).await,
            Self::Init => init::run(context),
            Self::Doctor => doctor::run(context).await,
            Self::Reindex => reindex::run(context).await,
            Self::Login(arguments) => login::run(arguments, context).await,
            Self::Logout(arguments) => logout::run(arguments, context).await,
            Self::Whoami => whoami::run(context).await,
            Self::Connect(arguments) => connect::run(*arguments, context).await,
            Self::Context(command) => context::run(command, context),
            Self::Tool(command) => command.run(context).await,
            Self::Agent(command) => agent::run(command, context).await,
            Self::Chat(arguments) => chat::run(arguments, context).await,
            Self::Run(command) => run::run(command, context).await,
            Self::McpServer(command) => mcp_server::run(command, context).await,
            Self::Import(command) => import::run(command, context).await,
            Self::Secret(command) => secret::run(command, context).await,
            Self::Account(command) => account::run(command, context).await,
            Self::Key(command) => key::run(command, context).await,
            Self::Bundle(command) => bundle::run(command, context).await,
            Self::Pipeline(command) => pipeline::run(command, context).await,
            Self::Artifact(command) => artifact::run(command, context).await,
            Self::Toolset(command) => toolset::run(command, context).await,
            Self::Apply(arguments) => apply::apply(arguments, context).await,
            Self::Diff(arguments) => apply::diff(arguments, context).await,
            Self::Export(arguments) => apply::export(arguments, context).await,
            Self::Workspace(command) => workspace::run(command, context).await,
            Self::Tenant(command) => tenant::run(command, context).await,
            Self::Person(arguments) => person::run(arguments, context).await,
            Self::ServiceAccount(arguments) => service_account::run(arguments, context).await,
            Self::Group(arguments) => group::run(arguments, context).await,
            Self::Auth(command) => auth::run(command, context).await,
            Self::Application(command) => application::run(command, context).await,
            Self::Token(command) => token::run(command, context).await,
            Self::Approval(command) => approval::run(command, context).await,
            Self::Policy(command) => policy::run(command, context).await,
            Self::Webhook(command) => webhook::run(command, context).await,
            Self::LoginLink => login_link::run(context).await,
            Self::Call(command) => call::run(command, context).await,
            Self::Limits => limits::run(context).await,
            Self::Audit(arguments) => audit::run(*arguments, context).await,
            Self::Schema(arguments) => schema::run(&arguments, context),
            Self::Completions(arguments) => completions::run(&arguments, context),
            Self::Complete(arguments) => complete::run(arguments, context).await,
        }
    }
}
