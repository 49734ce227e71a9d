//! The requests of an `http` tool as text, for the person who approves a call.

use haft_core::secret::MASK;
use haft_template::Values;
use serde_json::{Map, Value};

use super::auth::AuthPlan;
use super::multipart::FileSource;
use super::plan::{Plan, Step};
use crate::egress::OutgoingRequest;
use crate::preview;

/// Returns the requests of a call. A step that uses the response of an earlier one is shown without its values.
pub(super) fn requests(plan: &Plan, args: &Map<String, Value>) -> Option<String> {
    let secrets = preview::masked(plan.secrets.iter().map(String::as_str));
    let values = Values { args, steps: &Map::new(), secrets: &secrets, version: &plan.version };
    let mut texts = Vec::with_capacity(plan.steps.len());
    for (index, step) in plan.steps.iter().enumerate() {
        match step.build(&values, FileSource::Preview) {
            Ok(outgoing) => texts.push(request(&outgoing, plan.auth.as_ref())),
            Err(_) if index > 0 => texts.push(later(step)),
            Err(_) => return None,
        }
    }
    Some(texts.join("\n\n"))
}

fn later(step: &Step) -> String {
    format!("{} … (step `{}` uses the response of an earlier step)", step.method, step.name)
}

fn request(outgoing: &OutgoingRequest, auth: Option<&AuthPlan>) -> String {
    let mut text = format!("{} {}\n", outgoing.method, outgoing.url);
    for (name, value) in &outgoing.headers {
        text.extend([name.as_str(), ": ", value.to_str().unwrap_or(MASK), "\n"]);
    }
    let credential = match auth {
        None => String::new(),
        Some(AuthPlan::Query(name, _)) => format!("(query parameter {name}: {MASK})\n"),
        Some(AuthPlan::Header(name, _)) => format!("{name}: {MASK}\n"),
        Some(AuthPlan::Hmac(signature)) => format!("{}: {MASK}\n", signature.header),
        Some(AuthPlan::Bearer(_) | AuthPlan::Basic { .. } | AuthPlan::OAuth2(_)) => {
            format!("authorization: {MASK}\n")
        }
    };
    text.push_str(&credential);
    if let Some(body) = &outgoing.body {
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(body));
    }
    // In a URL or a form, the mask is percent-encoded.
    text.replace("%2A%2A%2A", MASK)
}
