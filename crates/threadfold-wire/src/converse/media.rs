//! Reading and writing the fields `format` and `source` of images and documents.

use super::forms::NAME;
use crate::kit::*;

/// The provider's names of formats, with their media types.
const IMAGES: [(&str, &str); 4] =
    [("png", "image/png"), ("jpeg", "image/jpeg"), ("gif", "image/gif"), ("webp", "image/webp")];
const DOCUMENTS: [(&str, &str); 9] = [
    ("pdf", "application/pdf"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("html", "text/html"),
    ("txt", PLAIN),
    ("md", "text/markdown"),
];

impl Medium {
    fn formats(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Image => &IMAGES,
            Self::Document => &DOCUMENTS,
        }
    }

    /// The media type of a format.
    fn media_type(self, format: &str) -> Option<&'static str> {
        self.formats().iter().find(|(name, _)| *name == format).map(|(_, media_type)| *media_type)
    }

    /// The format of a media type; `None` if the provider does not accept the type.
    fn format(self, media_type: &str) -> Option<&'static str> {
        let kind = media_type.split_once(';').map_or(media_type, |(kind, _)| kind).trim();
        if self == Self::Image && kind.eq_ignore_ascii_case("image/jpg") {
            return Some("jpeg");
        }
        let mut formats = self.formats().iter();
        formats.find(|(_, known)| known.eq_ignore_ascii_case(kind)).map(|(name, _)| *name)
    }

    /// The format of an address in the provider's own store, by its file extension. The provider
    /// fetches no other addresses.
    fn stored_format(self, url: &str) -> Option<&'static str> {
        let stored = pictures::has_scheme(url, "s3://");
        let ending = url.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let mut known = self.formats().iter().map(|(name, _)| *name).filter(|_| stored);
        known.find(|name| ending.as_deref() == Some(*name))
    }
}

/// Removes the source of a block, and its format if the source includes it. A source that
/// [`MediaSource`] cannot represent exactly becomes opaque; `None` if it is no object.
pub(super) fn read(block: &mut Fields<'_>, medium: Medium) -> Option<MediaSource> {
    let raw = block.take("source")?;
    let source = Fields::of(raw)?;
    let known = known(source, block, medium);
    Some(known.unwrap_or_else(|| MediaSource::Opaque { codec: NAME.into(), value: raw.json() }))
}

/// Reads a source that [`write`] writes back exactly.
fn known(mut source: Fields<'_>, block: &mut Fields<'_>, medium: Medium) -> Option<MediaSource> {
    let format = block.get("format").map(Raw::text);
    let text = source.take_text("text").filter(|_| medium == Medium::Document);
    let data = source.take_text("bytes");
    if source.left() > 0 {
        return None;
    }
    let known = match (text, data, format) {
        (Some(text), None, None) => {
            block.add(mark::FORMAT, Json::default());
            return Some(MediaSource::Text { media_type: PLAIN.into(), text });
        }
        (Some(text), None, Some(format)) => {
            MediaSource::Text { media_type: medium.media_type(&format?)?.into(), text }
        }
        (None, Some(data), Some(format)) => {
            MediaSource::Base64 { media_type: medium.media_type(&format?)?.into(), data }
        }
        (Some(_), Some(_), _) | (None, _, _) => return None,
    };
    block.take("format");
    Some(known)
}

pub(super) const SOURCES: Sources = Sources {
    codec: NAME,
    has_files: false,
    media_type: |medium, media_type| medium.media_type(medium.format(media_type)?),
    takes_text: |media_type| Medium::Document.format(media_type).is_some(),
    is_fetched: |medium, url| medium.stored_format(url).is_some(),
};

/// Returns the `format` and `source` of a block, whose source can be written.
pub(super) fn write(source: &MediaSource, extra: &Extra) -> Object {
    let mediums = [Medium::Image, Medium::Document].into_iter();
    let (format, key, value): (_, _, Tree) = match source {
        MediaSource::Base64 { media_type, data } => {
            let format = { mediums }.find_map(|medium| medium.format(media_type));
            (format, "bytes", data.clone().into())
        }
        MediaSource::Text { media_type, text } => {
            let had_none = extra.get(NAME, mark::FORMAT).is_some() && *media_type == PLAIN;
            let format = Medium::Document.format(media_type).unwrap_or("txt");
            ((!had_none).then_some(format), "text", text.clone().into())
        }
        MediaSource::Url { url } => {
            let format = { mediums }.find_map(|medium| medium.stored_format(url));
            (format, "s3Location", Object::of("uri", url.clone()).into())
        }
        MediaSource::File { id } => (None, "file", id.clone().into()),
        MediaSource::Opaque { value, .. } => return Object::of("source", value.clone()),
    };
    let mut object = Object::default();
    object.set_some("format", format);
    object.with("source", Object::of(key, value))
}

/// The keys of blocks that wrap a text.
pub(super) const WRAPS: [&str; 2] = ["citationsContent", "guardContent"];

/// Reads the text of a field that wraps one: `citationsContent` or `guardContent`.
pub(super) fn wrapped_text(key: &str, raw: Raw<'_>) -> Option<Text> {
    let mut fields = Fields::of(raw)?;
    let text = if key == "guardContent" {
        Fields::of(fields.take("text")?)?.take_text("text")?
    } else {
        let pieces = fields.take("content")?.items()?;
        let texts: Option<Vec<Text>> =
            pieces.into_iter().map(|piece| Fields::of(piece)?.take_text("text")).collect();
        texts?.concat().into()
    };
    Some(text).filter(|text| !text.is_blank())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_written_as_it_was_read() {
        for text in [
            r#"{"format":"png","source":{"bytes":"AA=="}}"#,
            r#"{"source":{"bytes":"AA=="},"format":"new"}"#,
            r#"{"source":{"s3Location":{"uri":"s3://a/b.png","bucketOwner":"1"}},"format":"png"}"#,
            r#"{"source":{"bytes":"AA==","new":1},"format":"pdf"}"#,
            r#"{"format":"md","source":{"text":"a"}}"#,
            r#"{"source":{"text":"a"}}"#,
            r#"{"source":{"content":[{"text":"a"}]}}"#,
        ] {
            for medium in [Medium::Image, Medium::Document] {
                let mut fields = Fields::parse(text).unwrap();
                let source = read(&mut fields, medium).unwrap();
                let extra = fields.keep(NAME);
                assert_eq!(SOURCES.fit(&source, medium, None), Ok(None));
                let mut written = write(&source, &extra);
                add_rest(&mut written, extra.of(NAME));
                let written = written.into_json().to_value().unwrap();
                let expected: serde_json::Value = serde_json::from_str(text).unwrap();
                assert_eq!(written, expected, "{medium:?}");
            }
        }
    }

    #[test]
    fn addresses_are_read_from_the_store_only() {
        let write = |url: &str| {
            let source = MediaSource::Url { url: url.into() };
            let fitted = SOURCES.fit(&source, Medium::Image, None)?.unwrap_or(source);
            let written = super::write(&fitted, &Extra::default());
            Ok::<_, &str>(written.into_json().to_string())
        };
        assert_eq!(
            write("s3://a/b.png").unwrap(),
            r#"{"format":"png","source":{"s3Location":{"uri":"s3://a/b.png"}}}"#
        );
        assert_eq!(
            write("data:image/jpg;x=1;base64,AA==").unwrap(),
            r#"{"format":"jpeg","source":{"bytes":"AA=="}}"#
        );
        assert!(write("https://example.org/b.png").is_err());
        assert!(write("s3://a/b").is_err());
    }
}
