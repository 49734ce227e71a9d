//! Tenants: the owners of tools, calls, credentials and tokens.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::limit::LimitName;
use crate::name::{NameError, TenantId};
use crate::problem::{Problem, excerpt};
use crate::resource::ResourceKind;

/// The maximum length of the name of a tenant, in characters.
pub const MAX_NAME_LENGTH: usize = 100;
/// The maximum number of file roots of a tenant.
pub const MAX_FILE_ROOTS: usize = 32;
/// The maximum number of environment variables that a tenant may read.
pub const MAX_VARIABLES: usize = 256;
/// The maximum value of a limit, so that every JSON reader represents it exactly.
pub const MAX_LIMIT: u64 = 1 << 53;
/// The entry of [`TenantSettings::environment`] that stands for every configured variable.
pub const EVERY_VARIABLE: &str = "*";

const MAX_PATH_LENGTH: usize = 4096;
const MAX_VARIABLE_LENGTH: usize = 128;

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// The id, which never changes.
    pub id: TenantId,
    /// The name for people.
    pub name: String,
    /// Whether its tokens work.
    pub enabled: bool,
    /// The settings that platform admins change.
    pub settings: TenantSettings,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub modified_at: Timestamp,
}

/// The settings of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TenantSettings {
    /// Folders that its file tools may use, besides its own one.
    #[serde(default)]
    pub file_roots: Vec<FileRoot>,
    /// The environment variables that its tools may read as `${NAME}`; `*` matches every configured one.
    #[serde(default)]
    pub environment: Vec<String>,
    /// The limits.
    #[serde(default)]
    pub limits: TenantLimits,
}

/// A folder that the file tools of a tenant may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct FileRoot {
    /// The name that definitions use.
    #[cfg_attr(feature = "openapi", schema(example = "reports", min_length = 1, max_length = 64))]
    pub name: String,
    /// The folder on the server; an absolute path.
    #[cfg_attr(
        feature = "openapi",
        schema(example = "/srv/acme/reports", min_length = 1, max_length = 4096)
    )]
    pub path: String,
    /// Whether its content must not be changed.
    #[serde(default)]
    pub read_only: bool,
}

/// The limits of a tenant; a missing one does not limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct TenantLimits {
    /// The maximum number of calls per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 600, minimum = 1))]
    pub calls_per_minute: Option<u64>,
    /// The maximum number of calls at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 8, minimum = 1))]
    pub max_parallel: Option<u64>,
    /// The maximum number of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 500, minimum = 1))]
    pub max_tools: Option<u64>,
    /// The maximum number of agents; default: 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 100, minimum = 1))]
    pub max_agents: Option<u64>,
    /// The maximum number of retrieval pipelines; default: 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 20, minimum = 1))]
    pub max_pipelines: Option<u64>,
    /// The maximum number of code artifacts; default: 10,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 200, minimum = 1))]
    pub max_artifacts: Option<u64>,
    /// The maximum number of queued calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 1000, minimum = 1))]
    pub max_queued_calls: Option<u64>,
    /// The maximum number of bytes of its tools, calls, workspaces, documents, chats and runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 1_073_741_824, minimum = 1))]
    pub max_stored_bytes: Option<u64>,
    /// The maximum number of stored runs; above it, the oldest ended runs outside chats are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 10_000, minimum = 1))]
    pub max_runs: Option<u64>,
    /// The maximum number of runs that have not ended, without nested runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 10, minimum = 1))]
    pub max_parallel_runs: Option<u64>,
    /// The maximum number of chats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 1000, minimum = 1))]
    pub max_chats: Option<u64>,
    /// The maximum number of messages in one chat, on all its branches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 1000, minimum = 1))]
    pub max_messages_per_chat: Option<u64>,
    /// The maximum number of workspaces with a name; those of chats do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 20, minimum = 1))]
    pub max_workspaces: Option<u64>,
    /// The maximum number of documents in all its pipelines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = 10_000, minimum = 1))]
    pub max_documents: Option<u64>,
}

impl Tenant {
    /// Creates a tenant. Only the tenant `default` may read environment variables from the start.
    pub fn new(id: TenantId, name: String, now: Timestamp) -> Self {
        let environment = if id.is_default() { vec![EVERY_VARIABLE.to_owned()] } else { Vec::new() };
        let settings = TenantSettings { environment, ..TenantSettings::default() };
        Self { id, name, enabled: true, settings, created_at: now, modified_at: now }
    }

    /// Returns whether its tools may read an environment variable.
    pub fn may_read_variable(&self, name: &str) -> bool {
        self.settings.environment.iter().any(|allowed| allowed == EVERY_VARIABLE || allowed == name)
    }

    /// Returns the problems of its name and settings.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let length = self.name.chars().count();
        if self.name.trim().is_empty() || length > MAX_NAME_LENGTH || self.name.chars().any(char::is_control)
        {
            let message = format!(
                "invalid name: expected 1 to {MAX_NAME_LENGTH} characters without control characters"
            );
            problems.push(Problem::new("name", "invalid_name", message));
        }
        check_file_roots(&self.settings.file_roots, &mut problems);
        check_environment(&self.settings.environment, &mut problems);
        self.settings.limits.check(&mut problems);
        problems
    }
}

/// Parses the id of a new tenant. A folder is named after it, so only names that differ on every file system are
/// allowed: lower-case ASCII letters, digits, `-` and `_`.
pub fn parse_new_id(text: &str) -> Result<TenantId, NameError> {
    let id = TenantId::new(text)?;
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    match text.chars().find(|c| !is_allowed(*c)) {
        None => Ok(id),
        Some(character) => Err(NameError::Character {
            what: "tenant",
            text: text.to_owned(),
            character,
            allowed: "lower-case letters `a` to `z`, digits, `-` and `_`",
        }),
    }
}

impl TenantLimits {
    /// Returns the limits that the store enforces by counting rows.
    pub fn stored(&self) -> [(LimitName, Option<u64>); 6] {
        [
            (LimitName::Tools, self.max_tools),
            (LimitName::Runs, self.max_runs),
            (LimitName::ParallelRuns, self.max_parallel_runs),
            (LimitName::Chats, self.max_chats),
            (LimitName::Workspaces, self.max_workspaces),
            (LimitName::Documents, self.max_documents),
        ]
    }

    /// Returns the maximum number of resources of a kind.
    pub fn max_of_kind(&self, kind: ResourceKind) -> u64 {
        let (set, default) = match kind {
            ResourceKind::Agent => (self.max_agents, 10_000),
            ResourceKind::Pipeline => (self.max_pipelines, 1000),
            ResourceKind::CodeArtifact => (self.max_artifacts, 10_000),
        };
        set.unwrap_or(default)
    }

    /// Returns the names and values of the limits that are set.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("calls_per_minute", self.calls_per_minute),
            ("max_parallel", self.max_parallel),
            ("max_tools", self.max_tools),
            ("max_agents", self.max_agents),
            ("max_pipelines", self.max_pipelines),
            ("max_artifacts", self.max_artifacts),
            ("max_queued_calls", self.max_queued_calls),
            ("max_stored_bytes", self.max_stored_bytes),
            ("max_runs", self.max_runs),
            ("max_parallel_runs", self.max_parallel_runs),
            ("max_chats", self.max_chats),
            ("max_messages_per_chat", self.max_messages_per_chat),
            ("max_workspaces", self.max_workspaces),
            ("max_documents", self.max_documents),
        ];
        all.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)))
    }

    fn check(&self, problems: &mut Vec<Problem>) {
        for (name, _) in self.values().filter(|(_, value)| !(1..=MAX_LIMIT).contains(value)) {
            let message = format!("expected an integer from 1 to {MAX_LIMIT}; omit it for no limit");
            problems.push(Problem::new(format!("limits.{name}"), "out_of_range", message));
        }
    }
}

fn check_file_roots(roots: &[FileRoot], problems: &mut Vec<Problem>) {
    if roots.len() > MAX_FILE_ROOTS {
        let message = format!("{} roots exceed the limit of {MAX_FILE_ROOTS}", roots.len());
        problems.push(Problem::new("file_roots", "too_many", message));
        return;
    }
    for (index, root) in roots.iter().enumerate() {
        let field = |name: &str| format!("file_roots[{index}].{name}");
        let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        if root.name.is_empty() || root.name.chars().count() > 64 || !root.name.chars().all(is_letter) {
            let message = "invalid name: use 1 to 64 letters, digits, `-` and `_`";
            problems.push(Problem::new(field("name"), "invalid_name", message));
        } else if roots.iter().take(index).any(|other| other.name == root.name) {
            let message = format!("duplicate name `{}`", root.name);
            problems.push(Problem::new(field("name"), "duplicate", message));
        }
        let is_plain = root.path.len() <= MAX_PATH_LENGTH && !root.path.chars().any(char::is_control);
        let has_parent = root.path.split('/').any(|part| part == "..");
        if !root.path.starts_with('/') || !is_plain || has_parent {
            let message = format!(
                "invalid path `{}`: expected an absolute path without `..`, such as `/srv/acme`",
                excerpt(&root.path, 60)
            );
            problems.push(Problem::new(field("path"), "invalid_path", message));
        }
    }
}

fn check_environment(names: &[String], problems: &mut Vec<Problem>) {
    if names.len() > MAX_VARIABLES {
        let message = format!("{} names exceed the limit of {MAX_VARIABLES}", names.len());
        problems.push(Problem::new("environment", "too_many", message));
        return;
    }
    for (index, name) in names.iter().enumerate() {
        let is_start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_name = is_start && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if name != EVERY_VARIABLE && (!is_name || name.len() > MAX_VARIABLE_LENGTH) {
            let message = format!(
                "invalid name `{}`: expected the name of an environment variable, or `*` for every configured one",
                excerpt(name, 60)
            );
            problems.push(Problem::new(format!("environment[{index}]"), "invalid_name", message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(id: &str) -> Tenant {
        Tenant::new(TenantId::new(id).unwrap(), "Acme".to_owned(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn only_the_default_tenant_reads_environment_variables_from_the_start() {
        assert!(tenant("default").may_read_variable("KEY"));
        let mut acme = tenant("acme");
        assert!(!acme.may_read_variable("KEY"));
        acme.settings.environment = vec!["KEY".to_owned()];
        assert!(acme.may_read_variable("KEY") && !acme.may_read_variable("OTHER"));
    }

    #[test]
    fn a_new_id_is_portable_as_the_name_of_a_folder() {
        for good in ["acme", "a", "team-2", "a_b", "7", &"x".repeat(64)] {
            assert!(parse_new_id(good).is_ok(), "{good}");
        }
        for bad in ["", "Acme", "é", "a b", "a/b", "..", "a.b", "@a", &"x".repeat(65)] {
            assert!(parse_new_id(bad).is_err(), "{bad}");
        }
        insta::assert_snapshot!(parse_new_id("Acme").unwrap_err(), @"tenant `Acme` contains 'A'; allowed: lower-case letters `a` to `z`, digits, `-` and `_`");
    }

    #[test]
    fn every_problem_is_reported_with_its_field() {
        let root = |name: &str, path: &str| FileRoot {
            name: name.to_owned(),
            path: path.to_owned(),
            read_only: false,
        };
        let mut acme = tenant("acme");
        assert_eq!(acme.problems(), []);
        acme.name = " ".to_owned();
        acme.settings = TenantSettings {
            file_roots: vec![root("a", "/srv"), root("a", "srv"), root("b c", "/srv/../etc")],
            environment: vec!["KEY".to_owned(), "*".to_owned(), "A-B".to_owned()],
            limits: TenantLimits { max_tools: Some(0), max_parallel: Some(1), ..TenantLimits::default() },
        };
        let problems: Vec<String> = acme.problems().iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(problems.join("\n"), @r"
        `name`: invalid name: expected 1 to 100 characters without control characters
        `file_roots[1].name`: duplicate name `a`
        `file_roots[1].path`: invalid path `srv`: expected an absolute path without `..`, such as `/srv/acme`
        `file_roots[2].name`: invalid name: use 1 to 64 letters, digits, `-` and `_`
        `file_roots[2].path`: invalid path `/srv/../etc`: expected an absolute path without `..`, such as `/srv/acme`
        `environment[2]`: invalid name `A-B`: expected the name of an environment variable, or `*` for every configured one
        `limits.max_tools`: expected an integer from 1 to 9007199254740992; omit it for no limit
        ");
    }
}
