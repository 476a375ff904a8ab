//! Reading and writing images and documents: `inlineData` and `fileData`.

use super::{marks::*, part::Part};
use crate::kit::*;

impl Part<'_> {
    /// Reads an image or a document; `None` for audio, video and other data.
    pub(super) fn medium(mut self) -> Option<ContentBlock> {
        let mut inner = self.inner()?;
        let media_type = inner.text("mimeType")?;
        let is_image = is_image(&media_type)?;
        let source = if self.data == "inlineData" {
            inner.take("mimeType");
            let (data, alphabet) = standard(inner.take_text("data")?);
            alphabet.into_iter().for_each(|alphabet| self.rest.add_word("~base64", alphabet));
            MediaSource::Base64 { media_type, data }
        } else if self.data == "fileData" {
            file(inner.take_text("fileUri")?)
        } else {
            return None;
        };
        if is_image {
            pictures::mark(&mut self.rest, &source);
            return Some(Image { source, extra: self.keep(inner) }.into());
        }
        let title = inner.take_text("displayName");
        if title.is_some() {
            self.rest.flag(mark::TITLE);
        }
        let extra = self.keep(inner);
        Some(Document { source, title, context: None, extra }.into())
    }
}

/// Returns the name of a part's data field, and the data. An address without a media type gets that
/// of its file extension, else `unless_known`.
pub(super) fn write(
    source: &MediaSource,
    extra: &Extra,
    unless_known: &'static str,
) -> (&'static str, Object) {
    match source {
        MediaSource::Base64 { media_type, data } => {
            let object =
                reopen(extra.get(CODEC, "inlineData")).with("mimeType", media_type.clone());
            let came_in = marked(extra, "~base64");
            let data = came_in.map_or_else(|| data.clone(), |word| url_alphabet(data, &word));
            ("inlineData", object.with("data", data))
        }
        MediaSource::Url { url: text }
        | MediaSource::File { id: text }
        | MediaSource::Text { text, .. } => {
            let mut object = reopen(extra.get(CODEC, "fileData"));
            if object.get("mimeType").is_none() {
                object.set("mimeType", guess(text).unwrap_or(unless_known));
            }
            ("fileData", object.with("fileUri", text.clone()))
        }
        MediaSource::Opaque { value, .. } => ("fileData", reopen(Some(value))),
    }
}

/// Returns `true` for the media type of an image, `false` for that of a document, and `None` for
/// audio and video.
fn is_image(media_type: &str) -> Option<bool> {
    let kind = media_type.split_once('/').map_or(media_type, |(kind, _)| kind).to_ascii_lowercase();
    match kind.as_str() {
        "image" => Some(true),
        "application" | "text" => Some(false),
        _ => None,
    }
}

fn file(uri: Text) -> MediaSource {
    const STORES: [&str; 2] = ["https://generativelanguage.googleapis.com/", "gs://"];
    if STORES.iter().any(|store| uri.starts_with(store)) {
        MediaSource::File { id: uri }
    } else {
        MediaSource::Url { url: uri }
    }
}

/// The media type of the file extension of an address.
fn guess(uri: &str) -> Option<&'static str> {
    #[rustfmt::skip]
    const KNOWN: [(&str, &str); 8] = [
        (".png", "image/png"), (".jpg", "image/jpeg"), (".jpeg", "image/jpeg"),
        (".webp", "image/webp"), (".heic", "image/heic"), (".gif", "image/gif"),
        (".pdf", "application/pdf"), (".txt", "text/plain"),
    ];
    let path = uri.split(['?', '#']).next()?.to_ascii_lowercase();
    KNOWN.iter().find(|(ending, _)| path.ends_with(ending)).map(|(_, media_type)| *media_type)
}

/// Returns Base64 in the standard alphabet, and the word for the alphabet in which it was read if
/// that is another one. Data that could not be converted back exactly stay unchanged.
fn standard(data: Text) -> (Text, Option<&'static str>) {
    if !data.contains(['-', '_']) || data.contains(['+', '/']) {
        return (data, None);
    }
    let mut mapped = data.replace('-', "+").replace('_', "/");
    let word = if mapped.len().is_multiple_of(4) { "url" } else { "url_unpadded" };
    while !mapped.len().is_multiple_of(4) {
        mapped.push('=');
    }
    let mapped = Text::from(mapped);
    if url_alphabet(&mapped, word) == data { (mapped, Some(word)) } else { (data, None) }
}

fn url_alphabet(data: &str, word: &str) -> Text {
    let mapped = data.replace('+', "-").replace('/', "_");
    let mapped = if word == "url" { &mapped } else { mapped.trim_end_matches('=') };
    mapped.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_the_other_alphabet_is_put_back_exactly() {
        for (came, ours, word) in [
            ("_-8=", "/+8=", Some("url")),
            ("_-8", "/+8=", Some("url_unpadded")),
            ("AA==", "AA==", None),
            ("AA", "AA", None),
            ("_+", "_+", None),
            ("_-=8=", "_-=8=", None),
        ] {
            let (data, found) = standard(came.into());
            assert_eq!((data.as_str(), found), (ours, word), "{came}");
            if let Some(word) = found {
                assert_eq!(url_alphabet(&data, word), came);
            }
        }
    }
}
