//! The options of curl.

use super::CurlError;
use super::words;

/// One part of the request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Data {
    /// A text as it is sent.
    Raw(String),
    /// A field whose value curl encodes.
    Encoded(String, String),
    /// A field of a multipart form.
    Form(String, String),
}

/// A request as curl would send it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) method: Option<String>,
    pub(super) url: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) data: Vec<Data>,
    pub(super) user: Option<String>,
    pub(super) timeout_ms: Option<u64>,
    /// `-G`: the data becomes the query.
    pub(super) data_in_query: bool,
    /// `--json`: the body is JSON.
    pub(super) is_json: bool,
    /// Options and text that were ignored, each with the reason.
    pub(super) ignored: Vec<String>,
}

/// How an option is read.
enum Kind {
    /// It takes a value.
    Value,
    /// It takes none.
    Flag,
}

/// Flags that change nothing about the request.
const HARMLESS: [&str; 26] = [
    "-s",
    "--silent",
    "-S",
    "--show-error",
    "-v",
    "--verbose",
    "-i",
    "--include",
    "-f",
    "--fail",
    "-L",
    "--location",
    "--compressed",
    "-N",
    "--no-buffer",
    "-g",
    "--globoff",
    "-#",
    "--progress-bar",
    "--http1.1",
    "--http2",
    "--fail-with-body",
    "--no-progress-meter",
    "-4",
    "-6",
    "-O",
];
/// Options with a value that change nothing about the request.
const HARMLESS_VALUES: [&str; 10] = [
    "-o",
    "--output",
    "--connect-timeout",
    "--retry",
    "--retry-delay",
    "-w",
    "--write-out",
    "-D",
    "--dump-header",
    "--max-redirs",
];

/// Parses a command.
pub(super) fn parse(text: &str) -> Result<Command, CurlError> {
    let words::Words { words, ended_by } = words::split(text)?;
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    if !matches!(program.rsplit('/').next(), Some("curl" | "curl.exe")) {
        return Err(CurlError::NotCurl);
    }
    let mut command = Command::default();
    let mut only_urls = false;
    while let Some(word) = words.next() {
        if only_urls || !word.starts_with('-') || word == "-" {
            command.set_url(word);
        } else if word == "--" {
            only_urls = true;
        } else if word.starts_with("--") {
            let value = |option: &str| words.next().ok_or_else(|| CurlError::MissingValue(option.to_owned()));
            command.option(&word, value)?;
        } else {
            command.short_options(&word, &mut words)?;
        }
    }
    if let Some(operator) = ended_by {
        let shown = if operator == '\n' { "the next line".to_owned() } else { format!("`{operator}`") };
        command.ignored.push(format!("the text from {shown} on is ignored"));
    }
    Ok(command)
}

impl Command {
    fn set_url(&mut self, url: String) {
        if self.url.is_some() {
            self.ignored
                .push(format!("the further URL `{}` is ignored", haft_core::problem::excerpt(&url, 80)));
        } else {
            self.url = Some(url);
        }
    }

    /// Reads short options such as `-sXPOST` or `-d data`.
    fn short_options(
        &mut self,
        word: &str,
        words: &mut impl Iterator<Item = String>,
    ) -> Result<(), CurlError> {
        let mut rest = word.chars();
        rest.next();
        while let Some(letter) = rest.next() {
            let option = format!("-{letter}");
            match kind(&option)? {
                Kind::Flag => self.option(&option, |name| Err(CurlError::MissingValue(name.to_owned())))?,
                Kind::Value => {
                    let own = rest.as_str().to_owned();
                    let value = if own.is_empty() { words.next() } else { Some(own) };
                    let value = value.ok_or_else(|| CurlError::MissingValue(option.clone()))?;
                    return self.option(&option, |_| Ok(value));
                }
            }
        }
        Ok(())
    }

    fn option(
        &mut self,
        option: &str,
        value: impl FnOnce(&str) -> Result<String, CurlError>,
    ) -> Result<(), CurlError> {
        match option {
            "-X" | "--request" => self.method = Some(value(option)?),
            "-I" | "--head" => self.method = Some("HEAD".to_owned()),
            "-G" | "--get" => self.data_in_query = true,
            "--url" => {
                let url = value(option)?;
                self.set_url(url);
            }
            "-H" | "--header" => self.header(&value(option)?)?,
            "-A" | "--user-agent" => self.headers.push(("User-Agent".to_owned(), value(option)?)),
            "-e" | "--referer" => self.headers.push(("Referer".to_owned(), value(option)?)),
            "-b" | "--cookie" => self.headers.push(("Cookie".to_owned(), value(option)?)),
            "-u" | "--user" => self.user = Some(value(option)?),
            "--oauth2-bearer" => {
                self.headers.push(("Authorization".to_owned(), format!("Bearer {}", value(option)?)));
            }
            "-d" | "--data" | "--data-ascii" | "--data-binary" => {
                let text = value(option)?;
                if text.starts_with('@') {
                    return Err(unsupported(option, "it reads a file; paste the data itself"));
                }
                self.data.push(Data::Raw(text));
            }
            "--data-raw" => self.data.push(Data::Raw(value(option)?)),
            "--json" => {
                self.is_json = true;
                self.data.push(Data::Raw(value(option)?));
            }
            "--data-urlencode" => self.encoded(option, &value(option)?)?,
            "-F" | "--form" | "--form-string" => self.form(option, &value(option)?)?,
            "-m" | "--max-time" => {
                let seconds = value(option)?.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is within the range"
                )]
                let millis = seconds.map(|seconds| (seconds.min(3600.0) * 1000.0) as u64);
                self.timeout_ms = millis;
            }
            "-k" | "--insecure" => {
                self.ignored.push(format!("`{option}` is ignored: haft always checks certificates"));
            }
            other if HARMLESS.contains(&other) => {}
            other if HARMLESS_VALUES.contains(&other) => drop(value(other)?),
            other => return Err(unsupported(other, "remove it, or add the tool by hand")),
        }
        Ok(())
    }

    fn header(&mut self, text: &str) -> Result<(), CurlError> {
        // `Name;` is an empty header, `Name:` removes one.
        let (name, value) = text
            .split_once(':')
            .or_else(|| text.strip_suffix(';').map(|name| (name, "")))
            .ok_or_else(|| CurlError::Header(haft_core::problem::excerpt(text, 60)))?;
        if !value.trim().is_empty() {
            self.headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(())
    }

    fn encoded(&mut self, option: &str, text: &str) -> Result<(), CurlError> {
        match text.split_once('=') {
            Some((name, value)) if !name.contains('@') => {
                self.data.push(Data::Encoded(name.to_owned(), value.to_owned()));
            }
            _ if text.contains('@') => {
                return Err(unsupported(option, "it reads a file; paste the data itself"));
            }
            _ => self.data.push(Data::Raw(haft_core::encode::percent_encode(text))),
        }
        Ok(())
    }

    fn form(&mut self, option: &str, text: &str) -> Result<(), CurlError> {
        let (name, value) = text.split_once('=').ok_or_else(|| CurlError::MissingValue(option.to_owned()))?;
        if option != "--form-string" && value.starts_with(['@', '<']) {
            return Err(unsupported(option, "uploads of files are not supported"));
        }
        self.data.push(Data::Form(name.to_owned(), value.trim_matches('"').to_owned()));
        Ok(())
    }
}

fn unsupported(option: &str, reason: &'static str) -> CurlError {
    CurlError::Unsupported { option: haft_core::problem::excerpt(option, 40), reason }
}

/// Returns whether a short option takes a value.
fn kind(option: &str) -> Result<Kind, CurlError> {
    const WITH_VALUE: [&str; 9] = ["-X", "-H", "-A", "-e", "-b", "-u", "-d", "-F", "-m"];
    if WITH_VALUE.contains(&option) || HARMLESS_VALUES.contains(&option) {
        return Ok(Kind::Value);
    }
    if ["-I", "-G", "-k"].contains(&option) || HARMLESS.contains(&option) {
        return Ok(Kind::Flag);
    }
    Err(unsupported(option, "remove it, or add the tool by hand"))
}
