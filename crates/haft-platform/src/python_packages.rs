//! Removes installed packages that no Python tool needs.

use std::time::Duration;

use haft_executors::python::PythonEnvironments;

use crate::context::Context;

/// How often unused packages are looked for.
const INTERVAL: Duration = Duration::from_hours(6);

/// Removes unused packages until it is dropped.
pub async fn collect_periodically(app: &Context, environments: &PythonEnvironments) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        collect(app, environments).await;
    }
}

async fn collect(app: &Context, environments: &PythonEnvironments) {
    let settings = app.settings();
    let home = settings.database_url.is_none().then_some(settings.home.as_path());
    // Nothing is removed as long as it is unknown what is needed.
    let referenced = match environments.referenced(&app.registry().snapshot(), home).await {
        Ok(referenced) => referenced,
        Err(error) => return tracing::warn!(%error, "failed to find unused Python packages"),
    };
    match environments.collect(referenced, app.now()).await {
        Ok(collected) if collected.removed.is_empty() => {}
        Ok(collected) => {
            let (environments, bytes) = (collected.removed.len(), collected.bytes);
            tracing::info!(environments, bytes, "removed unused Python packages");
        }
        Err(error) => tracing::warn!(%error, "failed to remove unused Python packages"),
    }
}
