//! Every strategy over the rules of every vendor: an agent that reasons, calls tools and sometimes
//! changes its provider, behind a [`Rulebook`] for each.
//!
//! It counts what the rules find illegal, and what becomes of the reasoning in kept turns: the part
//! that reaches the model, the part that the plan of a compaction marked as void, the part that the
//! codec left out with another reason, and the part that is lost without a word.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    ops::AddAssign,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::executor::block_on;
use serde_json::{Map, Value, json};
use threadfold::{
    Answer, ContentBlock, ContextWindow, Message, Model, ModelAgent, Request, Role, Session,
    StrategyRegistry, async_trait,
    message::{ModelError, Text},
    wire::{Adjustment, Change, Dialect, EncodeOptions},
};
use threadfold_testing::{
    TestClock,
    rulebook::{BookOptions, Last, Outcome, Rulebook, RulebookModel, Said},
    shared::simulation::{Numbers, Read, extracted, worked},
};

/// The tokens of every window.
const WINDOW: u64 = 16_000;

/// The bytes of a usual result and of a large one.
const SIZES: [u64; 2] = [1_500, 12_000];

/// A vendor's API with a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vendor {
    pub(crate) dialect: Dialect,
    pub(crate) model: &'static str,
    version: &'static str,
}

impl Vendor {
    /// All vendors, before and since their last change of rules.
    pub(crate) const ALL: [Self; 7] = [
        Self { version: "2023-06-01", ..Self::new(Dialect::Anthropic, "claude-sonnet-4-5") },
        Self::new(Dialect::Anthropic, "claude-opus-5-5"),
        Self::new(Dialect::OpenAiResponses, "gpt-5.2"),
        Self::new(Dialect::OpenAiResponses, "gpt-6.2-sol"),
        Self::new(Dialect::OpenAiChat, "gpt-5.2"),
        Self::new(Dialect::Gemini, "gemini-3-pro"),
        Self::new(Dialect::BedrockConverse, "anthropic.claude-opus-5-5-v1:0"),
    ];

    const fn new(dialect: Dialect, model: &'static str) -> Self {
        Self { dialect, model, version: "2026-10-21" }
    }

    /// The model of this vendor over a book, with a script.
    pub(crate) fn over(
        self,
        book: Arc<Mutex<Rulebook>>,
        says: impl Fn(&Request) -> Said + Send + Sync + 'static,
    ) -> RulebookModel {
        let clock = Arc::new(TestClock::default());
        RulebookModel::new(book, self.model, clock, says)
            .with_fields(self.fields())
            .with_header("anthropic-version", self.version)
    }

    /// Whether the vendor binds reasoning and compacts itself, which keeps later reasoning.
    pub(crate) fn keeps_bound_reasoning(self) -> bool {
        EncodeOptions::for_model(self.model).binds_reasoning
            && matches!(self.dialect, Dialect::Anthropic | Dialect::OpenAiResponses)
    }

    /// With a manual budget there is no answer without reasoning.
    pub(crate) fn always_reasons(self) -> bool {
        self.model == "claude-sonnet-4-5"
    }

    /// Whether an answer of this vendor holds reasoning that goes back to it.
    fn keeps_reasoning(self, answer: &Message) -> bool {
        self.dialect != Dialect::OpenAiChat && answer.content.iter().any(is_signed)
    }

    /// What a host of this vendor sets in its requests.
    fn fields(self) -> Map<String, Value> {
        let adaptive = json!({"type": "adaptive"});
        let fields = match (self.dialect, self.model) {
            (Dialect::Anthropic, "claude-sonnet-4-5") => {
                json!({"thinking": {"type": "enabled", "budget_tokens": 1_024}})
            }
            (Dialect::Anthropic, _) => json!({"thinking": adaptive}),
            (Dialect::OpenAiResponses, _) => {
                json!({"store": false, "include": ["reasoning.encrypted_content"]})
            }
            (Dialect::BedrockConverse, _) => {
                json!({"additionalModelRequestFields": {"thinking": adaptive}})
            }
            _ => json!({}),
        };
        fields.as_object().cloned().unwrap_or_default()
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dialect.name(), self.model)
    }
}

/// What came of the turns of a strategy at a vendor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judged {
    pub(crate) turns: u64,
    pub(crate) requests: u64,
    pub(crate) compactions: u64,
    /// Turns that ended with an error, and the first of these.
    pub(crate) failed: Vec<String>,
    pub(crate) overflows: u64,
    /// What the rules found.
    pub(crate) illegal: Vec<String>,
    /// Reasoning of kept turns, in all requests: that of the model which is asked.
    pub(crate) kept: u64,
    /// The part of it that reached the model.
    pub(crate) arrived: u64,
    /// The part that did not, because the plan of a compaction marked or removed it.
    pub(crate) announced: u64,
    /// The part that the codec left out for another reason, with the reasons.
    pub(crate) left_out: BTreeMap<String, u64>,
    /// Reasoning that a request sent, and that the vendor dropped.
    pub(crate) dropped: u64,
    /// That, and what did not arrive and of which nothing was reported.
    pub(crate) silent: u64,
}

impl Judged {
    /// The share of the reasoning of kept turns that reached the model, in percent.
    pub(crate) fn share(&self) -> Option<u64> {
        (self.arrived * 100).checked_div(self.kept)
    }
}

impl AddAssign for Judged {
    fn add_assign(&mut self, other: Self) {
        self.turns += other.turns;
        self.requests += other.requests;
        self.compactions += other.compactions;
        self.failed.extend(other.failed);
        self.overflows += other.overflows;
        self.illegal.extend(other.illegal);
        self.kept += other.kept;
        self.arrived += other.arrived;
        self.announced += other.announced;
        for (reason, count) in other.left_out {
            *self.left_out.entry(reason).or_default() += count;
        }
        self.dropped += other.dropped;
        self.silent += other.silent;
    }
}

/// Whether an agent leaves its provider now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Travels {
    /// It stays at home.
    Never,
    /// One turn in twenty begins an excursion of up to four turns to another provider.
    Sometimes,
}

/// Runs a strategy for so many turns at home at a vendor, with excursions to the others or without.
pub(crate) fn run(
    vendor: Vendor,
    strategy: &str,
    (seed, turns): (u64, u64),
    travels: Travels,
) -> Result<Judged, String> {
    let home = Vendor::ALL.iter().position(|it| *it == vendor).unwrap_or(0);
    let numbers = Arc::new(Numbers::new(seed));
    let providers = Arc::new(Providers::new(&numbers, home, seed));
    let agent = ModelAgent::new(Arc::clone(&providers) as Arc<dyn Model>);
    let registry = StrategyRegistry::default();
    let mut session = Session::builder(agent)
        .strategy(registry.get(strategy).cloned().map_err(|error| error.to_string())?)
        .system("You work on a large program.")
        .tool(Arc::new(Read))
        .clock(Arc::new(TestClock::default()))
        .seed(seed)
        .build()
        .map_err(|error| error.to_string())?;
    let mut away = 0;
    for turn in 0..turns {
        if away > 0 {
            away -= 1;
        } else if travels == Travels::Sometimes && numbers.once_in(20) {
            away = numbers.below(4);
            providers.go_to(numbers.below(Vendor::ALL.len() as u64) as usize);
        } else {
            providers.go_to(home);
        }
        let text = format!("Go on with part {turn}. {}", numbers.words(12));
        let failed = send(&mut session, text).err();
        let mut judged = providers.judged();
        judged.turns += 1;
        judged.failed.extend(failed);
    }
    let mut judged = providers.judged().clone();
    judged.compactions = session.log().standing().count() as u64;
    // What the reports do not count was removed without a word.
    let reported = session.log().standing().map(|record| record.report.blocks_stripped as u64);
    judged.silent += (lock(&providers.stripped).len() as u64).saturating_sub(reported.sum());
    Ok(judged)
}

fn send(session: &mut Session, text: String) -> Result<(), String> {
    let mut events = session.send(text);
    while let Some(event) = block_on(events.next()) {
        event.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The models of all vendors, one of which answers.
#[derive(Debug)]
struct Providers {
    models: Vec<RulebookModel>,
    current: AtomicUsize,
    /// The answers with reasoning, by their number, and the place of the vendor.
    reasoned: Mutex<HashMap<u64, usize>>,
    /// Those whose reasoning a plan removed.
    stripped: Mutex<BTreeSet<u64>>,
    judged: Mutex<Judged>,
}

impl Providers {
    fn new(numbers: &Arc<Numbers>, home: usize, seed: u64) -> Self {
        let answers = Arc::new(AtomicUsize::new(0));
        // The models of a vendor share its book, as those of one account do.
        let mut books: BTreeMap<&str, Arc<Mutex<Rulebook>>> = BTreeMap::new();
        let models = Vendor::ALL.iter().map(|vendor| {
            let (numbers, answers) = (Arc::clone(numbers), Arc::clone(&answers));
            let says = move |request: &Request| match request.max_output.is_some() {
                true => extracted(request),
                false => {
                    let number = answers.fetch_add(1, Ordering::Relaxed) as u64;
                    worked(&numbers, number, SIZES, vendor.always_reasons())
                }
            };
            let book = books.entry(vendor.dialect.name()).or_insert_with(|| {
                let options = BookOptions { window: WINDOW, seed, ..BookOptions::default() };
                Arc::new(Mutex::new(Rulebook::new(vendor.dialect, options)))
            });
            vendor.over(Arc::clone(book), says)
        });
        let models = models.collect();
        let current = AtomicUsize::new(home);
        let (reasoned, stripped, judged) = Default::default();
        Self { models, current, reasoned, stripped, judged }
    }

    fn go_to(&self, place: usize) {
        self.current.store(place, Ordering::Relaxed);
    }

    fn judged(&self) -> MutexGuard<'_, Judged> {
        lock(&self.judged)
    }

    /// The answers with reasoning of this provider in a request.
    fn kept(&self, request: &Request, place: usize) -> Kept {
        let reasoned = lock(&self.reasoned);
        let is_its = |message: &Message| {
            let number = Some(message).filter(|it| it.role == Role::Assistant).and_then(number_of);
            number.is_some_and(|number| reasoned.get(&number) == Some(&place))
        };
        let kept = request.messages.iter().enumerate().filter(|(_, message)| is_its(message));
        let kept: BTreeMap<usize, Void> =
            kept.map(|(at, message)| (at, Void::of(message))).collect();
        let stripped = kept.iter().filter(|(_, void)| **void == Void::Stripped);
        let stripped = stripped.filter_map(|(at, _)| number_of(request.messages.get(*at)?));
        lock(&self.stripped).extend(stripped);
        Kept(kept)
    }
}

/// The path of the answer that a piece of reasoning is a part of.
fn answer_of(piece: &str) -> &str {
    piece.split_once(".parts[").map_or(piece, |(answer, _)| answer)
}

/// Whether a block holds reasoning. Gemini signs a call, or a text if there is none.
fn is_signed(block: &ContentBlock) -> bool {
    let extra = if let ContentBlock::ToolUse(call) = block {
        &call.extra
    } else if let ContentBlock::Text(text) = block {
        &text.extra
    } else {
        return block.is_reasoning();
    };
    extra.get("gemini", "thoughtSignature").is_some()
}

/// The answers in a request whose reasoning the model could read, by their place, and what plans did
/// to it.
struct Kept(BTreeMap<usize, Void>);

/// What the plan of a compaction did to the reasoning of an answer that stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Void {
    No,
    /// It is marked: a message before it was changed.
    Marked,
    /// It was removed, as the report of the compaction counts it.
    Stripped,
}

impl Void {
    fn of(message: &Message) -> Self {
        match (message.prefix_rewritten, message.content.iter().any(is_signed)) {
            (true, true) => Self::Marked,
            (false, true) => Self::No,
            // Only plans change a thread.
            (_, false) => Self::Stripped,
        }
    }
}

impl Kept {
    /// Counts what became of them in a request that was answered.
    fn count(&self, adjusted: &[Adjustment], last: &Last, judged: &mut Judged) {
        let stripped = self.0.iter().filter(|(_, void)| **void == Void::Stripped);
        let mut missing: BTreeMap<usize, &str> = stripped.map(|(at, _)| (*at, "")).collect();
        for adjustment in adjusted {
            if let Adjustment { message: Some(at), change: Change::ReasoningDropped { reason } } =
                adjustment
            {
                missing.extend(self.0.contains_key(at).then_some((*at, reason.as_str())));
            }
        }
        // Gemini signs parts, of which an answer has several.
        let answers: BTreeSet<&str> = last.arrived.iter().map(|path| answer_of(path)).collect();
        let (kept, arrived) = (self.0.len() as u64, answers.len() as u64);
        judged.kept += kept;
        judged.arrived += arrived;
        let accounted = arrived + missing.len() as u64 + last.void.len() as u64;
        judged.silent += kept.saturating_sub(accounted);
        for (at, reason) in missing {
            match self.0.get(&at) {
                Some(Void::Marked | Void::Stripped) => judged.announced += 1,
                Some(Void::No) | None => {
                    *judged.left_out.entry(reason.to_owned()).or_default() += 1;
                }
            }
        }
    }
}

#[async_trait]
impl Model for Providers {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        let place = self.current.load(Ordering::Relaxed);
        let Some(model) = self.models.get(place) else { return Err(ModelError::cut_short()) };
        let kept = (request.max_output.is_none()).then(|| self.kept(&request, place));
        let answer = model.complete(request).await;
        self.look(model, place, kept);
        if let (Ok(answer), Some(vendor)) = (&answer, Vendor::ALL.get(place))
            && let Some(number) = number_of(&answer.message)
            && vendor.keeps_reasoning(&answer.message)
        {
            lock(&self.reasoned).insert(number, place);
        }
        answer
    }

    async fn compact_natively(
        &self,
        request: Request,
        instructions: Option<Text>,
    ) -> Result<Option<Answer>, ModelError> {
        let place = self.current.load(Ordering::Relaxed);
        let Some(model) = self.models.get(place) else { return Ok(None) };
        let before = model.book().seen().requests;
        let answer = model.compact_natively(request, instructions).await;
        if model.book().seen().requests > before {
            self.look(model, place, None);
        }
        answer
    }

    fn binds_reasoning(&self) -> bool {
        let place = self.current.load(Ordering::Relaxed);
        self.models.get(place).is_some_and(Model::binds_reasoning)
    }

    fn context_window(&self) -> Option<ContextWindow> {
        Some(ContextWindow::new(WINDOW))
    }
}

impl Providers {
    /// Counts what happened to the last request of a model.
    fn look(&self, model: &RulebookModel, place: usize, kept: Option<Kept>) {
        let book = model.book();
        let last = &book.seen().last;
        let mut judged = self.judged();
        judged.requests += 1;
        judged.dropped += last.void.len() as u64;
        judged.silent += last.void.len() as u64;
        match last.outcome {
            Outcome::Illegal => {
                let vendor = Vendor::ALL.get(place).map(ToString::to_string).unwrap_or_default();
                let kind = if kept.is_some() { "answer" } else { "summary" };
                let found = book.seen().violations.last().map(ToString::to_string);
                let found = found.unwrap_or_default();
                judged.illegal.push(format!("{vendor}, for the {kind}: {found}"));
            }
            Outcome::TooLong => judged.overflows += 1,
            Outcome::Answered => {
                if let Some(kept) = kept {
                    kept.count(&model.adjusted(), last, &mut judged);
                }
            }
            Outcome::None | Outcome::NotFound => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of an answer, which its text begins with.
fn number_of(message: &Message) -> Option<u64> {
    let text = message.content.iter().find_map(ContentBlock::as_text)?;
    text.strip_prefix("[answer ")?.split_once(']')?.0.parse().ok()
}
