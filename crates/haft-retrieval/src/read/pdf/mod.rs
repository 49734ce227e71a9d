//! The text of PDF files.
//!
//! The reader is our own, because a hostile file must not hang or exhaust the server: it finds objects by scanning, never
//! follows offsets, and counts every decompressed byte, every resolved reference and every operator against a limit.
//! It reads text only: no images, no scripts, no passwords.

mod decrypt;
mod encoding;
mod file;
mod filters;
mod font;
mod lexer;
mod pages;
#[cfg(test)]
mod pdf_tests;
mod text;

pub(super) use pages::read;
