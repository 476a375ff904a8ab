//! The net gain of a compaction so far, by the usage that the provider reported since.

use serde::{Deserialize, Serialize};

use super::{
    event::{CompactionRecord, Event},
    event_log::EventLog,
};
use crate::{
    compact::Prices,
    message::{CompactionId, Timestamp, Usage},
};

/// The net gain of a compaction from its commit to the next compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct NetGain {
    /// The number of answers since the compaction for which the provider reported usage.
    pub answers: u64,
    /// The sum of the usage that the provider reported for these answers.
    pub reported: Usage,
    /// The usage that the same answers would have had without the compaction.
    pub otherwise: Usage,
    /// The price of `otherwise`, minus the price of `reported` and of the compaction's own model
    /// calls, in millionths of the currency. Negative as long as the compaction has not paid for
    /// itself.
    pub gain: i64,
}

impl EventLog {
    /// Returns what a compaction has saved so far; `None` if the log holds no such compaction or no
    /// answer with usage before it. It reads the events that are held, and needs a whole log for a
    /// compaction before its [`base`](Self::base).
    ///
    /// `otherwise` assumes that without the compaction each prompt would have been longer by the
    /// saved tokens of the report, that each would have begun with the whole previous prompt, and
    /// that the cache lives as long as the prices state. The last assumption concerns only
    /// `otherwise`, because `reported` is the provider's own count.
    ///
    /// The time is linear in the events.
    ///
    /// ```
    /// # use threadfold::{EventLog, compact::Prices, message::CompactionId};
    /// # let log = EventLog::new("main".parse()?);
    /// let prices = r#"{"input": 3, "cached": 0.3, "cache_write": 3.75, "output": 15}"#;
    /// let prices: Prices = serde_json::from_str(prices)?;
    /// assert_eq!(log.net_gain(CompactionId(0), &prices), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn net_gain(&self, id: CompactionId, prices: &Prices) -> Option<NetGain> {
        let mut before: Option<(Timestamp, u64)> = None;
        let mut compaction: Option<&CompactionRecord> = None;
        let mut gain = NetGain::default();
        for logged in self.events() {
            if let Event::Compacted(record) = &logged.event {
                match compaction {
                    None if record.id == id => compaction = Some(record),
                    None => {}
                    Some(_) => break,
                }
            }
            if let (Event::Spent { .. }, Some((at, _))) = (&logged.event, &mut before) {
                *at = logged.at;
            }
            let Event::MessageAppended(message) = &logged.event else { continue };
            let Some(usage) = message.usage else { continue };
            let prompt = usage.input.saturating_add(compaction.map_or(0, saved));
            if compaction.is_some() {
                let (at, last) = before?;
                let is_warm = logged.at.0.saturating_sub(at.0) < prices.cache_life_ms;
                gain.answers += 1;
                gain.reported += usage;
                gain.otherwise +=
                    prices.usage(prompt, if is_warm { last } else { 0 }, usage.output);
            }
            before = Some((logged.at, prompt));
        }
        let spent = prices.bill(&compaction?.usage).saturating_add(prices.bill(&gain.reported));
        gain.gain = prices.bill(&gain.otherwise).saturating_sub(spent);
        Some(gain)
    }

    /// The net gain of the latest standing compaction so far.
    pub(crate) fn latest_gain(&self, prices: &Prices) -> Option<i64> {
        let latest = self.standing().last()?.id;
        self.net_gain(latest, prices).map(|gain| gain.gain)
    }

    /// Whether the provider still caches the prompt of the last answer. Without prices the lifetime
    /// of the cache is unknown, so it counts as expired.
    pub(crate) fn is_warm(&self, now: Timestamp, prices: Option<&Prices>) -> bool {
        let Some(prices) = prices else { return false };
        let answered = self.state().totals.answered;
        answered.is_some_and(|at| now.0.saturating_sub(at.0) < prices.cache_life_ms)
    }
}

fn saved(record: &CompactionRecord) -> u64 {
    record.report.before.tokens.saturating_sub(record.report.after.tokens)
}
