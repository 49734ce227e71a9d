//! Toolsets: bundles that were installed as packages.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::implementation::{Function, Implementation};
use crate::name::BundleSlug;
use crate::spec::ToolSpec;

/// The function that returns the instructions and the files of an Agent Skill.
pub const READ_SKILL: &str = "read_skill";
/// The setting of [`READ_SKILL`] with the hash of the package that contains the skill. The installation sets it.
pub const PACKAGE_SETTING: &str = "package";

/// An installed toolset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InstalledToolset {
    /// The name of its bundle.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "app-builder"))]
    pub id: BundleSlug,
    /// The name to show.
    #[cfg_attr(feature = "openapi", schema(example = "App Builder"))]
    pub name: String,
    /// The version: X.Y.Z.
    #[cfg_attr(feature = "openapi", schema(example = "1.0.0"))]
    pub version: String,
    /// Its purpose.
    pub description: String,
    /// The version of the form of `toolset.yaml`.
    #[cfg_attr(feature = "openapi", schema(example = "1"))]
    pub manifest_version: String,
    /// How it came here.
    pub source_type: PackageSource,
    /// The URL or folder that it came from; an update reads it again.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub source_ref: Option<String>,
    /// The hash of the content of the package.
    pub package: String,
    /// The hash of the package before, to which it can be rolled back.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub previous: Option<String>,
    /// The name of the trusted key that signed it.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub signed_by: Option<String>,
    /// The MCP servers that were installed with it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub mcp_servers: Vec<String>,
    /// The Python packages that it needs.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub dependencies: Vec<String>,
    /// When it was installed or updated.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub installed_at: Timestamp,
    /// Who installed it: the name of a token.
    pub installed_by: String,
}

/// How a package came here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PackageSource {
    /// It was uploaded.
    Zip,
    /// It is a folder of this machine.
    Local,
    /// It was downloaded.
    Url,
}

/// Binds the tools of a package that read its files to it; `None` removes the binding, for exports.
pub fn bind_package(spec: &mut ToolSpec, package: Option<&str>) {
    match &mut spec.implementation {
        Implementation::Python(python) => python.package = package.map(str::to_owned),
        Implementation::Function(Function { function, config }) if function == READ_SKILL => {
            match package {
                Some(hash) => config.insert(PACKAGE_SETTING.to_owned(), hash.into()),
                None => config.remove(PACKAGE_SETTING),
            };
        }
        _ => {}
    }
}

/// Returns the package whose skill a tool reads; `None` if the tool reads none.
pub fn skill_package(spec: &ToolSpec) -> Option<&str> {
    match &spec.implementation {
        Implementation::Function(Function { function, config }) if function == READ_SKILL => {
            config.get(PACKAGE_SETTING).and_then(Value::as_str)
        }
        _ => None,
    }
}

/// Applies the settings of this installation to a tool of a new package: those in which the tool differs from the
/// package that it was installed with.
pub fn keep_settings(new: &mut ToolSpec, installed: &ToolSpec, package: &ToolSpec) {
    fn keep<T: Clone + PartialEq>(new: &mut T, installed: &T, package: &T) {
        if installed != package {
            new.clone_from(installed);
        }
    }
    keep(&mut new.policy, &installed.policy, &package.policy);
    keep(&mut new.requires_confirmation, &installed.requires_confirmation, &package.requires_confirmation);
    keep(&mut new.renderers, &installed.renderers, &package.renderers);
    keep(&mut new.execution, &installed.execution, &package.execution);
    keep(&mut new.sandbox, &installed.sandbox, &package.sandbox);
    keep(&mut new.network, &installed.network, &package.network);
    keep(&mut new.image, &installed.image, &package.image);
}
