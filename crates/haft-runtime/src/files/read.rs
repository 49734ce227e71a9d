//! Reading a file.

use std::io::Read as _;
use std::os::fd::AsFd as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::implementation::Encoding;
use rustix::io::Errno;
use serde_json::{Value, json};

use super::beneath;
use super::error::FileError;
use super::media::media_type;
use super::roots::Root;

/// What to read.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) root: Root,
    pub(super) encoding: Encoding,
    /// The most bytes of the value.
    pub(super) most: u64,
}

impl Reading {
    /// Reads the file; blocks.
    pub(super) fn run(&self, path: &str) -> Result<Value, FileError> {
        let root = self.root.open()?;
        let (file, stat) = beneath::open_file(root.as_fd(), path)?;
        let most = match self.encoding {
            Encoding::Utf8 => self.most,
            Encoding::Base64 | Encoding::Binary => self.most / 4 * 3,
        };
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        if size > most {
            return Err(too_large(path, size, most));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        // It may grow while it is read, and files of the kernel tell no size.
        let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| FileError::of(path, Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > most {
            return Err(too_large(path, size, most));
        }
        self.value(path, bytes)
    }

    fn value(&self, path: &str, bytes: Vec<u8>) -> Result<Value, FileError> {
        match self.encoding {
            Encoding::Utf8 => String::from_utf8(bytes).map(Value::String).map_err(|error| {
                let at = error.utf8_error().valid_up_to();
                let why = format!("is not UTF-8 text: byte {at} is no part of a character; a tool with `encoding: base64` reads it");
                FileError::unfit(path, "not_utf8", why)
            }),
            Encoding::Base64 => Ok(Value::String(STANDARD.encode(&bytes))),
            Encoding::Binary => {
                let name = path.rsplit('/').next().unwrap_or(path);
                Ok(json!({
                    "name": name,
                    "media_type": media_type(name),
                    "size": bytes.len(),
                    "base64": STANDARD.encode(&bytes),
                }))
            }
        }
    }
}

fn too_large(path: &str, size: u64, most: u64) -> FileError {
    let why = format!("has {size} bytes or more; at most {most} are read (`limits.max_response_bytes`)");
    FileError::unfit(path, "too_large", why)
}
