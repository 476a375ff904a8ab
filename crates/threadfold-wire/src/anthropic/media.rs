//! Reading and writing the sources of images and documents.

use super::forms::NAME;
use crate::kit::*;

/// Reads a source. A source that [`MediaSource`] cannot represent exactly becomes opaque; `None` if
/// the value is no object.
pub(super) fn read(raw: Raw<'_>, medium: Medium) -> Option<MediaSource> {
    let fields = Fields::of(raw)?;
    let known = read_known(fields, medium);
    Some(known.unwrap_or_else(|| MediaSource::Opaque { codec: NAME.into(), value: raw.json() }))
}

pub(super) const SOURCES: Sources = Sources {
    codec: NAME,
    has_files: true,
    media_type,
    takes_text: |media_type| media_type == PLAIN,
    is_fetched: |_, url| pictures::has_scheme(url, "https://"),
};

/// Writes a source that [`SOURCES`] accepts.
pub(super) fn write(source: &MediaSource) -> Tree {
    let object = match source {
        MediaSource::Base64 { media_type, data } => Object::typed("base64")
            .with("media_type", media_type.clone())
            .with("data", data.clone()),
        MediaSource::Url { url } => Object::typed("url").with("url", url.clone()),
        MediaSource::File { id } => Object::typed("file").with("file_id", id.clone()),
        MediaSource::Text { media_type, text } => {
            Object::typed("text").with("media_type", media_type.clone()).with("data", text.clone())
        }
        MediaSource::Opaque { value, .. } => return value.clone().into(),
    };
    object.into()
}

/// The provider's name of a media type; `None` if the provider does not accept the type.
fn media_type(medium: Medium, name: &str) -> Option<&'static str> {
    const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    let known: &[&str] = match medium {
        Medium::Image if name.eq_ignore_ascii_case("image/jpg") => return Some("image/jpeg"),
        Medium::Image => &IMAGES,
        Medium::Document => &["application/pdf"],
    };
    known.iter().find(|known| known.eq_ignore_ascii_case(name)).copied()
}

/// Reads a source that [`write`] writes back exactly.
fn read_known(mut fields: Fields<'_>, medium: Medium) -> Option<MediaSource> {
    let kind = fields.take_word("type")?;
    let media_type = fields.take_text("media_type");
    let source = match (kind.as_ref(), media_type) {
        ("base64", Some(media_type)) => {
            MediaSource::Base64 { media_type, data: fields.take_text("data")? }
        }
        ("text", Some(media_type)) => {
            MediaSource::Text { media_type, text: fields.take_text("data")? }
        }
        ("url", None) => MediaSource::Url { url: fields.take_text("url")? },
        ("file", None) => MediaSource::File { id: fields.take_text("file_id")? },
        _ => return None,
    };
    (fields.left() == 0 && SOURCES.fit(&source, medium, None) == Ok(None)).then_some(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use threadfold_core::message::Json;

    fn read_text(text: &str, medium: Medium) -> MediaSource {
        read(serde_json::from_str(text).unwrap(), medium).unwrap()
    }

    #[test]
    fn every_source_is_written_as_it_was_read() {
        for text in [
            r#"{"type":"base64","media_type":"image/png","data":"AA=="}"#,
            r#"{"type":"base64","media_type":"image/new","data":"AA=="}"#,
            r#"{"type":"base64","media_type":"image/jpg","data":"AA=="}"#,
            r#"{"type":"url","url":"https://example.org/a.png"}"#,
            r#"{"type":"url","url":"http://example.org/a.png"}"#,
            r#"{"type":"url","url":"data:image/png;base64,AA=="}"#,
            r#"{"type":"file","file_id":"file_1"}"#,
            r#"{"type":"text","media_type":"text/plain","data":"hello"}"#,
            r#"{"type":"url","url":"https://example.org/a.png","new":1}"#,
            r#"{"type":"content","content":[{"type":"text","text":"a"}]}"#,
        ] {
            for medium in [Medium::Image, Medium::Document] {
                let source = read_text(text, medium);
                assert_eq!(SOURCES.fit(&source, medium, None), Ok(None));
                assert_eq!(write(&source).into_json().as_str(), text);
            }
        }
    }

    #[test]
    fn a_source_of_another_provider_has_no_form() {
        let source = MediaSource::Opaque { codec: "gemini".into(), value: Json::default() };
        let reason = "only another provider understands its source";
        assert_eq!(SOURCES.fit(&source, Medium::Image, None), Err(reason));
    }
}
