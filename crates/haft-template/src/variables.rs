//! Names of environment variables that shells, loaders and interpreters use.

/// Variables that bash sets or reads, or that change how programs are loaded and interpreted.
const RESERVED: [&str; 164] = [
    "ALL_PROXY",
    "ANT_OPTS",
    "AWKLIBPATH",
    "AWKPATH",
    "BASH",
    "BASHOPTS",
    "BASHPID",
    "BROWSER",
    "BZIP",
    "BZIP2",
    "CC",
    "CDPATH",
    "CFLAGS",
    "CHILD_MAX",
    "CLASSPATH",
    "COLUMNS",
    "COPROC",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "CVS_RSH",
    "CXX",
    "DIRSTACK",
    "DOCKER_CONFIG",
    "DOCKER_HOST",
    "DYLD_INSERT_LIBRARIES",
    "EDITOR",
    "EMACS",
    "ENV",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_ZFLAGS",
    "EUID",
    "EXECIGNORE",
    "EXINIT",
    "FCEDIT",
    "FIGNORE",
    "FTP_PROXY",
    "FUNCNAME",
    "FUNCNEST",
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "GNUMAKEFLAGS",
    "GRADLE_OPTS",
    "GREP_COLORS",
    "GREP_OPTIONS",
    "GROUPS",
    "GZIP",
    "HGRCPATH",
    "HOME",
    "HOSTALIASES",
    "HOSTFILE",
    "HOSTNAME",
    "HOSTTYPE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "IGNOREEOF",
    "INPUTRC",
    "INSIDE_EMACS",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JULIA_LOAD_PATH",
    "LANG",
    "LANGUAGE",
    "LDFLAGS",
    "LESSCLOSE",
    "LESSOPEN",
    "LINENO",
    "LINES",
    "LOCALDOMAIN",
    "LOCPATH",
    "LOGNAME",
    "LUA_INIT",
    "MACHTYPE",
    "MAIL",
    "MAILCHECK",
    "MAILPATH",
    "MAKEFLAGS",
    "MANPAGER",
    "MAPFILE",
    "MAVEN_OPTS",
    "MFLAGS",
    "MYVIMRC",
    "NIS_PATH",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NO_PROXY",
    "OLDPWD",
    "OPENSSL_CONF",
    "OPTARG",
    "OPTERR",
    "OPTIND",
    "OSTYPE",
    "PAGER",
    "PATH",
    "PGSERVICEFILE",
    "PGSYSCONFDIR",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PIPESTATUS",
    "POSIXLY_CORRECT",
    "PPID",
    "PROMPT_COMMAND",
    "PROMPT_DIRTRIM",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PSQLRC",
    "PWD",
    "RANDOM",
    "READLINE_LINE",
    "REPLY",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "RSH",
    "RSYNC_RSH",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "R_ENVIRON",
    "R_PROFILE",
    "SECONDS",
    "SHELL",
    "SHELLOPTS",
    "SHLVL",
    "SRANDOM",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "SVN_EDITOR",
    "SVN_SSH",
    "TAR_OPTIONS",
    "TERM",
    "TERMINFO",
    "TERMINFO_DIRS",
    "TIMEFORMAT",
    "TMOUT",
    "TMPDIR",
    "TZ",
    "TZDIR",
    "UID",
    "USER",
    "VIMINIT",
    "VISUAL",
    "WGETRC",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XZ_DEFAULTS",
    "XZ_OPT",
    "ZIPOPT",
    "ZSTD_CLEVEL",
    "_",
    "_JAVA_OPTIONS",
    "auto_resume",
    "histchars",
];

/// The beginnings of such names.
const RESERVED_PREFIXES: [&str; 22] = [
    "CARGO_BUILD_",
    "CARGO_TARGET_",
    "NPM_CONFIG_",
    "npm_config_",
    "PIP_",
    "BASH_",
    "COMP_",
    "GIT_",
    "HAFT_",
    "HIST",
    "LC_",
    "LD_",
    "LUA_",
    "MALLOC_",
    "OPENSSL_",
    "PERL",
    "PYTHON",
    "RUBY",
    "SSL_CERT_",
    "GEM_",
    "READLINE_",
    "DYLD_",
];

/// Common variables that are never secrets.
const COMMON: [&str; 3] = ["DISPLAY", "HOST", "NF"];

/// Returns whether an argument of that name must not become an environment variable: the name is invalid, or a
/// shell, a loader or an interpreter uses it.
pub fn reserved_variable(name: &str) -> bool {
    let lower_proxy = name.ends_with("_proxy");
    !is_variable(name)
        || lower_proxy
        || RESERVED.contains(&name)
        || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Variables that bash evaluates, or that decide which programs and libraries it loads.
const SHELL_CONTROL: [&str; 23] = [
    "BASH",
    "BASHOPTS",
    "BASHPID",
    "ENV",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "EXECIGNORE",
    "FUNCNEST",
    "GLOBIGNORE",
    "HISTCMD",
    "HOME",
    "IFS",
    "LINENO",
    "OPTIND",
    "PATH",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "RANDOM",
    "SHELLOPTS",
    "SRANDOM",
];
/// Prefixes of [`SHELL_CONTROL`] variables.
const SHELL_CONTROL_PREFIXES: [&str; 5] = ["BASH_", "COMP_", "DYLD_", "HAFT_", "LD_"];

/// Returns whether a value in that variable of a command could run code in the shell.
pub(super) fn controls_shell(name: &str) -> bool {
    SHELL_CONTROL.contains(&name) || SHELL_CONTROL_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether a text is a valid name of a shell variable.
pub fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns whether a variable that is not assigned may be a secret.
pub(super) fn may_be_secret(name: &str) -> bool {
    !reserved_variable(name) && !COMMON.contains(&name)
}

/// Returns whether a name consists of upper-case letters, digits and `_`.
pub(super) fn is_upper_case(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// A secret that a command or a script reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretName {
    /// Its name, which is also the name of its variable.
    pub name: String,
    /// Whether the call fails without it; `false` if the text has a fallback, such as `${NAME:-x}`.
    pub required: bool,
}

/// Adds a secret to a list without duplicates.
pub(super) fn add_secret(names: &mut Vec<SecretName>, name: &str, required: bool) {
    match names.iter_mut().find(|known| known.name == name) {
        Some(known) => known.required |= required,
        None => names.push(SecretName { name: name.to_owned(), required }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_change_how_a_program_runs_are_reserved() {
        for name in [
            "PATH",
            "HOME",
            "LANG",
            "LC_ALL",
            "LD_PRELOAD",
            "BASH_ENV",
            "ENV",
            "SHELLOPTS",
            "BASHOPTS",
            "IFS",
            "PS1",
            "PS4",
            "PROMPT_COMMAND",
            "CDPATH",
            "GLOBIGNORE",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "GCONV_PATH",
            "GLIBC_TUNABLES",
            "MALLOC_CHECK_",
            "NLSPATH",
            "LOCPATH",
            "RES_OPTIONS",
            "HOSTALIASES",
            "TMPDIR",
            "TZ",
            "TERMINFO",
            "NODE_OPTIONS",
            "PERL5LIB",
            "RUBYOPT",
            "JAVA_TOOL_OPTIONS",
            "_JAVA_OPTIONS",
            "TAR_OPTIONS",
            "MAKEFLAGS",
            "LESSOPEN",
            "PAGER",
            "npm_config_script_shell",
            "GIT_SSH_COMMAND",
            "SSL_CERT_FILE",
            "http_proxy",
            "HTTPS_PROXY",
            "HAFT_ARGS",
            "HAFT_V1",
            "UID",
            "EUID",
            "PPID",
            "RANDOM",
            "a-b",
            "a.b",
            "1a",
            "",
            "größe",
            "a b",
            "x=y",
        ] {
            assert!(reserved_variable(name), "{name}");
        }
        for name in
            ["city", "text", "url", "path", "home", "SLACK_WEBHOOK", "API_KEY", "x1", "_private", "env"]
        {
            assert!(!reserved_variable(name), "{name}");
        }
    }
}
