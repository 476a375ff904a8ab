//! Converts the binary framing of AWS, `application/vnd.amazon.eventstream`, to
//! `text/event-stream`, which the crate reads.
//!
//! A frame consists of its length, the length of its headers and a checksum, four bytes each, then
//! the headers, the payload and another checksum. TLS has verified the bytes already, so the
//! checksums are ignored.

use std::{error::Error, mem};

/// The media type of this framing.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.amazon.eventstream";

/// Both lengths and their checksum.
const PRELUDE: usize = 12;

/// The checksum at the end of a frame.
const CHECKSUM: usize = 4;

/// Reads frames from bytes in pieces of any size.
#[derive(Debug)]
pub(crate) struct EventStream {
    bytes: Vec<u8>,
    most: usize,
}

type Failure = Box<dyn Error + Send + Sync>;

impl EventStream {
    /// Returns a reader that refuses frames of more than `most` bytes.
    pub(crate) fn within(most: usize) -> Self {
        Self { bytes: Vec::new(), most }
    }

    /// Returns the events that this piece completes, as `text/event-stream`.
    pub(crate) fn as_text(&mut self, piece: &[u8]) -> Result<Vec<u8>, Failure> {
        self.bytes.extend_from_slice(piece);
        let mut text = Vec::new();
        while let Some(length) = number(&self.bytes, 0) {
            if length > self.most || length < PRELUDE + CHECKSUM {
                return Err(format!(
                    "expected a frame of the stream, found a length of {length} bytes"
                )
                .into());
            }
            if self.bytes.len() < length {
                break;
            }
            let rest = self.bytes.split_off(length);
            let frame = mem::replace(&mut self.bytes, rest);
            text.extend(event(&frame).ok_or("the headers of a frame cannot be read")?);
        }
        Ok(text)
    }
}

/// One frame as an event with the name that its headers give it.
fn event(frame: &[u8]) -> Option<Vec<u8>> {
    let headers = PRELUDE.checked_add(number(frame, 4)?)?;
    let payload = frame.get(headers..frame.len().checked_sub(CHECKSUM)?)?;
    let name = name(frame.get(PRELUDE..headers)?)?;
    // Line feeds in JSON are only white space, so they can be replaced.
    let payload =
        payload.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte });
    let mut event = [b"event: ", name, b"\ndata: "].concat();
    event.extend(payload);
    event.extend_from_slice(b"\n\n");
    Some(event)
}

/// Returns the type of the event or of the exception.
fn name(mut headers: &[u8]) -> Option<&[u8]> {
    while let Some((length, rest)) = headers.split_first() {
        let (key, rest) = rest.split_at_checked(usize::from(*length))?;
        let (kind, rest) = rest.split_first()?;
        let length = match kind {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            6 | 7 => 2 + usize::from(u16::from_be_bytes(rest.first_chunk().copied()?)),
            9 => 16,
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        if matches!(key, b":event-type" | b":exception-type") && *kind == 7 {
            return value.get(2..).filter(|name| name.iter().all(u8::is_ascii_alphanumeric));
        }
        headers = rest;
    }
    None
}

/// Four bytes as a number.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..)?.first_chunk().copied()?;
    usize::try_from(u32::from_be_bytes(four)).ok()
}
