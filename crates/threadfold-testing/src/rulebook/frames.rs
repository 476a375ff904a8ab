//! The binary frames of AWS event streams (Amazon Transcribe's and Bedrock's documents describe the
//! format: lengths and checksums of four bytes, headers of typed values).

use super::event::Event;

/// Returns the frame of an event.
pub(super) fn written(event: &Event) -> Vec<u8> {
    let mut headers = Vec::new();
    let name = event.name.as_deref().unwrap_or("unknown");
    // An error inside of a stream is an exception of that name.
    let (kind, key) = match name.ends_with("Exception") {
        true => ("exception", ":exception-type"),
        false => ("event", ":event-type"),
    };
    for (key, value) in
        [(key, name), (":content-type", "application/json"), (":message-type", kind)]
    {
        headers.push(u8::try_from(key.len()).unwrap_or(u8::MAX));
        headers.extend(key.as_bytes());
        // The type of a text.
        headers.push(7);
        headers.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        headers.extend(value.as_bytes());
    }
    let payload = event.data.to_string().into_bytes();
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = Vec::new();
    frame.extend(length(16 + headers.len() + payload.len()));
    frame.extend(length(headers.len()));
    frame.extend(checksum(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend(payload);
    frame.extend(checksum(&frame).to_be_bytes());
    frame
}

/// CRC-32 as in zip.
fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_zip() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }
}
