//! The code blocks of a page and their purposes.
//!
//! A shell block runs. A block of data is a file: its first line is a comment with its name, or, as JSON has no
//! comments, the line before the block ends with it. Any other block has a mark after its language with the reason.

/// The marks and their meanings.
pub(crate) const MARKS: [(&str, &str); 8] = [
    ("needs-network", "connects to hosts of the internet"),
    ("needs-program", "needs a program that haft does not need"),
    ("needs-key", "needs a key, a model or an account"),
    ("needs-terminal", "asks at a terminal, or opens an editor"),
    ("endless", "runs until it is stopped"),
    ("slow", "builds or measures for minutes"),
    ("fragment", "is a part of a file"),
    ("response", "is what haft answers"),
];

/// A code block.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    /// The line of its fence, from 1.
    pub(crate) line: usize,
    /// Its lines.
    pub(crate) text: String,
    info: &'a str,
    /// The last line before it that is not empty.
    lead: &'a str,
}

/// The purpose of a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Purpose<'a> {
    /// Commands.
    Run,
    /// A file with this path.
    Save(String),
    /// Not executed: output, diagrams, Rust (which doctests compile).
    Look,
    /// Not run for this reason.
    Marked(&'a str),
}

/// Returns the blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lead = "";
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let text: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            let text = text.iter().flat_map(|line| [*line, "\n"]).collect();
            blocks.push(Block { line: number + 1, text, info, lead });
        } else if !line.trim().is_empty() {
            lead = line;
        }
    }
    blocks
}

impl<'a> Block<'a> {
    /// Returns whether the block is a JSON fragment that does not parse.
    pub(crate) fn is_broken_json(&self) -> bool {
        self.info == "json fragment" && serde_json::from_str::<serde_json::Value>(&self.text).is_err()
    }

    /// Returns the purpose of the block, or an error.
    pub(crate) fn purpose(&self) -> Result<Purpose<'a>, String> {
        let (language, mark) = self.info.split_once(' ').map_or((self.info, None), |(a, b)| (a, Some(b)));
        if let Some(mark) = mark {
            let known = MARKS.iter().any(|(known, _)| *known == mark);
            return if known { Ok(Purpose::Marked(mark)) } else { Err(format!("unknown mark `{mark}`")) };
        }
        match language.split(',').next().unwrap_or_default() {
            "sh" => Ok(Purpose::Run),
            "" | "text" | "http" | "rust" => Ok(Purpose::Look),
            "yaml" | "json" | "toml" | "python" | "html" => match self.file_name(language) {
                Some(name) => Ok(Purpose::Save(name)),
                None => Err(format!(
                    "a block of {language} needs the name of its file, in a comment as its first line or, for JSON, in \
                     backticks at the end of the line before; or a mark"
                )),
            },
            other => {
                Err(format!("unknown language `{other}`; use `sh` for commands and `text` for their output"))
            }
        }
    }

    fn file_name(&self, language: &str) -> Option<String> {
        let name = if language == "json" {
            self.lead.trim_end_matches(':').strip_suffix('`')?.rsplit('`').next()?
        } else {
            let first = self.text.lines().find(|line| *line != "---")?;
            first.strip_prefix("# ").or_else(|| first.strip_prefix("<!-- ")?.strip_suffix(" -->"))?
        };
        let is_name = !name.contains(char::is_whitespace)
            && std::path::Path::new(name).extension().is_some_and(|extension| {
                ["yaml", "skill", "json", "toml", "py", "html"].iter().any(|known| extension == *known)
            });
        is_name.then(|| name.to_owned())
    }
}

#[test]
fn blocks_have_a_purpose() {
    let check = |info: &str, lead: &str, text: &str| {
        let page = format!("# Title\n\n{lead}\n\n```{info}\n{text}\n```\n");
        let blocks = blocks(&page);
        assert_eq!((blocks.len(), blocks.first().map(|block| block.line)), (1, Some(5)));
        format!("{:?}", blocks.first().map(Block::purpose).unwrap())
    };
    let cases = [
        ("sh", "", "haft init", "Ok(Run)"),
        ("sh slow", "", "make bench", r#"Ok(Marked("slow"))"#),
        ("sh later", "", "make bench", r#"Err("unknown mark `later`")"#),
        ("text", "", "ok", "Ok(Look)"),
        ("rust,ignore", "", "fn main() {}", "Ok(Look)"),
        ("yaml", "", "# policy.yaml\nrules: []", r#"Ok(Save("policy.yaml"))"#),
        (
            "yaml",
            "",
            "---\n# ~/.haft/skills/demo/a.skill\nname: a",
            r#"Ok(Save("~/.haft/skills/demo/a.skill"))"#,
        ),
        ("json", "Save it as `a.json`:", "{}", r#"Ok(Save("a.json"))"#),
        ("yaml fragment", "", "steps: []", r#"Ok(Marked("fragment"))"#),
    ];
    for (info, lead, text, expected) in cases {
        assert_eq!(check(info, lead, text), expected, "{info} {lead} {text}");
    }
    for (info, lead, text) in [
        ("yaml", "", "rules: []"),
        ("yaml", "", "# see policy.yaml\nrules: []"),
        ("json", "As in `a.json`, then:", "{}"),
    ] {
        assert!(check(info, lead, text).contains("needs the name of its file"), "{info} {lead} {text}");
    }
    assert!(check("console", "", "$ haft init").contains("use `sh`"));
}
