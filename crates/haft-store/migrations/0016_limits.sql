-- Limits, and the columns that the audit of calls is filtered by.

-- The rate limit of a token as JSON; NULL for none.
ALTER TABLE tokens ADD COLUMN rate_limit TEXT;

-- With PostgreSQL: the recent calls of each rate that nodes share, as JSON.
CREATE TABLE rate_windows (
    key TEXT PRIMARY KEY,
    batches TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);

-- With PostgreSQL: how many calls each node runs at the same time, where that is limited. Rows of nodes that have lost
-- their lease do not count.
CREATE TABLE parallel_calls (
    key TEXT NOT NULL,
    node TEXT NOT NULL,
    held BIGINT NOT NULL,
    PRIMARY KEY (key, node)
);

-- The policy rule that decided about a call, and how it was authorised if not simply allowed.
ALTER TABLE calls ADD COLUMN rule TEXT;
ALTER TABLE calls ADD COLUMN decision TEXT;
CREATE INDEX calls_of_rule ON calls (tenant, rule, id) WHERE rule IS NOT NULL;
CREATE INDEX calls_by_decision ON calls (tenant, decision, id) WHERE decision IS NOT NULL;
-- For the retention of idempotency keys.
CREATE INDEX calls_with_key ON calls (id) WHERE idempotency_key IS NOT NULL;
