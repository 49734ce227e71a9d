-- Assertions that were exchanged for tokens, until they expire: each works once.
CREATE TABLE used_assertions (
    -- The hash of the issuer and of the id of the assertion.
    hash TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX used_assertions_by_expiry ON used_assertions (expires_at);

-- The hash of the issuer and of its name of the session (`sid`), for sessions that began with a login there.
ALTER TABLE sessions ADD COLUMN issuer_session TEXT;
CREATE INDEX sessions_of_issuer ON sessions (issuer_session);

-- Logins of haft at providers that a person completes with a code on any device (RFC 8628). A node asks the provider until
-- the person has decided.
CREATE TABLE device_connections (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    -- What completes it; empty after it has ended.
    sealed TEXT NOT NULL,
    state TEXT NOT NULL,
    error TEXT,
    poll_seconds BIGINT NOT NULL,
    next_poll_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX device_connections_due ON device_connections (state, next_poll_at);
CREATE INDEX device_connections_expiring ON device_connections (expires_at);
CREATE INDEX device_connections_of_tenant ON device_connections (tenant);
