//! `haft whoami`: shows which server commands use, and what they may do there.

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

fn lines(who: SessionView, place: String) -> [(&'static str, String); 8] {
    let token = match who.token_id {
        Some(id) => format!("{} ({id})", who.name),
        None => who.name,
    };
    let role = if who.platform { "admin of the platform" } else { who.role.as_str() };
    let tools = match who.tools.as_deref() {
        None => "all".to_owned(),
        Some([]) => "none".to_owned(),
        Some(rules) => rules.join(", "),
    };
    [
        ("server", place),
        ("tenant", who.tenant),
        ("token", token),
        ("role", role.to_owned()),
        ("tools", tools),
        (
            "rate limit",
            who.rate_limit.map_or_else(|| "none".to_owned(), |rate| format!("{}/{}", rate.calls, rate.per)),
        ),
        ("elevated", view::yes_no(who.elevated)),
        ("expires", who.expires_at.map_or_else(|| "never".to_owned(), view::moment)),
    ]
}
