//! `haft reindex`: rebuilds the index from the definition files.

use crate::client::open;
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Runs the command. It opens the home folder even if a server is running: the files are authoritative, and locks
/// prevent conflicts.
pub(crate) async fn run(context: &Context) -> Result<(), CliError> {
    if context.server()?.is_some() {
        let message =
            "`haft reindex` needs the home folder; run it on the server's machine without `--server`";
        return Err(CliError::usage(message));
    }
    let engine = open(context).await?;
    let report = engine.reindex().await;
    engine.close().await;
    let report = report?;
    context.output.data(&report, |output| {
        let row = ["bundles", "tools", "unreadable", "changed"].map(|key| view::text(&report, key));
        output.table(&["BUNDLES", "TOOLS", "UNREADABLE", "CHANGED"], vec![row.to_vec()])
    })
}
