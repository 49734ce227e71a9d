//! The effective configuration and where each value comes from, for the web interface.

use haft_core::secret::MASK;
use haft_server::settings::{BUILT_IN_VARIABLES, EffectiveSetting, SettingSource};
use serde_json::{Value as Json, json};

use super::file;
use super::keys::{KEYS, Key, VARIABLES};
use super::resolve::Flags;
use super::resolved::Resolved;
use super::value::Value;
use crate::environment::Environment;

/// Environment variables with secrets that are not keys of the file.
const SECRET_VARIABLES: [&str; 3] = ["HAFT_TOKEN", "HAFT_KEY", "HAFT_KEY_NEW"];

/// Returns all values: the home folder, every key, and the environment variables with secrets that are set.
pub(super) fn effective(
    resolved: &Resolved,
    flags: &Flags,
    environment: &Environment,
) -> Vec<EffectiveSetting> {
    let home = EffectiveSetting {
        key: "home".to_owned(),
        value: json!(resolved.settings.home),
        source: match (&flags.home, environment.get("HAFT_HOME")) {
            (Some(_), _) => SettingSource::Flag,
            (None, Some(_)) => SettingSource::Environment,
            (None, None) => SettingSource::Default,
        },
        description: Some("Home folder, which holds all data unless a database is configured.".to_owned()),
    };
    let keys = KEYS.iter().map(|key| setting(key, resolved));
    let variables = VARIABLES.iter().filter(|(name, _)| SECRET_VARIABLES.contains(name));
    let secrets = variables.chain(BUILT_IN_VARIABLES).filter_map(|(name, description)| {
        environment.get(name)?;
        Some(EffectiveSetting {
            key: (*name).to_owned(),
            value: json!(MASK),
            source: SettingSource::Environment,
            description: Some((*description).to_owned()),
        })
    });
    std::iter::once(home).chain(keys).chain(secrets).collect()
}

fn setting(key: &Key, resolved: &Resolved) -> EffectiveSetting {
    let (value, source) = match resolved.origins.get(key.full) {
        Some((value, source)) => (to_json(value, key), *source),
        None => (file::default_value(key.default), SettingSource::Default),
    };
    EffectiveSetting { key: key.full.to_owned(), value, source, description: Some(key.help.to_owned()) }
}

/// Returns a value in the type of its key: an environment variable has only texts.
fn to_json(value: &Value, key: &Key) -> Json {
    match value {
        Value::List(items) => json!(items),
        Value::Boolean(on) => json!(on),
        Value::Other(kind) => json!(kind),
        Value::Text(text) | Value::Number(text) => match file::default_value(key.default) {
            Json::Number(_) => text.replace('_', "").parse::<i64>().map_or_else(|_| json!(text), Json::from),
            Json::Bool(_) => text.parse::<bool>().map_or_else(|_| json!(text), Json::from),
            _ => json!(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Flags, resolve};

    #[test]
    fn every_value_has_its_source_and_secrets_are_masked() {
        let home = tempfile::tempdir().unwrap();
        let text = "[server]\nmax_body_bytes = 4096\nmax_running_calls = 7\n[ledger]\nkeep_days = 3\n";
        std::fs::write(home.path().join("haft.toml"), text).unwrap();
        let environment = Environment::from([
            ("HAFT_SERVER_MAX_RUNNING_CALLS", "9"),
            ("HAFT_DATABASE_URL", "postgres://user:hunter2@localhost/haft"),
            ("HAFT_TOKEN", "hunter2-token-hunter2-token-hunter2"),
            ("HAFT_EGRESS_ALLOWED_HOSTS", "a.test, b.test"),
        ]);
        let flags = Flags {
            home: Some(home.path().to_owned()),
            addr: Some(([127, 0, 0, 1], 4000).into()),
            ..Flags::default()
        };
        let resolved = resolve(&flags, &environment).unwrap();
        let effective = resolved.settings.config.effective;
        let shown = |key: &str| {
            let found = effective.iter().find(|setting| setting.key == key).unwrap();
            (found.value.clone(), found.source)
        };
        assert_eq!(shown("home"), (json!(home.path()), SettingSource::Flag));
        assert_eq!(shown("addr"), (json!("127.0.0.1:4000"), SettingSource::Flag));
        assert_eq!(shown("mode"), (json!("debug"), SettingSource::Default));
        assert_eq!(shown("server.max_body_bytes"), (json!(4096), SettingSource::File));
        assert_eq!(shown("server.max_running_calls"), (json!(9), SettingSource::Environment));
        assert_eq!(shown("egress.allowed_hosts"), (json!(["a.test", "b.test"]), SettingSource::Environment));
        assert_eq!(shown("egress.private_hosts"), (json!([]), SettingSource::Default));
        assert_eq!(shown("database_url"), (json!("***"), SettingSource::Environment));
        assert_eq!(shown("HAFT_TOKEN"), (json!("***"), SettingSource::Environment));
        assert!(!format!("{effective:?}").contains("hunter2"));
        assert_eq!(effective.len(), KEYS.len() + 2, "home, every key, and the token");
    }
}
