//! Which tools, MCP servers and pipelines refer to a credential.

use std::collections::{BTreeMap, BTreeSet};

use haft_core::catalog::StoreError;
use haft_core::implementation::Implementation;
use haft_core::name::TenantId;
use haft_core::secret::ExternalReference;
use haft_core::spec::ToolSpec;
use haft_runtime::registry::Entry;
use haft_store::{ListPage, ResourceQuery};
use serde_json::Value;

use crate::context::Context;

/// The names of the credentials that are referred to, and by what.
pub struct CredentialReferences(BTreeMap<String, BTreeSet<String>>);

impl CredentialReferences {
    /// Collects the references of all tools, MCP servers and pipelines of a tenant, in one pass.
    pub async fn collect(app: &Context, tenant: &TenantId) -> Result<Self, StoreError> {
        let mut references = Self(BTreeMap::new());
        let snapshot = app.registry().snapshot();
        for entry in snapshot.tools(tenant).filter(|entry| entry.tool.tenant == *tenant) {
            references.add(names_of(entry), &entry.qualified);
        }
        for server in app.store().catalog().mcp_servers_of(tenant, &ListPage::ALL).await? {
            let text = serde_json::to_string(&server).unwrap_or_default();
            references.add(template_names(&text), &format!("MCP server {}", server.id));
        }
        let all = ResourceQuery { limit: i32::MAX.unsigned_abs(), ..ResourceQuery::default() };
        for pipeline in app.store().pipelines().list(tenant, &all).await?.0 {
            let definitions = [&pipeline.definition, pipeline.serving()];
            let models = definitions.iter().filter_map(|definition| definition.embedding.as_ref());
            let credentials = models.filter_map(|model| model.credential.clone()).collect();
            references.add(credentials, &format!("pipeline {}", pipeline.definition.slug));
        }
        Ok(references)
    }

    fn add(&mut self, names: BTreeSet<String>, user: &str) {
        for name in names {
            self.0.entry(name).or_default().insert(user.to_owned());
        }
    }

    /// Returns what refers to a credential, as `${NAME}`, `${NAME.field}` or `credentials_ref`.
    pub fn of(&self, name: &str) -> Vec<String> {
        let is_reference = |reference: &str| {
            reference.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let users = self.0.range(name.to_owned()..).take_while(|(reference, _)| reference.starts_with(name));
        let users = users.filter(|(reference, _)| is_reference(reference)).flat_map(|(_, users)| users);
        users.collect::<BTreeSet<_>>().into_iter().cloned().collect()
    }
}

/// Returns the names in the newest and in the published definition.
fn names_of(entry: &Entry) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = entry.secrets().iter().map(ToString::to_string).collect();
    let published = entry.tool.published.as_ref().map(|(_, spec)| spec);
    for spec in published.into_iter().chain([&entry.tool.spec]) {
        names.extend(template_names(&serde_json::to_string(&spec.implementation).unwrap_or_default()));
        names.extend(named_credential(spec));
    }
    names
}

/// Returns the credential that the configuration of a function names.
fn named_credential(spec: &ToolSpec) -> Option<String> {
    let Implementation::Function(function) = &spec.implementation else { return None };
    let config = serde_json::to_value(function).ok()?;
    config.get("config")?.get("credentials_ref").and_then(Value::as_str).map(str::to_owned)
}

/// Returns the names in `${…}`, without filters.
fn template_names(text: &str) -> BTreeSet<String> {
    let parts = text.split("${").skip(1);
    // Secrets outside of haft are no credentials.
    let is_external = |part: &str| ExternalReference::parse(part.split('}').next().unwrap_or(part)).is_some();
    let names = parts.filter(|part| !is_external(part)).filter_map(|part| {
        let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')))?;
        part.get(..end).filter(|name| !name.is_empty()).map(str::to_owned)
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_templates() {
        let names = template_names(
            r#"{"url":"https://x/${city}?k=${API-KEY}&v=${vault:a/b#c}","auth":"${github.token}","x":"${"}"#,
        );
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["API-KEY", "city", "github.token"]);
    }

    #[test]
    fn a_reference_names_the_credential_or_one_of_its_fields() {
        let mut references = CredentialReferences(BTreeMap::new());
        let names = |text: &str| text.split(' ').map(str::to_owned).collect();
        references.add(names("github github.token"), "a");
        references.add(names("github2"), "b");
        references.add(names("github.user"), "c");
        assert_eq!(references.of("github"), ["a", "c"]);
        assert_eq!(references.of("github2"), ["b"]);
        assert!(references.of("git").is_empty());
    }
}
