//! Chooses needed facts: names that the rest of the compacted thread lacks, each with the line that
//! it stands in.

use std::collections::{HashMap, HashSet};

use super::{
    past::{Kind, Past, Source, clipped},
    weights::{Features, value},
};
use crate::{
    hindsight::names,
    prose::{one_line, plain},
    strategy::clip::border_before,
    tokens::TokenCounter,
};

/// The characters of a line on each side of a name, if the line is longer.
const AROUND: usize = 80;

/// The characters of the heading over lines of one source.
const HEADING: usize = 90;

/// A name, what is known of it, and where it stands best.
struct Found<'p> {
    name: &'p str,
    features: Features,
    /// The source and the offset of the name in it.
    at: (usize, usize),
    /// The last source that counted for it, so that a text counts once.
    counted: usize,
}

/// Writes lines with names that `known` lacks, in at most `budget` tokens, the most valuable for
/// their tokens first, listed in the order of the thread.
pub(super) fn write(
    past: &Past<'_>,
    cut: usize,
    known: &HashSet<&str>,
    budget: u64,
    counter: &dyn TokenCounter,
) -> String {
    let sources = past.before(cut);
    let mut lines: Vec<(f64, Line)> = Vec::new();
    for found in found(sources, known) {
        let Some(line) = line(sources, &found) else { continue };
        let cost = counter.text(&line.text).saturating_add(2);
        // A line with several names is chosen by the best of them, so the price is not divided.
        lines.push((value(&found.features) / (cost as f64 + 6.0), line));
    }
    lines.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut left = budget;
    let mut chosen: Vec<Line> = Vec::new();
    let (mut shown, mut covered, mut headed) = (HashSet::new(), HashSet::new(), HashSet::new());
    for (_, line) in lines {
        let Some(source) = sources.get(line.source) else { continue };
        if covered.contains(line.name.as_str()) || shown.contains(&line.text) {
            continue;
        }
        let heading = match headed.contains(&line.source) {
            true => 0,
            false => counter.text(&heading(sources, source)),
        };
        let cost = counter.text(&line.text).saturating_add(1).saturating_add(heading);
        let Some(rest) = left.checked_sub(cost) else { continue };
        left = rest;
        headed.insert(line.source);
        covered.extend(names(&line.text).map(str::to_owned));
        shown.insert(line.text.clone());
        chosen.push(line);
    }
    chosen.sort_by_key(|line| (line.source, line.at));
    let (mut text, mut last) = (String::new(), None);
    for line in &chosen {
        if last != Some(line.source)
            && let Some(source) = sources.get(line.source)
        {
            text.push_str(&heading(sources, source));
            last = Some(line.source);
        }
        text.push_str("  ");
        text.push_str(&line.text);
        text.push('\n');
    }
    text
}

/// A line that shows a name.
struct Line {
    source: usize,
    at: usize,
    name: String,
    text: String,
}

/// The names before the cut that nothing else shows, with their features.
fn found<'p>(sources: &'p [Source<'_>], known: &HashSet<&str>) -> Vec<Found<'p>> {
    let bytes: usize = sources.iter().map(|source| source.text.len()).sum();
    let mut passed = 0_usize;
    let (mut found, mut indices): (Vec<Found<'p>>, HashMap<&'p str, usize>) = Default::default();
    for (index, source) in sources.iter().enumerate() {
        passed += source.text.len();
        let place = passed as f64 / bytes.max(1) as f64;
        let start = source.text.as_ptr() as usize;
        for name in names(&source.text) {
            if known.contains(name) {
                continue;
            }
            let at = (index, name.as_ptr() as usize - start);
            let known = *indices.entry(name).or_insert_with(|| {
                let is_path = name.contains(['/', '.']);
                let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
                let features = Features { is_path, is_number, ..Features::default() };
                found.push(Found { name, features, at, counted: usize::MAX });
                found.len() - 1
            });
            if let Some(found) = found.get_mut(known).filter(|found| found.counted != index) {
                found.count(index, at, source, place, sources);
            }
        }
    }
    found
}

impl Found<'_> {
    /// Counts a text that has the name.
    fn count(
        &mut self,
        index: usize,
        at: (usize, usize),
        source: &Source<'_>,
        place: f64,
        sources: &[Source<'_>],
    ) {
        self.counted = index;
        let features = &mut self.features;
        features.last = place;
        let own = match source.kind {
            Kind::Call => {
                features.calls += 1;
                true
            }
            Kind::Answer => {
                features.answers += 1;
                true
            }
            Kind::Typed => {
                features.typed = true;
                false
            }
            Kind::Result | Kind::Earlier => {
                features.results += 1;
                features.failed |= source.failure.is_some();
                false
            }
        };
        if own {
            features.last_own = place;
        }
        // The newest place shows how things stand; the agent's own words say what they are for.
        let was_own = sources.get(self.at.0).is_some_and(|source| source.kind == Kind::Call);
        if own || !was_own {
            self.at = at;
        }
    }
}

/// The line in which a name stands, shortened around the name.
fn line(sources: &[Source<'_>], found: &Found<'_>) -> Option<Line> {
    let (index, at) = found.at;
    let text: &str = &sources.get(index)?.text;
    let (before, after) = (text.get(..at)?, text.get(at + found.name.len()..)?);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let start = if at - start > AROUND { border_before(text, at - AROUND) } else { start };
    let end = after.find('\n').unwrap_or(after.len());
    let end = at + found.name.len() + border_before(after, end.min(AROUND));
    let mut line = one_line(&plain(text.get(start..end)?)).into_owned();
    if line.starts_with(['#', '>']) {
        line.insert(0, ' ');
    }
    Some(Line { source: index, at, name: found.name.to_owned(), text: line })
}

/// The heading over lines of a source: what it is, or of which call it is the result.
fn heading(sources: &[Source<'_>], source: &Source<'_>) -> String {
    let call = source.call.and_then(|call| sources.get(call));
    let code = |outline: &str| clipped(outline, HEADING).replace('`', "'");
    match (source.kind, call) {
        (Kind::Result, Some(call)) => format!("- `{}` gave:\n", code(&call.outline)),
        (Kind::Result, None) => "- a tool gave:\n".to_owned(),
        (Kind::Call, _) => {
            let tool = source.outline.split_once(": ").map_or("a command", |(tool, _)| tool);
            format!("- in a call of {}:\n", clipped(tool, 32))
        }
        (Kind::Answer, _) => "- you said:\n".to_owned(),
        (Kind::Typed, _) => "- the user said:\n".to_owned(),
        (Kind::Earlier, _) => "- from before:\n".to_owned(),
    }
}
