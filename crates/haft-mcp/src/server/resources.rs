//! The resources of a client: the files of the skills that it sees, and the pages of tools if it shows them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::problem::excerpt;
use rmcp::ErrorData;
use rmcp::model::{ListResourcesResult, ReadResourceResult, Resource, ResourceContents};

use super::apps;
use super::client_context::ClientContext;
use super::handler::McpServer;
use super::media_type::media_type;
use super::packages::{SkillFile, protocol_error};
use super::paging;
use super::skills::{self, OfferedSkill, SKILL_FILE};

/// The largest file that is read as a resource.
const MAX_FILE: u64 = 16 << 20;

impl McpServer {
    /// Lists the resources.
    pub(super) async fn resources(
        &self,
        client: &ClientContext,
        cursor: Option<&str>,
        shows_pages: bool,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut resources = Vec::new();
        for offered in self.offered_skills(client).await? {
            resources.extend(offered.files().map(|file| skill_file(&offered, file)));
        }
        if shows_pages {
            resources.extend(self.app_pages(client).iter().map(|(page, title)| page.resource(title)));
        }
        let (resources, next_cursor) = paging::page(&resources, cursor, Resource::clone)?;
        Ok(ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(resources) })
    }

    /// Reads a resource.
    pub(super) async fn resource(
        &self,
        client: &ClientContext,
        uri: &str,
    ) -> Result<ReadResourceResult, ErrorData> {
        let contents = if uri.starts_with(apps::SCHEME) {
            self.read_page(client, uri).await?
        } else {
            self.read_skill_file(client, uri).await?
        };
        let unknown =
            || ErrorData::resource_not_found(format!("resource `{}` not found", excerpt(uri, 200)), None);
        Ok(ReadResourceResult::new(vec![contents.ok_or_else(unknown)?]))
    }

    async fn read_skill_file(
        &self,
        client: &ClientContext,
        uri: &str,
    ) -> Result<Option<ResourceContents>, ErrorData> {
        let offered = match skills::bundle_of(uri) {
            Some(bundle) => self.offered_skill(client, &bundle).await?,
            None => None,
        };
        let (Some(offered), Some(source)) = (offered, self.shared.settings.packages.as_ref()) else {
            return Ok(None);
        };
        let Some(file) = offered.files().find(|file| offered.uri(&file.path) == uri) else { return Ok(None) };
        if file.size > MAX_FILE {
            let message =
                format!("`{}` has {} bytes; resources have at most 16 MiB", excerpt(uri, 200), file.size);
            return Err(ErrorData::invalid_params(message, None));
        }
        let read = source.file(client.tenant(), &offered.package, &file.path).await;
        let read = read.map_err(|error| protocol_error(&error))?;
        Ok(read.map(|bytes| contents(uri, &file.path, bytes)))
    }
}

fn skill_file(offered: &OfferedSkill, file: &SkillFile) -> Resource {
    let is_main = file.path == SKILL_FILE;
    let name = if is_main { offered.skill.name.as_str() } else { file.path.as_str() };
    let mut resource = Resource::new(offered.uri(&file.path), excerpt(name, 1024)).with_size(file.size);
    resource = if is_main {
        resource.with_description(excerpt(&offered.skill.description, 2000))
    } else {
        resource.with_description(format!("A file of the skill `{}`", excerpt(&offered.skill.name, 64)))
    };
    match media_type(&file.path) {
        Some(kind) => resource.with_mime_type(kind),
        None => resource,
    }
}

/// Writes a file: as text if it is UTF-8.
fn contents(uri: &str, path: &str, bytes: Vec<u8>) -> ResourceContents {
    let kind = media_type(path);
    match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri).with_mime_type(kind.unwrap_or("text/plain")),
        Err(error) => ResourceContents::blob(STANDARD.encode(error.as_bytes()), uri)
            .with_mime_type(kind.unwrap_or("application/octet-stream")),
    }
}
