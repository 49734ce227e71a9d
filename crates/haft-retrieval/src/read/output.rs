//! What the readers write to: blocks within limits.

use std::ops::Range;

use super::deadline::Deadline;
use super::{ReadError, ReadLimits};
use crate::{Block, BlockKind};

/// The maximum length of a title in characters.
const MAX_TITLE: usize = 500;

/// The blocks of a document that is being read.
#[derive(Debug)]
pub(super) struct Output<'a> {
    pub(super) limits: &'a ReadLimits,
    /// When reading must have ended.
    pub(super) deadline: Deadline,
    pub(super) title: Option<String>,
    pub(super) blocks: Vec<Block>,
    /// The text that positions refer to.
    pub(super) source: String,
    text_bytes: usize,
}

impl<'a> Output<'a> {
    pub(super) fn new(limits: &'a ReadLimits) -> Self {
        let deadline = Deadline::start(limits.max_time);
        Self { limits, deadline, title: None, blocks: Vec::new(), source: String::new(), text_bytes: 0 }
    }

    /// Sets the title, unless there is one.
    pub(super) fn set_title(&mut self, title: &str) {
        let title = squeeze(title);
        if self.title.is_none() && !title.is_empty() {
            self.title = Some(title.chars().take(MAX_TITLE).collect());
        }
    }

    /// Adds a block that has a range in the source; one without text is left out.
    pub(super) fn push(
        &mut self,
        kind: BlockKind,
        text: String,
        range: Range<usize>,
    ) -> Result<(), ReadError> {
        self.push_block(Block { kind, text, range, page: None })
    }

    /// Adds a block of a format whose source is no text: its text becomes part of the extracted text.
    pub(super) fn append(
        &mut self,
        kind: BlockKind,
        text: String,
        page: Option<u32>,
    ) -> Result<(), ReadError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let start = self.source.len();
        self.source.push_str(&text);
        let range = start..self.source.len();
        self.source.push_str("\n\n");
        self.push_block(Block { kind, text, range, page })
    }

    fn push_block(&mut self, block: Block) -> Result<(), ReadError> {
        if block.text.trim().is_empty() {
            return Ok(());
        }
        self.deadline.check()?;
        if self.blocks.len() >= self.limits.max_blocks {
            return Err(ReadError::TooManyBlocks { limit: self.limits.max_blocks });
        }
        self.text_bytes += block.text.len();
        if self.text_bytes > self.limits.max_text {
            return Err(ReadError::TextTooLarge { limit: self.limits.max_text });
        }
        self.blocks.push(block);
        Ok(())
    }
}

/// Replaces every run of white space by one space, and trims.
pub(super) fn squeeze(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !squeezed.is_empty() {
            squeezed.push(' ');
        }
        squeezed.push_str(word);
    }
    squeezed
}
