//! The bytes of a stream as lines, from pieces of any size.

use super::contract::WireError;

/// The default limit: 16 MiB. Results of the provider's own tools arrive in one event and may be
/// large.
const MAX: usize = 16 * 1024 * 1024;

/// The bytes of a stream that were pushed and not taken yet. It never holds more than the limit and
/// the last piece that was pushed.
#[derive(Clone, Debug, Default)]
pub(super) struct LineBuffer {
    /// The limit of one event or line in bytes, if the host set one.
    limit: Option<usize>,
    /// The bytes that were pushed; those before `at` are taken. No line ends between `at` and
    /// `searched`.
    bytes: Vec<u8>,
    at: usize,
    searched: usize,
    /// Whether the previous line ended with CR, so that an LF directly after it belongs to it.
    after_return: bool,
    begun: bool,
    failed: bool,
}

impl LineBuffer {
    pub(super) fn with_max_bytes(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Adds the next bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.failed {
            return;
        }
        self.bytes.drain(..self.at);
        self.searched -= self.at;
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes and returns the next complete line, without its end, which is one of the bytes that
    /// `ends` accepts, or CRLF if it accepts CR. `held` bytes of earlier lines count towards the
    /// limit. A byte order mark before the first line is no part of it.
    ///
    /// # Errors
    ///
    /// [`WireError::EventTooLarge`] if the limit is exceeded; every later call returns it again.
    pub(super) fn next_line(
        &mut self,
        ends: fn(u8) -> bool,
        held: usize,
    ) -> Result<Option<Vec<u8>>, WireError> {
        let limit = self.limit.unwrap_or(MAX);
        if self.failed {
            return Err(WireError::EventTooLarge { limit });
        }
        if self.after_return && self.bytes.get(self.at) == Some(&b'\n') {
            self.at += 1;
            self.searched = self.at;
            self.after_return = false;
        }
        debug_assert!(self.at <= self.searched && self.searched <= self.bytes.len());
        let mut unsearched = self.bytes.iter().skip(self.searched);
        let end = unsearched.position(|byte| ends(*byte));
        let end = end.map(|length| self.searched + length);
        self.searched = end.unwrap_or(self.bytes.len());
        if (self.searched - self.at).saturating_add(held) > limit {
            self.failed = true;
            (self.bytes, self.at, self.searched) = (Vec::new(), 0, 0);
            return Err(WireError::EventTooLarge { limit });
        }
        let Some(end) = end else { return Ok(None) };
        let line = self.bytes.get(self.at..end).unwrap_or_default();
        let is_first = !std::mem::replace(&mut self.begun, true);
        let marked = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| is_first);
        let line = marked.unwrap_or(line).to_vec();
        self.after_return = self.bytes.get(end) == Some(&b'\r');
        self.at = end + 1;
        self.searched = self.at;
        Ok(Some(line))
    }

    /// The number of bytes that it holds.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}
