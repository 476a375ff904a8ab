//! A model that summarises offline: it extracts the most informative parts of a thread.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
};

use async_trait::async_trait;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use super::scripted::{Scripted, answer_of, deltas, estimated};
use crate::{
    message::{
        Answer, ContentBlock, Delta, Message, ModelError, Opaque, Request, Role, Text, ToolUse,
    },
    model::{self, Model},
    prose::{
        FactClass, Kind, Span, Speaker, one_line, paragraphs, passages_of, sentences, spans, tokens,
    },
    render::read_back,
    tokens,
};

/// Answers a request for a summary with the most informative sentences, paths, commands and errors
/// of the messages. Deterministic and offline, so that examples and tests get real summaries. If the
/// question asks for quotes of the user's rules, it quotes sentences that begin with a word such as
/// `Never`.
///
/// The last message is regarded as the question and not summarised. The answer has at most a
/// quarter of the bytes of the other messages (but up to 120 in any case), and at most three bytes
/// per token of [`Request::max_output`]. Asked to compact [natively](Model::compact_natively), it
/// summarises all messages in an opaque block of its own. A transcript in tags counts as its messages. If the request has the tool `edl`, as
/// those of a [`CompactionRun`](crate::strategy::CompactionRun), it edits `/summary.md` instead.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{Message, Request, model::Model, testing::ExtractiveModel};
///
/// let request = Request::new(vec![
///     Message::user("Fix src/parser.rs. Never touch the lexer, whatever happens to it."),
///     Message::assistant("I read src/parser.rs and found that it parses nothing at all yet."),
///     Message::user("Sum it up."),
/// ]);
/// let answer = block_on(ExtractiveModel.complete(request))?;
/// assert!(answer.text().contains("Never touch the lexer"), "{}", answer.text());
/// # Ok::<(), threadfold::model::ModelError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtractiveModel;

/// Lower bound for the size limit of a summary, in bytes.
const MIN: usize = 120;

impl ExtractiveModel {
    fn answer(request: &Request) -> Answer {
        let edits = request.tools.iter().any(|tool| tool.name == "edl");
        let old = request.messages.split_last().map_or(&[][..], |(_, old)| old);
        let old = &*without_transcripts(old);
        let message = if edits {
            edit(request)
        } else {
            let question = request.messages.last();
            let question: String =
                question.into_iter().flat_map(Message::texts).map(|text| text.as_str()).collect();
            Message::assistant(sum_up(old, request.max_output) + &quotes(old, &question))
        };
        estimated(request, answer_of(message))
    }
}

/// The messages, with those of a transcript in place of it.
fn without_transcripts(messages: &[Message]) -> Vec<Message> {
    let read = |message: &Message| match message.content.as_slice() {
        [ContentBlock::Text(text)] if text.text.starts_with("<transcript") => {
            let inside = text.text.split_once('\n').and_then(|(_, rest)| rest.rsplit_once('\n'));
            read_back::texts(inside.map_or(&text.text, |(inside, _)| inside))
        }
        _ => vec![message.clone()],
    };
    messages.iter().flat_map(read).collect()
}

/// The list of the user's rules in these messages, if the question asks for it.
fn quotes(messages: &[Message], question: &str) -> String {
    let rules = Findings::of(messages).rules.items;
    if rules.is_empty() || !question.contains("<user_rules>") {
        return String::new();
    }
    format!("\n<user_rules>\n- {}\n</user_rules>", rules.join("\n- "))
}

/// The summary of these messages.
fn sum_up(old: &[Message], most: Option<u64>) -> String {
    let bytes = usize::try_from(tokens::text_bytes(old)).unwrap_or(usize::MAX);
    let most = most.and_then(|tokens| usize::try_from(tokens).ok());
    let most = most.unwrap_or(2_000).saturating_mul(3);
    write(Findings::of(old), most.min((bytes / 4).max(MIN)))
}

/// An edit of `/summary.md` for the chunk of a transcript in the first message; plain text once the
/// results of the edit have arrived.
fn edit(request: &Request) -> Message {
    if request.messages.iter().any(|message| message.tool_results().next().is_some()) {
        return Message::assistant("Done.");
    }
    let prompt = request.messages.first().and_then(|message| message.content.first());
    let prompt = prompt.and_then(ContentBlock::as_text).map_or("", |text| text.as_str());
    let chunk = prompt.split_once("\nThe new chunk:\n").map_or(prompt, |(_, chunk)| chunk);
    let number = prompt.split_once("chunk ").and_then(|(_, rest)| rest.split_once(' '));
    let number = number.map_or("", |(number, _)| number);
    let most = (chunk.len() / 8).clamp(MIN, 4_000);
    let messages = read_back::messages(chunk);
    let body = write(Findings::of(&messages), most).replace("## ", "### ");
    let quotes = quotes(&messages, prompt);
    // No line of the body can end the heredoc: each begins with a Markdown mark or a tag, or is
    // blank.
    let script = format!(
        "file /summary.md\nselect eof\ninsert_after <<PART\n## Part {number}\n\n{body}\n{quotes}\n\nPART\n"
    );
    let input = serde_json::json!({ "script": script });
    let call = ToolUse::new(format!("edit_{number}"), "edl", input);
    Message::new(Role::Assistant, vec![ContentBlock::text("DONE"), call.into()])
}

#[async_trait]
impl Model for ExtractiveModel {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    async fn compact_natively(
        &self,
        request: Request,
        _instructions: Option<Text>,
    ) -> Result<Option<Answer>, ModelError> {
        let text = sum_up(&request.messages, request.max_output);
        let value = serde_json::json!({"type": "compaction", "content": text});
        let message = Message::new(Role::Assistant, vec![Opaque::new("extractive", value).into()]);
        Ok(Some(estimated(&request, answer_of(message))))
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let answer = stream::once(async move { Scripted::from(Self::answer(&request)) });
        answer.map(|answer| stream::iter(deltas(answer))).flatten().boxed()
    }
}

/// Writes the findings as sections in at most `most` bytes. The sections take turns, so that a long
/// list does not displace another.
fn write(findings: Findings, most: usize) -> String {
    let (files, statements) = (findings.files().take(16).collect(), findings.statements());
    let mut sections = [
        ("Earlier", findings.earlier),
        ("Request", ends(findings.requests.items, 8)),
        ("Files", files),
        ("Commands", ends(findings.commands.items, 12)),
        ("Errors", ends(findings.errors.items, 12)),
        ("State", statements),
    ]
    .map(|(name, items)| Section { name, waiting: items.into(), lines: Vec::new() });
    let mut left = most;
    loop {
        let mut progress = false;
        for section in &mut sections {
            progress |= section.add_next(&mut left);
        }
        if !progress {
            break;
        }
    }
    let filled = sections.iter().filter(|section| !section.lines.is_empty());
    let texts =
        filled.map(|section| format!("## {}\n\n{}", section.name, section.lines.join("\n")));
    let text = texts.collect::<Vec<_>>().join("\n\n");
    if text.is_empty() { "Nothing of note was said.".to_owned() } else { text }
}

struct Section {
    name: &'static str,
    waiting: VecDeque<String>,
    lines: Vec<String>,
}

impl Section {
    /// Moves the next item to the lines if it fits the remaining bytes, else drops all items that
    /// do not fit. Returns whether the section moved an item or has one left.
    fn add_next(&mut self, left: &mut usize) -> bool {
        let frame = 3 + if self.lines.is_empty() { self.name.len() + 6 } else { 0 };
        let Some(item) = self.waiting.front() else { return false };
        if let Some(rest) = left.checked_sub(item.len() + frame) {
            *left = rest;
            self.lines.extend(self.waiting.pop_front().map(|item| format!("- {item}")));
            return true;
        }
        let room = left.saturating_sub(frame);
        self.waiting.retain(|item| item.len() <= room);
        !self.waiting.is_empty()
    }
}

/// Returns at most `most` items of a list, from both ends: the first, the last, the second, and so
/// on, because the middle usually matters least.
fn ends(items: Vec<String>, most: usize) -> Vec<String> {
    let mut items = VecDeque::from(items);
    let mut from_both = Vec::with_capacity(most);
    while let Some(first) = items.pop_front().filter(|_| from_both.len() < most) {
        from_both.push(first);
        from_both.extend(items.pop_back());
    }
    from_both.truncate(most);
    from_both
}

/// The findings in a thread. Each list is in the order of the thread and without duplicates.
#[derive(Default)]
pub(super) struct Findings {
    /// The first two sentences of each message of the user.
    pub(super) requests: Distinct,
    /// The user's sentences that begin like a rule.
    pub(super) rules: Distinct,
    /// Commands that tools ran.
    pub(super) commands: Distinct,
    /// Lines that report a failure.
    pub(super) errors: Distinct,
    /// Texts of earlier summaries.
    pub(super) earlier: Vec<String>,
    /// For each path: the number of its mentions, whether a tool wrote it, and the rank of its
    /// first mention.
    files: BTreeMap<String, (usize, bool, usize)>,
    /// The model's sentences.
    sentences: Vec<String>,
    /// How often each of the model's words occurs.
    words: HashMap<String, usize>,
}

/// A tool whose name contains one of these words writes the paths in its input.
const WRITING: [&str; 6] = ["write", "edit", "create", "patch", "replace", "insert"];

impl Findings {
    /// Returns the findings in these messages.
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut findings = Self::default();
        for message in messages {
            message.content.iter().for_each(|block| findings.read(message.role, block));
        }
        findings
    }

    /// Returns a line for each path: first the paths that a tool wrote, then the most mentioned.
    pub(super) fn files(&self) -> impl Iterator<Item = String> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|(_, (count, written, order))| (!written, Reverse(*count), *order));
        files.into_iter().map(|(path, (count, written, _))| {
            format!("{path} ({}, {count}x)", if *written { "changed" } else { "seen" })
        })
    }

    /// Returns the 24 sentences of the model whose words are most common in the thread on average,
    /// in order. Skips short, very long and repeated ones.
    pub(super) fn statements(&self) -> Vec<String> {
        let mut scored: Vec<(usize, usize, &String)> = Vec::new();
        let mut seen = BTreeSet::new();
        for (order, sentence) in self.sentences.iter().enumerate() {
            let found: Vec<String> = words(sentence).collect();
            if found.len() < 5 || sentence.len() > 400 || !seen.insert(sentence) {
                continue;
            }
            let sum: usize = found.iter().filter_map(|word| self.words.get(word)).sum();
            // Later sentences weigh a little more: they describe the current state.
            let score = sum * 100 / found.len() + order * 50 / self.sentences.len().max(1);
            scored.push((score, order, sentence));
        }
        scored.sort_by_key(|(score, order, _)| (Reverse(*score), *order));
        scored.truncate(24);
        scored.sort_by_key(|(_, order, _)| *order);
        scored.into_iter().map(|(_, _, sentence)| sentence.clone()).collect()
    }

    fn read(&mut self, role: Role, block: &ContentBlock) {
        if let ContentBlock::Summary(summary) = block {
            self.earlier.push(summary.text.to_string());
            return;
        }
        let call = if let ContentBlock::ToolUse(call) = block { Some(call) } else { None };
        let tool = call.map(|call| call.name.to_lowercase()).unwrap_or_default();
        let writes = WRITING.iter().any(|word| tool.contains(word));
        let speaker = if role == Role::User { Speaker::User } else { Speaker::Assistant };
        passages_of(speaker, block, &mut |speaker, kind, text| {
            match (speaker, kind) {
                // The content of a written file is not part of the conversation.
                (_, Kind::Output) if call.is_some() => return,
                (Speaker::User, Kind::Said) => self.read_request(text),
                (Speaker::Assistant, Kind::Said) => self.read_statements(text),
                (Speaker::User | Speaker::Assistant | Speaker::Tool, _) => {}
            }
            let written = writes && kind == Kind::Path;
            spans(speaker, kind, text, &mut |span| self.read_span(kind, written, span));
        });
    }

    fn read_request(&mut self, text: &str) {
        let paragraphs = paragraphs(text);
        let opening = paragraphs.iter().flat_map(|paragraph| sentences(paragraph)).take(2);
        self.requests.add(&opening.collect::<Vec<_>>().join(" "));
        let sentences = paragraphs.iter().flat_map(|paragraph| sentences(paragraph));
        sentences.filter(|sentence| begins_like_rule(sentence)).for_each(|it| self.rules.add(it));
    }

    fn read_statements(&mut self, text: &str) {
        for paragraph in paragraphs(text) {
            self.sentences.extend(sentences(&paragraph).map(str::to_owned));
        }
        for word in words(text) {
            *self.words.entry(word).or_default() += 1;
        }
    }

    fn read_span(&mut self, kind: Kind, written: bool, span: Span<'_>) {
        match span.class {
            FactClass::Command => self.commands.add(span.text),
            // A bare error code is part of a line that is added.
            FactClass::Error if span.text.contains(' ') => self.errors.add(span.text),
            FactClass::Path if kind != Kind::Output => {
                let order = self.files.len();
                let path = span.text.to_owned();
                let (count, was_written, _) = self.files.entry(path).or_insert((0, false, order));
                *count += 1;
                *was_written |= written;
            }
            FactClass::Error
            | FactClass::Path
            | FactClass::Task
            | FactClass::Url
            | FactClass::Identifier
            | FactClass::Version
            | FactClass::Hash
            | FactClass::Number
            | FactClass::Quote => {}
        }
    }
}

/// Whether a sentence begins like a rule in English. A real model reads more than the first word.
fn begins_like_rule(sentence: &str) -> bool {
    const FIRST: [&str; 8] = ["never", "always", "don't", "do not", "only", "no", "use", "answer"];
    let lower = sentence.to_lowercase();
    FIRST.iter().any(|first| lower.strip_prefix(first).is_some_and(|rest| rest.starts_with(' ')))
}

/// A list without duplicates.
#[derive(Default)]
pub(super) struct Distinct {
    pub(super) items: Vec<String>,
    seen: HashSet<String>,
}

impl Distinct {
    /// Adds a text, on one line, unless it is blank or in the list.
    fn add(&mut self, text: &str) {
        let text = one_line(text).into_owned();
        if !text.is_empty() && self.seen.insert(text.clone()) {
            self.items.push(text);
        }
    }
}

/// The words of more than three characters, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = tokens(text).map(|token| token.text);
    words.filter(|word| word.chars().count() > 3).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_commands_and_errors_are_found() {
        let findings = Findings::of(&[
            Message::user("Fix the parser. Never touch the lexer."),
            Message::assistant("Running it.\n```bash\ncargo test\n```"),
            Message::user("error[E0502]: cannot borrow"),
        ]);
        assert_eq!(findings.rules.items, ["Never touch the lexer."]);
        assert_eq!(findings.commands.items, ["cargo test"]);
        assert_eq!(findings.errors.items, ["error[E0502]: cannot borrow"]);
    }
}
