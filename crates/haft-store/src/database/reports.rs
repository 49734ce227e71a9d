//! Reports changes of agents, runs, chats, pipelines, documents and artifacts to those who follow them, here and on other
//! nodes.
//!
//! On this node a change is reported at once, except for documents: an import changes thousands of them, so the latest
//! state of each is reported several times a second, and many of one pipeline as one event. Other nodes are notified of all
//! that has collected in this time. The notification is sent after the commit and delays no write; a node
//! that misses one shows the new state a little later.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_core::id::{DocumentId, PipelineId};
use haft_core::live::{DocumentEvent, ObjectAction, ObjectAudience, ObjectChange, ObjectEvent};
use haft_core::name::TenantId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::database::Database;
use crate::engine::Kind;
use crate::notification::ChangeSet;

/// How long changes are collected.
const INTERVAL: Duration = Duration::from_millis(200);
/// The largest number of documents of a pipeline that are reported one by one.
const MAX_DOCUMENTS: usize = 10;
/// The largest number of changes that wait to be sent to other nodes.
const MAX_WAITING: usize = 2000;

/// Changes that wait to be reported.
#[derive(Default)]
pub(crate) struct ChangeReports {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
struct Waiting {
    documents: BTreeMap<PipelineId, ChangedDocuments>,
    /// What other nodes do not know yet.
    for_others: Vec<ObjectChange>,
}

/// The changed documents of a pipeline.
struct ChangedDocuments {
    tenant: TenantId,
    /// `None` if there are too many.
    events: Option<BTreeMap<DocumentId, DocumentEvent>>,
}

impl ChangeReports {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut self.lock());
        self.arrived.notify_one();
    }
}

impl Waiting {
    fn add_document(&mut self, tenant: &TenantId, event: DocumentEvent) {
        let changed = self
            .documents
            .entry(event.pipeline_id)
            .or_insert_with(|| ChangedDocuments { tenant: tenant.clone(), events: Some(BTreeMap::new()) });
        let (Some(events), Some(id)) = (&mut changed.events, event.id) else {
            changed.events = None;
            return;
        };
        let is_new = events.get(&id).is_some_and(|earlier| earlier.change == ObjectAction::Created);
        let change = match event.change {
            ObjectAction::Updated if is_new => ObjectAction::Created,
            change => change,
        };
        events.insert(id, DocumentEvent { change, ..event });
        if events.len() > MAX_DOCUMENTS {
            changed.events = None;
        }
    }

    fn add_for_others(&mut self, change: ObjectChange) {
        if self.for_others.len() < MAX_WAITING {
            self.for_others.push(change);
        }
    }

    /// Takes the events of documents.
    fn take_documents(&mut self) -> Vec<ObjectChange> {
        let mut changes = Vec::new();
        for (pipeline, changed) in std::mem::take(&mut self.documents) {
            let many = || vec![many_documents(pipeline)];
            let events = changed.events.map_or_else(many, |events| events.into_values().collect());
            changes.extend(events.into_iter().map(|event| ObjectChange {
                tenant: changed.tenant.clone(),
                audience: ObjectAudience::Tenant,
                event: ObjectEvent::Document(event),
            }));
        }
        changes
    }
}

/// Returns the event that says that many documents of a pipeline have changed.
pub(crate) fn many_documents(pipeline_id: PipelineId) -> DocumentEvent {
    DocumentEvent { change: ObjectAction::Updated, pipeline_id, id: None, state: None, progress: None }
}

impl Database {
    /// Reports a change that is stored.
    pub(crate) fn report_object(&self, change: ObjectChange) {
        if self.sink.has_followers() {
            self.sink.object_changed(&change);
        }
        if self.engine.kind == Kind::Postgres {
            self.reports.update(|waiting| waiting.add_for_others(change));
        }
    }

    /// Reports a change that everybody in the tenant may see.
    pub(crate) fn report_to_tenant(&self, tenant: &TenantId, event: ObjectEvent) {
        self.report_object(ObjectChange { tenant: tenant.clone(), audience: ObjectAudience::Tenant, event });
    }

    /// Reports a document soon, in its latest state.
    pub(crate) fn report_document(&self, tenant: &TenantId, event: DocumentEvent) {
        if self.sink.has_followers() || self.engine.kind == Kind::Postgres {
            self.reports.update(|waiting| waiting.add_document(tenant, event));
        }
    }
}

/// Reports what has collected, until it is stopped.
pub(crate) async fn send(database: Arc<Database>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = database.reports.arrived.notified() => {}
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
        let documents = database.reports.lock().take_documents();
        for change in documents {
            database.report_object(change);
        }
        let for_others = std::mem::take(&mut database.reports.lock().for_others);
        if let Err(error) = database.notify_of_objects(for_others).await {
            tracing::warn!(%error, "cannot notify other nodes of changes");
        }
    }
}

impl Database {
    async fn notify_of_objects(&self, objects: Vec<ObjectChange>) -> Result<(), sqlx::Error> {
        if objects.is_empty() {
            return Ok(());
        }
        let mut tx = self.engine.begin().await?;
        let changes = ChangeSet { objects, ..ChangeSet::default() };
        self.engine.notify(&mut tx, &self.node, &changes).await?;
        tx.commit().await
    }
}

#[cfg(test)]
mod tests {
    use haft_core::retrieval::DocumentState;
    use uuid::Uuid;

    use super::*;

    fn event(pipeline: u128, id: u128, change: ObjectAction) -> DocumentEvent {
        DocumentEvent {
            change,
            id: Some(DocumentId(Uuid::from_u128(id))),
            state: Some(DocumentState::Queued),
            ..many_documents(PipelineId(Uuid::from_u128(pipeline)))
        }
    }

    fn taken(waiting: &mut Waiting) -> Vec<DocumentEvent> {
        let event = |change: ObjectChange| match change.event {
            ObjectEvent::Document(event) => event,
            other => panic!("{other:?}"),
        };
        waiting.take_documents().into_iter().map(event).collect()
    }

    #[test]
    fn a_document_has_one_event_and_many_documents_have_one_together() {
        let tenant = TenantId::default_tenant();
        let mut waiting = Waiting::default();
        for change in [ObjectAction::Created, ObjectAction::Updated, ObjectAction::Updated] {
            waiting.add_document(&tenant, event(1, 1, change));
        }
        waiting.add_document(&tenant, event(1, 2, ObjectAction::Updated));
        waiting.add_document(&tenant, event(1, 2, ObjectAction::Deleted));
        assert_eq!(
            taken(&mut waiting),
            [event(1, 1, ObjectAction::Created), event(1, 2, ObjectAction::Deleted)]
        );
        for id in 0..1000 {
            waiting.add_document(&tenant, event(1, id, ObjectAction::Created));
        }
        waiting.add_document(&tenant, event(2, 1, ObjectAction::Updated));
        assert_eq!(
            taken(&mut waiting),
            [many_documents(PipelineId(Uuid::from_u128(1))), event(2, 1, ObjectAction::Updated)]
        );
        assert_eq!(taken(&mut waiting), []);
    }
}
