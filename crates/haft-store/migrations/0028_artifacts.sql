-- Code artifacts and their versions.

CREATE TABLE code_artifacts (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    slug TEXT NOT NULL,
    -- The newest version.
    version BIGINT NOT NULL,
    created_by TEXT,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX code_artifacts_of_tenant ON code_artifacts (tenant, slug);

-- A version never changes.
CREATE TABLE code_artifact_versions (
    artifact_id TEXT NOT NULL REFERENCES code_artifacts (id) ON DELETE CASCADE,
    version BIGINT NOT NULL,
    hash TEXT NOT NULL,
    -- JSON: name, description, runtime, source, inputs.
    content TEXT NOT NULL,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (artifact_id, version)
);

-- How often things changed that each node has a list of, so that it reads the list again.
CREATE TABLE change_counters (
    name TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO change_counters (name, value) VALUES ('pipelines', 0);
INSERT INTO change_counters (name, value) VALUES ('artifacts', 0);
