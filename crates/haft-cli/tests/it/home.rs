//! `haft init` and `haft doctor` on a home folder.

use crate::harness::{Haft, mode};

#[test]
fn init_creates_missing_files_and_keeps_existing_ones() {
    let haft = Haft::without_home();
    insta::assert_snapshot!(haft.run(&["init"]).shown(), @r"
    exit code: 0
    ----- stdout
    STATE    PATH
    created  DIR/home
    created  DIR/home/skills
    created  DIR/home/skills/examples
    created  DIR/home/haft.toml
    created  DIR/home/skills/examples/current-weather.yaml
    ----- stderr

    next: start the server with `haft serve`, or list the tools with `haft tool list`
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

    next: start the server with `haft serve`, or list the tools with `haft tool list`
    ");
    assert_eq!(std::fs::read_to_string(haft.home().join("haft.toml")).unwrap(), "# mine\n");
}

#[test]
fn doctor_without_a_home_has_a_hint() {
    let haft = Haft::without_home();
    insta::assert_snapshot!(haft.run(&["doctor"]).shown(), @r"
    exit code: 1
    ----- stdout
    STATE   CHECK          RESULT
    ok      configuration  defaults
    FAILED  home folder    `DIR/home` does not exist; create it with `haft init`
    ok      server         not running; commands open the home folder themselves
    ----- stderr
    error: 1 check failed
    ");
    assert!(!haft.home().exists(), "a check changes nothing");
}

#[test]
fn only_init_and_serve_create_the_home_folder() {
    let haft = Haft::without_home();
    insta::assert_snapshot!(haft.run(&["tool", "list"]).shown(), @r"
    exit code: 2
    ----- stdout
    ----- stderr
    error: the home folder `DIR/home` does not exist

    hint: create it with `haft init --home DIR/home`, or choose another folder with `--home DIR` or `HAFT_HOME`
    ");
    for command in [
        &["tool", "add", "--name", "a", "--description", "b", "--url", "https://x.test"][..],
        &["mcp-server", "list"],
        &["call", "list"],
        &["token", "list"],
        &["reindex"],
        &["mcp"],
        &["tool", "list", "--home", "elsewhere"],
    ] {
        let run = haft.run(command);
        assert!(run.code == 2 && run.stderr.contains("does not exist"), "{command:?}: {}", run.shown());
    }
    let set = haft.run_with(&["secret", "set", "API_KEY"], "hunter2");
    assert!(set.code == 2 && set.stderr.contains("does not exist"), "{}", set.shown());
    assert!(!haft.home().exists(), "nothing was made");
    let _server = haft.serve(&[]);
    assert_eq!((haft.run(&["tool", "list"]).code, mode(&haft.home())), (0, 0o700));
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
        "DIR/home/haft.toml:1: `mode` must be \"debug\" or \"production\""
    );
}

#[test]
fn doctor_reports_a_key_that_does_not_decrypt() {
    let haft = Haft::new();
    for name in ["API_KEY", "OTHER"] {
        assert_eq!(haft.run_with(&["secret", "set", name], "hunter2-hunter2").code, 0);
    }
    let row = || {
        let run = haft.run(&["doctor"]);
        let line = run.stdout.lines().find(|line| line.contains(" secrets ")).map(str::to_owned);
        // The columns are as wide as the others need.
        line.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row(), "ok secrets all 2 can be decrypted");
    let rotated = haft.run(&["key", "rotate"]);
    assert_eq!((rotated.code, rotated.stderr.trim()), (0, "encrypted 2 secrets with the new key"));
    assert_eq!(row(), "ok secrets all 2 can be decrypted");
    let key = haft.home().join("key");
    let text = std::fs::read(&key).unwrap();
    let fails = |reason: &str| {
        for command in [&["doctor"][..], &["secret", "list"]] {
            let run = haft.run(command);
            let shown = run.shown().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(run.code != 0 && shown.contains(reason), "{command:?}: {}", run.shown());
        }
    };
    std::fs::write(&key, "a".repeat(64)).unwrap();
    fails(
        "the key in `DIR/home/key` is not the key that the stored credentials are encrypted with; restore the right key",
    );
    std::fs::remove_file(&key).unwrap();
    fails("the key file `DIR/home/key` is missing; restore it");
    std::fs::write(&key, text).unwrap();
    assert_eq!(row(), "ok secrets all 2 can be decrypted");
}

#[test]
fn doctor_warns_of_a_home_that_others_can_access() {
    use std::os::unix::fs::PermissionsExt as _;
    let haft = Haft::new();
    assert_eq!(haft.run(&["init"]).code, 0);
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&haft.home(), 0o755);
    let line = |run: &crate::harness::Run, check: &str| {
        let found = run.stdout.lines().find(|line| line.contains(check)).unwrap_or_default();
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(haft.run(&["tool", "list"]).code, 0);
    let run = haft.run(&["doctor"]);
    assert_eq!(
        line(&run, "home folder"),
        "warning home folder other users can access `DIR/home`: mode 0755; run `chmod 700 DIR/home`"
    );
    assert_eq!(mode(&haft.home()), 0o755, "it is not ours to change");
    for file in ["haft.db", "tokens"] {
        assert_eq!(mode(&haft.home().join(file)), 0o600, "{file}");
    }
    set(&haft.home(), 0o700);
    assert_eq!(line(&haft.run(&["doctor"]), "home folder"), "ok home folder DIR/home");
}

#[test]
fn doctor_and_validate_report_ignored_keys() {
    let haft = Haft::new();
    assert_eq!(haft.run(&["init"]).code, 0);
    haft.write("home/skills/web/bundle.yaml", "enabled: true\ndescription: [\n");
    haft.write(
        "home/skills/web/inner/lost.yaml",
        &std::fs::read_to_string(haft.home().join("skills/examples/current-weather.yaml")).unwrap(),
    );
    std::os::unix::fs::symlink("/tmp", haft.home().join("skills/linked")).unwrap();
    let run = haft.run(&["doctor", "--json"]);
    assert_eq!(run.code, 1);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let broken: Vec<_> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["name"].as_str().unwrap().starts_with("definition "))
        .map(|check| format!("{}: {}", check["name"].as_str().unwrap(), check["message"].as_str().unwrap()))
        .collect();
    insta::assert_snapshot!(broken.join("\n"), @r"
    definition `skills/web/bundle.yaml`: skills/web/bundle.yaml: line 2 column 14: `description`: expected string scalar; the bundle keeps its last settings
    definition `skills/linked`: skills/linked: symbolic links are not followed; replace the link by the folder
    definition `skills/web/inner/lost.yaml`: skills/web/inner/lost.yaml: definitions in subfolders of a bundle are not loaded; move the file to `skills/web`, or its folder to `skills`
    ");
    let run = haft.run(&["tool", "validate", "web:bundle"]);
    assert_eq!(run.code, 8, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("skills/web/bundle.yaml"), "{}", run.stdout);
}

#[test]
fn a_dropped_file_is_ready_with_warnings() {
    let haft = Haft::new();
    assert_eq!(haft.run(&["init"]).code, 0);
    // The body of the seed document, which would send the literal `$city`.
    haft.write(
        "home/skills/web/weather-check.skill",
        "---\nname: weather-check\ndescription: Check current weather for a location\nruntime: bash\n\
         parameters: {type: object, properties: {city: {type: string}}}\n---\n\
         curl -s 'https://api.weather.example.com/current?city=$city'\n",
    );
    haft.write("home/skills/web/toolset.yaml", "id: web\n");
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows = |arguments: &[&str], word: &str| {
        let run = haft.run(arguments);
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        run.stdout.lines().filter(|line| line.contains(word)).map(squeezed).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(rows(&["tool", "list"], "weather-check"), @"web:weather-check@1.0.0 script draft yes, 3 warnings 0 Check current weather for a location");
    insta::assert_snapshot!(rows(&["tool", "show", "weather-check"], "warning"), @r"
    state draft, enabled, ready with warnings
    warning `network`: it uses `curl`, but the tool has no network access; set `network: true`
    warning `implementation.body`: `$city` on line 1 is in single quotes, in which the shell does not replace it; use double quotes
    warning `skills/web/toolset.yaml` is ignored here: install a package with `haft toolset install DIR`
    ");
    insta::assert_snapshot!(rows(&["doctor"], "web/"), @r"
    warning toolset `skills/web/toolset.yaml` a package is ignored here; run `haft toolset install DIR/home/skills/web`
    warning definition `skills/web/weather-check.skill` `network`: it uses `curl`, but the tool has no network access; set `network: true`
    warning definition `skills/web/weather-check.skill` `implementation.body`: `$city` on line 1 is in single quotes, in which the shell does not replace it; use double quotes
    warning definition `skills/web/weather-check.skill` `skills/web/toolset.yaml` is ignored here: install a package with `haft toolset install DIR`
    ");
}
