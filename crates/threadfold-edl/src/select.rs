//! Selecting ranges of a document.
//!
//! Selected ranges are in order and do not overlap, and there is always at least one.

use std::ops::Range;

use super::{
    command::{Pattern, Position, Retain, Select, Selector},
    document::{Document, Meter, Selected},
    limits::Limits,
    run_error::RunError,
    search::{Match, Search},
};

/// Returns what a selection command selects.
pub(crate) fn select(
    document: &Document<'_>,
    selected: &[Selected],
    command: &Select,
    meter: &mut Meter<'_>,
) -> Result<Vec<Selected>, RunError> {
    let areas = areas(document, selected, command.selector)?;
    let mut found = match Search::new(document.text(), &command.pattern) {
        Some(search) => matches(search, &areas, command, meter)?,
        None => vec![locate(document, &areas, command, meter)?],
    };
    let Some((first, last)) = found.first().copied().zip(found.last().copied()) else {
        return Err(RunError::NoMatch {
            command: command.selector.word(),
            pattern: command.pattern.to_string(),
        });
    };
    let current = selected.first().copied().unwrap_or(first);
    Ok(match command.selector {
        Selector::SelectMultiple | Selector::NarrowMultiple => found,
        Selector::Select | Selector::Narrow if found.len() > 1 => {
            return Err(RunError::SeveralMatches {
                command: command.selector.word(),
                pattern: command.pattern.to_string(),
                found: found.len(),
            });
        }
        Selector::Select | Selector::Narrow => found,
        Selector::SelectNext => {
            found.truncate(1);
            found
        }
        Selector::SelectPrev => vec![last],
        Selector::ExtendForward => vec![Selected { start: current.start, ..first }],
        Selector::ExtendBack => vec![Selected { start: last.start, ..current }],
    })
}

/// Returns the one range of the selected that is kept.
pub(crate) fn retain(selected: &[Selected], retain: Retain) -> Result<Vec<Selected>, RunError> {
    let found = selected.len();
    let kept = match retain {
        Retain::First => selected.first(),
        Retain::Last => selected.last(),
        Retain::Nth(index) => {
            let from_end = usize::try_from(index.unsigned_abs()).ok();
            let from_start = usize::try_from(index).ok();
            from_start.or_else(|| found.checked_sub(from_end?)).and_then(|at| selected.get(at))
        }
    };
    let index = match retain {
        Retain::First => 0,
        Retain::Last => -1,
        Retain::Nth(index) => index,
    };
    kept.map(|kept| vec![*kept]).ok_or(RunError::NoSuchRange { index, found })
}

/// The positions in a pattern that count lines.
pub(crate) fn line_positions(pattern: &Pattern) -> impl Iterator<Item = Position> {
    let positions = match pattern {
        Pattern::Position(position) => [Some(*position), None],
        Pattern::Range(from, to) => [Some(*from), Some(*to)],
        Pattern::Regex(_) | Pattern::Lines(_) => [None, None],
    };
    let counts_lines = |it: &Position| matches!(it, Position::Line(_) | Position::Column { .. });
    positions.into_iter().flatten().filter(counts_lines)
}

/// Returns where a selector looks.
fn areas(
    document: &Document<'_>,
    selected: &[Selected],
    selector: Selector,
) -> Result<Vec<Range<usize>>, RunError> {
    let single = || match selected {
        [single] => Ok(single),
        _ => {
            let command = selector.word();
            Err(RunError::SeveralSelected { command, found: selected.len() })
        }
    };
    let end = document.text().len();
    Ok(match selector {
        Selector::Select | Selector::SelectMultiple => std::iter::once(0..end).collect(),
        Selector::Narrow | Selector::NarrowMultiple => {
            selected.iter().map(|range| range.start..range.end).collect()
        }
        Selector::SelectNext | Selector::ExtendForward => {
            std::iter::once(single()?.end..end).collect()
        }
        Selector::SelectPrev | Selector::ExtendBack => {
            std::iter::once(0..single()?.start).collect()
        }
    })
}

/// How many of the matches a selector has a use for.
enum Wanted {
    First,
    Last,
    All,
}

impl Wanted {
    fn by(selector: Selector) -> Self {
        match selector {
            Selector::SelectNext | Selector::ExtendForward => Self::First,
            Selector::SelectPrev | Selector::ExtendBack => Self::Last,
            Selector::Select
            | Selector::SelectMultiple
            | Selector::Narrow
            | Selector::NarrowMultiple => Self::All,
        }
    }
}

fn matches(
    mut search: Search<'_>,
    areas: &[Range<usize>],
    command: &Select,
    meter: &mut Meter<'_>,
) -> Result<Vec<Selected>, RunError> {
    if matches!(&command.pattern, Pattern::Lines(lines) if lines.is_empty()) {
        return Err(RunError::EmptyPattern);
    }
    let budget = meter.limits.searched_bytes.saturating_sub(meter.searched_bytes);
    let found = collect(&mut search, areas, command, meter.limits, budget);
    // What was searched in vain is used up as well.
    meter.searched_bytes = meter.searched_bytes.saturating_add(search.searched());
    found
}

/// Takes the matches of a search that are wanted, as long as it stays within its budget of bytes.
fn collect(
    search: &mut Search<'_>,
    areas: &[Range<usize>],
    command: &Select,
    limits: &Limits,
    budget: u64,
) -> Result<Vec<Selected>, RunError> {
    let mut found: Vec<Selected> = Vec::new();
    for area in areas {
        // Whole lines end after their line end, which may lie in the area after theirs.
        let free_from = found.last().map_or(0, |last| last.end).max(area.start);
        if free_from > area.end {
            continue;
        }
        search.within(free_from..area.end);
        loop {
            let next = search.next();
            if search.searched() > budget {
                return Err(RunError::SearchTooLong { limit: limits.searched_bytes });
            }
            let Some(Match { start, end, is_lines }) = next else { break };
            if !take(&mut found, Selected { start, end, is_lines }, command, limits)? {
                break;
            }
        }
    }
    Ok(found)
}

/// Takes a match if it is wanted, and returns whether another one is.
fn take(
    found: &mut Vec<Selected>,
    selected: Selected,
    command: &Select,
    limits: &Limits,
) -> Result<bool, RunError> {
    let wanted = Wanted::by(command.selector);
    match wanted {
        Wanted::First => found.push(selected),
        Wanted::Last => *found = vec![selected],
        // Two empty areas at one place hold the same empty match.
        Wanted::All if found.last() == Some(&selected) => {}
        Wanted::All if found.len() == limits.matches => {
            return Err(RunError::TooManyMatches {
                command: command.selector.word(),
                pattern: command.pattern.to_string(),
                limit: limits.matches,
            });
        }
        Wanted::All => found.push(selected),
    }
    Ok(!matches!(wanted, Wanted::First))
}

fn locate(
    document: &Document<'_>,
    areas: &[Range<usize>],
    command: &Select,
    meter: &mut Meter<'_>,
) -> Result<Selected, RunError> {
    let pattern = || command.pattern.to_string();
    let range = match &command.pattern {
        Pattern::Position(position) => document.locate(*position, meter)?,
        Pattern::Range(from, to) => {
            document.locate(*from, meter)?.start..document.locate(*to, meter)?.end
        }
        Pattern::Regex(_) | Pattern::Lines(_) => return Err(RunError::EmptyPattern),
    };
    if range.end < range.start {
        return Err(RunError::ReversedRange { pattern: pattern() });
    }
    // The areas are in order, so the only ones to ask are those around the range's start.
    let after = areas.partition_point(|area| area.end < range.start);
    let holds = |area: &&Range<usize>| area.start <= range.start && range.end <= area.end;
    let around = areas.iter().skip(after).take_while(|area| area.start <= range.start);
    if around.filter(holds).count() == 0 {
        let command = command.selector.word();
        return Err(RunError::PositionOutside { command, pattern: pattern() });
    }
    Ok(Selected { start: range.start, end: range.end, is_lines: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regex::Regex;
    fn at(start: usize, end: usize) -> Selected {
        Selected { start, end, is_lines: false }
    }

    fn located(selector: Selector, selected: &[Selected]) -> Result<Vec<Selected>, RunError> {
        let limits = Limits::default();
        let mut meter = Meter { limits: &limits, searched_bytes: 0, open_bytes: 0 };
        let document = Document::load("ab\ncd\nef");
        let pattern = Pattern::Position(Position::Line(2));
        select(&document, selected, &Select { selector, pattern }, &mut meter)
    }

    #[test]
    fn a_position_is_found_in_the_one_range_that_holds_it() {
        let outside = RunError::PositionOutside { command: "narrow", pattern: "2".to_owned() };
        assert_eq!(located(Selector::Narrow, &[at(0, 2), at(3, 5), at(5, 8)]), Ok(vec![at(3, 5)]));
        assert_eq!(located(Selector::Narrow, &[at(0, 2), at(3, 4)]), Err(outside));
    }

    #[test]
    fn positions_keep_to_the_side_that_is_looked_at() {
        assert_eq!(located(Selector::ExtendForward, &[at(0, 2)]), Ok(vec![at(0, 5)]));
        assert_eq!(located(Selector::ExtendBack, &[at(6, 8)]), Ok(vec![at(3, 8)]));
        assert!(located(Selector::SelectNext, &[at(4, 5)]).is_err());
        assert!(located(Selector::SelectPrev, &[at(4, 5)]).is_err());
    }

    #[test]
    fn a_search_may_read_as_much_as_its_limit() {
        let searched = |searched_bytes| {
            let limits = Limits { searched_bytes, ..Limits::default() };
            let mut meter = Meter { limits: &limits, searched_bytes: 2, open_bytes: 0 };
            let regex = Regex::new("b", "", 1 << 20).expect("a pattern");
            let pattern = Pattern::Regex(regex.into());
            let command = Select { selector: Selector::Select, pattern };
            let found = select(&Document::load("abc"), &[], &command, &mut meter);
            (found, meter.searched_bytes)
        };
        let (_, all) = searched(u64::MAX);
        assert_eq!(searched(all), (Ok(vec![at(1, 2)]), all));
        assert_eq!(searched(all - 1).0, Err(RunError::SearchTooLong { limit: all - 1 }));
    }

    #[test]
    fn one_range_is_kept() {
        let selected = [at(0, 1), at(2, 3)];
        assert_eq!(retain(&selected, Retain::Last), Ok(vec![at(2, 3)]));
        assert_eq!(retain(&selected, Retain::Nth(-2)), Ok(vec![at(0, 1)]));
        for (one, index) in [(Retain::First, 0), (Retain::Last, -1)] {
            assert_eq!(retain(&[], one), Err(RunError::NoSuchRange { index, found: 0 }));
        }
        for index in [2, -3, i64::MIN, i64::MAX] {
            assert_eq!(
                retain(&selected, Retain::Nth(index)),
                Err(RunError::NoSuchRange { index, found: 2 })
            );
        }
    }
}
