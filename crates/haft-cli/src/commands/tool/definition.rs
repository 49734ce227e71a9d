//! Reads the text of a definition and detects its format.

use std::path::Path;

use clap::ValueEnum;

use crate::client::Body;
use crate::error::CliError;
use crate::input;

/// The format of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// JSON
    Json,
    /// A YAML definition
    Yaml,
    /// YAML front matter and a body
    Skill,
}

impl Form {
    /// Detects the format from a file name.
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            "skill" => Some(Self::Skill),
            _ => None,
        }
    }

    /// Detects the format from a text.
    pub(crate) fn from_text(text: &str) -> Self {
        let start = text.trim_start_matches('\u{feff}').trim_start();
        match start.as_bytes() {
            [b'{', ..] => Self::Json,
            [b'-', b'-', b'-', ..] if start.lines().skip(1).any(|line| line.trim_end() == "---") => {
                Self::Skill
            }
            _ => Self::Yaml,
        }
    }

    /// Returns the name of the format, which is also its file extension.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Skill => "skill",
        }
    }

    /// Returns a text as the body of a request.
    pub(crate) fn body(self, text: String) -> Body {
        let content_type = match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Skill => "application/x-haft-skill",
        };
        Body::Text { content_type, text }
    }
}

/// Reads a definition from a file or stdin.
pub(crate) fn read(path: &Path, form: Option<Form>) -> Result<(Form, String), CliError> {
    let text = input::read_text(path)?;
    let form = form.or_else(|| Form::from_path(path)).unwrap_or_else(|| Form::from_text(&text));
    Ok((form, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_detected_from_name_or_text() {
        for (name, form) in [
            ("a.json", Some(Form::Json)),
            ("a.yml", Some(Form::Yaml)),
            ("a.skill", Some(Form::Skill)),
            ("-", None),
            ("a.txt", None),
        ] {
            assert_eq!(Form::from_path(Path::new(name)), form, "{name}");
        }
        for (text, form) in [
            ("\u{feff} {\"name\": 1}", Form::Json),
            ("---\nname: a\n---\necho", Form::Skill),
            ("---\nname: a\n", Form::Yaml),
            ("name: a", Form::Yaml),
            ("", Form::Yaml),
        ] {
            assert_eq!(Form::from_text(text), form, "{text:?}");
        }
    }
}
