//! The desired state: what the files of a folder say. Nothing here knows the installation.

use std::borrow::Cow;
use std::collections::BTreeMap;

use haft_core::artifact::ArtifactDefinition;
use haft_core::catalog::SourceText;
use haft_core::name::BundleSlug;
use haft_core::policy::PolicyRules;
use haft_core::problem::Problem;
use haft_core::resource::ResourceSpec;
use haft_core::retrieval::PipelineDefinition;
use haft_definition::dialect::{Defaults, ParsedDefinition};
use haft_definition::folder::{BUNDLE_FILE, file_form, name_and_version};
use haft_definition::{code_artifact, pipeline, policy};
use haft_package::files::{MANIFEST, PackageFiles, SKILL};
use haft_package::package::Package;
use haft_package::path::PackagePath;

use super::desired_resource::{DesiredAgent, DesiredResource};
use super::documents::{self, DesiredServer, WrittenBundle};
use crate::definition;

/// The folders that hold bundles: that of a repository, and that of a home folder.
const ROOTS: [&str; 2] = ["bundles", "skills"];
/// The MCP servers, in haft's form and in that of other MCP clients.
const SERVERS_FILE: &str = "mcp-servers.yaml";
const CLIENT_SERVERS_FILE: &str = "mcp.json";
/// The folders of the agents, of the pipelines and of the code artifacts.
const AGENTS: &str = "agents";
const PIPELINES: &str = "pipelines";
const ARTIFACTS: &str = "artifacts";
/// The policy rules of the tenant.
const POLICY_FILE: &str = "policy.yaml";
/// The largest number of problems, and of warnings.
const MAX_PROBLEMS: usize = 100;

/// What a folder says.
#[derive(Default)]
pub(super) struct Desired {
    pub(super) bundles: Vec<DesiredBundle>,
    /// `None` if the folder has no file with servers.
    pub(super) servers: Option<Vec<DesiredServer>>,
    /// `None` if the folder has no file with rules.
    pub(super) policy: Option<DesiredPolicy>,
    /// `None` if the folder has no agents.
    pub(super) agents: Option<Vec<DesiredAgent>>,
    /// `None` if the folder has no pipelines.
    pub(super) pipelines: Option<Vec<DesiredResource<PipelineDefinition>>>,
    /// `None` if the folder has no artifacts.
    pub(super) artifacts: Option<Vec<DesiredResource<ArtifactDefinition>>>,
    pub(super) warnings: Vec<Problem>,
    /// The hash of all files.
    pub(super) hash: String,
}

/// A bundle of the folder.
pub(super) struct DesiredBundle {
    pub(super) slug: BundleSlug,
    /// Its folder.
    pub(super) folder: String,
    pub(super) content: BundleContent,
}

/// What is in a bundle.
pub(super) enum BundleContent {
    /// Definition files.
    Tools { about: WrittenBundle, tools: Vec<DesiredTool> },
    /// A toolset or an Agent Skill.
    Package(Box<Package>),
}

/// A definition file.
pub(super) struct DesiredTool {
    pub(super) file: String,
    pub(super) text: SourceText,
    pub(super) parsed: ParsedDefinition,
}

/// The policy rules and their text.
pub(super) struct DesiredPolicy {
    pub(super) rules: PolicyRules,
    pub(super) text: String,
}

/// Returns a problem of a file: the message has the line and the field.
pub(super) fn in_file(file: &str, problem: &Problem) -> Problem {
    Problem::new(file, &problem.code, problem.to_string())
}

/// Reads the files of a folder; all problems are reported at once.
pub(super) fn read(files: &PackageFiles) -> Result<Desired, Vec<Problem>> {
    let mut reader = Reader::default();
    reader.desired.hash = files.content_hash();
    let mut folders: BTreeMap<String, PackageFiles> = BTreeMap::new();
    let mut artifacts: BTreeMap<&str, &[u8]> = BTreeMap::new();
    for (path, file) in files.iter() {
        let parts: Vec<&str> = path.as_str().splitn(3, '/').collect();
        match parts.as_slice() {
            [name] => reader.top_file(name, &file.bytes),
            [AGENTS, _] => reader.agent_file(path.as_str(), &file.bytes),
            [PIPELINES, _] => reader.pipeline_file(path.as_str(), &file.bytes),
            // A definition can name the file of its source, so all of them come first.
            [ARTIFACTS, name] => drop(artifacts.insert(name, &file.bytes)),
            [root, _] if ROOTS.contains(root) => {
                // A file outside of every bundle belongs to the default bundle, as in a home folder.
                let folder = folders.entry((*root).to_owned()).or_default();
                reader.add(folder, path.file_name(), file);
            }
            [root, bundle, inner] if ROOTS.contains(root) => {
                let folder = folders.entry(format!("{root}/{bundle}")).or_default();
                reader.add(folder, inner, file);
            }
            _ => reader.ignored(path.as_str()),
        }
    }
    reader.artifact_files(&artifacts);
    for (folder, files) in folders {
        reader.bundle(folder, files);
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    desired: Desired,
    problems: Vec<Problem>,
}

impl Reader {
    fn finish(mut self) -> Result<Desired, Vec<Problem>> {
        let Desired { bundles, servers, policy, agents, pipelines, artifacts, .. } = &self.desired;
        let is_empty = bundles.is_empty() && servers.is_none() && policy.is_none() && agents.is_none();
        let is_empty = is_empty && pipelines.is_none() && artifacts.is_none();
        if self.problems.is_empty() && is_empty {
            let message = format!(
                "nothing to apply: expected `bundles/<id>/` with definition files, `{AGENTS}/`, `{PIPELINES}/`, \
                 `{ARTIFACTS}/`, `{SERVERS_FILE}` or `{POLICY_FILE}`"
            );
            self.problems.push(Problem::new("", "nothing_to_apply", message));
        }
        for list in [&mut self.problems, &mut self.desired.warnings] {
            let more = list.len().saturating_sub(MAX_PROBLEMS);
            list.truncate(MAX_PROBLEMS);
            if more > 0 {
                list.push(Problem::new("", "more_problems", format!("{more} more problems are not listed")));
            }
        }
        if self.problems.is_empty() { Ok(self.desired) } else { Err(self.problems) }
    }

    fn add(&mut self, folder: &mut PackageFiles, path: &str, file: &haft_package::files::PackageFile) {
        let added = PackagePath::new(path)
            .map_err(|error| Problem::new(path, "unsafe_path", error.to_string()))
            .and_then(|path| folder.add(path, file.bytes.clone(), file.executable));
        self.problems.extend(added.err());
    }

    fn ignored(&mut self, path: &str) {
        let message = "not applied: haft does not know this file";
        self.desired.warnings.push(Problem::new(path, "ignored_file", message));
    }

    fn text<'a>(&mut self, file: &str, bytes: &'a [u8]) -> Option<&'a str> {
        let text = std::str::from_utf8(bytes).ok();
        if text.is_none() {
            self.problems.push(Problem::new(file, "not_utf8", "not valid UTF-8"));
        }
        text
    }

    fn fail(&mut self, file: &str, problems: &[Problem]) {
        self.problems.extend(problems.iter().map(|problem| in_file(file, problem)));
    }

    fn top_file(&mut self, name: &str, bytes: &[u8]) {
        if ![SERVERS_FILE, CLIENT_SERVERS_FILE, POLICY_FILE].contains(&name) {
            if !is_documentation(name) {
                self.ignored(name);
            }
            return;
        }
        let Some(text) = self.text(name, bytes) else { return };
        if name == POLICY_FILE {
            match policy::read(text) {
                Ok(rules) => self.desired.policy = Some(DesiredPolicy { rules, text: text.to_owned() }),
                Err(problems) => self.fail(name, &problems),
            }
            return;
        }
        let read = if name == SERVERS_FILE {
            documents::servers(name, text)
        } else {
            documents::client_servers(name, text)
        };
        match read {
            Ok(servers) => self.servers(name, servers),
            Err(problems) => self.fail(name, &problems),
        }
    }

    fn servers(&mut self, file: &str, servers: Vec<DesiredServer>) {
        let all = self.desired.servers.get_or_insert_default();
        for server in servers {
            if all.iter().any(|known| known.id == server.id) {
                let message = format!("MCP server `{}` is defined twice", server.id);
                self.problems.push(Problem::new(file, "duplicate_server", message));
                continue;
            }
            all.push(server);
        }
    }

    /// Returns the text of a definition and the name of its file without the ending; other files are ignored.
    fn definition<'a>(&mut self, path: &'a str, bytes: &'a [u8]) -> Option<(&'a str, &'a str)> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let Some(stem) = documents::definition_stem(name) else {
            if !is_documentation(name) {
                self.ignored(path);
            }
            return None;
        };
        Some((self.text(path, bytes)?, stem))
    }

    /// Adds a resource, unless another file defines it, too.
    fn resource<S: ResourceSpec>(
        &mut self,
        list: fn(&mut Desired) -> &mut Option<Vec<DesiredResource<S>>>,
        resource: DesiredResource<S>,
        warnings: &[Problem],
    ) {
        let warnings = warnings.iter().map(|warning| in_file(&resource.file, warning));
        self.desired.warnings.extend(warnings);
        let all = list(&mut self.desired).get_or_insert_default();
        let slug = resource.definition.slug();
        match all.iter().find(|known| known.definition.slug() == slug) {
            None => all.push(resource),
            Some(known) => {
                let kind = S::KIND;
                let message =
                    format!("{kind} `{slug}` is also defined by `{}`; keep one of them", known.file);
                self.problems.push(Problem::new(resource.file, &format!("duplicate_{kind}"), message));
            }
        }
    }

    fn agent_file(&mut self, path: &str, bytes: &[u8]) {
        let Some((text, stem)) = self.definition(path, bytes) else { return };
        match documents::agents(path, text, stem) {
            Ok(read) => {
                for (agent, warnings) in read {
                    self.resource(|desired| &mut desired.agents, agent, &warnings);
                }
            }
            Err(problems) => self.fail(path, &problems),
        }
    }

    fn pipeline_file(&mut self, path: &str, bytes: &[u8]) {
        let Some((text, stem)) = self.definition(path, bytes) else { return };
        match pipeline::read(text, stem) {
            Ok(read) => {
                let (file, definition, status) = (path.to_owned(), read.definition, read.status);
                let pipeline = DesiredResource { file, definition, enabled: None, status };
                self.resource(|desired| &mut desired.pipelines, pipeline, &read.warnings);
            }
            Err(problems) => self.fail(path, &problems),
        }
    }

    /// Reads the artifacts; the other files of their folder are sources, or nothing.
    fn artifact_files(&mut self, files: &BTreeMap<&str, &[u8]>) {
        let mut sources: Vec<String> = Vec::new();
        for (name, bytes) in files {
            let Some(stem) = documents::definition_stem(name) else { continue };
            let file = format!("{ARTIFACTS}/{name}");
            let Some(text) = self.text(&file, bytes) else { continue };
            match code_artifact::read(text, stem, |name| files.get(name).copied().map(Cow::Borrowed)) {
                Ok(read) => {
                    sources.extend(read.source_file);
                    let definition = ArtifactDefinition { slug: read.slug, content: read.content.into() };
                    let artifact = DesiredResource { file, definition, enabled: None, status: read.status };
                    self.resource(|desired| &mut desired.artifacts, artifact, &read.warnings);
                }
                Err(problems) => self.fail(&file, &problems),
            }
        }
        for name in files.keys() {
            let is_used = sources.iter().any(|source| source == name);
            if documents::definition_stem(name).is_none() && !is_used && !is_documentation(name) {
                self.ignored(&format!("{ARTIFACTS}/{name}"));
            }
        }
    }

    fn bundle(&mut self, folder: String, files: PackageFiles) {
        let name = folder.split_once('/').map_or("user-created", |(_, name)| name);
        if name.starts_with('@') {
            let message = "not applied: it belongs to another tenant; apply it with a token of that tenant";
            return self.desired.warnings.push(Problem::new(folder, "ignored_file", message));
        }
        if files.has(MANIFEST) || files.has(SKILL) {
            return self.package(folder, files);
        }
        let slug = match BundleSlug::new(name) {
            Ok(slug) if slug != BundleSlug::built_in() => slug,
            Ok(slug) => {
                let message = format!("the bundle name `{slug}` is reserved; rename the folder");
                return self.problems.push(Problem::new(folder, "reserved_name", message));
            }
            Err(error) => {
                let message = format!("{error}; rename the folder");
                return self.problems.push(Problem::new(folder, "invalid_name", message));
            }
        };
        let (mut about, mut tools) = (WrittenBundle::default(), Vec::new());
        for (path, file) in files.iter() {
            let shown = format!("{folder}/{path}");
            let form = if path.as_str().contains('/') { None } else { file_form(path.as_str()) };
            if path.as_str() == BUNDLE_FILE {
                let Some(text) = self.text(&shown, &file.bytes) else { continue };
                match documents::bundle(text) {
                    Ok(written) => about = written,
                    Err(problems) => self.fail(&shown, &problems),
                }
            } else if let Some(form) = form {
                let Some(text) = self.text(&shown, &file.bytes) else { continue };
                let text = SourceText { form, text: text.to_owned() };
                tools.extend(self.tool(shown, text, &slug));
            } else if !is_documentation(path.as_str()) {
                let message = "not applied: only toolsets (`toolset.yaml`) carry files beside definitions";
                self.desired.warnings.push(Problem::new(shown, "ignored_file", message));
            }
        }
        if about.is_deleted {
            let message = "not applied: the bundle is deleted (`soft_deleted_at`)";
            return self.desired.warnings.push(Problem::new(folder, "ignored_file", message));
        }
        self.reject_duplicates(&mut tools);
        self.push(DesiredBundle { slug, folder, content: BundleContent::Tools { about, tools } });
    }

    fn package(&mut self, folder: String, files: PackageFiles) {
        match Package::open(files) {
            Ok(package) => {
                let slug = package.toolset.id.clone();
                self.push(DesiredBundle { slug, folder, content: BundleContent::Package(Box::new(package)) });
            }
            Err(problems) => {
                let manifest = format!("{folder}/{MANIFEST}");
                for problem in &problems {
                    let file = if problem.line.is_some() { &manifest } else { &folder };
                    self.problems.push(in_file(file, problem));
                }
            }
        }
    }

    fn push(&mut self, bundle: DesiredBundle) {
        if let Some(other) = self.desired.bundles.iter().find(|known| known.slug == bundle.slug) {
            let message = format!("bundle `{}` is also in `{}`; keep one of them", bundle.slug, other.folder);
            return self.problems.push(Problem::new(bundle.folder, "duplicate_bundle", message));
        }
        self.desired.bundles.push(bundle);
    }

    fn tool(&mut self, file: String, text: SourceText, bundle: &BundleSlug) -> Option<DesiredTool> {
        let (name, version) = name_and_version(&file);
        let defaults = Defaults { name: Some(name.to_owned()), version: version.map(str::to_owned) };
        match definition::read_all(&text.text, text.form, &defaults) {
            Ok(parsed) => {
                self.desired.warnings.extend(parsed.warnings.iter().map(|warning| in_file(&file, warning)));
                if let Some(named) = parsed.bundle.as_deref().filter(|named| *named != bundle.as_str()) {
                    let message =
                        format!("the folder decides: the tool belongs to `{bundle}`, not to `{named}`");
                    self.desired.warnings.push(Problem::new(&file, "other_bundle", message));
                }
                Some(DesiredTool { file, text, parsed })
            }
            Err(problems) => {
                self.fail(&file, &problems);
                None
            }
        }
    }

    fn reject_duplicates(&mut self, tools: &mut [DesiredTool]) {
        tools.sort_by(|one, other| key(one).cmp(&key(other)));
        for pair in tools.windows(2) {
            if let [one, other] = pair
                && key(one) == key(other)
            {
                let spec = &one.parsed.spec;
                let message = format!(
                    "`{}@{}` is also defined by `{}`; change the name or the version",
                    spec.name, spec.version, one.file
                );
                self.problems.push(Problem::new(&other.file, "duplicate_tool", message));
            }
        }
    }
}

fn key(tool: &DesiredTool) -> (&str, &str) {
    (tool.parsed.spec.name.as_str(), tool.parsed.spec.version.as_str())
}

/// Returns whether a file is documentation, which is never applied.
fn is_documentation(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    name.rsplit_once('.').is_some_and(|(_, extension)| extension == "md")
        || ["license", "notice", "codeowners", "makefile"].contains(&name.as_str())
}

#[cfg(test)]
#[path = "desired_tests.rs"]
mod tests;
