//! Rewriting names and ids that a provider refuses.
//!
//! A model may call a tool by a name that its own provider refuses in the next request, and hosts
//! may choose any names. So every dialect has a rule for names, which is applied before anything is
//! written. Different names stay different, so a written name identifies one declared tool.
//!
//! Declared tools are named before calls, so a model that calls a tool by its new name changes
//! nothing. Calls and results are paired over the whole thread, not within one turn.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{contract::Change, json::Tree, normal::*, notes, notes::*};
use threadfold_core::message::*;

/// The rule for one kind of name.
pub(super) struct NameRules {
    /// The maximum length of a name, in bytes.
    pub(super) most: usize,
    pub(super) is_legal: fn(char) -> bool,
    /// The replacement of an empty name.
    pub(super) nameless: &'static str,
    /// Whether single spaces are allowed within the name.
    pub(super) spaced: bool,
    /// Whether a name must begin with a letter or `_`.
    pub(super) begins_with_letter: bool,
    pub(super) renewal: Renewal,
}

/// How a refused name is replaced. A hash gives every request the same new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Renewal {
    /// Illegal characters are replaced.
    Mended,
    /// Only the length is limited: the first characters stay, and a hash follows.
    Shortened,
    /// Every name has exactly the maximum length: it is a hash.
    Hashed,
}

/// The names of tools in most dialects.
pub(super) const TOOLS: NameRules = NameRules {
    most: 64,
    is_legal: is_word,
    nameless: "tool",
    spaced: false,
    begins_with_letter: false,
    renewal: Renewal::Mended,
};

/// Whether every provider accepts this character in a name.
pub(super) fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}

fn begins(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_'
}

impl NameRules {
    pub(super) fn accept(&self, name: &str) -> bool {
        let is_exact = match self.renewal {
            Renewal::Mended => false,
            Renewal::Shortened => return name.chars().count() <= self.most,
            Renewal::Hashed => true,
        };
        (1..=self.most).contains(&name.len())
            && (!is_exact || name.len() == self.most)
            && name.chars().all(self.is_legal)
            && !(self.spaced && (name.contains("  ") || name.trim() != name))
            && (!self.begins_with_letter || name.starts_with(begins))
    }

    /// Replaces illegal characters, and shortens the name so that a number can follow.
    pub(super) fn mend(&self, name: &str) -> String {
        const NUMBER: usize = 8;
        if self.renewal != Renewal::Mended {
            return name.to_owned();
        }
        let stand_in = if self.spaced { '-' } else { '_' };
        let mut mended = String::new();
        if self.begins_with_letter && !name.is_empty() && !name.starts_with(begins) {
            mended.push(stand_in);
        }
        for char in name.chars() {
            let char = match char {
                char if (self.is_legal)(char) => char,
                char if self.spaced && char.is_whitespace() => ' ',
                _ => stand_in,
            };
            if !(self.spaced && char == ' ' && (mended.is_empty() || mended.ends_with(' '))) {
                mended.push(char);
            }
            if mended.len() >= self.most - NUMBER {
                break;
            }
        }
        mended.truncate(mended.trim_end().len());
        if mended.is_empty() {
            mended.push_str(self.nameless);
        }
        mended
    }

    /// Returns the new name of this number for a mended name; numbers begin with 1.
    fn numbered(&self, mended: &str, number: u64) -> Text {
        let mark = if self.spaced { '-' } else { '_' };
        match (self.renewal, number) {
            (Renewal::Shortened, _) => short(mended, self.most, number - 1),
            (Renewal::Hashed, _) => {
                let hash = format!("{:016x}", salted(mended, number - 1));
                hash.chars().take(self.most).collect::<String>().into()
            }
            (Renewal::Mended, 1) => mended.into(),
            (Renewal::Mended, _) => format!("{mended}{mark}{number}").into(),
        }
    }
}

/// A name, and the index of the message that contains it, if any.
pub(super) type Found<'m> = (Option<usize>, &'m Text);

/// The rewritten names of one kind.
#[derive(Debug, Default)]
pub(super) struct Renamed(HashMap<Text, Text>);

impl Renamed {
    /// Finds a new name for every name that the rules refuse, and reports it. Equal names get the
    /// same new name, and a new name never equals another name.
    pub(super) fn new(
        names: &[Found<'_>],
        rules: &NameRules,
        notes: &mut Notes,
        note: fn(Text, Text) -> Change,
    ) -> Self {
        let mut renamed = HashMap::new();
        if names.iter().all(|(_, name)| rules.accept(name)) {
            return Self(renamed);
        }
        let mut taken: HashSet<Text> = names.iter().map(|(_, name)| (*name).clone()).collect();
        // Remember the last number of each mended name, so that the time stays linear if many names
        // become the same.
        let mut numbers: HashMap<String, u64> = HashMap::new();
        for (at, name) in names.iter().filter(|(_, name)| !rules.accept(name)) {
            if renamed.contains_key(*name) {
                continue;
            }
            let mended = rules.mend(name);
            let number = numbers.entry(mended.clone()).or_insert(0);
            let to = loop {
                *number += 1;
                let to = rules.numbered(&mended, *number);
                if taken.insert(to.clone()) {
                    break to;
                }
            };
            notes.turn_to(*at).note(note((*name).clone(), to.clone()));
            renamed.insert((*name).clone(), to);
        }
        Self(renamed)
    }

    /// Whether no name was rewritten.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The written form of a name.
    pub(super) fn written(&self, name: &Text) -> Text {
        self.0.get(name).unwrap_or(name).clone()
    }
}

/// Makes the changes that every codec makes first: it repairs the thread, answers open calls at the
/// end unless the thread is `at_rest`, and gives every tool a legal name.
pub(super) fn begin(
    request: &Request,
    codec: &'static str,
    rules: (&NameRules, bool),
    at_rest: bool,
) -> (Request, Thread, Notes) {
    let (mut messages, mut notes) = notes::prepare(&request.messages, codec);
    if !at_rest {
        notes::answer_open_calls(&mut messages, request.messages.len(), &mut notes);
    }
    let request = legal(request, &mut messages, rules, &mut notes);
    (request, messages, notes)
}

/// Gives every tool, and every call of one, a name that these rules accept: in the messages, which
/// are changed, and in the request, which is returned. The provider's own tools keep their names,
/// and so do calls that the provider answers itself, unless `of_servers` is set.
fn legal(
    request: &Request,
    messages: &mut [(usize, Message)],
    (rules, of_servers): (&NameRules, bool),
    notes: &mut Notes,
) -> Request {
    // The provider's own tools are written unchanged, so their names must stay.
    let tools = request.tools.iter().filter(|tool| {
        tool.input_schema.is_object() || tool.extra.is_empty() || rules.accept(&tool.name)
    });
    let declared: Vec<Found<'_>> = tools.map(|tool| (None, &tool.name)).collect();
    // Rename the declared tools first and independently of the thread: the model calls a tool by
    // its new name, so the declaration must have the same name in the next request.
    let of_tools = Renamed::new(&declared, rules, notes, name_rewritten);
    let written: Vec<Text> = declared.iter().map(|(_, name)| of_tools.written(name)).collect();
    let mut names: Vec<Found<'_>> = written.iter().map(|name| (None, name)).collect();
    for (at, message) in messages.iter() {
        let called = message.content.iter().filter_map(|block| called(block, of_servers));
        let others = called.filter(|name| !of_tools.0.contains_key(*name));
        names.extend(others.map(|name| (Some(*at), name)));
    }
    let mut renamed = Renamed::new(&names, rules, notes, name_rewritten);
    renamed.0.extend(of_tools.0);
    let mut request = request.clone();
    if renamed.is_empty() {
        return request;
    }
    for block in messages.iter_mut().flat_map(|(_, message)| &mut message.make_mut().content) {
        let to = called(block, of_servers).and_then(|name| renamed.0.get(name)).cloned();
        if let ContentBlock::ToolUse(ToolUse { name, .. })
        | ContentBlock::ServerToolUse(ServerToolUse { name, .. }) = block
        {
            *name = to.unwrap_or_else(|| name.clone());
        }
    }
    for tool in Arc::make_mut(&mut request.tools) {
        tool.name = renamed.written(&tool.name);
    }
    if let Some(ToolChoice::Tool(name)) = &mut request.tool_choice {
        *name = renamed.written(name);
    }
    request
}

/// Rewrites the ids of these calls that the rules refuse. An id that is used again in a later turn
/// gets the same new one, and no new id equals the id of another call.
pub(super) fn rewrite_ids(
    thread: &mut Thread,
    rules: &NameRules,
    is_wanted: fn(&ContentBlock) -> bool,
    notes: &mut Notes,
) {
    let mut ids = Vec::new();
    for (at, message) in thread.iter() {
        let calls = message.content.iter().filter(|block| is_wanted(block));
        ids.extend(calls.filter_map(call).map(|(id, _)| (Some(*at), id)));
    }
    let renamed = Renamed::new(&ids, rules, notes, id_rewritten);
    if renamed.is_empty() {
        return;
    }
    for block in thread.iter_mut().flat_map(|(_, message)| &mut message.make_mut().content) {
        call_id_mut(block).into_iter().for_each(|id| *id = renamed.written(id));
    }
}

/// Rewrites the ids of calls that are empty, longer than `most` characters, or used by an earlier
/// call, for providers that want ids to be unique in the whole request. Returns each new id with the
/// id before.
pub(super) fn distinguish_ids(
    thread: &mut Thread,
    most: usize,
    notes: &mut Notes,
) -> HashMap<Text, Text> {
    let calls = thread.iter().flat_map(|(_, message)| message.tool_uses());
    let ids: Vec<Text> = calls.map(|call| call.id.clone()).collect();
    let mut taken: HashSet<Text> = ids.iter().cloned().collect();
    let is_legal = |id: &str| !id.is_empty() && id.chars().count() <= most;
    // Nearly always all ids are legal and unique.
    if taken.len() == ids.len() && ids.iter().all(|id| is_legal(id)) {
        return HashMap::new();
    }
    let mut numbers: HashMap<Text, usize> = HashMap::new();
    let (mut latest, mut before) = (HashMap::new(), HashMap::new());
    for (at, message) in thread {
        notes.turn_to(*at);
        for block in &mut message.make_mut().content {
            let Some(id) = call_id(block).cloned() else { continue };
            if is_call(block) {
                let number = numbers.entry(id.clone()).or_insert(0);
                *number += 1;
                let mut name = id.clone();
                if *number > 1 || !is_legal(&id) {
                    name = numbered(&id, *number, most);
                    while !taken.insert(name.clone()) {
                        *number += 1;
                        name = numbered(&id, *number, most);
                    }
                    notes.note(id_rewritten(id.clone(), name.clone()));
                    before.insert(name.clone(), id.clone());
                }
                latest.insert(id.clone(), name);
            }
            if let (Some(written), Some(name)) = (call_id_mut(block), latest.get(&id)) {
                *written = name.clone();
            }
        }
    }
    before
}

/// Returns the new id for the call with this number among those that have the same id. The first
/// call with a long id needs no number, because its hash distinguishes it.
fn numbered(id: &str, number: usize, most: usize) -> Text {
    let name = match (id, number) {
        ("", _) => format!("call-{number}"),
        (_, 1) => id.to_owned(),
        (_, _) => format!("{id}-{number}"),
    };
    if name.chars().count() <= most { name.into() } else { short(&name, most, 0) }
}

/// Whether the value of a written field is a name that these rules accept.
pub(super) fn is_legal(field: Option<&Tree>, rules: &NameRules) -> bool {
    field.and_then(Tree::text).is_some_and(|name| rules.accept(&name))
}

/// The name of the tool that a block calls.
fn called(block: &ContentBlock, of_servers: bool) -> Option<&Text> {
    let is_host = !matches!(block, ContentBlock::ServerToolUse(_));
    call(block).filter(|_| is_host || of_servers).map(|(_, name)| name)
}

/// The id of a call, and the name of its tool.
fn call(block: &ContentBlock) -> Option<(&Text, &Text)> {
    let (ContentBlock::ToolUse(ToolUse { id, name, .. })
    | ContentBlock::ServerToolUse(ServerToolUse { id, name, .. })) = block
    else {
        return None;
    };
    Some((id, name))
}

fn id_rewritten(from: Text, to: Text) -> Change {
    Change::IdRewritten { from, to }
}

pub(super) fn name_rewritten(from: Text, to: Text) -> Change {
    Change::NameRewritten { from, to }
}

/// Returns the first characters of an id and its hash, together `most` characters.
pub(super) fn short(id: &str, most: usize, salt: u64) -> Text {
    const HASH_DIGITS: usize = 16;
    let kept: String = id.chars().take(most.saturating_sub(HASH_DIGITS + 1)).collect();
    format!("{kept}-{:016x}", salted(id, salt)).into()
}

/// Returns a hash that stays the same in every release: a changed id would invalidate the provider's
/// prompt cache.
fn salted(id: &str, salt: u64) -> u64 {
    fnv1a::hash(fnv1a::START ^ salt, id.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::{Dialect, EncodeOptions, notes};
    use threadfold_core::message::{Json, Role, ToolSpec, ToolUse};

    const DIALECTS: [(Dialect, usize, &str); 5] = [
        (Dialect::Anthropic, 128, "_-"),
        (Dialect::BedrockConverse, 64, "_-"),
        (Dialect::Gemini, 64, "_-.:"),
        (Dialect::OpenAiChat, 64, "_-"),
        (Dialect::OpenAiResponses, 64, "_-"),
    ];

    fn name() -> impl Strategy<Value = String> {
        let odd = ["", "a b", "a_b", "a.b", "2a", "tool", "multi_tool_use.parallel", "\u{e9}"];
        prop_oneof![
            select(odd.to_vec()).prop_map(str::to_owned),
            "[a-c._ ]{1,4}",
            "[a-z]{60,140}",
            any::<String>(),
        ]
    }

    /// The values of every `name` in a body.
    fn written(body: &serde_json::Value, names: &mut Vec<String>) {
        match body {
            serde_json::Value::Object(fields) => {
                // Sort by key: whether `serde_json` keeps the order of the text depends on features
                // that another crate of the build may enable.
                let mut fields = fields.clone();
                fields.sort_keys();
                names.extend(fields.get("name").and_then(|name| name.as_str()).map(str::to_owned));
                fields.values().for_each(|value| written(value, names));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| written(item, names)),
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::String(_) => {}
        }
    }

    fn request(tools: &[String], calls: &[String]) -> Request {
        let schema = || Json::parse(r#"{"type":"object"}"#).unwrap();
        let call = |(at, name): (usize, &String)| {
            let input = Json::parse("{}").unwrap();
            ToolUse::new(format!("t{at}"), name.as_str(), input).into()
        };
        let calls = calls.iter().enumerate().map(call).collect();
        let calls = Message::new(Role::Assistant, calls);
        let mut request = Request::new(vec![Message::user("Go."), calls]);
        let tools = tools.iter().map(|name| ToolSpec::new(name.as_str(), "", schema()));
        request.tools = tools.collect::<Vec<_>>().into();
        request
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

        #[test]
        fn every_dialect_writes_names_that_it_accepts_and_finds_the_tool_again(
            tools in vec(name(), 0..5),
            calls in vec(name(), 1..5),
        ) {
            for (codec, most, others) in DIALECTS {
                let encoded = codec.encode(&request(&tools, &calls), &EncodeOptions::default());
                let mut names = Vec::new();
                written(&encoded.body.to_value().unwrap(), &mut names);
                for name in &names {
                    let legal = |char: char| char.is_ascii_alphanumeric() || others.contains(char);
                    prop_assert!((1..=most).contains(&name.len()) && name.chars().all(legal), "{name:?}");
                }
                // Each tool is declared, and different ones under different names.
                let mut declared: Vec<&str> = names.iter().map(|name| encoded.declared_name(name)).collect();
                declared.sort_unstable();
                for tool in &tools {
                    prop_assert!(declared.contains(&tool.as_str()), "{tool:?} in {declared:?}");
                }
            }
        }
    }

    #[test]
    fn a_model_that_calls_by_the_new_name_changes_it_for_nobody() {
        let names = |calls: &[&str]| {
            let calls: Vec<String> = calls.iter().map(|name| (*name).to_owned()).collect();
            let tools = ["fs.read".to_owned(), "fs read".to_owned()];
            let encoded =
                Dialect::OpenAiChat.encode(&request(&tools, &calls), &EncodeOptions::default());
            let mut names = Vec::new();
            written(&encoded.body.to_value().unwrap(), &mut names);
            names
        };
        assert_eq!(names(&["fs.read"]), ["fs_read", "fs_read", "fs_read_2"]);
        assert_eq!(
            names(&["fs_read_2", "fs_read"]),
            ["fs_read_2", "fs_read", "fs_read", "fs_read_2"]
        );
    }

    #[test]
    fn a_thread_of_legal_names_keeps_its_handles() {
        let request = request(&["read".to_owned()], &["read".to_owned()]);
        let (mut messages, mut notes) = notes::prepare(&request.messages, "c");
        let made = legal(&request, &mut messages, (&TOOLS, false), &mut notes);
        assert!(Arc::ptr_eq(&made.tools, &request.tools));
        let pairs = messages.iter().zip(request.messages.iter());
        assert!({ pairs }.all(|((_, after), before)| after.ptr_eq(before)));
    }

    #[test]
    fn a_new_id_is_nobody_elses() {
        let call = |id: &str| ToolUse::new(id, "read", Json::parse("{}").unwrap()).into();
        let calls = |ids: [&str; 4]| Message::new(Role::Assistant, ids.map(call).into());
        let rules = NameRules { nameless: "call", ..TOOLS };
        let (mut thread, mut notes) = notes::prepare(&[calls(["a.b", "a_b", "a:b", ""])], "c");
        rewrite_ids(&mut thread, &rules, |_| true, &mut notes);
        assert_eq!(thread[0].1, calls(["a_b_2", "a_b", "a_b_3", "call"]));
    }

    #[test]
    fn ids_of_another_length_become_hashes_of_it() {
        let call = |id: &str| ToolUse::new(id, "f", Json::default()).into();
        let ids = ["turn1_0", "", "abcdefghij", "aB3dE6gH9", "call-six1"];
        let message = Message::new(Role::Assistant, ids.map(call).into());
        let (mut thread, mut notes) = notes::prepare(&[message], "c");
        let is_legal = |char: char| char.is_ascii_alphanumeric();
        let rules = NameRules { most: 9, is_legal, renewal: Renewal::Hashed, ..TOOLS };
        rewrite_ids(&mut thread, &rules, is_call, &mut notes);
        let written: Vec<Text> = thread[0].1.tool_uses().map(|call| call.id.clone()).collect();
        assert_eq!(written[3].as_str(), ids[3]);
        assert!(written.iter().all(|id| rules.accept(id)), "{written:?}");
        assert_eq!(written.iter().collect::<HashSet<_>>().len(), ids.len());
    }

    #[test]
    fn long_ids_become_short_unique_and_the_same_every_time() {
        let call = |id: &str| ToolUse::new(id, "f", Json::default()).into();
        let ids = [format!("{}a", "x".repeat(60)), format!("{}b", "x".repeat(60)), "é".repeat(40)];
        let message = Message::new(Role::Assistant, ids.iter().map(|id| call(id)).collect());
        let (mut thread, mut notes) = notes::prepare(&[message], "c");
        let rules = NameRules { most: 40, renewal: Renewal::Shortened, ..TOOLS };
        rewrite_ids(&mut thread, &rules, is_call, &mut notes);
        let short: Vec<Text> = thread[0].1.tool_uses().map(|call| call.id.clone()).collect();
        assert_eq!(short[0], "xxxxxxxxxxxxxxxxxxxxxxx-1ae3f85d5cfafb9c");
        assert_ne!(short[0], short[1]);
        assert_eq!(short[2].as_str(), ids[2]);
        assert!(short.iter().all(|name| name.chars().count() <= 40));
    }
}
