//! The account without a model: what was done, in order, one line for each step.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

use serde_json::Value;

use super::thread_texts::{
    Kind, Source, ThreadTexts, WIDEST, after, clipped, clipped_inside, json_object, last_command,
    sorted,
};
use crate::{
    prose::{one_line, plain},
    tokens::TokenCounter,
};

/// The characters of an old line, from the widest form of the account to the narrowest. The newest
/// lines have four times as many.
const WIDTHS: [usize; 7] = [WIDEST / NEWEST, 200, 140, 100, 72, 52, 40];

/// The newest lines are this many times as wide.
const NEWEST: usize = 4;

/// The characters of an answer that the widest line shows, and one more.
const SAID: usize = WIDEST * 3 / 2 + 1;

/// What a line of the account says.
#[derive(Debug)]
pub(super) struct Step {
    /// The index of the message that says it, or of the earlier summary.
    message: usize,
    /// What the model said or called.
    text: String,
    /// Whether it is a call.
    is_call: bool,
    /// Whether it is a call that only shows something, and did.
    reads: bool,
    /// What came of it.
    outcome: Option<String>,
    /// How many calls with this outcome it stands for.
    times: usize,
}

/// Writes the account of these steps, in at most `budget` tokens: the newest steps in more detail. If
/// nothing else helps, old steps that only read are left out, then the oldest.
pub(super) fn write(steps: &[Step], budget: u64, counter: &dyn TokenCounter) -> String {
    let lines = |width: usize| {
        (0..).zip(steps).map(move |(at, step)| line(step, wide(at, steps.len(), width)))
    };
    let exceeds = |width: &usize| {
        let mut left = Some(budget);
        !lines(*width).all(|line| {
            left = left.and_then(|left| left.checked_sub(counter.text(&line)));
            left.is_some()
        })
    };
    // A narrower form is never longer.
    if let Some(width) = WIDTHS.get(WIDTHS.partition_point(exceeds)) {
        return lines(*width).collect();
    }
    let mut narrow: Vec<String> =
        WIDTHS.last().into_iter().flat_map(|width| lines(*width)).collect();
    let costs = narrow.iter().map(|line| counter.text(line));
    let excess = costs.fold(0, u64::saturating_add).saturating_sub(budget.saturating_sub(14));
    let (all, mut excess) = (narrow.len(), Some(excess).filter(|excess| *excess > 0));
    // Those that only read, the oldest first and none of the newest quarter, and then the others.
    for only_reads in [true, false] {
        let mut at = 0..all;
        narrow.retain(|line| {
            let at = at.next().unwrap_or_default();
            let is_new = (all - at) * 4 <= all;
            let goes = !only_reads || (!is_new && steps.get(at).is_some_and(|step| step.reads));
            let Some(left) = excess.filter(|_| goes) else { return true };
            excess = left.checked_sub(counter.text(line)).filter(|left| *left > 0);
            false
        });
    }
    match (all - narrow.len(), narrow.is_empty()) {
        (_, true) => String::new(),
        (0, false) => narrow.concat(),
        (omitted, false) => {
            format!("({omitted} old steps left out)\n{}", narrow.concat())
        }
    }
}

/// The width of the step at this position.
fn wide(at: usize, steps: usize, width: usize) -> usize {
    let age = steps - at;
    match age {
        0..=3 => width * NEWEST,
        _ if age * 4 <= steps => width * 2,
        _ => width,
    }
}

fn line(step: &Step, width: usize) -> String {
    let mut line = String::new();
    if step.is_call {
        line.push_str("- `");
        line.push_str(&outlined(&step.text, width).replace('`', "'"));
        line.push('`');
    } else {
        line.push_str(&clipped(&step.text, width * 3 / 2));
    }
    if let Some(outcome) = &step.outcome {
        line.push_str(" → ");
        line.push_str(&clipped(outcome, width * 2 / 3));
    }
    if step.times > 1 {
        line.push_str(&format!(" ({} times)", step.times));
    }
    line.push('\n');
    line
}

/// The outline of a call in at most this many characters. Of a file that is given beside other
/// arguments the end of its path says most, of a command its beginning and its end.
fn outlined(outline: &str, most: usize) -> Cow<'_, str> {
    if after(outline, most).is_none() {
        return Cow::Borrowed(outline);
    }
    let parts =
        outline.split_once(": ").and_then(|(tool, rest)| Some((tool, rest.split_once(", ")?)));
    let Some((tool, (path, rest))) = parts.filter(|(_, (path, _))| path.starts_with('/')) else {
        return clipped_inside(outline, most);
    };
    let from = path.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at);
    let path = path.get(from..).unwrap_or(path);
    let short = format!("{tool}: {}{path}, {rest}", if from > 0 { "…" } else { "" });
    Cow::Owned(clipped(&short, most).into_owned())
}

/// The steps of a thread, in order.
pub(super) fn steps(past: &ThreadTexts) -> Vec<Step> {
    let sources = &past.sources;
    let mut outcomes: HashMap<usize, &Source> = HashMap::new();
    for source in sources {
        if let (Kind::Result, Some(call)) = (source.kind, source.call) {
            outcomes.insert(call, source);
        }
    }
    let label = label(sources);
    let mut steps: Vec<Step> = Vec::new();
    let mut earlier = past.earlier.iter().peekable();
    for (index, source) in sources.iter().enumerate() {
        let message = source.message;
        while let Some((at, earlier)) = earlier.next_if(|(at, _)| *at <= message) {
            let lines = earlier.account.iter().filter(|line| !line.starts_with('('));
            steps.extend(lines.map(|line| Step::said(*at, line.clone())));
        }
        let step = match source.kind {
            Kind::Answer => {
                let text = source.text.trim_start();
                Step::said(message, said(text.strip_prefix(label).unwrap_or(text)))
            }
            Kind::Call => {
                let result = outcomes.get(&index);
                let reads = result.is_none_or(|it| it.failure.is_none()) && source.only_reads();
                let outcome = result.and_then(|result| outcome(past, source, result));
                let text = source.outline.clone();
                Step { message, text, is_call: true, reads, outcome, times: 1 }
            }
            Kind::Typed | Kind::Result | Kind::Earlier => continue,
        };
        if !step.text.is_empty() {
            steps.push(step);
        }
    }
    steps.extend(past.media.iter().map(|(message, text)| Step::said(*message, text.clone())));
    steps.sort_by_key(|step| step.message);
    // A text that the model repeats says nothing about the work. The same call with the same outcome
    // stands where it was made last.
    let mut told: HashSet<&str> = HashSet::new();
    let mut times: HashMap<(&str, &Option<String>), usize> = HashMap::new();
    let counts = steps.iter().map(|step| match step.is_call {
        true => {
            let times = times.entry((&step.text, &step.outcome)).or_default();
            *times += 1;
            *times
        }
        false => usize::from(told.insert(&step.text)),
    });
    let counts: Vec<usize> = counts.collect();
    let counts = counts.into_iter().zip(&steps).map(|(count, step)| match step.is_call {
        true if times.get(&(step.text.as_str(), &step.outcome)) != Some(&count) => 0,
        _ => count,
    });
    let counts: Vec<usize> = counts.collect();
    let counted = steps.into_iter().zip(counts).filter(|(_, times)| *times > 0);
    counted.map(|(step, times)| Step { times, ..step }).collect()
}

impl Step {
    fn said(message: usize, text: String) -> Self {
        Self { message, text, is_call: false, reads: false, outcome: None, times: 1 }
    }
}

/// The steps before a cut.
pub(super) fn before(steps: &[Step], cut: usize) -> &[Step] {
    let end = steps.partition_point(|step| step.message < cut);
    steps.get(..end).unwrap_or_default()
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

/// What an answer says first, on one line, without fenced blocks.
fn said(text: &str) -> String {
    let (mut fenced, mut left) = (false, SAID);
    let mut said = String::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        if fenced || is_fence {
            continue;
        }
        let line = line.trim();
        let line = line.get(..after(line, left).unwrap_or(line.len())).unwrap_or_default();
        said.push_str(line);
        said.push('\n');
        left = left.saturating_sub(line.chars().count() + 1);
        if left == 0 {
            break;
        }
    }
    let line = one_line(&plain(&said)).into_owned();
    // A line of the account must not look like a heading, a list or a title.
    line.trim_start_matches(['#', '-', '*', '>', ' ']).to_owned()
}

/// What came of a call: its failure, or how much there was and its last line, if that tells something.
fn outcome(past: &ThreadTexts, call: &Source, result: &Source) -> Option<String> {
    if let Some(failure) = &result.failure {
        return Some(format!("failed: {failure}"));
    }
    if let Some(fields) = json_object(&result.text) {
        let mut parts = Vec::new();
        json_values(&Value::from(fields), "", &call.outline, &mut parts);
        return Some(one_line(&plain(&parts.join(", "))).into_owned()).filter(|it| !it.is_empty());
    }
    let all: Vec<&str> = result.text.lines().map(str::trim).collect();
    let lines: Vec<&str> = all.iter().copied().filter(|line| !line.is_empty()).collect();
    let is_own = |line: &&str| !past.usual.contains(*line);
    let (first, last) = (lines.iter().position(is_own), lines.iter().rposition(is_own));
    let own = first.zip(last).and_then(|(first, last)| lines.get(first..=last)).unwrap_or_default();
    let short = |line: &str| one_line(&plain(line)).into_owned();
    match own {
        [] => None,
        [only] => Some(short(only)),
        [first, last] => Some(format!("{} / {}", short(first), short(last))),
        [.., last] if is_code(last) => Some(format!("{} lines", line_count(past, &all))),
        [.., last] => Some(format!("{} lines, the last: {}", line_count(past, &all), short(last))),
    }
}

/// Lists the values of an object with their names: no text that the call names, and of lists how much
/// they hold.
fn json_values(value: &Value, name: &str, call: &str, parts: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => parts.push(format!("{name}: {value}")),
        Value::String(text) if text.is_empty() || names_word(call, text) => {}
        Value::String(text) => parts.push(format!("{name}: {text}")),
        Value::Array(items) => parts.push(format!("{name}: {} items", items.len())),
        Value::Object(fields) => {
            let sorted = sorted(fields).into_iter();
            sorted.for_each(|(name, value)| json_values(value, name, call, parts));
        }
    }
}

/// Whether a text holds a word or words, and not only a part of one.
fn names_word(text: &str, word: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text.get(..at), text.get(at + word.len()..));
        is_end(before.and_then(|it| it.chars().next_back()))
            && is_end(after.and_then(|it| it.chars().next()))
    })
}

/// The lines of a result, blank ones included, without those that many results begin or end with. A
/// line of signs is the result's own: code ends with such lines.
fn line_count(past: &ThreadTexts, lines: &[&str]) -> usize {
    let is_own = |line: &&str| {
        let says = line.contains(char::is_alphanumeric);
        !(line.is_empty() || (says && past.usual.contains(*line)))
    };
    let (first, last) = (lines.iter().position(is_own), lines.iter().rposition(is_own));
    first.zip(last).map_or(0, |(first, last)| last - first + 1)
}

/// Whether a line ends or begins as lines of code do, so that it says nothing about what came of a
/// call that read a file. A number before it, as tools print it, is no part of the line.
fn is_code(line: &str) -> bool {
    let unnumbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let line = unnumbered.strip_prefix(['→', '|', ':', '\t']).unwrap_or(line).trim();
    line.ends_with([';', ',', '{', '}', '(', '[', '\\', '>', '/'])
        || line.starts_with(['}', ')', ']', '#', '<'])
        || ["//", "/*", "*/"].iter().any(|mark| line.starts_with(mark))
        || !line.contains(char::is_alphanumeric)
}

/// The calls before a cut whose last try failed and was not followed by one that succeeded anywhere in
/// the thread, the newest last.
pub(super) fn unmended(past: &ThreadTexts, cut: usize) -> Vec<String> {
    const LISTED: usize = 4;
    let sources = &past.sources;
    let mut last: HashMap<String, (usize, Option<[&str; 2]>)> = HashMap::new();
    for (at, source) in sources.iter().enumerate() {
        let Some(call) = source.call.and_then(|call| sources.get(call)) else { continue };
        let failed = source.failure.as_deref().map(|failure| [call.outline.as_str(), failure]);
        last.insert(work(&call.outline), (at, failed));
    }
    let told = past.earlier(cut).into_iter().flat_map(|earlier| &earlier.failed);
    let is_open = |row: &&String| {
        let call = row.strip_prefix("- `").and_then(|row| row.split_once("` → "));
        call.is_some_and(|(call, _)| !last.contains_key(&work(call)))
    };
    let told: Vec<String> = told.filter(is_open).map(|row| format!("{row}\n")).collect();
    let is_old = |at: &usize| sources.get(*at).is_some_and(|source| source.message < cut);
    let failed = last.into_values().filter_map(|(at, failed)| Some((at, failed?)));
    let failed: BTreeMap<usize, [&str; 2]> = failed.filter(|(at, _)| is_old(at)).collect();
    let failed = failed.into_values().map(|[call, failure]| {
        let (call, failure) = (clipped(call, 100), clipped(failure, 160));
        format!("- `{}` → {failure}\n", call.replace('`', "'"))
    });
    let mut rows: Vec<String> = told.into_iter().chain(failed).collect();
    rows.drain(..rows.len().saturating_sub(LISTED));
    rows
}

/// What precedes a script in a command, which is written anew for each try.
fn script(input: &str) -> Option<&str> {
    const PROGRAMS: [&str; 5] = ["node", "perl", "php", "python", "ruby"];
    let here = input.split_once("<<").map(|(before, _)| before);
    here.or_else(|| {
        let (before, _) = [" -c ", " -e "].iter().find_map(|mark| input.split_once(mark))?;
        let program =
            last_command(before).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        PROGRAMS.contains(&program).then_some(before)
    })
}

/// What a call is a try of: of a command line the last command, by its program and its first word; of
/// other calls the file, or else all arguments.
fn work(outline: &str) -> String {
    let (tool, input) = outline.split_once(": ").unwrap_or(("", outline));
    let first = input.split(", ").next().unwrap_or(input);
    if first.contains('=') && !first.contains(' ') && first.len() < input.len() {
        return outline.to_owned();
    }
    if first.contains(['/', '.']) && !first.contains(' ') {
        return format!("{tool} {first}");
    }
    // Variables and options say how something is tried.
    let is_setting = |word: &str| {
        let name = word.split_once('=').map(|(name, _)| name);
        word.starts_with(['-', '+']) || name.is_some_and(|name| !name.contains(char::is_lowercase))
    };
    let command = last_command(script(input).unwrap_or(outline));
    let mut words = command.split_whitespace().filter(|word| !is_setting(word));
    let first = words.next().unwrap_or(input);
    let second = words.next().filter(|_| !first.contains('=')).unwrap_or_default();
    format!("{tool} {first} {second}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_code_is_no_outcome() {
        for code in ["87→", "12:}", "});", "return ok(found);", "# see below", "<div>", "/**"] {
            assert!(is_code(code), "{code}");
        }
        for told in [
            "5 passed in 0.1s",
            "344",
            "/usr/bin/python3",
            "* All pass",
            "(441 more lines below)",
            "Finished in 3 s",
            "a.rs:3: found",
        ] {
            assert!(!is_code(told), "{told}");
        }
    }

    #[test]
    fn an_answer_is_as_long_in_every_script_and_what_is_cut_is_marked() {
        for line in ["word\n", "\u{4e00}\u{4e8c}\u{4e09}\u{56db}\n"] {
            let long = said(&line.repeat(1_000));
            assert!(clipped(&long, WIDEST * 3 / 2).ends_with('…'), "{line}");
            assert_eq!(said(&line.repeat(300)), line.repeat(300).trim_end().replace('\n', " "));
        }
    }
}
