-- Tenants, and what browsers log in with.
CREATE TABLE tenants (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    -- JSON: file roots, allowed environment variables, limits.
    settings TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    -- The row stays, so that data that arrives late is removed as well.
    deleted_at BIGINT
);
-- Tenants that own tools already. The default tenant may read every configured environment variable.
INSERT INTO tenants (id, name, enabled, settings, created_at, modified_at)
SELECT tenant, tenant, 1, CASE WHEN tenant = 'default' THEN '{"environment":["*"]}' ELSE '{}' END,
    MIN(created_at), MIN(created_at)
FROM bundles GROUP BY tenant;

ALTER TABLE tokens ADD COLUMN platform BIGINT NOT NULL DEFAULT 0;
-- JSON: the rules of the allow-list; NULL allows every tool.
ALTER TABLE tokens ADD COLUMN tools TEXT;
ALTER TABLE tokens ADD COLUMN last_used_at BIGINT;
-- The value before the last rotation, and when it stops working.
ALTER TABLE tokens ADD COLUMN previous_hash TEXT;
ALTER TABLE tokens ADD COLUMN previous_expires_at BIGINT;

-- Sessions of browsers. They end with the token that opened them.
CREATE TABLE sessions (
    hash TEXT PRIMARY KEY,
    token_hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_of_token ON sessions (token_hash, created_at);

-- Single-use links that open a session.
CREATE TABLE login_links (
    hash TEXT PRIMARY KEY,
    token_hash TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
