//! Reading the body of a request, and the limits of what is decoded.

use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{
    StatusCode,
    body::{Bytes, Incoming},
};
use threadfold_terminal::thousands;

use super::trouble::Trouble;

/// The time limit for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(60);

/// The limits of a body that is decoded. A larger one is passed on as it came. The last two bound
/// the memory that decoding needs, whatever the body consists of.
const MAX_ITEMS: u64 = 20_000;
const MAX_OBJECTS: u64 = 200_000;
const MAX_VALUES: u64 = 1_000_000;

/// Reads a whole body.
pub(super) async fn read(body: Incoming, most: usize) -> Result<Bytes, (StatusCode, String)> {
    let whole = tokio::time::timeout(BODY_TIME, Limited::new(body, most).collect());
    match whole.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let words = format!("the body has more than {most} bytes: see --max-body");
            Err((StatusCode::PAYLOAD_TOO_LARGE, words))
        }
        Ok(Err(error)) => Err((StatusCode::BAD_REQUEST, error.to_string())),
        Err(late) => Err((StatusCode::REQUEST_TIMEOUT, late.to_string())),
    }
}

/// Checks that a body is small enough to be decoded: its messages, objects and values.
pub(super) fn check(body: &[u8]) -> Result<(), Trouble> {
    let counts = Counts::of(body);
    let over = [
        ("messages and tools", counts.items, MAX_ITEMS),
        ("objects and arrays", counts.objects, MAX_OBJECTS),
        ("values", counts.values, MAX_VALUES),
    ];
    match over.into_iter().find(|(_, found, most)| found > most) {
        Some((what, found, most)) => Err(Trouble::new(format!(
            "the body has {} {what}; at most {} are read",
            thousands(found),
            thousands(most)
        ))),
        None => Ok(()),
    }
}

/// What a body consists of, counted without decoding it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Objects and arrays in the arrays of the body: messages and tools.
    items: u64,
    objects: u64,
    /// Objects, arrays, and values after a comma.
    values: u64,
}

impl Counts {
    fn of(body: &[u8]) -> Self {
        let (mut counts, mut depth, mut rest) = (Self::default(), 0_u64, body);
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match byte {
                b'"' => rest = after_string(after),
                b'{' | b'[' => {
                    counts.objects += 1;
                    counts.values += 1;
                    counts.items += u64::from(depth == 2);
                    depth = depth.saturating_add(1);
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b',' => counts.values += 1,
                _ => {}
            }
        }
        counts
    }
}

/// What follows the string that began before `rest`.
fn after_string(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        // An escaped character may be a quote.
        let skipped = if rest.get(at) == Some(&b'"') { 1 } else { 2 };
        rest = rest.get(at.saturating_add(skipped)..).unwrap_or_default();
        if skipped == 1 {
            return rest;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_body_consists_of_is_counted() {
        let body = br#"{"a":"[{\"{","messages":[{"b":[1,2]},{}],"tools":[{}]}"#;
        assert_eq!(Counts::of(body), Counts { items: 3, objects: 7, values: 11 });
        assert_eq!(Counts::of(b"\"\\"), Counts::default());
    }

    #[test]
    fn a_body_of_very_many_parts_is_not_decoded() {
        let body = |part: &str, count: usize| {
            format!("{{\"messages\":[{}{part}]}}", format!("{part},").repeat(count))
        };
        let messages = body(r#"{"role":"user","content":"x"}"#, 20_000);
        let words = check(messages.as_bytes()).unwrap_err().to_string();
        assert_eq!(words, "the body has 20,001 messages and tools; at most 20,000 are read");
        let blocks = format!("{{\"m\":[{}]}}", body("{}", 200_000));
        assert!(check(blocks.as_bytes()).is_err());
        assert!(check(body("0", 1_000_000).as_bytes()).is_err());
        assert!(check(body(r#"{"role":"user","content":"x"}"#, 19_999).as_bytes()).is_ok());
    }
}
