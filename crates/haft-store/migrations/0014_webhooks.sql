-- Webhooks, and the outbox of events that are delivered to them.
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    -- `tenant`: the selected events of the tenant; `call`: the end of one call.
    scope TEXT NOT NULL,
    -- JSON: the URL, the events, the tools.
    target TEXT NOT NULL,
    enabled BIGINT NOT NULL,
    -- The signing secret, encrypted like a credential.
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    modified_at BIGINT NOT NULL
);
CREATE INDEX webhooks_of_tenant ON webhooks (tenant, id);

CREATE TABLE webhook_deliveries (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    event TEXT NOT NULL,
    -- What happened: a webhook gets the same thing once, however often it is recorded.
    subject TEXT NOT NULL,
    payload TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    -- When it is tried next. Whoever tries it moves this ahead first, so that a crash delays the delivery only.
    due_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    attempted_at BIGINT,
    response_status BIGINT,
    error TEXT
);
CREATE UNIQUE INDEX webhook_deliveries_of_subject ON webhook_deliveries (webhook_id, subject);
CREATE INDEX webhook_deliveries_of_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (created_at);
