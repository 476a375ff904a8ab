//! What the user typed, sentence by sentence and word for word.
//!
//! A statement is a sentence of the user, with the heading of its list if it is an item of one. All
//! statements stay in the order in which they were typed. If there is not room for all, those come
//! first that are short, rare and not repeated: no list of words decides, so all languages are read
//! alike. A later statement with nearly the same words pushes an earlier one to the end of this
//! order, but never deletes it, because both may hold. Only what a model
//! [quotes](crate::ledger::Quotes) as taken back, with the later sentence that does so, is omitted.
//!
//! A later statement is near an earlier one if it has two thirds of its words, but not all. One
//! with half of the words stays in the list even if the summary before the list has it, so that the
//! older value is not the last that is read. A statement is read once, with its keys and words,
//! when its message is read.
//!
//! The statements of a message with an author are the author's, and a list says so. The same words of
//! two authors are two statements.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use serde::{Deserialize, Serialize};

use super::pasted;
use crate::{
    ledger::{Reports, TakenBack, typed},
    message::{Author, Message, Role},
    prose::{
        LONGEST, TASK, TYPED, hash, heading, is_unspaced, key_by, left_out_line, named, one_line,
        own_key, paragraphs, read_named, sentences, typed_items, without_stress, words_key,
    },
    tokens::TokenCounter,
};

/// The maximum number of statements, if no window gives a smaller one. Above twice this number, the
/// least valuable are dropped.
const MOST: usize = 1_000;

/// The maximum number of earlier statements that a new one is compared with: the latest of those that
/// share its rarest words, because users correct what they said last. So the time stays linear.
const COMPARED: usize = 16;

/// The maximum number of latest statements with a word that are looked at to find those.
const LOOKED_AT: usize = 64;

/// The statements of the user, in order.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct Statements {
    /// In the order in which they were typed.
    all: Vec<Statement>,
    by_key: HashMap<String, usize>,
    /// The places of the statements with each word, in order.
    by_word: HashMap<u64, Vec<usize>>,
    /// How many were dropped because there were too many.
    dropped: usize,
    /// How many the first message has that has any.
    first: usize,
    /// Whether a summary was read.
    has_list: bool,
}

/// A statement. What follows from its words is not stored.
#[doc(hidden)]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Statement {
    /// The words as typed, on one line.
    pub text: String,
    /// The person who typed them, if the message has an author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    #[serde(skip)]
    key: String,
    /// Its sentences, if it has several.
    #[serde(skip)]
    sentences: Vec<Sentence>,
    /// The distinct words without those of the label, hashed and sorted.
    #[serde(skip)]
    words: Vec<u64>,
    /// Whether a later statement has nearly the same words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_overtaken: bool,
    /// Whether it has half of the words of an earlier statement, and may give a newer value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    may_correct: bool,
    /// Whether the user repeated it later, so that this place no longer counts.
    #[serde(skip)]
    is_repeated: bool,
    /// How often the user has typed it.
    times: u64,
}

/// A sentence of a statement.
#[derive(Clone, Debug)]
struct Sentence {
    text: String,
    key: String,
}

impl Statement {
    fn new(author: Option<Author>, text: String, times: u64) -> Self {
        let key_by = |text: &str| key_by(author.as_ref(), text);
        let key = key_by(&text);
        let sentences = sentences(&text);
        let mut sentences: Vec<Sentence> =
            sentences.map(|it| Sentence { text: it.to_owned(), key: key_by(it) }).collect();
        if sentences.len() < 2 {
            sentences.clear();
        }
        let own_key = own_key(&key);
        let words = words(heading(own_key).map_or(own_key, |(_, body)| body));
        let (is_overtaken, may_correct, is_repeated) = (false, false, false);
        Self { text, author, key, sentences, words, is_overtaken, may_correct, is_repeated, times }
    }

    /// The keys of its sentences and its own.
    fn keys(&self) -> impl Iterator<Item = &String> {
        self.sentences.iter().map(|sentence| &sentence.key).chain([&self.key])
    }
}

/// The stored form.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct StoredStatements {
    pub(super) all: Vec<Statement>,
    #[serde(default)]
    dropped: usize,
}

impl Statements {
    /// Returns the statements of these messages.
    pub fn of(messages: &[Message]) -> Self {
        let mut statements = Self::default();
        // A system prompt at the beginning is no part of the conversation.
        let prompt = messages.first().is_some_and(|first| first.role == Role::System);
        messages.iter().skip(usize::from(prompt)).for_each(|message| statements.read(message));
        statements
    }

    /// Whether a message may have typed text or a list of it. Others need not be read.
    pub(super) fn may_read(message: &Message) -> bool {
        message.is_typed() || message.is_summary() || message.role == Role::System
    }

    /// Reads the next message: the text that the user typed or the host said in it, or the list in its
    /// summary.
    pub fn read(&mut self, message: &Message) {
        message.summaries().for_each(|summary| self.read_list(&summary.text));
        let message = &*message.spoken();
        for text in Self::typed(message) {
            for paragraph in headed(&text) {
                let author = message.author.as_ref();
                statements_in(&paragraph).for_each(|text| self.add(author, text));
            }
        }
        if self.first == 0 {
            self.first = self.all.len();
        }
    }

    /// Reads the list in a summary. It repeats what was said before it, so it does not make it newer.
    /// What is new in the first one was said before the messages that stand before the summary, because
    /// a compaction keeps the newest text of the user there, after the task if it keeps that too.
    fn read_list(&mut self, summary: &str) {
        let items = typed_items(summary).into_iter().map(read_named);
        let new = items.filter(|(by, text)| !self.by_key.contains_key(&key_by(by.as_ref(), text)));
        let (new, mut later): (Vec<(Option<Author>, &str)>, _) = (new.collect(), Vec::new());
        if !std::mem::replace(&mut self.has_list, true) && !new.is_empty() {
            let has_task = summary.lines().any(|line| line == TASK);
            let Self { mut all, dropped, first, .. } = std::mem::take(self);
            (self.dropped, self.first, self.has_list) = (dropped, first, true);
            later = all.split_off(if has_task { 0 } else { first.min(all.len()) });
            all.iter().for_each(|it| self.add(it.author.as_ref(), &it.text));
        }
        new.into_iter().for_each(|(author, text)| self.add(author.as_ref(), text));
        later.iter().for_each(|it| self.add(it.author.as_ref(), &it.text));
    }

    /// The texts of a message that are statements: without what the user quoted, fenced or pasted.
    pub fn typed(message: &Message) -> impl Iterator<Item = String> {
        typed(message, Reports::Named).map(|text| pasted::without(&text))
    }

    /// The statements, in the order in which they were typed. A repeated one is at its last place.
    pub fn holding(&self) -> impl Iterator<Item = &Statement> {
        self.all.iter().filter(|statement| !statement.is_repeated)
    }

    /// The keys by which the statements and their sentences are compared.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.holding().flat_map(Statement::keys).map(String::as_str)
    }

    /// The statements whose key is not in `elsewhere`.
    pub fn unstated<'s>(
        &'s self,
        elsewhere: &'s HashSet<String>,
    ) -> impl Iterator<Item = &'s Statement> {
        self.holding().filter(|statement| !elsewhere.contains(&statement.key))
    }

    /// The keys of the statements that may give a newer value than an earlier one, and of their
    /// sentences.
    pub fn newer_keys(&self) -> impl Iterator<Item = &str> {
        let newer = self.holding().filter(|statement| statement.may_correct);
        newer.flat_map(Statement::keys).map(String::as_str)
    }

    /// Returns the keys of what the user took back with later statements, and of its sentences. A
    /// statement that the user typed again after the later one is not among them, nor is a sentence
    /// that the later one repeats, nor anything if the later one is not known any more.
    pub fn taken_back<'a>(&self, pairs: impl Iterator<Item = &'a TakenBack>) -> HashSet<String> {
        let (mut taken_back, mut pairs) = (HashSet::new(), pairs.peekable());
        if pairs.peek().is_none() {
            return taken_back;
        }
        // The last place of each text, with the key under which a list shows it. Items of a list
        // are typed without their heading.
        let mut last: HashMap<(Option<&Author>, &str), (usize, &str)> = HashMap::new();
        for (at, statement) in self.all.iter().enumerate() {
            let author = statement.author.as_ref();
            let item = heading(own_key(&statement.key)).map(|(_, item)| item);
            let whole = statement.key.as_str();
            last.extend(item.map(|item| ((author, item), (at, whole))));
            last.extend(statement.keys().map(|key| ((author, own_key(key)), (at, key.as_str()))));
        }
        let mut authors: Vec<Option<&Author>> = last.keys().map(|(author, _)| *author).collect();
        authors.sort_unstable();
        authors.dedup();
        for pair in pairs {
            let later: HashSet<String> = keys_of(&pair.later).collect();
            let of_later = later.iter().map(|key| (pair.author.as_ref(), key.as_str()));
            let Some(newest) = of_later.filter_map(|key| last.get(&key)).max() else { continue };
            let is_before = |(at, _): &(usize, &str)| *at < newest.0;
            for key in keys_of(&pair.earlier).filter(|key| !later.contains(key)) {
                let concerned = authors.iter().filter(|author| pair.concerns(**author));
                let earlier = concerned.filter_map(|author| last.get(&(*author, &*key)).copied());
                taken_back.extend(earlier.filter(is_before).map(|(_, key)| key.to_owned()));
            }
        }
        taken_back
    }

    /// Returns the value of a statement: how rare its words are among the statements, in thousandths
    /// of a bit for each word. A repeated statement has less, and one that a later statement
    /// overtook much less.
    pub fn worth(&self, statement: &Statement) -> u64 {
        let all = self.all.len().max(1) as u64 * 4;
        let rarity = statement.words.iter().map(|word| {
            let count = self.by_word.get(word).map_or(1, Vec::len).max(1) as u64;
            u64::from((all / count).max(1).ilog2())
        });
        let rarity: u64 = rarity.fold(0, u64::saturating_add).saturating_mul(1_000);
        let rarity = rarity / statement.words.len().max(1) as u64;
        let rarity = rarity / statement.times.saturating_mul(statement.times).max(1);
        if statement.is_overtaken { rarity / 16 } else { rarity }
    }

    /// Returns what a list may show, with the tokens of each line. Statements and sentences with a
    /// key in `elsewhere` are left out; those with a key in `first` are chosen before all others, and
    /// those that a later statement overtook after all others.
    pub fn listing(
        &self,
        counter: &dyn TokenCounter,
        elsewhere: &HashSet<String>,
        first: &HashSet<String>,
    ) -> Listing {
        let lines = self.lines(counter, elsewhere, first);
        let whole = match lines.is_empty() {
            true => String::new(),
            false => write(lines.iter().collect(), self.dropped, |line| &line.whole),
        };
        let (tokens, mut lines) = (counter.text(&whole), lines);
        // Of equal statements the latest comes first: most likely it still matters.
        lines.sort_by_key(|line| {
            (Reverse(line.comes_first), line.is_overtaken, Reverse(line.value), Reverse(line.at))
        });
        let most = self.dropped.saturating_add(lines.len());
        let frame = counter.text(TYPED) + 1 + counter.text(&left_out_line(most));
        Listing { whole, tokens, lines, frame, dropped: self.dropped }
    }

    /// Returns the statements with a sentence that has no key in `elsewhere`, as lines.
    fn lines(
        &self,
        counter: &dyn TokenCounter,
        elsewhere: &HashSet<String>,
        first: &HashSet<String>,
    ) -> Vec<Line> {
        let (mut lines, usual) = (Vec::new(), counter.text(USUAL));
        let mut wanted: HashSet<&str> = first.iter().map(String::as_str).collect();
        let holding: Vec<&Statement> = self.holding().collect();
        // The latest first, because a sentence that comes first needs to be listed only once.
        for (at, statement) in holding.into_iter().enumerate().rev() {
            if elsewhere.contains(&statement.key) {
                continue;
            }
            let is_known = |sentence: &&Sentence| elsewhere.contains(&sentence.key);
            let known = statement.sentences.iter().filter(is_known).count();
            if known > 0 && known == statement.sentences.len() {
                continue;
            }
            let text = match known {
                0 => Cow::Borrowed(statement.text.as_str()),
                _ => {
                    let kept = statement.sentences.iter().filter(|sentence| !is_known(sentence));
                    kept.map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ").into()
                }
            };
            let first = statement.keys().filter(|key| wanted.remove(key.as_str())).count();
            let line = |text: &str| format!("- {}\n", named(statement.author.as_ref(), text));
            let (whole, short) = (line(&text), line(without_stress(&text)));
            let tokens = counter.text(&short);
            let cost = tokens.saturating_add(usual).max(1);
            let value = self.worth(statement).saturating_mul(100) / cost;
            let (is_overtaken, comes_first) = (statement.is_overtaken, first > 0);
            lines.push(Line { at, whole, short, tokens, value, is_overtaken, comes_first });
        }
        lines
    }

    fn add(&mut self, author: Option<&Author>, text: &str) {
        let text = one_line(text);
        let key = key_by(author, &text);
        if own_key(&key).is_empty() || text.len() > LONGEST {
            return;
        }
        let mut times = 1;
        if let Some(earlier) = self.by_key.get(&key).and_then(|at| self.all.get_mut(*at)) {
            earlier.is_repeated = true;
            times = earlier.times.saturating_add(1);
        }
        let mut statement = Statement::new(author.cloned(), text.into_owned(), times);
        for at in self.alike(&statement.words) {
            let Some(earlier) = self.all.get_mut(at) else { continue };
            if statement.may_correct && earlier.is_overtaken {
                continue;
            }
            let shared = shared_words(&earlier.words, &statement.words);
            let has = |all: &[u64], least: (usize, usize)| {
                shared.is_some_and(|shared| shared * least.1 >= all.len() * least.0)
            };
            statement.may_correct |= has(&earlier.words, (1, 2));
            earlier.is_overtaken |= has(&earlier.words, (2, 3)) && has(&statement.words, (2, 3));
        }
        self.push(statement);
        self.keep(MOST);
    }

    /// The places of statements that share a word with these, those of the rarest words first. Of one
    /// that the user repeated, only the last place counts.
    fn alike(&self, words: &[u64]) -> Vec<usize> {
        let mut lists: Vec<&[usize]> =
            words.iter().filter_map(|word| self.by_word.get(word)).map(Vec::as_slice).collect();
        lists.sort_by_key(|places| places.len());
        let mut alike = Vec::with_capacity(COMPARED);
        for place in lists.into_iter().flat_map(|places| places.iter().rev().take(LOOKED_AT)) {
            if alike.len() == COMPARED {
                break;
            }
            let counts = self.all.get(*place).is_some_and(|earlier| !earlier.is_repeated);
            if counts && !alike.contains(place) {
                alike.push(*place);
            }
        }
        alike
    }

    fn push(&mut self, statement: Statement) {
        let at = self.all.len();
        for word in &statement.words {
            self.by_word.entry(*word).or_default().push(at);
        }
        self.by_key.insert(statement.key.clone(), at);
        self.all.push(statement);
    }

    /// If there are more than twice this number, drops repeated statements, and then the least valuable,
    /// the oldest first, down to this number.
    pub(super) fn keep(&mut self, most: usize) {
        if self.all.len() <= 2 * most {
            return;
        }
        let holding = self.all.iter().enumerate().filter(|(_, statement)| !statement.is_repeated);
        let value = |it: &Statement| self.worth(it) / (it.text.len() as u64 + 1);
        let mut kept: Vec<(u64, usize)> = holding.map(|(at, it)| (value(it), at)).collect();
        let held = kept.len();
        kept.sort_unstable_by_key(|(value, at)| (Reverse(*value), Reverse(*at)));
        let kept: HashSet<usize> = kept.into_iter().take(most).map(|(_, at)| at).collect();
        let Self { all, dropped, .. } = std::mem::take(self);
        self.dropped = dropped.saturating_add(held - kept.len());
        for (_, statement) in all.into_iter().enumerate().filter(|(at, _)| kept.contains(at)) {
            self.push(statement);
        }
    }

    /// Returns the statements to be stored.
    pub(super) fn to_stored(&self) -> StoredStatements {
        StoredStatements { all: self.holding().cloned().collect(), dropped: self.dropped }
    }

    /// Returns stored statements. They may come from elsewhere, so their number is limited.
    pub(super) fn of_stored(StoredStatements { all, dropped }: StoredStatements) -> Self {
        let mut statements = Self { dropped, has_list: true, ..Self::default() };
        for it in all.into_iter().take(2 * MOST) {
            let Statement { is_overtaken, may_correct, .. } = it;
            let statement = Statement::new(it.author, it.text, it.times);
            statements.push(Statement { is_overtaken, may_correct, ..statement });
        }
        statements
    }
}

/// A statement of usual length. Its tokens are added to those of each one, so that a very short one
/// has no advantage from its length alone.
const USUAL: &str = "The port of the server is 8080.";

/// What a list of statements may show: every line, with its tokens and its value.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Listing {
    /// The list of all statements, and its tokens.
    whole: String,
    tokens: u64,
    /// The lines, the first to be chosen first.
    lines: Vec<Line>,
    /// The tokens of a list without lines.
    frame: u64,
    dropped: usize,
}

impl Listing {
    /// Returns a list in at most `budget` tokens of this counter, the one that the listing was made
    /// with: statements chosen by their value for each token and listed in the order in which they
    /// were typed; empty if none fits. To make room, it lacks labels that only stress a statement.
    /// The last line counts those that did not fit, with those that were dropped because there were
    /// too many.
    pub fn within(&self, budget: u64, counter: &dyn TokenCounter) -> Cow<'_, str> {
        if self.lines.is_empty() || self.tokens <= budget {
            return Cow::Borrowed(&self.whole);
        }
        let mut room = budget.saturating_sub(self.frame);
        loop {
            let chosen = chosen(&self.lines, room);
            if chosen.is_empty() {
                return Cow::Borrowed("");
            }
            let left_out = self.dropped.saturating_add(self.lines.len() - chosen.len());
            let text = write(chosen, left_out, |line| &line.short);
            let tokens = counter.text(&text);
            if tokens <= budget {
                return Cow::Owned(text);
            }
            // The whole has more tokens than its lines together.
            let less = (tokens - budget).max(room / 16).max(1);
            let Some(left) = room.checked_sub(less) else { return Cow::Borrowed("") };
            room = left;
        }
    }
}

/// A statement as it may be listed.
#[derive(Clone, Debug)]
struct Line {
    at: usize,
    whole: String,
    /// The line without a label that only stresses the statement, and its tokens.
    short: String,
    tokens: u64,
    /// Its value for each token.
    value: u64,
    is_overtaken: bool,
    comes_first: bool,
}

/// Returns the lines that fit this room, the first of this order first. A line that was overtaken is
/// listed only if all others are: in a gap between them it would mislead.
fn chosen(order: &[Line], mut room: u64) -> Vec<&Line> {
    let mut chosen = Vec::new();
    for (before, line) in order.iter().enumerate() {
        if line.is_overtaken && !line.comes_first && chosen.len() < before {
            break;
        }
        if let Some(left) = room.checked_sub(line.tokens) {
            room = left;
            chosen.push(line);
        }
    }
    chosen
}

/// Writes these lines in order, and the number of those that are left out.
fn write(mut lines: Vec<&Line>, left_out: usize, text: fn(&Line) -> &str) -> String {
    lines.sort_unstable_by_key(|line| line.at);
    let mut list = format!("{TYPED}\n");
    lines.into_iter().for_each(|line| list.push_str(text(line)));
    list.push_str(&left_out_line(left_out));
    list
}

/// Returns how many words of an earlier statement a later one has, if it has at least three of them,
/// but not all. If these are half of the earlier one, the later may give a newer value; if they are
/// two thirds of both, it overtakes the earlier.
fn shared_words(earlier: &[u64], later: &[u64]) -> Option<usize> {
    // Both are sorted.
    let shared = earlier.iter().filter(|word| later.binary_search(word).is_ok()).count();
    (shared > 2 && shared < earlier.len()).then_some(shared)
}

/// Returns the keys of a text and of its sentences.
fn keys_of(text: &str) -> impl Iterator<Item = String> {
    [words_key(text)].into_iter().chain(sentences(text).map(words_key))
}

/// Returns the distinct words of a key, hashed and sorted; in scripts without spaces, each two
/// neighbouring characters.
fn words(key: &str) -> Vec<u64> {
    let mut words = Vec::new();
    for word in key.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        if word.contains(is_unspaced) {
            let chars: Vec<char> = word.chars().collect();
            let pairs = chars.windows(chars.len().min(2));
            words.extend(pairs.map(|pair| hash(pair.iter().copied().map(u32::from))));
        } else {
            words.push(hash(word.chars().map(u32::from)));
        }
    }
    words.sort_unstable();
    words.dedup();
    words
}

/// A paragraph of up to this many bytes is one statement if it has a heading of its own.
const SHORT: usize = 300;

/// Returns the statements of a paragraph: its sentences. After a heading, as in `NOTE: text`, the
/// paragraph is one statement, because the heading applies to all of it.
fn statements_in(paragraph: &str) -> impl Iterator<Item = &str> {
    let is_whole = paragraph.len() <= SHORT && heading(paragraph).is_some();
    let whole = is_whole.then_some(paragraph).into_iter();
    whole.chain(sentences(paragraph).filter(move |_| !is_whole))
}

/// Returns the paragraphs of a text. Each item of a list is prefixed with the short heading above
/// the list, so that it can be understood alone.
#[doc(hidden)]
#[must_use]
pub fn headed(text: &str) -> Vec<String> {
    const HEADING: usize = 40;
    let mut lists: HashMap<String, String> = HashMap::new();
    let mut heading: Option<&str> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.trim_start().starts_with(['-', '*', '\u{2022}']) {
            let item = line.trim().trim_start_matches(['-', '*', '\u{2022}']).trim();
            if let Some(heading) = heading {
                lists.insert(one_line(item).into_owned(), heading.trim().to_owned());
            }
        } else {
            let fits = line.len() <= HEADING && line.trim_end().ends_with([':', '\u{ff1a}']);
            heading = fits.then_some(line);
        }
    }
    let headings: HashSet<&String> = lists.values().collect();
    let whole = paragraphs(text).into_iter().filter(|text| !headings.contains(text));
    let headed = whole.map(|text| match lists.get(&text) {
        Some(heading) => format!("{}: {text}", heading.trim_end_matches([':', '\u{ff1a}'])),
        None => text,
    });
    headed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{Role, Summary},
        tokens::ByteEstimate,
    };

    fn of(texts: &[&str]) -> Statements {
        let messages: Vec<Message> = texts.iter().map(|text| Message::user(*text)).collect();
        Statements::of(&messages)
    }

    fn texts(statements: &Statements) -> Vec<&str> {
        statements.holding().map(|statement| statement.text.as_str()).collect()
    }

    fn list(statements: &Statements, budget: u64) -> String {
        let counter = &ByteEstimate::new(1);
        let listing = statements.listing(counter, &HashSet::new(), &HashSet::new());
        listing.within(budget, counter).into_owned()
    }

    #[test]
    fn a_statement_is_compared_by_its_rarest_words_however_much_was_typed_in_between() {
        let fee = |what: &str, fee: usize| format!("The fee of the {what} is ${fee}.");
        let others = (0..40).map(|number| fee(&format!("boat {number}"), 100 + number));
        let repeated = std::iter::repeat_n("Look at the ferry again.".to_owned(), 20);
        let said = [fee("ferry", 301)].into_iter().chain(others).chain(repeated);
        let said: Vec<String> = said.chain([fee("ferry", 401)]).collect();
        let statements = of(&said.iter().map(String::as_str).collect::<Vec<_>>());
        let is_overtaken =
            |text: &str| statements.all.iter().any(|it| it.text == text && it.is_overtaken);
        assert!(is_overtaken(&said[0]) && !is_overtaken("Look at the ferry again."));
    }

    #[test]
    fn a_statement_is_a_sentence_of_the_user_in_any_language() {
        let statements = of(&[
            "The limit is 40. Tabs matter!\n\n\u{4e0d}\u{8981}\u{63d0}\u{4ea4}\u{3002}\u{8c22}\u{8c22}\u{3002}",
            "Ports:\n- proxy 8080\n- server 9090",
            "NOTE: The fee is $30. Ask before you change it.",
        ]);
        let expected = [
            "The limit is 40.",
            "Tabs matter!",
            "\u{4e0d}\u{8981}\u{63d0}\u{4ea4}\u{3002}",
            "\u{8c22}\u{8c22}\u{3002}",
            "Ports: proxy 8080",
            "Ports: server 9090",
            "NOTE: The fee is $30. Ask before you change it.",
        ];
        assert_eq!(texts(&statements), expected);
    }

    #[test]
    fn what_was_said_in_one_breath_is_a_statement_however_long_it_is() {
        let said = format!("{} the keys are in the blue tin", "and so on and on and on".repeat(40));
        let statements = of(&[&said]);
        assert!(texts(&statements).last().unwrap().ends_with("the keys are in the blue tin"));
    }

    #[test]
    fn prose_whose_lines_end_with_a_semicolon_is_no_code() {
        let said =
            "la cl\u{e9} reste toujours chez Malik ;\non ne sonne jamais avant huit heures ;";
        assert!(texts(&of(&[said])).concat().contains("chez Malik"));
        assert_eq!(texts(&of(&["int x = 5;\nreturn x;"])), [""; 0]);
    }

    #[test]
    fn pasted_output_is_no_statement() {
        let log = "It fails so:\n2026-01-02 10:00:01 ERROR pool: gone\n2026-01-02 10:00:02 ERROR pool: gone\nWhy?";
        assert_eq!(texts(&of(&[log])), ["It fails so:", "Why?"]);
    }

    #[test]
    fn a_repeated_statement_stands_at_its_last_place_and_once() {
        assert_eq!(texts(&of(&["Be brief.", "Go on.", "be brief"])), ["Go on.", "be brief"]);
    }

    #[test]
    fn a_later_value_pushes_the_earlier_one_to_the_end_and_deletes_nothing() {
        let said = [
            "The fee for the hall is $30.",
            "Tea is at noon in the hall.",
            "The fee for the hall is $40.",
        ];
        let statements = of(&said);
        assert_eq!(texts(&statements), said);
        let expected = format!("{TYPED}\n- {}\n- {}\n", said[1], said[2]);
        assert!(list(&statements, 109).starts_with(&expected), "{}", list(&statements, 109));
        let whole = format!("{TYPED}\n- {}\n- {}\n- {}\n", said[0], said[1], said[2]);
        assert_eq!(list(&statements, 1_000), whole);
    }

    #[test]
    fn what_the_user_took_back_is_known_until_it_is_typed_again() {
        let said = [
            "COST: The hall is $30 a day. Ask before you book.",
            "Ports:\n- proxy 8080\n- mail 25",
            "COST: The hall is $40 a day. Ask before you book.",
            "The proxy listens on 8443 now.",
            "Tea is at noon.",
            "Tea is at two.",
        ];
        let pair = |earlier: &str, later: &str| TakenBack {
            earlier: earlier.into(),
            later: later.into(),
            author: None,
            own_only: false,
            position: None,
        };
        let pairs = [
            pair(said[0], said[2]),
            pair("proxy 8080", said[3]),
            pair(said[4], said[5]),
            pair("mail 25", "Mail goes elsewhere."),
        ];
        let taken_back = |said: &[&str]| {
            let mut keys: Vec<String> = of(said).taken_back(pairs.iter()).into_iter().collect();
            keys.sort();
            keys
        };
        let whole = "the hall is $30 a day. ask before you book";
        let expected = ["ports: proxy 8080", "tea is at noon", "the hall is $30 a day", whole];
        assert_eq!(taken_back(&said), expected);
        let again = [&said[..], &["Tea is at noon."]].concat();
        assert_eq!(taken_back(&again), ["ports: proxy 8080", "the hall is $30 a day", whole]);
        assert_eq!(taken_back(&said[..2]), [""; 0], "no later statement is known");
    }

    #[test]
    fn what_does_not_fit_is_counted_and_a_list_is_read_back() {
        let said = ["Die Pumpe steht im Keller links.", "Go on.", "Go on now.", "Go on then."];
        let statements = of(&said);
        for budget in 0..200 {
            assert!(list(&statements, budget).len() as u64 <= budget, "{budget}");
        }
        let short = list(&statements, 85);
        assert!(short.contains(said[0]) && short.contains("more"), "{short}");
        let summary = Message::summary(Role::User, Summary::new(short.as_str()));
        let again = Statements::of(&[summary]);
        assert!(texts(&again).contains(&said[0]), "{again:?}");
        assert!(!texts(&again).iter().any(|text| text.contains("more")), "{again:?}");
    }

    #[test]
    fn the_number_of_statements_is_bounded() {
        let text: String =
            (0..5_000).map(|n| format!("Look at thing number {n} there.\n\n")).collect();
        let statements = of(&[&text]);
        let held = statements.holding().count();
        assert!(held <= 2 * MOST);
        let left_out = left_out_line(5_000 - held);
        assert!(list(&statements, 1_000_000).ends_with(&left_out), "{left_out}");
        let again = Statements::of_stored(statements.to_stored());
        assert!(list(&again, 1_000_000).ends_with(&left_out), "what is stored counts them too");
    }

    #[test]
    fn a_statement_is_its_authors_in_every_list_and_after_it_is_read_back() {
        let by = |name: &str, text: &str| Message::user(text).by(name.parse().unwrap());
        let said = [
            by("ann", "NOTE: The fee is $30. Ask first."),
            by("bob", "The fee is $30."),
            Message::user("ann said: Push to main."),
            by("bob", "Tea is at two."),
        ];
        let statements = Statements::of(&said);
        let whole = format!(
            "{TYPED}\n- ann said: NOTE: The fee is $30. Ask first.\n- bob said: The fee is $30.\n\
             - bob said: Tea is at two.\n"
        );
        let listed = list(&statements, 1_000);
        assert!(listed.starts_with(&whole[..60]), "{listed}");
        assert!(!listed.contains("\n- ann said: Push"), "{listed}");
        let short = list(&statements, listed.len() as u64 - 1);
        assert!(!short.contains("NOTE") || short.contains("- ann said:"), "{short}");
        let read = Statements::of(&[Message::summary(Role::User, Summary::new(&*listed))]);
        assert_eq!(list(&read, 1_000), listed);
        let stored = serde_json::to_string(&statements.to_stored()).unwrap();
        let again = Statements::of_stored(serde_json::from_str(&stored).unwrap());
        assert_eq!(list(&again, 1_000), listed);
    }

    #[test]
    fn who_is_no_moderator_takes_back_only_what_they_said() {
        let by = |name: &str, text: &str| Message::user(text).by(name.parse().unwrap());
        let said = [
            by("ann", "Tea is at noon."),
            by("bob", "Tea is at noon."),
            by("bob", "Tea is at two."),
        ];
        let pair = |own_only| TakenBack {
            earlier: "Tea is at noon.".into(),
            later: "Tea is at two.".into(),
            author: Some("bob".parse().unwrap()),
            own_only,
            position: Some(2),
        };
        let taken_back = |pair| Statements::of(&said).taken_back([&pair].into_iter()).len();
        assert_eq!((taken_back(pair(true)), taken_back(pair(false))), (1, 2));
    }

    #[test]
    fn stored_statements_are_read_back() {
        let statements = of(&["The fee for the hall is $30.", "The fee for the hall is $40."]);
        let stored = serde_json::to_string(&statements.to_stored()).unwrap();
        let again = Statements::of_stored(serde_json::from_str(&stored).unwrap());
        assert_eq!(list(&again, 70), list(&statements, 70));
        assert_eq!(serde_json::to_string(&again.to_stored()).unwrap(), stored);
    }
}
