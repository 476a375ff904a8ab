//! Threads that the provider holds: the example `held_thread`, against the vendors' rules.

use threadfold::{Agent, Model};
use threadfold_http::{Dialect, HeldThread, HttpModel};
use threadfold_testing::rulebook::Outcome;

use crate::runtime::run;

#[path = "../../examples/held_thread.rs"]
#[expect(dead_code, reason = "the example prints what tests read")]
mod held_thread;

#[test]
fn only_what_is_new_is_sent_while_the_provider_holds_the_thread() {
    for dialect in [Dialect::Anthropic, Dialect::Responses] {
        let seen = run(held_thread::converse(dialect)).unwrap();
        let found: Vec<_> = seen.iter().map(|it| (it.after, it.form, it.outcome)).collect();
        let expected = [
            ("a new thread", "whole", Outcome::Answered),
            ("a turn", "continued", Outcome::Answered),
            ("a turn, and a call of a tool", "continued", Outcome::Answered),
            ("a turn, and a call of a tool", "continued", Outcome::Answered),
            ("a compaction", "whole", Outcome::Answered),
            ("a turn", "continued", Outcome::Answered),
            ("a long pause", "continued", Outcome::NotFound),
            ("a long pause", "whole", Outcome::Answered),
            ("a crash", "whole", Outcome::Answered),
            ("a turn", "continued", Outcome::Answered),
        ];
        assert_eq!(found, expected, "{dialect:?}");
        let continued = seen.iter().filter(|it| it.form == "continued");
        assert!(continued.into_iter().all(|it| it.sent == 1), "{seen:?}");
        assert!(seen.iter().filter(|it| it.after == "a crash").all(|it| it.sent > 2), "{seen:?}");
    }
}

#[test]
fn an_agent_of_a_held_thread_states_what_its_model_states() {
    for name in ["claude-haiku-4-5", "claude-opus-5-5"] {
        let model = HttpModel::anthropic(name, "a key").unwrap();
        let agent = HeldThread::new(model.clone());
        assert_eq!(agent.binds_reasoning(), model.binds_reasoning(), "{name}");
        assert_eq!(agent.context_window(), model.context_window(), "{name}");
    }
}
