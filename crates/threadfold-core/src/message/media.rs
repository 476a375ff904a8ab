//! Pictures and documents.

use serde::{Deserialize, Serialize};

use super::{extra::Extra, json::Json, text::Text};

/// A picture that the model can look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Where its bytes are.
    pub source: MediaSource,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// A document that the model can read: a PDF, a text, or blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Where its content is.
    pub source: MediaSource,
    /// Its title or file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Text>,
    /// What the model is told about it beside its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Text>,
    /// Unknown wire fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Where the content of a picture or document is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
// Tagged from outside: with a tag inside, serde would buffer the fields, and raw JSON in them would
// lose its key order.
#[serde(rename_all = "snake_case")]
pub enum MediaSource {
    /// In the message, as Base64.
    Base64 {
        /// The media type, such as `image/png`.
        media_type: Text,
        /// The bytes in Base64, as they came.
        data: Text,
    },
    /// Behind an address that the provider fetches.
    Url {
        /// The address.
        url: Text,
    },
    /// In the provider's own file store.
    File {
        /// The id that the provider gave it.
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
        /// The whole source, as it came.
        value: Json,
    },
}

impl Image {
    /// Returns a picture without extra fields.
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
