//! The form on which a person decides what an application gets: who asks, where the answer goes, and which tools.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use haft_core::token::{Role, TokenRecord};
use haft_oauth::redirect_uri::RedirectUri;

use crate::html_page::escape;
use crate::page_text::{Texts, fill};
use haft_platform::Installation;
use haft_platform::applications::{AuthorizationRequest, Origin};
use haft_platform::identity::Identity;
use haft_platform::viewer::Viewer;

/// The path of the page.
pub(super) const PATH: &str = "/oauth/authorize";

/// The most names of tools that are shown of a bundle.
const MAX_NAMES: usize = 100;
/// Returns the form. `earlier` is what the person has allowed the application before.
pub(super) fn render(
    app: &Arc<Installation>,
    identity: &Identity,
    (texts, request): (&Texts, &AuthorizationRequest),
    (query, token, earlier): (&str, &str, Option<&TokenRecord>),
) -> String {
    let client = &request.client;
    let name = escape(&client.name);
    let bundles = bundles(app, identity);
    let destination = escape(&destination(texts, &request.redirect_uri));
    let rows = [
        (texts.application, format!("{name}{}", unverified(texts, &client.origin))),
        (texts.described_by, described_by(texts, &client.origin)),
        (texts.answer_goes_to, format!("<strong>{destination}</strong>")),
        (texts.you, escape(&identity.name)),
        (texts.tenant, escape(identity.tenant.as_str())),
    ];
    let rows: String = rows.iter().fold(String::new(), |mut rows, (title, text)| {
        let _ = write!(rows, "<dt>{title}</dt><dd>{text}</dd>");
        rows
    });
    let known = match earlier {
        Some(_) => format!("<p class=\"hint\">{}</p>", texts.connected_before),
        None => String::new(),
    };
    let Texts { consent_hint, allow, deny, .. } = texts;
    format!(
        r#"<p>{}</p>
      <dl>{rows}</dl>
      {known}
      <form method="post" action="{PATH}">
        <input type="hidden" name="request" value="{}">
        <input type="hidden" name="form_token" value="{}">
        {}
        {}
        {}
        <p class="hint">{consent_hint}</p>
        <div class="buttons">
          <button type="submit" name="decision" value="allow">{allow}</button>
          <button type="submit" name="decision" value="deny" class="secondary">{deny}</button>
        </div>
      </form>"#,
        fill(texts.consent_lead, &[("name", name.as_str())]),
        escape(query),
        escape(token),
        roles(texts, identity, request),
        tools(texts, &bundles, earlier),
        expiry(texts, earlier),
    )
}

/// Returns where the answer goes, for people.
pub(super) fn destination(texts: &Texts, uri: &RedirectUri) -> String {
    let scheme = uri.as_str().split(':').next().unwrap_or_default();
    match (uri.host(), scheme) {
        (Some(host), _) => host.to_owned(),
        (None, "http" | "https") => texts.local_program.to_owned(),
        (None, scheme) => fill(texts.local_program_of_scheme, &[("scheme", scheme)]),
    }
}

fn unverified(texts: &Texts, origin: &Origin) -> String {
    match origin {
        Origin::Registered => format!(" <em class=\"mark\">{}</em>", texts.not_verified),
        Origin::Document(_) | Origin::Created(_) => String::new(),
    }
}

fn described_by(texts: &Texts, origin: &Origin) -> String {
    match origin {
        Origin::Document(host) => format!("<strong>{}</strong>", escape(host)),
        Origin::Registered => texts.described_by_itself.to_owned(),
        Origin::Created(_) => texts.described_by_admin.to_owned(),
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

fn roles(texts: &Texts, identity: &Identity, request: &AuthorizationRequest) -> String {
    let highest = request.role.min(identity.role);
    let mut options = String::new();
    for role in Role::ALL.into_iter().filter(|role| *role <= highest) {
        let checked = if role == highest { " checked" } else { "" };
        let _ = write!(
            options,
            "<label class=\"choice\"><input type=\"radio\" name=\"role\" value=\"{}\"{checked}> {}</label>",
            role.as_str(),
            (texts.of_choice)(role)
        );
    }
    let less = if request.role > identity.role {
        format!("<p class=\"hint\">{}</p>", texts.asked_for_more)
    } else {
        String::new()
    };
    format!("<fieldset><legend>{}</legend>{options}{less}</fieldset>", texts.it_may)
}

fn tools(texts: &Texts, bundles: &BTreeMap<String, Vec<String>>, earlier: Option<&TokenRecord>) -> String {
    let rules = earlier.and_then(|token| token.tools.rules());
    let (all, some) = if rules.is_some() { ("", " checked") } else { (" checked", "") };
    let open = if rules.is_some() { " open" } else { "" };
    let rules = rules.unwrap_or_default();
    let is_bundle = |rule: &String| rule.strip_suffix(":*").is_some_and(|slug| bundles.contains_key(slug));
    let boxes: String = bundles
        .iter()
        .map(|(bundle, names)| {
            bundle_box(texts, (bundle.as_str(), names.as_slice()), rules.contains(&format!("{bundle}:*")))
        })
        .collect();
    let patterns: Vec<String> = rules.into_iter().filter(|rule| !is_bundle(rule)).collect();
    let count = bundles.values().map(Vec::len).sum::<usize>().to_string();
    let choose = match bundles.len() {
        1 => fill(texts.choose_from_one_bundle, &[("count", count.as_str())]),
        bundles => fill(
            texts.choose_from_bundles,
            &[("count", count.as_str()), ("bundles", bundles.to_string().as_str())],
        ),
    };
    let all_tools = fill(texts.all_tools, &[("count", count.as_str())]);
    let Texts { tools, only_these, patterns: patterns_label, .. } = texts;
    format!(
        r#"<fieldset><legend>{tools}</legend>
          <label class="choice"><input type="radio" name="tools" value="all"{all}> {all_tools}</label>
          <label class="choice"><input type="radio" name="tools" value="some"{some}> {only_these}</label>
          <details class="tools"{open}><summary>{choose}</summary>
          {boxes}
          <label for="patterns">{patterns_label}</label>
          <input id="patterns" name="patterns" autocomplete="off" spellcheck="false" value="{}">
          </details></fieldset>"#,
        escape(&patterns.join(", ")),
    )
}

fn bundle_box(texts: &Texts, (bundle, names): (&str, &[String]), is_chosen: bool) -> String {
    let checked = if is_chosen { " checked" } else { "" };
    let shown: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = match more {
        0 => String::new(),
        more => format!(" {}", fill(texts.and_more, &[("count", more.to_string().as_str())])),
    };
    format!(
        "<div class=\"bundle\"><label class=\"choice\"><input type=\"checkbox\" name=\"bundle\" value=\"{slug}\"{checked}> \
         {slug} <span class=\"hint\">({})</span></label><details><summary>{}</summary><p class=\"names\">{}{more}</p>\
         </details></div>",
        names.len(),
        texts.names,
        escape(&shown.join(", ")),
        slug = escape(bundle),
    )
}

fn expiry(texts: &Texts, earlier: Option<&TokenRecord>) -> String {
    let choices = [
        ("never", texts.until_disconnected),
        ("365", texts.one_year),
        ("90", texts.ninety_days),
        ("30", texts.thirty_days),
        ("1", texts.one_day),
    ];
    // The length that the person chose before.
    let days = earlier.and_then(|token| {
        let seconds = token.expires_at?.as_second() - token.created_at.as_second();
        Some((seconds / 86_400).to_string())
    });
    let selected = days.as_deref().unwrap_or("never");
    let mut options = String::new();
    for (value, label) in choices {
        let chosen = if value == selected { " selected" } else { "" };
        let _ = write!(options, "<option value=\"{value}\"{chosen}>{label}</option>");
    }
    format!(
        "<label for=\"expires\">{}</label>\n        <select id=\"expires\" name=\"expires\">{options}</select>",
        texts.stays_connected
    )
}
