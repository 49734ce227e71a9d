-- One claim for all work that a node holds: `node` is the process, empty if nobody holds it, and `fence` grows with each
-- claim. Whoever has an earlier fence writes nothing.
ALTER TABLE calls ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;

ALTER TABLE webhook_deliveries ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE webhook_deliveries ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;
CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries (node) WHERE node <> '';

ALTER TABLE workspaces ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE workspaces ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workspaces DROP COLUMN lease_node;
ALTER TABLE workspaces DROP COLUMN lease_id;

UPDATE pipeline_documents SET node = '' WHERE node IS NULL;
CREATE INDEX pipeline_documents_claimed ON pipeline_documents (node) WHERE state = 'running';

ALTER TABLE refresh_tokens ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE refresh_tokens ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;
