//! Completion of command lines: the shells call `haft __complete` with the words up to the cursor.

mod line;
mod names;

use clap::{Arg, Command};

pub(crate) use line::Globals;
use line::Line;
pub(crate) use names::{Kind, context_names, names};

/// A completion and its description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The whole word.
    pub(crate) word: String,
    /// A short text for shells that show one.
    pub(crate) help: String,
}

/// The completions of the last word of a line.
#[derive(Debug)]
pub(crate) struct Completion {
    /// The words that the command line defines.
    pub(crate) words: Vec<Candidate>,
    /// The kind of name to request from the server, if a name is expected.
    pub(crate) kind: Option<Kind>,
    /// The part of the word before the name, such as `--bundle=`.
    pub(crate) before: String,
    /// The prefix of the name.
    pub(crate) prefix: String,
}

/// Returns the completions of the last word.
pub(crate) fn complete(root: &Command, words: &[String]) -> (Completion, Globals) {
    let (last, earlier) =
        words.split_last().map_or(("", [].as_slice()), |(last, rest)| (last.as_str(), rest));
    let line = Line::read(root, earlier);
    let completion = match (line.pending, last.split_once('=')) {
        (Some(option), _) => value(&line, option, "", last),
        (None, Some((name, text))) if name.starts_with("--") && !line.escaped => match line.option(name) {
            Some(option) => value(&line, option, &format!("{name}="), text),
            None => Completion::of(Vec::new(), last),
        },
        _ if last.starts_with('-') && !line.escaped => Completion::of(options(line.command), last),
        _ => positional(&line, last),
    };
    (completion, line.globals)
}

impl Completion {
    fn of(words: Vec<Candidate>, prefix: &str) -> Self {
        Self { words, kind: None, before: String::new(), prefix: prefix.to_owned() }
    }

    /// Returns the candidates that start with the typed prefix; `names` are the names from the server.
    pub(crate) fn candidates(&self, names: Vec<Candidate>) -> Vec<Candidate> {
        let all = self.words.iter().cloned().chain(names);
        let matching = all.filter(|one| one.word.starts_with(&self.prefix));
        matching.map(|one| Candidate { word: format!("{}{}", self.before, one.word), ..one }).collect()
    }
}

fn positional(line: &Line<'_>, last: &str) -> Completion {
    let mut completion = match line.positional() {
        Some(argument) => value(line, argument, "", last),
        None => Completion::of(Vec::new(), last),
    };
    if line.position == 0 && !line.escaped {
        let visible = line.command.get_subcommands().filter(|command| !command.is_hide_set());
        completion.words.extend(visible.map(|command| Candidate {
            word: command.get_name().to_owned(),
            help: command.get_about().map(ToString::to_string).unwrap_or_default(),
        }));
    }
    completion
}

/// Completes the value of an argument: one of its possible values, or a name from the server.
fn value(line: &Line<'_>, argument: &Arg, before: &str, text: &str) -> Completion {
    // In a list such as `a,b`, only the last item is completed.
    let items =
        argument.get_value_delimiter().and_then(|delimiter| text.rsplit_once(delimiter).zip(Some(delimiter)));
    let (before, prefix) = match items {
        Some(((head, tail), delimiter)) => (format!("{before}{head}{delimiter}"), tail),
        None => (before.to_owned(), text),
    };
    let possible = argument.get_possible_values();
    let words = possible.iter().filter(|value| !value.is_hide_set()).map(|value| Candidate {
        word: value.get_name().to_owned(),
        help: value.get_help().map(ToString::to_string).unwrap_or_default(),
    });
    let kind = Kind::of(&line.path, argument.get_id().as_str());
    Completion { words: words.collect(), kind, before, prefix: prefix.to_owned() }
}

fn options(command: &Command) -> Vec<Candidate> {
    let visible = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let options = visible.filter_map(|argument| {
        let word = format!("--{}", argument.get_long()?);
        Some(Candidate { word, help: argument.get_help().map(ToString::to_string).unwrap_or_default() })
    });
    options.collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    /// Returns the words that complete a line, and the kind of name.
    fn completed(line: &str) -> (Vec<String>, Option<Kind>) {
        let mut root = Cli::command();
        root.build();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let (completion, _) = complete(&root, &words);
        let names =
            completion.kind.map(|_| Candidate { word: "web:weather".to_owned(), help: String::new() });
        let found = completion.candidates(names.into_iter().collect());
        (found.into_iter().map(|one| one.word).collect(), completion.kind)
    }

    #[test]
    fn commands_and_options_are_completed() {
        assert_eq!(completed("toolse"), (vec!["toolset".to_owned()], None));
        assert_eq!(completed("mcp-server ref").0, ["refresh"]);
        assert_eq!(completed("tool list --en").0, ["--enabled"]);
        assert_eq!(completed("--home /x tool ls --no-h").0, ["--no-headers"]);
        assert_eq!(completed("token create ci --role ca").0, ["caller"]);
        assert_eq!(completed("token create ci --role=ca").0, ["--role=caller"]);
        assert_eq!(completed("completions z").0, ["zsh"]);
        // Neither the hidden command nor options after `--` are offered.
        assert!(completed("__").0.is_empty());
        assert!(completed("tool list -- --en").0.is_empty());
    }

    #[test]
    fn names_are_completed_by_kind() {
        for (line, kind) in [
            ("tool show ", Kind::Tool),
            ("tool call we", Kind::Tool),
            ("tool delete ", Kind::Tool),
            ("tool list --bundle ", Kind::Bundle),
            ("agent run ", Kind::Agent),
            ("agent publish ", Kind::Agent),
            ("chat --agent ", Kind::Agent),
            ("pipeline usage ", Kind::Pipeline),
            ("pipeline query ", Kind::Pipeline),
            ("artifact show ", Kind::Artifact),
            ("mcp-server refresh ", Kind::McpServer),
            ("toolset rm ", Kind::Toolset),
            ("toolset export ", Kind::Bundle),
            ("bundle disable ", Kind::Bundle),
            ("workspace cat ", Kind::Workspace),
            ("person show ", Kind::Person),
            ("person hand-over ann --to ", Kind::Person),
            ("person invite ann --group ", Kind::Group),
            ("service-account edit ", Kind::ServiceAccount),
            ("service-account create ci --responsible ", Kind::Person),
            ("group show ", Kind::Group),
            ("group add-member ", Kind::Group),
            ("group add-member finance ", Kind::Person),
            ("group add-member finance ann bo", Kind::Person),
            ("group create finance --member ", Kind::Person),
            ("person list --tenant ", Kind::Tenant),
            ("token list --owner ", Kind::Person),
            ("token create ci --owner ", Kind::ServiceAccount),
            ("token show ", Kind::Token),
            ("token revoke ", Kind::Token),
            ("token create ci --tools ", Kind::Tool),
            ("token list --tenant ", Kind::Tenant),
            ("tenant disable ", Kind::Tenant),
            ("secret show ", Kind::Secret),
            ("approval approve ", Kind::Approval),
            ("webhook test ", Kind::Webhook),
            ("run cancel ", Kind::Run),
            ("call show ", Kind::Call),
            ("context use ", Kind::Context),
            ("context rm ", Kind::Context),
            ("logout ", Kind::Context),
            ("--context ", Kind::Context),
            ("tool list --context ", Kind::Context),
        ] {
            assert_eq!(completed(line).1, Some(kind), "{line}");
        }
        // Neither new names nor other arguments are completed.
        for line in [
            "mcp-server add ",
            "tenant create ",
            "token create ",
            "person invite ",
            "person edit ann --name ",
            "service-account create ",
            "group create ",
            "agent run a ",
            "toolset new ",
            "login --token ",
        ] {
            assert_eq!(completed(line).1, None, "{line}");
        }
        assert_eq!(completed("token create ci --tools a,web").0, ["a,web:weather"]);
        assert_eq!(completed("tool show web:w").0, ["web:weather"]);
        assert!(completed("tool show x").0.is_empty());
    }

    #[test]
    fn options_of_the_connection_are_read() {
        let mut root = Cli::command();
        root.build();
        let words =
            ["--home", "/h", "tool", "--server=http://x", "show", "--token", "t", "--context", "c", ""];
        let (completion, globals) = complete(&root, &words.map(str::to_owned));
        assert_eq!(completion.kind, Some(Kind::Tool));
        let expected = ["/h", "http://x", "c", "t"].map(|text| Some(text.to_owned()));
        assert_eq!([globals.home, globals.server, globals.context, globals.token], expected);
    }
}
