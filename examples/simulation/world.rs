//! The simulated worlds: a strategy, a window, a provider that counts in its own way, and a mood.

use std::{fmt, sync::Arc};

use threadfold::{CompactionStrategy, StrategyRegistry};

use super::hosts::{AlwaysFails, Nonsense};

/// The conditions of a simulated session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct World {
    /// The name of its only strategy.
    pub(crate) strategy: String,
    /// The window of the model, in tokens.
    pub(crate) window: u64,
    /// Whether the host knows the window.
    pub(crate) named: bool,
    pub(crate) reports: Reports,
    pub(crate) mood: Mood,
}

/// The usage that the provider reports for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reports {
    /// The session's own estimate.
    Truth,
    /// Zeros.
    Zero,
    /// Twice the estimate.
    Double,
    /// Nothing.
    Nothing,
}

/// The mood of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// An agent works fast and for long, and nothing goes wrong.
    Calm,
    /// Everything goes wrong sometimes.
    Wild,
}

/// The windows of wild worlds, whether the host knows them, and the turns of a session, which are
/// fewer if they take long.
const WINDOWS: [(u64, bool, u64); 6] = [
    (4_000, true, 50),
    (8_000, true, 50),
    (20_000, true, 50),
    (64_000, true, 25),
    (200_000, true, 10),
    (12_000, false, 50),
];

/// The windows of calm worlds, and the turns of a session.
const CALM: [(u64, u64); 3] = [(32_000, 120), (64_000, 90), (200_000, 60)];

impl World {
    /// Returns all worlds, each with the turns of a session: some 10,000 in all.
    pub(crate) fn all() -> Vec<(Self, u64)> {
        let registered = StrategyRegistry::default();
        let registered: Vec<&str> = registered.names().collect();
        let strategies = registered.iter().copied().chain(["always-fails", "nonsense"]);
        let counts = [Reports::Truth, Reports::Zero, Reports::Double, Reports::Nothing];
        let wild = strategies.flat_map(|strategy| {
            counts.into_iter().flat_map(move |reports| {
                WINDOWS.into_iter().map(move |(window, named, turns)| {
                    let (strategy, mood) = (strategy.to_owned(), Mood::Wild);
                    (Self { strategy, window, named, reports, mood }, turns)
                })
            })
        });
        // Trimming or clearing results alone has nothing to remove when the agent only writes text,
        // and the provider here has no compaction of its own.
        let takes_nothing = ["clear-results", "native", "trim-tool-results"];
        let good = registered.iter().filter(|name| !takes_nothing.contains(name));
        let calm = good.flat_map(|strategy| {
            CALM.into_iter().map(|(window, turns)| {
                let (strategy, mood) = ((*strategy).to_owned(), Mood::Calm);
                (Self { strategy, window, named: true, reports: Reports::Truth, mood }, turns)
            })
        });
        wild.chain(calm).collect()
    }

    pub(super) fn strategy(&self) -> Result<Arc<dyn CompactionStrategy>, String> {
        match self.strategy.as_str() {
            "always-fails" => Ok(Arc::new(AlwaysFails)),
            "nonsense" => Ok(Arc::new(Nonsense::default())),
            name => {
                let registry = StrategyRegistry::default();
                registry.get(name).cloned().map_err(|error| error.to_string())
            }
        }
    }

    pub(super) fn is_calm(&self) -> bool {
        self.mood == Mood::Calm
    }

    /// Returns the bytes of this share of the window, given in percent.
    pub(super) fn bytes(&self, percent: u64) -> u64 {
        self.window * 3 * percent / 100
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { strategy, window, named, reports, mood } = self;
        let known = if *named { "" } else { "unknown " };
        write!(f, "{strategy} in a {known}window of {window}, {reports:?} reported, {mood:?}")
    }
}
