//! Typed text stays word for word, in any language, the newest value of a subject last.

use std::sync::Arc;

use threadfold::{
    CompactionStrategy, Message, StrategyRegistry,
    retention::{Facts, RetentionPolicy},
    strategy::{Brief, Snapshot, View, without_model},
    tokens::{ByteEstimate, TokenCounter},
};

/// A conversation with all of its messages so far.
#[derive(Default)]
struct Talk {
    all: Vec<Message>,
    thread: Vec<Message>,
}

impl Talk {
    fn say(&mut self, message: Message) {
        self.all.push(message.clone());
        self.thread.push(message);
    }

    /// Adds some messages of no importance.
    fn chat(&mut self, round: usize) {
        for line in 0..12 {
            self.say(Message::user(format!("And what about part {round}.{line} of the story?")));
            let long = format!("Part {line} goes on like this for a while. ").repeat(8);
            self.say(Message::assistant(long));
        }
    }

    /// Compacts with a strategy that asks no model, and returns all remaining text.
    fn compact(&mut self, target: u64) -> String {
        let facts = Facts::of(&self.all, &RetentionPolicy::default());
        let snapshot = Snapshot::new(self.thread.clone()).with_facts(Arc::new(facts));
        let retention = Some(RetentionPolicy::default());
        let brief = Brief { target: Some(target), retention, ..Brief::default() };
        let registry = StrategyRegistry::default();
        let digest: &Arc<dyn CompactionStrategy> = registry.get("digest").unwrap();
        let view = View::new(snapshot.clone(), brief.clone());
        let proposal = without_model(digest.as_ref(), &view).unwrap();
        let settled = snapshot.settle(proposal, &brief).unwrap();
        self.thread = settled.plan.after(&self.thread).unwrap();
        assert!(ByteEstimate::TRIGGER.messages(&self.thread) <= target);
        format!("{:?}", self.thread)
    }
}

#[test]
fn typed_text_in_other_languages_stays_word_for_word_through_five_compactions() {
    let typed = [
        "Frag mich vor jedem Push auf den Server um Erlaubnis.",
        "Benutze in allen Antworten nur metrische Einheiten.",
        "\u{6bcf}\u{6b21}\u{63d0}\u{4ea4}\u{4e4b}\u{524d}\u{5148}\u{8fd0}\u{884c}\u{6d4b}\u{8bd5}\u{3002}",
        "\u{4e0d}\u{8981}\u{5728}\u{65e5}\u{5fd7}\u{91cc}\u{5199}\u{5bc6}\u{7801}\u{3002}",
        "No cambies nunca la carpeta de recetas.",
        "Responde siempre en tres frases como m\u{e1}ximo.",
    ];
    let mut talk = Talk::default();
    talk.say(Message::user("Hallo, let us begin."));
    talk.say(Message::assistant("Yes."));
    for text in typed {
        talk.say(Message::user(text));
        talk.say(Message::assistant("Noted."));
    }
    for round in 0..5 {
        talk.chat(round);
        let left = talk.compact(700);
        for text in typed {
            assert!(left.contains(text), "{text} is missing after round {round}: {left}");
        }
    }
}

#[test]
fn of_two_values_of_a_subject_the_newer_one_comes_last_and_has_the_room() {
    let mut talk = Talk::default();
    // The first text is the task, which stays as it was typed.
    talk.say(Message::user("Hallo, let us begin."));
    talk.say(Message::user("The port of the proxy is 8080, and tea is at noon."));
    talk.say(Message::user("The port of the mailer is 2525."));
    talk.say(Message::assistant("Good."));
    talk.chat(0);
    talk.say(Message::user("The port of the proxy is now 8443."));
    talk.chat(1);
    let left = talk.compact(700);
    let newer = left.find("The port of the proxy is now 8443.");
    assert!(newer.is_some(), "{left}");
    assert!(left.find("is 8080").is_none_or(|older| Some(older) < newer), "{left}");
    assert!(left.contains("The port of the mailer is 2525."), "{left}");
}
