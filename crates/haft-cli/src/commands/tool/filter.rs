//! The filters of `tool list` and `tool search`.

use clap::Args;

use crate::client::Request;

// Not a doc comment: clap could take it for the description of the command.
#[derive(Debug, Args)]
pub(crate) struct ToolFilter {
    /// Only tools of this bundle
    #[arg(long, value_name = "BUNDLE")]
    pub(super) bundle: Option<String>,
    /// Only tools with this implementation type, e.g. `http`
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only tools with this status
    #[arg(long, value_parser = ["draft", "published", "deprecated", "disabled"])]
    status: Option<String>,
    /// Only tools with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
}

impl ToolFilter {
    /// Adds the filters to a request.
    pub(crate) fn apply(&self, request: Request) -> Request {
        request
            .query_some("bundle_ids", self.bundle.as_deref())
            .query_some("implementation_type", self.kind.as_deref())
            .query_some("status", self.status.as_deref())
            .query_some("tags", self.tag.as_deref())
    }
}
