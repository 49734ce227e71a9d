-- Chats, their messages, and the workspaces that calls work in.

CREATE TABLE chats (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    -- The id and name of the principal that created it.
    owner TEXT NOT NULL,
    owner_name TEXT NOT NULL,
    title TEXT NOT NULL,
    -- The slug of the agent that answers, if any.
    agent TEXT,
    -- The last message of the branch that is shown.
    active_leaf TEXT,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL
);
CREATE INDEX chats_of_owner ON chats (tenant, owner, modified_at);
CREATE INDEX chats_of_tenant ON chats (tenant, modified_at);

CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    -- The message that it answers or follows; branches have the same parent.
    parent_id TEXT,
    role TEXT NOT NULL,
    -- JSON.
    body TEXT NOT NULL,
    -- The state of the workspace after the message; NULL: that of the nearest ancestor.
    manifest_id TEXT,
    created_at BIGINT NOT NULL
);
CREATE INDEX messages_of_chat ON messages (chat_id, id);

CREATE TABLE workspaces (
    tenant TEXT NOT NULL,
    -- `chat:<id>`, or a name that a caller chose.
    name TEXT NOT NULL,
    active_manifest TEXT,
    -- The node and the call that may change it; only where nodes share a database.
    lease_node TEXT,
    lease_id TEXT,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE workspace_manifests (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    workspace TEXT NOT NULL,
    -- The state before.
    parent_id TEXT,
    -- JSON: where the root folder is stored.
    root TEXT NOT NULL,
    files BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    -- `tool_run`, `edit`, `user_upload`, `restore`, `branch`.
    source TEXT NOT NULL,
    -- The call, the message or the manifest that it comes from.
    source_ref TEXT,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX workspace_manifests_of_workspace ON workspace_manifests (tenant, workspace, id);
