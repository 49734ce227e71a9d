//! Reports an invalid command line: clap's message for people, one line of JSON for programs.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::environment::Environment;
use crate::error::CliError;
use crate::output::{Color, Form, Output};
use crate::shell::quote;

/// Reports an invalid command line, or prints the requested help.
pub(crate) fn report(error: &clap::Error, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    let as_json = error.use_stderr() && wants_json(&arguments);
    let specific = unexpected_value(error, &arguments)
        .or_else(|| token_of_login(error, &arguments))
        .or_else(|| other_word(error, &arguments));
    let usage = specific.or_else(|| as_json.then(|| CliError::usage(one_line(error))));
    if let Some(usage) = usage {
        let form = if as_json { Form::Json } else { Form::Text };
        Output::new(form, Color::Auto, &Environment::of_process()).error(&usage);
        return usage.exit().into();
    }
    // Nothing can be done if the stream is closed.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn wants_json(arguments: &[String]) -> bool {
    let options: Vec<&str> = arguments.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    let is_one = |word: &&str| matches!(*word, "--json" | "-ojson" | "-o=json" | "--output=json");
    options.iter().any(is_one) || options.windows(2).any(|pair| matches!(pair, ["-o" | "--output", "json"]))
}

/// Returns a better message than clap's for the arguments of a call and the value of a secret on the command line.
fn unexpected_value(error: &clap::Error, arguments: &[String]) -> Option<CliError> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unexpected)) = error.get(ContextKind::InvalidArg) else { return None };
    if let Some((_, name)) = command(arguments, &["secret"], &["set"]) {
        // The value itself is not repeated: it is secret.
        return Some(CliError::Usage {
            message: "unexpected value: secrets are read from standard input".to_owned(),
            hint: Some(format!("echo -n VALUE | haft secret set {}", quote(name.unwrap_or("NAME")))),
        });
    }
    let (subcommand, tool) = command(arguments, &["tool"], &["call", "test"])?;
    let kind = if unexpected.starts_with('-') { "option" } else { "argument" };
    let argument = match unexpected.strip_prefix("--") {
        Some(name) => format!("{name}={}", value_of(unexpected, arguments).unwrap_or("VALUE")),
        None if unexpected.contains('=') => unexpected.clone(),
        None => "NAME=VALUE".to_owned(),
    };
    let tool = tool.unwrap_or("TOOL");
    Some(CliError::Usage {
        message: format!("unexpected {kind} '{unexpected}'"),
        hint: Some(format!(
            "pass arguments with -a, e.g. haft tool {subcommand} {} -a {}",
            quote(tool),
            quote(&argument)
        )),
    })
}

/// Returns an error without the value if a token is passed to `haft login`: it is secret.
fn token_of_login(error: &clap::Error, arguments: &[String]) -> Option<CliError> {
    let is_unexpected = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::TooManyValues);
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let has_token = arguments.iter().any(|argument| argument.starts_with("--token"));
    (is_unexpected && has_token && has("login") && !has("mcp-server")).then(|| CliError::Usage {
        message: "unexpected value: the token is read from the terminal or from standard input".to_owned(),
        hint: Some("haft login URL --token < token.txt".to_owned()),
    })
}

/// Commands and options of similar programs that haft names differently.
const OTHER_WORDS: [(&[&str], &str, &str); 6] = [
    (&[], "version", "print the version with `haft --version`"),
    (&[], "start", "start the server with `haft serve`"),
    (&["tool"], "run", "call a tool with `haft tool call TOOL`"),
    (&["tool"], "invoke", "call a tool with `haft tool call TOOL`"),
    (&["serve"], "--port", "pass the address with `--addr`, e.g. `haft serve --addr 127.0.0.1:18789`"),
    (&["serve"], "--host", "pass the address with `--addr`, e.g. `haft serve --addr 0.0.0.0:18789`"),
];

/// Returns an error with a hint for the command or option of a similar program.
fn other_word(error: &clap::Error, arguments: &[String]) -> Option<CliError> {
    let (key, what) = match error.kind() {
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, "command"),
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, "option"),
        _ => return None,
    };
    let Some(ContextValue::String(found)) = error.get(key) else { return None };
    let position =
        arguments.iter().position(|argument| argument.split('=').next() == Some(found.as_str()))?;
    let before = arguments.get(1..position)?.iter().map(String::as_str);
    let before: Vec<&str> = before.filter(|argument| !argument.starts_with('-')).collect();
    let is_it = |(parents, word, _): &&(&[&str], &str, &str)| found == word && before == *parents;
    let (_, _, hint) = OTHER_WORDS.iter().find(is_it)?;
    Some(CliError::Usage { message: format!("unknown {what} `{found}`"), hint: Some((*hint).to_owned()) })
}

/// Returns the subcommand and its first positional argument, if the command line is one of `parents` and `children`.
fn command<'a>(
    arguments: &'a [String],
    parents: &[&str],
    children: &[&str],
) -> Option<(&'a str, Option<&'a str>)> {
    let is_match = |pair: &[String]| matches!(pair, [parent, child] if parents.contains(&parent.as_str()) && children.contains(&child.as_str()));
    let position = arguments.windows(2).position(is_match)?;
    let child = arguments.get(position + 1)?;
    let name = arguments.get(position + 2).filter(|name| !name.starts_with('-'));
    Some((child, name.map(String::as_str)))
}

/// Returns the value that follows an option, as `--option=VALUE` or `--option VALUE`.
fn value_of<'a>(option: &str, arguments: &'a [String]) -> Option<&'a str> {
    let joined = |argument: &'a String| argument.strip_prefix(option)?.strip_prefix('=');
    let next = || {
        let position = arguments.iter().position(|argument| argument == option)?;
        arguments.get(position + 1).map(String::as_str).filter(|value| !value.starts_with("--"))
    };
    arguments.iter().find_map(joined).or_else(next)
}

/// Returns clap's error and tip in one line, without the usage.
fn one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "missing command; see `--help`".to_owned();
    }
    let text = error.render().to_string();
    let parts =
        text.split("\n\n").take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more"));
    let lines = parts.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let message = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    message.strip_prefix("error: ").unwrap_or(&message).to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn errors_fit_in_a_line() {
        let message = |arguments: &[&str]| one_line(&Cli::try_parse_from(arguments).unwrap_err());
        for (arguments, expected) in [
            (
                &["haft", "tool", "list", "--bundel", "x"][..],
                "unexpected argument '--bundel' found; tip: a similar argument exists: '--bundle'",
            ),
            (
                &["haft", "tool", "call", "x", "--mode", "prod"],
                "invalid value 'prod' for '--mode <MODE>': expected `debug` or `production`",
            ),
            (&["haft"], "missing command; see `--help`"),
        ] {
            assert_eq!(message(arguments), expected);
        }
        let missing = message(&["haft", "tool", "show"]);
        assert!(missing.starts_with("the following required arguments were not provided: <"), "{missing}");
        let unknown = message(&["haft", "tol"]);
        assert!(unknown.starts_with("unrecognized subcommand 'tol'") && !unknown.contains('\n'), "{unknown}");
    }

    #[test]
    fn unexpected_values_get_a_hint() {
        for (line, expected) in [
            (
                "haft tool call calculator --expression 2+2",
                Some((
                    "unexpected option '--expression'",
                    "pass arguments with -a, e.g. haft tool call calculator -a expression=2+2",
                )),
            ),
            (
                "haft tool test calculator --expression=2+2 --json",
                Some((
                    "unexpected option '--expression'",
                    "pass arguments with -a, e.g. haft tool test calculator -a expression=2+2",
                )),
            ),
            (
                "haft --json tool call calculator expression=2+2",
                Some((
                    "unexpected argument 'expression=2+2'",
                    "pass arguments with -a, e.g. haft tool call calculator -a expression=2+2",
                )),
            ),
            (
                "haft secret set API_KEY hunter2",
                Some((
                    "unexpected value: secrets are read from standard input",
                    "echo -n VALUE | haft secret set API_KEY",
                )),
            ),
            ("haft tool list --bundel x", None),
        ] {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = Cli::try_parse_from(&arguments).unwrap_err();
            let usage = unexpected_value(&error, &arguments).map(|usage| (usage.to_string(), usage.hint()));
            let usage =
                usage.as_ref().map(|(message, hint)| (message.as_str(), hint.as_deref().unwrap_or_default()));
            assert_eq!(usage, expected, "{line}");
        }
    }

    #[test]
    fn the_token_of_a_login_is_not_repeated() {
        let error = |line: &str| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = Cli::try_parse_from(&arguments).unwrap_err();
            token_of_login(&error, &arguments).map(|usage| usage.text())
        };
        for line in ["haft login https://a.test --token hunter2", "haft login https://a.test --token=hunter2"]
        {
            let text = error(line).unwrap_or_default();
            assert!(text.contains("the token is read from") && !text.contains("hunter2"), "{line}: {text}");
        }
        assert_eq!(error("haft login https://a.test https://b.test"), None);
        assert!(Cli::try_parse_from(["haft", "login", "https://a.test", "--token"]).is_ok());
    }

    #[test]
    fn words_of_other_programs_get_a_hint() {
        let hint = |line: &str| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let error = Cli::try_parse_from(&arguments).unwrap_err();
            other_word(&error, &arguments).map(|usage| usage.text())
        };
        let lines = ["haft version", "haft tool run x", "haft --json tool run", "haft serve --port 80"];
        let texts: Vec<_> =
            lines.iter().map(|line| hint(line).unwrap_or_default().replace("\n\n", "; ")).collect();
        insta::assert_snapshot!(texts.join("\n"), @r"
        unknown command `version`; hint: print the version with `haft --version`
        unknown command `run`; hint: call a tool with `haft tool call TOOL`
        unknown command `run`; hint: call a tool with `haft tool call TOOL`
        unknown option `--port`; hint: pass the address with `--addr`, e.g. `haft serve --addr 127.0.0.1:18789`
        ");
        assert_eq!(hint("haft tool lst"), None);
    }

    #[test]
    fn json_is_requested_before_the_end_of_the_options() {
        let wants = |line: &str| wants_json(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(wants("haft tool --json --bad"));
        assert!(!wants("haft tool call -- --json"));
        assert!(wants("haft tool list -o json --bad") && wants("haft --output=json --bad"));
        assert!(!wants("haft tool list -o wide --bad") && !wants("haft tool -- -o json"));
        assert!(!wants("haft --bad"));
    }
}
