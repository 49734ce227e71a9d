-- What was changed, by whom, and what came of it.
CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    actor_id TEXT,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    outcome TEXT NOT NULL,
    request_id TEXT NOT NULL
);
CREATE INDEX audit_of_tenant ON audit (tenant, id);
