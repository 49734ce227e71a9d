-- Who somebody is at an issuer: its subject is this person.
CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    actor_id TEXT NOT NULL REFERENCES actors (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    last_login_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject),
    -- A person has one identity of an issuer.
    UNIQUE (actor_id, issuer)
);

-- Logins that an issuer has not answered yet. Of their secrets only hashes are stored.
CREATE TABLE sign_on_logins (
    hash TEXT PRIMARY KEY,
    -- The id of the issuer in the configuration.
    issuer TEXT NOT NULL,
    -- The cookie of the browser that began the login.
    browser_hash TEXT NOT NULL,
    -- Where the login leads, and the tenant that it names.
    next TEXT,
    tenant TEXT,
    address TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sign_on_logins_by_address ON sign_on_logins (address, expires_at);
CREATE INDEX sign_on_logins_by_expiry ON sign_on_logins (expires_at);

-- Rights that the rules of an issuer give, in addition to those of the membership.
CREATE TABLE assigned_rights (
    actor_id TEXT NOT NULL REFERENCES actors (id) ON DELETE CASCADE,
    tenant TEXT NOT NULL,
    issuer TEXT NOT NULL,
    role TEXT NOT NULL,
    elevated BIGINT NOT NULL,
    tools TEXT,
    PRIMARY KEY (actor_id, tenant, issuer)
);
CREATE INDEX assigned_rights_of_tenant ON assigned_rights (tenant);

-- Groups whose members the rules of an issuer choose, in addition to `group_members`.
CREATE TABLE assigned_groups (
    group_id TEXT NOT NULL REFERENCES actor_groups (id) ON DELETE CASCADE,
    actor_id TEXT NOT NULL REFERENCES actors (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    PRIMARY KEY (group_id, actor_id, issuer)
);
CREATE INDEX assigned_groups_of_actor ON assigned_groups (actor_id, issuer);

-- Whether a membership exists only because of `assigned_rights`.
ALTER TABLE memberships ADD COLUMN is_assigned BIGINT NOT NULL DEFAULT 0;
