//! Parsing `text/event-stream` from pieces of any size.

use super::{contract::WireError, line_buffer::LineBuffer};

/// Parses bytes of `text/event-stream` into events, as the WHATWG specifies: lines end with LF, CR
/// or CRLF, a leading byte order mark and comments are skipped, the data lines of an event are
/// joined, and invalid UTF-8 becomes U+FFFD. Ids and times for a reconnection are skipped. The result
/// does not depend on where the pieces are divided.
///
/// ```
/// use threadfold::wire::SseParser;
///
/// let mut parser = SseParser::default();
/// parser.push(b"event: greeting\ndata: {\"text\":");
/// assert_eq!(parser.next_event(), Ok(None));
/// parser.push(b"\"hi\"}\n\n: a comment\n");
/// let (name, data) = parser.next_event()?.unwrap();
/// assert_eq!((name.as_str(), data.as_str()), ("greeting", r#"{"text":"hi"}"#));
/// assert_eq!(parser.next_event(), Ok(None));
/// # Ok::<(), threadfold::wire::WireError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SseParser {
    pieces: LineBuffer,
    name: String,
    data: Option<String>,
}

impl SseParser {
    /// Returns a parser with this limit for one event, in bytes. It never holds more than the limit
    /// and the last piece that was pushed.
    ///
    /// ```
    /// use threadfold::wire::{SseParser, WireError};
    ///
    /// let mut parser = SseParser::with_max_bytes(8);
    /// parser.push(b"data: longer than that\n\n");
    /// assert_eq!(parser.next_event(), Err(WireError::EventTooLarge { limit: 8 }));
    /// ```
    #[must_use]
    pub fn with_max_bytes(limit: usize) -> Self {
        Self { pieces: LineBuffer::with_max_bytes(limit), ..Self::default() }
    }

    /// Takes the next bytes of the stream. Call [`next_event`](Self::next_event) until it returns
    /// `None` before you push more.
    ///
    /// ```
    /// use threadfold::wire::SseParser;
    ///
    /// // A line end and a character may arrive in two pieces.
    /// let mut parser = SseParser::default();
    /// for piece in [&b"data: caf\xc3"[..], b"\xa9\r", b"\ndata: au lait\r\n\r\n"] {
    ///     parser.push(piece);
    /// }
    /// assert_eq!(parser.next_event()?.map(|(_, data)| data).as_deref(), Some("caf\u{e9}\nau lait"));
    /// # Ok::<(), threadfold::wire::WireError>(())
    /// ```
    pub fn push(&mut self, bytes: &[u8]) {
        self.pieces.push(bytes);
    }

    /// Returns the name and the data of the next event, or `None` if more bytes are needed. The
    /// name is empty if the stream has none; data lines are joined by line feeds.
    ///
    /// ```
    /// use threadfold::wire::SseParser;
    ///
    /// let mut parser = SseParser::default();
    /// parser.push(b"data: one\n\ndata: two\n\ndata: thr");
    /// let mut read = Vec::new();
    /// while let Some((_, data)) = parser.next_event()? {
    ///     read.push(data);
    /// }
    /// assert_eq!(read, ["one", "two"]);
    /// # Ok::<(), threadfold::wire::WireError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WireError::EventTooLarge`] if an event exceeds the limit, after all earlier events were
    /// returned. Every later call returns it again, because the rest of the stream cannot be
    /// interpreted.
    pub fn next_event(&mut self) -> Result<Option<(String, String)>, WireError> {
        while let Some(line) = self.next_line()? {
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Ok(Some(event));
                }
            } else {
                self.field(&String::from_utf8_lossy(&line));
            }
        }
        Ok(None)
    }

    /// Returns the bytes after the last blank line as an event. Call it at the end of the stream.
    ///
    /// The standard ignores these bytes, because the event may be cut off. Some servers omit the
    /// blank line after their last event, so the caller must check that the event is complete;
    /// incomplete JSON does not parse.
    ///
    /// ```
    /// use threadfold::wire::SseParser;
    ///
    /// let mut parser = SseParser::default();
    /// parser.push(b"data: [DONE]");
    /// assert_eq!(parser.next_event(), Ok(None));
    /// assert_eq!(parser.rest().unwrap().1, "[DONE]");
    /// ```
    pub fn rest(&mut self) -> Option<(String, String)> {
        self.push(b"\n\n");
        self.next_event().unwrap_or_default()
    }

    /// Returns the next complete line. What the event has so far counts towards its limit.
    fn next_line(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        let held = self.name.len() + self.data.as_ref().map_or(0, String::len);
        self.pieces.next_line(|byte| matches!(byte, b'\n' | b'\r'), held)
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // Comments have an empty name. A client of a model does not reconnect, so the fields `id`
            // and `retry` are skipped.
            _ => {}
        }
    }

    /// Ends the event at a blank line. An event without data does not count.
    fn dispatch(&mut self) -> Option<(String, String)> {
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?;
        Some((name, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a stream in these pieces, as name and data.
    fn read<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<(String, String)> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        for piece in pieces {
            parser.push(piece);
            while let Some(event) = parser.next_event().unwrap() {
                events.push(event);
            }
        }
        events
    }

    fn whole(text: &str) -> Vec<(String, String)> {
        read([text.as_bytes()])
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn streams_are_read_as_the_standard_has_them() {
        let rows = [
            // The examples of the standard.
            ("data: YHOO\ndata: +2\ndata: 10\n\n", vec![event("", "YHOO\n+2\n10")]),
            (
                ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
                vec![
                    event("", "first event"),
                    event("", "second event"),
                    event("", " third event"),
                ],
            ),
            ("data\n\ndata\ndata\n\ndata:", vec![event("", ""), event("", "\n")]),
            ("data:test\n\ndata: test\n\n", vec![event("", "test"), event("", "test")]),
            // A name applies to one event.
            ("id: 7\nevent: a\ndata: 1\n\ndata: 2\n\n", vec![event("a", "1"), event("", "2")]),
            ("event: a\n\ndata: 1\n\n", vec![event("", "1")]),
            ("id: a\0b\ndata: 1\n\n", vec![event("", "1")]),
            ("Data: 1\nother: 2\ndata : 3\n\n", vec![]),
            ("\u{feff}data: 1\n\n\u{feff}data: 2\n\n", vec![event("", "1")]),
            ("data: a:b: c\n\n", vec![event("", "a:b: c")]),
            ("data: cut", vec![]),
        ];
        for (text, events) in rows {
            assert_eq!(whole(text), events, "{text:?}");
        }
    }

    #[test]
    fn where_a_stream_is_divided_makes_no_difference() {
        let text =
            "\u{feff}: hi\nevent: a\ndata: wörld 漢😀\ndata: 2\nid: 5\nretry: 10\n\ndata\n\n";
        for ends in ["\n", "\r", "\r\n"] {
            let text = text.replace('\n', ends);
            let expected = [event("a", "wörld 漢😀\n2"), event("", "")];
            assert_eq!(whole(&text), expected);
            assert_eq!(read(text.as_bytes().chunks(1)), expected);
            for at in 0..text.len() {
                let (one, other) = text.as_bytes().split_at(at);
                assert_eq!(read([one, &[], other]), expected, "{at}");
            }
        }
    }

    #[test]
    fn a_line_feed_belongs_only_to_the_return_right_before_it() {
        // Each stream ends one line with a return or with both, and a later one with a line feed.
        let rows = [
            ("data: 1\rdata: 2\n\ndata: 3\n\n", vec!["1\n2", "3"]),
            ("data: 1\r\n\ndata: 2\n\n", vec!["1", "2"]),
            ("data: 1\r\r\ndata: 2\n\n", vec!["1", "2"]),
            ("\rdata: 1\n\n", vec!["1"]),
        ];
        for (text, data) in rows {
            let expected: Vec<_> = data.into_iter().map(|data| event("", data)).collect();
            assert_eq!(whole(text), expected, "{text:?}");
            assert_eq!(read(text.as_bytes().chunks(1)), expected, "{text:?}, byte by byte");
            for at in 0..text.len() {
                let (one, other) = text.as_bytes().split_at(at);
                assert_eq!(read([one, other]), expected, "{text:?}, divided at {at}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(read([b"data: \xff\xf0\x9f\n\n".as_slice()]), [event("", "\u{fffd}\u{fffd}")]);
    }

    #[test]
    fn an_event_that_is_too_large_ends_the_stream_wherever_it_is_divided() {
        let text = b"data: 1\n\ndata: 123\ndata: 45\n\ndata: 2\n\n";
        for size in 1..=text.len() {
            let mut parser = SseParser::with_max_bytes(10);
            let mut outcomes = Vec::new();
            for piece in text.chunks(size) {
                parser.push(piece);
                loop {
                    match parser.next_event() {
                        Ok(None) => break,
                        Ok(Some((_, data))) => outcomes.push(Ok(data)),
                        Err(error) => {
                            outcomes.push(Err(error));
                            break;
                        }
                    }
                }
            }
            outcomes.dedup();
            let expected = [Ok("1".to_owned()), Err(WireError::EventTooLarge { limit: 10 })];
            assert_eq!(outcomes, expected, "{size}");
        }
    }

    #[test]
    fn a_line_without_end_is_not_held_for_ever() {
        let mut parser = SseParser::with_max_bytes(100);
        for _ in 0..1_000 {
            parser.push(&[b'x'; 50]);
            let _ = parser.next_event();
            assert!(parser.pieces.len() <= 150);
        }
        assert!(parser.next_event().is_err());
    }
}
