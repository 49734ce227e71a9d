//! A tool runs while its bundle is there, and switched on.

use haft_core::Clock as _;
use haft_core::id::BundleId;
use haft_runtime::clock::SystemClock;
use serde_json::json;
use uuid::Uuid;

use super::rig::Rig;

#[tokio::test]
async fn a_tool_runs_while_its_bundle_is_enabled() {
    let rig = Rig::new(Vec::new());
    rig.tool("quick", json!({}));
    let runs = async |rig: &Rig| rig.code("quick", json!({})).await == "ok";
    assert!(runs(&rig).await);
    let deleted = SystemClock.now();
    for open in [false, true, true, false, false, true] {
        rig.bundle(|bundle| bundle.enabled = open);
        assert_eq!(runs(&rig).await, open);
        rig.bundle(|bundle| bundle.soft_deleted_at = Some(deleted));
        assert!(!runs(&rig).await);
        rig.bundle(|bundle| bundle.enabled = open);
        assert_eq!(runs(&rig).await, open);
        // Others do not matter.
        rig.bundle(|bundle| (bundle.id, bundle.enabled) = (BundleId(Uuid::now_v7()), !open));
        assert_eq!(runs(&rig).await, open);
    }
    rig.bundle_gone();
    assert!(!runs(&rig).await);
    rig.bundle(|_| {});
    assert!(runs(&rig).await);
}

#[tokio::test]
async fn a_tool_without_its_bundle_does_not_run() {
    let rig = Rig::new(Vec::new());
    rig.bundle_gone();
    rig.tool("quick", json!({}));
    assert_ne!(rig.code("quick", json!({})).await, "ok");
    rig.bundle(|_| {});
    assert_eq!(rig.code("quick", json!({})).await, "ok");
}
