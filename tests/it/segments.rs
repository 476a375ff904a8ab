//! A summary is composed of segments: what an earlier compaction wrote stands, and segments merge
//! like the digits of a binary counter.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use futures::executor::block_on;
use threadfold::{
    Message, Model, ModelAgent, Request, Role, Session,
    drive::{Models, propose},
    message::{Answer, ContentBlock, ModelError, StopReason, Summary},
    strategy::{Brief, Snapshot, Summarize},
};

/// Writes one line about the new part, and again the lines of the earlier summary that do not
/// stand, each with the number of times that it was written.
#[derive(Debug)]
struct Rewriter;

/// The number of the newest part that a request shows.
fn newest(request: &Request) -> usize {
    let texts = request.messages.iter().flat_map(Message::texts);
    let numbers = texts.flat_map(|text| text.split("part-").skip(1));
    let numbers = numbers.map(|rest| rest.split(' ').next().unwrap().parse().unwrap());
    numbers.max().unwrap()
}

fn rewritten(line: &str) -> String {
    let (head, count) = line.rsplit_once(' ').unwrap();
    format!("{head} {}", count.parse::<usize>().unwrap() + 1)
}

#[async_trait]
impl Model for Rewriter {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let question = request.messages.last().unwrap().texts().last().unwrap().to_owned();
        let stands = question.split_once("It ends with this line:\n");
        let last = stands.and_then(|(_, rest)| rest.lines().next());
        let earlier = request.messages.iter().flat_map(Message::summaries).last();
        let earlier = earlier.map_or("", |summary| &summary.text);
        let lines: Vec<&str> =
            earlier.lines().filter(|line| line.starts_with("Done: part-")).collect();
        let from = last.map_or(0, |last| lines.iter().position(|line| *line == last).unwrap() + 1);
        let mut text: Vec<String> = lines[from..].iter().map(|line| rewritten(line)).collect();
        text.push(format!("Done: part-{} written 1", newest(&request)));
        let answer = Message::assistant(text.join("\n"));
        Ok(Answer::new(answer, StopReason::EndTurn, None))
    }
}

fn summary_of(messages: &[Message]) -> Summary {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let mut summaries = blocks.filter_map(|block| match block {
        ContentBlock::Summary(summary) => Some(summary.clone()),
        _ => None,
    });
    let summary = summaries.next().unwrap();
    assert_eq!(summaries.next(), None, "there is one summary");
    summary
}

#[test]
fn what_a_model_wrote_is_rewritten_log2_n_times_and_otherwise_stands_byte_for_byte() {
    const COMPACTIONS: usize = 32;
    let mut thread = vec![Message::user("Write all parts.")];
    let mut earlier = Summary::new("");
    for part in 1..=COMPACTIONS {
        thread.push(Message::user(format!("Now part-{part} please.")));
        thread.extend((0..12).map(|_| Message::assistant("And so on it went. ".repeat(60))));
        let snapshot = Snapshot::new(thread.clone());
        let brief = Brief { target: Some(4_000), ..Brief::default() };
        let models = Models::one(&Rewriter);
        let strategy = Summarize::default();
        let proposal =
            block_on(propose(&strategy, &snapshot, &brief, models, &mut |_, _| {})).unwrap();
        thread = proposal.plan.after(&thread).unwrap();
        let summary = summary_of(&thread);

        let written: Vec<usize> = (1..=part)
            .map(|part| {
                let start = format!("Done: part-{part} written ");
                let mut found = summary.text.lines().filter_map(|line| line.strip_prefix(&start));
                let times = found.next().unwrap_or_else(|| panic!("part {part}: {summary:?}"));
                assert_eq!(found.next(), None, "{summary:?}");
                times.parse().unwrap()
            })
            .collect();
        let most = written.iter().max().unwrap() - 1;
        assert!(most <= part.ilog2() as usize, "{most} times after {part}");
        assert_eq!(summary.segments.len(), part.count_ones() as usize, "{summary:?}");
        // Everything before the newest segment is as it was.
        let (new, standing) = summary.segments.split_last().unwrap();
        let at = summary.text.find(new.text.as_str()).unwrap();
        assert!(earlier.text.starts_with(summary.text[..at].trim_end()), "{earlier:?} {summary:?}");
        assert!(standing.iter().all(|segment| earlier.segments.contains(segment)));
        earlier = summary;
    }
}

#[test]
fn a_summary_that_somebody_changed_is_written_anew() {
    let mut summary = Summary::new("Other words.");
    summary.segments = {
        let thread = long(Message::user("Now part-1 please."));
        summary_of(&compacted(&thread)).segments
    };
    let mut thread = long(Message::summary(Role::User, summary));
    thread.insert(1, Message::user("Now part-2 please."));
    assert_eq!(summary_of(&compacted(&thread)).segments.len(), 1);
}

fn long(first: Message) -> Vec<Message> {
    let talk = (0..12).map(|_| Message::assistant("And so on it went. ".repeat(60)));
    [first].into_iter().chain(talk).collect()
}

fn compacted(thread: &[Message]) -> Vec<Message> {
    let brief = Brief { target: Some(2_000), ..Brief::default() };
    let (snapshot, models) = (Snapshot::new(thread.to_vec()), Models::one(&Rewriter));
    let strategy = Summarize::default();
    let proposal = block_on(propose(&strategy, &snapshot, &brief, models, &mut |_, _| {}));
    proposal.unwrap().plan.after(thread).unwrap()
}

#[test]
fn what_the_user_took_back_does_not_stand() {
    const EARLIER: &str = "The gate opens at eight fifteen.";
    const LATER: &str = "The gate opens at nine forty now.";

    /// Writes the earlier value down, and quotes in its third summary that it was taken back.
    #[derive(Debug, Default)]
    struct Lifting(AtomicUsize);

    #[async_trait]
    impl Model for Lifting {
        async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
            let question = request.messages.last().unwrap().texts().last().unwrap().to_owned();
            let text = match question.contains("<user_lifted>") {
                false => "Fine. ".repeat(60),
                true => match self.0.fetch_add(1, Ordering::Relaxed) {
                    times @ 0..2 => format!("They talked {times}. {EARLIER}"),
                    _ => {
                        assert!(
                            question.contains("stays as it is"),
                            "a segment stands: {question}"
                        );
                        format!("More.\n<user_lifted>\n- {EARLIER} => {LATER}\n</user_lifted>")
                    }
                },
            };
            Ok(Answer::new(Message::assistant(text), StopReason::EndTurn, None))
        }
    }

    let agent = ModelAgent::new(Arc::new(Lifting::default()));
    let strategy = Arc::new(Summarize { messages: 1, user_messages: 0, ..Summarize::default() });
    let mut session = Session::builder(agent).strategy(strategy).build().unwrap();
    let say = |session: &mut Session, text: &str| {
        block_on(async { session.send(text).await }).unwrap();
    };
    say(&mut session, EARLIER);
    for round in 0..3 {
        (0..4).for_each(|_| say(&mut session, &"And then? ".repeat(30)));
        if round == 2 {
            say(&mut session, LATER);
            say(&mut session, "And on.");
        }
        say(&mut session, "/compact");
        let text = summary_of(session.messages()).text;
        assert_eq!(text.contains(EARLIER), round < 2, "{round}: {text}");
    }
}
