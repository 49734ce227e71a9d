-- People and service accounts.
CREATE TABLE actors (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    email TEXT,
    -- The e-mail address in lower case.
    email_key TEXT UNIQUE,
    description TEXT NOT NULL,
    -- The person who is responsible for a service account.
    responsible TEXT,
    status TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    last_seen_at BIGINT
);
CREATE INDEX actors_by_responsible ON actors (responsible);

-- What an actor may do in a tenant.
CREATE TABLE memberships (
    actor_id TEXT NOT NULL REFERENCES actors (id) ON DELETE CASCADE,
    tenant TEXT NOT NULL,
    role TEXT NOT NULL,
    elevated BIGINT NOT NULL,
    platform BIGINT NOT NULL,
    tools TEXT,
    PRIMARY KEY (actor_id, tenant)
);
CREATE INDEX memberships_of_tenant ON memberships (tenant);

-- Actors with rights in common.
CREATE TABLE actor_groups (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    role TEXT NOT NULL,
    elevated BIGINT NOT NULL,
    tools TEXT,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    UNIQUE (tenant, name)
);

CREATE TABLE group_members (
    group_id TEXT NOT NULL REFERENCES actor_groups (id) ON DELETE CASCADE,
    actor_id TEXT NOT NULL REFERENCES actors (id) ON DELETE CASCADE,
    PRIMARY KEY (group_id, actor_id)
);
CREATE INDEX group_members_of_actor ON group_members (actor_id);

-- The person or service account that a token belongs to.
ALTER TABLE tokens ADD COLUMN actor_id TEXT;
CREATE INDEX tokens_of_actor ON tokens (actor_id);

-- The token that was used; `actor_id` is the person, the service account, or the token that stands for itself.
ALTER TABLE audit ADD COLUMN token_id TEXT;
