//! The prompt cache of a provider, and its bill.

use threadfold::{
    Message, Usage,
    compact::Prices,
    message::Timestamp,
    tokens::{ByteEstimate, TokenCounter},
};

/// The tokens of the answer to a keep-alive.
pub(crate) const KEEP_ALIVE_OUTPUT: u64 = 16;

/// Keeps the prompt of the last request in its cache, in whole blocks, and bills each request.
pub(crate) struct Provider {
    prices: Prices,
    /// The tokens before the first message.
    overhead: u64,
    cached: Vec<Message>,
    used: Option<Timestamp>,
    pub(crate) billed: Usage,
    pub(crate) money: i64,
}

impl Provider {
    pub(crate) fn new(prices: Prices, overhead: u64) -> Self {
        let (billed, money) = (Usage::default(), 0);
        Self { prices, overhead, cached: Vec::new(), used: None, billed, money }
    }

    /// Bills a request. Reading from the cache ends at the first message that differs from the last
    /// prompt.
    pub(crate) fn ask(&mut self, at: Timestamp, prompt: &[Message], output: u64) {
        let counter = ByteEstimate::TRIGGER;
        let is_same = |(one, other): &(&Message, &Message)| one.ptr_eq(other) || one == other;
        let same = self.cached.iter().zip(prompt).take_while(is_same).count();
        let shared = self.overhead + counter.messages(prompt.get(..same).unwrap_or_default());
        let shared = if is_warm(&self.prices, self.used, at) { shared } else { 0 };
        let usage = self.prices.usage(self.overhead + counter.messages(prompt), shared, output);
        self.billed += usage;
        self.money += self.prices.bill(&usage);
        (self.cached, self.used) = (prompt.to_vec(), Some(at));
    }

    /// Bills the last prompt once more, which renews its cache.
    pub(crate) fn keep_alive(&mut self, at: Timestamp) {
        let prompt = self.cached.clone();
        self.ask(at, &prompt, KEEP_ALIVE_OUTPUT);
    }

    /// Bills a model that reads this prompt and writes a summary of so many tokens; zero asks none.
    pub(crate) fn summarise(&mut self, at: Timestamp, prompt: &[Message], tokens: u64) {
        if tokens > 0 {
            self.ask(at, prompt, tokens);
        }
    }
}

/// Whether the cache of a request that was sent at `used` still lives.
pub(crate) fn is_warm(prices: &Prices, used: Option<Timestamp>, at: Timestamp) -> bool {
    used.is_some_and(|used| at.0.saturating_sub(used.0) < prices.cache_life_ms)
}
