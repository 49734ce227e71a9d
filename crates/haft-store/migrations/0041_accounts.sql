-- What people and service accounts have connected. The values are in `refresh_tokens`, encrypted.
CREATE TABLE accounts (
    tenant TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    -- The name of a provider, or `mcp:` and the id of an MCP server.
    provider TEXT NOT NULL,
    kind TEXT NOT NULL,
    scope TEXT,
    state TEXT NOT NULL,
    -- Changes whenever the person connects again.
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    last_used_at BIGINT,
    PRIMARY KEY (tenant, actor_id, provider)
);
CREATE INDEX accounts_at_provider ON accounts (tenant, provider);

-- The providers that admins have defined.
CREATE TABLE account_providers (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    definition TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Logins of haft at other servers that a person has begun. Of the state only the hash is stored.
CREATE TABLE pending_logins (
    hash TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    -- Whose account it becomes; without one, the login of an MCP server is shared.
    actor_id TEXT,
    provider TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    sealed TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX pending_logins_expiring ON pending_logins (expires_at);
CREATE INDEX pending_logins_of_tenant ON pending_logins (tenant);
