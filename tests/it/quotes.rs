//! The user's standing rules as a model quotes them: what counts, what does not, and that it stays.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use futures::executor::block_on;
use threadfold::{
    CompactionStrategy, ContextWindow, Message, Model, ModelAgent, Plan, Request, Role, Session,
    drive::{self, Conversation, Models},
    ledger::{QuotedChanges, QuotedRule, Quotes, TakenBack},
    log::{CompactionRecord, Event, EventLog},
    message::{
        Answer, CompactionReason, ModelError, Redactor, StopReason, Timestamp, ToolUse, Usage,
    },
    retention::RetentionPolicy,
    store::{Journal, MemoryStore},
    strategy::{
        Ask, Brief, Chunked, Digest, Fallback, Ladder, Proposal, Rolling, StrategyError, Summarize,
        View,
    },
    tokens::{ByteEstimate, TokenCounter},
};
use threadfold_testing::notation;

/// Everyday rules in eight languages. None of them has the form of a demand that a grammar would
/// know.
const RULES: [&str; 8] = [
    "I'm allergic to walnuts, so they can't be in anything.",
    "Meine Mutter isst seit Jahren kein Fleisch mehr.",
    "Soy celíaca, así que ojo con la harina.",
    "Sou vegetariana desde os doze anos.",
    "On est toujours cinq à table le dimanche.",
    "我家孩子对花生过敏。",
    "うちの犬にはチョコレートは厳禁です。",
    "मेरे पिताजी को शक्कर मना है।",
];

/// Answers with long text; a question for a summary with a summary and these lines as rules.
#[derive(Clone, Debug)]
struct Quoting {
    lines: Vec<String>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Quoting {
    fn new(lines: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { lines: lines.into_iter().map(Into::into).collect(), requests: Arc::default() }
    }

    fn last(&self) -> String {
        notation::write(&self.requests.lock().unwrap().last().unwrap().messages)
    }

    fn answer(&self, request: &Request) -> Answer {
        self.requests.lock().unwrap().push(request.clone());
        let asked = notation::write(&request.messages).contains("<user_rules>");
        let list = self.lines.iter().map(|line| format!("- {line}\n")).collect::<String>();
        let summary = format!("They planned meals.\n<user_rules>\n{list}</user_rules>");
        let edits = request.tools.iter().any(|tool| tool.name == "edl");
        let edited = request.messages.iter().any(|message| message.tool_results().next().is_some());
        let message = match (asked, edits && !edited) {
            (true, true) => {
                let script =
                    format!("file /summary.md\nselect eof\ninsert_after <<PART\n{summary}\nPART\n");
                let call = ToolUse::new("e1", "edl", serde_json::json!({ "script": script }));
                Message::new(Role::Assistant, vec![call.into()])
            }
            (true, false) if !edits => Message::assistant(summary),
            (_, _) => Message::assistant("We cook something good, and then we see. ".repeat(12)),
        };
        let calls = message.tool_uses().next().is_some();
        let stop = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
        let counter = ByteEstimate::TRIGGER;
        let usage = Usage::new(counter.request(request), counter.message(&message));
        Answer::new(message, stop, Some(usage))
    }
}

#[async_trait]
impl Model for Quoting {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        Ok(self.answer(&request))
    }
}

fn say(session: &mut Session, text: &str) {
    block_on(async { session.send(text).await }).unwrap();
}

fn rules(session: &Session) -> Vec<String> {
    session.rules().active().map(|rule| rule.text.to_string()).collect()
}

fn asking() -> Vec<Arc<dyn CompactionStrategy>> {
    let summarize =
        Summarize { messages: 2, user_messages: 0, summary_tokens: 400, ..Summarize::default() };
    vec![
        Arc::new(summarize.clone()),
        Arc::new(Summarize { as_text: true, ..summarize.clone() }),
        Arc::new(Ladder::new([Arc::new(summarize) as Arc<dyn CompactionStrategy>])),
        Arc::new(Chunked::default()),
        Arc::new(Rolling { keep_recent: 2, chunk_messages: 4, ..Rolling::default() }),
    ]
}

/// A session in which the user types this text first, after a compaction.
fn compacted(strategy: Arc<dyn CompactionStrategy>, model: &Quoting, text: &str) -> Session {
    let agent = ModelAgent::new(Arc::new(model.clone()));
    let mut session = Session::builder(agent).strategy(strategy).build().unwrap();
    say(&mut session, text);
    for round in 0..4 {
        say(&mut session, &format!("What about meal {round}? {}", "It may be long. ".repeat(20)));
    }
    say(&mut session, "/compact");
    session
}

#[test]
fn a_quoted_sentence_is_a_standing_rule_in_any_language_and_with_any_strategy_that_asks() {
    for strategy in asking() {
        let text = RULES.join(" What do you think about that? It is so. ");
        let model = Quoting::new(RULES);
        let session = compacted(Arc::clone(&strategy), &model, &text);
        assert_eq!(rules(&session), RULES, "{}", strategy.name());
        let record = session.log().standing().next_back().unwrap();
        assert_eq!(record.quoted.refused, 0, "{}", strategy.name());
        let summary = notation::write(session.messages());
        assert!(!summary.contains("user_rules"), "{}: {summary}", strategy.name());
    }
}

#[test]
fn a_quote_counts_if_it_was_typed_and_the_text_is_the_users() {
    let typed = "Hello! I\u{2019}m allergic to walnuts \u{2014} so they can\u{2019}t be in anything. Thanks.";
    let sentence = "I\u{2019}m allergic to walnuts \u{2014} so they can\u{2019}t be in anything.";
    let rows = [
        ("to the letter", sentence, true),
        ("folded", "i'm allergic to  walnuts - so they can't be in anything", true),
        ("cut", "allergic to walnuts", true),
        ("changed", "I'm allergic to peanuts, so they can't be in anything.", false),
        ("cut within a word", "allergic to wal", false),
        ("the model's own", "We cook something good, and then we see.", false),
        ("blank", "...", false),
    ];
    for (name, quote, counts) in rows {
        let model = Quoting::new([quote]);
        let session = compacted(asking().remove(0), &model, typed);
        let expected = if counts { vec![sentence.to_owned()] } else { Vec::new() };
        assert_eq!(rules(&session), expected, "{name}");
        let record = session.log().standing().next_back().unwrap();
        assert_eq!(record.quoted.refused, usize::from(!counts), "{name}");
    }
}

#[test]
fn rules_that_a_model_quoted_once_stay_through_fifteen_compactions_in_a_small_window() {
    for rule in RULES {
        let model = Quoting::new([rule]);
        let window = ContextWindow::new(4_000);
        let agent = ModelAgent::new(Arc::new(model.clone())).with_window(window);
        let mut session = Session::builder(agent).strategy(asking().remove(0)).build().unwrap();
        say(&mut session, &format!("{rule} What is for dinner?"));
        let mut round = 0;
        while session.log().standing().count() < 15 {
            round += 1;
            assert!(round < 400, "{} compactions", session.log().standing().count());
            say(&mut session, &format!("And on day {round}? {}", "Tell me more. ".repeat(30)));
            assert!(model.last().contains(rule), "round {round}: {}", model.last());
        }
        assert_eq!(rules(&session), [rule]);
    }
}

/// Compacts a thread of the user's and the assistant's texts, which does not fit, and returns its log.
fn refused(strategy: &dyn CompactionStrategy, target: u64, lines: &[&str]) -> EventLog {
    let mut journal = Journal::new(EventLog::new("refused".parse().unwrap()));
    for round in 0..12 {
        let rule = if round == 0 { RULES[0] } else { "" };
        for message in [
            Message::user(format!("Meal {round}, please. {rule}")),
            Message::assistant(format!("Meal {round}: {}", "soup, bread and cheese. ".repeat(40))),
        ] {
            journal.append(Timestamp(1), Event::MessageAppended(message)).unwrap();
        }
    }
    journal.append(Timestamp(1), Event::MessageAppended(Message::user("And now?"))).unwrap();
    let mut conversation = Conversation::new(&mut journal).with_fallback(Fallback::IfNeeded);
    let brief = Brief {
        reason: CompactionReason::Overflow,
        target: Some(target),
        limit: Some(target),
        retention: Some(RetentionPolicy::default()),
        ..Brief::default()
    };
    let model = Quoting::new(lines.iter().copied());
    let models = Models::one(&model);
    block_on(drive::compact(&mut conversation, strategy, &brief, models, &mut |_, _| {})).unwrap();
    journal.log().clone()
}

/// Makes the model of a view quote, and a summary that is far too long.
#[derive(Debug)]
struct TooLong;

#[async_trait]
impl CompactionStrategy for TooLong {
    fn name(&self) -> &str {
        "too-long"
    }

    async fn propose(&self, view: &View, _: &mut Ask<'_>) -> Result<Proposal, StrategyError> {
        let plan = Plan::summarise(view.thread.messages(), 0..2, "A meal. ".repeat(90)).unwrap();
        let (rules, lifted) = (vec![RULES[0].to_owned()], Vec::new());
        let mut proposal = Proposal::new(plan);
        proposal.quotes = Quotes { rules, lifted };
        Ok(proposal)
    }
}

#[test]
fn a_quote_counts_although_the_summary_beside_it_is_not_taken() {
    let log = refused(&TooLong, 900, &[]);
    let record = log.standing().last().unwrap();
    assert!(record.rungs.iter().any(|rung| rung.failure.is_some()), "{:?}", record.rungs);
    assert_eq!(active(&log), [RULES[0]]);
    let ladder = Ladder::new([
        Arc::new(TooLong) as Arc<dyn CompactionStrategy>,
        Arc::new(Digest::default()),
    ]);
    assert_eq!(active(&refused(&ladder, 900, &[])), [RULES[0]]);
}

#[test]
fn a_quoted_rule_survives_undo_fork_and_a_stored_log() {
    let model = Quoting::new([RULES[0]]);
    let store = Arc::new(MemoryStore::default());
    let agent = || ModelAgent::new(Arc::new(model.clone()));
    let mut session = Session::builder(agent()).store(store.clone()).build().unwrap();
    say(&mut session, RULES[0]);
    for _ in 0..6 {
        say(&mut session, &"What about dinner? ".repeat(30));
    }
    say(&mut session, "/compact");
    assert_eq!(rules(&session), [RULES[0]]);
    let events: Vec<Event> = session.log().events().iter().map(|it| it.event.clone()).collect();
    let mut log = EventLog::new("again".parse().unwrap());
    for event in events {
        log.append(Timestamp(1), event).unwrap();
    }
    assert_eq!(log.rules(None).active().count(), 1);
    let id = session.log().standing().next_back().unwrap().id;
    block_on(session.undo_compaction(id)).unwrap();
    assert_eq!(rules(&session), [RULES[0]]);
}

#[test]
fn a_rule_is_lifted_only_with_a_later_sentence_of_the_user() {
    #[derive(Clone, Debug)]
    struct Lifting(String);

    #[async_trait]
    impl Model for Lifting {
        async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
            let asked = notation::write(&request.messages).contains("<user_rules>");
            let text = match asked {
                true => format!(
                    "They talked.\n<user_rules>\n- {}\n</user_rules>\n<user_lifted>\n- {}\n</user_lifted>",
                    RULES[3], self.0
                ),
                false => "Fine. ".repeat(60),
            };
            Ok(Answer::new(Message::assistant(text), StopReason::EndTurn, None))
        }
    }

    let later = "Mudei de ideia: agora como peixe.";
    let rows = [
        (format!("{} => {later}", RULES[3]), false),
        (format!("\"{}\" => \"{later}\"", RULES[3]), false),
        (format!("{} => Agora como carne.", RULES[3]), true),
        (format!("{later} => {}", RULES[3]), true),
        (RULES[3].to_owned(), true),
    ];
    for (line, holds) in rows {
        let agent = ModelAgent::new(Arc::new(Lifting(line.clone())));
        let mut session = Session::builder(agent).strategy(asking().remove(0)).build().unwrap();
        say(&mut session, RULES[3]);
        say(&mut session, later);
        for _ in 0..4 {
            say(&mut session, &"E amanhã? ".repeat(30));
        }
        say(&mut session, "/compact");
        assert_eq!(rules(&session).len(), usize::from(holds), "{line}");
    }
}

/// What people state and later take back. Neither is a demand, and the model calls neither a rule.
const CHANGES: [[&str; 2]; 8] = [
    ["The hall costs 310 euros.", "They want 425 for it now."],
    ["Der Zug geht um sieben.", "Wir fahren jetzt doch erst am Mittag."],
    ["La cena es el viernes.", "Al final nos vemos el domingo."],
    ["O código da porta é 4471.", "Trocaram a fechadura, agora é 9038."],
    ["On sera douze à table.", "Finalement, Paul et Anna viennent aussi."],
    ["会议室在三楼。", "改了，大家去地下室。"],
    ["集合は駅の北口です。", "やっぱり南口にしましょう。"],
    ["दुकान दस बजे खुलती है।", "अब वे ग्यारह बजे खोलते हैं।"],
];

#[test]
fn what_the_user_took_back_is_not_listed_beside_the_newer_statement() {
    #[derive(Debug)]
    struct Lifting(Vec<String>);

    #[async_trait]
    impl Model for Lifting {
        async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
            let asked = notation::write(&request.messages).contains("<user_lifted>");
            let text = match asked {
                true => format!(
                    "They talked. {}\n<user_lifted>\n- {}\n</user_lifted>",
                    CHANGES[0][0],
                    self.0.join("\n- ")
                ),
                false => "Fine. ".repeat(60),
            };
            Ok(Answer::new(Message::assistant(text), StopReason::EndTurn, None))
        }
    }

    for strategy in asking().into_iter().take(3) {
        let lines = CHANGES.iter().map(|[earlier, later]| format!("{earlier} => {later}"));
        let agent = ModelAgent::new(Arc::new(Lifting(lines.collect())));
        let name = strategy.name().to_owned();
        let mut session = Session::builder(agent).strategy(strategy).build().unwrap();
        say(&mut session, "Hello, let us plan this.");
        for [earlier, _] in CHANGES {
            say(&mut session, &format!("{earlier} Thanks."));
        }
        for [_, later] in CHANGES {
            say(&mut session, later);
        }
        let compacted = |session: &mut Session| {
            (0..4).for_each(|_| say(session, &"And then? ".repeat(30)));
            say(session, "/compact");
            notation::write(session.messages())
        };
        let left = compacted(&mut session);
        for [earlier, later] in CHANGES {
            assert!(!left.contains(earlier), "{name}: {earlier}: {left}");
            assert!(left.contains(later), "{name}: {later}: {left}");
        }
        // What the user says again holds again.
        say(&mut session, CHANGES[1][0]);
        let left = compacted(&mut session);
        assert!(left.contains(CHANGES[1][0]), "{name}: {left}");
        assert!(!left.contains(CHANGES[2][0]), "{name}: {left}");
    }
}

const ALLERGIC: &str = "My aunt Ada is allergic to fish.";

/// A log in which the user states something and later takes it back. A compaction after each
/// quoted it, and changed no message.
fn taken_back() -> EventLog {
    let mut log = EventLog::new("main".parse().unwrap());
    said(&mut log, ALLERGIC);
    let rule = QuotedRule { text: ALLERGIC.into(), author: None, position: Some(0) };
    quoted(&mut log, QuotedChanges { rules: vec![rule], ..QuotedChanges::default() });
    assert!(log.rules(None).find(ALLERGIC).is_some(), "the rule was quoted");
    let later = "Ada had a test: she eats fish again.";
    said(&mut log, later);
    let lifted = TakenBack {
        earlier: ALLERGIC.into(),
        later: later.into(),
        author: None,
        own_only: false,
        position: Some(2),
    };
    quoted(&mut log, QuotedChanges { lifted: vec![lifted], ..QuotedChanges::default() });
    log
}

fn said(log: &mut EventLog, text: &str) {
    for message in [Message::user(text), Message::assistant("Fine.")] {
        log.append(Timestamp(1), Event::MessageAppended(message)).unwrap();
    }
}

fn quoted(log: &mut EventLog, changes: QuotedChanges) {
    let plan = Plan::from_splices(log.replay().len(), Vec::new());
    let reason = CompactionReason::default();
    let mut record = CompactionRecord::new(log.next_compaction(), reason, "case", plan);
    record.quoted = changes;
    log.append(Timestamp(1), Event::Compacted(Box::new(record))).unwrap();
}

fn active(log: &EventLog) -> Vec<String> {
    log.rules(None).active().map(|rule| rule.text.to_string()).collect()
}

#[test]
fn a_truncated_sentence_neither_gives_a_rule_nor_takes_one_back() {
    let mut log = taken_back();
    assert_eq!(active(&log), [""; 0]);
    log.append(Timestamp(1), Event::Truncated { from: 4, len: 2 }).unwrap();
    assert_eq!(active(&log), [ALLERGIC]);
    log.append(Timestamp(1), Event::Truncated { from: 2, len: 0 }).unwrap();
    assert_eq!(active(&log), [""; 0]);
    assert_eq!(log.rules(None).rules().count(), 0);
}

#[test]
fn a_redactor_sees_the_rules_that_a_log_from_before_it_quotes() {
    #[derive(Debug)]
    struct Names;

    impl Redactor for Names {
        fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
            text.replace("Ada", "[name]").into()
        }
    }

    let rules = taken_back().rules(Some(&Names));
    let texts: Vec<&str> = rules.rules().map(|rule| rule.text.as_str()).collect();
    assert_eq!(texts, ["My aunt [name] is allergic to fish."]);
    let later: Vec<&str> = rules.taken_back().map(|pair| pair.later.as_str()).collect();
    assert_eq!(later, ["[name] had a test: she eats fish again."]);
}
