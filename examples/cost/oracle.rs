//! The lowest bill that any choice of moments and targets could have.

use threadfold::compact::Prices;

use super::{course::Course, provider::is_warm};

/// The number of sizes that are tried, from the smallest to the window.
const TARGETS: u64 = 8;

/// The numbers of a course that the oracle needs.
struct Known<'a> {
    prices: &'a Prices,
    window: u64,
    overhead: u64,
    /// For each request: all tokens that arrived before it, the tokens of its answer, and whether
    /// the previous prompt is still in the cache.
    arrived: Vec<u64>,
    output: Vec<u64>,
    warm: Vec<bool>,
}

/// Returns the lowest bill of the requests of a course, if a compaction may precede any of them.
/// `sizes` has the smallest size, in tokens, that a compaction can leave of the thread before each
/// request, and `kept` the maximum that one left unchanged at the start of the thread.
///
/// The oracle knows the future: it is dynamic programming from the last request to the first, over
/// the moments of compactions and the sizes that they leave. Its compactions cost only the
/// rewritten prompt, may come as often as they pay, and reach sizes above the smallest exactly. So
/// no policy that compacts with this strategy is cheaper.
pub(crate) fn least_bill(course: &Course, prices: &Prices, sizes: &[u64], kept: u64) -> i64 {
    let known = Known::of(course, prices);
    let most = course.window.saturating_sub(course.overhead());
    // The lowest bill of all requests from this one on, if the thread is compacted before it.
    let mut from: Vec<i64> = vec![0; sizes.len() + 1];
    for (request, least) in sizes.iter().enumerate().rev() {
        let room = most.saturating_sub(*least);
        let targets = (0..TARGETS).map(|target| *least + room * target / TARGETS);
        let costs = targets.map(|target| known.cost(request, target, Some(kept), &from));
        let best = costs.min().unwrap_or(i64::MAX);
        if let Some(cost) = from.get_mut(request) {
            *cost = best;
        }
    }
    let first = known.arrived.first().copied().unwrap_or_default();
    known.cost(0, first, None, &from)
}

impl<'a> Known<'a> {
    fn of(course: &Course, prices: &'a Prices) -> Self {
        let (window, overhead) = (course.window, course.overhead());
        let (arrived, output, warm) = (Vec::new(), Vec::new(), Vec::new());
        let mut known = Self { prices, window, overhead, arrived, output, warm };
        let (mut all, mut used) = (0, None);
        for step in &course.steps {
            all += step.incoming_tokens();
            known.arrived.push(all);
            known.output.push(step.output());
            known.warm.push(is_warm(prices, used, step.at));
            all += step.output();
            used = Some(step.at);
        }
        known
    }

    /// Returns the lowest bill from a request on whose thread has `size` tokens, for the best
    /// moment of the next compaction, if any. `kept` of these tokens were unchanged if a compaction
    /// came directly before. `from` has the bills after a compaction.
    fn cost(&self, first: usize, size: u64, kept: Option<u64>, from: &[i64]) -> i64 {
        let base = self.arrived.get(first).copied().unwrap_or_default();
        let requests =
            self.arrived.iter().zip(&self.output).zip(&self.warm).zip(from.iter().skip(1));
        let (mut sum, mut best, mut last): (i64, _, _) = (0, i64::MAX, 0);
        for (index, (((arrived, output), warm), later)) in requests.enumerate().skip(first) {
            let prompt = self.overhead.saturating_add(size).saturating_add(arrived - base);
            // A request that no compaction makes fit is sent as it is.
            if prompt > self.window && index > first {
                return best;
            }
            let shared = match kept {
                _ if !warm => 0,
                Some(kept) if index == first => self.overhead.saturating_add(kept),
                Some(_) | None => last,
            };
            sum += self.prices.bill(&self.prices.usage(prompt, shared, *output));
            best = best.min(sum.saturating_add(*later));
            last = prompt;
        }
        // The bill without another compaction.
        best.min(sum)
    }
}
