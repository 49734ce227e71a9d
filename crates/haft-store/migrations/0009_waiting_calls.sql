-- Calls that wait: in the queue, for approval, or for a node that has lost its connection.

-- Who called: the id of the token, or a name. An idempotency key belongs to one caller.
ALTER TABLE calls ADD COLUMN principal TEXT NOT NULL DEFAULT '';
-- When a call in the queue may run.
ALTER TABLE calls ADD COLUMN due_at BIGINT NOT NULL DEFAULT 0;
-- Set by whoever wants a running call to stop; the node that runs it looks.
ALTER TABLE calls ADD COLUMN cancel_requested BIGINT NOT NULL DEFAULT 0;
DROP INDEX calls_by_key;
CREATE UNIQUE INDEX calls_by_key ON calls (tenant, principal, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX calls_pending ON calls (tenant, id) WHERE status = 'pending';
CREATE INDEX calls_to_cancel ON calls (node) WHERE cancel_requested = 1 AND final = 0;

-- The living nodes. A node whose beat stands still has lost its lease.
CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    beat BIGINT NOT NULL
);

-- What queued calls wrote while they ran.
CREATE TABLE call_events (
    call_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (call_id, number)
);

CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    call_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    -- The hash of tool, revision and arguments: a repeated call has the same.
    subject TEXT NOT NULL,
    status TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- Whether a repeated call has picked the decision up.
    collected BIGINT NOT NULL,
    record TEXT NOT NULL
);
CREATE INDEX approvals_of_tenant ON approvals (tenant, id);
CREATE UNIQUE INDEX approvals_of_call ON approvals (call_id);
CREATE INDEX approvals_of_subject ON approvals (tenant, principal, subject) WHERE collected = 0;
CREATE INDEX approvals_waiting ON approvals (expires_at) WHERE status = 'waiting';

-- Decisions that are remembered. An empty column covers every value.
CREATE TABLE approval_grants (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    tool_id TEXT NOT NULL,
    definition_hash TEXT NOT NULL,
    principal TEXT NOT NULL,
    session TEXT NOT NULL,
    args_digest TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX approval_grants_of_tool ON approval_grants (tenant, tool_id);
