//! An agent whose only store is its native array follows the session's thread, whatever happens.

use std::sync::{Arc, Mutex};

use futures::{executor::block_on, stream::BoxStream};
use threadfold::{
    Agent, ContextWindow, Message, ModelAgent, ProviderThread, Request, Session,
    compact::Replaced,
    message::{Delta, ModelError, ModelErrorKind},
    strategy::KeepRecent,
    testing::{Scripted, ScriptedModel},
};

/// Forwards to a model, and keeps the thread as JSON.
#[derive(Clone, Debug)]
struct Mirror {
    agent: ModelAgent,
    native: Arc<Mutex<Vec<String>>>,
}

impl Mirror {
    fn new(model: &ScriptedModel) -> Self {
        let agent = ModelAgent::new(Arc::new(model.clone()));
        Self { agent: agent.with_window(ContextWindow::new(200_000)), native: Arc::default() }
    }
}

fn native(message: &Message) -> String {
    serde_json::to_string(message).unwrap()
}

impl ProviderThread for Mirror {
    fn appended(&mut self, message: &Message) {
        self.native.lock().unwrap().push(native(message));
    }

    fn rewritten(&mut self, replaced: &[Replaced<'_>], thread: &[Message]) {
        let mut held = self.native.lock().unwrap();
        for Replaced { at, messages } in replaced.iter().rev() {
            drop(held.splice(at.clone(), messages.iter().map(native)));
        }
        assert_eq!(held.len(), thread.len());
    }
}

impl Agent for Mirror {
    fn answer(&mut self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let asked: Vec<String> = request.messages.iter().map(native).collect();
        assert_eq!(*self.native.lock().unwrap(), asked, "it holds what it is asked about");
        self.agent.answer(request)
    }

    fn ask(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        self.agent.ask(request)
    }

    fn fork(&self) -> Box<dyn Agent> {
        Box::new(Self { native: Arc::default(), ..self.clone() })
    }
}

fn assert_mirrored(native: &Mutex<Vec<String>>, session: &Session, when: &str) {
    let messages: Vec<String> = session.messages().iter().map(self::native).collect();
    assert_eq!(*native.lock().unwrap(), messages, "{when}");
}

#[test]
fn a_native_array_follows_every_change_of_a_session() {
    let refused = ModelError::new(ModelErrorKind::Other, "no");
    let too_long = || {
        ModelError::new(ModelErrorKind::Overflow { limit: None, found: None, output: None }, "no")
    };
    let overflows = std::iter::repeat_with(|| Scripted::from(too_long())).take(3);
    // Longer than a summary of it.
    let five = "Five. ".repeat(200);
    let answers = ["One.", "Two.", "Three.", "Four."].map(Scripted::from).into_iter();
    let script = answers.chain([refused.into(), five.as_str().into()]).chain(overflows);
    let model = ScriptedModel::new(script.chain(["Six.", "Seven.", "Eight."].map(Scripted::from)));
    let agent = Mirror::new(&model);
    let mut held = Arc::clone(&agent.native);
    let strategy = KeepRecent { messages: 3, ..KeepRecent::default() };
    let begin = [Message::user("Before."), Message::assistant("Yes.")];
    let builder = Session::builder(agent).strategy(Arc::new(strategy)).messages(begin);
    let mut session = builder.build().unwrap();
    assert_mirrored(&held, &session, "at the start");
    let say = |session: &mut Session, text: &str| {
        block_on(async {
            let mut events = session.send(text);
            while events.next().await.is_some() {}
        });
    };
    for text in ["First?", "Second?", "Third?", "/compact", "Fourth?", "Refused?", "Fifth?"] {
        say(&mut session, text);
        assert_mirrored(&held, &session, text);
    }
    let id = session.log().standing().last().unwrap().id;
    block_on(session.undo_compaction(id)).unwrap();
    assert_mirrored(&held, &session, "after an undo");
    block_on(session.redo_compaction(id)).unwrap();
    assert_mirrored(&held, &session, "after a redo");
    let before = session.messages().len();
    say(&mut session, "Too long, they say?");
    assert_eq!(session.messages().len(), before, "the prompt was withdrawn");
    assert_mirrored(&held, &session, "after a prompt that was withdrawn");
    let fork = block_on(session.fork_before("fork".parse().unwrap(), 3)).unwrap();
    assert_eq!(fork.build().unwrap().messages().len(), 3);
    assert_mirrored(&held, &session, "after a fork");
    let other = Mirror::new(&model);
    held = Arc::clone(&other.native);
    session.set_agent(other);
    assert_mirrored(&held, &session, "with another agent");
    say(&mut session, "Sixth?");
    assert_mirrored(&held, &session, "at the end");
    assert!(model.requests().len() > 9);
}
