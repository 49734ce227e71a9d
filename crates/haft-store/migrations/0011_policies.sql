-- The policy rules of each tenant, as JSON; those of the platform have no tenant.
CREATE TABLE policies (
    tenant TEXT PRIMARY KEY,
    rules TEXT NOT NULL,
    modified_at BIGINT NOT NULL
);
