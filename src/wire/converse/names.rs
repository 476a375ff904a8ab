//! The ids of calls and the names of documents: which are legal, and what becomes of the others.

use super::forms::{self, NAME};
use crate::{
    message::{ContentBlock, Json, Message, Text},
    wire::{
        contract::Change,
        names::{Renamed, Rules, call, is_word},
        notes::Notes,
    },
};

/// The ids and names that are written in another form.
#[derive(Debug)]
pub(super) struct Names {
    ids: Renamed,
    documents: Renamed,
}

impl Names {
    /// Finds a new name for every one that the provider refuses. The same name gets the same new
    /// one everywhere, and no new one is another's.
    pub(super) fn rewrite(messages: &[(usize, Message)], notes: &mut Notes) -> Self {
        let calls = || blocks(messages).filter_map(|(at, block)| call(at, block));
        let titles = blocks(messages).flat_map(|(at, block)| titles(at, block));
        let id_note = |from, to| Change::IdRewritten { from, to };
        let name_note = |from, to| Change::NameRewritten { from, to };
        Self {
            ids: Renamed::new(calls().map(|(at, id, _)| (at, id)), &IDS, notes, id_note),
            documents: Renamed::new(titles, &DOCUMENTS, notes, name_note),
        }
    }

    /// The id of a call in the form in which it is written.
    pub(super) fn id(&self, id: &Text) -> Text {
        self.ids.written(id)
    }

    /// The name of a document in the form in which it is written.
    pub(super) fn document(&self, title: &Text) -> Text {
        self.documents.written(title)
    }
}

const IDS: Rules = Rules {
    most: 64,
    is_legal: |char| is_word(char) || matches!(char, '.' | ':'),
    nameless: "call",
    spaced: false,
    begins_with_letter: false,
};
pub(super) const DOCUMENTS: Rules = Rules {
    most: 200,
    is_legal: |char| {
        char.is_ascii_alphanumeric() || matches!(char, ' ' | '-' | '(' | ')' | '[' | ']')
    },
    nameless: "document",
    spaced: true,
    begins_with_letter: false,
};

fn blocks(messages: &[(usize, Message)]) -> impl Iterator<Item = (usize, &ContentBlock)> + Clone {
    messages.iter().flat_map(|(at, message)| message.content.iter().map(move |block| (*at, block)))
}

/// The title of a document, and those of the documents in a result.
fn titles(at: usize, block: &ContentBlock) -> impl Iterator<Item = (Option<usize>, &Text)> + Clone {
    // One that came so was accepted: the provider does not always hold to its rule.
    fn title(block: &ContentBlock) -> Option<&Text> {
        let ContentBlock::Document(document) = block else { return None };
        let came = document.extra.get(NAME, forms::DOCUMENT);
        document.title.as_ref().filter(|title| came != Some(&Json::text(title)))
    }
    let nested = if let ContentBlock::ToolResult(result) = block { &*result.content } else { &[] };
    title(block)
        .into_iter()
        .chain(nested.iter().filter_map(title))
        .map(move |name| (Some(at), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::{Json, Role, ToolUse},
        wire::notes,
    };

    #[test]
    fn a_new_id_is_nobody_elses() {
        let call = |id: &str| ToolUse::new(id, "read", Json::parse("{}").unwrap()).into();
        let long = "x".repeat(70);
        let ids = ["a|b", "a_b", "a/b", "", "a.b:c", &long];
        let calls = Message::new(Role::Assistant, ids.map(call).into());
        let (messages, mut notes) = notes::prepare(&[calls], "c");
        let names = Names::rewrite(&messages, &mut notes);
        let written = ids.map(|id| names.id(&id.into()).to_string());
        let short = "x".repeat(56);
        assert_eq!(written, ["a_b_2", "a_b", "a_b_3", "call", "a.b:c", &short]);
    }

    #[test]
    fn names_of_documents_keep_what_may_stand() {
        let rows = [
            ("Report (v2) [final]-1", "Report (v2) [final]-1"),
            ("report_v2.pdf", "report-v2-pdf"),
            (" a \t b ", "a b"),
            ("\u{e9}", "-"),
            ("", "document"),
        ];
        for (name, mended) in rows {
            assert_eq!(DOCUMENTS.mend(name), mended);
            assert!(DOCUMENTS.accept(mended));
        }
        assert!(!DOCUMENTS.accept("a  b") && !DOCUMENTS.accept(&"a".repeat(201)));
    }
}
