//! A killed writer loses no acknowledged event and stores none twice.
//!
//! `THREADFOLD_KILLS` is the number of kills.

use std::{env, path::Path, process::Child};

use futures::executor::block_on;
use threadfold_testing::shared::killed::{Kills, write_until_killed};

use crate::support::{CHILD, Folder, child, open};

#[test]
fn killed_writers_lose_nothing_and_store_nothing_twice() {
    if let Ok(input) = env::var(CHILD) {
        let (round, folder) = input.split_once(' ').unwrap();
        let store = open(Path::new(folder));
        block_on(write_until_killed(&store, round.parse().unwrap())).unwrap();
        unreachable!("it is killed");
    }
    let kills = env::var("THREADFOLD_KILLS").map_or(100, |kills| kills.parse().unwrap());
    let (folder, mut suite) = (Folder::new(), Kills::default());
    while suite.rounds() < kills {
        let test = "kills::killed_writers_lose_nothing_and_store_nothing_twice";
        let writer = child(test, &format!("{} {}", suite.rounds(), folder.display()));
        block_on(suite.round(writer, Child::kill, async || open(&folder))).unwrap();
    }
    println!("{suite}");
    assert!(suite.events() as u64 > 3 * kills);
}
