//! The way to run something in python: warm where the sandbox allows it, else cold.

use std::sync::Arc;

use bytes::Bytes;
use haft_core::name::TenantId;
use haft_sandbox::{Captured, Finished, Level, Limits, Sandbox, Stream};
use serde_json::Value;

use super::pool::{Pool, PoolSettings};
use super::recipe::{Mode, Recipe, Source};
use super::request::{Request, Wanted};
use super::server::{Bounds, Done, ServerError};

/// Python interpreters inside the sandbox. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Interpreters {
    pool: Arc<Pool>,
}

impl Interpreters {
    /// Makes the interpreters of a sandbox; they are started when they are needed. Needs a tokio runtime.
    pub fn new(sandbox: Sandbox) -> Self {
        Self::with(sandbox, PoolSettings::default())
    }

    pub(super) fn with(sandbox: Sandbox, settings: PoolSettings) -> Self {
        Self { pool: Pool::new(sandbox, settings) }
    }

    /// Runs one call.
    pub(super) async fn run(
        &self,
        tenant: &TenantId,
        recipe: &Recipe,
        request: &Request,
        bounds: Bounds,
        watch: &mut (dyn FnMut(Stream, &[u8]) + Send),
    ) -> Result<Done, ServerError> {
        let place = self.pool.sandbox().place(recipe.level, None)?;
        if place.has_own_processes() {
            let key = recipe.key(tenant);
            return self.pool.call(&key, recipe, request, bounds, watch).await;
        }
        let call = Bytes::from(request.json(None).to_string());
        let mut command = recipe.command(place, Mode::Once(call));
        command.limits = Limits { wall: bounds.wall, cpu: bounds.cpu, output: bounds.output, ..command.limits };
        let finished = self.pool.sandbox().run(command, watch).await?;
        Ok(cold(finished, &request.wanted))
    }
}

/// Sorts what a single call said: where it has a result, that is its standard output.
fn cold(finished: Finished, wanted: &Wanted) -> Done {
    let Finished { ending, stdout, stderr, .. } = finished;
    let (stdout, result) = match wanted {
        Wanted::Script { .. } => (stdout, Vec::new()),
        Wanted::Function { .. } | Wanted::Check { .. } => (Captured::default(), stdout.bytes),
    };
    Done { ending, stdout, stderr, result, again: false }
}
