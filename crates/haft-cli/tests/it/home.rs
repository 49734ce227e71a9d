//! `haft init` and `haft doctor` on a home folder.

use crate::harness::{Haft, mode};

#[test]
fn init_makes_what_is_missing_and_keeps_what_is_there() {
    let haft = Haft::new();
    insta::assert_snapshot!(haft.run(&["init"]).shown(), @r"
    exit code: 0
    ----- stdout
    STATE  PATH
    made   DIR/home
    made   DIR/home/skills
    made   DIR/home/skills/examples
    made   DIR/home/haft.toml
    made   DIR/home/skills/examples/current-weather.yaml
    ----- stderr

    next: `haft serve` starts the server, `haft tool list` shows the tools
    ");
    assert_eq!(mode(&haft.home()), 0o700);
    haft.write("home/haft.toml", "# mine\n");
    insta::assert_snapshot!(haft.run(&["init"]).shown(), @r"
    exit code: 0
    ----- stdout
    STATE  PATH
    kept   DIR/home
    kept   DIR/home/skills
    kept   DIR/home/skills/examples
    kept   DIR/home/haft.toml
    kept   DIR/home/skills/examples/current-weather.yaml
    ----- stderr

    next: `haft serve` starts the server, `haft tool list` shows the tools
    ");
    assert_eq!(std::fs::read_to_string(haft.home().join("haft.toml")).unwrap(), "# mine\n");
}

#[test]
fn doctor_without_a_home_says_how_to_make_one() {
    let haft = Haft::new();
    insta::assert_snapshot!(haft.run(&["doctor"]).shown(), @r"
    exit code: 1
    ----- stdout
    STATE   CHECK          RESULT
    ok      configuration  defaults
    FAILED  home folder    `DIR/home` does not exist; make it with `haft init`
    ok      server         not running; commands open the home folder themselves
    ----- stderr
    error: 1 check(s) failed
    ");
    assert!(!haft.home().exists(), "a check changes nothing");
}

#[test]
fn doctor_names_a_broken_configuration() {
    let haft = Haft::new();
    haft.write("home/haft.toml", "mode = \"fast\"\n");
    let run = haft.run(&["doctor", "--json"]);
    assert_eq!(run.code, 1);
    let data: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(data["ok"], false);
    assert_eq!(
        data["checks"][0]["message"],
        "`DIR/home/haft.toml` line 1: `mode` must be \"debug\" or \"production\""
    );
}

#[test]
fn doctor_says_when_the_key_does_not_open_what_is_stored() {
    let haft = Haft::new();
    for name in ["API_KEY", "OTHER"] {
        assert_eq!(haft.run_with(&["secret", "set", name], "hunter2-hunter2").code, 0);
    }
    let row = || {
        let run = haft.run(&["doctor"]);
        let line = run.stdout.lines().find(|line| line.contains(" credentials ")).map(str::to_owned);
        // The columns are as wide as the others need.
        line.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row(), "ok credentials all open: 2");
    let key = haft.home().join("key");
    std::fs::write(&key, "a".repeat(64)).unwrap();
    let hint = "`haft secret set NAME` stores one anew, `haft secret rm NAME` deletes it";
    assert_eq!(
        row(),
        format!(
            "FAILED credentials 2 of 2 cannot be opened (`API_KEY`, `OTHER`): the key in `DIR/home/key` is not the \
             one it was encrypted with; put the right key back, or store the credential anew; {hint}"
        )
    );
    std::fs::remove_file(&key).unwrap();
    assert_eq!(
        row(),
        format!(
            "FAILED credentials 2 of 2 cannot be opened (`API_KEY`, `OTHER`): `DIR/home/key` is missing, and \
             credentials are stored that only it opens; put it back, or delete them; {hint}"
        )
    );
}
