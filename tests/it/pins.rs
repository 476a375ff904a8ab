//! Properties of types that no signature shows and that a change could remove unnoticed.

use std::fmt::Debug;

use serde::{Serialize, de::DeserializeOwned};
use threadfold::{
    Agent, Answer, Compacted, CompactionStrategy, EventLog, Message, Model, ModelAgent, Plan,
    ProviderThread, Request, Session, StrategyRegistry, Thread, ThreadStore, TokenCounter,
    auto::{AutoCompactor, AutoPolicy},
    compact::CompactOptions,
    drive::{CompactionError, PreparedCompaction},
    log::TokenBudget,
    message::{Redactor, Text},
    model::{Clock, ModelError, Tool},
    render::{ChunkBudget, RenderOptions},
    retention::{Facts, Retention, RetentionPolicy},
    session::{SessionError, SessionEvent, SessionHandle},
    store::{Journal, JsonlStore, MemoryStore},
    strategy::{
        Ask, Brief, Chunked, CompactionRun, Digest, KeepRecent, Ladder, Rolling, Snapshot,
        Summarize, TrimToolResults,
    },
    turn::TurnMachine,
    wire::{AnswerBuilder, DecodeOptions, EncodeOptions},
};
use threadfold_edl::Limits;

fn goes_anywhere<T: Send + Sync + Debug + 'static>() {}

#[test]
fn values_and_machines_are_send_sync_and_debug() {
    goes_anywhere::<AutoCompactor>();
    goes_anywhere::<Brief>();
    goes_anywhere::<Compacted>();
    goes_anywhere::<CompactionRun>();
    goes_anywhere::<EventLog>();
    goes_anywhere::<Facts>();
    goes_anywhere::<Journal>();
    goes_anywhere::<JsonlStore>();
    goes_anywhere::<Ladder>();
    goes_anywhere::<MemoryStore>();
    goes_anywhere::<Message>();
    goes_anywhere::<ModelAgent>();
    goes_anywhere::<Plan>();
    goes_anywhere::<PreparedCompaction>();
    goes_anywhere::<Request>();
    goes_anywhere::<Retention>();
    goes_anywhere::<SessionEvent>();
    goes_anywhere::<SessionHandle>();
    goes_anywhere::<Snapshot>();
    goes_anywhere::<StrategyRegistry>();
    goes_anywhere::<Text>();
    goes_anywhere::<Thread>();
    goes_anywhere::<Answer>();
    goes_anywhere::<TurnMachine>();
}

#[test]
fn options_are_read_from_settings_and_refuse_unknown_fields() {
    fn is_setting<T: Default + PartialEq + Debug + Serialize + DeserializeOwned>() {
        assert_eq!(serde_json::from_str::<T>("{}").ok(), Some(T::default()));
        let written = serde_json::to_string(&T::default()).unwrap_or_default();
        assert_eq!(serde_json::from_str::<T>(&written).ok(), Some(T::default()));
        let unknown = serde_json::from_str::<T>(r#"{"colour": 1}"#).err().map(|e| e.to_string());
        assert!(
            unknown.is_some_and(|error| error.contains("unknown field `colour`")),
            "{}",
            std::any::type_name::<T>()
        );
    }
    is_setting::<RetentionPolicy>();
    is_setting::<AutoPolicy>();
    is_setting::<TokenBudget>();
    is_setting::<Chunked>();
    is_setting::<ChunkBudget>();
    is_setting::<CompactOptions>();
    is_setting::<DecodeOptions>();
    is_setting::<Digest>();
    is_setting::<EncodeOptions>();
    is_setting::<Rolling>();
    is_setting::<KeepRecent>();
    is_setting::<Limits>();
    is_setting::<RenderOptions>();
    is_setting::<RetentionPolicy>();
    is_setting::<Summarize>();
    is_setting::<TrimToolResults>();
}

#[test]
fn errors_can_be_boxed_and_sent() {
    fn is_error<T: std::error::Error + Send + Sync + 'static>() {}
    is_error::<CompactionError>();
    is_error::<ModelError>();
    is_error::<SessionError>();
}

#[test]
fn a_session_and_its_futures_can_be_spawned() {
    fn spawns<T: Send>(_: &T) {}
    fn send(session: &mut Session) {
        let stream = session.send("Hello.");
        spawns(&stream);
        spawns(&stream.into_future());
    }
    fn job(session: &mut Session) {
        spawns(&session.prepare_compaction());
    }
    // It is enough that both compile.
    let _: [fn(&mut Session); 2] = [send, job];
}

#[test]
fn the_traits_for_hosts_are_object_safe() {
    fn is_object<T: ?Sized + Send + Sync>() {}
    is_object::<dyn Agent>();
    is_object::<dyn Clock>();
    is_object::<dyn CompactionStrategy>();
    is_object::<dyn Model>();
    is_object::<dyn ProviderThread>();
    is_object::<dyn Redactor>();
    is_object::<dyn ThreadStore>();
    is_object::<dyn TokenCounter>();
    is_object::<dyn Tool>();
    fn moves<T: ?Sized + Send>() {}
    moves::<Ask<'_>>();
    moves::<dyn AnswerBuilder>();
}
