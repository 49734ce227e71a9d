//! `haft reindex`: builds the index anew from the definition files.

use crate::context::Context;
use crate::engine::Engine;
use crate::error::CliError;
use crate::view;

/// Runs the command. It opens the home folder even while a server runs there: the files are the truth for
/// both, and locks keep them apart.
pub(crate) async fn run(context: &Context) -> Result<(), CliError> {
    if context.server()?.is_some() {
        let text = "`haft reindex` works on a home folder; run it on the machine of the server";
        return Err(CliError::Usage(text.to_owned()));
    }
    let engine = Engine::open(context.resolve()?.settings).await?;
    let report = engine.reindex().await;
    engine.close().await;
    let report = report?;
    context.output.data(&report, |output| {
        let row = ["bundles", "tools", "unreadable", "changed"].map(|key| view::text(&report, key));
        output.table(&["BUNDLES", "TOOLS", "UNREADABLE", "CHANGED"], vec![row.to_vec()])
    })
}
