-- The MCP servers whose tools are used.
CREATE TABLE mcp_servers (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
);
-- What was agreed to of each of their tools, and what they list instead.
CREATE TABLE mcp_pins (
    tool_id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    offered_digest TEXT,
    offered TEXT
);
