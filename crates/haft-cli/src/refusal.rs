//! A command line that could not be read: clap's words for people, one line of JSON for programs.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::error::CliError;

/// Says what is wrong with a command line, or prints the help that it asked for.
pub(crate) fn refuse(error: &clap::Error, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    if error.use_stderr() && wants_json(arguments) {
        let error = CliError::Usage(words(error));
        crate::output::tell(&error.json().to_string());
        return error.exit().into();
    }
    // Nothing can be done where the stream is closed.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// What is not understood as a whole still tells for whom the answer is.
fn wants_json(arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

/// Returns the error and the tip in one line, without the usage, which is for people.
fn words(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command is missing; `--help` lists them".to_owned();
    }
    let text = error.render().to_string();
    let parts =
        text.split("\n\n").take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more"));
    let lines = parts.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let words = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
    words.strip_prefix("error: ").unwrap_or(&words).to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn what_is_wrong_is_told_in_a_line() {
        let told = |arguments: &[&str]| words(&Cli::try_parse_from(arguments).unwrap_err());
        for (arguments, expected) in [
            (
                &["haft", "tool", "list", "--bundel", "x"][..],
                "unexpected argument '--bundel' found; tip: a similar argument exists: '--bundle'",
            ),
            (
                &["haft", "tool", "call", "x", "--mode", "prod"],
                "invalid value 'prod' for '--mode <MODE>': the modes are `debug` and `production`",
            ),
            (&["haft"], "a command is missing; `--help` lists them"),
        ] {
            assert_eq!(told(arguments), expected);
        }
        let missing = told(&["haft", "tool", "show"]);
        assert!(missing.starts_with("the following required arguments were not provided: <"), "{missing}");
        let unknown = told(&["haft", "tol"]);
        assert!(unknown.starts_with("unrecognized subcommand 'tol'") && !unknown.contains('\n'), "{unknown}");
    }

    #[test]
    fn json_is_asked_for_before_the_end_of_the_flags() {
        let wants = |arguments: &[&str]| wants_json(arguments.iter().map(OsString::from));
        assert!(wants(&["haft", "tool", "--json", "--bad"]));
        assert!(!wants(&["haft", "tool", "call", "--", "--json"]));
        assert!(!wants(&["haft", "--bad"]));
    }
}
