//! Parsing lines of JSON (NDJSON) from pieces of any size.

use super::{contract::WireError, line_buffer::LineBuffer};

/// Divides the bytes of a stream into lines of JSON, also called NDJSON or JSON Lines: Ollama's
/// native API streams so. Lines end with LF or CRLF, blank lines and a leading byte order mark are
/// skipped, and invalid UTF-8 becomes U+FFFD. The result does not depend on where the pieces are
/// divided. The lines are not parsed as JSON.
///
/// ```
/// use threadfold::wire::LineParser;
///
/// let mut parser = LineParser::default();
/// parser.push(b"{\"done\":false}\r\n\n{\"do");
/// assert_eq!(parser.next_line()?.as_deref(), Some("{\"done\":false}"));
/// assert_eq!(parser.next_line()?, None);
/// parser.push(b"ne\":true}");
/// assert_eq!(parser.next_line()?, None);
/// assert_eq!(parser.rest().as_deref(), Some("{\"done\":true}"));
/// # Ok::<(), threadfold::wire::WireError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LineParser {
    pieces: LineBuffer,
}

impl LineParser {
    /// Returns a parser with this limit for one line, in bytes. It never holds more than the limit
    /// and the last piece that was pushed.
    ///
    /// ```
    /// use threadfold::wire::{LineParser, WireError};
    ///
    /// let mut parser = LineParser::with_max_bytes(8);
    /// parser.push(b"[\"longer than that\"]\n");
    /// assert_eq!(parser.next_line(), Err(WireError::EventTooLarge { limit: 8 }));
    /// ```
    #[must_use]
    pub fn with_max_bytes(limit: usize) -> Self {
        Self { pieces: LineBuffer::with_max_bytes(limit) }
    }

    /// Takes the next bytes of the stream. Call [`next_line`](Self::next_line) until it returns
    /// `None` before you push more.
    ///
    /// ```
    /// use threadfold::wire::LineParser;
    ///
    /// let mut parser = LineParser::default();
    /// parser.push(b"1\n2");
    /// parser.push(b"3\n");
    /// assert_eq!(parser.next_line()?.as_deref(), Some("1"));
    /// assert_eq!(parser.next_line()?.as_deref(), Some("23"));
    /// # Ok::<(), threadfold::wire::WireError>(())
    /// ```
    pub fn push(&mut self, bytes: &[u8]) {
        self.pieces.push(bytes);
    }

    /// Returns the next line that is not blank, without its end, or `None` if more bytes are needed.
    ///
    /// ```
    /// use threadfold::wire::LineParser;
    ///
    /// let mut parser = LineParser::default();
    /// parser.push(b"\n \n{}\n");
    /// assert_eq!(parser.next_line()?.as_deref(), Some("{}"));
    /// # Ok::<(), threadfold::wire::WireError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WireError::EventTooLarge`] if a line exceeds the limit, after all earlier lines were
    /// returned. Every later call returns it again.
    pub fn next_line(&mut self) -> Result<Option<String>, WireError> {
        while let Some(line) = self.pieces.next_line(|byte| byte == b'\n', 0)? {
            let line = String::from_utf8_lossy(&line);
            if !line.trim().is_empty() {
                return Ok(Some(line.trim().to_owned()));
            }
        }
        Ok(None)
    }

    /// Returns the bytes after the last line end as a line. Call it at the end of the stream: some
    /// servers omit the last line end. The line may be cut off; incomplete JSON does not parse.
    ///
    /// ```
    /// use threadfold::wire::LineParser;
    ///
    /// let mut parser = LineParser::default();
    /// parser.push(b"{\"done\":tr");
    /// assert_eq!(parser.rest().as_deref(), Some("{\"done\":tr"));
    /// assert_eq!(parser.rest(), None);
    /// ```
    pub fn rest(&mut self) -> Option<String> {
        self.push(b"\n");
        self.next_line().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Vec<String> {
        let mut parser = LineParser::default();
        let mut lines = Vec::new();
        for piece in pieces {
            parser.push(piece);
            while let Some(line) = parser.next_line().unwrap() {
                lines.push(line);
            }
        }
        lines.extend(parser.rest());
        lines
    }

    #[test]
    fn where_a_stream_is_divided_makes_no_difference() {
        let text = "\u{feff}{\"a\":\"wörld 漢😀\"}\r\n\n  \n[1]\n{\"last\":1}".as_bytes();
        let expected = ["{\"a\":\"wörld 漢😀\"}", "[1]", "{\"last\":1}"];
        for size in 1..=text.len() {
            assert_eq!(read(text.chunks(size)), expected, "{size}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_ends_the_stream_wherever_it_is_divided() {
        let text = b"1234\n12345678901\n5\n";
        for size in 1..=text.len() {
            let mut parser = LineParser::with_max_bytes(10);
            let mut outcomes = Vec::new();
            for piece in text.chunks(size) {
                parser.push(piece);
                loop {
                    match parser.next_line() {
                        Ok(None) => break,
                        Ok(Some(line)) => outcomes.push(Ok(line)),
                        Err(error) => {
                            outcomes.push(Err(error));
                            break;
                        }
                    }
                }
            }
            outcomes.dedup();
            let expected = [Ok("1234".to_owned()), Err(WireError::EventTooLarge { limit: 10 })];
            assert_eq!(outcomes, expected, "{size}");
        }
    }

    #[test]
    fn a_line_without_end_is_not_held_for_ever() {
        let mut parser = LineParser::with_max_bytes(100);
        for _ in 0..1_000 {
            parser.push(&[b'x'; 50]);
            let _ = parser.next_line();
            assert!(parser.pieces.len() <= 150);
        }
        assert!(parser.next_line().is_err() && parser.rest().is_none());
    }
}
