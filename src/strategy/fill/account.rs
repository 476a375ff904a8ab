//! The account without a model: what was done, in order, one line for each step.

use std::collections::{HashMap, HashSet};

use super::past::{Kind, Past, Source, clipped, clipped_inside};
use crate::{
    prose::{one_line, plain},
    tokens::TokenCounter,
};

/// The characters of an old line, from the widest form of the account to the narrowest. The newest
/// lines have four times as many.
const WIDTHS: [usize; 7] = [300, 200, 140, 100, 72, 52, 40];

/// What a line of the account says.
pub(super) struct Step {
    /// What the model said or called.
    text: String,
    /// Whether it is a call.
    is_call: bool,
    /// What came of it.
    outcome: Option<String>,
}

/// Writes the account of these steps, in at most `budget` tokens: the newest steps
/// in more detail, and the oldest left out if nothing else helps.
pub(super) fn write(steps: &[Step], budget: u64, counter: &dyn TokenCounter) -> String {
    let mut narrow = Vec::new();
    for width in WIDTHS {
        let lines: Vec<String> =
            (0..).zip(steps).map(|(at, step)| line(step, wide(at, steps.len(), width))).collect();
        let tokens = lines.iter().map(|line| counter.text(line)).fold(0, u64::saturating_add);
        if tokens <= budget {
            return lines.concat();
        }
        narrow = lines;
    }
    let mut left = budget.saturating_sub(12);
    let kept = narrow.iter().rev().take_while(|line| {
        let rest = left.checked_sub(counter.text(line));
        left = rest.unwrap_or_default();
        rest.is_some()
    });
    let omitted = narrow.len() - kept.count();
    let rest = narrow.split_off(omitted);
    match (omitted, rest.is_empty()) {
        (_, true) => String::new(),
        (0, false) => rest.concat(),
        (omitted, false) => format!("({omitted} earlier steps left out)\n{}", rest.concat()),
    }
}

/// The width of the step at this position.
fn wide(at: usize, steps: usize, width: usize) -> usize {
    let age = steps - at;
    match age {
        0..=3 => width * 4,
        _ if age * 4 <= steps => width * 2,
        _ => width,
    }
}

fn line(step: &Step, width: usize) -> String {
    let text = match step.is_call {
        true => clipped_inside(&step.text, width),
        false => clipped(&step.text, width * 3 / 2),
    };
    let outcome = step.outcome.as_ref();
    let outcome =
        outcome.map(|it| format!(" → {}", clipped(it, width * 2 / 3))).unwrap_or_default();
    match step.is_call {
        true => format!("- `{}`{outcome}\n", text.replace('`', "'")),
        false => format!("{text}\n"),
    }
}

/// The steps of what happened before a cut, in order.
pub(super) fn steps(past: &Past, cut: usize) -> Vec<Step> {
    let sources = past.before(cut);
    let earlier = past.earlier(cut).into_iter().flat_map(|earlier| &earlier.account);
    let earlier = earlier.filter(|line| !line.starts_with('('));
    let earlier = earlier.map(|line| Step { text: line.clone(), is_call: false, outcome: None });
    let mut steps: Vec<Step> = earlier.collect();
    let mut outcomes: HashMap<usize, &Source> = HashMap::new();
    for source in sources {
        if let (Kind::Result, Some(call)) = (source.kind, source.call) {
            outcomes.insert(call, source);
        }
    }
    let label = label(sources);
    let mut told: HashSet<String> = HashSet::new();
    for (index, source) in sources.iter().enumerate() {
        let step = match source.kind {
            Kind::Answer => {
                let text = source.text.trim_start();
                let text = said(text.strip_prefix(label).unwrap_or(text));
                Step { text, is_call: false, outcome: None }
            }
            Kind::Call => {
                let outcome = outcomes.get(&index).and_then(|result| outcome(past, result));
                Step { text: source.outline.clone(), is_call: true, outcome }
            }
            Kind::Typed | Kind::Result | Kind::Earlier => continue,
        };
        // A text that the model repeats says nothing about the work.
        if !step.is_call && !told.insert(step.text.clone()) {
            continue;
        }
        let repeats = steps.last().is_some_and(|last| {
            last.text == step.text && last.outcome == step.outcome && last.is_call == step.is_call
        });
        if !step.text.is_empty() && !repeats {
            steps.push(step);
        }
    }
    steps
}

/// The word with a colon that most answers begin with, as the protocol of an agent demands; empty if
/// there is none.
fn label(sources: &[Source]) -> &str {
    let answers = sources.iter().filter(|source| source.kind == Kind::Answer);
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut all = 0_usize;
    for answer in answers {
        all += 1;
        let word = answer.text.split_whitespace().next();
        if let Some(word) = word.filter(|word| word.ends_with(':')) {
            *counts.entry(word).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(word, count)| (*count, *word));
    most.filter(|(_, count)| *count > 2 && count * 3 > all * 2).map_or("", |(word, _)| word)
}

/// What an answer says, on one line, without fenced blocks.
fn said(text: &str) -> String {
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let line = one_line(&plain(&text)).into_owned();
    // A line of the account must not look like a heading, a list or a title.
    line.trim_start_matches(['#', '-', '*', '>', ' ']).to_owned()
}

/// What came of a call: its failure, or its last line and how much there was.
fn outcome(past: &Past, result: &Source) -> Option<String> {
    if let Some(failure) = &result.failure {
        return Some(format!("failed: {failure}"));
    }
    let lines = result.text.lines().map(str::trim);
    let own = lines.filter(|line| !line.is_empty() && !past.usual.contains(*line));
    let own: Vec<&str> = own.collect();
    let short = |line: &str| one_line(&plain(line)).into_owned();
    match own.as_slice() {
        [] => None,
        [only] => Some(short(only)),
        [first, last] => Some(format!("{} / {}", short(first), short(last))),
        [.., last] => Some(format!("{} lines, the last: {}", own.len(), short(last))),
    }
}

/// The calls whose last try failed and was not followed by one that succeeded, the newest last.
pub(super) fn unmended(past: &Past, cut: usize) -> Vec<String> {
    const LISTED: usize = 4;
    const KEY: usize = 24;
    let sources = past.before(cut);
    let mut last: HashMap<String, (usize, Option<String>)> = HashMap::new();
    for (at, source) in sources.iter().enumerate() {
        let Some(call) = source.call.and_then(|call| sources.get(call)) else { continue };
        let key = clipped(&call.outline, KEY).into_owned();
        let failed = source.failure.as_ref().map(|failure| {
            let (call, failure) = (clipped(&call.outline, 100), clipped(failure, 160));
            format!("- `{}` → {failure}\n", call.replace('`', "'"))
        });
        last.insert(key, (at, failed));
    }
    let mut failed: Vec<(usize, String)> =
        last.into_values().filter_map(|(at, failed)| Some((at, failed?))).collect();
    failed.sort();
    let skipped = failed.len().saturating_sub(LISTED);
    failed.into_iter().skip(skipped).map(|(_, line)| line).collect()
}
