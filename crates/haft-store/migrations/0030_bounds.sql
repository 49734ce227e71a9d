-- Indexes for what looks at a few rows of a large table, and what is no longer kept.

-- The calls that nodes run, for their recovery.
CREATE INDEX calls_running ON calls (node, id) WHERE final = 0 AND status = 'running';
-- The runs that wait for a call that has ended.
CREATE INDEX run_waits_of_call ON run_waits (call_id);
-- The limit of waiting approvals of a tenant.
CREATE INDEX approvals_waiting_of_tenant ON approvals (tenant) WHERE status = 'waiting';
-- The chats that nobody has changed for long, and the workspaces that have changed.
CREATE INDEX chats_by_change ON chats (modified_at);
CREATE INDEX workspaces_by_change ON workspaces (modified_at);
-- The states of workspaces that messages refer to.
CREATE INDEX messages_of_manifest ON messages (manifest_id) WHERE manifest_id IS NOT NULL;

-- Each answer in a chat began with the whole conversation, which the messages of the chat have as well.
UPDATE runs SET input = 'null' WHERE final = 1 AND is_answer = 1;
