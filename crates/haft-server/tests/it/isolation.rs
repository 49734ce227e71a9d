//! Tenants learn nothing of each other: tokens of a second tenant on every route of the OpenAPI document and on every
//! MCP method.
//!
//! The routes, their parameters and the MCP capabilities come from the server, so a new one fails these tests until
//! `expectations.rs` says what another tenant gets from it. `persons.rs` does the same for the people of one tenant.

mod expectations;
mod first_tenant;
mod mcp;
mod persons;
mod probe;
mod routes;

use std::cell::RefCell;

use reqwest::Method;
use serde_json::{Value, json};

use self::first_tenant::FirstTenant;
use self::probe::{Probe, TENANT};
use self::routes::Walker;
use crate::harness::{Server, poll, send};
use crate::tenants;

/// Both tenants.
struct Tenants {
    server: Server,
    first: FirstTenant,
    /// Tokens of the second tenant.
    admin: String,
    viewer: String,
    sent: RefCell<String>,
}

impl Tenants {
    async fn create() -> Self {
        let server = Server::start_whole(|_| {}).await;
        let admin = tenants::tenant(&server, TENANT).await;
        let body = json!({"tenant": TENANT, "role": "viewer", "name": "viewer"});
        let (_, viewer) = server.post("/api/tokens", body).await;
        let viewer = viewer["data"]["token"].as_str().unwrap().to_owned();
        let first = FirstTenant::create(&server).await;
        Self { server, first, admin, viewer, sent: RefCell::default() }
    }

    fn probe(&self, token: &str) -> Probe<'_> {
        Probe { server: &self.server, first: &self.first, token: token.to_owned(), sent: &self.sent }
    }

    /// Fails if the first tenant has not what it had, or its sessions, links and calls ended.
    async fn check_first(&self, before: &Value) {
        let after = self.first.snapshot(&self.server).await;
        for (path, value) in before.as_object().unwrap() {
            assert_eq!(&after[path], value, "changed by another tenant: {path}");
        }
        let session = self.server.bare(Method::GET, "/api/session").header("cookie", &self.first.cookie);
        assert_eq!(send(session).await.0, 200);
        let link = format!("/login?code={}", self.first.code);
        let login = self.server.bare(Method::GET, &link).send().await.unwrap();
        assert_ne!(login.status(), 401, "the link was used");
        self.server.gate.open();
        let path = format!("/api/calls/{}", self.first.running);
        let status = poll(async || {
            let (_, call) = self.server.get(&path).await;
            let status = call["data"]["status"].as_str().unwrap().to_owned();
            (status != "running").then_some(status)
        });
        assert_eq!(status.await, "success", "another tenant cancelled the call");
    }
}

#[tokio::test]
async fn every_route_reveals_nothing_of_another_tenant() {
    let tenants = Tenants::create().await;
    let before = tenants.first.snapshot(&tenants.server).await;
    let viewer = tenants.probe(&tenants.viewer);
    routes::walk(&viewer, Walker::Viewer).await;
    let admin = tenants.probe(&tenants.admin);
    // Before the walk creates things of the same names.
    routes::walk_undocumented(&admin).await;
    routes::walk(&admin, Walker::Admin).await;
    routes::use_names_and_keys(&admin).await;
    tenants.check_first(&before).await;
}

#[tokio::test]
async fn every_mcp_method_reveals_nothing_of_another_tenant() {
    let tenants = Tenants::create().await;
    let before = tenants.first.snapshot(&tenants.server).await;
    for token in [&tenants.viewer, &tenants.admin] {
        mcp::walk(&tenants.probe(token)).await;
    }
    tenants.check_first(&before).await;
}

#[tokio::test]
async fn mcp_clients_are_not_notified_of_changes_of_another_tenant() {
    let tenants = Tenants::create().await;
    mcp::listen(&tenants.probe(&tenants.admin)).await;
}

#[tokio::test]
#[should_panic(expected = "reveals `")]
async fn the_walk_of_routes_notices_what_the_first_tenant_sees() {
    let tenants = Tenants::create().await;
    routes::walk(&tenants.probe(&tenants.server.token), Walker::Admin).await;
}

#[tokio::test]
#[should_panic(expected = "reveals `")]
async fn the_walk_of_mcp_notices_what_the_first_tenant_sees() {
    let tenants = Tenants::create().await;
    mcp::walk(&tenants.probe(&tenants.server.token)).await;
}
