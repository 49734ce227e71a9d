//! Tests whose prerequisites a machine may lack.
//!
//! On a developer's machine such a test reports what is missing and passes. In CI (the variable `CI` is set) it fails,
//! unless the prerequisite is a listed exception: a test that never runs anywhere proves nothing.

/// Something that a test needs and `tools/setup test` may be unable to provide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prerequisite {
    /// MCP clients and servers of other projects, installed into `target/peers`.
    McpPeers,
    /// The validator of OpenAPI documents, installed into `target/peers`.
    ApiPeers,
    /// The issuer of OpenID Connect, installed into `target/peers`.
    IssuerPeers,
    /// The Python clients of model providers, installed into `target/peers`.
    ModelPeers,
    /// The OpenAPI description of GitHub's API in `target/test-data`.
    GithubDescription,
    /// A small file system that the test can mount and fill; it takes root.
    SmallFileSystem,
    /// Docker or Podman with the image `localhost/haft-test`.
    ContainerImage,
}

impl Prerequisite {
    /// Returns the reason why CI may run without it, for the listed exceptions.
    const fn exception(self) -> Option<&'static str> {
        match self {
            Self::ContainerImage => Some("CI machines have no container engine"),
            Self::McpPeers
            | Self::ApiPeers
            | Self::IssuerPeers
            | Self::ModelPeers
            | Self::GithubDescription
            | Self::SmallFileSystem => None,
        }
    }
}

/// Reports that a test cannot run on this machine.
///
/// # Panics
///
/// In CI, unless `prerequisite` is a listed exception.
#[expect(clippy::print_stderr, reason = "a test that does not run must say so")]
#[expect(clippy::panic, reason = "a missing prerequisite fails the test")]
pub fn skip(prerequisite: Prerequisite, missing: &str) {
    #[expect(clippy::disallowed_methods, reason = "CI is recognised by its environment")]
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    match (ci, prerequisite.exception()) {
        (true, None) => panic!("{missing}; CI must provide it (`tools/setup test`)"),
        (true, Some(reason)) => eprintln!("skipped: {missing} ({reason})"),
        (false, _) => eprintln!("skipped: {missing}"),
    }
}
