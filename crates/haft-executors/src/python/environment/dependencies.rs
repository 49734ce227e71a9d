//! What a tool needs: the `dependencies` of its definition, and `requirements.txt` and `wheels` beside it.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::{self, Problem};
use haft_core::requirement::{MAX_FILE_BYTES, Requirements};
use haft_core::spec::ToolSpec;

use super::wheels::{Wheel, WheelHashes};

/// How often the folder is checked for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The file with the requirements of all Python tools of a folder.
const FILE: &str = "requirements.txt";
/// The field of the requirements of one tool.
const FIELD: &str = "implementation.dependencies";

/// The dependencies of a tool.
#[derive(Debug)]
pub(crate) struct Dependencies {
    declared: Requirements,
    /// The folder of its bundle.
    folder: Option<PathBuf>,
    hashes: Arc<WheelHashes>,
    current: Mutex<Option<(Instant, ReadNeeds)>>,
}

/// What the tool needs, or why its folder could not be read.
type ReadNeeds = Result<Arc<Needs>, CallError>;

/// The packages that a tool needs now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::python) struct Needs {
    pub(in crate::python) requirements: Requirements,
    /// If there are any, packages are installed from these only.
    pub(super) wheels: Vec<Wheel>,
    /// The folder with the folder of wheels.
    pub(super) folder: Option<PathBuf>,
}

impl Dependencies {
    /// Reads the dependencies of a definition whose bundle is in this folder.
    pub(crate) fn new(spec: &ToolSpec, folder: Option<PathBuf>) -> Result<Self, Vec<Problem>> {
        let lines = spec.implementation.dependencies().unwrap_or_default();
        let declared = Requirements::parse_lines(lines, FIELD)?;
        if let Some(folder) = &folder {
            requirements(&declared, folder)?;
        }
        Ok(Self { declared, folder, hashes: Arc::default(), current: Mutex::default() })
    }

    /// Returns what the tool needs now.
    pub(in crate::python) async fn current(&self) -> Result<Arc<Needs>, CallError> {
        let Some(folder) = &self.folder else {
            return Ok(Arc::new(Needs { requirements: self.declared.clone(), ..Needs::default() }));
        };
        let known = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, known)) = known.filter(|(checked_at, _)| checked_at.elapsed() < POLL_INTERVAL) {
            return known;
        }
        let (declared, folder) = (self.declared.clone(), folder.clone());
        let (hashes, checked_at) = (Arc::clone(&self.hashes), Instant::now());
        let read = tokio::task::spawn_blocking(move || needs(&declared, &folder, &hashes)).await;
        let needs = read.unwrap_or_else(|error| Err(CallError::internal(error.to_string()))).map(Arc::new);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some((checked_at, needs.clone()));
        needs
    }

    /// Returns whether the definition itself or, when last read, its folder needs packages.
    pub(crate) fn is_known_empty(&self) -> bool {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let needs = current.as_ref().and_then(|(_, needs)| needs.as_ref().ok());
        let folder_is_empty = needs.map_or(self.folder.is_none(), |needs| needs.requirements.is_empty());
        self.declared.is_empty() && folder_is_empty
    }
}

fn needs(declared: &Requirements, folder: &Path, hashes: &WheelHashes) -> Result<Needs, CallError> {
    let unavailable =
        |message: String| CallError::new(ErrorCode::NotReady, message).for_model("this tool is unavailable");
    let requirements =
        requirements(declared, folder).map_err(|problems| unavailable(problem::join(&problems)))?;
    if requirements.is_empty() {
        return Ok(Needs::default());
    }
    let wheels = hashes
        .list(folder)
        .map_err(|error| unavailable(format!("failed to read the wheels beside the definition: {error}")))?;
    Ok(Needs { requirements, wheels, folder: Some(folder.to_owned()) })
}

/// Joins the requirements of a definition and of the file beside it.
fn requirements(declared: &Requirements, folder: &Path) -> Result<Requirements, Vec<Problem>> {
    let text = read(&folder.join(FILE)).map_err(|error| {
        vec![Problem::new(FILE, "unreadable", format!("failed to read the file: {error}"))]
    })?;
    match text {
        Some(text) => declared.join(&Requirements::parse_file(&text, FILE)?, FILE),
        None => Ok(declared.clone()),
    }
}

/// Reads a small file; `None` if it does not exist.
fn read(path: &Path) -> io::Result<Option<String>> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_file() => {}
        // A link may lead to any file, of which errors would show parts.
        Ok(_) => return Err(io::Error::other("it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let (file, mut text) = (std::fs::File::open(path)?, String::new());
    // One byte more, so that a file above the limit is reported as such.
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_string(&mut text)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use haft_core::implementation::{Implementation, Python};
    use haft_core::name::ToolName;

    use super::*;

    fn spec(lines: &[&str]) -> ToolSpec {
        let mut python = Python::new("tools:run");
        python.dependencies = lines.iter().map(|line| (*line).to_owned()).collect();
        ToolSpec::new(ToolName::new("t").unwrap(), Implementation::Python(python))
    }

    #[tokio::test]
    async fn the_file_beside_a_definition_adds_requirements() {
        let home = tempfile::tempdir().unwrap();
        let folder = Some(home.path().to_owned());
        let lines = async |dependencies: &Dependencies| {
            let needs = dependencies.current().await.unwrap();
            needs.requirements.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let plain = Dependencies::new(&spec(&[]), None).unwrap();
        assert_eq!((lines(&plain).await, plain.is_known_empty()), (vec![], true));
        let later = Dependencies::new(&spec(&["rich"]), folder.clone()).unwrap();
        assert_eq!(lines(&later).await, ["rich"]);
        std::fs::write(home.path().join(FILE), "requests # http\n").unwrap();
        let dependencies = Dependencies::new(&spec(&["rich"]), folder.clone()).unwrap();
        assert_eq!(lines(&dependencies).await, ["requests", "rich"]);
        tokio::time::sleep(POLL_INTERVAL).await;
        assert_eq!(lines(&later).await, ["requests", "rich"]);

        std::fs::write(home.path().join(FILE), "requests\n-e .\n").unwrap();
        let problems = Dependencies::new(&spec(&["rich"]), folder).unwrap_err();
        assert_eq!(
            problem::join(&problems),
            "line 2: `requirements.txt`: option `-e` is not supported; list each package in a line of its own, such as \
             `rich>=13`"
        );
        tokio::time::sleep(POLL_INTERVAL).await;
        assert_eq!(later.current().await.unwrap_err().code, ErrorCode::NotReady);
    }
}
