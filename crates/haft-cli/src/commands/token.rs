//! `haft token`: manages access tokens.

use clap::{Args, Subcommand, ValueEnum};
use haft_api::token::{CreatedToken, RateBody, SessionView, TokenList, TokenView};
use haft_core::id::ActorId;
use http::Method;
use serde_json::{Map, Value, json};

use super::actor;
use crate::client::{Body, Client, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// Manage access tokens
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a token; it is printed only once
    #[command(after_help = examples!(
        "haft token create ci --role caller --expires-in 90d",
        "haft token create agent --tools weather,web:*,tag:safe",
        "haft token create laptop --owner me --expires-in 90d"
    ))]
    Create(Create),
    /// List tokens
    #[command(visible_alias = "ls", after_help = examples!(
        "haft token list",
        "haft token list --owner ann@example.com",
        "haft token list --tenant acme"
    ))]
    List {
        /// Only tokens of this owner: `me`, or an e-mail address, name or id
        #[arg(long, value_name = "OWNER")]
        owner: Option<String>,
        /// Tenant, for platform admins [default: your own]
        #[arg(long, value_name = "ID")]
        tenant: Option<String>,
    },
    /// Show a token, without its value
    #[command(after_help = examples!("haft token show 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Show {
        /// Id of the token, from `haft token list`
        id: String,
    },
    /// Change the rate limit of a token, or give one without an owner to somebody
    #[command(after_help = examples!(
        "haft token update 019a8f50-b7b6-7a01-9a05-a22a6e0af101 --rate-limit 60/1m",
        "haft token update 019a8f50-b7b6-7a01-9a05-a22a6e0af101 --no-rate-limit",
        "haft token update 019a8f50-b7b6-7a01-9a05-a22a6e0af101 --owner nightly-report"
    ))]
    Update {
        /// Id of the token, from `haft token list`
        id: String,
        /// How many calls it may make per period, e.g. `60/1m`
        #[arg(long, value_name = "CALLS/PERIOD", required_unless_present_any = ["no_rate_limit", "owner"])]
        rate_limit: Option<RateLimit>,
        /// Remove the rate limit
        #[arg(long, conflicts_with = "rate_limit")]
        no_rate_limit: bool,
        /// To whom a token without an owner belongs from now on: `me`, or the name or id of a service account
        #[arg(long, value_name = "OWNER")]
        owner: Option<String>,
    },
    /// Replace the value of a token; the new one is printed only once
    #[command(after_help = examples!("haft token rotate 019a8f50-b7b6-7a01-9a05-a22a6e0af101 --grace 10m"))]
    Rotate {
        /// Id of the token, from `haft token list`
        id: String,
        /// How long the old value still works, e.g. `10m` [default: not at all]
        #[arg(long, value_name = "DURATION")]
        grace: Option<String>,
        /// New lifetime, e.g. `90d` [default: the expiry stays]
        #[arg(long, value_name = "DURATION")]
        expires_in: Option<String>,
    },
    /// Revoke a token
    #[command(visible_aliases = ["rm", "delete"], after_help = examples!("haft token revoke 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Revoke {
        /// Id of the token, from `haft token list`
        id: String,
    },
}

/// The role of a token.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    /// Read
    Viewer,
    /// Read and call tools
    Caller,
    /// Read, call and change tools
    Editor,
    /// Everything
    Admin,
}

impl Role {
    /// Returns the name in requests.
    pub(crate) fn name(self) -> Option<String> {
        self.to_possible_value().map(|value| value.get_name().to_owned())
    }
}

/// A number of calls per period: `60/1m`.
#[derive(Debug, Clone)]
pub(crate) struct RateLimit {
    calls: u32,
    per: String,
}

impl std::str::FromStr for RateLimit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "expected a number of calls and a period, e.g. `60/1m`";
        let (calls, per) = text.split_once('/').ok_or(expected)?;
        let calls = calls.trim().parse().map_err(|_| expected)?;
        Ok(Self { calls, per: per.trim().to_owned() })
    }
}

impl RateLimit {
    /// Returns the value in requests.
    pub(super) fn body(&self) -> Value {
        json!({"calls": self.calls, "per": self.per})
    }
}

/// Create a token; it is printed only once
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Name of the token
    name: String,
    /// To whom it belongs: `me`, or the name or id of a service account [default: nobody for admins, otherwise `me`]
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// Role [default: that of the owner; without an owner `caller`]
    #[arg(long)]
    role: Option<Role>,
    /// Tenant, for platform admins [default: your own]
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Tools that it may see and call: names, `bundle:*`, patterns, `tag:NAME` [default: every tool]
    #[arg(long, value_name = "RULES", value_delimiter = ',')]
    tools: Option<Vec<String>>,
    /// How many calls it may make per period, e.g. `60/1m` [default: no limit]
    #[arg(long, value_name = "CALLS/PERIOD")]
    rate_limit: Option<RateLimit>,
    /// Lifetime, e.g. `12h` or `90d` [default: no expiry]
    #[arg(long, alias = "expires", value_name = "DURATION")]
    expires_in: Option<String>,
    /// Run tools that need approval without it
    #[arg(long)]
    elevated: bool,
    /// Administer tenants; needs the role `admin` in the tenant `default`
    #[arg(long)]
    platform: bool,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::Create(create) => self::create(create, context).await,
        Command::List { owner, tenant } => list(owner.as_deref(), tenant.as_deref(), context).await,
        Command::Show { id } => show(&id, context).await,
        Command::Update { id, rate_limit, no_rate_limit, owner } => {
            let rate = rate_limit.map(|rate| rate.body()).or(no_rate_limit.then_some(Value::Null));
            update(&id, body([("rate_limit", rate), ("owner", owner.map(Value::from))]), context).await
        }
        Command::Rotate { id, grace, expires_in } => rotate(&id, grace, expires_in, context).await,
        Command::Revoke { id } => revoke(&id, context).await,
    }
}

async fn create(create: Create, context: &Context) -> Result<(), CliError> {
    let Create { name, owner, role, tenant, tools, rate_limit, expires_in, elevated, platform } = create;
    let fields = [
        ("name", Some(json!(name))),
        ("owner", owner.map(Value::from)),
        ("role", role.and_then(Role::name).map(Value::from)),
        ("tenant", tenant.map(Value::from)),
        ("tools", tools.map(Value::from)),
        ("rate_limit", rate_limit.map(|rate| rate.body())),
        ("expires_in", expires_in.map(Value::from)),
        ("elevated", elevated.then_some(json!(true))),
        ("platform", platform.then_some(json!(true))),
    ];
    let data = context.request(Request::post("/api/tokens", body(fields))).await?;
    show_value(&data, context)
}

async fn update(id: &str, body: Value, context: &Context) -> Result<(), CliError> {
    let path = format!("/api/tokens/{}", segment(id));
    let data = context.request(Request::new(Method::PATCH, path).with_body(Body::Json(body))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("changed token `{id}`"));
        Ok(())
    })
}

async fn rotate(
    id: &str,
    grace: Option<String>,
    expires_in: Option<String>,
    context: &Context,
) -> Result<(), CliError> {
    let fields = [("grace", grace.map(Value::from)), ("expires_in", expires_in.map(Value::from))];
    let path = format!("/api/tokens/{}/rotate", segment(id));
    let data = context.request(Request::post(path, body(fields))).await?;
    show_value(&data, context)
}

/// Returns the fields that have a value.
fn body<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect::<Map<_, _>>())
}

fn show_value(data: &Value, context: &Context) -> Result<(), CliError> {
    context.output.show(data, |output, created: CreatedToken| {
        created.warnings.iter().for_each(|warning| output.warn(warning));
        output.note("store the token now: it is not shown again");
        output.line(&created.token)
    })
}

async fn list(owner: Option<&str>, tenant: Option<&str>, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let data = find(owner, tenant, &client).await;
    client.close().await;
    context.output.show(&data?, |output, list: TokenList| {
        let rows = list.tokens.iter().map(|token| {
            vec![
                token.id.to_string(),
                token.name.clone(),
                owner_name(token),
                role_name(token).to_owned(),
                view::yes_no(token.elevated),
                view::allow_list(token.tools.as_deref()),
                rate_text(token.rate_limit.as_ref()),
                view::moment(token.last_used_at),
                view::moment(token.expires_at),
                token.tenant.clone(),
                view::moment(token.created_at),
                view::optional(token.parent_id.as_ref()),
            ]
        });
        let columns =
            ["ID", "NAME", "OWNER", "ROLE", "ELEVATED", "TOOLS", "RATE LIMIT", "LAST USED", "EXPIRES"];
        output.list(&columns, &["TENANT", "CREATED", "PARENT"], rows.collect())
    })
}

async fn find(owner: Option<&str>, tenant: Option<&str>, client: &Client) -> Result<Value, CliError> {
    let owner = match owner {
        Some(owner) => Some(owner_id(owner, tenant, client).await?),
        None => None,
    };
    let request = Request::get("/api/tokens?page_size=500")
        .query_some("actor", owner.as_deref())
        .query_some("tenant", tenant);
    client.data(request).await
}

/// Returns the id of an owner.
async fn owner_id(owner: &str, tenant: Option<&str>, client: &Client) -> Result<String, CliError> {
    if owner == "me" {
        let who: SessionView = view::read(&client.data(Request::get("/api/session")).await?)?;
        let me = who
            .actor
            .ok_or_else(|| CliError::usage("`--owner me`: the token of this command has no owner"))?;
        return Ok(me.id.to_string());
    }
    if owner.parse::<ActorId>().is_ok() {
        return Ok(owner.to_owned());
    }
    Ok(actor::find(owner, tenant, client).await?.id.to_string())
}

async fn show(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(format!("/api/tokens/{}", segment(id)))).await?;
    context.output.show(&data, |output, token: TokenView| print(output, &token))
}

fn print(output: &Output, token: &TokenView) -> Result<(), CliError> {
    output.fields(&[
        ("token", format!("{} ({})", token.name, token.id)),
        ("owner", owner_name(token)),
        ("tenant", token.tenant.clone()),
        ("role", role_name(token).to_owned()),
        ("elevated", view::yes_no(token.elevated)),
        ("tools", view::allow_list(token.tools.as_deref())),
        ("rate limit", rate_text(token.rate_limit.as_ref())),
        ("created", view::moment(token.created_at)),
        ("last used", token.last_used_at.map_or_else(|| "never".to_owned(), view::moment)),
        ("expires", token.expires_at.map_or_else(|| "never".to_owned(), view::moment)),
        ("old value until", view::moment(token.previous_expires_at)),
        ("parent", view::optional(token.parent_id.as_ref())),
    ])
}

fn owner_name(token: &TokenView) -> String {
    token.actor.as_ref().map(|actor| actor.name.clone()).unwrap_or_default()
}

fn role_name(token: &TokenView) -> &'static str {
    if token.platform { "platform admin" } else { token.role.as_str() }
}

/// Returns a rate as it is printed.
pub(super) fn rate_text(rate: Option<&RateBody>) -> String {
    rate.map_or_else(|| "none".to_owned(), |rate| format!("{}/{}", rate.calls, rate.per))
}

async fn revoke(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::delete(format!("/api/tokens/{}", segment(id)))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("revoked token `{id}`"));
        Ok(())
    })
}
