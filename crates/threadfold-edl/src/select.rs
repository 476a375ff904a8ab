//! Carrying out selection commands.
//!
//! Selected ranges are in order and do not overlap. At least one range is always selected.

use std::ops::Range;

use super::{
    command::{Area, Pattern, Position, Selector, Take},
    document::{Document, Selected, invalid_position},
    error::EditError,
    limits::Meter,
    search::Search,
};

/// A selection command, and the document and selection that it applies to.
pub(crate) struct Selecting<'a> {
    pub(crate) document: &'a Document<'a>,
    pub(crate) selected: &'a [Selected],
    pub(crate) selector: Selector,
    pub(crate) pattern: &'a Pattern,
}

impl Selecting<'_> {
    /// Returns the new selection.
    pub(crate) fn select(&self, meter: &mut Meter<'_>) -> Result<Vec<Selected>, EditError> {
        let Selector { word: command, area, take, extends } = self.selector;
        let (areas, text) = (self.areas()?, &self.document.text);
        let mut found = match self.pattern {
            Pattern::Regex(regex) => self.matches(Search::for_regex(text, regex), &areas, meter)?,
            Pattern::Lines(lines) if lines.is_empty() => return Err(EditError::EmptyPattern),
            Pattern::Lines(lines) => {
                self.matches(Search::for_lines(text, lines, meter)?, &areas, meter)?
            }
            Pattern::Positions(from, to) => vec![self.range(*from, *to, &areas, meter)?],
        };
        if take == Take::Only && found.len() > 1 {
            let (pattern, found) = (self.pattern.to_string(), found.len());
            return Err(EditError::SeveralMatches { command, pattern, found });
        }
        let Some(first) = found.first_mut() else {
            return Err(EditError::NoMatch { command, pattern: self.pattern.to_string() });
        };
        if let ([old], true) = (self.selected, extends) {
            // The end of the new range decides whether the range counts as whole lines.
            *first = match area {
                Area::Before => Selected { start: first.start, ..*old },
                Area::File | Area::Selection | Area::After => {
                    Selected { start: old.start, ..*first }
                }
            };
        }
        Ok(found)
    }

    /// Returns the ranges to search.
    fn areas(&self) -> Result<Vec<Range<usize>>, EditError> {
        let end = self.document.text.len();
        let area = match (self.selector.area, self.selected) {
            (Area::Selection, ranges) => {
                return Ok(ranges.iter().map(|range| range.start..range.end).collect());
            }
            (Area::File, _) => 0..end,
            (Area::After, [only]) => only.end..end,
            (Area::Before, [only]) => 0..only.start,
            (Area::After | Area::Before, ranges) => {
                let (command, found) = (self.selector.word, ranges.len());
                return Err(EditError::SeveralSelected { command, found });
            }
        };
        Ok(std::iter::once(area).collect())
    }

    /// Returns the matches that the selector selects.
    fn matches(
        &self,
        mut search: Search<'_>,
        areas: &[Range<usize>],
        meter: &mut Meter<'_>,
    ) -> Result<Vec<Selected>, EditError> {
        let limit = meter.limits.matches;
        let mut found: Vec<Selected> = Vec::new();
        for area in areas {
            // Whole lines include their line ending, which may reach into the next area.
            let mut next = Some(found.last().map_or(0, |last| last.end).max(area.start));
            while let Some(start) = next.filter(|start| *start <= area.end) {
                let Some(one) = search.find(start..area.end, meter)? else { break };
                next = search.after(one);
                match self.selector.take {
                    Take::First => return Ok(vec![one]),
                    Take::Last => found.clear(),
                    // Two empty areas at one position have the same empty match.
                    Take::Only | Take::All if found.last() == Some(&one) => continue,
                    Take::Only | Take::All if found.len() == limit => {
                        let (command, pattern) = (self.selector.word, self.pattern.to_string());
                        return Err(EditError::TooManyMatches { command, pattern, limit });
                    }
                    Take::Only | Take::All => {}
                }
                found.push(one);
            }
        }
        Ok(found)
    }

    /// Returns the range of positions, which must lie within one of the areas.
    fn range(
        &self,
        from: Position,
        to: Option<Position>,
        areas: &[Range<usize>],
        meter: &mut Meter<'_>,
    ) -> Result<Selected, EditError> {
        let Range { start, mut end } = self.document.locate(from, meter)?;
        if let Some(to) = to {
            end = self.document.locate(to, meter)?.end;
        }
        let (pattern, command) = (self.pattern, self.selector.word);
        if end < start {
            return Err(invalid_position(format!("the range {pattern} ends before it begins")));
        }
        // The areas are in order, so only those that end after the start and begin before it can
        // hold it.
        let after = areas.partition_point(|area| area.end < start);
        let mut around = areas.iter().skip(after).take_while(|area| area.start <= start);
        if !around.any(|area| end <= area.end) {
            let message = format!("{pattern} lies outside of what `{command}` looks at");
            return Err(invalid_position(message));
        }
        Ok(Selected { start, end, is_lines: false })
    }
}

/// Returns the selected range of an index, which counts from 0, or from -1 backwards.
pub(crate) fn retain(selected: &[Selected], index: i64) -> Result<Vec<Selected>, EditError> {
    let found = selected.len();
    let kept = match usize::try_from(index) {
        Ok(index) => selected.get(index),
        Err(_) => usize::try_from(-1 - index).ok().and_then(|back| selected.iter().nth_back(back)),
    };
    kept.map(|kept| vec![*kept]).ok_or(EditError::NoSuchRange { index, found })
}

/// Returns the positions in a pattern that are line numbers.
pub(crate) fn line_numbers(pattern: &Pattern) -> impl Iterator<Item = Position> {
    let positions = match pattern {
        Pattern::Positions(from, to) => [Some(*from), *to],
        Pattern::Regex(_) | Pattern::Lines(_) => [None, None],
    };
    let positions = positions.into_iter().flatten();
    positions.filter(|it| matches!(it, Position::Line(_) | Position::Column { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{limits::Limits, regex::Regex};

    const SELECT: Selector =
        Selector { word: "select", area: Area::File, take: Take::Only, extends: false };

    fn at(start: usize, end: usize) -> Selected {
        Selected { start, end, is_lines: false }
    }

    fn located(selector: Selector, selected: &[Selected]) -> Result<Vec<Selected>, EditError> {
        let limits = Limits::default();
        let document = Document::open("a", Some("ab\ncd\nef"));
        let pattern = &Pattern::Positions(Position::Line(2), None);
        let document = &document;
        Selecting { document, selected, selector, pattern }.select(&mut Meter::new(&limits))
    }

    #[test]
    fn a_position_is_found_in_the_one_range_that_holds_it() {
        let narrow = Selector { word: "narrow", area: Area::Selection, ..SELECT };
        let message = "2 lies outside of what `narrow` looks at".to_owned();
        let outside = EditError::InvalidPosition { message };
        assert_eq!(located(narrow, &[at(0, 2), at(3, 5), at(5, 8)]), Ok(vec![at(3, 5)]));
        assert_eq!(located(narrow, &[at(0, 2), at(3, 4)]), Err(outside));
    }

    #[test]
    fn positions_keep_to_the_side_that_is_looked_at() {
        let (after, before) = ((Area::After, Take::First), (Area::Before, Take::Last));
        let beyond = |(area, take), extends, selected| {
            located(Selector { word: "", area, take, extends }, &[selected])
        };
        assert_eq!(beyond(after, true, at(0, 2)), Ok(vec![at(0, 5)]));
        assert_eq!(beyond(before, true, at(6, 8)), Ok(vec![at(3, 8)]));
        assert!(beyond(after, false, at(4, 5)).is_err());
        assert!(beyond(before, false, at(4, 5)).is_err());
    }

    #[test]
    fn matches_within_a_range_follow_each_other_past_whole_characters() {
        let limits = Limits::default();
        let regex = Regex::new("x*", "", 1 << 20).expect("a pattern");
        let document = &Document::open("a", Some("éxxé"));
        let selector = Selector { area: Area::Selection, take: Take::All, ..SELECT };
        let (selected, pattern) = (&[at(0, 4)], &Pattern::Regex(regex.into()));
        let selecting = Selecting { document, selected, selector, pattern };
        let found = selecting.select(&mut Meter::new(&limits));
        assert_eq!(found, Ok(vec![at(0, 0), at(2, 4), at(4, 4)]));
    }

    #[test]
    fn a_search_may_read_as_much_as_its_limit() {
        let searched = |searched_bytes| {
            let limits = Limits { searched_bytes, ..Limits::default() };
            let mut meter = Meter { limits: &limits, searched_bytes: 2, open_bytes: 0 };
            let regex = Regex::new("b", "", 1 << 20).expect("a pattern");
            let pattern = &Pattern::Regex(regex.into());
            let document = &Document::open("a", Some("abc"));
            let selecting = Selecting { document, selected: &[], selector: SELECT, pattern };
            let found = selecting.select(&mut meter);
            (found, meter.searched_bytes)
        };
        let (_, all) = searched(u64::MAX);
        assert_eq!(searched(all), (Ok(vec![at(1, 2)]), all));
        assert_eq!(searched(all - 1).0, Err(EditError::SearchTooLong { limit: all - 1 }));
    }

    #[test]
    fn one_range_is_kept() {
        let selected = [at(0, 1), at(2, 3)];
        assert_eq!(retain(&selected, -1), Ok(vec![at(2, 3)]));
        assert_eq!(retain(&selected, -2), Ok(vec![at(0, 1)]));
        for index in [0, -1] {
            assert_eq!(retain(&[], index), Err(EditError::NoSuchRange { index, found: 0 }));
        }
        for index in [2, -3, i64::MIN, i64::MAX] {
            let error = EditError::NoSuchRange { index, found: 2 };
            assert_eq!(retain(&selected, index), Err(error));
        }
    }
}
