//! A chat server whose threads never overflow and survive its restart.
//!
//! ```text
//! cargo run -p threadfold-server
//! cargo run -p threadfold-server -- --address 127.0.0.1:8080 --database threads.db \
//!     --model claude-sonnet-4-5
//! cargo run -p threadfold-server -- --address 127.0.0.1:8081 --postgres postgres://localhost/agents
//! ```
//!
//! Open the address that it prints. Without `--model` a scripted model tells a story in a small
//! window, so the thread is compacted after some turns. With `--model` the users talk to a real
//! model, whose key comes from the environment.
//!
//! With `--postgres` any number of these servers share one database, and a user's next request may
//! reach any of them.

use std::{error::Error, process::ExitCode, sync::Arc, time::Duration};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use lexopt::{Arg, Parser, ValueExt};
use server::{Threads, router};
use threadfold::{
    Answer, ContextWindow, Message, Model, ModelAgent, Request, Role, Session, async_trait,
    auto::AutoPolicy,
    message::{Delta, ModelError, StopReason},
    model,
    session::SessionBuilder,
    testing::ExtractiveModel,
};
use threadfold_http::{ModelArguments, NamedModel, TokioClock};
use threadfold_postgres::PostgresStore;
use threadfold_sqlite::SqliteStore;
use tokio::{net::TcpListener, signal};

/// The maximum number of idle sessions in memory.
const IDLE: usize = 1_000;

/// The window of the scripted model, in tokens.
const WINDOW: u64 = 700;

#[tokio::main]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let (mut address, mut database) = ("127.0.0.1:8080".to_owned(), "threads.db".to_owned());
    let (mut postgres, mut pause) = (None, Duration::from_millis(40));
    let mut model = ModelArguments::default();
    let mut parser = Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("address") => address = parser.value()?.string()?,
            Arg::Long("database") => database = parser.value()?.string()?,
            Arg::Long("postgres") => postgres = Some(parser.value()?.string()?),
            Arg::Long("pause") => pause = Duration::from_millis(parser.value()?.parse()?),
            Arg::Long(name) if ModelArguments::has(name) => {
                let name = name.to_owned();
                model.set(&name, &parser.value()?.string()?)?;
            }
            Arg::Value(_) | Arg::Long(_) | Arg::Short(_) => {
                let unexpected = argument.unexpected();
                return Err(format!("{unexpected}\n{}", usage()).into());
            }
        }
    }
    let listener = TcpListener::bind(&address).await?;
    let address = listener.local_addr()?;
    let builder = builder(model.open().await?, pause);
    let (threads, database) = match postgres {
        Some(url) => {
            let store = Arc::new(PostgresStore::open(&url).await?);
            (Threads::shared(store, address.to_string(), builder), "Postgres".to_owned())
        }
        None => (Threads::new(Arc::new(SqliteStore::open(&database)?), IDLE, builder), database),
    };
    println!("http://{address} with the threads of {database}; Ctrl-C ends it.");
    let ended = {
        let threads = threads.clone();
        async move {
            let _ = signal::ctrl_c().await;
            threads.abort_all();
        }
    };
    axum::serve(listener, router(threads)).with_graceful_shutdown(ended).await?;
    Ok(())
}

fn usage() -> String {
    format!(
        "usage: server [--address HOST:PORT] [--database FILE | --postgres URL] [{}]\n\
         without a model: [--pause MILLISECONDS], the time between two words of the stand-in",
        ModelArguments::USAGE
    )
}

type Builder = Box<dyn Fn() -> SessionBuilder + Send + Sync>;

fn builder(model: Option<NamedModel>, pause: Duration) -> Builder {
    match model {
        Some(named) => Box::new(move || session(&named)),
        None => Box::new(move || stand_in(pause)),
    }
}

/// Returns the builder of a user's session. All sessions share one client and its connections.
fn session(named: &NamedModel) -> SessionBuilder {
    Session::builder(ModelAgent::new(Arc::new(named.model.clone())))
        .system("You are a helpful assistant.")
        .window(named.window)
        .max_output(named.max_output)
        .clock(Arc::new(TokioClock))
}

/// Returns the builder of a session with the scripted model.
fn stand_in(pause: Duration) -> SessionBuilder {
    Session::builder(ModelAgent::new(Arc::new(Storyteller { pause })))
        .system("You tell of a lighthouse.")
        .window(ContextWindow::new(WINDOW))
        .policy(AutoPolicy::default())
        .fast_model(Arc::new(ExtractiveModel))
        .clock(Arc::new(TokioClock))
}

/// A scripted model: it streams the next part of a story, word by word.
#[derive(Debug)]
struct Storyteller {
    pause: Duration,
}

const STORY: [&str; 6] = [
    "The lighthouse stands on a rock before the harbour. The lamp was lit in 1874, says the stone above \
     the door, and the keeper of that time was called Ada Brandt.",
    "There are 217 steps to the lamp. The keeper counted them each night, aloud, so that the children in \
     the kitchen knew where she was.",
    "In the winter of 1899 the sea took the boat and the lower door. For nine weeks the keeper let down \
     a basket, and the fishermen filled it with bread.",
    "The lens came from Paris in eleven boxes. One of them holds the letters of the keeper to this day.",
    "The lamp has turned by itself since 1962. Nobody lives there now, but for the gulls, and somebody \
     who paints the rail each spring.",
    "Ask the harbour master for the key. He keeps it in a tin with the tide tables, and asks for nothing \
     but the number of the steps.",
];

#[async_trait]
impl Model for Storyteller {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let sent =
            request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let part = STORY.get(sent % STORY.len()).copied().unwrap_or_default();
        let words = part.split_inclusive(' ').map(str::to_owned);
        let words = stream::iter(words).then(|word| async {
            tokio::time::sleep(self.pause).await;
            Ok(Delta::Text { text: word.into() })
        });
        let turn = Answer::new(Message::assistant(part), StopReason::EndTurn, None);
        words.chain(stream::iter([Ok(Delta::Answer { answer: turn })])).boxed()
    }
}
