-- Agents, their revisions, and the files that define some of them.

CREATE TABLE agents (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    slug TEXT NOT NULL,
    -- Name, slug and description in lower case, for searches.
    search TEXT NOT NULL,
    revision BIGINT NOT NULL,
    published_revision BIGINT,
    status TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    -- The file that defines it, relative to the home folder.
    path TEXT,
    -- Why that file cannot be used any more.
    error TEXT,
    -- When the file vanished: the agent is hidden, and removed later.
    gone_at BIGINT,
    created_by TEXT,
    modified_by TEXT,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    published_at BIGINT,
    UNIQUE (tenant, slug)
);
CREATE INDEX agents_of_file ON agents (path) WHERE path IS NOT NULL;

CREATE TABLE agent_revisions (
    agent_id TEXT NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    -- The hash of the definition: a save that changes nothing adds no revision.
    hash TEXT NOT NULL,
    -- JSON.
    definition TEXT NOT NULL,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (agent_id, number)
);

-- The files in `agents/`, with their stat stamps.
CREATE TABLE agent_files (
    path TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    stamp TEXT NOT NULL,
    -- Why it cannot be used, or not wholly.
    error TEXT,
    modified_at BIGINT NOT NULL
);
