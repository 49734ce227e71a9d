//! The results of calls: small ones in their records, large ones stored apart.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::call::CallRecord;
use haft_core::catalog::StoreError;
use haft_core::id::CallId;
use haft_core::large_result::{LoadedResult, ResultHandle, Results};
use haft_core::ledger::Ledger as _;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::principal::Principal;
use haft_store::{Blobs, Store};
use serde_json::Value;

use crate::events::sees_calls_of_others;
use crate::settings::Settings;

/// The name of a stored result starts with this.
const RESULTS: &str = "results";
/// What is younger is never removed: the record of a call is written after its result.
const COLLECT_AGE: Duration = Duration::from_hours(1);
/// The largest stored result that is loaded, in bytes; no tool may return more.
const MAX_BYTES: u64 = 1 << 30;

/// The results of calls.
pub struct ResultStore {
    store: Arc<Store>,
    blobs: Blobs,
    max_inline_bytes: u64,
    /// How much of a tenant's results is kept, in bytes; 0 means no limit.
    keep_bytes: u64,
}

impl ResultStore {
    pub fn new(settings: &Settings, store: &Arc<Store>, blobs: Blobs) -> Self {
        let max_inline_bytes = settings.results.max_inline_bytes;
        let keep_bytes = settings.retention.tenant_bytes;
        Self { store: Arc::clone(store), blobs, max_inline_bytes, keep_bytes }
    }

    /// Returns the whole result of a recorded call.
    pub async fn of_record(&self, record: &CallRecord) -> Result<LoadedResult, CallError> {
        let id = record.id();
        let Some(bytes) = record.stored_bytes else {
            let value = record.outcome().unwrap_or_else(|| Err(not_ended(id)))?;
            let bytes = value.to_string().len() as u64;
            return Ok(LoadedResult { value, bytes });
        };
        let max = usize::try_from(bytes.min(MAX_BYTES)).unwrap_or(usize::MAX);
        let stored = self.blobs.get(&name(record.tenant(), id), max).await.map_err(unavailable)?;
        let stored = stored.ok_or_else(|| {
            let message = format!("the result of call `{id}` is no longer stored; call the tool again");
            CallError::new(ErrorCode::NotFound, message)
        })?;
        let value = serde_json::from_slice(&stored).map_err(|error| {
            CallError::internal(format!("the stored result of call `{id}` is damaged: {error}"))
        })?;
        Ok(LoadedResult { value, bytes })
    }

    /// Returns the result of a call whose tool has a renderer, if it is stored apart. One that is gone is shown by its
    /// preview.
    pub async fn whole_for_rendering(&self, record: &CallRecord) -> Result<Option<Value>, CallError> {
        if record.stored_bytes.is_none() || record.renderer.is_none() {
            return Ok(None);
        }
        match self.of_record(record).await {
            Ok(loaded) => Ok(Some(loaded.value)),
            Err(error) if error.code == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes results whose calls are gone, and the oldest ones of tenants that have too many.
    pub async fn collect(&self) -> Result<(), StoreError> {
        let mut tenants: BTreeMap<TenantId, Vec<(CallId, u64)>> = BTreeMap::new();
        for (name, size) in self.blobs.list(RESULTS).await? {
            if let Some((tenant, call)) = parse(&name) {
                tenants.entry(tenant).or_default().push((call, size));
            }
        }
        let mut removed = 0_u64;
        for (tenant, mut results) in tenants {
            // The newest first: their ids are times.
            results.sort_unstable_by_key(|(call, _)| std::cmp::Reverse(call.0));
            let mut kept = 0_u64;
            for (call, size) in results {
                kept = kept.saturating_add(size);
                let is_over = self.keep_bytes > 0 && kept > self.keep_bytes;
                if !is_old(call) || !(is_over || self.is_gone(&tenant, call).await?) {
                    continue;
                }
                self.blobs.remove(&self::name(&tenant, call)).await?;
                removed += 1;
            }
        }
        if removed > 0 {
            tracing::info!(removed, "removed stored results of calls that are gone, or too many");
        }
        Ok(())
    }

    async fn is_gone(&self, tenant: &TenantId, call: CallId) -> Result<bool, StoreError> {
        let record = self.store.calls().call(tenant, call).await?;
        Ok(record.is_none_or(|record| record.stored_bytes.is_none()))
    }
}

impl Results for ResultStore {
    fn max_inline_bytes(&self) -> u64 {
        self.max_inline_bytes
    }

    fn store(&self, tenant: &TenantId, call: CallId, json: String) -> BoxFuture<'_, Result<(), CallError>> {
        let name = name(tenant, call);
        Box::pin(async move { self.blobs.put(&name, json.into_bytes()).await.map_err(unavailable) })
    }

    fn load<'a>(
        &'a self,
        principal: &'a Principal,
        call: CallId,
    ) -> BoxFuture<'a, Result<LoadedResult, CallError>> {
        Box::pin(async move {
            let record = self.store.calls().call(&principal.tenant, call).await.map_err(unavailable)?;
            let visible = record.filter(|record| {
                sees_calls_of_others(principal) || principal.owns_of(&record.invocation.principal)
            });
            let record = visible.ok_or_else(|| {
                let handle = ResultHandle::whole(call);
                CallError::new(ErrorCode::NotFound, format!("`{handle}` does not exist"))
            })?;
            self.of_record(&record).await
        })
    }
}

fn name(tenant: &TenantId, call: CallId) -> String {
    format!("{RESULTS}/{tenant}/{call}")
}

fn parse(name: &str) -> Option<(TenantId, CallId)> {
    let (tenant, call) = name.strip_prefix(RESULTS)?.strip_prefix('/')?.split_once('/')?;
    Some((tenant.parse().ok()?, call.parse().ok()?))
}

fn is_old(call: CallId) -> bool {
    #[expect(clippy::disallowed_methods, reason = "compared with the time in the id of a call")]
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (seconds, nanos) = call.0.get_timestamp().map_or((0, 0), |time| time.to_unix());
    now.saturating_sub(Duration::new(seconds, nanos)) >= COLLECT_AGE
}

fn not_ended(call: CallId) -> CallError {
    CallError::new(ErrorCode::Conflict, format!("call `{call}` has not ended; its result does not exist yet"))
}

fn unavailable(error: StoreError) -> CallError {
    let message = match error {
        StoreError::Unavailable { action, source, .. } => format!("cannot {action}: {source}"),
        other => other.to_string(),
    };
    CallError::new(ErrorCode::StoreUnavailable, message).for_model("the result is unavailable; retry later")
}
