//! The tour of the README, run as it is printed.

use std::path::Path;
use std::process::Stdio;

use crate::harness::Haft;

#[test]
fn every_command_of_the_readme_works() {
    let readme =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let tour = readme.split("## A tour of five minutes").nth(1).unwrap().split("\n## ").next().unwrap();
    let blocks: Vec<&str> =
        tour.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    // The first block builds the binary, which is here already.
    let (build, steps) = blocks.split_first().unwrap();
    assert!(build.contains("alias haft=") && steps.len() >= 7, "{} blocks", blocks.len());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    drop(taken);
    let haft = Haft::new();
    std::fs::create_dir_all(haft.home()).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap().display().to_string();
    let script = format!(
        "set -eu -o pipefail\nexport PATH=\"{binary}:$PATH\" HAFT_ADDR=127.0.0.1:{port}\n{}",
        steps.join("\n").replace("18789", &port)
    );
    let mut bash = haft.shell();
    let run = haft.finish(bash.args(["-c", &script]).stdin(Stdio::null()).output().unwrap());
    assert_eq!(run.code, 0, "{}", run.shown());
    for part in [
        "demo:server_health",
        "\"ok\":true",
        "invalid YAML",
        "WEATHER_API_KEY",
        "\"input_schema\"",
        "success",
    ] {
        assert!(run.stdout.contains(part), "no {part} in {}", run.shown());
    }
}
