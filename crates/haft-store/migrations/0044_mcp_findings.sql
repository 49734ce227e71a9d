-- What the scan found in the definition that the server lists now, as JSON.
ALTER TABLE mcp_pins ADD COLUMN findings TEXT;
