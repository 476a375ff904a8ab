//! Killed writers: acknowledged events stay stored, and nothing is stored twice.

use std::{
    error::Error,
    fmt,
    io::{self, BufRead, BufReader, Read, Write},
    process::Child,
    thread,
    time::Duration,
};

use threadfold::{
    log::{Event, LoggedEvent},
    message::{Message, Timestamp},
    store::ThreadStore,
};

/// The number of events of an append.
const BATCH: u64 = 3;

const THREAD: &str = "killed";

/// What a writer prints after each append, before the number of events that it appended.
const ACKNOWLEDGED: &str = "acknowledged ";

/// Appends to one thread until an append fails, and prints after each one how many events are
/// stored. A test of a store runs it in a process of its own, whose output is piped to the test.
///
/// # Errors
///
/// Errors of the store and of the standard output.
pub async fn write_until_killed(store: &dyn ThreadStore, round: u64) -> Result<(), Box<dyn Error>> {
    let thread = THREAD.parse()?;
    let loaded = store.load(&thread).await?;
    let (begin, mut out, mut written) = (loaded.log.len(), io::stdout().lock(), 0);
    // The test harness has begun a line.
    write!(out, "\n{ACKNOWLEDGED}0\n")?;
    loop {
        let events = (written..written + BATCH).map(|number| {
            let (seq, text) = (begin + number, text(round, number));
            let event = Event::MessageAppended(Message::user(text));
            LoggedEvent { seq, at: Timestamp(seq), event }
        });
        let events: Vec<_> = events.collect();
        store.append(&thread, loaded.id, begin + written, &events).await?;
        written += BATCH;
        out.write_all(format!("{ACKNOWLEDGED}{written}\n").as_bytes())?;
    }
}

/// The rounds of killed writers, and the texts that must be stored after them.
#[derive(Debug, Default)]
pub struct Kills {
    stored: Vec<String>,
    rounds: u64,
    /// The number of appends that were stored although their writer was killed before it
    /// acknowledged them.
    unacknowledged: u64,
}

impl Kills {
    /// The number of writers killed so far, which is the round of the next one.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The number of events that are stored.
    pub fn events(&self) -> usize {
        self.stored.len()
    }

    /// Kills a writer, or its server, at some point of an append, and checks the store that `open`
    /// returns: every acknowledged event is stored once and in order, and the interrupted append is
    /// stored completely or not at all. A server may still carry out statements of a killed writer,
    /// so `open` must wait for them.
    ///
    /// # Errors
    ///
    /// Errors of the writer's process, and the first event that differs.
    pub async fn round<S: ThreadStore>(
        &mut self,
        mut writer: Child,
        kill: impl FnOnce(&mut Child) -> io::Result<()>,
        open: impl AsyncFnOnce() -> S,
    ) -> Result<(), Box<dyn Error>> {
        let (round, before) = (self.rounds, self.stored.len() as u64);
        let acknowledged = acknowledged_by(&mut writer, round, kill)?;
        let mut expected = std::mem::take(&mut self.stored);
        expected.extend((0..acknowledged).map(|number| text(round, number)));
        let log = open().await.load(&THREAD.parse()?).await?.log;
        let stored: Vec<String> = log.events().iter().map(text_of).collect();
        if stored.len() > expected.len() {
            let cut_off = acknowledged..acknowledged + BATCH;
            expected.extend(cut_off.map(|number| text(round, number)));
            self.unacknowledged += 1;
        }
        let length = stored.len().max(expected.len());
        if let Some(at) = (0..length).find(|at| stored.get(*at) != expected.get(*at)) {
            let input = format!(
                "event {at} after round {round}, {acknowledged} events after the first {before}"
            );
            let [expected, found] = [expected, stored].map(|texts| format!("{:?}", texts.get(at)));
            return Err(format!("{input}: {found} is stored, and {expected} was appended").into());
        }
        (self.stored, self.rounds) = (stored, round + 1);
        Ok(())
    }
}

impl fmt::Display for Kills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stored, rounds, unacknowledged } = self;
        let events = stored.len();
        write!(
            f,
            "{rounds} kills, {events} events, {unacknowledged} appends stored but not acknowledged"
        )
    }
}

/// Kills a writer after some of its appends, and returns how many events it acknowledged.
fn acknowledged_by(
    writer: &mut Child,
    round: u64,
    kill: impl FnOnce(&mut Child) -> io::Result<()>,
) -> Result<u64, Box<dyn Error>> {
    let mut output = BufReader::new(writer.stdout.take().ok_or("the output is not piped")?);
    let (mut read, mut seen) = (String::new(), 0);
    while seen <= round * 7 % 11 {
        let mut line = String::new();
        if output.read_line(&mut line)? == 0 {
            return Err(format!("the writer ended by itself: {read}").into());
        }
        seen += u64::from(line.starts_with(ACKNOWLEDGED));
        read.push_str(&line);
    }
    // The kill may hit any point of the next append, from its first byte to the answer.
    thread::sleep(Duration::from_micros(round * 131 % 3_000));
    kill(writer)?;
    writer.wait()?;
    output.read_to_string(&mut read)?;
    // An incomplete last line is no acknowledgement: the writer was killed while it wrote the line.
    let whole = read.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let mut counts = whole.lines().filter_map(|line| line.strip_prefix(ACKNOWLEDGED));
    Ok(counts.next_back().ok_or("nothing was acknowledged")?.parse()?)
}

fn text(round: u64, number: u64) -> String {
    format!("{number} of round {round} {}", "x".repeat(200))
}

fn text_of(logged: &LoggedEvent) -> String {
    let Event::MessageAppended(message) = &logged.event else { return format!("{logged:?}") };
    message.texts().map(|text| text.as_str()).collect()
}
