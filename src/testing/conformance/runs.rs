//! The conformance suite for stores of runs.

use super::law::{Breach, Law, named, same};
use crate::{
    message::Message,
    store::LeaseStore,
    strategy::{Chunked, CompactionRun},
};

/// Tests a store of runs: a saved run replaces the earlier one and is loaded unchanged; threads are
/// independent; deleted runs are gone.
///
/// `make` must return an empty store.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{store::MemoryStore, testing::conformance};
///
/// block_on(conformance::runs(|| Box::new(MemoryStore::default())))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`].
pub async fn runs(make: impl FnOnce() -> Box<dyn LeaseStore>) -> Result<(), Breach> {
    let (store, one, other) = (make(), named("t1")?, named("t")?);
    let none = Ok(None);
    same(Law::UnknownIsEmpty, "a new store", &none, &store.load_run(&one).await)?;
    same(Law::UnknownIsEmpty, "nothing to delete", &Ok(()), &store.delete_run(&one).await)?;
    let apart = run("Fix the lexer.")?;
    let law = Law::StoredComesBack;
    same(law, "another thread", &Ok(()), &store.save_run(&other, &apart).await)?;
    for text in ["Fix the parser.", "a\n\"\\\u{0}\u{2028}\u{1f600}"] {
        let run = run(text)?;
        same(law, text, &Ok(()), &store.save_run(&one, &run).await)?;
        same(law, text, &Ok(Some(run)), &store.load_run(&one).await)?;
    }
    let law = Law::DeletedIsGone;
    same(law, "deleted", &Ok(()), &store.delete_run(&one).await)?;
    same(law, "deleted", &none, &store.load_run(&one).await)?;
    let kept = Ok(Some(apart));
    same(Law::ThreadsAreApart, "another thread", &kept, &store.load_run(&other).await)
}

fn run(text: &str) -> Result<CompactionRun, Breach> {
    let run = CompactionRun::new(&[Message::user(text)], None, Chunked::default());
    run.map_err(|error| Law::StoredComesBack.breach(text, "a run", error))
}
