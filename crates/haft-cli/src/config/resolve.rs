//! Merges the layers of the configuration.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use haft_core::runnable::Mode;
use haft_core::secret::Secret;
use haft_server::settings::{
    BUILT_IN_VARIABLES, ConfigReport, DeclaredSecretCommand, DeclaredServers, SettingSource, Settings,
};

use super::effective::effective;
use super::error::{ConfigError, ConfigSource};
use super::file;
use super::keys::{KEYS, Key, VARIABLES};
use super::resolved::Resolved;
use super::value::Value;
use crate::environment::Environment;

/// The layer of options.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    /// `--home`.
    pub(crate) home: Option<PathBuf>,
    /// `--addr`.
    pub(crate) addr: Option<SocketAddr>,
    /// `--mode`.
    pub(crate) mode: Option<Mode>,
    /// `--token`.
    pub(crate) token: Option<Secret>,
    /// `--log`.
    pub(crate) log: Option<String>,
}

/// Returns the home folder: the flag, `HAFT_HOME`, or `~/.haft`.
pub(crate) fn home(flag: Option<&Path>, environment: &Environment) -> Result<PathBuf, ConfigError> {
    let named = flag.map(Path::to_owned).or_else(|| environment.get("HAFT_HOME").map(PathBuf::from));
    let home = match named {
        Some(home) => home,
        None => Path::new(environment.get("HOME").ok_or(ConfigError::NoHome)?).join(".haft"),
    };
    if home.metadata().is_ok_and(|metadata| !metadata.is_dir()) {
        return Err(ConfigError::HomeIsFile(home));
    }
    std::path::absolute(&home).map_err(|source| ConfigError::Read { path: home, source })
}

/// Merges the layers: defaults, file, environment, options.
pub(crate) fn resolve(flags: &Flags, environment: &Environment) -> Result<Resolved, ConfigError> {
    let home = home(flags.home.as_deref(), environment)?;
    let config = home.join("haft.toml");
    let mut to = Resolved::new(Settings::for_home(home));
    file::apply(&config, &mut to)?;
    apply_environment(environment, &mut to)?;
    apply_flags(flags, &mut to)?;
    read_secrets(environment, &mut to);
    let servers = std::mem::take(&mut to.mcp_servers);
    to.settings.mcp.servers = Some(DeclaredServers { file: config, servers });
    to.settings.config =
        ConfigReport { effective: effective(&to, flags, environment), warnings: to.warnings.clone() };
    Ok(to)
}

fn apply_environment(environment: &Environment, to: &mut Resolved) -> Result<(), ConfigError> {
    let secret = |name| environment.get(name).map(|text| Secret::new(text.to_owned()));
    to.settings.token = secret("HAFT_TOKEN");
    to.settings.key = secret("HAFT_KEY");
    to.settings.new_key = secret("HAFT_KEY_NEW");
    set_log_level(to, ConfigSource::Environment("HAFT_LOG".to_owned()), environment.get("HAFT_LOG"))?;
    for key in KEYS {
        let variable = key.variable();
        if let Some(text) = environment.get(&variable) {
            set(to, key, ConfigSource::Environment(variable), text)?;
        }
    }
    let known = |name: &str| VARIABLES.iter().any(|(known, _)| *known == name) || name == "HAFT_ARGS";
    for name in environment.names_with("HAFT_") {
        if !known(name) && !KEYS.iter().any(|key| key.variable() == name) {
            let nearest = nearest_variable(name);
            to.warnings.push(format!("unknown environment variable `{name}`; did you mean `{nearest}`?"));
        }
    }
    Ok(())
}

fn set(to: &mut Resolved, key: &Key, at: ConfigSource, text: &str) -> Result<(), ConfigError> {
    let value = Value::from_environment(text, key.is_list());
    let source = match at {
        ConfigSource::File { .. } => SettingSource::File,
        ConfigSource::Environment(_) => SettingSource::Environment,
        ConfigSource::Flag(_) => SettingSource::Flag,
    };
    to.set(key, value, source).map_err(|reason| ConfigError::Value { at, key: key.full, reason })
}

fn set_log_level(to: &mut Resolved, at: ConfigSource, text: Option<&str>) -> Result<(), ConfigError> {
    let key = KEYS.iter().find(|key| key.full == "log.level");
    key.zip(text).map_or(Ok(()), |(key, text)| set(to, key, at, text))
}

fn nearest_variable(name: &str) -> String {
    let mut known: Vec<String> = KEYS.iter().map(Key::variable).collect();
    known.extend(VARIABLES.iter().map(|(name, _)| (*name).to_owned()));
    let similarity = |other: &String| strsim::normalized_levenshtein(name, other);
    known.into_iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b))).unwrap_or_default()
}

fn apply_flags(flags: &Flags, to: &mut Resolved) -> Result<(), ConfigError> {
    if let Some(addr) = flags.addr {
        to.settings.addr = addr;
        to.origins.insert("addr", (Value::Text(addr.to_string()), SettingSource::Flag));
    }
    if let Some(mode) = flags.mode {
        to.settings.mode = mode;
        to.origins.insert("mode", (Value::Text(mode.as_str().to_owned()), SettingSource::Flag));
    }
    if let Some(token) = &flags.token {
        to.settings.token = Some(token.clone());
    }
    set_log_level(to, ConfigSource::Flag("--log"), flags.log.as_deref())
}

fn read_secrets(environment: &Environment, to: &mut Resolved) {
    for (name, _) in BUILT_IN_VARIABLES {
        if let Some(text) = environment.get(name) {
            to.settings.built_ins.platform.push(((*name).to_owned(), Secret::new(text.to_owned())));
        }
    }
    for name in std::mem::take(&mut to.secret_names) {
        match environment.get(&name) {
            Some(text) => to.settings.secrets.environment.push((name, Secret::new(text.to_owned()))),
            None => to
                .warnings
                .push(format!("`secrets.environment` lists `{name}`, which is not set in the environment")),
        }
    }
    for command in std::mem::take(&mut to.secret_commands) {
        let DeclaredSecretCommand { name, mut settings, variables } = command;
        for variable in variables {
            match environment.get(&variable) {
                Some(text) => settings.environment.push((variable, Secret::new(text.to_owned()))),
                None => to.warnings.push(format!(
                    "`secrets.commands.{name}` lists `{variable}`, which is not set in the environment"
                )),
            }
        }
        to.settings.secrets.sources.commands.insert(name, settings);
    }
}
