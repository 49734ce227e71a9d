//! A separate store for each test, on either engine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_core::bundle::Bundle;
use haft_core::catalog::{Change, ChangeSink, FileForm, NewTool, StoreError, UnreadableFile};
use haft_core::id::{BundleId, CallId, ToolId};
use haft_core::name::{BundleSlug, TenantId};
use haft_core::secret::Secret;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Source, Tool};
use haft_core::{Clock, Timestamp};
use haft_store::{Store, StoreSettings};
use haft_testkit::postgres::{TestDatabase, database_from};
use serde_json::json;

/// Generates the test functions of a module for both engines.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(crate::harness::Harness::sqlite().await).await; })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(crate::harness::Harness::postgres().await).await; })*
        }
    };
}
pub(crate) use on_both;

/// A clock that a test sets; it advances by a millisecond with each reading.
pub(crate) struct TestClock(AtomicI64);

impl TestClock {
    pub(crate) fn advance(&self, hours: i64) {
        self.0.fetch_add(hours * 3_600_000_000, Ordering::SeqCst);
    }

    /// Returns the time in microseconds without advancing it.
    pub(crate) fn peek(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.0.fetch_add(1000, Ordering::SeqCst)).unwrap()
    }
}

/// The catalog as a sink of changes knows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Mirror {
    pub(crate) bundles: BTreeMap<BundleId, Bundle>,
    pub(crate) tools: BTreeMap<ToolId, Tool>,
    pub(crate) unreadable: BTreeMap<String, UnreadableFile>,
}

impl Mirror {
    /// Returns the only tool of a name.
    pub(crate) fn named(&self, name: &str) -> Option<&Tool> {
        let mut found = self.tools.values().filter(|tool| tool.spec.name.as_str() == name);
        let first = found.next();
        assert!(found.next().is_none(), "two tools have the name {name}");
        first
    }
}

#[derive(Default)]
pub(crate) struct Recorder {
    mirror: Mutex<Mirror>,
    /// The number of announcements.
    announced: AtomicUsize,
}

impl ChangeSink for Recorder {
    fn apply(&self, changes: Vec<Change>) {
        self.announced.fetch_add(1, Ordering::SeqCst);
        let mut mirror = self.mirror.lock().unwrap();
        for change in changes {
            match change {
                Change::Bundle(bundle) => drop(mirror.bundles.insert(bundle.id, bundle)),
                Change::BundleGone(id) => drop(mirror.bundles.remove(&id)),
                Change::Tool(tool) => drop(mirror.tools.insert(tool.id, *tool)),
                Change::ToolGone(id) => drop(mirror.tools.remove(&id)),
                Change::Unreadable(file) => drop(mirror.unreadable.insert(file.path.clone(), file)),
                Change::UnreadableGone(path) => drop(mirror.unreadable.remove(&path)),
            }
        }
    }

    fn replace(&self, everything: Vec<Change>) {
        *self.mirror.lock().unwrap() = Mirror::default();
        self.apply(everything);
    }
}

enum Location {
    Home(tempfile::TempDir),
    Database(TestDatabase),
}

pub(crate) struct Harness {
    location: Location,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) sink: Arc<Recorder>,
    pub(crate) store: Arc<Store>,
}

impl Harness {
    pub(crate) async fn sqlite() -> Self {
        Self::open(Location::Home(tempfile::tempdir().unwrap())).await
    }

    pub(crate) async fn postgres() -> Self {
        let database = tokio::task::spawn_blocking(|| database_from(migrate)).await.unwrap().unwrap();
        Self::open(Location::Database(database)).await
    }

    async fn open(location: Location) -> Self {
        let start: Timestamp = "2026-08-01T10:00:00Z".parse().unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(start.as_microsecond())));
        let sink = Arc::new(Recorder::default());
        let store = Store::open(settings(&location), clock.clone(), sink.clone()).await.unwrap();
        Self { location, clock, sink, store }
    }

    pub(crate) fn settings(&self) -> StoreSettings {
        settings(&self.location)
    }

    /// Opens a second store at the same location.
    pub(crate) async fn another(&self) -> (Arc<Store>, Arc<Recorder>) {
        let sink = Arc::new(Recorder::default());
        (Store::open(self.settings(), self.clock.clone(), sink.clone()).await.unwrap(), sink)
    }

    /// Closes the store and opens it again.
    pub(crate) async fn restart(&mut self) {
        self.store.close().await;
        self.reopen().await;
    }

    /// Opens the store again without closing it.
    pub(crate) async fn reopen(&mut self) {
        let (store, sink) = self.another().await;
        self.store = store;
        self.sink = sink;
    }

    pub(crate) fn mirror(&self) -> Mirror {
        self.sink.mirror()
    }

    pub(crate) fn home(&self) -> &Path {
        match &self.location {
            Location::Home(home) => home.path(),
            Location::Database(_) => panic!("this test needs files"),
        }
    }

    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.location, Location::Home(_))
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.home().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) async fn create(&self, spec: ToolSpec) -> Result<Tool, StoreError> {
        self.store.catalog().create_tool(new_tool("web", spec)).await
    }

    /// Checks that the announcements agree with a newly opened store.
    pub(crate) async fn assert_consistent(&self) {
        let (other, sink) = self.another().await;
        let found = sink.mirror();
        assert_eq!(self.mirror(), found);
        other.close().await;
    }
}

/// Migrates the database that those of the tests are copied from.
fn migrate(url: &str) -> std::io::Result<()> {
    let settings = StoreSettings::postgres(Secret::new(url.to_owned()));
    tokio::runtime::Handle::current().block_on(Store::migrate(&settings)).map_err(std::io::Error::other)
}

fn settings(location: &Location) -> StoreSettings {
    match location {
        Location::Home(home) => StoreSettings::embedded(home.path()),
        Location::Database(database) => StoreSettings {
            key: Some(Secret::new("ab".repeat(32))),
            lease: Duration::from_secs(1),
            ..StoreSettings::postgres(Secret::new(database.url.clone()))
        },
    }
}

impl Recorder {
    pub(crate) fn mirror(&self) -> Mirror {
        self.mirror.lock().unwrap().clone()
    }

    /// Returns the number of announcements.
    pub(crate) fn announced(&self) -> usize {
        self.announced.load(Ordering::SeqCst)
    }
}

pub(crate) fn new_tool(bundle: &str, spec: ToolSpec) -> NewTool {
    NewTool {
        tenant: TenantId::default_tenant(),
        bundle: BundleSlug::new(bundle).unwrap(),
        spec,
        form: FileForm::Skill,
        text: None,
        enabled: true,
        source: Source::User,
    }
}

/// Returns the definition of a small HTTP tool.
pub(crate) fn spec(name: &str, description: &str) -> ToolSpec {
    serde_json::from_value(json!({
        "name": name, "version": "1.0.0", "description": description,
        "implementation": {"type": "http", "method": "GET", "url": "https://example.com/${q}"},
        "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    }))
    .unwrap()
}

/// Returns the text of a JSON definition.
pub(crate) fn text(name: &str, description: &str) -> String {
    serde_json::to_string_pretty(&spec(name, description)).unwrap()
}

pub(crate) fn call_id(clock: &TestClock) -> CallId {
    let now = clock.now();
    let seconds = u64::try_from(now.as_second()).unwrap();
    let nanos = u32::try_from(now.subsec_nanosecond()).unwrap();
    CallId(uuid::Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos)))
}

/// Polls a condition until it holds, with a long deadline.
pub(crate) async fn eventually(what: &str, check: impl Fn() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < Duration::from_mins(1), "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
