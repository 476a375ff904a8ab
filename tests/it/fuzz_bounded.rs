//! Runs the fuzz cases on a bounded number of seeded inputs, without a nightly compiler: noise, and
//! valid inputs with some changed bytes.
//!
//! If `THREADFOLD_BODIES` names a folder of real bodies, with a subfolder for each dialect, these
//! are changed too: the bodies, the logs of their threads and their texts. `cargo fuzz run
//! wire_decode FOLDER/openai-chat` can use the same folder as seeds. `THREADFOLD_FUZZ_SECONDS` sets
//! a time for each case instead of a count, and each prints how often it ran.

use std::{
    env, thread,
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, rngs::Xoshiro256PlusPlus};
use threadfold::{
    EventLog,
    log::Event,
    message::Timestamp,
    wire::{DecodeOptions, Dialect},
};
use threadfold_testing::shared::{
    cases,
    fuzz::{compact, edl, log_read, prose, stream, wire_decode},
};

use crate::support::{bodies as real, odd};

/// A stored plan and an input of the tool, each after the numbers of a thread.
const PLANS: [&str; 3] = [
    "\x01\x08\x02\x03\x04\x05\x06\x07\x01\x02\x03\0{\"version\":1,\"before\":2,\"splices\":[{\"at\":\
     {\"start\":0,\"end\":1},\"insert\":[{\"part\":{\"message\":0,\"blocks\":[0]}}]}],\"stripped\":0}",
    "\x05\x01\0{\"version\":1,\"before\":0,\"splices\":[{\"at\":{\"start\":0,\"end\":0},\"insert\":\
     [{\"message\":{\"message\":{\"role\":\"user\",\"content\":[]}}}]}]}",
    "\x07\x09\x02\x02\x02\x02\0{\"replacements\":[{\"from\":\"aaaaaa\",\"to\":null,\"summary\":\"x\"}]}",
];

/// Bodies of several dialects, some followed by a stored plan.
const BODIES: [&str; 6] = [
    r#"{"model":"m","messages":[],"temperature":0.5}"#,
    r#"{"model":"claude-opus-4-8","max_tokens":64,"system":"be brief","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"<checkpoint:aaaaaa>"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"tool_use","id":"t1","name":"read","input":{"path":"a","n":1.50}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"hello"}],"is_error":true}]}],"tools":[{"name":"read","input_schema":{"type":"object"}}]}"#,
    r#"{"model":"gpt-5","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]},{"role":"tool","tool_call_id":"t1","content":"hello"}]}"#,
    r#"{"model":"gpt-5","instructions":"be brief","input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"x"},{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a","annotations":[]}]},{"type":"computer_call","id":"cu_1","call_id":"c2","action":{}},{"type":"computer_call_output","call_id":"c2","output":{}},{"type":"compaction","encrypted_content":"gAAA"}]}"#,
    "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}]}\0{\"version\":1,\"before\":1,\
     \"splices\":[{\"at\":{\"start\":0,\"end\":1},\"insert\":[]}]}",
    r#"{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":[]}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2"}]}]}"#,
];

/// Bodies that an earlier version encoded differently the second time.
const FOUND: [&str; 5] = [
    r#"{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"tool_search_output","call_id":"c"}]}"#,
    r#"{"messages":[{"reasoning_content":"Hm.","role":"assistant","tool_calls":[{}]}]}"#,
    r#"{"messages":[{"role":"assistant","function_call":{}},{"role":"function","content":"x"}]}"#,
    r#"{"contents":[{"role":"model","parts":[{"functionCall":{"id":"a","name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"a b"}}]}]}"#,
    r#"{"input":[{"type":"program","id":"a","call_id":"p"},{"type":"program","id":"a","call_id":"q"},{"type":"program_output","call_id":"q"},{"type":"tool_search_output","execution":"server"}]}"#,
];

/// Lines of a log, with and without a header.
const LOGS: [&str; 3] = [
    concat!(
        "{\"seq\":0,\"at\":1,\"event\":{\"message_appended\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}}}\n",
        "{\"seq\":1,\"at\":2,\"event\":{\"message_appended\":{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"text\":\"b\"},{\"type\":\"text\",\"text\":\"c\"}]}}}\n",
        "{\"seq\":2,\"at\":3,\"event\":{\"compacted\":{\"id\":0,\"reason\":{\"type\":\"threshold\"},\"strategy\":\"s\",\"plan\":{\"version\":1,\"before\":2,\"splices\":[{\"at\":{\"start\":1,\"end\":2},\"insert\":[{\"part\":{\"message\":1,\"blocks\":[1]}}]}]}}}}\n",
        "{\"seq\":3,\"at\":4,\"event\":{\"compacted\":{\"id\":1,\"reason\":{\"type\":\"manual\"},\"strategy\":\"s\",\"plan\":{\"version\":1,\"before\":2,\"splices\":[{\"at\":{\"start\":0,\"end\":1},\"insert\":[{\"message\":{\"message\":{\"role\":\"user\",\"content\":[]}}}]}]}}}}\n",
        "{\"seq\":4,\"at\":5,\"event\":{\"compaction_undone\":{\"id\":1}}}\n",
        "{\"seq\":5,\"at\":6,\"event\":{\"truncated\":{\"from\":2,\"len\":2}}}\n",
    ),
    concat!(
        "{\"log\":\"threadfold\",\"major\":1,\"thread\":\"other\"}\n",
        "{\"seq\":0,\"at\":1,\"event\":\"paused\"}\n",
        "{\"seq\":1,\"at\":1,\"event\":{\"compaction_failed\":{\"id\":0,\"reason\":{\"type\":\"overflow\"},\"strategy\":\"s\",\"error\":\"x\"}}}\r\n",
        "{\"seq\":2,\"at\":1,\"event\":{\"host\":{\"kind\":\"k\",\"data\":{\"z\":1.0}}}}\n",
    ),
    "{\"seq\":0,\"at\":1,\"event\":{\"system_prompt_set\":{\"text\":\"t\",\"by\":\"user\"}}}\n{\"seq\":1,\"at\":1,\"event\":{\"local_notice\":{\"text\":\"n\"}}}\n",
];

/// Edit scripts, each with files after it.
const SCRIPTS: [&str; 4] = [
    "file /a\nselect /b+/g replace \"x\"\nfile /b\nselect 1-2 cut r\nfile /a select eof insert_after r\n\0a b\nbb\n\0one\r\ntwo",
    "newfile /c\nreplace <<E\né 😀\nE\nfile /a narrow_multiple /^.*$/m retain_nth -1 select_next /(a|b)*c/ delete\n\0日本\nabc",
    "file `a b`\n# comment\nselect_multiple /(?:a?){9}a{9}/s extend_forward /$/ insert_before \"a\\\"\"\n\0aaaaaaaaa\n",
    "file /a select 2:0-3:1 narrow /x*/y retain_first select_prev bof replace _saved_1\n\0\n\na\n",
];

#[test]
fn stored_logs() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let real = real_logs();
    let seeds: Vec<&str> = LOGS.into_iter().chain(real.iter().map(String::as_str)).collect();
    for number in rounds(4_000) {
        let bytes = match number % 8 {
            0 => noise(&mut random),
            1..4 => mutated(&mut random, &LOGS),
            _ => mutated(&mut random, &seeds),
        };
        run(log_read::check, &bytes);
    }
}

#[test]
fn threads_ranges_and_stored_plans() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for number in rounds(4_000) {
        let bytes = if number % 4 == 0 { mutated(&mut random, &PLANS) } else { noise(&mut random) };
        run(compact::check, &bytes);
    }
}

#[test]
fn bodies_of_every_dialect() {
    assert_eq!(Dialect::ALL.len(), 5, "a feature is missing");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    let real = real_bodies();
    let real: Vec<&str> = real.iter().map(String::as_str).collect();
    let seeds = [&BODIES, real.as_slice()].concat();
    for number in rounds(3_000) {
        let bytes = match number % 8 {
            0 => noise(&mut random),
            1 | 2 => mutated(&mut random, &BODIES),
            3 | 4 => changed_value(&mut random, &seeds),
            _ => mutated(&mut random, &seeds),
        };
        run(wire_decode::check, &bytes);
    }
}

/// The bodies of all dialects in the folder that the environment variable names.
fn real_bodies() -> Vec<String> {
    let names = Dialect::ALL.iter().map(|codec| codec.name());
    let bodies = names.flat_map(real::of).filter_map(|(_, body)| String::from_utf8(body).ok());
    // Larger bodies would leave few rounds.
    bodies.filter(|body| body.len() < 20_000).collect()
}

/// The threads of the real bodies as stored logs.
fn real_logs() -> Vec<String> {
    let of = |codec: &Dialect| real::of(codec.name()).into_iter();
    let bodies = Dialect::ALL.iter().flat_map(|codec| of(codec).map(move |b| (codec, b.1)));
    let small = bodies.filter(|(_, body)| body.len() < 20_000);
    let requests =
        small.filter_map(|(codec, body)| codec.decode_slice(&body, &DecodeOptions::default()).ok());
    let logs = requests.map(|request| {
        let mut log = EventLog::new("main".parse().unwrap());
        for message in request.messages.iter() {
            log.append(Timestamp(1), Event::MessageAppended(message.clone())).unwrap();
        }
        let mut lines = Vec::new();
        log.write(&mut lines).unwrap();
        String::from_utf8(lines).unwrap()
    });
    logs.collect()
}

/// The texts of real bodies, cut to a length that is read quickly.
fn real_texts() -> Vec<String> {
    let bodies = real_bodies();
    let mut texts = Vec::new();
    for body in &bodies {
        let Ok(mut body) = serde_json::from_str::<serde_json::Value>(body) else { continue };
        for value in values(&mut body) {
            let text = value.as_str().unwrap_or_default();
            if text.len() > 40 {
                texts.push(text.chars().take(2_000).collect());
            }
        }
    }
    texts
}

/// One of the inputs, with one value of its JSON tree replaced by another value of the tree.
fn changed_value(random: &mut Xoshiro256PlusPlus, inputs: &[&str]) -> Vec<u8> {
    let mut below = |end: usize| (random.next_u64() % end.max(1) as u64) as usize;
    let input = inputs.get(below(inputs.len())).unwrap().split('\0').next().unwrap();
    let Ok(mut body) = serde_json::from_str::<serde_json::Value>(input) else {
        return input.as_bytes().to_vec();
    };
    let count = values(&mut body).len();
    for _ in 0..=below(3) {
        let from = values(&mut body).get(below(count)).map(|value| (**value).clone());
        if let (Some(from), Some(to)) = (from, values(&mut body).into_iter().nth(below(count))) {
            *to = from;
        }
    }
    body.to_string().into_bytes()
}

/// The strings, numbers, words and empty lists in a tree.
fn values(value: &mut serde_json::Value) -> Vec<&mut serde_json::Value> {
    use serde_json::Value::{Array, Bool, Null, Number, Object, String};
    let is_leaf = match &*value {
        Array(items) => items.is_empty(),
        Object(fields) => fields.is_empty(),
        Null | Bool(_) | Number(_) | String(_) => true,
    };
    if is_leaf {
        return vec![value];
    }
    match value {
        Array(items) => items.iter_mut().flat_map(values).collect(),
        Object(fields) => fields.values_mut().flat_map(values).collect(),
        Null | Bool(_) | Number(_) | String(_) => Vec::new(),
    }
}

/// An input, which is printed if its case fails.
struct Tried<'a>(&'a [u8]);

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the input: {:?}", String::from_utf8_lossy(self.0));
        }
    }
}

/// Runs a case on an input.
fn run(case: impl FnOnce(&[u8]), input: &[u8]) {
    let _tried = Tried(input);
    case(input);
}

/// This many rounds, or as many as fit in the seconds of the environment variable.
fn rounds(usual: usize) -> impl Iterator<Item = usize> {
    let seconds = env::var("THREADFOLD_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    (0..).take_while(move |number| {
        let is_on = end.map_or(*number < usual, |end| Instant::now() < end);
        if !is_on {
            println!("{number} rounds");
        }
        is_on
    })
}

#[test]
fn prose_of_any_kind() {
    let own =
        "- `/a.rs`: read 18446744073709551615\n(18446744073709551615 more left out)\n".to_owned();
    let nested = odd::PAIRS.iter().map(|pair| odd::nested(*pair, 3));
    let repeated = odd::HOSTILE.iter().chain(odd::SCRIPTS).map(|part| odd::repeated(part, 2));
    let parts: Vec<String> = nested.chain(repeated).chain([own]).chain(real_texts()).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(5);
    for number in rounds(400) {
        let bytes = if number % 8 > 0 { joined(&mut random, &parts) } else { noise(&mut random) };
        run(prose::check, &bytes);
    }
}

/// Some of these parts, a few of them changed.
fn joined(random: &mut Xoshiro256PlusPlus, parts: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.next_u64() % 24 {
        let part = parts.get((random.next_u64() % parts.len() as u64) as usize).unwrap();
        let changed = random.next_u64().is_multiple_of(4);
        bytes.extend(if changed { mutated(random, &[part]) } else { part.as_bytes().to_vec() });
    }
    bytes
}

/// The streams of the cases, each after a byte that says how it is divided.
fn streams() -> Vec<String> {
    let folders =
        ["anthropic", "converse", "gemini", "openai-chat", "openai-responses"].into_iter();
    let cases = folders.flat_map(|name| cases::read(format!("testdata/streams/{name}")).unwrap());
    cases.map(|case| format!("\x07{}", case.section("stream").unwrap())).collect()
}

#[test]
fn answers_in_pieces() {
    let streams = streams();
    let streams: Vec<&str> = streams.iter().map(String::as_str).collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(4);
    for number in rounds(8_000) {
        let bytes = match number % 8 {
            0 => noise(&mut random),
            1..4 => mutated(&mut random, &streams),
            _ => shuffled(&mut random, &streams),
        };
        run(stream::check, &bytes);
    }
}

/// Events of several streams in some order.
fn shuffled(random: &mut Xoshiro256PlusPlus, streams: &[&str]) -> Vec<u8> {
    let mut below = |end: usize| (random.next_u64() % end.max(1) as u64) as usize;
    let mut text = String::from("\x05");
    let own = streams.get(below(streams.len())).unwrap();
    for _ in 0..below(20) {
        // Most events are of one stream, because events of different streams rarely form an answer.
        let other = streams.get(below(streams.len())).unwrap();
        let events = if below(8) == 0 { other } else { own };
        let events: Vec<&str> = events.split_inclusive("\n\n").collect();
        text.push_str(events.get(below(events.len())).unwrap().trim_start_matches('\x07'));
    }
    text.into_bytes()
}

#[test]
fn edit_scripts_over_files() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(6);
    for number in rounds(1_000) {
        let bytes = match number % 8 {
            0 => noise(&mut random),
            1..6 => mutated(&mut random, &SCRIPTS),
            _ => joined(&mut random, &SCRIPTS),
        };
        run(edl::check, &bytes);
    }
}

#[test]
fn unchanged_inputs_are_valid() {
    for script in SCRIPTS {
        let script = script.split('\0').next().unwrap();
        assert!(threadfold_edl::Script::parse(script).is_ok(), "{script}");
    }
    for body in BODIES {
        let body = body.split('\0').next().unwrap();
        serde_json::from_str::<serde_json::Value>(body).unwrap();
        wire_decode::check(body.as_bytes());
    }
    for body in FOUND {
        wire_decode::check(body.as_bytes());
    }
    for plan in PLANS {
        serde_json::from_str::<serde_json::Value>(plan.split('\0').nth(1).unwrap()).unwrap();
        compact::check(plan.as_bytes());
    }
    for log in LOGS {
        let lines = log.lines().map(serde_json::from_str::<serde_json::Value>);
        assert_eq!(lines.filter(Result::is_err).count(), 0);
        log_read::check(log.as_bytes());
    }
}

fn noise(random: &mut Xoshiro256PlusPlus) -> Vec<u8> {
    let length = random.next_u64() % 200;
    // Without zeros, because a zero begins the next part of the input.
    (0..length).map(|_| (random.next_u64() % 255) as u8 + 1).collect()
}

/// One of the inputs with a few changes: replaced bytes, lost parts, repeated parts, inserted
/// words.
fn mutated(random: &mut Xoshiro256PlusPlus, inputs: &[&str]) -> Vec<u8> {
    let mut below = |end: usize| (random.next_u64() % end.max(1) as u64) as usize;
    let mut bytes = inputs.get(below(inputs.len())).unwrap().as_bytes().to_vec();
    for _ in 0..=below(3) {
        let at = below(bytes.len());
        let end = (at + below(24)).min(bytes.len());
        match below(5) {
            0 => {
                let byte = below(256) as u8;
                bytes.get_mut(at..).and_then(<[u8]>::first_mut).into_iter().for_each(|b| *b = byte);
            }
            1 => drop(bytes.drain(at..end)),
            2 => {
                let part: Vec<u8> = bytes.get(at..end).unwrap_or_default().to_vec();
                drop(bytes.splice(at..at, part));
            }
            3 => {
                let words = ["null", "18446744073709551615", "-1", "1e999", "[[", "{}", "\"\""];
                let word = words.get(below(words.len())).unwrap();
                drop(bytes.splice(at..end, word.bytes()));
            }
            // Two parts are swapped.
            _ => {
                let middle = at + (end - at) / 2;
                bytes.get_mut(at..end).unwrap_or_default().rotate_left(middle - at);
            }
        }
    }
    bytes
}
