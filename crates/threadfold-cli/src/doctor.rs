//! `doctor`: what a proxy with these options needs, and what it would do with a request.

use std::{
    cell::RefCell,
    env,
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    path::Path,
    time::Duration,
};

use serde::Serialize;
use threadfold::{
    ContextWindow,
    auto::AutoCompactor,
    model::{Clock, std_clock},
    wire::Dialect,
};
use threadfold_http::{HttpModel, HttpOptions};
use threadfold_terminal::{Style, counted, first_line, thousands, wrapped};

use crate::{
    args::{DoctorArguments, ProxyArguments},
    error::{Ended, Failure},
    input::Body,
    out::say,
    proxy::{self, Upstream, Vendor, vendor_of, views::Views},
    relay::{Chain, Relay, RelayStep},
};

/// How long a server may take to be reached.
const PATIENCE: Duration = Duration::from_secs(3);

/// One thing that was examined.
#[derive(Serialize)]
struct Point {
    about: &'static str,
    text: String,
    /// Whether it keeps a proxy from running.
    is_trouble: bool,
}

impl Point {
    fn new(about: &'static str, text: impl Into<String>) -> Self {
        Self { about, text: text.into(), is_trouble: false }
    }

    fn trouble(about: &'static str, text: impl Into<String>) -> Self {
        Self { is_trouble: true, ..Self::new(about, text) }
    }
}

pub(crate) fn run(options: &DoctorArguments) -> Result<Ended, Failure> {
    let ProxyArguments { listen, serving, .. } = &options.proxy;
    let body = options.file.as_deref().map(|file| Body::read(file, None, options.thread.id()));
    let body = body.transpose()?;
    let (folder, views) = folder(&serving.folder);
    let upstreams = upstreams(&options.proxy);
    let mut points = vec![port(*listen), folder];
    points.extend(keys());
    points.extend(upstreams.iter().map(reached));
    match &body {
        None => points.extend(learnt(views.as_ref())),
        Some(body) => points.extend(judged(options, body, views.as_ref(), &upstreams)?),
    }
    print(&points, options.json)?;
    let troubles = points.iter().filter(|point| point.is_trouble).count();
    match troubles {
        0 => Ok(Ended::Done),
        _ => Err(format!("a proxy cannot run: {}", counted(troubles as u64, "trouble")).into()),
    }
}

fn print(points: &[Point], json: bool) -> Result<(), Failure> {
    if json {
        say!("{}", serde_json::to_string(points)?);
        return Ok(());
    }
    let style = Style::of(&io::stdout());
    let mut last = "";
    for Point { about, text, is_trouble } in points {
        let lines = wrapped(text, 68);
        for (at, line) in lines.iter().enumerate() {
            let name = if at == 0 && *about != last { about } else { "" };
            let line = if *is_trouble { style.red(line) } else { line.clone() };
            say!("{} {line}", style.bold(format!("{name:>9}")));
        }
        last = about;
    }
    Ok(())
}

fn port(listen: SocketAddr) -> Point {
    match TcpListener::bind(listen) {
        Ok(_) => Point::new("port", format!("{listen} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => match is_ours(listen) {
            true => Point::new("port", format!("a proxy of threadfold listens on {listen}")),
            false => Point::trouble(
                "port",
                format!("{listen} is taken by another program; --listen names another address"),
            ),
        },
        Err(error) => Point::trouble("port", format!("{listen}: {error}")),
    }
}

/// Whether the page of a proxy is at this address.
fn is_ours(address: SocketAddr) -> bool {
    let page = || -> io::Result<String> {
        let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let head =
            format!("GET /threadfold HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        socket.write_all(head.as_bytes())?;
        let mut page = Vec::new();
        socket.take(64 * 1024).read_to_end(&mut page)?;
        Ok(String::from_utf8_lossy(&page).into_owned())
    };
    page().is_ok_and(|page| page.contains("threadfold proxy"))
}

fn folder(folder: &Path) -> (Point, Option<Views>) {
    let name = folder.display();
    if !folder.exists() {
        let text = format!("{name} does not exist yet; the proxy creates it");
        return (Point::new("folder", text), None);
    }
    if !folder.is_dir() {
        return (Point::trouble("folder", format!("{name} is no folder")), None);
    }
    if folder.metadata().is_ok_and(|found| found.permissions().readonly()) {
        let text = format!("{name} cannot be written; --folder names another one");
        return (Point::trouble("folder", text), None);
    }
    match Views::open_read_only(&folder.join("threads.db")) {
        Ok(None) => (Point::new("folder", format!("{name} holds no thread yet")), None),
        Ok(Some(views)) => match views.list() {
            Ok((_, threads)) => {
                let threads = counted(threads, "compacted thread");
                (Point::new("folder", format!("{name} holds {threads}")), Some(views))
            }
            Err(error) => (Point::trouble("folder", format!("{name}: {error}")), None),
        },
        Err(error) => (Point::trouble("folder", error), None),
    }
}

/// The keys in the environment, never with their text.
fn keys() -> Vec<Point> {
    const NAMES: [(&str, Vendor); 6] = [
        ("ANTHROPIC_API_KEY", Vendor::Anthropic),
        ("ANTHROPIC_AUTH_TOKEN", Vendor::Anthropic),
        ("CLAUDE_CODE_OAUTH_TOKEN", Vendor::Anthropic),
        ("OPENAI_API_KEY", Vendor::OpenAi),
        ("GEMINI_API_KEY", Vendor::Google),
        ("GOOGLE_API_KEY", Vendor::Google),
    ];
    let mut points = Vec::new();
    for vendor in [Vendor::Anthropic, Vendor::OpenAi, Vendor::Google] {
        let of_vendor = NAMES.iter().filter(|(_, of)| *of == vendor);
        let set = of_vendor.filter_map(|(name, _)| Some((*name, env::var(name).ok()?)));
        let set: Vec<_> = set.filter(|(_, key)| !key.is_empty()).collect();
        if set.is_empty() {
            let text =
                format!("{}: none in the environment; an agent may have its own", vendor.name());
            points.push(Point::new("keys", text));
        }
        for (name, key) in set {
            let other = vendor_of(&key)
                .filter(|other| *other != vendor)
                .map_or_else(String::new, |other| {
                    format!(", but it has the form of a key of {}", other.name())
                });
            points.push(Point::new("keys", format!("{}: {name} is set{other}", vendor.name())));
        }
    }
    points
}

/// The server of a vendor's dialects, or why its address cannot be used.
struct Server {
    vendor: Vendor,
    url: String,
    upstream: Result<Upstream, String>,
}

fn upstreams(options: &ProxyArguments) -> [Server; 3] {
    let ProxyArguments { anthropic, openai, gemini, .. } = options;
    [(Vendor::Anthropic, anthropic), (Vendor::OpenAi, openai), (Vendor::Google, gemini)].map(
        |(vendor, url)| Server { vendor, url: url.clone(), upstream: Upstream::new(url, vendor) },
    )
}

/// Whether a connection to the server can be made. Nothing is sent.
fn reached(server: &Server) -> Point {
    let vendor = server.vendor.name();
    let upstream = match &server.upstream {
        Ok(upstream) => upstream,
        Err(error) => {
            return Point::trouble("upstream", format!("{}: {error}", server.vendor.option()));
        }
    };
    let connected = || -> io::Result<()> {
        let address = upstream.socket().to_socket_addrs()?.next().ok_or(ErrorKind::NotFound)?;
        TcpStream::connect_timeout(&address, PATIENCE).map(drop)
    };
    let name = first_line(&upstream.name(), 60);
    let text = match connected() {
        Ok(()) => format!("{vendor}: {name} can be reached"),
        Err(error) => format!("{vendor}: {name} cannot be reached: {error}"),
    };
    Point::new("upstream", text)
}

/// The windows that refusals stated.
fn learnt(views: Option<&Views>) -> Vec<Point> {
    let windows = views.map(Views::windows).unwrap_or_default();
    let mut points: Vec<Point> = windows
        .iter()
        .map(|(upstream, model, tokens)| {
            let (model, tokens) = (first_line(model, 40), thousands(*tokens));
            Point::new("window", format!("{model} at {upstream}: {tokens}, as a refusal stated"))
        })
        .collect();
    if points.is_empty() {
        points
            .push(Point::new("window", "no refusal stated one; name a request to see its model's"));
    }
    points
}

/// The window of a request's model, and what would be done with the request.
fn judged(
    options: &DoctorArguments,
    body: &Body,
    views: Option<&Views>,
    upstreams: &[Server; 3],
) -> Result<Vec<Point>, Failure> {
    let [anthropic, openai, google] = upstreams;
    let server = match body.dialect {
        Dialect::Anthropic => anthropic,
        Dialect::Gemini => google,
        Dialect::OpenAiChat | Dialect::OpenAiResponses => openai,
        Dialect::BedrockConverse | _ => {
            let text = format!("a proxy does not serve {}", body.dialect.name());
            return Ok(vec![Point::new("request", text)]);
        }
    };
    let serving = &options.proxy.serving;
    let model = body.model.as_deref().unwrap_or_default();
    let upstream = server.upstream.as_ref().ok();
    let stated = upstream.filter(|it| !it.is_vendors()).and_then(|_| of_server(&server.url, model));
    let refused = views.zip(upstream).and_then(|(views, it)| views.window(&it.name(), model));
    let table = ContextWindow::for_model(model).map(ContextWindow::tokens);
    let used = [serving.window.or(table), refused].into_iter().flatten().min();
    let sources = [
        ("--window", serving.window),
        ("the table", table),
        ("the server", stated),
        ("a refusal", refused),
    ];
    let sources = sources.iter().filter_map(|(name, tokens)| {
        tokens.map(|tokens| format!("{name} states {}", thousands(tokens)))
    });
    let name =
        if model.is_empty() { "a model without a name".to_owned() } else { first_line(model, 60) };
    let mut window = vec![name];
    window.extend(sources);
    window.push(match used {
        Some(tokens) => format!("{} are used", thousands(tokens)),
        None => "none is known, so it is learnt from a refusal; --window names it".to_owned(),
    });
    if let Some(stated) = stated.filter(|stated| used.is_none_or(|used| *stated < used)) {
        window.push(format!("name the server's by --window {stated}"));
    }
    Ok(vec![Point::new("window", window.join(", ")), done_with(options, body, views, used)?])
}

/// What the proxy would do with a request.
fn done_with(
    options: &DoctorArguments,
    body: &Body,
    views: Option<&Views>,
    window: Option<u64>,
) -> Result<Point, Failure> {
    let serving = &options.proxy.serving;
    let chain = Chain::of(body.dialect.name(), &body.request.messages);
    let views = views.filter(|_| !serving.shadow);
    let unread = RefCell::new(None);
    let note = |why: &str| drop(unread.replace(Some(why.to_owned())));
    let found = views.and_then(|views| views.find(&chain, &body.request.messages, note));
    let auto = AutoCompactor::new(proxy::policy(serving.threshold))?;
    let known = window.map(ContextWindow::new);
    let view = found.as_ref().map(|row| &row.view);
    let whole = Relay::sent(body.request.clone(), None, known, auto.clone()).tokens();
    let relay = Relay::new(body.request.clone(), view, known, auto, std_clock().now());
    let about = |tokens: u64| format!("about {} tokens", thousands(tokens));
    let part = |tokens: u64| match window {
        Some(window) => {
            format!(" ({} % of the window)", tokens.saturating_mul(100) / window.max(1))
        }
        None => String::new(),
    };
    let came = format!("{}{}", about(whole), part(whole));
    let mut text = match (relay.step(), relay.why_not_compacted(), &found) {
        (RelayStep::Compact { .. }, ..) if serving.shadow => {
            format!("{came}: sent as it came, with a line that it would be compacted")
        }
        (RelayStep::Compact { target, .. }, ..) => {
            let target =
                target.map_or_else(String::new, |target| format!(" to at most {}", about(target)));
            format!("{came}: compacted by {}{target}, and then sent", serving.strategy)
        }
        (_, Some(why), _) => format!("{came}: not compacted: {why}"),
        (_, None, Some(row)) if relay.request().is_some() => {
            let (tokens, thread) = (relay.tokens(), &row.about.thread);
            format!("{came}: sent as {}{}, the view of {thread}", about(tokens), part(tokens))
        }
        (_, None, _) => {
            format!(
                "{came}: sent as it came; compacted from {} of the window on",
                serving.threshold
            )
        }
    };
    if let Some(why) = unread.into_inner() {
        text.push_str(&format!("; a view of its thread is not read: {why}"));
    }
    Ok(Point::new("request", text))
}

/// The window that a local server or a gateway states. It gets no key.
fn of_server(url: &str, model: &str) -> Option<u64> {
    let options = HttpOptions {
        base_url: url.to_owned(),
        silence: PATIENCE,
        ..HttpOptions::new(threadfold_http::Dialect::Compatible, model)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let model = HttpModel::new(options).ok()?;
    runtime.block_on(model.window_of_server()).map(ContextWindow::tokens)
}
