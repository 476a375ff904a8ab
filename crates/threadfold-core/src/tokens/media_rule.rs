//! What a provider counts for pictures, documents and recordings.

use crate::message::{
    Image, MediaSource, Opaque,
    header::{self, PixelSize},
    measure::IMAGE_TOKENS,
};

/// The documented rule by which a provider counts a picture by its size in pixels, and a document
/// by its pages, and a recording by its seconds.
///
/// The size is read from the header of a PNG, JPEG, GIF or WebP picture in the message. A picture
/// at a URL or in the provider's file store counts [`IMAGE_TOKENS`]. The rules are those of the
/// vendors' pages of 2025; newer models of a vendor may count more.
///
/// The length of a WAV or MP3 recording is read from its header; any other is estimated from its
/// bytes, at the low rate of speech. A second counts 32 tokens by Gemini's page on tokens, and 10 by
/// OpenAI's page on the cost of audio, which has one token for 100 ms. Anthropic has no recordings;
/// its rule counts the higher number.
///
/// ```
/// use threadfold::message::{Image, MediaSource};
/// use threadfold::tokens::{ByteEstimate, MediaRule, TokenCounter};
///
/// // The header of a GIF of 1,000 by 1,000 pixels.
/// let (media_type, data) = ("image/gif".into(), "R0lGODlh6APoAw==".into());
/// let image = Image::new(MediaSource::Base64 { media_type, data });
/// assert_eq!(MediaRule::Anthropic.image(&image), 1_334);
/// let counter = ByteEstimate::TRIGGER.with_media_rule(MediaRule::OpenAi);
/// assert_eq!(counter.block(&image.into()), 765);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MediaRule {
    /// Anthropic's rule, on Bedrock too: one token per 750 pixels, after the picture is scaled down
    /// to sides of at most 1,568 pixels and at most 1,600 tokens. It is the default, because it
    /// gives the highest count for usual sizes.
    #[default]
    Anthropic,
    /// OpenAI's rule for models that divide a picture into tiles: 85 tokens and, unless the detail
    /// is low, 170 for each tile of 512 by 512 pixels.
    OpenAi,
    /// Gemini's rule: 258 tokens for each tile of a picture and for each page of a document.
    Gemini,
}

impl MediaRule {
    /// Returns the tokens of a picture.
    #[must_use]
    pub fn image(self, image: &Image) -> u64 {
        let mut fields = image.extra.fields();
        let is_low = fields.any(|(name, json)| name == "detail" && json.as_str() == "\"low\"");
        if self == Self::OpenAi && is_low {
            return TILE_BASE;
        }
        let MediaSource::Base64 { data, .. } = &image.source else { return IMAGE_TOKENS };
        let Some(size) = header::pixels(data) else { return IMAGE_TOKENS };
        match self {
            Self::Anthropic => anthropic(size),
            Self::OpenAi => open_ai(size),
            Self::Gemini => gemini(size),
        }
    }

    /// Returns the tokens of a PDF in the message if its pages can be counted.
    pub(super) fn document(self, source: &MediaSource) -> Option<u64> {
        let page = match self {
            Self::Anthropic => PAGE,
            // OpenAI's models receive both the text of a page and its picture.
            Self::OpenAi => PAGE_TEXT + open_ai(PAGE_PIXELS),
            Self::Gemini => GEMINI_TILE,
        };
        if let MediaSource::Base64 { media_type, data } = source
            && media_type.starts_with("audio/")
        {
            return Some(self.recording(data, media_type));
        }
        header::pages(source).map(|pages| pages.saturating_mul(page))
    }

    /// Returns the tokens of a recording that a codec keeps as it was read: a part with the key
    /// `input_audio` or `audio`, whose `data` are Base64.
    pub(super) fn sound(self, opaque: &Opaque) -> Option<u64> {
        let json = opaque.value.as_str();
        if !["\"input_audio\"", "\"audio\""].iter().any(|key| json.contains(key)) {
            return None;
        }
        let field = |start: &str| json.split_once(start)?.1.split('"').next();
        let data = field("\"data\":\"")?;
        Some(self.recording(data, field("\"format\":\"").unwrap_or_default()))
    }

    fn recording(self, data: &str, format: &str) -> u64 {
        let bytes = (data.len() / 4 * 3) as u64;
        let seconds = header::seconds(data).unwrap_or_else(|| bytes.div_ceil(rate(format)));
        let a_second = match self {
            Self::OpenAi => OPEN_AI_SECOND,
            Self::Anthropic | Self::Gemini => GEMINI_SECOND,
        };
        seconds.saturating_mul(a_second)
    }
}

/// The bytes of a second of a recording whose header states none: the raw formats of OpenAI, or
/// speech at 32,000 bits a second.
fn rate(format: &str) -> u64 {
    match format {
        "pcm16" | "pcm" | "audio/pcm" => 48_000,
        "g711_ulaw" | "g711_alaw" => 8_000,
        _ => 4_000,
    }
}

const OPEN_AI_SECOND: u64 = 10;
const GEMINI_SECOND: u64 = 32;

/// The tokens of a page in Bedrock's example, which has 7,000 for three pages. Anthropic states
/// 1,500 to 3,000.
const PAGE: u64 = 2_333;
const PAGE_TEXT: u64 = 800;
const PAGE_PIXELS: PixelSize = (816, 1_056);

const TILE_BASE: u64 = 85;
const TILE: u64 = 170;
const GEMINI_TILE: u64 = 258;

fn anthropic(size: PixelSize) -> u64 {
    let (width, height) = within(size, 1_568, size.0.max(size.1));
    (width * height).div_ceil(750).min(IMAGE_TOKENS)
}

fn open_ai(size: PixelSize) -> u64 {
    let (width, height) = within(size, 2_048, size.0.max(size.1));
    let (width, height) = within((width, height), 768, width.min(height));
    TILE_BASE + TILE * width.div_ceil(512) * height.div_ceil(512)
}

fn gemini(size: PixelSize) -> u64 {
    let (width, height) = size;
    if width.max(height) <= 384 {
        return GEMINI_TILE;
    }
    let side = (width.min(height) * 2 / 3).clamp(256, 768);
    GEMINI_TILE.saturating_mul(width.div_ceil(side).saturating_mul(height.div_ceil(side)))
}

/// Returns the size scaled down so that a side of length `side` has at most `most` pixels. A header
/// states at most 32 bits for a side, so no product overflows.
fn within((width, height): PixelSize, most: u64, side: u64) -> PixelSize {
    if side <= most {
        return (width, height);
    }
    let [width, height] = [width, height].map(|length| ((length * most + side / 2) / side).max(1));
    (width, height)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{Json, base64},
        tokens::{ByteEstimate, TokenCounter},
    };

    fn wav(rate: u32, seconds: u32) -> String {
        let mut bytes = b"RIFF....WAVEfmt ".to_vec();
        bytes.extend([16, 0, 0, 0, 1, 0, 1, 0]);
        bytes.extend((rate / 2).to_le_bytes());
        bytes.extend(rate.to_le_bytes());
        bytes.resize((44 + rate * seconds) as usize, 0);
        base64::encode(&bytes)
    }

    fn part(data: &str, format: &str) -> Opaque {
        let json = format!(
            r#"{{"type":"input_audio","input_audio":{{"data":"{data}","format":"{format}"}}}}"#
        );
        Opaque::new("openai-chat", Json::parse(&json).unwrap())
    }

    #[test]
    fn a_recording_counts_by_its_seconds() {
        let sound = part(&wav(32_000, 9), "wav");
        assert_eq!(MediaRule::OpenAi.sound(&sound), Some(90));
        assert_eq!(MediaRule::Gemini.sound(&sound), Some(9 * 32));
        assert_eq!(ByteEstimate::TRIGGER.block(&sound.into()), 9 * 32);
    }

    #[test]
    fn an_mp3_counts_by_its_rate_and_any_other_format_by_its_bytes() {
        // MPEG 1, layer III, 128,000 bits a second, after a tag of 20 bytes.
        let mut bytes = b"ID3\x04\0\0\0\0\0\x14".to_vec();
        bytes.resize(30, 0);
        bytes.extend([0xff, 0xfb, 0x90, 0x00]);
        bytes.resize(16_000 * 3, 0);
        assert_eq!(MediaRule::OpenAi.sound(&part(&base64::encode(&bytes), "mp3")), Some(30));
        let raw = base64::encode(&[7; 96_000]);
        assert_eq!(MediaRule::OpenAi.sound(&part(&raw, "pcm16")), Some(20));
        assert_eq!(MediaRule::OpenAi.sound(&part(&raw, "opus")), Some(240));
    }

    #[test]
    fn a_document_that_is_a_recording_counts_by_its_seconds() {
        let data = wav(32_000, 5).into();
        let source = MediaSource::Base64 { media_type: "audio/wav".into(), data };
        assert_eq!(MediaRule::Gemini.document(&source), Some(5 * 32));
    }

    #[test]
    fn other_opaque_parts_are_no_recordings() {
        let json = Json::parse(r#"{"type":"video_url","video_url":{"url":"x"}}"#).unwrap();
        assert_eq!(MediaRule::OpenAi.sound(&Opaque::new("openai-chat", json)), None);
    }
}
