//! For the tests of the rulebooks: a book, a clock and a script.

use serde_json::{Value, json};
use threadfold::{message::Timestamp, wire::Dialect};
use threadfold_testing::rulebook::{
    Asked, BookOptions, HttpCall, Purpose, Reply, ReplyBody, Rulebook, Said,
};

pub(crate) struct Desk {
    pub(crate) book: Rulebook,
    pub(crate) now: u64,
    headers: Vec<(&'static str, &'static str)>,
    path: &'static str,
}

impl Desk {
    pub(crate) fn new(
        dialect: Dialect,
        path: &'static str,
        headers: &[(&'static str, &'static str)],
    ) -> Self {
        Self::with(dialect, path, headers, BookOptions::default())
    }

    pub(crate) fn with(
        dialect: Dialect,
        path: &'static str,
        headers: &[(&'static str, &'static str)],
        options: BookOptions,
    ) -> Self {
        Self { book: Rulebook::new(dialect, options), now: 0, headers: headers.to_vec(), path }
    }

    /// The reply to a body. The model thinks, and then says "Done."; its summary is "A summary.".
    pub(crate) fn ask(&mut self, body: &Value) -> Reply {
        let mut script = |asked: &Asked<'_>| match asked.purpose {
            Purpose::Answer => Said::text("Done.").after("Hm."),
            Purpose::Compaction => Said::text("A summary."),
        };
        self.ask_with(body, &mut script)
    }

    pub(crate) fn ask_with(
        &mut self,
        body: &Value,
        script: &mut dyn FnMut(&Asked<'_>) -> Said,
    ) -> Reply {
        let body = body.to_string();
        let call = HttpCall { path: self.path, headers: &self.headers, body: body.as_bytes() };
        self.book.answer(&call, Timestamp(self.now), script)
    }

    pub(crate) fn at(&mut self, path: &'static str) -> &mut Self {
        self.path = path;
        self
    }

    /// The body of a reply with status 200.
    pub(crate) fn answered(&mut self, body: &Value) -> Value {
        let reply = self.ask(body);
        assert_eq!(reply.status, 200, "{reply:?}");
        whole(reply)
    }

    /// The message of a refusal, and the name of its rule.
    pub(crate) fn refused(&mut self, body: &Value) -> (String, &'static str) {
        let reply = self.ask(body);
        assert!(reply.status >= 400, "{reply:?}");
        let rule = self.book.seen().violations.last().map_or("", |violation| violation.rule.name);
        let body = whole(reply);
        let message = body["error"]["message"].as_str().or(body["message"].as_str());
        (message.unwrap().to_owned(), rule)
    }
}

pub(crate) fn whole(reply: Reply) -> Value {
    let ReplyBody::Json(value) = reply.body else { panic!("not one value") };
    value
}

/// A field of a body set to another value.
pub(crate) fn with(body: &Value, field: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[field] = value;
    body
}

/// A list and more items.
pub(crate) fn more(list: &Value, items: Value) -> Value {
    let mut list = list.as_array().unwrap().clone();
    list.extend(items.as_array().unwrap().iter().cloned());
    json!(list)
}
