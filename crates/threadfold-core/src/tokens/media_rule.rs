//! What a provider counts for pictures and documents.

use crate::message::{
    Image, MediaSource,
    header::{self, PixelSize},
    measure::IMAGE_TOKENS,
};

/// The documented rule by which a provider counts a picture by its size in pixels, and a document
/// by its pages.
///
/// The size is read from the header of a PNG, JPEG, GIF or WebP picture in the message. A picture
/// at a URL or in the provider's file store counts [`IMAGE_TOKENS`]. The rules are those of the
/// vendors' pages of 2025; newer models of a vendor may count more.
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
        header::pages(source).map(|pages| pages.saturating_mul(page))
    }
}

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
