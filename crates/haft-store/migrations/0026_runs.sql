-- Runs of agents, step by step.

CREATE TABLE runs (
    -- Also the order of lists.
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    -- Who asked for it: the id of the token, or a name.
    principal TEXT NOT NULL,
    chat_id TEXT,
    -- Whether it answers in the chat itself, and not inside of a call.
    is_answer BIGINT NOT NULL,
    parent_run TEXT,
    status TEXT NOT NULL,
    final BIGINT NOT NULL,
    -- The process that runs it.
    node TEXT NOT NULL,
    -- Grows with each claim: only the last one may write.
    fence BIGINT NOT NULL,
    -- Set by whoever wants a running run to stop; the node that runs it looks.
    cancel_requested BIGINT NOT NULL,
    -- JSON: what is known when it is requested, without the conversation.
    record TEXT NOT NULL,
    -- JSON: the conversation before the first step.
    input TEXT NOT NULL,
    -- JSON.
    usage TEXT NOT NULL,
    output TEXT,
    error TEXT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT
);
CREATE INDEX runs_of_tenant ON runs (tenant, id);
CREATE INDEX runs_of_agent ON runs (agent_id, id);
CREATE INDEX runs_of_principal ON runs (tenant, principal, id);
CREATE INDEX runs_of_chat ON runs (chat_id, id) WHERE chat_id IS NOT NULL;
CREATE INDEX runs_of_parent ON runs (parent_run, id) WHERE parent_run IS NOT NULL;
-- Few runs are open: looking for one to claim costs little, however many have ended.
CREATE INDEX runs_open ON runs (status, id) WHERE final = 0;
-- A chat has one answer at a time.
CREATE UNIQUE INDEX runs_open_in_chat ON runs (chat_id) WHERE final = 0 AND is_answer = 1;

-- Steps never change.
CREATE TABLE run_steps (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    -- JSON.
    step TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
);

-- The calls that a run waits for.
CREATE TABLE run_waits (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    call_id TEXT NOT NULL,
    PRIMARY KEY (run_id, call_id)
);

-- Whether everybody in the tenant may read the chat.
ALTER TABLE chats ADD COLUMN shared BIGINT NOT NULL DEFAULT 0;
CREATE INDEX chats_shared ON chats (tenant, id) WHERE shared = 1;
-- Titles and texts in lower case, for searches; NULL in rows of earlier versions.
ALTER TABLE chats ADD COLUMN search TEXT;
ALTER TABLE messages ADD COLUMN search TEXT;
-- The run that wrote the message.
ALTER TABLE messages ADD COLUMN run_id TEXT;
