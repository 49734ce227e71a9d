-- Retrieval pipelines, their documents and chunks.

CREATE TABLE pipelines (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    slug TEXT NOT NULL,
    -- JSON: name, description, chunking, embedding model, language.
    definition TEXT NOT NULL,
    status TEXT NOT NULL,
    -- Grows with each change of the definition: chunks of an earlier one are not stored.
    revision BIGINT NOT NULL,
    -- Grows with each change of the chunks: each node updates its index when it has changed.
    generation BIGINT NOT NULL,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX pipelines_of_tenant ON pipelines (tenant, slug);

CREATE TABLE pipeline_documents (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    pipeline_id TEXT NOT NULL REFERENCES pipelines (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    -- JSON: uploaded, a URL, a folder.
    source TEXT NOT NULL,
    media_type TEXT,
    format TEXT,
    -- JSON.
    metadata TEXT NOT NULL,
    content_hash TEXT,
    bytes BIGINT NOT NULL,
    -- `queued`, `running`, `done`, `failed`.
    state TEXT NOT NULL,
    error TEXT,
    chunks BIGINT NOT NULL,
    -- While it runs: the embedded chunks, and how many there are to embed.
    progress_done BIGINT,
    progress_total BIGINT,
    -- The node that reads it.
    node TEXT,
    -- Grows with each claim and each change of the content: whoever has an earlier number writes nothing.
    fence BIGINT NOT NULL,
    -- The generation of the pipeline that its chunks changed in.
    generation BIGINT NOT NULL,
    -- The content and the revision of the pipeline that its chunks were made from.
    ingested_hash TEXT,
    ingested_revision BIGINT,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL,
    ingested_at BIGINT
);
CREATE UNIQUE INDEX pipeline_documents_by_name ON pipeline_documents (pipeline_id, name);
CREATE INDEX pipeline_documents_by_state ON pipeline_documents (state, modified_at);

-- The uploaded documents, in parts of a megabyte as base64.
CREATE TABLE pipeline_contents (
    document_id TEXT NOT NULL REFERENCES pipeline_documents (id) ON DELETE CASCADE,
    part BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (document_id, part)
);

CREATE TABLE pipeline_chunks (
    document_id TEXT NOT NULL REFERENCES pipeline_documents (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    pipeline_id TEXT NOT NULL,
    -- The generation of the pipeline that it was added in, or got its vector in.
    generation BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    hash TEXT NOT NULL,
    -- JSON.
    headings TEXT NOT NULL,
    text TEXT NOT NULL,
    -- JSON.
    position TEXT NOT NULL,
    language TEXT NOT NULL,
    -- The vector as 32-bit numbers, little-endian, in base64.
    embedding TEXT,
    PRIMARY KEY (document_id, id)
);
CREATE INDEX pipeline_chunks_by_generation ON pipeline_chunks (pipeline_id, generation);
CREATE INDEX pipeline_chunks_by_id ON pipeline_chunks (pipeline_id, id);
