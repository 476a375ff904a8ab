//! The token counts of pictures and documents, by the examples of the providers' documentation.

use std::fs;

use proptest::prelude::*;
use threadfold::{
    ContentBlock,
    message::{Document, Extra, Image, Json, MediaSource, base64},
    tokens::{ByteEstimate, DOCUMENT_TOKENS, IMAGE_TOKENS, MediaRule, TokenCounter},
};

const DOCUMENTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/media/documented.txt");

fn source(bytes: &[u8]) -> MediaSource {
    MediaSource::Base64 { media_type: "image/png".into(), data: base64::encode(bytes).into() }
}

/// The beginnings of a picture of this size, in each format.
fn headers(width: u32, height: u32) -> Vec<(&'static str, Vec<u8>)> {
    let (wide, high) = (width as u16, height as u16);
    let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &width.to_be_bytes()[..], &height.to_be_bytes()];
    let gif = [b"GIF89a", &wide.to_le_bytes()[..], &high.to_le_bytes()];
    let jpeg = [
        b"\xff\xd8\xff\xe0\0\x08JFIF\0\0\xff\xff\xdb\0\x04\0\0\xff\xc2\0\x11\x08",
        &high.to_be_bytes()[..],
        &wide.to_be_bytes(),
    ];
    let lossy = [
        b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a",
        &wide.to_le_bytes()[..],
        &high.to_le_bytes(),
    ];
    let bits = (width - 1) | (height - 1) << 14;
    let lossless = [b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f", &bits.to_le_bytes()[..]];
    let extended = [
        b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0",
        &(width - 1).to_le_bytes()[..3],
        &(height - 1).to_le_bytes()[..3],
    ];
    vec![
        ("png", png.concat()),
        ("gif", gif.concat()),
        ("jpeg", jpeg.concat()),
        ("webp lossy", lossy.concat()),
        ("webp lossless", lossless.concat()),
        ("webp extended", extended.concat()),
    ]
}

/// A PDF with this many pages: the tree counts them, and its branches count fewer.
fn pdf(pages: usize) -> Vec<u8> {
    let page = "3 0 obj <</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792]>> endobj\n";
    let tree = format!("2 0 obj <</Type /Pages /Count {pages}>> endobj 4 0 obj <</Count 1>>");
    format!("%PDF-1.4\n{tree}\n{}trailer", page.repeat(pages)).into_bytes()
}

#[test]
fn the_documented_examples_are_met_for_each_provider() {
    let rows = fs::read_to_string(DOCUMENTED).unwrap();
    let rows = rows.lines().filter(|row| !row.is_empty() && !row.starts_with('#'));
    for row in rows {
        let [provider, what, tokens] = row.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let rule = match provider {
            "anthropic" | "bedrock" => MediaRule::Anthropic,
            "openai" => MediaRule::OpenAi,
            "gemini" => MediaRule::Gemini,
            other => panic!("{other}"),
        };
        let counter = ByteEstimate::TRIGGER.with_media_rule(rule);
        let tokens: u64 = tokens.parse().unwrap();
        let check = |found: u64, form: &str| {
            assert!(found.abs_diff(tokens) * 5 <= tokens, "{row}: {found} as {form}");
        };
        if let Some(pages) = what.strip_suffix("pages") {
            let document = Document::new(source(&pdf(pages.parse().unwrap())));
            check(counter.block(&document.into()), "pdf");
            continue;
        }
        let (size, detail) = what.split_once('/').unwrap_or((what, "high"));
        let (width, height) = size.split_once('x').unwrap();
        for (form, bytes) in headers(width.parse().unwrap(), height.parse().unwrap()) {
            let mut image = Image::new(source(&bytes));
            if detail == "low" {
                image.extra =
                    Extra::new("openai-responses", [("detail", Json::parse("\"low\"").unwrap())]);
            }
            check(counter.block(&image.into()), form);
        }
    }
}

#[test]
fn media_without_a_readable_size_have_the_default_count() {
    let count = |block: ContentBlock| ByteEstimate::TRIGGER.block(&block);
    let nothing = [b"GIF89a".to_vec(), b"\x89PNG\r\n\x1a\n".to_vec(), b"BM".to_vec(), Vec::new()];
    for bytes in nothing.iter().chain([&headers(1, 1)[0].1[..20].to_vec()]) {
        assert_eq!(count(Image::new(source(bytes)).into()), IMAGE_TOKENS, "{bytes:?}");
    }
    let url = MediaSource::Url { url: "https://example.com/a.png".into() };
    assert_eq!(count(Image::new(url).into()), IMAGE_TOKENS);
    // More pages than bytes can hold.
    let bomb = b"%PDF-1.4 /Count 9999999".to_vec();
    assert_eq!(count(Document::new(source(&bomb)).into()), DOCUMENT_TOKENS);
    let zero = &headers(1, 1)[1].1[..6];
    let zero = [zero, &[0, 0, 0, 0]].concat();
    assert_eq!(count(Image::new(source(&zero)).into()), IMAGE_TOKENS);
}

proptest! {
    #[test]
    fn hostile_headers_are_read_in_bounded_time_without_a_panic(
        form in 0_usize..6,
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        cut in 0_usize..60,
    ) {
        let (_, mut header) = headers(70, 70).swap_remove(form);
        header.truncate(cut);
        header.extend(&bytes);
        let texts = [base64::encode(&header), String::from_utf8_lossy(&bytes).into_owned()];
        for text in texts {
            let source = MediaSource::Base64 { media_type: "image/png".into(), data: text.into() };
            for rule in [MediaRule::Anthropic, MediaRule::OpenAi, MediaRule::Gemini] {
                let counter = ByteEstimate::TRIGGER.with_media_rule(rule);
                prop_assert!(counter.block(&Image::new(source.clone()).into()) > 0);
                counter.block(&Document::new(source.clone()).into());
            }
        }
    }
}

#[test]
fn the_largest_size_that_a_header_can_state_does_not_overflow() {
    let (_, png) = headers(u32::MAX, u32::MAX).swap_remove(0);
    for rule in [MediaRule::Anthropic, MediaRule::OpenAi, MediaRule::Gemini] {
        let counter = ByteEstimate::TRIGGER.with_media_rule(rule);
        assert!(counter.block(&Image::new(source(&png)).into()) > 0);
    }
}
