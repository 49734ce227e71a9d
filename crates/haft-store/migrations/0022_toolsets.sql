-- Toolsets: bundles that were installed as packages.
CREATE TABLE toolsets (
    tenant TEXT NOT NULL,
    -- The slug of its bundle.
    id TEXT NOT NULL,
    -- The hash of the content of the installed package, and of the one before it.
    package TEXT NOT NULL,
    previous TEXT,
    -- JSON: name, version, source, MCP servers, dependencies, signature.
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- The packages as ZIP files, in parts of a megabyte as base64.
CREATE TABLE toolset_packages (
    tenant TEXT NOT NULL,
    hash TEXT NOT NULL,
    part BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (tenant, hash, part)
);

-- The definitions of the tools as the package has them: what differs in the tool is a setting of this installation.
CREATE TABLE toolset_tools (
    tool_id TEXT PRIMARY KEY REFERENCES tools (id) ON DELETE CASCADE,
    spec TEXT NOT NULL
);

-- Keys by which the nodes recognise what they signed themselves, such as the addresses of rendered results.
CREATE TABLE signing_keys (
    purpose TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
