//! The end of every help text: examples, then a compact list of the global options.

/// The global options at the end of `haft --help`; subcommands only list their names.
pub(crate) const GLOBAL_OPTIONS: &str = "\
Global options:
  --home <DIR>      Home folder, created by `init` and `serve` [env: HAFT_HOME] [default: ~/.haft]
  --server <URL>    Server to connect to [env: HAFT_SERVER]
  --context <NAME>  Stored login of `haft login` to use, or `local` [env: HAFT_CONTEXT]
  --token <TOKEN>   Access token [env: HAFT_TOKEN] [default: the file `tokens` in the home folder]
  -o <FORMAT>       Output (`--output`): text, wide, name (the references of a list) or json
  --json            Print JSON, as `-o json` does
  --no-headers      Print tables without headers
  --quiet           Print neither notes nor progress
  --color <WHEN>    Colors: auto, always or never [default: auto]
  --log <FILTER>    Log filter, such as `debug` or `haft_server=debug,warn` [env: HAFT_LOG]

Examples:
  haft init
  haft serve
  haft tool list
  haft tool call current-weather -a latitude=52.52 -a longitude=13.41

Exit codes: 0 success, 1 failure, 2 usage, 3 not found, 4 conflict, 5 tool call failed,
            6 server unreachable, 7 denied, 8 invalid, 9 busy (retry later), 10 tool not run,
            11 `haft diff` found changes";

/// Returns the help text after the options of a subcommand: its examples and the names of the global options.
macro_rules! examples {
    ($($line:literal),+ $(,)?) => {
        concat!(
            "Examples:\n",
            $("  ", $line, "\n",)+
            "\nGlobal options (see `haft --help`): --home, --server, --context, --token, --output,\n\
             --json, --no-headers, --quiet, --color, --log"
        )
    };
}
