//! The table of all configuration keys.

use std::net::SocketAddr;

use haft_core::runnable::Mode;
use haft_core::secret::Secret;
use haft_core::token::Role;
use haft_server::settings::{EngineName, LedgerSync, VaultAuth};

use super::readers::{
    bytes, count, days, hosts, is_http_url, model_prices, model_urls, nonzero, optional, optional_path,
    optional_secret, rate, set_blob_url, set_database, set_index_url, set_jwt_file, set_level,
    set_public_url, set_sandboxes, set_trusted_keys, vault_timeout,
};
use super::resolved::{LogFormat, Resolved};
use super::value::{InvalidValue, Value};

/// A configuration key.
pub(crate) struct Key {
    /// The name with its section, if any: `addr`, `server.max_body_bytes`.
    pub(crate) full: &'static str,
    /// The default, in TOML.
    pub(crate) default: &'static str,
    /// The description.
    pub(crate) help: &'static str,
    /// Sets the value.
    pub(super) set: Setter,
}

impl Key {
    /// Returns the section; empty for top-level keys.
    pub(crate) fn section(&self) -> &'static str {
        self.full.split_once('.').map_or("", |(section, _)| section)
    }

    /// Returns the name within the section.
    pub(crate) fn name(&self) -> &'static str {
        self.full.split_once('.').map_or(self.full, |(_, name)| name)
    }

    /// Returns the name of the environment variable.
    pub(crate) fn variable(&self) -> String {
        format!("HAFT_{}", self.full.replace('.', "_").to_uppercase())
    }

    /// Returns whether the value is a list.
    pub(crate) fn is_list(&self) -> bool {
        self.default.starts_with('[')
    }
}

/// Environment variables that are not keys of the file.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    ("HAFT_HOME", "Home folder; default `~/.haft`"),
    ("HAFT_TOKEN", "Additional admin token of the server; token of commands"),
    ("HAFT_KEY", "Encryption key of stored credentials, instead of the file `key`"),
    ("HAFT_KEY_NEW", "Key that `haft key rotate` changes to; credentials encrypted with either key are read"),
    ("HAFT_SERVER", "Server that commands connect to, e.g. `http://127.0.0.1:18789`"),
    ("HAFT_CONTEXT", "Stored login of `haft login` that commands use; `local` is the home folder"),
    ("HAFT_LOG", "Short for `HAFT_LOG_LEVEL`"),
];

type Setter = fn(&mut Resolved, &Value) -> Result<(), InvalidValue>;

const fn key(full: &'static str, default: &'static str, help: &'static str, set: Setter) -> Key {
    Key { full, default, help, set }
}

/// All keys, in the order of the sample file.
pub(crate) const KEYS: &[Key] = &[
    key("addr", "\"127.0.0.1:18789\"", "Address that the server listens on.", |to, value| {
        value.addr().map(|addr: SocketAddr| to.settings.addr = addr)
    }),
    key(
        "mode",
        "\"debug\"",
        "Default mode of calls: `debug` runs the newest revision, `production` only published ones.",
        |to, value| {
            let choices = [("debug", Mode::Debug), ("production", Mode::Production)];
            value.choice(&choices).map(|mode| to.settings.mode = mode)
        },
    ),
    key(
        "database_url",
        "\"\"",
        "PostgreSQL URL, e.g. `postgres://user@host/database`; empty uses the SQLite file in the home folder.",
        set_database,
    ),
    key(
        "blob_url",
        "\"\"",
        "Bucket of large results and of the files of workspaces, e.g. `s3://bucket/haft`, which nodes share; empty uses the home folder.",
        set_blob_url,
    ),
    key("server.max_body_bytes", "8388608", "Maximum size of a request body in bytes.", |to, value| {
        value.size(1024..=1 << 30).map(|size| to.settings.server.max_body_bytes = size)
    }),
    key(
        "server.max_running_calls",
        "1024",
        "Maximum number of concurrent calls; further calls are rejected.",
        |to, value| value.size(1..=1_000_000).map(|size| to.settings.server.max_running_calls = size),
    ),
    key(
        "server.cors_origins",
        "[]",
        "Origins that browsers may send requests from, e.g. `https://app.example.com`; `*` allows every origin.",
        |to, value| value.origins().map(|list| to.settings.server.cors_origins = list),
    ),
    key(
        "server.shutdown_grace",
        "\"30s\"",
        "How long running calls may continue after a stop signal.",
        |to, value| value.duration().map(|time| to.settings.server.shutdown_grace = time),
    ),
    key(
        "server.session_lifetime",
        "\"12h\"",
        "How long a browser stays logged in; a token that expires earlier ends the session.",
        |to, value| value.duration().map(|time| to.settings.server.session_lifetime = time),
    ),
    key(
        "server.max_streams",
        "2000",
        "Maximum number of open WebSockets and event streams of a node.",
        |to, value| value.size(1..=1_000_000).map(|size| to.settings.server.max_streams = size),
    ),
    key(
        "server.max_streams_per_token",
        "100",
        "The same for one token, with all its browser sessions.",
        |to, value| value.size(1..=1_000_000).map(|size| to.settings.server.max_streams_per_token = size),
    ),
    key(
        "server.max_streams_per_address",
        "500",
        "The same for one IP address (IPv6: one /64 network); 0 means no limit. Raise it behind a proxy, whose address all clients have.",
        |to, value| value.size(0..=1_000_000).map(|size| to.settings.server.max_streams_per_address = size),
    ),
    key(
        "import.max_document_bytes",
        "33554432",
        "Maximum size of an imported API description in bytes.",
        |to, value| value.size(1024..=1 << 30).map(|size| to.settings.import.max_document_bytes = size),
    ),
    key(
        "mcp.allowed_hosts",
        "[]",
        "Host names that MCP clients may use, e.g. `tools.example.com`, in addition to IP addresses and `localhost`; `*` allows every name.",
        |to, value| value.list().map(|list| to.settings.mcp.allowed_hosts = list),
    ),
    key(
        "mcp.public_url",
        "\"\"",
        "Public URL of the server for MCP clients, e.g. `https://tools.example.com`; empty uses the host of each request.",
        set_public_url,
    ),
    key(
        "mcp.compact_above",
        "100",
        "With more tools than this, MCP clients get `search_tools`, `describe_tool`, `call_tool` and the tools found so far instead of the full list.",
        |to, value| value.size(1..=1_000_000).map(|limit| to.settings.mcp.compact_above = limit),
    ),
    key(
        "mcp.compact_above_tokens",
        "32000",
        "The same applies if the definitions exceed this estimated number of tokens.",
        |to, value| value.size(1..=1_000_000_000).map(|limit| to.settings.mcp.compact_above_tokens = limit),
    ),
    key(
        "oauth.access_token_lifetime",
        "\"1h\"",
        "How long an access token of a connected application works.",
        |to, value| nonzero(value.duration()?).map(|time| to.settings.oauth.access_token_lifetime = time),
    ),
    key(
        "oauth.refresh_token_lifetime",
        "\"90d\"",
        "How long an application stays connected without refreshing its tokens.",
        |to, value| {
            nonzero(value.long_duration()?).map(|time| to.settings.oauth.refresh_token_lifetime = time)
        },
    ),
    key(
        "oauth.dynamic_registration",
        "true",
        "Whether applications may register themselves (RFC 7591); without it, they need a metadata document or an admin.",
        |to, value| value.boolean().map(|on| to.settings.oauth.dynamic_registration = on),
    ),
    key(
        "egress.allowed_hosts",
        "[]",
        "Hosts that tools may connect to, e.g. `api.example.com` or `*.example.com`; empty allows every public host.",
        |to, value| hosts(value).map(|list| to.settings.egress.allowed_hosts = list),
    ),
    key(
        "egress.private_hosts",
        "[]",
        "Private or loopback hosts, addresses or networks that tools may connect to, e.g. `localhost` or `10.0.0.0/8`.",
        |to, value| hosts(value).map(|list| to.settings.egress.private_hosts = list),
    ),
    key(
        "files.sandboxes",
        "[]",
        "Folders that file tools may use, e.g. `workspace=/srv/workspace`; the first one is the default. Empty means `workspace` in the home folder.",
        set_sandboxes,
    ),
    key(
        "files.read_only",
        "[]",
        "Names of the folders in `files.sandboxes` that are read-only.",
        |to, value| value.list().map(|list| to.settings.files.read_only = list),
    ),
    key(
        "toolsets.trusted_keys",
        "[]",
        "Public keys whose signatures of packages are trusted, e.g. `acme=KEY`, as `haft toolset key` prints them.",
        set_trusted_keys,
    ),
    key(
        "toolsets.require_signed",
        "false",
        "Whether only packages that a trusted key signed can be installed.",
        |to, value| value.boolean().map(|on| to.settings.toolsets.require_signed = on),
    ),
    key(
        "results.max_inline_bytes",
        "262144",
        "Results larger than this are stored apart, and callers get a preview and a handle; in bytes.",
        |to, value| value.number(1024..=1 << 30).map(|bytes| to.settings.results.max_inline_bytes = bytes),
    ),
    key(
        "blobs.endpoint",
        "\"\"",
        "Address of the service of `blob_url`, e.g. `https://minio.example.com`; empty is Amazon S3.",
        |to, value| {
            let text = value.text()?;
            if !text.is_empty() && !is_http_url(text) {
                return Err(InvalidValue(
                    "must be empty or a URL such as `https://minio.example.com`".to_owned(),
                ));
            }
            to.settings.blobs.endpoint = optional(text);
            Ok(())
        },
    ),
    key("blobs.region", "\"\"", "Region of the bucket; empty is `us-east-1`.", |to, value| {
        value.text().map(|text| to.settings.blobs.region = optional(text))
    }),
    key(
        "blobs.access_key_id",
        "\"\"",
        "Name of the access key of the bucket; empty uses the role of the machine.",
        |to, value| value.text().map(|text| to.settings.blobs.access_key_id = optional(text)),
    ),
    key("blobs.secret_access_key", "\"\"", "Access key of the bucket.", |to, value| {
        value.text().map(|text| to.settings.blobs.secret_access_key = optional(text).map(Secret::new))
    }),
    key(
        "render.frame_hosts",
        "[]",
        "Hosts that results with the renderer `frame` may show, e.g. `localhost:3000`.",
        |to, value| value.list().map(|list| to.settings.render.frame_hosts = list),
    ),
    key(
        "secrets.environment",
        "[]",
        "Environment variables that `${NAME}` in a tool may read if no credential of that name is stored.",
        |to, value| value.list().map(|list| to.secret_names = list),
    ),
    key(
        "secrets.vault.address",
        "\"\"",
        "Address of HashiCorp Vault or OpenBao for `${vault:PATH#KEY}`, e.g. `https://vault.example.com:8200`; empty means none.",
        |to, value| value.text().map(|text| text.clone_into(&mut to.vault().address)),
    ),
    key("secrets.vault.mount", "\"secret\"", "Path of the KV store of version 2.", |to, value| {
        value.text().map(|text| text.clone_into(&mut to.vault().mount))
    }),
    key("secrets.vault.namespace", "\"\"", "Namespace; empty is the root namespace.", |to, value| {
        value.text().map(|text| text.clone_into(&mut to.vault().namespace))
    }),
    key(
        "secrets.vault.auth",
        "\"token\"",
        "How haft logs in: `token`, `approle` or `kubernetes`.",
        |to, value| {
            let choices = VaultAuth::ALL.map(|auth| (auth.as_str(), auth));
            value.choice(&choices).map(|auth| to.vault().auth = auth)
        },
    ),
    key(
        "secrets.vault.auth_mount",
        "\"\"",
        "Path of the auth method; empty is `approle` or `kubernetes`.",
        |to, value| value.text().map(|text| text.clone_into(&mut to.vault().auth_mount)),
    ),
    key(
        "secrets.vault.token",
        "\"\"",
        "Token for `auth = \"token\"`; better in the environment or in `token_file` than here.",
        |to, value| optional_secret(value).map(|token| to.vault().token = token),
    ),
    key(
        "secrets.vault.token_file",
        "\"\"",
        "File with the token, e.g. of a Vault Agent; it is read at each request.",
        |to, value| optional_path(value).map(|path| to.vault().token_file = path),
    ),
    key("secrets.vault.role_id", "\"\"", "Role id for `auth = \"approle\"`.", |to, value| {
        value.text().map(|text| text.clone_into(&mut to.vault().role_id))
    }),
    key(
        "secrets.vault.secret_id",
        "\"\"",
        "Secret id of the role; better in the environment or in `secret_id_file` than here.",
        |to, value| optional_secret(value).map(|secret| to.vault().secret_id = secret),
    ),
    key("secrets.vault.secret_id_file", "\"\"", "File with the secret id.", |to, value| {
        optional_path(value).map(|path| to.vault().secret_id_file = path)
    }),
    key("secrets.vault.role", "\"\"", "Role for `auth = \"kubernetes\"`.", |to, value| {
        value.text().map(|text| text.clone_into(&mut to.vault().role))
    }),
    key(
        "secrets.vault.jwt_file",
        "\"/var/run/secrets/kubernetes.io/serviceaccount/token\"",
        "File with the service account token of the pod.",
        set_jwt_file,
    ),
    key(
        "secrets.vault.ca_file",
        "\"\"",
        "File with additional trusted certificates in PEM format.",
        |to, value| optional_path(value).map(|path| to.vault().ca_file = path),
    ),
    key(
        "secrets.vault.path_prefix",
        "\"\"",
        "Beginning of all paths that tools may read, e.g. `tenants/{tenant}`; empty allows every path.",
        |to, value| value.text().map(|text| text.clone_into(&mut to.vault().path_prefix)),
    ),
    key(
        "secrets.vault.tenants",
        "[\"default\"]",
        "Tenants whose tools may read from Vault; `*` is all.",
        |to, value| value.list().map(|list| to.vault().tenants = list),
    ),
    key("secrets.vault.timeout", "\"5s\"", "How long one request to Vault may take.", |to, value| {
        vault_timeout(value).map(|time| to.vault().timeout = time)
    }),
    key(
        "secrets.vault.cache",
        "\"5m\"",
        "How long a value of Vault is used without reading it again.",
        |to, value| value.long_duration().map(|time| to.vault().cache = time),
    ),
    key(
        "secrets.vault.stale",
        "\"0s\"",
        "How much longer it is used while Vault does not respond.",
        |to, value| value.long_duration().map(|time| to.vault().stale = time),
    ),
    key(
        "secrets.files.directory",
        "\"\"",
        "Folder with the files of `${file:NAME}`, e.g. `/run/haft-secrets`; empty means none.",
        |to, value| optional_path(value).map(|path| to.secret_files().directory = path),
    ),
    key(
        "secrets.files.tenants",
        "[\"default\"]",
        "Tenants whose tools may read these files; `*` is all.",
        |to, value| value.list().map(|list| to.secret_files().tenants = list),
    ),
    key(
        "built_ins.enabled",
        "true",
        "Whether the built-in tools are available, such as `read_file` and `web_search`.",
        |to, value| value.boolean().map(|on| to.settings.built_ins.enabled = on),
    ),
    key(
        "built_ins.emails_per_minute",
        "10",
        "Rate limit of `send_email`, and of `send_whatsapp`, in messages per minute; 0 is unlimited.",
        |to, value| {
            let limit = value.number(0..=1_000_000)?;
            to.settings.built_ins.emails_per_minute = u32::try_from(limit).unwrap_or(u32::MAX);
            Ok(())
        },
    ),
    key(
        "ledger.sync",
        "\"auto\"",
        "Which responses wait until the record is on disk: `auto` those with a promise (idempotency key, approval, queue), `always` all, `os` none. All records survive a crash of haft.",
        |to, value| {
            let choices = [
                ("auto", LedgerSync::Auto),
                ("always", LedgerSync::Always),
                ("os", LedgerSync::Os),
                // The name before 0.2.
                ("disk", LedgerSync::Always),
            ];
            value.choice(&choices).map(|sync| to.settings.ledger.sync = sync)
        },
    ),
    key("ledger.keep_days", "30", "How many days calls are kept; 0 keeps them forever.", |to, value| {
        days(value).map(|days| to.settings.ledger.keep_days = days)
    }),
    key(
        "ledger.keep_calls",
        "5000000",
        "Maximum number of calls kept per tenant; 0 keeps all.",
        |to, value| count(value).map(|limit| to.settings.retention.calls = limit),
    ),
    key(
        "ledger.keep_bytes_per_tenant",
        "4294967296",
        "Maximum size of the calls of a tenant in bytes; the oldest arguments and results are removed first. 0 means no limit.",
        |to, value| bytes(value).map(|limit| to.settings.retention.tenant_bytes = limit),
    ),
    key(
        "ledger.keep_bytes",
        "17179869184",
        "Maximum size of all calls in bytes; the tenant that takes most is reduced first. 0 means no limit.",
        |to, value| bytes(value).map(|limit| to.settings.retention.ledger_bytes = limit),
    ),
    key(
        "ledger.idempotency_retention",
        "\"24h\"",
        "How long an `Idempotency-Key` returns the outcome of its call, e.g. `7d`; afterwards the key is free again. `0s` keeps keys as long as their calls.",
        |to, value| value.long_duration().map(|time| to.settings.retention.idempotency_keys = time),
    ),
    key("queue.workers", "16", "How many queued calls run at once on this node.", |to, value| {
        let workers = value.number(1..=10_000)?;
        to.settings.queue.workers = usize::try_from(workers).unwrap_or(usize::MAX);
        Ok(())
    }),
    key("queue.max_queued", "100000", "How many calls of one tenant may wait in the queue.", |to, value| {
        value.number(1..=10_000_000).map(|max| to.settings.queue.max_queued = max)
    }),
    key(
        "models.default",
        "\"\"",
        "Model of agents that name none, e.g. `claude-sonnet-5` or `ollama/llama3.2`.",
        |to, value| {
            let name = value.text()?;
            to.settings.models.default = (!name.is_empty()).then(|| name.to_owned());
            Ok(())
        },
    ),
    key(
        "models.private_urls",
        "[\"http://localhost:11434\"]",
        "Model servers at private addresses that agents may use; tools may not. The default is Ollama on this machine.",
        |to, value| model_urls(value).map(|urls| to.settings.models.private_urls = urls),
    ),
    key(
        "models.prices",
        "[]",
        "Prices of models per million tokens, as `NAME=INPUT/OUTPUT`, optionally `/CACHED` and a currency, e.g. `claude-sonnet-5=3/15/0.3 USD`; `*` in a name stands for any text.",
        |to, value| model_prices(value).map(|prices| to.settings.models.prices = prices),
    ),
    key("models.timeout", "\"10m\"", "How long one answer of a model may take.", |to, value| {
        let timeout = value.duration()?;
        if timeout.is_zero() {
            return Err(InvalidValue("must be more than zero".to_owned()));
        }
        to.settings.models.timeout = timeout;
        Ok(())
    }),
    key(
        "retrieval.max_document_bytes",
        "104857600",
        "Maximum size of a document of a retrieval pipeline in bytes.",
        |to, value| value.size(1024..=1 << 30).map(|size| to.settings.retrieval.max_document_bytes = size),
    ),
    key(
        "retrieval.max_chunks",
        "200000",
        "Maximum number of chunks of one retrieval pipeline.",
        |to, value| value.number(1..=10_000_000).map(|count| to.settings.retrieval.max_chunks = count),
    ),
    key(
        "retrieval.keep_revisions",
        "500",
        "Maximum number of revisions per retrieval pipeline; 0 keeps all. The newest and the published one are kept.",
        |to, value| count(value).map(|limit| to.settings.retention.pipeline_revisions = limit),
    ),
    key(
        "retrieval.max_index_bytes",
        "1073741824",
        "Memory for the indexes of retrieval pipelines in bytes; indexes that were used least recently make room.",
        |to, value| value.size(1 << 20..=1 << 40).map(|size| to.settings.retrieval.max_index_bytes = size),
    ),
    key(
        "runs.max_running",
        "64",
        "How many runs of agents this node works on at once; further ones wait. Runs inside a run do not count.",
        |to, value| value.size(1..=100_000).map(|limit| to.settings.runs.max_running = limit),
    ),
    key(
        "runs.keep_days",
        "30",
        "How many days ended runs of agents are kept with their steps; 0 keeps them forever. Runs that answer in a chat are kept with the chat.",
        |to, value| days(value).map(|days| to.settings.retention.run_days = days),
    ),
    key(
        "chats.keep_days",
        "365",
        "How many days chats are kept after their last change, with their messages, runs and workspaces; 0 keeps them until they are deleted. One with a run that works or waits is kept.",
        |to, value| days(value).map(|days| to.settings.retention.chat_days = days),
    ),
    key(
        "tools.keep_revisions",
        "500",
        "Maximum number of revisions per tool; 0 keeps all. The newest and the published one are kept.",
        |to, value| count(value).map(|limit| to.settings.retention.tool_revisions = limit),
    ),
    key(
        "agents.keep_revisions",
        "500",
        "Maximum number of revisions per agent; 0 keeps all. The newest and the published one are kept.",
        |to, value| count(value).map(|limit| to.settings.retention.agent_revisions = limit),
    ),
    key(
        "workspaces.keep_days",
        "90",
        "How many days earlier states of workspaces are kept; 0 keeps them forever. The active one and those of messages are kept.",
        |to, value| days(value).map(|days| to.settings.retention.workspace_days = days),
    ),
    key(
        "workspaces.keep_states",
        "1000",
        "Maximum number of states per workspace; 0 keeps all. The active one and those of messages are kept.",
        |to, value| count(value).map(|limit| to.settings.retention.workspace_states = limit),
    ),
    key(
        "artifacts.keep_versions",
        "500",
        "Maximum number of versions per code artifact; 0 keeps all, up to 10,000. The newest one, the published one and those that tools pin are kept.",
        |to, value| count(value).map(|limit| to.settings.retention.artifact_versions = limit),
    ),
    key("approvals.expire_after", "\"24h\"", "How long a call waits for approval.", |to, value| {
        value.duration().map(|time| to.settings.approvals.lifetime = time)
    }),
    key(
        "approvals.four_eyes",
        "false",
        "Whether requesters may not approve their own calls.",
        |to, value| value.boolean().map(|on| to.settings.approvals.four_eyes = on),
    ),
    key(
        "approvals.keep_days",
        "90",
        "How many days approvals are kept after they were requested; 0 keeps them forever. Those that wait are kept.",
        |to, value| days(value).map(|days| to.settings.retention.approval_days = days),
    ),
    key(
        "approvals.remember_days",
        "365",
        "How many days a remembered approval covers later calls; 0 remembers it until it is revoked.",
        |to, value| days(value).map(|days| to.settings.retention.grant_days = days),
    ),
    key(
        "scim.default_role",
        "\"viewer\"",
        "Role of people that an identity provider creates by SCIM. Their groups can give more.",
        |to, value| {
            let choices = Role::ALL.map(|role| (role.as_str(), role));
            value.choice(&choices).map(|role| to.settings.scim.default_role = role)
        },
    ),
    key(
        "scim.default_tools",
        "\"none\"",
        "Tools of people that an identity provider creates by SCIM: `none` leaves them to their groups, `all` allows every tool.",
        |to, value| {
            let choices = [("none", false), ("all", true)];
            value.choice(&choices).map(|all| to.settings.scim.all_tools = all)
        },
    ),
    key(
        "limits.session_calls_per_minute",
        "0",
        "How many calls of one session (a chat or the connection of an MCP client) may start per minute; 0 is unlimited.",
        |to, value| rate(value).map(|calls| to.settings.limits.session_calls_per_minute = calls),
    ),
    key(
        "limits.identical_calls",
        "20",
        "How many times in a row a session may make the same call with the same arguments within a minute; 0 is unlimited.",
        |to, value| rate(value).map(|calls| to.settings.limits.identical_calls = calls),
    ),
    key(
        "metrics.top_tools",
        "100",
        "How many tools have metrics of their own; the others are counted together as `other`.",
        |to, value| value.size(0..=10_000).map(|tools| to.settings.metrics.top_tools = tools),
    ),
    key(
        "audit.keep_days",
        "365",
        "How many days audit records of changes are kept; 0 keeps them forever. Those of calls are kept as long as the calls.",
        |to, value| days(value).map(|days| to.settings.retention.audit_days = days),
    ),
    key("audit.keep_records", "1000000", "Maximum number of audit records; 0 keeps all.", |to, value| {
        count(value).map(|limit| to.settings.retention.audit_records = limit)
    }),
    key(
        "history.keep_days",
        "90",
        "How many days replaced and deleted definitions are kept in `tool-history`; 0 keeps them forever.",
        |to, value| days(value).map(|days| to.settings.retention.history_days = days),
    ),
    key(
        "history.keep_copies",
        "20",
        "Maximum number of backups per definition file in `tool-history`; 0 keeps all.",
        |to, value| count(value).map(|limit| to.settings.retention.history_copies = limit),
    ),
    key(
        "sandbox.engine",
        "\"bubblewrap\"",
        "Sandbox engine of tool processes: `bubblewrap`, `landlock`, `docker` or `podman`.",
        |to, value| {
            let choices = EngineName::ALL.map(|engine| (engine.as_str(), engine));
            value.choice(&choices).map(|engine| to.settings.sandbox.engine = engine)
        },
    ),
    key("sandbox.image", "\"\"", "Default container image of `docker` and `podman`.", |to, value| {
        let image = value.text()?;
        if !image.is_empty() && !haft_definition::check::is_image_name(image) {
            return Err(InvalidValue("must be the name of a container image".to_owned()));
        }
        to.settings.sandbox.image = (!image.is_empty()).then(|| image.to_owned());
        Ok(())
    }),
    key(
        "sandbox.read_only",
        "[]",
        "Additional folders that tools with `sandbox: true` may read, e.g. `/opt/models`.",
        |to, value| {
            let folders = value.list()?;
            if let Some(relative) = folders.iter().find(|folder| !folder.starts_with('/')) {
                return Err(InvalidValue(format!("must be absolute paths; `{relative}` is not")));
            }
            to.settings.sandbox.read_only = folders.into_iter().map(Into::into).collect();
            Ok(())
        },
    ),
    key(
        "sandbox.path",
        "\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"",
        "Search path of programs for tools.",
        |to, value| {
            value.text()?.clone_into(&mut to.settings.sandbox.processes.path);
            Ok(())
        },
    ),
    key(
        "sandbox.at_once",
        "64",
        "Maximum number of concurrent tool processes; further calls wait. One caller gets at most three quarters of them.",
        |to, value| value.size(1..=100_000).map(|limit| to.settings.sandbox.processes.at_once = limit),
    ),
    key("sandbox.memory_bytes", "536870912", "Memory limit of one call in bytes.", |to, value| {
        value.number(8 << 20..=1 << 40).map(|bytes| to.settings.sandbox.processes.limits.memory = bytes)
    }),
    key("sandbox.processes", "128", "Maximum number of processes and threads of one call.", |to, value| {
        let limit = value.number(8..=100_000)?;
        to.settings.sandbox.processes.limits.processes = u32::try_from(limit).unwrap_or(u32::MAX);
        Ok(())
    }),
    key(
        "sandbox.file_bytes",
        "67108864",
        "Maximum size of a file that a call writes, in bytes.",
        |to, value| {
            value
                .number(1 << 16..=1 << 40)
                .map(|bytes| to.settings.sandbox.processes.limits.file_size = bytes)
        },
    ),
    key(
        "sandbox.work_bytes",
        "134217728",
        "Maximum size of the private folders of a call, in bytes.",
        |to, value| {
            value.number(1 << 16..=1 << 40).map(|bytes| to.settings.sandbox.processes.limits.work = bytes)
        },
    ),
    key(
        "python.index_url",
        "\"\"",
        "Package index of Python dependencies, e.g. `https://pypi.example.com/simple`; empty is PyPI.",
        set_index_url,
    ),
    key(
        "python.allow_builds",
        "false",
        "Whether Python packages without a wheel are built from source, which runs their code.",
        |to, value| value.boolean().map(|on| to.settings.python.allow_builds = on),
    ),
    key(
        "python.build_timeout",
        "\"5m\"",
        "Time limit of an installation of Python dependencies.",
        |to, value| value.duration().map(|time| to.settings.python.build_timeout = time),
    ),
    key(
        "python.max_bytes",
        "2147483648",
        "Maximum size of the Python dependencies of a tool, in bytes.",
        |to, value| value.number(1 << 20..=1 << 40).map(|bytes| to.settings.python.max_bytes = bytes),
    ),
    key(
        "python.keep_unused",
        "\"14d\"",
        "How long Python dependencies that no tool declares any more are kept after their last use.",
        |to, value| value.long_duration().map(|time| to.settings.python.keep_unused = time),
    ),
    key(
        "wasm.at_once",
        "256",
        "Maximum number of concurrent calls of `wasm` tools; further calls wait.",
        |to, value| {
            let limit = value.number(1..=10_000)?;
            to.settings.wasm.at_once = u32::try_from(limit).unwrap_or(u32::MAX);
            Ok(())
        },
    ),
    key(
        "wasm.memory_bytes",
        "268435456",
        "Memory limit of one call of a `wasm` tool in bytes.",
        |to, value| value.number(1 << 16..=1 << 32).map(|bytes| to.settings.wasm.memory_bytes = bytes),
    ),
    key(
        "wasm.total_memory_bytes",
        "1073741824",
        "Memory limit of all concurrent `wasm` calls in bytes; a call that would exceed it is rejected.",
        |to, value| value.number(1 << 16..=1 << 40).map(|bytes| to.settings.wasm.total_memory_bytes = bytes),
    ),
    key(
        "log.level",
        "\"info\"",
        "Log level: `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `haft_server=debug,warn`.",
        set_level,
    ),
    key("log.format", "\"text\"", "Log format: `text` or `json`.", |to, value| {
        let choices = [("text", LogFormat::Text), ("json", LogFormat::Json)];
        value.choice(&choices).map(|format| to.log.format = format)
    }),
];
