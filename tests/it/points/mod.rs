//! The five documents that the crate was made from, point by point.
//!
//! They describe a tool that compacts ranges (000), a summary that is edited chunk by chunk (001),
//! a compaction system for a log of events (002), a tool without parameters (003), and compaction
//! before the window is full (004). A test in the module of a document is named after its point:
//! `s000_07_...`. The points that other tests show are rows of `testdata/points.json`: the point,
//! what holds, and where it is shown. A row that departs from its document quotes the sentence of
//! our pages that states the reason.

mod s000;
mod s001;
mod s002;
mod s003;
mod s004;

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;

/// The number of points of each document.
const POINTS: [(&str, usize); 5] =
    [("000", 50), ("001", 46), ("002", 71), ("003", 17), ("004", 23)];

/// A point that tests elsewhere show.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    point: String,
    /// What holds, in our words.
    holds: String,
    /// Tests as `file::name`, and files of cases.
    by: Vec<String>,
    /// The page and the sentence with the reason, if the crate departs from the document.
    #[serde(default)]
    departs: Option<Departure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Departure {
    page: String,
    sentence: String,
}

fn rows() -> Vec<Row> {
    serde_json::from_str(include_str!("../../../testdata/points.json")).unwrap()
}

/// The points of the tests in these modules: `000-7` for `s000_07_...`.
fn tested() -> Vec<String> {
    let mut tested = Vec::new();
    for (document, _) in POINTS {
        let path = format!("tests/it/points/s{document}.rs");
        let source = fs::read_to_string(path).unwrap();
        for name in source.split("#[test]").skip(1) {
            let name = name.split("fn ").nth(1).unwrap().split('(').next().unwrap();
            let number =
                name.strip_prefix(&format!("s{document}_")).unwrap_or_else(|| panic!("{name}"));
            let number: usize = number.split('_').next().unwrap().parse().unwrap();
            tested.push(format!("{document}-{number}"));
        }
    }
    tested
}

#[test]
fn every_point_has_a_test_or_a_row() {
    let mut covered: BTreeMap<String, usize> = BTreeMap::new();
    for point in tested().into_iter().chain(rows().into_iter().map(|row| row.point)) {
        *covered.entry(point).or_default() += 1;
    }
    let expected = POINTS.iter().flat_map(|(document, count)| {
        (1..=*count).map(move |number| format!("{document}-{number}"))
    });
    let missing: Vec<String> =
        expected.clone().filter(|point| !covered.contains_key(point)).collect();
    assert!(missing.is_empty(), "without a test: {missing:?}");
    assert_eq!(covered.len(), 207, "{:?}", covered.keys().collect::<Vec<_>>());
}

#[test]
fn every_row_names_tests_that_exist() {
    for row in rows() {
        assert!(!row.by.is_empty() && row.holds.ends_with('.'), "{row:?}");
        for place in &row.by {
            let (file, name) =
                place.split_once("::").map_or((&**place, None), |(f, n)| (f, Some(n)));
            assert!(Path::new(file).exists(), "{}: there is no {file}", row.point);
            let Some(name) = name else { continue };
            let source = fs::read_to_string(file).unwrap();
            let test = source.split(&format!("fn {name}(")).next().unwrap();
            assert!(test.len() < source.len(), "{}: there is no {name} in {file}", row.point);
            let attribute = test.rsplit("#[test]").next().unwrap();
            assert!(!attribute.contains("fn "), "{}: {name} is not a test", row.point);
        }
    }
}

#[test]
fn every_reason_stands_in_its_page() {
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut departures = 0;
    for row in rows() {
        let Some(Departure { page, sentence }) = row.departs else { continue };
        let text =
            spaced(&fs::read_to_string(&page).unwrap().replace("//!", "").replace("///", ""));
        assert!(text.contains(&spaced(&sentence)), "{}: not in {page}: {sentence}", row.point);
        departures += 1;
    }
    assert!(departures > 5, "{departures}");
}
