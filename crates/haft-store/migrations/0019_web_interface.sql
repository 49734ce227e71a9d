-- What the web interface needs: further filters of calls, examples of tools, rejected changes of MCP tools.

-- The interface that a call came through, and the call that made it; until now only the record had them.
ALTER TABLE calls ADD COLUMN surface TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN parent_id TEXT;
-- Few calls have a parent: the others cost nothing here.
CREATE INDEX calls_of_parent ON calls (tenant, parent_id, id) WHERE parent_id IS NOT NULL;

-- Saved arguments of a tool. The tenant is that of the author: a global tool has examples of each tenant.
CREATE TABLE tool_examples (
    tenant TEXT NOT NULL,
    tool_id TEXT NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    -- JSON: the arguments, and the expected value; NULL for any value.
    args TEXT NOT NULL,
    expected TEXT,
    modified_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, tool_id, name)
);
CREATE INDEX tool_examples_of_tool ON tool_examples (tool_id);

-- The digest of the changed definition that was rejected: it stays out of service until the server changes it again.
ALTER TABLE mcp_pins ADD COLUMN rejected_digest TEXT;
