use std::io::Write as _;
use std::time::Duration;

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
fn files_that_open_without_a_password_are_decrypted() {
    for (name, bytes) in [
        ("RC4, 40 bits", include_bytes!("samples/rc4-40.pdf").as_slice()),
        ("RC4, 128 bits", include_bytes!("samples/rc4-128.pdf")),
        ("AES, 128 bits, readable metadata", include_bytes!("samples/aes-128.pdf")),
        ("AES, 256 bits, revision 5", include_bytes!("samples/aes-256-r5.pdf")),
        ("AES, 256 bits, revision 6, object streams", include_bytes!("samples/aes-256.pdf")),
    ] {
        let document = pdf(bytes).unwrap();
        assert_eq!(texts(&document), [(Some(1), "Twenty-five days of leave")], "{name}");
        assert_eq!(document.title.as_deref(), Some("Leave policy"), "{name}");
    }
    let encrypted = Err(ReadError::Encrypted { format: Format::Pdf });
    assert_eq!(pdf(include_bytes!("samples/password.pdf")), encrypted);
    // A key that does not fit the file is rejected, not used.
    let mut changed = include_bytes!("samples/rc4-128.pdf").to_vec();
    let at = changed.windows(4).position(|window| window == b"/P -").unwrap() + 4;
    *changed.get_mut(at).unwrap() = b'9';
    assert_eq!(pdf(&changed), encrypted);
}

/// Makes a file of one page whose font is object 6, with further objects.
fn file_with_font(content: &str, objects: &[u8]) -> Vec<u8> {
    let mut bytes = file(&[[stream(101, "", content.as_bytes()), objects.to_vec()].concat()]);
    let at = bytes.windows(9).position(|window| window == b"/F1 5 0 R").unwrap() + 4;
    *bytes.get_mut(at).unwrap() = b'6';
    bytes
}

#[test]
fn fonts_without_a_map_use_their_own_encoding() {
    let program = b"%!PS-AdobeFont-1.0: CMR10\n/Encoding 256 array 0 1 255 {1 index exch /.notdef put} for\ndup 14 /ffi put dup 111 /o put dup 99 /c put dup 101 /e put readonly def currentfile eexec";
    let font = [
        b"6 0 obj << /Type /Font /Subtype /Type1 /BaseFont /CMR10 /FontDescriptor 7 0 R >> endobj\n7 0 obj << /FontFile 8 0 R >> endobj\n".to_vec(),
        stream(8, "/Filter /FlateDecode", &deflate(program)),
    ];
    let bytes = file_with_font("BT /F1 10 Tf (o\\016ce) Tj ET", &font.concat());
    assert_eq!(texts(&pdf(&bytes).unwrap()), [(Some(1), "office")]);
}

#[test]
fn bitmap_fonts_of_tex_are_read() {
    let font = b"6 0 obj << /Type /Font /Subtype /Type3 /FontMatrix [0.01 0 0 0.01 0 0] /FirstChar 14 /Widths [90] /Encoding << /Differences [14 /a14 111 /a111 99 /a99 101 /a101] >> >> endobj\n";
    let bytes = file_with_font("BT /F1 10 Tf (o\\016ce) Tj ET", font);
    assert_eq!(texts(&pdf(&bytes).unwrap()), [(Some(1), "office")]);
}

#[test]
fn accents_that_are_drawn_alone_join_their_letter() {
    let font = b"6 0 obj << /Type /Font /Subtype /Type1 /FirstChar 1 /Widths [500 500] /Encoding << /Differences [1 /acute /dotlessi] >> >> endobj\n";
    let content = "BT /F1 10 Tf [(caf) (\\001) 500 (e na) (\\001) 500 (\\002ve)] TJ ET";
    assert_eq!(texts(&pdf(&file_with_font(content, font)).unwrap()), [(Some(1), "café naíve")]);
}

#[test]
fn rotated_text_is_read_along_its_lines() {
    let content = b"BT /F1 10 Tf 0 1 -1 0 100 50 Tm (Rotated) Tj 0 -12 Td (lines of text) Tj ET";
    assert_eq!(
        texts(&pdf(&file(&[stream(101, "", content)])).unwrap()),
        [(Some(1), "Rotated lines of text")]
    );
}

#[test]
fn composite_fonts_with_predefined_encodings_need_no_map() {
    for (encoding, code, text) in [
        ("UniJIS-UTF16-H", "65e5672c d842dfb7", "日本𠮷"),
        ("UniGB-UCS2-V", "4e2d6587", "中文"),
        ("90ms-RKSJ-H", "93fa967b 41 b1", "日本Aｱ"),
        ("EUC-H", "c6fccbdc 41", "日本A"),
        ("H", "467c4b5c", "日本"),
        ("GBK-EUC-H", "d6d0cec4 41", "中文A"),
        ("KSCms-UHC-H", "c7d1b1db", "한글"),
        ("ETen-B5-H", "a4a4a4e5", "中文"),
    ] {
        let font = format!("6 0 obj << /Type /Font /Subtype /Type0 /Encoding /{encoding} >> endobj\n");
        let bytes = file_with_font(&format!("BT /F1 10 Tf <{code}> Tj ET"), font.as_bytes());
        assert_eq!(texts(&pdf(&bytes).unwrap()), [(Some(1), text)], "{encoding}");
    }
}

#[test]
fn spacing_and_the_units_of_a_font_move_the_text() {
    let font = "6 0 obj << /Type /Font /Subtype /Type1 /FirstChar 32 /Widths [250] >> endobj\n";
    // Without the spacing the second part would seem to start after a gap.
    let spaced = "BT /F1 10 Tf 1 Tc 5 Tw 1 0 0 1 0 0 Tm (a b) Tj 1 0 0 1 20.5 0 Tm (c) Tj ET";
    assert_eq!(texts(&pdf(&file_with_font(spaced, font.as_bytes())).unwrap()), [(Some(1), "a bc")]);
    let drawn = "6 0 obj << /Type /Font /Subtype /Type3 /FontMatrix [0.01 0 0 0.01 0 0] /FirstChar 97 /Widths [50 50] >> endobj\n";
    let content = "BT /F1 10 Tf 1 0 0 1 0 0 Tm (a) Tj 1 0 0 1 5 0 Tm (b) Tj ET";
    assert_eq!(texts(&pdf(&file_with_font(content, drawn.as_bytes())).unwrap()), [(Some(1), "ab")]);
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

#[test]
fn streams_of_all_filters_are_read() {
    let content = b"BT /F1 12 Tf (Hello) Tj ET";
    // Every byte as a code of 9 bits between the codes for clear and end; codes do not grow within so few.
    let codes = [256].into_iter().chain(content.iter().map(|byte| u32::from(*byte))).chain([257]);
    let bits: Vec<bool> = codes.flat_map(|code| (0..9).rev().map(move |bit| code >> bit & 1 == 1)).collect();
    let byte =
        |bits: &[bool]| (0..8).fold(0_u8, |byte, bit| byte << 1 | u8::from(bits.get(bit) == Some(&true)));
    let lzw: Vec<u8> = bits.chunks(8).map(byte).collect();
    let runs = [&[25], content.as_slice(), &[128]].concat();
    for (filters, data) in [
        ("/Filter /LZWDecode", lzw.clone()),
        ("/Filter [/AHx /LZW] /DecodeParms [null << /EarlyChange 0 >>]", hex(&lzw).into_bytes()),
        ("/Filter /RunLengthDecode", runs.clone()),
        ("/Filter [/Fl /RL]", deflate(&runs)),
    ] {
        assert_eq!(
            texts(&pdf(&file(&[stream(101, filters, &data)])).unwrap()),
            [(Some(1), "Hello")],
            "{filters}"
        );
    }
}

#[test]
fn every_filter_counts_what_it_yields() {
    let limits = ReadLimits { max_decompressed: 1 << 20, ..ReadLimits::default() };
    let read = |bytes: &[u8]| read(bytes, &ReadOptions { limits: limits.clone(), ..ReadOptions::default() });
    for (filters, data) in [
        ("/Filter /ASCII85Decode", vec![b'z'; 400_000]),
        ("/Filter /RunLengthDecode", [129, b' '].repeat(20_000)),
        ("/Filter [/FlateDecode /RunLengthDecode]", deflate(&[129, b' '].repeat(20_000))),
    ] {
        let bomb = file(&[stream(101, filters, &data)]);
        assert_eq!(read(&bomb), Err(ReadError::DecompressedTooLarge { limit: 1 << 20 }), "{filters}");
    }
    // The end of a stream without a length is searched for, again whenever the stream is used.
    let searched =
        b"9 0 obj << >> stream\n".iter().copied().chain(vec![b' '; 200_000]).chain(*b"endstream endobj\n");
    let uses = "/X Do ".repeat(100);
    let content = stream(101, "", format!("BT /F1 12 Tf (Hello) Tj ET {uses}").as_bytes());
    let bytes = file(&[[content, searched.collect()].concat()]);
    let bytes = String::from_utf8(bytes).unwrap();
    let bytes = bytes.replace("/Resources <<", "/Resources << /XObject << /X 9 0 R >>");
    assert!(matches!(read(bytes.as_bytes()), Err(ReadError::Damaged { .. })));
    let harmless = bytes.replace(&uses, "/X Do ");
    assert!(read(harmless.as_bytes()).is_ok());
}

#[test]
fn reading_ends_when_its_time_is_over() {
    let limits = ReadLimits { max_time: Duration::ZERO, ..ReadLimits::default() };
    let bytes = file(&[stream(101, "", b"BT /F1 12 Tf (Hello) Tj ET")]);
    let result = read(&bytes, &ReadOptions { limits, ..ReadOptions::default() });
    assert_eq!(result, Err(ReadError::TooSlow { limit: Duration::ZERO }));
}

#[test]
fn a_page_without_end_is_cut_at_the_limit_of_the_text() {
    // One code is sixteen characters.
    let map = format!("1 beginbfchar <61> <{}> endbfchar", "0061".repeat(16));
    let font = "6 0 obj << /Type /Font /Subtype /Type1 /ToUnicode 7 0 R >> endobj\n".as_bytes().to_vec();
    let content = format!("BT /F1 12 Tf ({}) Tj ET", "a".repeat(10_000));
    let parts = [stream(101, "", content.as_bytes()), font, stream(7, "", map.as_bytes())].concat();
    let bytes = String::from_utf8(file(&[parts])).unwrap().replace("/F1 5 0 R", "/F1 6 0 R");
    let read = |max_text| {
        let limits = ReadLimits { max_text, ..ReadLimits::default() };
        read(bytes.as_bytes(), &ReadOptions { limits, ..ReadOptions::default() })
    };
    assert_eq!(read(160_000).unwrap().text.trim().len(), 160_000);
    assert_eq!(read(159_999), Err(ReadError::TextTooLarge { limit: 159_999 }));
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
