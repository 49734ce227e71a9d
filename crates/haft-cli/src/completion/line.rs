//! Parses an incomplete command line: its command, and the argument expected next.

use clap::{Arg, ArgAction, Command};

/// The words before the one that is completed.
pub(crate) struct Line<'a> {
    /// The innermost command.
    pub(super) command: &'a Command,
    /// The names of the commands below `haft`.
    pub(super) path: Vec<&'a str>,
    /// The number of positional arguments.
    pub(super) position: usize,
    /// The option whose value comes next.
    pub(super) pending: Option<&'a Arg>,
    /// Whether `--` ended the options.
    pub(super) escaped: bool,
    /// The options that select the server.
    pub(super) globals: Globals,
}

/// The options that select the server.
#[derive(Debug, Default)]
pub(crate) struct Globals {
    pub(crate) home: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) context: Option<String>,
    pub(crate) token: Option<String>,
}

impl<'a> Line<'a> {
    pub(super) fn read(root: &'a Command, words: &[String]) -> Self {
        let mut line = Self {
            command: root,
            path: Vec::new(),
            position: 0,
            pending: None,
            escaped: false,
            globals: Globals::default(),
        };
        for word in words {
            line.word(word);
        }
        line
    }

    fn word(&mut self, word: &str) {
        if let Some(option) = self.pending.take() {
            return self.globals.set(option, word);
        }
        if self.escaped || !word.starts_with('-') || word == "-" {
            let command = self.command.find_subcommand(word).filter(|_| self.position == 0 && !self.escaped);
            if let Some(command) = command {
                self.command = command;
                self.path.push(command.get_name());
            } else {
                self.position += 1;
            }
            return;
        }
        if word == "--" {
            self.escaped = true;
            return;
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        match (self.option(name), value) {
            (Some(option), Some(value)) => self.globals.set(option, value),
            (Some(option), None) if takes_value(option) => self.pending = Some(option),
            _ => {}
        }
    }

    /// Returns an option by its name with the leading `-` or `--`.
    pub(super) fn option(&self, name: &str) -> Option<&'a Arg> {
        let is_it = |option: &&Arg| match name.strip_prefix("--") {
            Some(long) => {
                option.get_long() == Some(long)
                    || option.get_all_aliases().is_some_and(|aliases| aliases.contains(&long))
            }
            None => option.get_short().is_some_and(|short| name == format!("-{short}")),
        };
        self.command.get_arguments().find(is_it)
    }

    /// Returns the positional argument that comes next.
    pub(super) fn positional(&self) -> Option<&'a Arg> {
        if self.escaped {
            return None;
        }
        let all: Vec<&Arg> =
            self.command.get_positionals().filter(|argument| !argument.is_last_set()).collect();
        let last = all.last().filter(|last| matches!(last.get_action(), ArgAction::Append));
        all.get(self.position).or(last).copied()
    }
}

/// Returns whether the next word is the value of an option; `--token` of `haft login` has none.
fn takes_value(option: &Arg) -> bool {
    option.get_num_args().map_or_else(|| option.get_action().takes_values(), |count| count.takes_values())
}

impl Globals {
    fn set(&mut self, option: &Arg, value: &str) {
        let field = match option.get_id().as_str() {
            "home" => &mut self.home,
            "server" => &mut self.server,
            "context" => &mut self.context,
            "token" => &mut self.token,
            _ => return,
        };
        *field = Some(value.to_owned());
    }
}
