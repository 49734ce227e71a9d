-- What the quotas of tenants count.

-- The bytes that the snapshot of a state added to the stored files.
ALTER TABLE workspace_manifests ADD COLUMN added BIGINT NOT NULL DEFAULT 0;
CREATE INDEX pipeline_documents_of_tenant ON pipeline_documents (tenant, bytes);
CREATE INDEX runs_open_of_tenant ON runs (tenant) WHERE final = 0;

-- Only a response of `/v1` can be continued after its run has ended: other runs need their conversation no longer.
ALTER TABLE runs ADD COLUMN keeps_input BIGINT NOT NULL DEFAULT 0;
UPDATE runs SET keeps_input = 1 WHERE final = 1 OR is_answer = 0;
