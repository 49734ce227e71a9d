-- One store of definitions: agents, retrieval pipelines and code artifacts with their revisions.

CREATE TABLE resources (
    id TEXT PRIMARY KEY,
    -- `agent`, `pipeline`, `code_artifact`.
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    slug TEXT NOT NULL,
    -- Slug, name and description in lower case, for searches.
    search TEXT NOT NULL,
    -- The newest revision.
    revision BIGINT NOT NULL,
    published_revision BIGINT,
    status TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    -- The file that defines it, relative to the home folder.
    path TEXT,
    -- Why that file cannot be used any more.
    error TEXT,
    -- When the file vanished: the resource is hidden, and removed later.
    gone_at BIGINT,
    created_by TEXT,
    modified_by TEXT,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    published_at BIGINT,
    UNIQUE (tenant, kind, slug)
);
CREATE INDEX resources_of_file ON resources (path) WHERE path IS NOT NULL;

CREATE TABLE resource_revisions (
    resource_id TEXT NOT NULL REFERENCES resources (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    hash TEXT NOT NULL,
    -- JSON.
    definition TEXT NOT NULL,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (resource_id, number)
);

-- The files in `agents/`, `pipelines/` and `artifacts/`, with their stat stamps.
CREATE TABLE resource_files (
    path TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    stamp TEXT NOT NULL,
    -- Why it cannot be used, or not wholly.
    error TEXT,
    modified_at BIGINT NOT NULL
);

INSERT INTO resources (id, kind, tenant, slug, search, revision, published_revision, status, enabled, path, error,
    gone_at, created_by, modified_by, created_at, modified_at, published_at)
SELECT id, 'agent', tenant, slug, search, revision, published_revision, status, enabled, path, error,
    gone_at, created_by, modified_by, created_at, modified_at, published_at FROM agents;
INSERT INTO resource_revisions (resource_id, number, hash, definition, created_by, created_at)
SELECT agent_id, number, hash, definition, created_by, created_at FROM agent_revisions;
INSERT INTO resource_files (path, kind, tenant, stamp, error, modified_at)
SELECT path, 'agent', tenant, stamp, error, modified_at FROM agent_files;
DROP TABLE agent_files;
DROP TABLE agent_revisions;
DROP TABLE agents;

-- Production used the newest version of an artifact: it stays in use until another one is published.
INSERT INTO resources (id, kind, tenant, slug, search, revision, published_revision, status, enabled, created_by,
    modified_by, created_at, modified_at, published_at)
SELECT a.id, 'code_artifact', a.tenant, a.slug, '', a.version, a.version, 'published', 1, a.created_by,
    v.created_by, a.created_at, v.created_at, v.created_at
FROM code_artifacts a JOIN code_artifact_versions v ON v.artifact_id = a.id AND v.version = a.version;
INSERT INTO resource_revisions (resource_id, number, hash, definition, created_by, created_at)
SELECT v.artifact_id, v.version, v.hash, '{"slug":"' || a.slug || '",' || SUBSTR(v.content, 2), v.created_by,
    v.created_at
FROM code_artifact_versions v JOIN code_artifacts a ON a.id = v.artifact_id;
DROP TABLE code_artifact_versions;
DROP TABLE code_artifacts;

-- The hash and the text for searches are filled in afterwards.
INSERT INTO resources (id, kind, tenant, slug, search, revision, published_revision, status, enabled, created_by,
    modified_by, created_at, modified_at, published_at)
SELECT id, 'pipeline', tenant, slug, '', 1, CASE WHEN status = 'published' THEN 1 END, status, 1, created_by,
    created_by, created_at, modified_at, CASE WHEN status = 'published' THEN modified_at END FROM pipelines;
INSERT INTO resource_revisions (resource_id, number, hash, definition, created_by, created_at)
SELECT id, 1, '', definition, created_by, modified_at FROM pipelines;

-- What is left of a pipeline is the state of its documents: `revision` grows whenever they are read differently.
DROP INDEX pipelines_of_tenant;
ALTER TABLE pipelines DROP COLUMN tenant;
ALTER TABLE pipelines DROP COLUMN slug;
ALTER TABLE pipelines DROP COLUMN definition;
ALTER TABLE pipelines DROP COLUMN status;
ALTER TABLE pipelines DROP COLUMN created_by;
ALTER TABLE pipelines DROP COLUMN created_at;
ALTER TABLE pipelines DROP COLUMN modified_at;
