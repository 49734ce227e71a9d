//! `haft reindex`: rebuilds the index from the definition files.

use serde_json::json;

use crate::client::open;
use crate::context::Context;
use crate::engine::ReindexReport;
use crate::error::CliError;

/// Runs the command. It opens the home folder even if a server is running: the files are authoritative, and locks
/// prevent conflicts.
pub(crate) async fn run(context: &Context) -> Result<(), CliError> {
    if let Some(remote) = context.target()?.remote() {
        return Err(CliError::Usage {
            message: format!("`haft reindex` works on the home folder of this machine, not on {remote}"),
            hint: Some(
                "run it on the machine of that server, or pass `--context local` for the home folder here"
                    .to_owned(),
            ),
        });
    }
    let engine = open(context).await?;
    let report = engine.reindex().await;
    engine.close().await;
    let report = report?;
    context.output.data(&json!(report), |output| {
        let ReindexReport { bundles, tools, unreadable, changed } = report;
        let row = [bundles, tools, unreadable, changed].map(|count| count.to_string());
        output.table(&["BUNDLES", "TOOLS", "UNREADABLE", "CHANGED"], vec![row.to_vec()])
    })
}
