use std::io::Write as _;

use proptest::prelude::*;

use crate::{Document, Format, ReadError, ReadLimits, ReadOptions, read};

fn pdf(bytes: &[u8]) -> Result<Document, ReadError> {
    read(bytes, &ReadOptions { file_name: Some("a.pdf"), ..ReadOptions::default() })
}

fn texts(document: &Document) -> Vec<(Option<u32>, &str)> {
    document.blocks.iter().map(|block| (block.page, block.text.as_str())).collect()
}

fn deflate(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn stream(number: u32, dictionary: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("{number} 0 obj\n<< {dictionary} /Length {} >>\nstream\n", data.len());
    [head.as_bytes(), data, b"\nendstream\nendobj\n"].concat()
}

const FONT: &str =
    "5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >> endobj\n";

/// Makes a file with one page per content stream.
fn file(contents: &[Vec<u8>]) -> Vec<u8> {
    let kids: Vec<String> = (0..contents.len()).map(|page| format!("{} 0 R ", 100 + page * 2)).collect();
    let kids = kids.concat();
    let mut bytes = b"%PDF-1.7\n".to_vec();
    bytes.extend(b"1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n");
    let pages = format!(
        "2 0 obj << /Type /Pages /Kids [{kids}] /Count 1 /Resources << /Font << /F1 5 0 R >> >> >> endobj\n{FONT}"
    );
    bytes.extend(pages.as_bytes());
    bytes.extend(b"3 0 obj << /Title (The \\(title\\)) >> endobj\n");
    for (page, content) in contents.iter().enumerate() {
        let number = 100 + page * 2;
        bytes.extend(
            format!("{number} 0 obj << /Type /Page /Parent 2 0 R /Contents {} 0 R >> endobj\n", number + 1)
                .as_bytes(),
        );
        bytes.extend(content);
    }
    bytes.extend(b"trailer << /Root 1 0 R /Info 3 0 R >>\n%%EOF");
    bytes
}

#[test]
fn text_has_words_lines_paragraphs_and_pages() {
    let first = b"BT /F1 12 Tf 72 700 Td (Hello) Tj ( wor) Tj (ld, gr\\374n) Tj 0 -14 Td (second hyphen-) Tj 0 -14 Td (ated line) Tj 0 -40 Td [(New) -300 (para) 20 (graph)] TJ ET";
    let second = b"q 1 0 0 1 0 0 cm BT /F1 10 Tf 1 0 0 1 50 500 Tm (Page) Tj 1 0 0 1 90 500 Tm (two) Tj ET Q";
    let bytes = file(&[stream(101, "", first), stream(103, "/Filter /FlateDecode", &deflate(second))]);
    let document = pdf(&bytes).unwrap();
    assert_eq!(document.title.as_deref(), Some("The (title)"));
    assert_eq!(
        texts(&document),
        [
            (Some(1), "Hello world, grün second hyphenated line"),
            (Some(1), "New paragraph"),
            (Some(2), "Page two"),
        ]
    );
}

#[test]
fn composite_fonts_and_object_streams_are_read() {
    let map = b"begincmap 1 begincodespacerange <0000> <ffff> endcodespacerange 1 beginbfchar <0003> <0020> endbfchar 2 beginbfrange <0010> <0012> <0041> <0020> <0021> [<00e4> <d83dde00>] endbfrange endcmap";
    let header = "10 0 11 43 ";
    let body = "<< /Subtype /Type0 /ToUnicode 12 0 R >>    << /Type /Page /Contents 13 0 R /Resources << /Font << /F 10 0 R >> >> >>";
    let object_stream = stream(
        9,
        &format!("/Type /ObjStm /N 2 /First {} /Filter /FlateDecode", header.len()),
        &deflate(format!("{header}{body}").as_bytes()),
    );
    let content = b"BT /F 9 Tf <0010001100030020002100120055> Tj ET";
    let bytes = [
        b"%PDF-1.5\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[11 0 R]>>endobj\n"
            .to_vec(),
        object_stream,
        stream(12, "/Filter [/ASCIIHexDecode /FlateDecode]", hex(&deflate(map)).as_bytes()),
        stream(13, "", content),
        stream(14, "/Type /XRef /Root 1 0 R", b"xx"),
    ]
    .concat();
    assert_eq!(texts(&pdf(&bytes).unwrap()), [(Some(1), "AB ä😀C")]);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).chain([">".to_owned()]).collect()
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let damaged = |bytes: &[u8]| matches!(pdf(bytes), Err(ReadError::Damaged { format: Format::Pdf, .. }));
    assert!(damaged(b"%PDF-1.7\nnothing here"));
    assert!(damaged(b"%PDF-1.7\n1 0 obj << /Type /Catalog >> endobj trailer << /Root 1 0 R >>"));
    let encrypted = b"%PDF-1.7\n1 0 obj << /Type /Catalog >> endobj trailer << /Root 1 0 R /Encrypt 2 0 R >>";
    assert_eq!(pdf(encrypted), Err(ReadError::Encrypted { format: Format::Pdf }));
    let scanned = file(&[stream(101, "", b"q 100 0 0 100 0 0 cm /Im1 Do Q")]);
    assert_eq!(pdf(&scanned), Err(ReadError::NoText { format: Format::Pdf }));
}

#[test]
fn bombs_and_cycles_end() {
    let limits = ReadLimits { max_decompressed: 1 << 20, max_pages: 20, ..ReadLimits::default() };
    let read = |bytes: &[u8]| read(bytes, &ReadOptions { limits: limits.clone(), ..ReadOptions::default() });
    let bomb = file(&[stream(101, "/Filter /FlateDecode", &deflate(&vec![b' '; 8 << 20]))]);
    assert_eq!(read(&bomb), Err(ReadError::DecompressedTooLarge { limit: 1 << 20 }));
    let twice = deflate(&deflate(&vec![b' '; 8 << 20]));
    let bomb = file(&[stream(101, "/Filter [/FlateDecode /FlateDecode]", &twice)]);
    assert_eq!(read(&bomb), Err(ReadError::DecompressedTooLarge { limit: 1 << 20 }));
    let pages: Vec<Vec<u8>> = (0..30).map(|page| stream(101 + page * 2, "", b"")).collect();
    assert_eq!(read(&file(&pages)), Err(ReadError::TooManyPages { limit: 20 }));
    let cycle = b"%PDF-1.7 1 0 obj<</Pages 2 0 R>>endobj 2 0 obj<</Kids[2 0 R 3 0 R 3 0 R]>>endobj 3 0 obj<</Kids 4 0 R>>endobj 4 0 obj 4 0 R endobj trailer<</Root 1 0 R>>";
    assert!(read(cycle).is_err());
    let form =
        stream(101, "/Subtype /Form /Resources << /XObject << /X 101 0 R >> >>", b"/X Do /X Do /X Do /X Do");
    assert!(read(&file(&[form])).is_err());
    for hostile in [
        "[",
        "<<",
        "1 0 obj [ ",
        "1 0 obj << /A ",
        "1 0 obj << >> stream\n",
        "(",
        "<</A",
        "trailer",
        "1 0 obj",
    ] {
        let bytes = format!("%PDF-1.7\n{}", hostile.repeat(500_000 / hostile.len()));
        assert!(read(bytes.as_bytes()).is_err(), "{hostile}");
    }
    let huge = format!(
        "7 0 obj << /Font << {} >> >> endobj\n",
        (0..100_000).map(|n| format!("/F{n} << >> ")).collect::<Vec<_>>().concat()
    );
    let many = "/F1 1 Tf ".repeat(50_000);
    let content = [stream(101, "", many.as_bytes()), huge.into_bytes()].concat();
    let bytes =
        String::from_utf8(file(&[content])).unwrap().replace("/Contents", "/Resources 7 0 R /Contents");
    assert!(read(bytes.as_bytes()).is_err());
}

proptest! {
    #[test]
    fn any_change_of_a_file_is_read_or_rejected(changes in prop::collection::vec((0_usize..900, any::<u8>()), 1..30)) {
        let mut bytes = file(&[stream(101, "", b"BT /F1 12 Tf (Hello) Tj [(a) -300 (b)] TJ ET")]);
        for (at, byte) in changes {
            if let Some(target) = bytes.get_mut(at) {
                *target = byte;
            }
        }
        let _ = pdf(&bytes);
    }
}
