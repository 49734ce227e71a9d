//! `haft whoami`: shows which server commands use, and what they may do there.

use haft_api::people::SessionActor;
use haft_api::token::SessionView;
use serde_json::{Value, json};

use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Runs the command.
pub(crate) async fn run(context: &Context) -> Result<(), CliError> {
    let target = context.target()?;
    let name = target.context().map(|stored| stored.name.to_string());
    let client = context.client().await?;
    let server = client.engine().is_none().then(|| client.location());
    let data = client.data(Request::get("/api/session")).await;
    client.close().await;
    let mut data = data?;
    if let Value::Object(fields) = &mut data {
        fields.insert("server".to_owned(), json!(server));
        fields.insert("context".to_owned(), json!(name));
    }
    let place = match (server, name) {
        (Some(server), Some(name)) => format!("{server} (context `{name}`)"),
        (Some(server), None) => server,
        (None, _) => format!("none; commands open the home folder `{}`", context.home()?.display()),
    };
    context.output.show(&data, |output, who: SessionView| {
        lines(who, place).into_iter().try_for_each(|(label, text)| output.line(&format!("{label}: {text}")))
    })
}

fn lines(who: SessionView, place: String) -> Vec<(&'static str, String)> {
    let mut lines = vec![("server", place), ("tenant", who.tenant)];
    match (who.actor, who.token_id) {
        (Some(actor), token) => {
            lines.extend(actor_lines(&who.name, actor));
            lines.extend(token.map(|id| ("token", id.to_string())));
        }
        (None, Some(id)) => lines.push(("token", format!("{} ({id})", who.name))),
        (None, None) => lines.push(("token", who.name)),
    }
    let role = if who.platform { "admin of the platform" } else { who.role.as_str() };
    let tools = match who.tools.as_deref() {
        None => "all".to_owned(),
        Some([]) => "none".to_owned(),
        Some(rules) => rules.join(", "),
    };
    lines.extend([
        ("role", role.to_owned()),
        ("tools", tools),
        (
            "rate limit",
            who.rate_limit.map_or_else(|| "none".to_owned(), |rate| format!("{}/{}", rate.calls, rate.per)),
        ),
        ("elevated", view::yes_no(who.elevated)),
        ("expires", who.expires_at.map_or_else(|| "never".to_owned(), view::moment)),
    ]);
    lines
}

/// Returns the lines about the person or the service account behind the token.
fn actor_lines(name: &str, actor: SessionActor) -> Vec<(&'static str, String)> {
    let mut lines = vec![(actor.kind.noun(), format!("{name} ({})", actor.id))];
    lines.extend(actor.email.map(|email| ("e-mail", email)));
    let groups = if actor.groups.is_empty() { "none".to_owned() } else { actor.groups.join(", ") };
    lines.push(("groups", groups));
    lines
}
