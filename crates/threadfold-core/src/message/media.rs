//! Images and documents.

use serde::{Deserialize, Serialize};

use super::{extra::Extra, json::Json, text::Text};

/// An image for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Where the image is.
    pub source: MediaSource,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// A document for the model: a PDF, a text, or blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Where the content is.
    pub source: MediaSource,
    /// The title or file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Text>,
    /// Text about the document that the model receives in addition to its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Text>,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Where the content of an image or document is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
// Externally tagged: with an internal tag, serde would buffer the fields, and raw JSON in them
// would lose its key order.
#[serde(rename_all = "snake_case")]
pub enum MediaSource {
    /// In the message, as Base64.
    Base64 {
        /// The media type, such as `image/png`.
        media_type: Text,
        /// The bytes in Base64, as they were received.
        data: Text,
    },
    /// At a URL that the provider fetches.
    Url {
        /// The URL.
        url: Text,
    },
    /// In the provider's own file store.
    File {
        /// The id that the provider assigned.
        id: Text,
    },
    /// In the message, as text.
    Text {
        /// The media type, such as `text/plain`.
        media_type: Text,
        /// The text.
        text: Text,
    },
    /// In the message, in a form that only the codec that read it understands.
    Opaque {
        /// The codec, such as `anthropic-messages`.
        codec: Text,
        /// The whole source as JSON, as it was received.
        value: Json,
    },
}

impl Image {
    /// Returns an image without extra fields.
    #[must_use]
    pub fn new(source: MediaSource) -> Self {
        Self { source, extra: Extra::default() }
    }
}

impl Document {
    /// Returns a document without title, context or extra fields.
    #[must_use]
    pub fn new(source: MediaSource) -> Self {
        Self { source, title: None, context: None, extra: Extra::default() }
    }
}
