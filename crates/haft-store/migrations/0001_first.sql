-- Times are microseconds since 1970 (UTC), switches are 0 or 1, documents are JSON text.

CREATE TABLE bundles (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    slug TEXT NOT NULL,
    display_name TEXT NOT NULL,
    description TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    built_in BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    soft_deleted_at BIGINT,
    -- The stat stamp of `bundle.yaml`, where there is one.
    stamp TEXT,
    UNIQUE (tenant, slug)
);

CREATE TABLE tools (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    bundle_id TEXT NOT NULL REFERENCES bundles (id),
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    revision BIGINT NOT NULL,
    published_revision BIGINT,
    status TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    built_in BIGINT NOT NULL,
    source TEXT NOT NULL,
    -- The definition file, relative to the home folder, and its stat stamp.
    path TEXT,
    stamp TEXT,
    -- What the file itself says of `enabled`, where it says it.
    file_enabled BIGINT,
    -- Why the file does not parse any more.
    fault TEXT,
    call_count BIGINT NOT NULL,
    last_called_at BIGINT,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    published_at BIGINT,
    UNIQUE (bundle_id, name, version)
);

CREATE TABLE revisions (
    tool_id TEXT NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    hash TEXT NOT NULL,
    spec TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tool_id, number)
);

-- Definition files that cannot be read and have no tool.
CREATE TABLE unreadable (
    path TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    bundle TEXT NOT NULL,
    name TEXT NOT NULL,
    error TEXT NOT NULL,
    stamp TEXT NOT NULL,
    modified_at BIGINT NOT NULL
);

CREATE TABLE calls (
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    tool_id TEXT NOT NULL,
    status TEXT NOT NULL,
    final BIGINT NOT NULL,
    -- The process that runs it: what is left unfinished by a dead one was interrupted.
    node TEXT NOT NULL,
    idempotency_key TEXT,
    record TEXT NOT NULL,
    -- Also the order of lists.
    PRIMARY KEY (tenant, id)
);

-- Few calls have a key: the others cost nothing here.
CREATE UNIQUE INDEX calls_by_key ON calls (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX calls_of_tool ON calls (tool_id, id);
CREATE INDEX calls_unfinished ON calls (final) WHERE final = 0;

CREATE TABLE credentials (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    -- Base64 of the nonce and the XChaCha20-Poly1305 ciphertext.
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    role TEXT NOT NULL,
    elevated BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);

-- Moves with every change of the catalog, so that another process sees that there was one.
CREATE TABLE generation (
    one BIGINT PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO generation (one, value) VALUES (1, 0);
