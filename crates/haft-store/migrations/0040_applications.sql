-- Applications that ask people for access: those that registered themselves, and those that an admin created.
CREATE TABLE oauth_clients (
    id TEXT PRIMARY KEY,
    -- The tenant whose admin created it; none for one that registered itself.
    tenant TEXT,
    name TEXT NOT NULL,
    -- A JSON list.
    redirect_uris TEXT NOT NULL,
    auth_method TEXT NOT NULL,
    secret_hash TEXT,
    refreshes BIGINT NOT NULL,
    -- The network address that registered it.
    address TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- When somebody last connected it.
    used_at BIGINT
);
CREATE INDEX oauth_clients_of_tenant ON oauth_clients (tenant, created_at);
CREATE INDEX oauth_clients_of_address ON oauth_clients (address, created_at);

-- A connected application: a token whose values are short-lived, with the application and its refresh token.
CREATE TABLE oauth_grants (
    id TEXT PRIMARY KEY REFERENCES tokens (id) ON DELETE CASCADE,
    client_id TEXT NOT NULL,
    -- Where the description of the application came from, and where its answers go.
    client_host TEXT,
    destination TEXT NOT NULL,
    -- The refresh token that is in use, and the one before it.
    refresh_hash TEXT,
    previous_hash TEXT,
    rotated_at BIGINT,
    refresh_expires_at BIGINT
);
CREATE INDEX oauth_grants_of_client ON oauth_grants (client_id);
CREATE INDEX oauth_grants_by_expiry ON oauth_grants (refresh_expires_at);

-- What people have allowed, until the application fetches its tokens. A code stays for a while after its use, so that a
-- second use is noticed.
CREATE TABLE oauth_codes (
    hash TEXT PRIMARY KEY,
    -- The token or the person that allowed it.
    approver TEXT NOT NULL,
    request TEXT NOT NULL,
    -- The grant that it was exchanged for.
    grant_id TEXT,
    expires_at BIGINT NOT NULL
);
CREATE INDEX oauth_codes_of_approver ON oauth_codes (approver, expires_at);
CREATE INDEX oauth_codes_by_expiry ON oauth_codes (expires_at);
