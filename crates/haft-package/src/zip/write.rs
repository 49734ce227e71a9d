//! Writes reproducible ZIP archives: the same files give the same bytes.

use std::io::{Cursor, Write as _};

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, System, ZipWriter};

use crate::files::PackageFiles;

/// The level of the compression.
const LEVEL: i64 = 6;

/// Writes an archive: files sorted by path, with a fixed time, mode and compression.
///
/// ```
/// use haft_package::{files::PackageFiles, zip};
///
/// let mut files = PackageFiles::new();
/// files.put_text("toolset.yaml", "id: example\n").unwrap();
/// let archive = zip::write(&files).unwrap();
/// assert_eq!(archive, zip::write(&files).unwrap());
/// assert_eq!(zip::read(&archive).unwrap(), files);
/// ```
pub fn write(files: &PackageFiles) -> Result<Vec<u8>, ZipError> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, file) in files.iter() {
        let mode = if file.executable { 0o755 } else { 0o644 };
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(LEVEL))
            .last_modified_time(DateTime::DEFAULT)
            .system(System::Unix)
            .unix_permissions(mode);
        archive.start_file(path.as_str(), options)?;
        archive.write_all(&file.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}
