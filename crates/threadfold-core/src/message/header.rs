//! The size of a picture, the pages of a document and the length of a recording, from a few bytes of
//! their Base64.
//!
//! Only the bytes that are needed are decoded, so hostile data costs little: a picture takes at
//! most a few hundred steps, and the search for pages reads at most [`SEARCHED`] bytes at each end.

use super::{base64, media::MediaSource};

/// The maximum number of JPEG segments that are read to find the one that states the size. Real
/// pictures have far fewer.
const SEGMENTS: usize = 256;

/// How many bytes at the start and at the end of a document are searched.
const SEARCHED: usize = 64 * 1_024;

/// The minimum bytes of a page: the dictionary that describes it.
const PAGE_BYTES: usize = 64;

/// Width and height in pixels.
pub(crate) type PixelSize = (u64, u64);

/// The signatures of picture types: byte offset, expected bytes, media type.
const BEGINNINGS: [(usize, &[u8], &str); 8] = [
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypheix", "image/heic"),
    (4, b"ftypmif1", "image/heif"),
    (4, b"ftypmsf1", "image/heif"),
];

/// Returns the media type of a picture by the first bytes of its Base64; `None` for anything else.
pub fn media_type(data: &str) -> Option<&'static str> {
    let bytes = Bytes(data.as_bytes());
    let mut types = BEGINNINGS.iter();
    let (_, _, found) = types.find(|(at, beginning, _)| bytes.starts_with(*at, beginning))?;
    (*found != "image/webp" || bytes.starts_with(0, b"RIFF")).then_some(*found)
}

/// Returns the size of a PNG, JPEG, GIF or WebP picture from its Base64; `None` for anything else.
pub fn pixels(data: &str) -> Option<PixelSize> {
    let bytes = Bytes(data.as_bytes());
    let found = match media_type(data)? {
        "image/png" => Some((bytes.big(16, 4)?, bytes.big(20, 4)?)),
        "image/gif" => Some((bytes.little(6, 2)?, bytes.little(8, 2)?)),
        "image/webp" => webp(&bytes),
        "image/jpeg" => jpeg(&bytes),
        _ => None,
    };
    found.filter(|(width, height)| *width > 0 && *height > 0)
}

/// Returns the number of pages that a PDF in the message states near its start or end; `None` if it
/// states none there, as with compressed page trees, or more than its bytes can hold.
pub(crate) fn pages(source: &MediaSource) -> Option<u64> {
    let MediaSource::Base64 { data, .. } = source else { return None };
    let bytes = Bytes(data.as_bytes());
    if !bytes.starts_with(0, b"%PDF-") {
        return None;
    }
    let length = data.len() / 4 * 3;
    let head = bytes.part(0, SEARCHED.min(length));
    let tail = bytes.part(length.saturating_sub(SEARCHED).max(head.len()), length);
    // The root of the page tree counts all pages, its branches fewer.
    let counts = [head, tail].into_iter().filter_map(|part| largest_count(&part));
    let most = u64::try_from(length / PAGE_BYTES).unwrap_or(u64::MAX);
    counts.max().filter(|pages| (1..=most).contains(pages))
}

/// Returns the length of a WAV or MP3 recording in seconds, rounded up, from its Base64; `None` for
/// anything else. An MP3 counts by the rate of its first frame.
pub(crate) fn seconds(data: &str) -> Option<u64> {
    let bytes = Bytes(data.as_bytes());
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    let length = (data.len() / 4 * 3).saturating_sub(padding) as u64;
    let is_wav = bytes.starts_with(0, b"RIFF") && bytes.starts_with(8, b"WAVEfmt ");
    let (header, rate) = if is_wav { (44, bytes.little(28, 4)?) } else { (0, mp3_rate(&bytes)?) };
    (rate > 0).then(|| length.saturating_sub(header).div_ceil(rate))
}

/// The bytes of a second of an MP3, as its first frame states them.
fn mp3_rate(bytes: &Bytes<'_>) -> Option<u64> {
    /// Thousands of bits in a second, by the index in a frame of layer III.
    const MPEG1: [u64; 15] = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
    const MPEG2: [u64; 15] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
    let mut at = 0;
    if bytes.starts_with(0, b"ID3") {
        // The size of the tag has seven bits in each byte.
        let size =
            (6..10).try_fold(0, |size, index| Some(size << 7 | usize::from(bytes.at(index)?)));
        at = 10 + size?;
    }
    let (first, second, third) = (bytes.at(at)?, bytes.at(at + 1)?, bytes.at(at + 2)?);
    if first != 0xff || second & 0xe0 != 0xe0 || second & 0x06 != 0x02 {
        return None;
    }
    let rates = if second & 0x18 == 0x18 { MPEG1 } else { MPEG2 };
    let rate = rates.get(usize::from(third >> 4)).copied().filter(|rate| *rate > 0)?;
    Some(rate * 1_000 / 8)
}

fn webp(bytes: &Bytes<'_>) -> Option<PixelSize> {
    if bytes.starts_with(12, b"VP8X") {
        return Some((bytes.little(24, 3)? + 1, bytes.little(27, 3)? + 1));
    }
    if bytes.starts_with(12, b"VP8L") {
        let bits = bytes.little(21, 4)?;
        return Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1));
    }
    if bytes.starts_with(12, b"VP8 ") {
        return Some((bytes.little(26, 2)? & 0x3fff, bytes.little(28, 2)? & 0x3fff));
    }
    None
}

/// Follows the segments to the one that starts a frame, because it states the size.
fn jpeg(bytes: &Bytes<'_>) -> Option<PixelSize> {
    let mut at = 2;
    for _ in 0..SEGMENTS {
        if bytes.at(at)? != 0xff {
            return None;
        }
        match bytes.at(at + 1)? {
            // A byte of padding, or a marker that no segment follows.
            0xff => at += 1,
            0x01 | 0xd0..=0xd7 => at += 2,
            // Here the data begin, or the picture ends. The segment with the size comes before
            // both.
            0xd9 | 0xda => return None,
            0xc4 | 0xc8 | 0xcc => at += 2 + bytes.length(at + 2)?,
            0xc0..=0xcf => return Some((bytes.big(at + 7, 2)?, bytes.big(at + 5, 2)?)),
            _ => at += 2 + bytes.length(at + 2)?,
        }
    }
    None
}

/// The largest number that follows `/Count` in a part of a PDF.
fn largest_count(part: &[u8]) -> Option<u64> {
    const COUNT: &[u8] = b"/Count";
    let starts = part.windows(COUNT.len()).enumerate().filter(|(_, window)| *window == COUNT);
    let numbers = starts.filter_map(|(start, _)| {
        let after = part.get(start + COUNT.len()..)?;
        let mut digits =
            after.iter().skip_while(|byte| byte.is_ascii_whitespace()).take(7).peekable();
        digits.peek().filter(|byte| byte.is_ascii_digit())?;
        let digits = digits.take_while(|byte| byte.is_ascii_digit());
        Some(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
    });
    numbers.max()
}

/// Base64 text whose bytes are decoded one by one when they are read.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    /// Returns a byte; `None` after the end, or at a character that is not Base64.
    fn at(&self, index: usize) -> Option<u8> {
        base64::byte(self.0, index)
    }

    fn starts_with(&self, index: usize, text: &[u8]) -> bool {
        text.iter().enumerate().all(|(offset, byte)| self.at(index + offset) == Some(*byte))
    }

    /// Returns the big-endian number in this many bytes.
    fn big(&self, index: usize, bytes: usize) -> Option<u64> {
        (0..bytes)
            .try_fold(0, |number, offset| Some(number << 8 | u64::from(self.at(index + offset)?)))
    }

    /// Returns the little-endian number in this many bytes.
    fn little(&self, index: usize, bytes: usize) -> Option<u64> {
        (0..bytes)
            .rev()
            .try_fold(0, |number, offset| Some(number << 8 | u64::from(self.at(index + offset)?)))
    }

    /// The length of a JPEG segment, which includes its two bytes.
    fn length(&self, index: usize) -> Option<usize> {
        usize::try_from(self.big(index, 2)?).ok()
    }

    /// The bytes of a range, up to the first that cannot be decoded.
    fn part(&self, start: usize, end: usize) -> Vec<u8> {
        (start..end).map_while(|index| self.at(index)).collect()
    }
}
