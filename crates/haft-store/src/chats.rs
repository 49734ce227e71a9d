//! Chats and their messages.

use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::chat::{Chat, Message, MessageRole};
use haft_core::id::{CallId, ChatId, ManifestId, MessageId, RunId};
use haft_core::limit::LimitName;
use haft_core::live::{ChatAction, ChatEvent, ObjectAudience, ObjectChange, ObjectEvent};
use haft_core::name::TenantId;
use haft_core::run::RunLease;
use haft_core::workspace::WorkspaceName;
use jiff::SignedDuration;
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::claims::holds;
use crate::database::Database;
use crate::engine::failed_to;
use crate::rows;
use crate::runs::Runs;
use crate::runs::retention::delete_runs_of_chat;
use crate::time;

const READ: &str = "read the chat";
const CREATE: &str = "create the chat";
const CHANGE: &str = "change the chat";
const REAP: &str = "remove old chats";

const CHAT: &str =
    "SELECT id, title, owner, owner_name, agent, active_leaf, shared, created_at, modified_at FROM chats";
const MESSAGE: &str = "SELECT id, parent_id, role, body, manifest_id, run_id, created_at FROM messages";
/// Chats that have not changed since a time and have no run that works or waits.
pub(crate) const OLD_CHATS: &str = "SELECT tenant, id FROM chats WHERE modified_at < $1 AND NOT EXISTS \
    (SELECT 1 FROM runs WHERE runs.chat_id = chats.id AND runs.final = 0) ORDER BY modified_at LIMIT $2";
/// How many chats are read at once; each is removed with all that belongs to it.
const CHATS_PER_QUERY: u32 = 50;
/// The longest branch that is read, in messages.
const MAX_BRANCH: u32 = 10_000;
/// The longest text of a message that a search looks at, in bytes.
const MAX_SEARCH_TEXT: usize = 64 * 1024;

/// A chat to create.
#[derive(Debug, Clone)]
pub struct NewChat {
    /// The title.
    pub title: String,
    /// The id of the principal that creates it.
    pub owner: String,
    /// The name of that principal.
    pub owner_name: String,
    /// The slug of the agent that answers, if any.
    pub agent: Option<String>,
}

/// A message to append.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// The message before it; `None` starts a branch at the root.
    pub parent_id: Option<MessageId>,
    /// Who wrote it.
    pub role: MessageRole,
    /// What it says.
    pub content: Value,
    /// The run that writes it, if an agent does.
    pub run_id: Option<RunId>,
}

/// What changes in a chat.
#[derive(Debug, Clone, Default)]
pub struct ChatChange {
    /// The new title.
    pub title: Option<String>,
    /// The last message of the branch to show.
    pub active_leaf: Option<MessageId>,
    /// Whether everybody in the tenant may read it.
    pub shared: Option<bool>,
    /// The slug of the agent that answers from now on.
    pub agent: Option<String>,
}

/// Whose chats are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatScope {
    /// Those of a principal, by its id.
    Owner(String),
    /// Those that everybody in the tenant may read.
    Shared,
    /// All of the tenant.
    All,
}

/// Which chats are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatQuery {
    /// Whose chats.
    pub scope: ChatScope,
    /// A part of the title or of a message, in any case.
    pub q: Option<String>,
    /// Only chats before this one.
    pub before: Option<ChatId>,
    /// The largest number of chats.
    pub limit: u32,
}

/// The chats and their messages.
#[derive(Clone)]
pub struct Chats {
    db: Arc<Database>,
    runs: Runs,
}

impl Chats {
    pub(crate) fn new(db: &Arc<Database>, runs: &Runs) -> Self {
        Self { db: Arc::clone(db), runs: runs.clone() }
    }
}

impl Chats {
    /// Creates a chat.
    pub async fn create(&self, tenant: &TenantId, new: NewChat) -> Result<Chat, StoreError> {
        let now = self.db.now();
        let chat = Chat {
            id: ChatId(time::new_id(&*self.db.clock)),
            title: new.title,
            owner: new.owner,
            owner_name: new.owner_name,
            agent: new.agent,
            active_leaf: None,
            shared: false,
            created_at: now,
            modified_at: now,
        };
        let mut tx = self.db.engine.begin().await.map_err(failed_to(CREATE))?;
        self.db.check_room(&mut tx, tenant, LimitName::Chats).await?;
        let sql = "INSERT INTO chats (id, tenant, owner, owner_name, title, search, agent, created_at, modified_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)";
        sqlx::query(sql)
            .bind(chat.id.to_string())
            .bind(tenant.as_str())
            .bind(&chat.owner)
            .bind(&chat.owner_name)
            .bind(&chat.title)
            .bind(rows::search_text(&chat.title))
            .bind(chat.agent.as_deref())
            .bind(now.as_microsecond())
            .execute(&mut *tx)
            .await
            .map_err(failed_to(CREATE))?;
        tx.commit().await.map_err(failed_to(CREATE))?;
        self.report_chat(tenant, ChatReport::of(&chat), ChatAction::Created);
        Ok(chat)
    }

    /// Returns a chat.
    pub async fn get(&self, tenant: &TenantId, id: ChatId) -> Result<Option<Chat>, StoreError> {
        let sql = AssertSqlSafe(format!("{CHAT} WHERE tenant = $1 AND id = $2"));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(chat).transpose().map_err(failed_to(READ))
    }

    /// Lists chats, newest first.
    pub async fn list(&self, tenant: &TenantId, query: &ChatQuery) -> Result<Vec<Chat>, StoreError> {
        let (scope, owner) = match &query.scope {
            ChatScope::Owner(owner) => ("owner = $3", owner.as_str()),
            ChatScope::Shared => ("shared = 1 AND $3 = ''", ""),
            ChatScope::All => ("$3 = ''", ""),
        };
        // Rows of earlier versions have no text for searches.
        let contains = "(COALESCE(search, LOWER(title)) LIKE $4 ESCAPE '!' OR EXISTS (SELECT 1 FROM messages m \
                        WHERE m.chat_id = chats.id AND COALESCE(m.search, LOWER(m.body)) LIKE $4 ESCAPE '!'))";
        let text = query.q.as_deref().filter(|text| !text.is_empty());
        let search = if text.is_some() { contains } else { "$4 = ''" };
        let sql = AssertSqlSafe(format!(
            "{CHAT} WHERE tenant = $1 AND id < $2 AND {scope} AND {search} ORDER BY id DESC LIMIT $5"
        ));
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(query.before.map_or_else(|| "g".to_owned(), |id| id.to_string()))
            .bind(owner)
            .bind(text.map(rows::containing).unwrap_or_default())
            .bind(i64::from(query.limit))
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(READ))?;
        found.iter().map(chat).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Changes a chat; returns it as it is then, or `None` if it does not exist.
    pub async fn change(
        &self,
        tenant: &TenantId,
        id: ChatId,
        change: ChatChange,
    ) -> Result<Option<Chat>, StoreError> {
        // Those who can no longer read it have to know, too.
        let was_shared = match change.shared {
            Some(false) => self.get(tenant, id).await?.is_some_and(|chat| chat.shared),
            _ => false,
        };
        let sql = "UPDATE chats SET title = COALESCE($1, title), search = COALESCE($2, search), \
                   active_leaf = COALESCE($3, active_leaf), shared = COALESCE($4, shared), agent = COALESCE($5, agent), \
                   modified_at = $6 WHERE tenant = $7 AND id = $8";
        sqlx::query(sql)
            .bind(change.title.as_deref())
            .bind(change.title.as_deref().map(rows::search_text))
            .bind(change.active_leaf.map(|leaf| leaf.to_string()))
            .bind(change.shared.map(i64::from))
            .bind(change.agent.as_deref())
            .bind(self.db.now().as_microsecond())
            .bind(tenant.as_str())
            .bind(id.to_string())
            .execute(&self.db.engine.pool)
            .await
            .map_err(failed_to(CHANGE))?;
        let changed = self.get(tenant, id).await?;
        if let Some(chat) = &changed {
            let report = ChatReport { is_public: chat.shared || was_shared, ..ChatReport::of(chat) };
            self.report_chat(tenant, report, ChatAction::Updated);
        }
        Ok(changed)
    }

    /// Deletes a chat with its messages, its runs and its workspace; returns whether there was one. Calls that its runs
    /// wait for are cancelled.
    pub async fn delete(&self, tenant: &TenantId, id: ChatId) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        let this = self.clone();
        let work = async move {
            let deleted = this.delete_rows(&tenant, id).await.map_err(failed_to("delete the chat"));
            let (deleted, calls) = deleted?;
            this.runs.cancel_waiting_calls(&tenant, calls).await;
            Ok(deleted)
        };
        self.db.complete(work).await
    }

    /// Appends a message, which becomes the last one of the branch that is shown. Returns `None` if the chat or the parent
    /// does not exist.
    pub async fn add_message(
        &self,
        tenant: &TenantId,
        chat: ChatId,
        new: NewMessage,
    ) -> Result<Option<Message>, StoreError> {
        let tenant = tenant.clone();
        let this = self.clone();
        let work = async move {
            let mut tx = this.db.engine.begin().await.map_err(failed_to(CHANGE))?;
            // A question is admitted only if its answer fits, too.
            let needed = if new.role == MessageRole::User { 2 } else { 1 };
            this.db.check_message_room(&mut tx, &tenant, chat, needed).await?;
            // The answer of a run was admitted with its question.
            let quota = match new.run_id {
                Some(_) => None,
                None => Some(this.db.byte_quota(&mut tx, &tenant).await?),
            };
            let inserted =
                this.insert_message(&mut tx, &tenant, chat, new).await.map_err(failed_to(CHANGE))?;
            let Some((message, report)) = inserted else { return Ok(None) };
            if let Some(quota) = quota {
                quota.check(&mut tx, &tenant).await?;
            }
            tx.commit().await.map_err(failed_to(CHANGE))?;
            this.report_chat(&tenant, report, ChatAction::Message);
            Ok(Some(message))
        };
        self.db.complete(work).await
    }

    /// Returns a message.
    pub async fn message(
        &self,
        tenant: &TenantId,
        chat: ChatId,
        id: MessageId,
    ) -> Result<Option<Message>, StoreError> {
        let sql = AssertSqlSafe(format!("{MESSAGE} WHERE tenant = $1 AND chat_id = $2 AND id = $3"));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(chat.to_string()).bind(id.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(message).transpose().map_err(failed_to(READ))
    }

    /// Lists the messages of a chat in the order in which they were written, all branches.
    pub async fn messages(
        &self,
        tenant: &TenantId,
        chat: ChatId,
        after: Option<MessageId>,
        limit: u32,
    ) -> Result<Vec<Message>, StoreError> {
        let sql = AssertSqlSafe(format!(
            "{MESSAGE} WHERE tenant = $1 AND chat_id = $2 AND id > $3 ORDER BY id LIMIT $4"
        ));
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(chat.to_string())
            .bind(after.map(|id| id.to_string()).unwrap_or_default())
            .bind(i64::from(limit))
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(READ))?;
        found.iter().map(message).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Returns a branch: the messages from the root to a leaf, at most the last 10,000. It is empty if the chat has no such
    /// message.
    pub async fn branch(
        &self,
        tenant: &TenantId,
        chat: ChatId,
        leaf: MessageId,
    ) -> Result<Vec<Message>, StoreError> {
        // A left join, so that SQLite looks up the messages of the branch instead of the branch of each message.
        let messages = MESSAGE.replace("FROM messages", "FROM line LEFT JOIN messages ON id = line_id");
        let sql = AssertSqlSafe(format!(
            "WITH RECURSIVE line (line_id, line_parent, depth) AS ( \
             SELECT id, parent_id, 1 FROM messages WHERE tenant = $1 AND chat_id = $2 AND id = $3 \
             UNION ALL SELECT m.id, m.parent_id, line.depth + 1 FROM messages m \
             JOIN line ON m.id = line.line_parent WHERE m.chat_id = $2 AND line.depth < {MAX_BRANCH}) \
             {messages} ORDER BY depth DESC"
        ));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(chat.to_string()).bind(leaf.to_string());
        let found = query.fetch_all(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.iter().map(message).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Replaces the content of a message that no run writes; returns whether there was one.
    pub async fn set_message_content(
        &self,
        tenant: &TenantId,
        chat: ChatId,
        id: MessageId,
        content: Value,
    ) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        let this = self.clone();
        let work = async move {
            let tx = this.db.engine.begin().await.map_err(failed_to(CHANGE))?;
            this.set_content(tx, &tenant, (chat, id), &content).await.map_err(failed_to(CHANGE))
        };
        self.db.complete(work).await
    }

    /// Writes the answer of a run into its chat; returns whether there was such a message. While the run is open, only the
    /// node that holds it may write, under its lease; without one, the run must have ended. Otherwise
    /// [`StoreError::ClaimLost`].
    pub async fn write_answer(
        &self,
        tenant: &TenantId,
        (chat, message): (ChatId, MessageId),
        (run, lease): (RunId, Option<&RunLease>),
        content: Value,
    ) -> Result<bool, StoreError> {
        let (tenant, lease) = (tenant.clone(), lease.cloned());
        let this = self.clone();
        let work = async move {
            let mut tx = this.db.engine.begin().await.map_err(failed_to(CHANGE))?;
            if !this.may_answer(&mut tx, run, lease.as_ref()).await.map_err(failed_to(CHANGE))? {
                return Err(StoreError::ClaimLost);
            }
            this.set_content(tx, &tenant, (chat, message), &content).await.map_err(failed_to(CHANGE))
        };
        self.db.complete(work).await
    }

    /// Returns the state of the workspace at a message: its own, or that of the nearest message before it.
    pub async fn manifest_of_message(
        &self,
        tenant: &TenantId,
        chat: ChatId,
        id: MessageId,
    ) -> Result<Option<ManifestId>, StoreError> {
        let sql = "WITH RECURSIVE line (id, parent_id, manifest_id, depth) AS ( \
                   SELECT id, parent_id, manifest_id, 0 FROM messages WHERE tenant = $1 AND chat_id = $2 AND id = $3 \
                   UNION ALL SELECT m.id, m.parent_id, m.manifest_id, line.depth + 1 FROM messages m \
                   JOIN line ON m.id = line.parent_id WHERE line.manifest_id IS NULL AND line.depth < 10000) \
                   SELECT manifest_id FROM line WHERE manifest_id IS NOT NULL ORDER BY depth LIMIT 1";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(chat.to_string()).bind(id.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.map(|row| rows::parse_column(&row, "manifest_id")).transpose().map_err(failed_to(READ))
    }

    /// Returns the state of the workspace before the first message of a chat; `None` if it was empty.
    pub async fn manifest_before_messages(
        &self,
        tenant: &TenantId,
        chat: ChatId,
    ) -> Result<Option<ManifestId>, StoreError> {
        // Ids grow with time.
        let sql = "SELECT id FROM workspace_manifests WHERE tenant = $1 AND workspace = $2 AND id < \
                   (SELECT MIN(id) FROM messages WHERE tenant = $1 AND chat_id = $3) ORDER BY id DESC LIMIT 1";
        let workspace = WorkspaceName::Chat(chat).to_string();
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(workspace).bind(chat.to_string());
        let found = query.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.map(|row| rows::parse_column(&row, "id")).transpose().map_err(failed_to(READ))
    }
}

impl Chats {
    /// Returns whether the chat existed, and the calls that no run waits for any more.
    async fn delete_rows(&self, tenant: &TenantId, id: ChatId) -> Result<(bool, Vec<CallId>), sqlx::Error> {
        let mut tx = self.db.engine.begin().await?;
        let calls = delete_runs_of_chat(&mut tx, tenant, id).await?;
        let workspace = WorkspaceName::Chat(id).to_string();
        for sql in [
            "DELETE FROM workspace_manifests WHERE tenant = $1 AND workspace = $2",
            "DELETE FROM workspaces WHERE tenant = $1 AND name = $2",
        ] {
            sqlx::query(sql).bind(tenant.as_str()).bind(&workspace).execute(&mut *tx).await?;
        }
        let query = sqlx::query("DELETE FROM messages WHERE tenant = $1 AND chat_id = $2");
        query.bind(tenant.as_str()).bind(id.to_string()).execute(&mut *tx).await?;
        let sql = "DELETE FROM chats WHERE tenant = $1 AND id = $2 RETURNING owner, shared";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
        let deleted = query.fetch_optional(&mut *tx).await?;
        let report = deleted.map(|row| ChatReport::read(&row, id, None)).transpose()?;
        crate::audit::store_current_record(&mut tx, &id.to_string()).await?;
        tx.commit().await?;
        let is_deleted = report.is_some();
        if let Some(report) = report {
            self.report_chat(tenant, report, ChatAction::Deleted);
        }
        Ok((is_deleted, calls))
    }
}

impl Chats {
    async fn insert_message(
        &self,
        tx: &mut Transaction<'static, Any>,
        tenant: &TenantId,
        chat: ChatId,
        new: NewMessage,
    ) -> Result<Option<(Message, ChatReport)>, sqlx::Error> {
        if let Some(parent) = new.parent_id
            && !has_message(tx, tenant, chat, parent).await?
        {
            return Ok(None);
        }
        let message = Message {
            id: MessageId(time::new_id(&*self.db.clock)),
            parent_id: new.parent_id,
            role: new.role,
            content: new.content,
            manifest_id: None,
            run_id: new.run_id,
            created_at: self.db.now(),
        };
        let body = message.content.to_string();
        let sql = "UPDATE chats SET active_leaf = $1, modified_at = $2, bytes = bytes + $3 \
                   WHERE tenant = $4 AND id = $5 RETURNING owner, shared";
        let updated = sqlx::query(sql)
            .bind(message.id.to_string())
            .bind(message.created_at.as_microsecond())
            .bind(i64::try_from(body.len()).unwrap_or(i64::MAX))
            .bind(tenant.as_str())
            .bind(chat.to_string())
            .fetch_optional(&mut **tx)
            .await?;
        let Some(updated) = updated else { return Ok(None) };
        let report = ChatReport::read(&updated, chat, Some(message.id))?;
        let sql = "INSERT INTO messages (id, tenant, chat_id, parent_id, role, body, search, run_id, created_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        sqlx::query(sql)
            .bind(message.id.to_string())
            .bind(tenant.as_str())
            .bind(chat.to_string())
            .bind(message.parent_id.map(|id| id.to_string()))
            .bind(message.role.as_str())
            .bind(body)
            .bind(searchable(&message.content))
            .bind(message.run_id.map(|id| id.to_string()))
            .bind(message.created_at.as_microsecond())
            .execute(&mut **tx)
            .await?;
        Ok(Some((message, report)))
    }
}

impl Chats {
    /// Removes chats beyond their retention, with all their data.
    pub(crate) async fn reap(&self) -> Result<(), StoreError> {
        let days = self.db.retention.chat_days;
        if days == 0 {
            return Ok(());
        }
        let oldest = (self.db.now() - SignedDuration::from_hours(24 * i64::from(days))).as_microsecond();
        loop {
            let found = sqlx::query(OLD_CHATS).bind(oldest).bind(i64::from(CHATS_PER_QUERY));
            let found = found.fetch_all(&self.db.engine.pool).await.map_err(failed_to(REAP))?;
            for row in &found {
                let tenant: TenantId = rows::parse_column(row, "tenant").map_err(failed_to(REAP))?;
                let id: ChatId = rows::parse_column(row, "id").map_err(failed_to(REAP))?;
                let (_, calls) = self.delete_rows(&tenant, id).await.map_err(failed_to(REAP))?;
                self.runs.cancel_waiting_calls(&tenant, calls).await;
            }
            if found.len() < CHATS_PER_QUERY as usize {
                return Ok(());
            }
        }
    }
}

/// What is reported of a chat.
struct ChatReport {
    id: ChatId,
    owner: Arc<str>,
    shared: bool,
    /// Whether everybody in the tenant may know.
    is_public: bool,
    message: Option<MessageId>,
}

impl ChatReport {
    fn of(chat: &Chat) -> Self {
        let owner = Arc::from(chat.owner.as_str());
        Self { id: chat.id, owner, shared: chat.shared, is_public: chat.shared, message: None }
    }

    fn read(row: &AnyRow, id: ChatId, message: Option<MessageId>) -> Result<Self, sqlx::Error> {
        let shared = rows::boolean(row, "shared")?;
        let owner = Arc::from(row.try_get::<&str, _>("owner")?);
        Ok(Self { id, owner, shared, is_public: shared, message })
    }
}

impl Chats {
    fn report_chat(&self, tenant: &TenantId, report: ChatReport, change: ChatAction) {
        let ChatReport { id, owner, shared, is_public, message } = report;
        let audience = if is_public { ObjectAudience::Tenant } else { ObjectAudience::OwnerAndAdmins(owner) };
        let event = ObjectEvent::Chat(ChatEvent { change, id, shared, message_id: message });
        self.db.report_object(ObjectChange { tenant: tenant.clone(), audience, event });
    }
}

impl Chats {
    /// Tells whether the answer of a run may be written, and locks the run so that nobody claims it before that is done.
    async fn may_answer(
        &self,
        tx: &mut Transaction<'static, Any>,
        run: RunId,
        lease: Option<&RunLease>,
    ) -> Result<bool, sqlx::Error> {
        let condition = match lease {
            Some(_) => format!("status = 'running' AND {}", holds(2)),
            None => "final = 1".to_owned(),
        };
        let lock = self.db.engine.row_lock();
        let sql = AssertSqlSafe(format!("SELECT 1 FROM runs WHERE id = $1 AND {condition} {lock}"));
        let claim = lease.map(|lease| self.runs.claim_of(lease));
        let query = sqlx::query(sql).bind(run.to_string());
        let query = match &claim {
            Some(claim) => claim.bind(query),
            None => query,
        };
        Ok(query.fetch_optional(&mut **tx).await?.is_some())
    }

    async fn set_content(
        &self,
        mut tx: Transaction<'static, Any>,
        tenant: &TenantId,
        (chat, id): (ChatId, MessageId),
        content: &Value,
    ) -> Result<bool, sqlx::Error> {
        let body = content.to_string();
        // Before the message, whose old size it subtracts.
        let sql = "UPDATE chats SET modified_at = $1, bytes = bytes + COALESCE((SELECT $2 - OCTET_LENGTH(m.body) \
                   FROM messages m WHERE m.tenant = $3 AND m.chat_id = $4 AND m.id = $5), 0) \
                   WHERE tenant = $3 AND id = $4 RETURNING owner, shared";
        let touch = sqlx::query(sql)
            .bind(self.db.now().as_microsecond())
            .bind(i64::try_from(body.len()).unwrap_or(i64::MAX))
            .bind(tenant.as_str())
            .bind(chat.to_string())
            .bind(id.to_string());
        let touched = touch.fetch_optional(&mut *tx).await?;
        let sql = "UPDATE messages SET body = $1, search = $2 WHERE tenant = $3 AND chat_id = $4 AND id = $5";
        let updated = sqlx::query(sql)
            .bind(body)
            .bind(searchable(content))
            .bind(tenant.as_str())
            .bind(chat.to_string())
            .bind(id.to_string())
            .execute(&mut *tx)
            .await?;
        let report = touched.map(|row| ChatReport::read(&row, chat, Some(id))).transpose()?;
        tx.commit().await?;
        let is_updated = updated.rows_affected() > 0;
        if let Some(report) = report.filter(|_| is_updated) {
            self.report_chat(tenant, report, ChatAction::Answer);
        }
        Ok(is_updated)
    }
}

/// Returns the texts of a message as searches compare them: the message itself, or its blocks with a `text`.
fn searchable(content: &Value) -> String {
    let mut text = String::new();
    let blocks = match content {
        Value::String(whole) => {
            text.push_str(whole);
            &[]
        }
        Value::Array(blocks) => blocks.as_slice(),
        _ => &[],
    };
    for block in blocks.iter().filter_map(|block| block.get("text")?.as_str()) {
        if text.len() >= MAX_SEARCH_TEXT {
            break;
        }
        text.push_str(block);
        text.push('\n');
    }
    if text.len() > MAX_SEARCH_TEXT {
        text.truncate(text.floor_char_boundary(MAX_SEARCH_TEXT));
    }
    rows::search_text(&text)
}

async fn has_message(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    chat: ChatId,
    id: MessageId,
) -> Result<bool, sqlx::Error> {
    let sql = "SELECT 1 FROM messages WHERE tenant = $1 AND chat_id = $2 AND id = $3";
    let query = sqlx::query(sql).bind(tenant.as_str()).bind(chat.to_string()).bind(id.to_string());
    Ok(query.fetch_optional(&mut **tx).await?.is_some())
}

fn chat(row: &AnyRow) -> Result<Chat, sqlx::Error> {
    let leaf: Option<String> = row.try_get("active_leaf")?;
    Ok(Chat {
        id: rows::parse_column(row, "id")?,
        title: row.try_get("title")?,
        owner: row.try_get("owner")?,
        owner_name: row.try_get("owner_name")?,
        agent: row.try_get("agent")?,
        active_leaf: leaf.and_then(|id| id.parse().ok()),
        shared: rows::boolean(row, "shared")?,
        created_at: rows::timestamp(row, "created_at")?,
        modified_at: rows::timestamp(row, "modified_at")?,
    })
}

fn message(row: &AnyRow) -> Result<Message, sqlx::Error> {
    let id = |column: &str| row.try_get::<Option<String>, _>(column);
    let role: String = row.try_get("role")?;
    Ok(Message {
        id: rows::parse_column(row, "id")?,
        parent_id: id("parent_id")?.and_then(|id| id.parse().ok()),
        role: MessageRole::parse(&role)
            .ok_or_else(|| sqlx::Error::Decode(format!("unknown role `{role}`").into()))?,
        content: rows::json_column(row, "body")?,
        manifest_id: id("manifest_id")?.and_then(|id| id.parse().ok()),
        run_id: id("run_id")?.and_then(|id| id.parse().ok()),
        created_at: rows::timestamp(row, "created_at")?,
    })
}
