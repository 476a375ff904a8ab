//! The conformance suite for archives.

use std::collections::BTreeSet;

use super::law::{Law, Result, named, same};
use crate::{
    message::{Batch, BatchId, CompactionId, ThreadId, Timestamp},
    store::{Archive, StoreError},
    strategy::ArchiveEntry,
};

/// Tests an archive: a write replaces the earlier entries of its compaction; only entries of
/// visible compactions are returned; entries that a visible entry replaces are found by searches
/// but not listed; threads are independent; lists and searches are ordered and limited.
///
/// `make` is called once for each law and must return an empty archive.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::{store::memory_archive, testing::conformance};
///
/// block_on(conformance::archive(|| Box::new(memory_archive())))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub async fn archive(mut make: impl FnMut() -> Box<dyn Archive>) -> Result<()> {
    write_replaces(&*make()).await?;
    names_are_checked(&*make()).await?;
    only_standing_is_seen(&*make()).await?;
    search_finds(&*make()).await?;
    search_ranks(&*make()).await?;
    replaced_is_found_only(&*make()).await?;
    threads_are_apart(&*make()).await?;
    deleted_is_gone(&*make()).await?;
    list_is_in_order(&*make()).await
}

async fn write_replaces(archive: &dyn Archive) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::WriteReplaces);
    expect_listed(archive, law, "a new archive", &thread, &[1], &[]).await?;
    let deep = {
        let mut entry = entry(1, 1, 9, "deep\n[depth:9|start:x|end:y|count:1]\n\u{0}\u{1f600}");
        (entry.batch.depth, entry.batch.messages) = (3, 40);
        entry.replaces = vec![batch_id(0, 7), batch_id(1, 9)];
        entry
    };
    let other = entry(2, 0, 10, "of another compaction");
    write(archive, law, &thread, 2, std::slice::from_ref(&other)).await?;
    for entries in [vec![entry(1, 0, 1, "one"), deep], vec![entry(1, 5, 2, "two")], vec![]] {
        write(archive, law, &thread, 1, &entries).await?;
        let input = format!("{} entries under 1", entries.len());
        expect_listed(archive, law, input, &thread, &[1], &entries).await?;
        let input = "another compaction";
        expect_listed(archive, law, input, &thread, &[2], std::slice::from_ref(&other)).await?;
    }
    Ok(())
}

async fn names_are_checked(archive: &dyn Archive) -> Result<()> {
    let (thread, law, kept) = (named("t1")?, Law::NamesAreChecked, [entry(1, 0, 1, "kept")]);
    write(archive, law, &thread, 1, &kept).await?;
    let (of_other, twice) = (entry(2, 0, 1, "x"), entry(1, 3, 1, "x"));
    let (batch, compaction) = (of_other.batch.id, CompactionId(1));
    let rows = [
        (vec![twice.clone(), of_other], StoreError::OtherCompaction { batch, compaction }),
        (vec![twice.clone(), twice.clone()], StoreError::Repeated { batch: twice.batch.id }),
    ];
    for (entries, error) in rows {
        let outcome = archive.write(&thread, compaction, &entries).await;
        same(law, format!("{entries:?}"), &Err(error), &outcome)?;
        expect_listed(archive, law, "after the refusal", &thread, &[1, 2], &kept).await?;
    }
    Ok(())
}

async fn only_standing_is_seen(archive: &dyn Archive) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::OnlyStandingIsSeen);
    let entries = [1, 2, 10].map(|number| entry(number, 0, number, "words"));
    for entry in &entries {
        let number = entry.batch.id.compaction.0;
        write(archive, law, &thread, number, std::slice::from_ref(entry)).await?;
    }
    let [one, two, ten] = entries;
    let rows = [
        (vec![], vec![]),
        (vec![0, 3], vec![]),
        (vec![1], vec![one.clone()]),
        (vec![1, 10], vec![one.clone(), ten.clone()]),
        (vec![10, 2, 1], vec![one, two, ten]),
    ];
    for (standing, mut expected) in rows {
        expect_listed(archive, law, "three compactions", &thread, &standing, &expected).await?;
        expected.reverse();
        let input = format!("words, {standing:?} stand");
        let found = archive.search(&thread, "words", 9, &visible(&standing)).await;
        same(law, input, &Ok(expected), &found)?;
    }
    Ok(())
}

async fn replaced_is_found_only(archive: &dyn Archive) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::ReplacedIsFoundOnly);
    let details = [entry(1, 0, 1, "detail one"), entry(1, 1, 2, "detail two")];
    let mut gist = entry(2, 0, 1, "the gist");
    gist.replaces = details.iter().map(|entry| entry.batch.id).collect();
    write(archive, law, &thread, 1, &details).await?;
    write(archive, law, &thread, 2, std::slice::from_ref(&gist)).await?;
    expect_listed(archive, law, "without the gist", &thread, &[1], &details).await?;
    expect_listed(archive, law, "with the gist", &thread, &[1, 2], &[gist]).await?;
    let [one, two] = details;
    let found = archive.search(&thread, "detail", 9, &visible(&[1, 2])).await;
    same(law, "a search for replaced entries", &Ok(vec![two, one]), &found)
}

async fn threads_are_apart(archive: &dyn Archive) -> Result<()> {
    let law = Law::ThreadsAreApart;
    let names = ["t", "t-", "t-1", "t-1-0", "t.1", "t1"];
    for (index, thread) in (0..).zip(names) {
        write(archive, law, &named(thread)?, 1, &[entry(1, index, 5, thread)]).await?;
    }
    for deleted in [&[][..], &["t-1"], &["t-1", "t"]] {
        let outcome = match deleted {
            [] => Ok(()),
            ["t-1"] => archive.delete(&named("t-1")?, CompactionId(1)).await,
            _ => archive.delete_thread(&named("t")?).await,
        };
        let input = format!("{deleted:?} deleted");
        same(law, &input, &Ok(()), &outcome)?;
        for (index, name) in (0..).zip(names) {
            let (thread, own) = (named(name)?, entry(1, index, 5, name));
            let kept = if deleted.contains(&name) { vec![] } else { vec![own] };
            expect_listed(archive, law, &input, &thread, &[1], &kept).await?;
            let hits = archive.search(&thread, "t", 9, &visible(&[1])).await;
            same(law, name, &Ok(kept.len()), &hits.map(|hits| hits.len()))?;
        }
    }
    Ok(())
}

async fn deleted_is_gone(archive: &dyn Archive) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::DeletedIsGone);
    let entries = [1, 2].map(|number| entry(number, 0, number, "words"));
    for (number, entry) in (1..).zip(&entries) {
        write(archive, law, &thread, number, std::slice::from_ref(entry)).await?;
    }
    let [_, two] = entries;
    for input in ["deleting 1", "deleting 1 again"] {
        same(law, input, &Ok(()), &archive.delete(&thread, CompactionId(1)).await)?;
        let kept = std::slice::from_ref(&two);
        expect_listed(archive, law, input, &thread, &[1, 2], kept).await?;
    }
    for input in ["deleting the thread", "deleting the thread again"] {
        same(law, input, &Ok(()), &archive.delete_thread(&thread).await)?;
        expect_listed(archive, law, input, &thread, &[1, 2], &[]).await?;
    }
    Ok(())
}

async fn list_is_in_order(archive: &dyn Archive) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::ListIsInOrder);
    let late = [entry(1, 0, 900, "a"), entry(1, 1, 30, "b"), entry(1, 2, 5, "c")];
    let early = [entry(2, 10, 5, "d"), entry(2, 9, 5, "e"), entry(2, 0, 1, "f")];
    write(archive, law, &thread, 2, &early).await?;
    write(archive, law, &thread, 1, &late).await?;
    let ([a, b, c], [d, e, f]) = (late, early);
    expect_listed(archive, law, "six entries", &thread, &[1, 2], &[f, c, e, d, b, a]).await
}

async fn search_finds(archive: &dyn Archive) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::SearchFinds);
    let texts = [
        "We read src/main.rs.",
        "Tests PASS now",
        "Nothing of note",
        "",
        "100% of a_b\\c, \u{39f}\u{394}\u{39f}\u{3a3}",
        "axb\u{0}NUL",
    ];
    let entries: Vec<_> = (0..).zip(texts).map(|(at, text)| entry(1, at, 1, text)).collect();
    write(archive, law, &thread, 1, &entries).await?;
    let rows: [(&str, &[u32]); 14] = [
        ("src/main.rs", &[0]),
        ("READ", &[0]),
        ("do tests pass?", &[1]),
        ("absent", &[]),
        ("", &[]),
        (" \n\t", &[]),
        ("note main.rs", &[2, 0]),
        ("e", &[2, 1, 0]),
        ("100%", &[4]),
        ("a_b", &[4]),
        ("b\\c", &[4]),
        ("\u{3bf}\u{3b4}\u{3bf}\u{3c3}", &[4]),
        ("nul", &[5]),
        ("b\u{0}n", &[5]),
    ];
    for (query, expected) in rows {
        let found = archive.search(&thread, query, 9, &visible(&[1])).await;
        let indices = found.map(|hits| hits.iter().map(|hit| hit.batch.id.index).collect());
        same(law, format!("{query:?}"), &Ok::<Vec<u32>, _>(expected.to_vec()), &indices)?;
    }
    Ok(())
}

async fn search_ranks(archive: &dyn Archive) -> Result<()> {
    let (thread, law) = (named("t1")?, Law::SearchRanks);
    let texts = ["alpha beta beta", "alpha", "alpha alpha alpha", "beta gamma alpha", "delta"];
    let entries: Vec<_> =
        (0..).zip(texts).map(|(at, text)| entry(1, at, u64::from(at), text)).collect();
    write(archive, law, &thread, 1, &entries).await?;
    for limit in [0, 1, 2, 3, 9, usize::MAX] {
        let ranked = [3, 0, 2, 1].into_iter().take(limit);
        let found = archive.search(&thread, "Alpha beta GAMMA alpha", limit, &visible(&[1])).await;
        let found = found.map(|found| found.iter().map(|it| it.batch.id.index).collect::<Vec<_>>());
        same(law, format!("the best {limit}"), &Ok(ranked.collect()), &found)?;
    }
    Ok(())
}

async fn write(
    archive: &dyn Archive,
    law: Law,
    thread: &ThreadId,
    compaction: u64,
    entries: &[ArchiveEntry],
) -> Result<()> {
    let outcome = archive.write(thread, CompactionId(compaction), entries).await;
    same(law, format!("{entries:?}"), &Ok(()), &outcome)
}

/// Checks the listed entries of a thread while these compactions are visible.
async fn expect_listed(
    archive: &dyn Archive,
    law: Law,
    input: impl std::fmt::Display,
    thread: &ThreadId,
    standing: &[u64],
    entries: &[ArchiveEntry],
) -> Result<()> {
    let found = archive.list(thread, &visible(standing)).await;
    same(law, format!("{input}, {standing:?} of {thread} stand"), &Ok(entries.to_vec()), &found)
}

fn visible(standing: &[u64]) -> BTreeSet<CompactionId> {
    standing.iter().copied().map(CompactionId).collect()
}

fn batch_id(compaction: u64, index: u32) -> BatchId {
    BatchId { compaction: CompactionId(compaction), index }
}

fn entry(compaction: u64, index: u32, time: u64, text: &str) -> ArchiveEntry {
    let mut batch = Batch::new(batch_id(compaction, index), text);
    (batch.start, batch.end) = (Timestamp(time), Timestamp(time + 1));
    ArchiveEntry::new(batch)
}
