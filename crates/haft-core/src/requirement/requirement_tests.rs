use super::*;

fn parsed(line: &str) -> String {
    match Requirement::parse(line) {
        Ok(requirement) => requirement.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn a_requirement_has_one_normal_form() {
    for (line, expected) in [
        ("requests", "requests"),
        (" Flask_Login ", "flask-login"),
        ("zope.interface", "zope-interface"),
        ("rich >= 13", "rich>=13"),
        ("rich<15,>=13", "rich<15,>=13"),
        ("rich>=13, <15", "rich<15,>=13"),
        ("rich (>=13)", "rich>=13"),
        ("rich==13.*", "rich==13.*"),
        ("rich~=13.1", "rich~=13.1"),
        ("torch==2.1+cu118", "torch==2.1+cu118"),
        ("rich===1!2.0-rc_1", "rich===1!2.0-rc_1"),
        ("httpx[http2, Brotli]>=0.27", "httpx[brotli,http2]>=0.27"),
        ("httpx[]", "httpx"),
        ("tomli; python_version<'3.11'", "tomli ; python_version < '3.11'"),
        (
            "a;(os_name == \"posix\"  or sys_platform not in 'win32 cygwin') and extra=='x'",
            "a ; ( os_name == \"posix\" or sys_platform not in 'win32 cygwin' ) and extra == 'x'",
        ),
    ] {
        assert_eq!(parsed(line), expected, "{line}");
        assert_eq!(parsed(expected), expected, "the normal form of {line}");
    }
    let hash = format!("sha256:{}", "aB".repeat(32));
    let line = format!("rich==13 --hash={hash} --hash {hash}");
    assert_eq!(parsed(&line), format!("rich==13 --hash=sha256:{}", "ab".repeat(32)));
}

#[test]
fn options_paths_urls_and_nonsense_are_rejected() {
    let lines = [
        "",
        "-r other.txt",
        "-e .",
        "--index-url https://user:secret@host/simple",
        "rich --no-deps",
        "./folder",
        "../folder",
        "/etc/passwd",
        "~/x",
        "file:x",
        "rich @ file:///etc/passwd",
        "rich@https://user:secret@host/rich.whl",
        "git+https://host/x.git",
        "https://host/x.whl",
        "x.whl",
        "C:\\x",
        "${HOME}",
        "rich$(id)",
        "-",
        "_rich",
        "rich-",
        "rich 13",
        "rich>=",
        "rich>=13,",
        "rich=13",
        "rich(>=13",
        "rich[http2",
        "rich[a b]",
        "rich; ",
        "rich; import os",
        "rich; python_version < '3",
        "rich; (python_version < '3'",
        "rich; python_version",
        "rich; python_version < '${HOME}'",
        "rich==13 --hash=md5:00",
        "rich==13 --hash=sha256:00",
        "rich==13 --hash=sha256:00 -r x",
    ];
    let all: Vec<String> = lines.iter().map(|line| format!("{line:?}: {}", parsed(line))).collect();
    assert!(all.iter().all(|line| line.contains(": error: ")), "{all:#?}");
    assert!(!all.iter().any(|line| line.split(": error: ").last().unwrap().contains("secret")), "{all:#?}");
    assert!(parsed(&format!("rich=={}", "1".repeat(500))).contains("the limit is 500"));
    let hash = format!(" --hash=sha256:{}", "0f".repeat(32));
    assert!(parsed(&format!("rich==1{}", hash.repeat(1000))).contains("65536 with its hashes"));
}

#[test]
fn a_file_has_comments_and_joined_lines() {
    let hash = |digit: &str| format!("--hash=sha256:{}", digit.repeat(64));
    let text = format!(
        "\u{feff}# what it needs\n\nrich==13.0 {} # colours\nrequests==2.0 \\\n  {} \\\n  {}\nrich==13.0 {}\n",
        hash("a"),
        hash("b"),
        hash("c"),
        hash("a")
    );
    let requirements = Requirements::parse_file(&text, "requirements.txt").unwrap();
    let lines: Vec<String> = requirements.iter().map(ToString::to_string).collect();
    let expected =
        [format!("requests==2.0 {} {}", hash("b"), hash("c")), format!("rich==13.0 {}", hash("a"))];
    assert_eq!(lines, expected);
    assert!(requirements.has_hashes());

    let check = |text: &str, expected: &str| {
        let problems = Requirements::parse_file(text, "requirements.txt").unwrap_err();
        assert_eq!(crate::problem::join(&problems), expected);
    };
    check(
        "rich\n-r x\n\n./x\n",
        "line 2: `requirements.txt`: option `-r` is not supported; list each package in a line of its own, such as \
         `rich>=13`; line 4: `requirements.txt`: `./x` is a path or a URL, which is not supported; require the package \
         by its name, and put its wheel into the folder `wheels` if no index has it",
    );
    check(
        &format!("rich\nrequests>=2 {}", hash("a")),
        "`requirements.txt`: `requests` has a hash and needs an exact version, such as `requests==1.0`; \
         `requirements.txt`: `rich` has no `--hash`; if one requirement has a hash, all need one",
    );
    check(
        &"x".repeat(MAX_FILE_BYTES + 1),
        "`requirements.txt`: the file has 1048577 bytes; the limit is 1048576",
    );
    check(&"a\n".repeat(501), "`requirements.txt`: the limit is 500 requirements");
}

#[test]
fn the_lines_of_a_definition_name_their_index() {
    let lines = ["rich", "-e ."].map(str::to_owned);
    let problems = Requirements::parse_lines(&lines, "implementation.dependencies").unwrap_err();
    assert_eq!(problems[0].field, "implementation.dependencies[1]");
    let one = Requirements::parse_lines(&["rich".to_owned()], "d").unwrap();
    let other = Requirements::parse_file("requests\nRich\n", "r").unwrap();
    let all: Vec<String> = one.join(&other, "d").unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(all, ["requests", "rich"]);
}
