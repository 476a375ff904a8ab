//! Request bodies from outside: what real programs have sent.
//!
//! They are in the folder that `THREADFOLD_BODIES` names, with a subfolder for each dialect and a
//! file for each body, such as `openai-chat/some-name.json`. Without the folder the tests print
//! that they were skipped.

use serde_json::Value;
use threadfold::wire::{DecodeOptions, Dialect, EncodeOptions};

use crate::support::bodies;

/// The result of reading a body and writing it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The written body equals the read one.
    Equal,
    /// The body was changed, and the adjustments list the changes.
    Adjusted,
    /// The codec refuses it as no body of its dialect.
    Refused,
    /// The body was changed without an adjustment. This is the failure.
    Changed,
}

fn fate(codec: Dialect, body: &[u8]) -> (Fate, String) {
    let request = match codec.decode_slice(body, &DecodeOptions::default()) {
        Ok(request) => request,
        Err(error) => return (Fate::Refused, error.to_string()),
    };
    let encoded = codec.encode(&request, &EncodeOptions::default());
    let came: Value = serde_json::from_slice(body).unwrap();
    let notes: Vec<String> = encoded.adjustments.iter().map(ToString::to_string).collect();
    if encoded.body.to_value().unwrap() == came {
        (Fate::Equal, notes.join("; "))
    } else if notes.is_empty() {
        (Fate::Changed, encoded.body.to_string())
    } else {
        (Fate::Adjusted, notes.join("; "))
    }
}

#[test]
fn a_body_round_trips_or_its_changes_are_listed() {
    let mut changed = Vec::new();
    for codec in Dialect::ALL {
        let mut counts = [0; 4];
        for (name, body) in bodies::of(codec.name()) {
            let (fate, note) = fate(*codec, &body);
            if let Some(count) = counts.get_mut(fate as usize) {
                *count += 1;
            }
            if fate != Fate::Equal {
                println!("{fate:?} {}/{name}: {note}", codec.name());
            }
            if fate == Fate::Changed {
                changed.push(format!("{}/{name}", codec.name()));
            }
        }
        let [equal, adjusted, refused, silent] = counts;
        println!(
            "{}: {equal} equal, {adjusted} adjusted, {refused} refused, {silent} changed",
            codec.name()
        );
    }
    assert!(changed.is_empty(), "{changed:?}");
}
