-- Where the tools of a bundle come from: user, built_in, toolset or mcp. The bundles of MCP servers used to be marked
-- as built in.
ALTER TABLE bundles ADD COLUMN kind TEXT NOT NULL DEFAULT 'user';
UPDATE bundles SET kind = 'built_in' WHERE built_in = 1;
UPDATE bundles SET kind = 'mcp' WHERE built_in = 1 AND EXISTS (
    SELECT 1 FROM mcp_servers WHERE mcp_servers.tenant = bundles.tenant AND mcp_servers.id = bundles.slug
);
ALTER TABLE bundles DROP COLUMN built_in;
