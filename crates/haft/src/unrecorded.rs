//! What a program without a store has in its place.

use std::future::ready;
use std::sync::Arc;

use haft_core::Work;
use haft_core::call::CallRecord;
use haft_core::catalog::StoreError;
use haft_core::id::CallId;
use haft_core::ledger::{CallPage, CallQuery, Ledger, Reservation};
use haft_core::name::TenantId;

/// A ledger that keeps nothing.
pub(crate) struct Unrecorded;

impl Ledger for Unrecorded {
    fn record(&self, _call: Arc<CallRecord>) -> Work<'_, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }

    fn reserve(&self, _call: CallRecord) -> Work<'_, Result<Reservation, StoreError>> {
        Box::pin(ready(Ok(Reservation::Taken)))
    }

    fn call<'a>(
        &'a self,
        _tenant: &'a TenantId,
        _id: CallId,
    ) -> Work<'a, Result<Option<CallRecord>, StoreError>> {
        Box::pin(ready(Ok(None)))
    }

    fn calls(&self, _query: CallQuery) -> Work<'_, Result<CallPage, StoreError>> {
        Box::pin(ready(Ok(CallPage { calls: Vec::new(), total: 0 })))
    }
}
