//! Tests of the layers and the errors.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_core::runnable::Mode;
use haft_server::settings::{BUILT_IN_VARIABLES, ConfigReport};

use super::keys::{KEYS, VARIABLES};
use super::*;
use crate::environment::Environment;

fn home_with(toml: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("haft.toml"), toml).unwrap();
    home
}

fn flags(home: &Path) -> Flags {
    Flags { home: Some(home.to_owned()), ..Flags::default() }
}

/// Returns the settings as a text, without the folder of the test.
fn shown(resolved: &Resolved) -> String {
    let home = resolved.settings.home.display().to_string();
    let mut resolved = resolved.clone();
    // Where values come from differs.
    resolved.origins.clear();
    resolved.settings.config = ConfigReport::default();
    format!("{resolved:#?}").replace(&home, "HOME")
}

#[test]
fn the_sample_uncommented_equals_the_defaults() {
    let uncommented: String = sample()
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(code) if KEYS.iter().any(|key| code.starts_with(&format!("{} = ", key.name()))) => code,
            _ => line,
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_eq!(
        uncommented.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')).count(),
        KEYS.len()
    );
    let empty = tempfile::tempdir().unwrap();
    let environment = Environment::default();
    let defaults = resolve(&flags(empty.path()), &environment).unwrap();
    for toml in [sample(), uncommented] {
        let home = home_with(&toml);
        let resolved = resolve(&flags(home.path()), &environment).unwrap();
        assert_eq!(shown(&resolved), shown(&defaults));
    }
}

#[test]
fn mcp_servers_are_declared_in_tables() {
    let home = home_with(
        "[mcp]\ncompact_above = 7\n[mcp.servers.time]\ncommand = \"mcp-server-time\"\nargs = [\"--utc\"]\n\
         env = { KEY = \"${API_KEY}\" }\n[mcp.servers.docs]\nurl = \"https://x.test/mcp\"\n\
         oauth = { client_id = \"me\", scopes = [\"read\"] }\nenabled = false\n",
    );
    let resolved = resolve(&flags(home.path()), &Environment::default()).unwrap();
    assert_eq!(resolved.settings.mcp.compact_above, 7);
    let declared = resolved.settings.mcp.servers.unwrap();
    assert_eq!(declared.file, home.path().join("haft.toml"));
    let shown: Vec<_> = declared.servers.iter().map(|server| serde_json::to_value(server).unwrap()).collect();
    assert_eq!((&shown[0]["oauth"]["scopes"][0], &shown[0]["enabled"]), (&"read".into(), &false.into()));
    assert_eq!(shown[1]["env"]["KEY"], "${API_KEY}");
    assert_eq!((&shown[1]["id"], &shown[1]["args"][0]), (&"time".into(), &"--utc".into()));
    for (toml, expected) in [
        (
            "[mcp.servers.a]\nurl = \"ftp://x\"",
            "haft.toml:1: `mcp.servers` has an invalid server `a`: `url` must start with `http://` or `https://`",
        ),
        (
            "\n[mcp.servers.a]\ncomand = \"x\"",
            "haft.toml:2: `mcp.servers` has an invalid server `a`: unknown field `comand`",
        ),
        ("[mcp]\nservers = 7", "haft.toml:2: unknown key `mcp.servers`"),
        ("[mcp.servers]\na = 7", "haft.toml:2: `mcp.servers` has an invalid server `a`: invalid type"),
        (
            "[mcp.servers.\"a b\"]\ncommand = \"x\"",
            "haft.toml:1: `mcp.servers` has an invalid server `a b`: `id`",
        ),
    ] {
        let home = home_with(toml);
        let error = resolve(&flags(home.path()), &Environment::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn sources_of_secrets_are_declared_in_tables() {
    let home = home_with(
        "[secrets]\nenvironment = []\n[secrets.vault]\naddress = \"https://vault.test\"\ncache = \"1h\"\n\
         [secrets.files]\ndirectory = \"/run/secrets\"\n[secrets.commands.github]\n\
         command = [\"op\", \"read\", \"op://a/b\"]\nenvironment = [\"OP_TOKEN\", \"NONE\"]\ntenants = [\"*\"]\n",
    );
    let environment =
        Environment::from([("OP_TOKEN", "s3cr3t"), ("HAFT_SECRETS_VAULT_TOKEN", "s3cr3t-token")]);
    let resolved = resolve(&flags(home.path()), &environment).unwrap();
    assert!(!shown(&resolved).contains("s3cr3t"));
    let effective = &resolved.settings.config.effective;
    let token = effective.iter().find(|setting| setting.key == "secrets.vault.token").unwrap();
    assert_eq!(token.value, "***");
    let sources = resolved.settings.secrets.sources;
    assert_eq!(sources.vault.address, "https://vault.test");
    assert_eq!(sources.vault.token.unwrap().expose(), "s3cr3t-token");
    assert_eq!((sources.vault.cache, sources.vault.stale), (Duration::from_hours(1), Duration::ZERO));
    assert_eq!(sources.files.directory, Some(PathBuf::from("/run/secrets")));
    let command = &sources.commands["github"];
    assert_eq!(command.command, ["op", "read", "op://a/b"]);
    let variables: Vec<_> =
        command.environment.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(variables, [("OP_TOKEN", "s3cr3t")]);
    let expected = "`secrets.commands.github` lists `NONE`, which is not set in the environment";
    assert_eq!(resolved.warnings, [expected]);
    for (toml, expected) in [
        (
            "[secrets.commands.a]\ncomand = [\"x\"]",
            "haft.toml:1: `secrets.commands` has an invalid command `a`: unknown field `comand`",
        ),
        ("[secrets.vault]\nadress = \"x\"", "haft.toml:2: unknown key `secrets.vault.adress`"),
        ("[secrets.files]\ndirectory = \"x\"", "haft.toml:2: `secrets.files.directory` must be empty or an"),
        ("[secrets.vault]\ntimeout = \"1h\"", "haft.toml:2: `secrets.vault.timeout` must be more than"),
        ("[secrets]\ncommands = 7", "haft.toml:2: unknown key `secrets.commands`"),
    ] {
        let home = home_with(toml);
        let error = resolve(&flags(home.path()), &Environment::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn issuers_are_a_list_of_tables() {
    let issuer =
        "[[sign_on.issuers]]\nid = \"corp\"\nissuer = \"https://login.test\"\nclient_id = \"haft\"\n";
    let rule = "[[sign_on.issuers.rules]]\nwhen = \"'ops' in claims.groups\"\nrole = \"caller\"\n";
    let home = home_with(&format!("{issuer}{rule}"));
    let resolved = resolve(&flags(home.path()), &Environment::default()).unwrap();
    let [corp] = &resolved.settings.sign_on.issuers[..] else { panic!("one issuer") };
    assert_eq!((corp.id.as_str(), corp.rules.len()), ("corp", 1));
    let second = issuer.replace("login.test", "other.test");
    for (toml, expected) in [
        (
            issuer.replace("client_id", "client"),
            "haft.toml:1: `sign_on.issuers` has an invalid issuer: unknown field `client`",
        ),
        (
            format!("{issuer}{second}"),
            "haft.toml:5: `sign_on.issuers` has an invalid issuer: the `id` `corp` is",
        ),
        (
            format!("{issuer}{}", issuer.replace("corp", "b")),
            "the `issuer` `https://login.test` is configured twice",
        ),
        (format!("{issuer}{}", rule.replace("caller", "boss")), "rule 1: `role` must be"),
        ("[sign_on]\nissuer = \"x\"".to_owned(), "haft.toml:2: unknown key `sign_on.issuer`"),
    ] {
        let home = home_with(&toml);
        let error = resolve(&flags(home.path()), &Environment::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn later_layers_win() {
    let home = home_with("addr = \"127.0.0.1:1\"\nmode = \"production\"\n[server]\nmax_body_bytes = 2_048\n");
    let environment =
        Environment::from([("HAFT_ADDR", "127.0.0.1:2"), ("HAFT_SERVER_MAX_BODY_BYTES", "4096")]);
    let addr = |resolved: &Resolved| resolved.settings.addr.port();

    let from_file = resolve(&flags(home.path()), &Environment::default()).unwrap();
    assert_eq!((addr(&from_file), from_file.settings.server.max_body_bytes), (1, 2048));
    assert_eq!(from_file.settings.mode, Mode::Production);

    let from_environment = resolve(&flags(home.path()), &environment).unwrap();
    assert_eq!((addr(&from_environment), from_environment.settings.server.max_body_bytes), (2, 4096));

    let given = Flags {
        addr: Some(SocketAddr::from(([127, 0, 0, 1], 3))),
        mode: Some(Mode::Debug),
        ..flags(home.path())
    };
    let from_flags = resolve(&given, &environment).unwrap();
    assert_eq!((addr(&from_flags), from_flags.settings.mode), (3, Mode::Debug));
    assert_eq!(from_flags.settings.server.max_body_bytes, 4096);
}

/// A value of each key that is not its default.
const VALUES: &[(&str, &str)] = &[
    ("addr", "\"localhost:80\""),
    ("mode", "\"production\""),
    ("database_url", "\"postgres://u:p@h/d\""),
    ("blob_url", "\"s3://bucket/haft\""),
    ("server.max_body_bytes", "1024"),
    ("server.max_running_calls", "7"),
    ("server.cors_origins", "[\"https://a.example\", \"https://b.example\"]"),
    ("server.shutdown_grace", "\"1m30s\""),
    ("server.session_lifetime", "\"8h\""),
    ("server.max_streams", "20"),
    ("server.max_streams_per_token", "10"),
    ("server.max_streams_per_address", "15"),
    ("import.max_document_bytes", "4096"),
    ("mcp.allowed_hosts", "[\"tools.example.com\"]"),
    ("mcp.public_url", "\"https://tools.example.com\""),
    ("mcp.compact_above", "7"),
    ("mcp.compact_above_tokens", "7"),
    ("oauth.access_token_lifetime", "\"10m\""),
    ("oauth.refresh_token_lifetime", "\"30d\""),
    ("oauth.dynamic_registration", "false"),
    ("egress.allowed_hosts", "[\"*.example.com\"]"),
    ("egress.private_hosts", "[\"10.0.0.0/8\"]"),
    ("files.sandboxes", "[\"work=/srv/work\", \"data=/srv/data\"]"),
    ("files.read_only", "[\"data\"]"),
    ("toolsets.trusted_keys", "[\"acme=BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\"]"),
    ("toolsets.require_signed", "true"),
    ("results.max_inline_bytes", "2048"),
    ("blobs.endpoint", "\"https://minio.example.com\""),
    ("blobs.region", "\"eu-central-1\""),
    ("blobs.access_key_id", "\"AKIA\""),
    ("blobs.secret_access_key", "\"hunter2\""),
    ("render.frame_hosts", "[\"localhost:3000\"]"),
    ("secrets.environment", "[\"WEATHER_KEY\"]"),
    ("secrets.vault.address", "\"https://vault.example.com:8200\""),
    ("secrets.vault.mount", "\"kv\""),
    ("secrets.vault.namespace", "\"team-a\""),
    ("secrets.vault.auth", "\"approle\""),
    ("secrets.vault.auth_mount", "\"approle-2\""),
    ("secrets.vault.token", "\"hunter2\""),
    ("secrets.vault.token_file", "\"/run/vault/token\""),
    ("secrets.vault.role_id", "\"role-1\""),
    ("secrets.vault.secret_id", "\"hunter2\""),
    ("secrets.vault.secret_id_file", "\"/run/vault/secret-id\""),
    ("secrets.vault.role", "\"haft\""),
    ("secrets.vault.jwt_file", "\"/run/token\""),
    ("secrets.vault.ca_file", "\"/etc/vault/ca.pem\""),
    ("secrets.vault.path_prefix", "\"tenants/{tenant}\""),
    ("secrets.vault.tenants", "[\"default\", \"acme\"]"),
    ("secrets.vault.timeout", "\"2s\""),
    ("secrets.vault.cache", "\"1h\""),
    ("secrets.vault.stale", "\"7d\""),
    ("secrets.files.directory", "\"/run/secrets\""),
    ("secrets.files.tenants", "[\"*\"]"),
    ("built_ins.enabled", "false"),
    ("built_ins.emails_per_minute", "3"),
    ("ledger.sync", "\"os\""),
    ("ledger.keep_days", "0"),
    ("ledger.keep_calls", "1"),
    ("ledger.keep_bytes_per_tenant", "1"),
    ("ledger.keep_bytes", "1"),
    ("ledger.idempotency_retention", "\"7d\""),
    ("queue.workers", "3"),
    ("queue.max_queued", "7"),
    ("models.default", "\"claude-sonnet-5\""),
    ("models.private_urls", "[\"http://10.0.0.1:8000\"]"),
    ("models.prices", "[\"claude-*=3/15/0.3 EUR\"]"),
    ("models.timeout", "\"5m\""),
    ("retrieval.max_document_bytes", "4096"),
    ("retrieval.max_chunks", "7"),
    ("retrieval.keep_revisions", "7"),
    ("retrieval.max_index_bytes", "2097152"),
    ("runs.max_running", "7"),
    ("runs.keep_days", "0"),
    ("chats.keep_days", "7"),
    ("tools.keep_revisions", "6"),
    ("agents.keep_revisions", "7"),
    ("workspaces.keep_days", "7"),
    ("workspaces.keep_states", "7"),
    ("artifacts.keep_versions", "7"),
    ("approvals.expire_after", "\"1h\""),
    ("approvals.four_eyes", "true"),
    ("approvals.keep_days", "7"),
    ("approvals.remember_days", "7"),
    ("scim.default_role", "\"caller\""),
    ("scim.default_tools", "\"all\""),
    ("limits.session_calls_per_minute", "7"),
    ("limits.identical_calls", "0"),
    ("metrics.top_tools", "7"),
    ("audit.keep_days", "0"),
    ("audit.keep_records", "1"),
    ("history.keep_days", "0"),
    ("history.keep_copies", "1"),
    ("sandbox.engine", "\"landlock\""),
    ("sandbox.image", "\"debian:12\""),
    ("sandbox.read_only", "[\"/opt/models\"]"),
    ("sandbox.path", "\"/usr/bin\""),
    ("sandbox.at_once", "3"),
    ("sandbox.memory_bytes", "16777216"),
    ("sandbox.processes", "16"),
    ("sandbox.file_bytes", "65536"),
    ("sandbox.work_bytes", "65536"),
    ("python.index_url", "\"https://u:p@pypi.example.com/simple\""),
    ("python.allow_builds", "true"),
    ("python.build_timeout", "\"1m\""),
    ("python.max_bytes", "1048576"),
    ("python.keep_unused", "\"1d\""),
    ("wasm.at_once", "3"),
    ("wasm.memory_bytes", "65536"),
    ("wasm.total_memory_bytes", "65536"),
    ("log.level", "\"debug\""),
    ("log.format", "\"json\""),
];

#[test]
fn every_key_can_be_set_by_file_and_by_environment() {
    let keys = |of: &[(&'static str, &str)]| of.iter().map(|(key, _)| *key).collect::<Vec<_>>();
    assert_eq!(keys(VALUES), KEYS.iter().map(|key| key.full).collect::<Vec<_>>());
    let empty = tempfile::tempdir().unwrap();
    let defaults = shown(&resolve(&flags(empty.path()), &Environment::default()).unwrap());
    for (key, value) in VALUES.iter().copied() {
        let home = home_with(&format!("{key} = {value}\n"));
        let base = Environment::from([("WEATHER_KEY", "s3cr3t")]);
        let by_file = resolve(&flags(home.path()), &base).unwrap();
        assert_ne!(shown(&by_file), defaults, "{key}");
        assert!(!shown(&by_file).contains("s3cr3t"), "a secret is shown");

        let variable = KEYS.iter().find(|other| other.full == key).unwrap().variable();
        let text = value.replace(['"', '[', ']'], "");
        let with = Environment::from([("WEATHER_KEY", "s3cr3t"), (variable.as_str(), text.as_str())]);
        let by_environment = resolve(&flags(empty.path()), &with).unwrap();
        assert_eq!(shown(&by_environment), shown(&by_file), "{variable}");
    }
}

#[test]
fn values_reach_the_settings() {
    let home = home_with("[server]\nshutdown_grace = \"1m30s\"\n[secrets]\nenvironment = [\"A\", \"B\"]\n");
    let environment = Environment::from([
        ("A", "value"),
        ("HAFT_TOKEN", "t"),
        ("HAFT_KEY", "k"),
        ("HAFT_LOG", "trace"),
        ("HAFT_SERVER_MAX_BODY", "1"),
        ("HAFT_ARGS", "{}"),
    ]);
    let resolved = resolve(&flags(home.path()), &environment).unwrap();
    assert_eq!(resolved.settings.server.shutdown_grace, Duration::from_secs(90));
    let secrets: Vec<_> =
        resolved.settings.secrets.environment.iter().map(|(n, s)| (n.as_str(), s.expose())).collect();
    assert_eq!(secrets, [("A", "value")]);
    assert_eq!(resolved.settings.token.unwrap().expose(), "t");
    assert_eq!(resolved.settings.key.unwrap().expose(), "k");
    assert_eq!(resolved.log.level, "trace");
    assert_eq!(
        resolved.warnings,
        [
            "unknown environment variable `HAFT_SERVER_MAX_BODY`; did you mean `HAFT_SERVER_MAX_BODY_BYTES`?",
            "`secrets.environment` lists `B`, which is not set in the environment",
        ]
    );
}

/// Returns the error and its hint for a file.
fn error_of(toml: &str) -> String {
    let home = home_with(toml);
    let error = resolve(&flags(home.path()), &Environment::default()).unwrap_err();
    let hint = error.hint().map(|hint| format!(" | {hint}")).unwrap_or_default();
    format!("{error}{hint}").replace(&home.path().display().to_string(), "HOME")
}

#[test]
fn an_error_in_the_file_has_its_line_and_a_hint() {
    for (toml, expected) in [
        ("\nadress = 1", "HOME/haft.toml:2: unknown key `adress` | did you mean `addr`?"),
        (
            "[server]\n\nmax_body = 1",
            "HOME/haft.toml:3: unknown key `server.max_body` | did you mean `server.max_body_bytes`?",
        ),
        (
            "cors_origins = []",
            "HOME/haft.toml:1: unknown key `cors_origins` | did you mean `server.cors_origins`?",
        ),
        ("[sever]\nx = 1", "HOME/haft.toml:1: unknown key `sever` | did you mean `log.level`?"),
        ("server = 3", "HOME/haft.toml:1: unknown key `server` | did you mean `server.max_streams`?"),
        ("addr = 80", "HOME/haft.toml:1: `addr` must be a string, not a number"),
        (
            "addr = \"example.com\"",
            "HOME/haft.toml:1: `addr` must be an IP address with a port, e.g. \"127.0.0.1:18789\"",
        ),
        ("mode = \"prod\"", "HOME/haft.toml:1: `mode` must be \"debug\" or \"production\""),
        (
            "database_url = \"mysql://root:hunter2@x\"",
            "HOME/haft.toml:1: `database_url` must be empty or start with `postgres://`",
        ),
        (
            "server.max_body_bytes = -1",
            "HOME/haft.toml:1: `server.max_body_bytes` must be an integer from 1024 to 1073741824",
        ),
        (
            "[egress]\nallowed_hosts = \"a\"",
            "HOME/haft.toml:2: `egress.allowed_hosts` must be a list of strings, e.g. [\"one\", \"two\"]",
        ),
        (
            "[egress]\nallowed_hosts = [1]",
            "HOME/haft.toml:2: `egress.allowed_hosts` must be a list of strings, e.g. [\"one\", \"two\"]",
        ),
        (
            "[server]\nshutdown_grace = 30",
            "HOME/haft.toml:2: `server.shutdown_grace` must be a duration string, e.g. \"30s\"",
        ),
        (
            "[server]\nshutdown_grace = \"soon\"",
            "HOME/haft.toml:2: `server.shutdown_grace` is invalid: invalid duration `soon`; expected a value such as `500ms`, `30s`, `5m` or `1m30s`",
        ),
        ("\n\nx = ", "HOME/haft.toml:3: string values must be quoted, expected literal string"),
    ] {
        assert_eq!(error_of(toml), expected, "{toml:?}");
    }
}

#[test]
fn an_error_in_the_environment_names_the_variable() {
    let home = tempfile::tempdir().unwrap();
    let environment = Environment::from([("HAFT_LEDGER_KEEP_DAYS", "many")]);
    insta::assert_snapshot!(resolve(&flags(home.path()), &environment).unwrap_err(),
        @"environment variable `HAFT_LEDGER_KEEP_DAYS`: `ledger.keep_days` must be an integer from 0 to 36500");
    let given = Flags { log: Some("=".to_owned()), ..flags(home.path()) };
    assert!(
        resolve(&given, &Environment::default())
            .unwrap_err()
            .to_string()
            .starts_with("option `--log`: `log.level`")
    );
}

#[test]
fn the_home_folder_is_the_flag_the_variable_or_a_default() {
    let environment = Environment::from([("HAFT_HOME", "/b"), ("HOME", "/c")]);
    let none = Environment::from([("HOME", "/c"), ("HAFT_HOME", "")]);
    assert_eq!(home(Some(Path::new("/a")), &environment).unwrap(), PathBuf::from("/a"));
    assert_eq!(home(None, &environment).unwrap(), PathBuf::from("/b"));
    assert_eq!(home(None, &none).unwrap(), PathBuf::from("/c/.haft"));
    assert!(matches!(home(None, &Environment::default()), Err(ConfigError::NoHome)));
}

#[test]
fn the_reference_is_complete() {
    let mut expected = String::from("| key | variable | default | meaning |\n| --- | --- | --- | --- |\n");
    for key in KEYS {
        let row = format!("| `{}` | `{}` | `{}` | {} |\n", key.full, key.variable(), key.default, key.help);
        expected.push_str(&row);
    }
    expected.push_str("\n| variable | meaning |\n| --- | --- |\n");
    for (name, help) in VARIABLES.iter().chain(BUILT_IN_VARIABLES) {
        let row = format!("| `{name}` | {help} |\n");
        expected.push_str(&row);
    }
    let reference = include_str!("../../../../docs/configuration.md");
    for line in expected.lines() {
        assert!(
            reference.lines().any(|other| other == line),
            "docs/configuration.md lacks this line:\n{line}\n\nall:\n{expected}"
        );
    }
}

#[test]
fn the_settings_of_built_in_tools_come_from_the_environment_and_are_not_shown() {
    let home = tempfile::tempdir().unwrap();
    let environment =
        Environment::from([("SMTP_HOST", "mail.example.com"), ("SMTP_PASS", "s3cr3t"), ("SMTP_USER", "")]);
    let resolved = resolve(&flags(home.path()), &environment).unwrap();
    let platform = &resolved.settings.built_ins.platform;
    let names: Vec<&str> = platform.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["SMTP_HOST", "SMTP_PASS"]);
    assert!(!shown(&resolved).contains("s3cr3t"));
}
