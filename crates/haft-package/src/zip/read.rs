//! Reads hostile ZIP archives.
//!
//! Nothing of an archive is trusted: names, sizes, counts and modes are checked first, and the content is read with a
//! limit. An archive that two readers could understand differently is rejected.

use std::collections::HashSet;
use std::io::{Cursor, Read as _};

use haft_core::problem::{Problem, excerpt};
use zip::ZipArchive;
use zip::read::ZipFileEntry;
use zip::result::ZipError;

use crate::files::{
    MAX_FILE, MAX_FILES, MAX_TOTAL, PackageFiles, is_signature, signature_folder, too_large, total_too_large,
};
use crate::path::PackagePath;
use crate::problems::{MAX_SHOWN, Problems, of_file};

/// The maximum size of an archive, in bytes.
pub const MAX_ARCHIVE: usize = 256 << 20;
/// The maximum ratio of unpacked to packed bytes of a whole archive, above [`RATIO_FREE`].
pub const MAX_RATIO: u64 = 200;
/// The unpacked size up to which every ratio is allowed, in bytes.
const RATIO_FREE: u64 = 16 << 20;
/// The maximum number of members, folders and junk included.
const MAX_MEMBERS: usize = 4 * MAX_FILES;
/// The maximum number of signatures of members in the bytes: those of nested archives count too.
const MAX_SIGNATURES: usize = 200_000;

/// The signature of a member in the directory of an archive.
const MEMBER_SIGNATURE: &[u8] = b"PK\x01\x02";
/// The signature of the record at the end of an archive, and the size of that record without its comment.
const END_SIGNATURE: &[u8] = b"PK\x05\x06";
const END_SIZE: usize = 22;

/// Reads an archive. A single folder around the package is removed. All problems are reported, each with the file and
/// the fix.
pub fn read(bytes: &[u8]) -> Result<PackageFiles, Vec<Problem>> {
    check_bytes(bytes).map_err(|problem| vec![problem])?;
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| vec![archive_problem(&error)])?;
    check_archive(&mut archive, bytes).map_err(|problem| vec![problem])?;
    let mut problems = Problems::default();
    let members = members(&archive, bytes.len() as u64, &mut problems);
    // Nothing is unpacked from an archive with problems.
    let members = problems.or(members)?;
    let mut problems = Problems::default();
    let mut files = PackageFiles::new();
    for member in members {
        let path = member.path.clone();
        let unpacked = content(&mut archive, &member);
        if let Err(problem) = unpacked.and_then(|bytes| files.add(path, bytes, member.executable)) {
            problems.push(problem);
        }
        if problems.is_full() {
            break;
        }
    }
    problems.or(files).map(PackageFiles::without_wrapping_folder)
}

fn check_bytes(bytes: &[u8]) -> Result<(), Problem> {
    let invalid = |code: &str, message: String| Err(Problem::new("", code, message));
    if bytes.len() > MAX_ARCHIVE {
        let message = format!("the archive has {} bytes; the limit is {MAX_ARCHIVE}", bytes.len());
        return invalid("archive_too_large", message);
    }
    if !bytes.starts_with(b"PK") {
        let message = "not a ZIP archive; pack the folder with any ZIP program";
        return invalid("not_a_zip", message.to_owned());
    }
    // The library allocates a few hundred bytes for each, before it knows what they are.
    if memchr::memmem::find_iter(bytes, MEMBER_SIGNATURE).nth(MAX_SIGNATURES).is_some() {
        return invalid("too_many_files", format!("the archive has more than {MAX_FILES} files"));
    }
    Ok(())
}

fn check_archive(archive: &mut ZipArchive<Cursor<&[u8]>>, bytes: &[u8]) -> Result<(), Problem> {
    let end = bytes.len().checked_sub(END_SIZE + archive.comment().len());
    let ends_there = end.and_then(|end| bytes.get(end..)).is_some_and(|end| end.starts_with(END_SIGNATURE));
    if archive.offset() != 0 || !ends_there {
        let message = "the archive has data before its start or after its end; pack it again";
        return Err(Problem::new("", "extra_data", message));
    }
    if archive.has_duplicate_names() {
        let name = duplicate_name(bytes, archive.central_directory_start()).unwrap_or_default();
        let message = "the archive contains this file twice; remove one of them and pack it again";
        return Err(of_file(&name, "duplicate_file", message));
    }
    if archive.len() > MAX_MEMBERS {
        let message = format!("the archive has {} members; the limit is {MAX_FILES} files", archive.len());
        return Err(Problem::new("", "too_many_files", message));
    }
    if archive.has_overlapping_entries().map_err(|error| archive_problem(&error))? {
        let message = "two entries of the archive share their data; pack it again";
        return Err(Problem::new("", "overlapping_entries", message));
    }
    archive.validate_header_consistency().map_err(|error| archive_problem(&error))?;
    Ok(())
}

/// Returns the first name that occurs twice in the directory of an archive, which the library does not tell.
fn duplicate_name(bytes: &[u8], start: u64) -> Option<String> {
    /// The size of an entry without its name, extra field and comment.
    const ENTRY_SIZE: usize = 46;
    let mut names = HashSet::new();
    let mut rest = bytes.get(usize::try_from(start).ok()?..)?;
    while rest.starts_with(MEMBER_SIGNATURE) {
        let length =
            |at: usize| Some(usize::from(u16::from_le_bytes(rest.get(at..at + 2)?.try_into().ok()?)));
        let (name, extra, comment) = (length(28)?, length(30)?, length(32)?);
        let name = rest.get(ENTRY_SIZE..ENTRY_SIZE + name)?;
        if !names.insert(name) {
            return Some(String::from_utf8_lossy(name).into_owned());
        }
        rest = rest.get(ENTRY_SIZE + name.len() + extra + comment..)?;
    }
    None
}

/// A file to unpack.
struct Member {
    index: usize,
    path: PackagePath,
    executable: bool,
}

/// Checks every member by its entry in the directory.
fn members(archive: &ZipArchive<Cursor<&[u8]>>, packed: u64, problems: &mut Problems) -> Vec<Member> {
    let mut members = Vec::new();
    let mut total = 0u64;
    for index in 0..archive.len() {
        let entry = match archive.by_index_data(index) {
            Ok(entry) => entry,
            Err(error) => {
                problems.push(archive_problem(&error));
                continue;
            }
        };
        match check_entry(&entry) {
            Ok(Some((path, executable))) => {
                total = total.saturating_add(entry.size());
                members.push(Member { index, path, executable });
            }
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
    }
    if members.len() > MAX_FILES {
        let message = format!("the archive has {} files; the limit is {MAX_FILES}", members.len());
        problems.push(Problem::new("", "too_many_files", message));
    }
    if total > MAX_TOTAL {
        problems.push(total_too_large());
    } else if total > RATIO_FREE && total / packed.max(1) > MAX_RATIO {
        let message = format!(
            "the archive unpacks to {total} bytes, more than {MAX_RATIO} times its size; remove generated data"
        );
        problems.push(Problem::new("", "ratio_exceeded", message));
    }
    members
}

/// The types of a file in its Unix mode.
const TYPE_BITS: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;

/// Checks one member; `None` for folders and junk.
fn check_entry(entry: &ZipFileEntry<'_>) -> Result<Option<(PackagePath, bool)>, Problem> {
    let raw = String::from_utf8_lossy(entry.name_raw()).into_owned();
    let problem = |code: &str, message: String| Err(of_file(&raw, code, message));
    let Ok(name) = std::str::from_utf8(entry.name_raw()) else {
        return problem("unsafe_path", "the name is not UTF-8; rename the file".to_owned());
    };
    let is_folder = name.ends_with('/');
    let name = name.strip_suffix('/').unwrap_or(name);
    let path = match PackagePath::new(name) {
        Ok(path) => path,
        Err(error) => return problem("unsafe_path", error.to_string()),
    };
    let mode = entry.unix_mode().unwrap_or_default();
    match mode & TYPE_BITS {
        SYMLINK => {
            let message = "symbolic links are not allowed in packages; replace it by a copy of the file";
            return problem("symbolic_link", message.to_owned());
        }
        FOLDER if is_folder => {}
        0 | REGULAR if !is_folder => {}
        0 if is_folder => {}
        _ => {
            let message = "not a regular file; packages contain files and folders only";
            return problem("special_file", message.to_owned());
        }
    }
    if is_folder {
        if entry.size() != 0 {
            return problem("special_file", "the folder has content; pack it again".to_owned());
        }
        if is_signature(name) {
            return Err(signature_folder(name));
        }
        return Ok(None);
    }
    if entry.encrypted() {
        return problem("encrypted", "the file is encrypted; pack it without a password".to_owned());
    }
    if !is_supported(entry) {
        let message = "the compression method is unsupported; pack it with `deflate`, the default of ZIP";
        return problem("unsupported_compression", message.to_owned());
    }
    if path.is_junk() {
        return Ok(None);
    }
    if entry.size() > MAX_FILE {
        return Err(too_large(name));
    }
    Ok(Some((path, mode & 0o111 != 0)))
}

fn is_supported(entry: &ZipFileEntry<'_>) -> bool {
    use zip::CompressionMethod::{Deflated, Stored};
    matches!(entry.compression(), Stored | Deflated)
}

/// Unpacks one file.
fn content(archive: &mut ZipArchive<Cursor<&[u8]>>, member: &Member) -> Result<Vec<u8>, Problem> {
    let broken = |error: &dyn std::fmt::Display| {
        let message =
            format!("the file cannot be unpacked: {}; pack it again", excerpt(&error.to_string(), MAX_SHOWN));
        of_file(member.path.as_str(), "damaged_archive", message)
    };
    let file = archive.by_index(member.index).map_err(|error| broken(&error))?;
    let declared = file.size();
    let mut bytes = Vec::new();
    let mut file = file.take(declared.min(MAX_FILE).saturating_add(1));
    file.read_to_end(&mut bytes).map_err(|error| broken(&error))?;
    if bytes.len() as u64 != declared {
        return Err(broken(&"its size is not the one that the archive declares"));
    }
    Ok(bytes)
}

/// Describes why an archive cannot be read.
fn archive_problem(error: &ZipError) -> Problem {
    let shown = excerpt(&error.to_string(), MAX_SHOWN);
    match error {
        ZipError::UnsupportedArchive(_) | ZipError::CompressionMethodNotSupported(_) => {
            Problem::new("", "unsupported_archive", format!("{shown}; pack it again as a plain ZIP"))
        }
        _ => {
            let message = format!("the archive is damaged or truncated ({shown}); pack it again");
            Problem::new("", "damaged_archive", message)
        }
    }
}
