//! Places in a script: lines and columns for the people and models who read errors.

use serde::Serialize;

/// A line and a column of a script, both counted from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

/// Turns ascending byte offsets into places while walking the script once.
pub(crate) struct PlaceFinder<'a> {
    rest: &'a str,
    offset: usize,
    place: Place,
}

impl<'a> PlaceFinder<'a> {
    pub(crate) fn new(script: &'a str) -> Self {
        Self { rest: script, offset: 0, place: Place { line: 1, column: 1 } }
    }

    /// Returns the place of an offset that is not before the last one asked for.
    pub(crate) fn place(&mut self, offset: usize) -> Place {
        let mut characters = self.rest.chars();
        while self.offset < offset
            && let Some(character) = characters.next()
        {
            self.offset += character.len_utf8();
            self.place = match character {
                '\n' => Place { line: self.place.line + 1, column: 1 },
                _ => Place { column: self.place.column + 1, ..self.place },
            };
        }
        self.rest = characters.as_str();
        self.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let mut finder = PlaceFinder::new("né\nx");
        assert_eq!(finder.place(3), Place { line: 1, column: 3 });
        assert_eq!(finder.place(4), Place { line: 2, column: 1 });
        assert_eq!(finder.place(99), Place { line: 2, column: 2 });
    }
}
