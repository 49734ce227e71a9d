//! Chats and their messages.

use haft_core::catalog::StoreError;
use haft_core::chat::{Chat, Message, MessageRole};
use haft_core::id::{ChatId, ManifestId, MessageId};
use haft_core::name::TenantId;
use haft_core::workspace::WorkspaceName;
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::engine::failed_to;
use crate::rows;
use crate::store::{Inner, Store};
use crate::time;

const READ: &str = "read the chat";
const CHANGE: &str = "change the chat";

const CHAT: &str =
    "SELECT id, title, owner, owner_name, agent, active_leaf, created_at, modified_at FROM chats";
const MESSAGE: &str = "SELECT id, parent_id, role, body, manifest_id, created_at FROM messages";

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
}

/// What changes in a chat.
#[derive(Debug, Clone, Default)]
pub struct ChatChange {
    /// The new title.
    pub title: Option<String>,
    /// The last message of the branch to show.
    pub active_leaf: Option<MessageId>,
}

impl Store {
    /// Creates a chat.
    pub async fn create_chat(&self, tenant: &TenantId, new: NewChat) -> Result<Chat, StoreError> {
        let inner = &self.inner;
        let now = inner.now();
        let chat = Chat {
            id: ChatId(time::new_id(&*inner.clock)),
            title: new.title,
            owner: new.owner,
            owner_name: new.owner_name,
            agent: new.agent,
            active_leaf: None,
            created_at: now,
            modified_at: now,
        };
        let sql = "INSERT INTO chats (id, tenant, owner, owner_name, title, agent, created_at, modified_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $7)";
        sqlx::query(sql)
            .bind(chat.id.to_string())
            .bind(tenant.as_str())
            .bind(&chat.owner)
            .bind(&chat.owner_name)
            .bind(&chat.title)
            .bind(chat.agent.as_deref())
            .bind(now.as_microsecond())
            .execute(&inner.engine.pool)
            .await
            .map_err(failed_to("create the chat"))?;
        Ok(chat)
    }

    /// Returns a chat.
    pub async fn chat(&self, tenant: &TenantId, id: ChatId) -> Result<Option<Chat>, StoreError> {
        let sql = AssertSqlSafe(format!("{CHAT} WHERE tenant = $1 AND id = $2"));
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
        let found = query.fetch_optional(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        found.as_ref().map(chat).transpose().map_err(failed_to(READ))
    }

    /// Lists chats, newest first: those of one owner, or all of the tenant.
    pub async fn chats(
        &self,
        tenant: &TenantId,
        owner: Option<&str>,
        before: Option<ChatId>,
        limit: u32,
    ) -> Result<Vec<Chat>, StoreError> {
        let sql = AssertSqlSafe(format!(
            "{CHAT} WHERE tenant = $1 AND ($2 = '' OR owner = $2) AND id < $3 ORDER BY id DESC LIMIT $4"
        ));
        let found = sqlx::query(sql)
            .bind(tenant.as_str())
            .bind(owner.unwrap_or_default())
            .bind(before.map_or_else(|| "g".to_owned(), |id| id.to_string()))
            .bind(i64::from(limit))
            .fetch_all(&self.inner.engine.pool)
            .await
            .map_err(failed_to(READ))?;
        found.iter().map(chat).collect::<Result<_, _>>().map_err(failed_to(READ))
    }

    /// Changes a chat; returns it as it is then, or `None` if it does not exist.
    pub async fn change_chat(
        &self,
        tenant: &TenantId,
        id: ChatId,
        change: ChatChange,
    ) -> Result<Option<Chat>, StoreError> {
        let sql = "UPDATE chats SET title = COALESCE($1, title), active_leaf = COALESCE($2, active_leaf), \
                   modified_at = $3 WHERE tenant = $4 AND id = $5";
        sqlx::query(sql)
            .bind(change.title)
            .bind(change.active_leaf.map(|leaf| leaf.to_string()))
            .bind(self.inner.now().as_microsecond())
            .bind(tenant.as_str())
            .bind(id.to_string())
            .execute(&self.inner.engine.pool)
            .await
            .map_err(failed_to(CHANGE))?;
        self.chat(tenant, id).await
    }

    /// Deletes a chat with its messages and its workspace; returns whether there was one.
    pub async fn delete_chat(&self, tenant: &TenantId, id: ChatId) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        self.run(move |inner| async move {
            inner.delete_chat(&tenant, id).await.map_err(failed_to("delete the chat"))
        })
        .await
    }

    /// Appends a message, which becomes the last one of the branch that is shown. Returns `None` if the chat or the parent
    /// does not exist.
    pub async fn add_message(
        &self,
        tenant: &TenantId,
        id: ChatId,
        new: NewMessage,
    ) -> Result<Option<Message>, StoreError> {
        let tenant = tenant.clone();
        self.run(
            move |inner| async move { inner.add_message(&tenant, id, new).await.map_err(failed_to(CHANGE)) },
        )
        .await
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
        let found = query.fetch_optional(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
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
            .fetch_all(&self.inner.engine.pool)
            .await
            .map_err(failed_to(READ))?;
        found.iter().map(message).collect::<Result<_, _>>().map_err(failed_to(READ))
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
        let found = query.fetch_optional(&self.inner.engine.pool).await.map_err(failed_to(READ))?;
        found.map(|row| rows::parse_column(&row, "manifest_id")).transpose().map_err(failed_to(READ))
    }
}

impl Inner {
    async fn delete_chat(&self, tenant: &TenantId, id: ChatId) -> Result<bool, sqlx::Error> {
        let mut tx = self.engine.begin().await?;
        let workspace = WorkspaceName::Chat(id).to_string();
        for sql in [
            "DELETE FROM workspace_manifests WHERE tenant = $1 AND workspace = $2",
            "DELETE FROM workspaces WHERE tenant = $1 AND name = $2",
        ] {
            sqlx::query(sql).bind(tenant.as_str()).bind(&workspace).execute(&mut *tx).await?;
        }
        let mut deleted = 0;
        for sql in [
            "DELETE FROM messages WHERE tenant = $1 AND chat_id = $2",
            "DELETE FROM chats WHERE tenant = $1 AND id = $2",
        ] {
            let query = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
            deleted = query.execute(&mut *tx).await?.rows_affected();
        }
        crate::audit::store_current_record(&mut tx, &id.to_string()).await?;
        tx.commit().await?;
        Ok(deleted > 0)
    }

    async fn add_message(
        &self,
        tenant: &TenantId,
        chat: ChatId,
        new: NewMessage,
    ) -> Result<Option<Message>, sqlx::Error> {
        let mut tx = self.engine.begin().await?;
        if let Some(parent) = new.parent_id
            && !has_message(&mut tx, tenant, chat, parent).await?
        {
            return Ok(None);
        }
        let message = Message {
            id: MessageId(time::new_id(&*self.clock)),
            parent_id: new.parent_id,
            role: new.role,
            content: new.content,
            manifest_id: None,
            created_at: self.now(),
        };
        let sql = "UPDATE chats SET active_leaf = $1, modified_at = $2 WHERE tenant = $3 AND id = $4";
        let updated = sqlx::query(sql)
            .bind(message.id.to_string())
            .bind(message.created_at.as_microsecond())
            .bind(tenant.as_str())
            .bind(chat.to_string())
            .execute(&mut *tx)
            .await?;
        if updated.rows_affected() == 0 {
            return Ok(None);
        }
        let sql = "INSERT INTO messages (id, tenant, chat_id, parent_id, role, body, created_at) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        sqlx::query(sql)
            .bind(message.id.to_string())
            .bind(tenant.as_str())
            .bind(chat.to_string())
            .bind(message.parent_id.map(|id| id.to_string()))
            .bind(message.role.as_str())
            .bind(message.content.to_string())
            .bind(message.created_at.as_microsecond())
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(Some(message))
    }
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
        created_at: rows::timestamp(row, "created_at")?,
    })
}
