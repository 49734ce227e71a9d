//! Agent Skills: which of them a client sees, as prompts (`prompts/list`, `prompts/get`) and by the methods of the
//! skills extension (`skills/list`, `skills/get`). Their files are resources.
//!
//! A skill is visible to the clients that see the tool with its instructions.

use std::collections::HashSet;
use std::sync::Arc;

use haft_core::encode::{percent_decode, percent_encode_into};
use haft_core::name::BundleSlug;
use haft_core::problem::excerpt;
use haft_core::toolset::skill_package;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage, Role,
};
use serde_json::{Value, json};

use super::client_context::ClientContext;
use super::handler::McpServer;
use super::packages::{Skill, SkillFile, protocol_error};
use super::paging;

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// The file with the instructions.
pub(super) const SKILL_FILE: &str = "SKILL.md";

/// The scheme of the addresses of files.
const SCHEME: &str = "skill://";
/// The longest name of a bundle in an address.
const MAX_ENCODED_NAME: usize = 1024;
/// The limits that the extension sets: hosts may reject larger skills.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 16 << 20;
/// How long a client may use a listed skill before it asks again, in milliseconds.
const TTL_MS: u64 = 0;
/// The argument of prompts.
const TASK: &str = "task";
/// How many files a prompt names.
const MAX_NAMED_FILES: usize = 100;

/// A skill that a client sees.
pub(super) struct OfferedSkill {
    pub(super) bundle: BundleSlug,
    pub(super) package: String,
    pub(super) skill: Arc<Skill>,
}

impl OfferedSkill {
    /// Returns the address of a file: below the name of the bundle, and of the skill where it has another one.
    pub(super) fn uri(&self, path: &str) -> String {
        let mut uri = String::from(SCHEME);
        percent_encode_into(self.bundle.as_str(), &mut uri);
        if self.skill.name != self.bundle.as_str() {
            uri.push('/');
            percent_encode_into(&self.skill.name, &mut uri);
        }
        for segment in path.split('/') {
            uri.push('/');
            percent_encode_into(segment, &mut uri);
        }
        uri
    }

    /// Returns the files that are served.
    pub(super) fn files(&self) -> impl Iterator<Item = &SkillFile> {
        self.skill.files.iter().take(MAX_FILES)
    }

    /// Returns whether every host accepts the skill.
    fn is_within_limits(&self) -> bool {
        let bytes: u64 = self.skill.files.iter().map(|file| file.size).sum();
        self.skill.files.len() <= MAX_FILES && bytes <= MAX_BYTES
    }

    fn prompt(&self) -> Prompt {
        let task =
            PromptArgument::new(TASK).with_description("What to do with the skill").with_required(false);
        let description = Some(excerpt(&self.skill.description, 2000));
        Prompt::new(self.bundle.as_str(), description, Some(vec![task]))
            .with_title(excerpt(&self.skill.name, 64))
    }

    /// Writes the entry of the extension.
    fn entry(&self) -> Value {
        let resource = |file: &SkillFile| json!({"uri": self.uri(&file.path), "digest": format!("sha256:{}", file.sha256), "size": file.size});
        let resources: Vec<Value> = self.skill.files.iter().map(resource).collect();
        json!({"uri": self.uri(SKILL_FILE), "frontmatter": self.skill.front_matter, "resources": resources})
    }

    /// Writes the text of the prompt: the instructions, and where the files are that they mention.
    fn text(&self) -> String {
        let mut text = self.skill.instructions.clone();
        let others: Vec<String> = self
            .files()
            .filter(|file| file.path != SKILL_FILE)
            .take(MAX_NAMED_FILES)
            .map(|file| format!("- {}", self.uri(&file.path)))
            .collect();
        if !others.is_empty() {
            text.push_str("\n\nThe files of this skill are resources:\n\n");
            text.push_str(&others.join("\n"));
        }
        text
    }
}

impl McpServer {
    /// Returns the skills that a client sees, in the order of its tools.
    pub(super) async fn offered_skills(
        &self,
        client: &ClientContext,
    ) -> Result<Vec<OfferedSkill>, ErrorData> {
        let mut skills = Vec::new();
        for (bundle, package) in self.skill_packages(client) {
            skills.extend(self.load_skill(client, bundle, package).await?);
        }
        Ok(skills)
    }

    /// Returns the skill of a bundle, if the client sees it.
    pub(super) async fn offered_skill(
        &self,
        client: &ClientContext,
        name: &str,
    ) -> Result<Option<OfferedSkill>, ErrorData> {
        let found = self.skill_packages(client).into_iter().find(|(bundle, _)| bundle.as_str() == name);
        match found {
            Some((bundle, package)) => self.load_skill(client, bundle, package).await,
            None => Ok(None),
        }
    }

    async fn load_skill(
        &self,
        client: &ClientContext,
        bundle: BundleSlug,
        package: String,
    ) -> Result<Option<OfferedSkill>, ErrorData> {
        let Some(source) = self.shared.settings.packages.as_ref() else { return Ok(None) };
        let skill = source.skill(client.tenant(), &package).await;
        let skill = skill.map_err(|error| protocol_error(&error))?;
        Ok(skill.map(|skill| OfferedSkill { bundle, package, skill }))
    }

    /// Returns the bundles with a visible skill, and their packages.
    fn skill_packages(&self, client: &ClientContext) -> Vec<(BundleSlug, String)> {
        let snapshot = self.shared.registry.snapshot();
        let mut bundles = HashSet::new();
        let offers = client.offers(&snapshot);
        offers
            .iter()
            // What needs approval is only available through a call.
            .filter(|offer| !offer.spec.needs_approval())
            .filter_map(|offer| {
                Some((offer.entry.tool.bundle.clone(), skill_package(&offer.spec)?.to_owned()))
            })
            .filter(|(bundle, _)| bundles.insert(bundle.clone()))
            .collect()
    }

    /// Lists the skills as prompts.
    pub(super) async fn skill_prompts(
        &self,
        client: &ClientContext,
        cursor: Option<&str>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let skills = self.offered_skills(client).await?;
        let (prompts, next_cursor) = paging::page(&skills, cursor, OfferedSkill::prompt)?;
        Ok(ListPromptsResult { next_cursor, ..ListPromptsResult::with_all_items(prompts) })
    }

    /// Returns the instructions of a skill as a prompt.
    pub(super) async fn skill_prompt(
        &self,
        client: &ClientContext,
        request: &GetPromptRequestParams,
    ) -> Result<GetPromptResult, ErrorData> {
        let found = self.offered_skill(client, &request.name).await?;
        let offered = found.ok_or_else(|| {
            let message = format!("prompt `{}` not found", excerpt(&request.name, 64));
            ErrorData::invalid_params(message, None)
        })?;
        let mut messages = vec![PromptMessage::new_text(Role::User, offered.text())];
        match request.arguments.as_ref().and_then(|arguments| arguments.get(TASK)) {
            Some(Value::String(task)) if !task.trim().is_empty() => {
                messages.push(PromptMessage::new_text(Role::User, task.clone()));
            }
            None | Some(Value::Null | Value::String(_)) => {}
            Some(_) => {
                return Err(ErrorData::invalid_params(format!("argument `{TASK}` must be a string"), None));
            }
        }
        Ok(GetPromptResult::new(messages).with_description(excerpt(&offered.skill.description, 2000)))
    }

    /// Handles `skills/list`.
    pub(super) async fn list_skills(
        &self,
        client: &ClientContext,
        params: Option<&Value>,
    ) -> Result<Value, ErrorData> {
        let cursor = params.and_then(|params| params.get("cursor")).and_then(Value::as_str);
        let mut skills = self.offered_skills(client).await?;
        skills.retain(OfferedSkill::is_within_limits);
        let (entries, next_cursor) = paging::page(&skills, cursor, OfferedSkill::entry)?;
        let mut result = complete(json!({"skills": entries}));
        if let (Some(map), Some(cursor)) = (result.as_object_mut(), next_cursor) {
            map.insert("nextCursor".to_owned(), cursor.into());
        }
        Ok(result)
    }

    /// Handles `skills/get`.
    pub(super) async fn get_skill(
        &self,
        client: &ClientContext,
        params: Option<&Value>,
    ) -> Result<Value, ErrorData> {
        let uri = params.and_then(|params| params.get("uri")).and_then(Value::as_str);
        let uri = uri.ok_or_else(|| {
            ErrorData::invalid_params("`params.uri` must be a string: the URI of a `SKILL.md`", None)
        })?;
        let found = match bundle_of(uri) {
            Some(bundle) => self.offered_skill(client, &bundle).await?,
            None => None,
        };
        let found = found.filter(|skill| skill.uri(SKILL_FILE) == uri);
        let unknown = || ErrorData::invalid_params(format!("skill `{}` not found", excerpt(uri, 200)), None);
        found.map(|skill| complete(json!({"skill": skill.entry()}))).ok_or_else(unknown)
    }
}

/// Returns the bundle in the address of a file of a skill.
pub(super) fn bundle_of(uri: &str) -> Option<String> {
    let bundle = uri.strip_prefix(SCHEME)?.split('/').next()?;
    (!bundle.is_empty() && bundle.len() <= MAX_ENCODED_NAME).then(|| percent_decode(bundle))
}

/// Adds the fields that every result of the newest protocol version has.
fn complete(mut result: Value) -> Value {
    if let Some(map) = result.as_object_mut() {
        map.insert("resultType".to_owned(), "complete".into());
        map.insert("ttlMs".to_owned(), TTL_MS.into());
        map.insert("cacheScope".to_owned(), "private".into());
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(bundle: &str, name: &str, files: &[(&str, u64)]) -> OfferedSkill {
        let file = |(path, size): &(&str, u64)| SkillFile {
            path: (*path).to_owned(),
            size: *size,
            sha256: "0".repeat(64),
        };
        let skill = Skill {
            name: name.to_owned(),
            description: "Fills forms".to_owned(),
            front_matter: json!({"name": name, "description": "Fills forms"}),
            instructions: "Read it.".to_owned(),
            files: files.iter().map(file).collect(),
        };
        let bundle = BundleSlug::new(bundle).unwrap();
        OfferedSkill { bundle, package: "p".to_owned(), skill: Arc::new(skill) }
    }

    #[test]
    fn the_address_ends_with_the_name_of_the_skill_and_the_path() {
        let skill = offered("pdf", "pdf", &[]);
        assert_eq!(skill.uri("SKILL.md"), "skill://pdf/SKILL.md");
        assert_eq!(skill.uri("references/a b#ü.md"), "skill://pdf/references/a%20b%23%C3%BC.md");
        assert_eq!(offered("my_pdf", "pdf", &[]).uri("SKILL.md"), "skill://my_pdf/pdf/SKILL.md");
    }

    #[test]
    fn large_skills_are_not_listed() {
        assert!(offered("a", "a", &[("SKILL.md", MAX_BYTES)]).is_within_limits());
        assert!(!offered("a", "a", &[("SKILL.md", MAX_BYTES), ("x", 1)]).is_within_limits());
        let many = vec![("x", 1); MAX_FILES + 1];
        assert!(!offered("a", "a", &many).is_within_limits());
    }

    #[test]
    fn a_prompt_names_the_files() {
        let skill = offered("a", "a", &[("SKILL.md", 1), ("references/x.md", 1)]);
        let expected = "Read it.\n\nThe files of this skill are resources:\n\n- skill://a/references/x.md";
        assert_eq!(skill.text(), expected);
        assert_eq!(offered("a", "a", &[("SKILL.md", 1)]).text(), "Read it.");
    }
}
