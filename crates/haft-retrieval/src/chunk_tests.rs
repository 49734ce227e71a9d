use proptest::prelude::*;

use crate::{
    BlockKind, Chunk, ChunkError, ChunkOptions, Document, Metadata, ReadOptions, SizeUnit, Source,
    StoredChunk, chunk, diff, read,
};

fn markdown(text: &str) -> Document {
    read(text.as_bytes(), &ReadOptions { file_name: Some("a.md"), ..ReadOptions::default() }).unwrap()
}

fn source() -> Source {
    Source { document: "guide".into(), metadata: Metadata::new() }
}

fn characters(target: usize, max: usize, overlap: usize) -> ChunkOptions {
    ChunkOptions { unit: SizeUnit::Characters, target, max, overlap }
}

fn chunks(text: &str, options: &ChunkOptions) -> Vec<Chunk> {
    chunk(&markdown(text), &source(), options).unwrap()
}

fn stored(chunks: &[Chunk]) -> Vec<StoredChunk> {
    chunks.iter().map(|chunk| StoredChunk { id: chunk.id.clone(), hash: chunk.hash.clone() }).collect()
}

const GUIDE: &str = "# Guide\n\nIntro.\n\n## Install\n\nRun the installer.\n\n- on Linux\n- on macOS\n\n```sh\nmake\nmake install\n```\n\n## Use\n\nStart it.\n\n## Empty\n";

#[test]
fn chunks_follow_the_headings() {
    let chunks = chunks(GUIDE, &ChunkOptions::default());
    let seen: Vec<_> = chunks
        .iter()
        .map(|chunk| (chunk.heading_path(), chunk.text.as_str(), chunk.position.lines))
        .collect();
    assert_eq!(
        seen,
        [
            ("Guide".to_owned(), "Intro.", Some((3, 3))),
            (
                "Guide > Install".to_owned(),
                "Run the installer.\n\non Linux\non macOS\n\nmake\nmake install",
                Some((7, 14))
            ),
            ("Guide > Use".to_owned(), "Start it.", Some((19, 19))),
            ("Guide".to_owned(), "Empty", Some((21, 21))),
        ]
    );
    assert_eq!(&GUIDE[chunks[0].position.bytes.clone()], "Intro.");
}

#[test]
fn code_that_fits_stays_whole() {
    let code = "let x = 1;\n".repeat(8);
    let text = format!("{}\n\n```\n{code}```\n", "Some words here. ".repeat(4));
    let chunks = chunks(&text, &characters(80, 120, 0));
    assert_eq!(chunks.last().unwrap().text, code.trim_end());
}

#[test]
fn long_text_is_cut_at_sentences_with_overlap_and_exact_positions() {
    let text = (0..60).map(|n| format!("Sentence number {n} is here. ")).collect::<Vec<_>>().concat();
    let chunks = chunks(&text, &characters(200, 300, 60));
    assert!(chunks.len() > 5);
    for pair in chunks.windows(2) {
        assert!(pair[1].position.bytes.start < pair[0].position.bytes.end, "no overlap");
        assert!(pair[1].text.starts_with("Sentence"), "{}", pair[1].text);
    }
    for chunk in &chunks {
        assert!(chunk.text.chars().count() <= 300);
        assert!(text[chunk.position.bytes.clone()].ends_with(chunk.text.rsplit("\n\n").next().unwrap()));
    }
}

#[test]
fn options_that_contradict_each_other_are_named() {
    for (options, field) in [
        (characters(10, 5, 0), "max"),
        (characters(0, 100, 0), "target"),
        (characters(200, 100, 0), "target"),
        (characters(100, 100, 80), "overlap"),
        (characters(100, 1_000_000, 0), "max"),
    ] {
        let error = chunk(&markdown("a"), &source(), &options).unwrap_err();
        assert!(matches!(&error, ChunkError::Options { field: named, .. } if *named == field), "{error}");
    }
    let nameless = Source::default();
    assert_eq!(chunk(&markdown("a"), &nameless, &ChunkOptions::default()), Err(ChunkError::DocumentId(0)));
}

#[test]
fn a_changed_section_changes_its_chunks_only() {
    let before = chunks(GUIDE, &ChunkOptions::default());
    assert!(diff(&stored(&before), &before).is_unchanged());
    let edited = GUIDE.replace("Intro.", "A longer introduction\nwith two lines.");
    let after = chunks(&edited, &ChunkOptions::default());
    let diff = diff(&stored(&before), &after);
    assert_eq!(diff.remove, [before[0].id.clone()]);
    assert_eq!(diff.add, [0]);
    assert_eq!(diff.keep.len(), 3);
    // The kept chunks have moved down by one line.
    assert_eq!(after[2].position.lines, Some((20, 20)));
}

#[test]
fn equal_texts_are_chunks_of_their_own() {
    let text = "{\"a\":1}\n{\"a\":1}\n{\"a\":1}\n";
    let document =
        read(text.as_bytes(), &ReadOptions { file_name: Some("a.jsonl"), ..ReadOptions::default() }).unwrap();
    let three = chunk(&document, &source(), &ChunkOptions::default()).unwrap();
    assert_eq!(three.len(), 3);
    let two = &three[..2];
    let diff = diff(&stored(&three), two);
    assert_eq!((diff.add.len(), diff.keep.len(), diff.remove.len()), (0, 2, 1));
}

#[test]
fn other_metadata_is_another_hash_and_documents_share_no_ids() {
    let document = markdown("Text.");
    let of = |document_id: &str, team: Option<&str>| {
        let metadata = team.map(|team| ("team".to_owned(), team.into())).into_iter().collect();
        let source = Source { document: document_id.into(), metadata };
        chunk(&document, &source, &ChunkOptions::default()).unwrap().remove(0)
    };
    assert_ne!(of("a", None).hash, of("a", Some("x")).hash);
    assert_eq!(of("a", None).hash, of("b", None).hash);
    assert_ne!(of("a", None).id, of("b", None).id);
}

proptest! {
    #[test]
    fn no_chunk_exceeds_the_maximum_and_no_word_is_lost(
        paragraphs in prop::collection::vec("[a-zäöü日 .\n]{0,400}", 1..8),
        target in 20_usize..200,
    ) {
        let text = paragraphs.join("\n\n");
        let options = ReadOptions { file_name: Some("a.txt"), ..ReadOptions::default() };
        if let Ok(document) = read(text.as_bytes(), &options) {
            prop_assert!(document.blocks.iter().all(|block| block.kind == BlockKind::Paragraph));
            let chunks = chunk(&document, &source(), &characters(target, target * 2, target / 4)).unwrap();
            let mut end = 0;
            for chunk in &chunks {
                prop_assert!(chunk.text.chars().count() <= target * 2 + 2);
                let between = &text[end..chunk.position.bytes.start.max(end)];
                prop_assert!(between.trim().is_empty(), "lost {between:?}");
                end = end.max(chunk.position.bytes.end);
            }
            prop_assert!(text[end..].trim().is_empty());
        }
    }
}
