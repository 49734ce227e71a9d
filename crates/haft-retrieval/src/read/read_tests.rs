use std::io::Write as _;

use zip::write::SimpleFileOptions;

use super::{Format, ReadError, ReadLimits, ReadOptions, read};
use crate::{BlockKind, Document};

fn named(bytes: &[u8], name: &str) -> Result<Document, ReadError> {
    read(bytes, &ReadOptions { file_name: Some(name), ..ReadOptions::default() })
}

fn blocks(document: &Document) -> Vec<(BlockKind, &str)> {
    document.blocks.iter().map(|block| (block.kind, block.text.as_str())).collect()
}

fn docx(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn text_has_paragraphs() {
    let document = named(b"First\nline.\n\n  Second.  \n\n\n", "a.txt").unwrap();
    assert_eq!(
        blocks(&document),
        [(BlockKind::Paragraph, "First\nline."), (BlockKind::Paragraph, "Second.")]
    );
    assert_eq!(&document.text[document.blocks[1].range.clone()], "Second.");
}

#[test]
fn markdown_has_structure() {
    let source = "---\ntitle: x\n---\n# A *b*\n\nText `code` [link](http://x) &amp; more.\n\n1. one\n2. two\n   - three\n\n| k | v |\n|---|---|\n| a | 1 |\n\n```rust\nfn main() {}\n```\n\n<div>html</div>\n";
    let document = named(source.as_bytes(), "a.md").unwrap();
    assert_eq!(document.title.as_deref(), Some("A b"));
    assert_eq!(
        blocks(&document),
        [
            (BlockKind::Heading(1), "A b"),
            (BlockKind::Paragraph, "Text code link & more."),
            (BlockKind::ListItem, "one"),
            (BlockKind::ListItem, "two"),
            (BlockKind::ListItem, "three"),
            (BlockKind::TableRow, "k: a | v: 1"),
            (BlockKind::Code, "fn main() {}"),
            (BlockKind::Paragraph, "html"),
        ]
    );
    assert!(source[document.blocks[5].range.clone()].contains("| a | 1 |"));
}

#[test]
fn html_has_structure() {
    let source = "<!doctype html><html><head><title>T &amp; t</title><style>p{}</style></head><body><nav>menu</nav><h1>Head</h1><p>One<br>two <b>bold</b></p><script>var x='<p>';</script><ul><li><p>item</p><li>other</ul><table><tr><th>k<th>v<tr><td>a<td>1</table><pre>x\n  y</pre><!-- no --></body>";
    let document =
        read(source.as_bytes(), &ReadOptions { media_type: Some("text/html"), ..ReadOptions::default() })
            .unwrap();
    assert_eq!(document.title.as_deref(), Some("T & t"));
    assert_eq!(
        blocks(&document),
        [
            (BlockKind::Heading(1), "Head"),
            (BlockKind::Paragraph, "One two bold"),
            (BlockKind::ListItem, "item"),
            (BlockKind::ListItem, "other"),
            (BlockKind::TableRow, "k: a | v: 1"),
            (BlockKind::Code, "x\n  y"),
        ]
    );
    assert_eq!(&source[document.blocks[0].range.clone()], "Head");
}

#[test]
fn docx_has_structure() {
    let styles =
        r#"<w:styles><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style></w:styles>"#;
    let body = r#"<w:document><w:body><w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Titel</w:t></w:r></w:p>
        <w:p><w:r><w:t>Eins &amp; </w:t></w:r><w:r><w:tab/><w:t>zwei&#33;</w:t></w:r><w:r><w:delText>weg</w:delText></w:r></w:p>
        <w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>Punkt</w:t></w:r></w:p>
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>k</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>v</w:t></w:r></w:p></w:tc></w:tr>
        <w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
        </w:body></w:document>"#;
    let core = "<cp:coreProperties><dc:title>Der Titel</dc:title></cp:coreProperties>";
    let bytes =
        docx(&[("word/document.xml", body), ("word/styles.xml", styles), ("docProps/core.xml", core)]);
    let document = named(&bytes, "a.docx").unwrap();
    assert_eq!(document.title.as_deref(), Some("Der Titel"));
    assert_eq!(
        blocks(&document),
        [
            (BlockKind::Heading(1), "Titel"),
            (BlockKind::Paragraph, "Eins & zwei!"),
            (BlockKind::ListItem, "Punkt"),
            (BlockKind::TableRow, "k: a | v: 1"),
        ]
    );
    assert_eq!(&document.text[document.blocks[1].range.clone()], "Eins & zwei!");
}

#[test]
fn csv_rows_carry_the_names_of_their_columns() {
    let document =
        named("name;city;note\nAda;London;\"a \"\"b\"\";\nc\"\n\nBob;;x\n".as_bytes(), "a.csv").unwrap();
    assert_eq!(
        blocks(&document),
        [
            (BlockKind::TableRow, "name: Ada | city: London | note: a \"b\"; c"),
            (BlockKind::TableRow, "name: Bob | note: x"),
        ]
    );
    assert_eq!(&document.text[document.blocks[1].range.clone()], "Bob;;x");
    let error = named(b"a,b\n1,2\n\"open,3\n", "a.csv").unwrap_err();
    assert_eq!(error.to_string(), "invalid CSV document: quoted field is not closed (line 3)");
}

#[test]
fn json_lines_are_records() {
    let document = named(
        b"{\"id\":1,\"by\":{\"name\":\"Ada\"},\"tags\":[\"x\",\"y\"],\"no\":null}\n\n\"plain\"\n",
        "a.jsonl",
    )
    .unwrap();
    assert_eq!(
        blocks(&document),
        [(BlockKind::Record, "id: 1\nby.name: Ada\ntags: x\ntags: y"), (BlockKind::Record, "plain")]
    );
    let error = named(b"{}\n{\"a\":1}\n{oops}\n", "a.jsonl").unwrap_err().to_string();
    assert!(error.starts_with("invalid JSON Lines document: ") && error.ends_with("(line 3)"), "{error}");
}

#[test]
fn the_format_follows_from_signature_type_and_name() {
    let detect = |bytes: &[u8], media_type, name| Format::detect(bytes, media_type, name);
    assert_eq!(detect(b"%PDF-1.7", Some("text/plain"), None), Ok(Format::Pdf));
    assert_eq!(detect(b"x", Some("text/plain"), Some("a.MD")), Ok(Format::Markdown));
    assert_eq!(detect(b"x", Some("text/csv; charset=utf-8"), Some("a.txt")), Ok(Format::Csv));
    assert_eq!(detect(b" <!DOCTYPE html>", None, None), Ok(Format::Html));
    assert_eq!(detect(b"x", Some("application/octet-stream"), Some("notes")), Ok(Format::Text));
    assert_eq!(detect(b"x", Some("image/png"), None), Err(ReadError::Unsupported("image/png".into())));
    assert_eq!(detect(b"x", None, Some("a.xlsx")), Err(ReadError::Unsupported(".xlsx".into())));
    assert!(matches!(detect(b"x", Some("application/pdf"), None), Err(ReadError::Damaged { .. })));
}

#[test]
fn documents_that_cannot_be_read_say_why() {
    assert_eq!(named(b"", "a.txt"), Err(ReadError::Empty));
    assert_eq!(named(b" \n\t ", "a.md"), Err(ReadError::Empty));
    assert_eq!(named(b"\x89PNG\r\n\x1a\n\0\0\0", "a"), Err(ReadError::Binary));
    assert_eq!(named(b"<p></p>", "a.html"), Err(ReadError::NoText { format: Format::Html }));
    let old_word = [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(), &[0; 600]].concat();
    assert!(matches!(named(&old_word, "a.doc"), Err(ReadError::Unsupported(_))));
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let encrypted = [old_word.as_slice(), &name].concat();
    assert_eq!(named(&encrypted, "a.docx"), Err(ReadError::Encrypted { format: Format::Docx }));
    let truncated = docx(&[("word/document.xml", "<w:document/>")]);
    assert!(matches!(named(&truncated[..truncated.len() / 2], "a.docx"), Err(ReadError::Damaged { .. })));
    assert!(matches!(named(&docx(&[("a.txt", "x")]), "a.docx"), Err(ReadError::Unsupported(_))));
    let unclosed = docx(&[("word/document.xml", "<w:document><w:body><w:p>")]);
    assert!(matches!(named(&unclosed, "a.docx"), Err(ReadError::Damaged { .. })));
    let large = vec![b'a'; 100_000_000];
    assert_eq!(named(&large, "a.txt"), Err(ReadError::TooLarge { bytes: 100_000_000, limit: 64 << 20 }));
}

#[test]
fn limits_hold() {
    let small = |bytes: &[u8], name: &'static str, limits: ReadLimits| {
        read(bytes, &ReadOptions { file_name: Some(name), limits, ..ReadOptions::default() })
    };
    let limits = ReadLimits { max_decompressed: 1 << 20, ..ReadLimits::default() };
    let bomb = format!(
        "<w:document><w:body><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:body></w:document>",
        "a".repeat(4 << 20)
    );
    let bomb = docx(&[("word/document.xml", &bomb)]);
    assert!(bomb.len() < 100_000);
    assert_eq!(small(&bomb, "a.docx", limits), Err(ReadError::DecompressedTooLarge { limit: 1 << 20 }));
    let limits = ReadLimits { max_blocks: 10, ..ReadLimits::default() };
    assert_eq!(
        small("a\n\n".repeat(11).as_bytes(), "a.txt", limits),
        Err(ReadError::TooManyBlocks { limit: 10 })
    );
    let limits = ReadLimits { max_text: 100, ..ReadLimits::default() };
    assert_eq!(small(&[b'a'; 101], "a.txt", limits.clone()), Err(ReadError::TextTooLarge { limit: 100 }));
    let deep_keys = format!("{}1{}", "{\"aaaaaaaa\":".repeat(100), "}".repeat(100));
    assert_eq!(small(deep_keys.as_bytes(), "a.jsonl", limits), Err(ReadError::TextTooLarge { limit: 100 }));
    let deep = docx(&[("word/document.xml", &"<w:p>".repeat(100_000))]);
    assert_eq!(named(&deep, "a.docx"), Err(ReadError::TooDeep { format: Format::Docx, limit: 200 }));
    let quotes = format!("{}x", ">".repeat(50_000));
    assert_eq!(
        named(quotes.as_bytes(), "a.md"),
        Err(ReadError::TooDeep { format: Format::Markdown, limit: 100 })
    );
}

#[test]
fn hostile_nesting_costs_no_stack_and_no_time() {
    for (bytes, name) in [
        ("<div>".repeat(400_000), "a.html"),
        ("<table><tr><td>".repeat(100_000), "a.html"),
        ("[".repeat(100_000), "a.md"),
        ("*a _b ".repeat(50_000), "a.md"),
        ("`".repeat(50_000) + "x", "a.md"),
        ("[".repeat(100_000), "a.jsonl"),
        ("\"\n".repeat(100_000), "a.csv"),
        (
            (0..2_000).map(|depth| format!("{}- x\n", " ".repeat(depth * 2))).collect::<Vec<_>>().concat(),
            "a.md",
        ),
    ] {
        let _ = named(bytes.as_bytes(), name);
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_rejected(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..600), format in 0_usize..6) {
        let name = ["a.txt", "a.md", "a.html", "a.csv", "a.jsonl", "a"][format];
        if let Ok(document) = named(&bytes, name) {
            for block in &document.blocks {
                proptest::prop_assert!(document.text.get(block.range.clone()).is_some());
            }
        }
    }
}
