//! Fuzz targets for every parser of this crate that this part owns.
//!
//! `cargo test` runs each for a moment with random input. To fuzz one in earnest, on a nightly
//! toolchain: `cargo bolero test -p haft-core fuzz::yaml_is_read_or_refused`.

use bolero::check;
use haft_core::catalog::FileForm;
use haft_core::dialect::{Defaults, read, write};
use haft_core::page;

use crate::roundtrip::FORMS;

/// Pieces that random bytes seldom hit upon; a byte of input picks one of them.
const PIECES: [&str; 48] = [
    "name: t\n",
    "---\n",
    "runtime: bash\n",
    "params:\n",
    "  - name: x\n",
    "implementation:\n",
    "  type: http\n",
    "  url: https://a.example\n",
    "  body:\n",
    "    {{if x}}\n",
    "    {{else}}\n",
    "    {{end}}\n",
    "    a: 1\n",
    "    - b\n",
    "{{if",
    "}}",
    "\"",
    "'",
    ": ",
    "- ",
    "  ",
    "\n",
    "\t",
    "#",
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: *a\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"name\":",
    "\"t\"",
    "\"implementation\":",
    "\"type\":\"function\"",
    "\"function\":\"f\"",
    "0644",
    "1e999",
    "null",
    "\u{feff}",
    "\r\n",
    "!!binary ",
    "? ",
    "timeout: 30s\n",
    "é",
];

fn document(input: &[u8]) -> String {
    input.iter().map(|byte| PIECES.get(usize::from(*byte) % 64).copied().unwrap_or("z")).collect()
}

/// Reads anything; what is read must be written and read again as the same.
fn read_or_refuse(text: &str, form: FileForm) {
    match read(text, form, &Defaults::default()) {
        Err(problems) => {
            assert!(problems.iter().all(|problem| !problem.message.is_empty()) && !problems.is_empty());
        }
        Ok(reading) => {
            for form in FORMS {
                let written = write(&reading.spec, form, reading.enabled);
                let again = read(&written, form, &Defaults::default());
                assert_eq!(again.map(|again| again.spec).as_ref(), Ok(&reading.spec), "{form:?}\n{written}");
            }
        }
    }
}

fn fuzz(form: FileForm) {
    check!().for_each(|input: &[u8]| {
        read_or_refuse(&String::from_utf8_lossy(input), form);
        read_or_refuse(&document(input), form);
    });
}

#[test]
fn json_is_read_or_refused() {
    fuzz(FileForm::Json);
}

#[test]
fn yaml_is_read_or_refused() {
    fuzz(FileForm::Yaml);
}

#[test]
fn skills_are_read_or_refused() {
    fuzz(FileForm::Skill);
}

#[test]
fn page_tokens_are_read_or_refused() {
    check!().for_each(|input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        if let Ok(position) = page::decode("tools", &text) {
            assert_eq!(page::decode("tools", &page::encode("tools", &position)), Ok(position));
        }
    });
}
