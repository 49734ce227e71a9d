//! The form on which a person decides what an application gets: who asks, where the answer goes, and which tools.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use haft_core::token::{Role, TokenRecord};

use crate::html_page::escape;
use haft_platform::Installation;
use haft_platform::applications::{AuthorizationRequest, Origin};
use haft_platform::identity::Identity;
use haft_platform::viewer::Viewer;

/// The path of the page.
pub(super) const PATH: &str = "/oauth/authorize";

/// The most names of tools that are shown of a bundle.
const MAX_NAMES: usize = 100;
/// How long an application can stay connected, in days.
const EXPIRIES: [(&str, &str); 5] = [
    ("never", "Until I disconnect it"),
    ("365", "One year"),
    ("90", "90 days"),
    ("30", "30 days"),
    ("1", "One day"),
];

/// Returns the form. `earlier` is what the person has allowed the application before.
pub(super) fn render(
    app: &Arc<Installation>,
    identity: &Identity,
    request: &AuthorizationRequest,
    (query, token, earlier): (&str, &str, Option<&TokenRecord>),
) -> String {
    let client = &request.client;
    let name = escape(&client.name);
    let bundles = bundles(app, identity);
    let count: usize = bundles.values().map(Vec::len).sum();
    let rows = [
        ("Application", format!("{name}{}", unverified(&client.origin))),
        ("Described by", described_by(&client.origin)),
        ("Answer goes to", format!("<strong>{}</strong>", escape(&request.redirect_uri.destination()))),
        ("You", escape(&identity.name)),
        ("Tenant", escape(identity.tenant.as_str())),
    ];
    let rows: String = rows.iter().fold(String::new(), |mut rows, (title, text)| {
        let _ = write!(rows, "<dt>{title}</dt><dd>{text}</dd>");
        rows
    });
    let known = if earlier.is_some() {
        "<p class=\"hint\">You have connected this application before; your earlier choice is selected.</p>"
    } else {
        ""
    };
    format!(
        r#"<p><strong>{name}</strong> wants to use haft in your name.</p>
      <dl>{rows}</dl>
      {known}
      <form method="post" action="{PATH}">
        <input type="hidden" name="request" value="{}">
        <input type="hidden" name="form_token" value="{}">
        {}
        {}
        {}
        <p class="hint">Allow only if you have just started this in the application yourself.</p>
        <div class="buttons">
          <button type="submit" name="decision" value="allow">Allow</button>
          <button type="submit" name="decision" value="deny" class="secondary">Deny</button>
        </div>
      </form>"#,
        escape(query),
        escape(token),
        roles(identity, request),
        tools(&bundles, count, earlier),
        expiry(earlier),
    )
}

fn unverified(origin: &Origin) -> &'static str {
    match origin {
        Origin::Registered => " <em class=\"mark\">name not verified</em>",
        Origin::Document(_) | Origin::Created(_) => "",
    }
}

fn described_by(origin: &Origin) -> String {
    match origin {
        Origin::Document(host) => format!("<strong>{}</strong>", escape(host)),
        Origin::Registered => "itself; anybody can choose this name".to_owned(),
        Origin::Created(_) => "an admin of your tenant".to_owned(),
    }
}

/// Returns the names of the tools that the person may use, by bundle.
fn bundles(app: &Arc<Installation>, identity: &Identity) -> BTreeMap<String, Vec<String>> {
    let viewer = Viewer::new(app, identity);
    let snapshot = app.registry().snapshot();
    let mut bundles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in snapshot.tools(&identity.tenant).filter(|entry| viewer.may_use(entry)) {
        let names = bundles.entry(entry.tool.bundle.to_string()).or_default();
        names.push(entry.tool.spec.name.to_string());
    }
    bundles
}

fn roles(identity: &Identity, request: &AuthorizationRequest) -> String {
    let highest = request.role.min(identity.role);
    let mut options = String::new();
    for role in Role::ALL.into_iter().filter(|role| *role <= highest) {
        let label = match role {
            Role::Viewer => "Read what I may see",
            Role::Caller => "Read, and call tools",
            Role::Editor => "Read, call tools, and change tools and agents",
            Role::Admin => "Everything, including people and credentials",
        };
        let checked = if role == highest { " checked" } else { "" };
        let _ = write!(
            options,
            "<label class=\"choice\"><input type=\"radio\" name=\"role\" value=\"{}\"{checked}> {label}</label>",
            role.as_str()
        );
    }
    let less = if request.role > identity.role {
        "<p class=\"hint\">It asked for more than you may do yourself.</p>"
    } else {
        ""
    };
    format!("<fieldset><legend>It may</legend>{options}{less}</fieldset>")
}

fn tools(bundles: &BTreeMap<String, Vec<String>>, count: usize, earlier: Option<&TokenRecord>) -> String {
    let rules = earlier.and_then(|token| token.tools.rules());
    let (all, some) = if rules.is_some() { ("", " checked") } else { (" checked", "") };
    let open = if rules.is_some() { " open" } else { "" };
    let rules = rules.unwrap_or_default();
    let is_bundle = |rule: &String| rule.strip_suffix(":*").is_some_and(|slug| bundles.contains_key(slug));
    let mut boxes = String::new();
    for (bundle, names) in bundles {
        let checked = if rules.contains(&format!("{bundle}:*")) { " checked" } else { "" };
        let shown: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
        let more = names.len().saturating_sub(MAX_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = write!(
            boxes,
            "<div class=\"bundle\"><label class=\"choice\"><input type=\"checkbox\" name=\"bundle\" value=\"{slug}\"{checked}> \
             {slug} <span class=\"hint\">({})</span></label><details><summary>Names</summary><p class=\"names\">{}{more}</p>\
             </details></div>",
            names.len(),
            escape(&shown.join(", ")),
            slug = escape(bundle),
        );
    }
    let patterns: Vec<String> = rules.into_iter().filter(|rule| !is_bundle(rule)).collect();
    format!(
        r#"<fieldset><legend>Tools</legend>
          <label class="choice"><input type="radio" name="tools" value="all"{all}> All that I may use, now {count}</label>
          <label class="choice"><input type="radio" name="tools" value="some"{some}> Only these:</label>
          <details class="tools"{open}><summary>Choose from {count} tools in {}</summary>
          {boxes}
          <label for="patterns">Names and patterns, such as <code>weather</code>, <code>web:*</code>, <code>tag:safe</code></label>
          <input id="patterns" name="patterns" autocomplete="off" spellcheck="false" value="{}">
          </details></fieldset>"#,
        if bundles.len() == 1 { "1 bundle".to_owned() } else { format!("{} bundles", bundles.len()) },
        escape(&patterns.join(", ")),
    )
}

fn expiry(earlier: Option<&TokenRecord>) -> String {
    // The nearest length that the person chose before.
    let days = earlier.and_then(|token| {
        let seconds = token.expires_at?.as_second() - token.created_at.as_second();
        Some((seconds / 86_400).to_string())
    });
    let selected = days.as_deref().unwrap_or("never");
    let mut options = String::new();
    for (value, label) in EXPIRIES {
        let chosen = if value == selected { " selected" } else { "" };
        let _ = write!(options, "<option value=\"{value}\"{chosen}>{label}</option>");
    }
    format!(
        "<label for=\"expires\">It stays connected</label>\n        <select id=\"expires\" name=\"expires\">{options}</select>"
    )
}
