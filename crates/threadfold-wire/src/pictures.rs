//! Which pictures a provider accepts, and the text that replaces one that it would refuse.
//!
//! A provider refuses a whole request because of one picture. The picture stays in the thread, so
//! every later request would fail too. Pictures that were read in a body of the dialect are not
//! checked, because an untouched body must be written back unchanged; its client then gets the
//! provider's answer. Such a picture has a mark, which has an effect only while the picture is
//! unchanged.
//!
//! The limits of each provider (types, bytes, pixels, number) are data, and one function judges all
//! pictures that the host built or changed, or that came from another dialect. If there are too
//! many, the earliest are replaced, and some more than necessary, so that the provider's prompt
//! cache stays valid for the next requests.

use std::borrow::Cow;

use super::{contract::Change, json::Fields, mark, notes::*};
use threadfold_core::message::*;

/// The limits of a provider, by its documentation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pictures {
    /// The media types that the provider accepts.
    pub(super) types: &'static [&'static str],
    /// The maximum data of one picture, in characters of Base64.
    pub(super) longest: usize,
    /// The maximum pixels of a side.
    pub(super) side: u64,
    /// The maximum pixels of a side in a request with more than [`MANY`] pictures.
    pub(super) side_of_many: u64,
    /// The maximum number of pictures and documents in a request.
    pub(super) most: usize,
}

/// The source to write instead; `None` if the source is written unchanged. An error is the reason
/// why it cannot be written.
pub(super) type FittedSource = Result<Option<MediaSource>, &'static str>;

/// In a request with more pictures than this, the limit for sides is [`Pictures::side_of_many`].
const MANY: usize = 20;

impl Pictures {
    /// The limits of Claude.
    pub(super) const CLAUDE: Self = Self {
        types: &["image/jpeg", "image/png", "image/gif", "image/webp"],
        longest: 5 * 1024 * 1024,
        side: 8_000,
        side_of_many: 2_000,
        most: 100,
    };
    /// The limits of OpenAI, which scales large pictures down itself.
    pub(super) const OPENAI: Self = Self {
        longest: 50 * 1024 * 1024,
        side: u64::MAX,
        side_of_many: u64::MAX,
        most: 500,
        ..Self::CLAUDE
    };

    /// Returns the source to write instead of that of a picture; `None` if it stays. An error is
    /// the reason why the provider would refuse the picture.
    pub(super) fn fit(&self, image: &Image, notes: &mut Notes) -> FittedSource {
        let Some((stated, data)) = data(&image.source).filter(|_| !is_as_read(image, notes)) else {
            return Ok(None);
        };
        let (media_type, mended) = self.check(data)?;
        if matches!(&image.source, MediaSource::Base64 { media_type: stated, data }
            if *stated == media_type && *data == *mended)
        {
            return Ok(None);
        }
        if !stated.eq_ignore_ascii_case(media_type) && !stated.eq_ignore_ascii_case("image/jpg") {
            notes.note(Change::NameRewritten { from: stated.into(), to: media_type.into() });
        }
        Ok(Some(MediaSource::Base64 { media_type: media_type.into(), data: mended.into() }))
    }

    /// Returns the type of a picture by its first bytes, and its data in the standard alphabet.
    fn check<'d>(&self, data: &'d str) -> Result<(&'static str, Cow<'d, str>), &'static str> {
        if data.trim().is_empty() {
            return Err("it has no data");
        }
        let data = standard(data).ok_or("its data are not Base64")?;
        let known = picture_type(&data).filter(|found| self.types.contains(found));
        let media_type = known.ok_or("its data are no picture that this provider reads")?;
        if data.len() > self.longest {
            return Err("it has more bytes than this provider accepts");
        }
        if longest_side(&data) > self.side {
            return Err("it has more pixels than this provider accepts");
        }
        Ok((media_type, data))
    }

    /// Whether a picture is too large for a request with many pictures.
    fn is_large(&self, image: &Image) -> bool {
        data(&image.source).is_some_and(|(_, data)| longest_side(data) > self.side_of_many)
    }
}

/// Replaces pictures of a thread that has more of them than the provider accepts: the earliest
/// ones, and if the newest are small, large ones before these. More pictures are replaced than
/// necessary, so that the next requests begin with the same text as this one and the provider's
/// prompt cache applies. `limits` returns the limits of a request with this many pictures and
/// documents.
pub(super) fn limit(thread: &mut Thread, limits: &dyn Fn(usize) -> Pictures, notes: &mut Notes) {
    let mut pictures: Vec<&Image> = Vec::new();
    let mut documents = 0;
    let blocks = thread.iter().flat_map(|(_, message)| &message.content);
    for block in blocks.flat_map(with_nested) {
        if let ContentBlock::Image(image) = block {
            pictures.push(image);
        } else if matches!(block, ContentBlock::Document(_)) {
            documents += 1;
        }
    }
    let count = pictures.len() + documents;
    if count <= MANY || pictures.iter().all(|image| is_as_read(image, notes)) {
        return;
    }
    let limits = limits(count);
    let newest = pictures.len().saturating_sub(MANY);
    let are_large = pictures.iter().skip(newest).any(|image| limits.is_large(image));
    let most = if are_large { MANY } else { limits.most };
    let excess = count.saturating_sub(most).next_multiple_of(most / 5);
    let faults = pictures.into_iter().enumerate().map(|(index, image)| match index {
        _ if index < excess => Some("a request may not hold so many"),
        _ if index < newest && limits.is_large(image) => {
            Some("a request with so many may not hold one of so many pixels")
        }
        _ => None,
    });
    let mut faults = faults.collect::<Vec<Fault>>().into_iter();
    for (at, message) in thread {
        notes.turn_to(*at);
        for block in &mut message.make_mut().content {
            replace(block, &mut faults, notes);
        }
    }
}

/// Why a picture is replaced; `None` if it stays.
type Fault = Option<&'static str>;

/// Marks a picture that is read in a body.
pub(super) fn mark(fields: &mut Fields<'_>, source: &MediaSource) {
    stamp(source).into_iter().for_each(|stamp| fields.add_word(mark::PICTURE, &stamp));
}

/// Returns the text that replaces a picture, and reports it.
pub(super) fn stand_in(image: &Image, reason: &str, notes: &mut Notes) -> ContentBlock {
    notes.drop_block("image", reason);
    let what = match (data(&image.source), &image.source) {
        (Some((media_type, data)), _) => format!("{media_type}, {} bytes", data.len() / 4 * 3),
        (None, MediaSource::Url { url: name } | MediaSource::File { id: name }) => name.to_string(),
        (None, _) => "stored by the provider".to_owned(),
    };
    ContentBlock::text(format!("[image left out: {what}; {reason}]"))
}

/// Whether an address begins with this, in upper or lower case.
pub(super) fn has_scheme(url: &str, scheme: &str) -> bool {
    url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// The media type, without parameters, and the data of a Base64 data URI.
pub(super) fn data_uri(uri: &str) -> Option<(&str, &str)> {
    let (head, data) = uri.split_once(',').filter(|_| has_scheme(uri, "data:"))?;
    let (kind, coding) = head.get("data:".len()..)?.rsplit_once(';')?;
    let media_type = kind.split(';').next()?.trim();
    coding.eq_ignore_ascii_case("base64").then_some((media_type, data))
}

/// The media type and the data of a source within the message. Some hosts put a whole data URI in
/// place of the data.
fn data(source: &MediaSource) -> Option<(&str, &str)> {
    match source {
        MediaSource::Base64 { media_type, data } => data_uri(data).or(Some((media_type, data))),
        MediaSource::Url { url } => data_uri(url),
        MediaSource::File { .. } | MediaSource::Text { .. } | MediaSource::Opaque { .. } => None,
    }
}

/// The content of the mark for a source. Sources that only the provider's own codec reads have no
/// mark.
fn stamp(source: &MediaSource) -> Option<String> {
    match source {
        MediaSource::Base64 { media_type, data } => Some(format!("{media_type} {}", data.len())),
        MediaSource::Url { url } => Some(url.len().to_string()),
        MediaSource::File { .. } | MediaSource::Text { .. } | MediaSource::Opaque { .. } => None,
    }
}

/// Whether a picture was read in a body of this dialect and not changed since.
fn is_as_read(image: &Image, notes: &Notes) -> bool {
    let stamp = stamp(&image.source).map(|stamp| Json::text(&stamp));
    stamp.is_none_or(|stamp| image.extra.get(notes.codec(), mark::PICTURE) == Some(&stamp))
}

fn longest_side(data: &str) -> u64 {
    picture_size(data).map_or(0, |(width, height)| width.max(height))
}

/// Returns Base64 in the standard alphabet, padded and without white space; `None` for other data.
fn standard(data: &str) -> Option<Cow<'_, str>> {
    if is_standard(data) {
        return Some(Cow::Borrowed(data));
    }
    let mut mended = data.replace('-', "+").replace('_', "/");
    mended.retain(|char| !char.is_ascii_whitespace());
    let padding = mended.len().next_multiple_of(4) - mended.len();
    mended.extend(std::iter::repeat_n('=', padding));
    is_standard(&mended).then_some(Cow::Owned(mended))
}

fn is_standard(data: &str) -> bool {
    /// The bytes that are checked before the loop may end, so that the compiler can check many at
    /// once.
    const BLOCK: usize = 4 * 1024;
    let letters = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    let mut blocks = letters.as_bytes().chunks(BLOCK);
    data.len().is_multiple_of(4)
        && blocks.all(|block| block.iter().fold(true, |all, byte| all & is_letter(*byte)))
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() | (byte == b'+') | (byte == b'/')
}

/// A block and, if it is a result, the blocks in it.
fn with_nested(block: &ContentBlock) -> impl Iterator<Item = &ContentBlock> {
    let nested = if let ContentBlock::ToolResult(result) = block { &*result.content } else { &[] };
    std::iter::once(block).chain(nested)
}

/// Replaces a picture that is at fault, and those in a result.
fn replace(block: &mut ContentBlock, faults: &mut dyn Iterator<Item = Fault>, notes: &mut Notes) {
    if let ContentBlock::ToolResult(result) = block {
        result.content.iter_mut().for_each(|block| replace(block, faults, notes));
    } else if let ContentBlock::Image(image) = block
        && let Some(reason) = faults.next().flatten()
    {
        *block = stand_in(image, reason, notes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DecodeOptions, Dialect, EncodeOptions};
    use threadfold_core::message::{Document, Message, Request, Role, ToolUse};

    /// The headers of PNG pictures of 100 by 100, 2,001 by 100 and 100 by 8,001 pixels.
    const SMALL: &str = "iVBORw0KGgoAAAANSUhEUgAAAGQAAABk";
    const WIDE: &str = "iVBORw0KGgoAAAANSUhEUgAAB9EAAABk";
    const HIGH: &str = "iVBORw0KGgoAAAANSUhEUgAAAGQAAB9B";
    const JPEG: &str = "/9j/4A==";

    fn picture(data: &str) -> ContentBlock {
        let (media_type, data) = ("image/png".into(), data.into());
        Image::new(MediaSource::Base64 { media_type, data }).into()
    }

    /// A thread of these pictures, each of them in the result of a call.
    fn shown(pictures: Vec<ContentBlock>) -> Request {
        let messages = pictures.into_iter().enumerate().flat_map(|(index, picture)| {
            let id = format!("call-{index}");
            let call = ToolUse::new(id.as_str(), "look", Json::parse("{}").unwrap());
            [
                Message::new(Role::Assistant, vec![call.into()]),
                Message::new(Role::User, vec![ToolResult::new(id, vec![picture]).into()]),
            ]
        });
        Request::new([Message::user("Go.")].into_iter().chain(messages).collect::<Vec<_>>())
    }

    /// Returns how often each of these texts is in the body, and the number of adjustments that
    /// report pictures.
    fn written(
        dialect: Dialect,
        model: &str,
        request: &Request,
        texts: [&str; 2],
    ) -> ([usize; 2], usize) {
        let options = EncodeOptions { model: Some(model.into()), ..EncodeOptions::default() };
        let encoded = dialect.encode(request, &options);
        let dropped = encoded.adjustments.iter().filter(
            |it| matches!(&it.change, Change::BlockDropped { kind, .. } if *kind == "image"),
        );
        (texts.map(|text| encoded.body.as_str().matches(text).count()), dropped.count())
    }

    fn first_image(block: &mut ContentBlock) -> Option<&mut Image> {
        if let ContentBlock::ToolResult(result) = block {
            return result.content.iter_mut().find_map(first_image);
        }
        if let ContentBlock::Image(image) = block { Some(image) } else { None }
    }

    #[test]
    fn the_first_fault_of_a_picture_is_its_reason() {
        let long = format!("{SMALL}{}", "A".repeat(5 * 1024 * 1024));
        let rows = [
            (SMALL, Ok(("image/png", SMALL.into()))),
            (JPEG, Ok(("image/jpeg", JPEG.into()))),
            (" _9j_\n4A ", Ok(("image/jpeg", JPEG.into()))),
            ("", Err("it has no data")),
            (" \n", Err("it has no data")),
            ("A", Err("its data are not Base64")),
            ("A===", Err("its data are not Base64")),
            ("AA=A", Err("its data are not Base64")),
            ("h\u{e9}llo", Err("its data are not Base64")),
            ("AA==", Err("its data are no picture that this provider reads")),
            (&*long, Err("it has more bytes than this provider accepts")),
            (HIGH, Err("it has more pixels than this provider accepts")),
        ];
        for (data, expected) in rows {
            assert_eq!(Pictures::CLAUDE.check(data), expected, "{}", data.get(..9).unwrap_or(data));
        }
    }

    #[test]
    fn of_too_many_pictures_the_newest_stay() {
        for (dialect, model, most) in [
            (Dialect::Anthropic, "claude-sonnet-4-5", 100),
            (Dialect::Anthropic, "claude-opus-4-6", 600),
            (Dialect::BedrockConverse, "anthropic.claude-sonnet-4-5", 20),
            (Dialect::OpenAiChat, "gpt-5", 500),
            (Dialect::OpenAiResponses, "gpt-5", 500),
            (Dialect::Gemini, "gemini-3-pro", 3_000),
        ] {
            let full = shown(vec![picture(SMALL); most]);
            assert_eq!(
                written(dialect, model, &full, [SMALL, "[image"]),
                ([most, 0], 0),
                "{model}"
            );
            let mut pictures = vec![picture(SMALL); most];
            pictures.push(picture(JPEG));
            // The reasons are in the results, or beside them in the dialects that move pictures
            // there.
            let over = written(dialect, model, &shown(pictures), [SMALL, JPEG]);
            assert_eq!(over, ([most - most / 5, 1], most / 5), "{model}");
        }
    }

    #[test]
    fn an_untouched_body_may_hold_too_many() {
        let image = format!(r#"{{"image":{{"format":"png","source":{{"bytes":"{SMALL}"}}}}}}"#);
        let images = vec![image.as_str(); 25].join(",");
        let body = format!(r#"{{"messages":[{{"role":"user","content":[{images}]}}]}}"#);
        let dialect = Dialect::BedrockConverse;
        let mut request = dialect.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
        assert_eq!(written(dialect, "m", &request, [SMALL, "[image"]), ([25, 0], 0));
        let message = Message::new(Role::User, vec![picture(SMALL)]);
        std::sync::Arc::make_mut(&mut request.messages).push(message);
        assert_eq!(written(dialect, "m", &request, [SMALL, "[image"]), ([18, 8], 8));
    }

    #[test]
    fn documents_count_but_stay() {
        let source =
            MediaSource::Base64 { media_type: "application/pdf".into(), data: "JVBERi0=".into() };
        let mut request = shown(vec![picture(SMALL); 20]);
        let message = Message::new(Role::User, vec![Document::new(source).into()]);
        std::sync::Arc::make_mut(&mut request.messages).insert(0, message);
        let model = "anthropic.claude-sonnet-4-5";
        let found = written(Dialect::BedrockConverse, model, &request, [SMALL, "JVBERi0="]);
        assert_eq!(found, ([16, 1], 4));
    }

    #[test]
    fn a_large_picture_is_not_among_many() {
        let model = "claude-sonnet-4-5";
        let large = shown(vec![picture(WIDE); 20]);
        assert_eq!(written(Dialect::Anthropic, model, &large, [WIDE, SMALL]), ([20, 0], 0));
        // Among the newest ones: the others are replaced.
        let mut pictures = vec![picture(SMALL); 40];
        pictures.push(picture(WIDE));
        let found = written(Dialect::Anthropic, model, &shown(pictures), [WIDE, SMALL]);
        assert_eq!(found, ([1, 16], 24));
        // Before the newest ones: it is replaced.
        let mut pictures = vec![picture(SMALL); 40];
        pictures.insert(0, picture(WIDE));
        let found = written(Dialect::Anthropic, model, &shown(pictures), [WIDE, SMALL]);
        assert_eq!(found, ([0, 40], 1));
    }

    #[test]
    fn an_untouched_body_is_not_judged_and_a_changed_picture_is() {
        for dialect in Dialect::ALL {
            let many = shown(vec![picture(JPEG); 25]);
            let body = dialect.encode(&many, &EncodeOptions::default()).body;
            // Broken, and in some dialects too many.
            let body = body.as_str().replace(JPEG, "/9j/4!==");
            let mut read =
                dialect.decode_slice(body.as_bytes(), &DecodeOptions::default()).unwrap();
            let encoded = dialect.encode(&read, &EncodeOptions::default());
            assert_eq!(encoded.body.as_str(), body);
            assert_eq!(encoded.adjustments, []);
            let changed = std::sync::Arc::make_mut(&mut read.messages).iter_mut().rev();
            let mut blocks = changed.flat_map(|message| &mut message.make_mut().content);
            let image = blocks.find_map(first_image);
            let source = &mut image.unwrap().source;
            *source = MediaSource::Base64 { media_type: "image/png".into(), data: "".into() };
            let encoded = dialect.encode(&read, &EncodeOptions::default());
            let notes: Vec<String> =
                encoded.adjustments.iter().map(|it| it.change.to_string()).collect();
            let judged = notes.iter().any(|note| note == "image left out: it has no data");
            assert!(judged, "{}: {notes:?}", dialect.name());
        }
    }
}
