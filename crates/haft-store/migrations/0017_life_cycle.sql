-- Who created, last changed and published a tool: the name of a token, or `file`.
ALTER TABLE tools ADD COLUMN created_by TEXT;
ALTER TABLE tools ADD COLUMN modified_by TEXT;
ALTER TABLE tools ADD COLUMN published_by TEXT;
-- JSON: the replacement, the removal date and the message of a deprecated tool.
ALTER TABLE tools ADD COLUMN deprecation TEXT;
-- JSON: fields of the registry row that a tool was imported from.
ALTER TABLE tools ADD COLUMN legacy TEXT;
ALTER TABLE revisions ADD COLUMN created_by TEXT;
-- When and by whom a revision was last published.
ALTER TABLE revisions ADD COLUMN published_at BIGINT;
ALTER TABLE revisions ADD COLUMN published_by TEXT;
