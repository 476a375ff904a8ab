//! The page of all threads: a row for each, the one that was compacted last first.

use threadfold_terminal::{counted, thousands};

use super::{
    prices,
    views::{Listed, Saved},
};
use crate::{
    report::{document, line, short},
    words::minute,
};

/// What this page has besides the style of the pages about threads.
const OWN_STYLE: &str = include_str!("index.css");

/// Returns the page about these threads, which are the newest of `all`.
pub(super) fn page(threads: &[Listed], all: u64) -> String {
    let rows: String = threads.iter().map(row).collect();
    let body = match threads {
        [] => EMPTY.to_owned(),
        _ => format!(
            "{}<ul class=\"threads\">\n{rows}</ul>\n{}",
            head(threads, all),
            foot(threads, all)
        ),
    };
    document("Threads of this proxy", OWN_STYLE, &body)
}

const EMPTY: &str = "<header>\n<p class=\"over\">threadfold proxy</p>\n\
    <h1>No thread was compacted yet.</h1>\n</header>\n\
    <p class=\"lead\">The proxy runs. It passes requests on as they come until a thread fills most of its \
    model's window; the thread is then listed here, with what was taken out and what was kept.</p>\n";

fn head(threads: &[Listed], all: u64) -> String {
    let times = threads.iter().map(|thread| thread.times).fold(0, u64::saturating_add);
    let mut saved = Saved::default();
    threads.iter().for_each(|thread| saved += thread.saved);
    let compacted = match times {
        1 => "compacted <em>once</em>".to_owned(),
        _ => format!("compacted <em>{} times</em>", thousands(times)),
    };
    let was = if all == 1 { "was" } else { "were" };
    let spared = match saved.tokens {
        0 => String::new(),
        tokens => format!(
            " {} since then left out {} tokens.",
            counted(saved.requests, "request"),
            short(tokens)
        ),
    };
    format!(
        "<header>\n<p class=\"over\">threadfold proxy</p>\n<h1>{} {was} {compacted}.{spared}</h1>\n</header>\n",
        counted(all, "thread")
    )
}

fn row(thread: &Listed) -> String {
    let Listed { about, times, saved } = thread;
    let words = match about.words.trim() {
        "" => "<i>A thread in which no person typed</i>".to_owned(),
        words => format!("<bdi>{}</bdi>", line(words, 120)),
    };
    let names = [about.client.as_str(), about.model.as_str()].map(|name| line(name, 60));
    let names: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let at = about.at;
    let money = thread.dollars().map_or_else(|| "–".to_owned(), prices::dollars);
    let cells = [
        (
            "compacted",
            if *times == 1 { "once".to_owned() } else { format!("{}×", thousands(*times)) },
        ),
        ("the last time", format!("{} → {}", short(about.before), short(about.after))),
        ("not sent", if saved.tokens == 0 { "–".to_owned() } else { short(saved.tokens) }),
        ("saved, at least", money),
    ];
    let cells: String = cells
        .into_iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>"))
        .collect();
    format!(
        "<li><div class=\"what\"><a href=\"/threadfold/threads/{}\">{words}</a>\
         <p class=\"note\">{}<time datetime=\"{at}\">{}</time></p></div><dl>{cells}</dl></li>\n",
        about.thread,
        names.iter().map(|name| format!("<bdi>{name}</bdi> · ")).collect::<String>(),
        minute(at)
    )
}

fn foot(threads: &[Listed], all: u64) -> String {
    let rest = all.saturating_sub(threads.len() as u64);
    let older = match rest {
        0 => String::new(),
        rest => format!(" {} before these not listed.", counted_is(rest)),
    };
    let unpriced =
        threads.iter().any(|thread| thread.saved.tokens > 0 && thread.dollars().is_none());
    let unpriced = if unpriced { " The price of some models is not known." } else { "" };
    let unknown = threads.iter().any(|thread| thread.about.window.is_none());
    let unknown = match unknown {
        true => " The window of some models is not known; <code>--window</code> states it.",
        false => "",
    };
    format!(
        "<footer><p>Tokens are estimates. Not sent is what the requests after a compaction left out; the money is \
         what these tokens cost at least, read from the provider’s cache.{unpriced}{unknown}{older}</p></footer>\n"
    )
}

fn counted_is(count: u64) -> String {
    if count == 1 { "1 thread is".to_owned() } else { format!("{} threads are", thousands(count)) }
}
