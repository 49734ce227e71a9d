//! Writes agents as files. Secrets become `${VAR}`.

use haft_core::agent::{Agent, AgentDefinition, AgentModel};
use haft_core::redact::is_sensitive;
use haft_core::tool::Status;
use haft_definition::agent::write_yaml;
use haft_package::files::PackageFiles;
use serde_json::Value;

use super::export_references::add;
use super::model_url::hide_in_url;
use crate::error::ServiceError;

/// Writes the agents of a tenant to the folder `agents`.
pub(super) fn write_agents(agents: &[Agent], files: &mut PackageFiles) -> Result<(), ServiceError> {
    for agent in agents {
        add(files, "agents", agent.definition.slug.as_str(), &file_of(agent))?;
    }
    Ok(())
}

/// Returns the text of a file. What is not published says so, as that is the default.
fn file_of(agent: &Agent) -> String {
    let mut definition = AgentDefinition::clone(&agent.definition);
    hide_secrets(&mut definition);
    let mut text = write_yaml(&definition);
    if agent.status != Status::Published {
        text.push_str("status: ");
        text.push_str(agent.status.as_str());
        text.push('\n');
    }
    if !agent.enabled && agent.status != Status::Disabled {
        text.push_str("enabled: false\n");
    }
    text
}

/// Replaces secrets by references. Keys of models are credentials and only named, so what is left are passwords in
/// addresses and variables that are named like secrets.
pub(super) fn hide_secrets(definition: &mut AgentDefinition) {
    for model in std::iter::once(&mut definition.model).chain(&mut definition.fallback) {
        hide_in_model(model);
    }
    for (name, value) in &mut definition.variables {
        let is_reference = value.as_str().is_some_and(|text| text.starts_with("${"));
        if is_sensitive(name) && !value.is_null() && !is_reference {
            *value = Value::String(format!("${{{}}}", variable(name)));
        }
    }
}

fn hide_in_model(model: &mut AgentModel) {
    if let Some(hidden) = model.base_url.as_deref().and_then(hide_in_url) {
        model.base_url = Some(hidden);
    }
}

fn variable(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use haft_core::name::AgentSlug;
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_become_references() {
        let mut model = AgentModel::new("local/model");
        model.base_url = Some("https://me:hunter2@models.test/v1?api_key=abc&x=1".to_owned());
        let mut definition = AgentDefinition::new(AgentSlug::new("a").unwrap(), model);
        definition.variables.insert("api_token".to_owned(), json!("hunter3"));
        definition.variables.insert("city".to_owned(), json!("Berlin"));
        hide_secrets(&mut definition);
        let text = write_yaml(&definition);
        assert!(!text.contains("hunter") && !text.contains("abc"), "{text}");
        assert_eq!(
            definition.model.base_url.as_deref(),
            Some("https://me:${MODEL_SECRET}@models.test/v1?api_key=${MODEL_SECRET}&x=1")
        );
        assert_eq!(definition.variables["api_token"], "${API_TOKEN}");
        assert_eq!(definition.variables["city"], "Berlin");
    }
}
