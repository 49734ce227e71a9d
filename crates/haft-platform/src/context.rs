//! The state that the capabilities of an installation share: settings, store, catalog in memory, pipeline of calls, and the
//! state of this node.
//!
//! Capabilities take a [`Context`] and the few other services that they need; the context depends on none of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use haft_core::actor::{ENVIRONMENT_TOKEN, LOCAL_OWNER, LOCAL_OWNER_KEY, login_key};
use haft_core::catalog::StoreError;
use haft_core::id::{ActorId, TokenId};
use haft_core::ledger::Ledger;
use haft_core::name::TenantId;
use haft_core::principal::AllowList;
use haft_core::secret::{Secret, SecretError};
use haft_core::token::{Role, TokenRecord};
use haft_core::{Clock, Timestamp, hash};
use haft_executors::egress::Egress;
use haft_executors::files::Files;
use haft_mcp::client::McpClients;
use haft_oauth::mac::MacKey;
use haft_runtime::pipeline::Pipeline;
use haft_runtime::registry::Registry;
use haft_sandbox::Sandbox;
use haft_store::{AccessChanges, MemberRecords, Store};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::access::{Access, LostAccess};
use crate::access_records::AccessRecords;
use crate::artifact_host::ArtifactHost;
use crate::attempt_limit::AttemptLimit;
use crate::client_documents::ClientDocuments;
use crate::events::{EventHub, LiveEvent};
use crate::issuers::Issuers;
use crate::known_agents::KnownAgents;
use crate::models::ModelConnections;
use crate::policy::PolicyState;
use crate::retrieval::RetrievalHost;
use crate::search::ToolSearch;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::tenant_files;
use crate::workspaces::WorkspaceHost;

/// The state that the capabilities of an installation share.
pub struct Context {
    pub(crate) settings: Settings,
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policy: PolicyState,
    pub(crate) access: Arc<Access>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) events: Arc<EventHub>,
    pub(crate) search: Arc<ToolSearch>,
    pub(crate) local_token: Secret,
    pub(crate) files: Files,
    pub(crate) sandbox: Sandbox,
    pub(crate) egress: Egress,
    pub(crate) mcp_clients: Arc<McpClients>,
    pub(crate) models: ModelConnections,
    pub(crate) agents: KnownAgents,
    pub(crate) retrieval: Arc<RetrievalHost>,
    pub(crate) artifacts: Arc<ArtifactHost>,
    pub(crate) workspaces: Arc<WorkspaceHost>,
    pub(crate) issuers: Arc<Issuers>,
    pub(crate) application_key: MacKey,
    pub(crate) client_documents: ClientDocuments,
    pub(crate) document_failures: AttemptLimit,
    pub(crate) device_polls: Notify,
}

impl Context {
    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Is notified when a login at a provider has begun whose result this server asks for.
    pub(crate) fn device_polls(&self) -> &Notify {
        &self.device_polls
    }

    /// Returns an admin token for the owner of the home folder.
    pub fn local_token(&self) -> Secret {
        self.settings.token.clone().unwrap_or_else(|| self.local_token.clone())
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub fn ledger(&self) -> &dyn Ledger {
        self.store.calls()
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub fn search(&self) -> &Arc<ToolSearch> {
        &self.search
    }

    /// Returns the live events.
    pub fn events(&self) -> &Arc<EventHub> {
        &self.events
    }

    /// Returns the connections to models.
    pub fn models(&self) -> &ModelConnections {
        &self.models
    }

    /// Returns the agents that tools refer to.
    pub fn agents(&self) -> &KnownAgents {
        &self.agents
    }

    /// Returns the retrieval pipelines on this node.
    pub fn retrieval(&self) -> &Arc<RetrievalHost> {
        &self.retrieval
    }

    /// Returns the code artifacts.
    pub fn artifacts(&self) -> &ArtifactHost {
        &self.artifacts
    }

    /// Returns the clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn pipeline(&self) -> &Arc<Pipeline> {
        &self.pipeline
    }

    /// Returns the workspaces of this node.
    pub fn workspaces(&self) -> &Arc<WorkspaceHost> {
        &self.workspaces
    }

    /// Returns the guard of outgoing connections.
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    pub fn mcp_clients(&self) -> &McpClients {
        &self.mcp_clients
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Returns the key by which the tokens of applications are recognised.
    pub fn application_key(&self) -> &MacKey {
        &self.application_key
    }

    /// Returns the descriptions of applications that this node has fetched.
    pub fn client_documents(&self) -> &ClientDocuments {
        &self.client_documents
    }

    /// Returns the limit of descriptions that cannot be read.
    pub fn document_failures(&self) -> &AttemptLimit {
        &self.document_failures
    }

    pub fn access(&self) -> &Arc<Access> {
        &self.access
    }

    /// Returns the issuers of OpenID Connect.
    pub fn issuers(&self) -> &Issuers {
        &self.issuers
    }

    /// Returns the policy rules.
    pub fn policy(&self) -> &PolicyState {
        &self.policy
    }

    /// Compiles every definition, so that lists show which tools are ready; a server does this in the background.
    pub async fn verify(&self) {
        let registry = Arc::clone(&self.registry);
        if let Err(error) = tokio::task::spawn_blocking(move || registry.verify()).await {
            tracing::error!(error = %error, "failed to compile the definitions");
        }
    }

    /// Returns the values of `${…}`.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Returns whether `${NAME}` has a value. One outside of haft is not read: its source must be configured.
    pub async fn has_secret(&self, tenant: &TenantId, name: &str) -> Result<bool, SecretError> {
        Ok(self.secrets.missing(tenant, name).await?.is_none())
    }

    /// Reloads what changed of tenants, people, tokens and sessions.
    pub async fn reload_access(&self) -> Result<(), StoreError> {
        let mut known = self.access.reload.lock().await;
        let (generation, changes) = self.store.access().changes_since(*known).await?;
        match changes {
            AccessChanges::Everything => self.load_access().await?,
            AccessChanges::Actors(ids) if ids.is_empty() => {}
            AccessChanges::Actors(ids) => self.load_actors(&ids).await?,
        }
        *known = Some(generation);
        Ok(())
    }

    async fn load_access(&self) -> Result<(), StoreError> {
        let access = self.store.access();
        let mut tokens = access.tokens().await?;
        tokens.extend(self.unstored_tokens());
        let lost = self.access.replace(&AccessRecords {
            tenants: self.store.tenants().all().await?,
            tokens,
            sessions: access.sessions().await?,
            actors: access.actors().await?,
            memberships: access.memberships().await?,
            assigned: access.assigned_rights().await?,
            groups: access.groups().await?,
        });
        self.end_access(&lost);
        tenant_files::apply(&self.settings, &self.files, &self.access.tenants(), lost.gone_tenants).await;
        Ok(())
    }

    async fn load_actors(&self, ids: &BTreeSet<ActorId>) -> Result<(), StoreError> {
        let access = self.store.access();
        let wanted: Vec<ActorId> = ids.iter().copied().collect();
        let MemberRecords { actors, memberships, assigned, groups, mut tokens } =
            access.member_records(&wanted).await?;
        tokens.extend(self.unstored_tokens().filter(|token| token.actor.is_some_and(|id| ids.contains(&id))));
        let logins = memberships.iter().map(|own| login_key(own.actor, &own.tenant));
        let values = tokens.iter().flat_map(|token| {
            let previous = token.previous.as_ref().map(|previous| previous.hash.clone());
            [Some(token.hash.clone()), previous].into_iter().flatten()
        });
        let openers: Vec<String> = logins.chain(values).collect();
        let sessions = access.sessions_of(openers).await?;
        let records =
            AccessRecords { tenants: Vec::new(), tokens, sessions, actors, memberships, assigned, groups };
        self.end_access(&self.access.replace_actors(ids, &records));
        Ok(())
    }

    /// Ends what is running of those who lost their access, and shows the changes on pages.
    fn end_access(&self, lost: &LostAccess) {
        lost.stopped_tenants.iter().for_each(|tenant| self.pipeline.stop_tenant(tenant));
        for (tenant, event) in &lost.changed_members {
            self.events.publish(tenant, LiveEvent::of_member(event));
        }
        for (tenant, actor) in &lost.actors {
            self.pipeline.stop_actor(tenant, *actor);
            self.mcp_clients.close_person(tenant, *actor);
        }
    }

    /// Returns the tokens of the home folder and of the environment, which are not stored.
    fn unstored_tokens(&self) -> impl Iterator<Item = TokenRecord> {
        let of_environment =
            self.settings.token.as_ref().map(|token| self.unstored_token(ENVIRONMENT_TOKEN, token));
        std::iter::once(self.unstored_token(LOCAL_OWNER_KEY, &self.local_token)).chain(of_environment)
    }

    fn unstored_token(&self, name: &str, token: &Secret) -> TokenRecord {
        TokenRecord {
            // The nil id, because the token is not stored.
            id: TokenId(Uuid::nil()),
            tenant: TenantId::default_tenant(),
            name: name.to_owned(),
            hash: hash::of_bytes(token.expose().as_bytes()),
            role: Role::Admin,
            elevated: true,
            platform: true,
            tools: AllowList::default(),
            rate_limit: None,
            created_at: self.now(),
            expires_at: None,
            last_used_at: None,
            previous: None,
            parent: None,
            actor: Some(LOCAL_OWNER),
        }
    }
}
