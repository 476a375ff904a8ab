//! Checks the structure of the crates by their source: floors, import cycles, purity, module docs,
//! that packages share code by crates only, and that every test file is compiled.
//!
//! Every rule is a function from sources to complaints. For each rule a test on made-up sources
//! shows that it finds violations.

mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::LazyLock,
};

use source::Source;

#[test]
fn no_file_imports_upwards() {
    for sources in crates() {
        assert_none(upward_imports(&sources));
    }
}

#[test]
fn files_form_no_cycle() {
    let complaints: Vec<String> =
        packages().iter().flat_map(|folder| in_folder(folder, cycles(&sources(folder)))).collect();
    assert_none(complaints);
}

#[test]
fn every_package_is_read() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let members: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
    let read = packages();
    for member in members.iter().map(|member| member.trim_end_matches('*')) {
        assert!(read.iter().any(|folder| folder.starts_with(member)), "{member}: {read:?}");
    }
    assert!(read.iter().any(|folder| folder == "src"), "{read:?}");
}

#[test]
fn packages_share_code_by_crates_only() {
    let complaints: Vec<String> =
        every_package().iter().flat_map(|folder| foreign_files(folder, &sources(folder))).collect();
    assert_none(complaints);
}

#[test]
fn no_file_below_the_edge_has_side_effects() {
    for sources in crates() {
        assert_none(impurities(&sources));
    }
}

#[test]
fn every_file_begins_with_module_docs() {
    for sources in crates() {
        assert_none(missing_heads(&sources));
    }
}

#[test]
fn every_test_file_is_compiled() {
    assert_none(left_out(&sources("tests/it")));
}

fn assert_none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// The sources of each crate. A module that is the whole of a crate has the crate's name.
fn crates() -> Vec<Vec<Source>> {
    let whole = |name: &str| {
        let mut sources = sources(&format!("crates/threadfold-{name}/src"));
        for source in &mut sources {
            source.module.insert(0, name.to_owned());
        }
        sources
    };
    let parts = ["src", "crates/threadfold-core/src", "crates/threadfold-audit/src"];
    let parts = parts.into_iter().map(sources);
    parts.chain([whole("edl"), whole("wire")]).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folders with the sources of every package of the repository, examples and benches included.
fn packages() -> Vec<String> {
    let folders = ["benches", "crates", "examples"].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.map(move |name| format!("{folder}/{name}"))
    });
    let whole = folders.filter(|folder| root().join(folder).join("Cargo.toml").exists());
    let parts = whole.map(|folder| format!("{folder}/src"));
    let tools = ["src", "benches", "examples"].map(str::to_owned);
    let mut packages: Vec<String> = parts.chain(tools).collect();
    packages.sort();
    packages
}

/// The folders of all packages, with their tests and benches. Sources are below the nearest of them.
fn every_package() -> Vec<String> {
    let of_crates = packages().into_iter().filter_map(|folder| {
        let package = folder.strip_suffix("/src")?;
        root().join(package).join("Cargo.toml").exists().then(|| package.to_owned())
    });
    // The root has more folders than those of its package.
    let of_root = ["src", "tests", "benches", "examples", "fuzz"].map(str::to_owned);
    of_crates.chain(of_root).collect()
}

fn in_folder(folder: &str, complaints: Vec<String>) -> impl Iterator<Item = String> {
    complaints.into_iter().map(move |complaint| format!("{folder}/{complaint}"))
}

/// All files under this folder, in the order of their paths. A package inside it is not part of it.
fn sources(folder: &str) -> Vec<Source> {
    let root = root().join(folder);
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.extend((!path.join("Cargo.toml").exists()).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap();
                let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
                sources.push(Source::new(&parts.join("/"), &fs::read_to_string(&path).unwrap()));
            }
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(!sources.is_empty(), "no source in {folder}");
    sources
}

/// The modules of each floor, from the lowest: the items of the ordered list in `ARCHITECTURE.md`.
static FLOORS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let text = fs::read_to_string(path).unwrap();
    let section = text.split("## Floors").nth(1).unwrap().split("\n## ").next().unwrap();
    let items =
        section.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    let names = |line: &str| line.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    items.map(names).collect()
});

/// The floor of a module, by its first name.
fn floor(module: &[String]) -> Option<usize> {
    let Some(first) = module.first() else { return Some(FLOORS.len()) };
    FLOORS.iter().position(|modules| modules.contains(first))
}

/// Whether a file is on one of the lowest three floors, whose code must be pure.
fn is_pure(source: &Source) -> bool {
    floor(&source.module).is_some_and(|floor| floor < 3)
}

fn upward_imports(sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources {
        let Some(own) = floor(&source.module) else {
            complaints.push(format!("{}: its room has no floor", source.path));
            continue;
        };
        for (line, path, target) in imports(source, sources) {
            if floor(&target.module).is_some_and(|theirs| theirs > own) {
                let path = path.join("::");
                complaints.push(format!("{}:{line}: imports upwards: {path}", source.path));
            }
        }
    }
    complaints
}

/// The paths in a file that lead to files of the crate: the line, the path, the file.
fn imports<'s>(source: &Source, sources: &'s [Source]) -> Vec<(usize, Vec<String>, &'s Source)> {
    let modules: BTreeMap<&[String], &Source> =
        sources.iter().map(|source| (source.module.as_slice(), source)).collect();
    let paths = source.paths(&["crate", "super", "self"]).into_iter();
    let resolved = paths.filter_map(|(line, path)| {
        let full = absolute(&source.module, &path);
        let first = full.get(..1)?;
        // The path leads to a module of another crate. It need not be checked, because Cargo allows
        // only dependencies on lower crates.
        if floor(first).is_some() && !modules.contains_key(first) {
            return None;
        }
        // The longest prefix that is a module. The rest of the path is an item in it.
        let mut prefixes = (0..=full.len()).rev();
        let target = prefixes.find_map(|length| modules.get(full.get(..length)?))?;
        // A module that the target declares and that has no file here: `#[path]` names a file of
        // another folder, or the module is inline.
        let next = full.get(..target.module.len() + 1);
        let is_elsewhere = next.is_some_and(|next| target.children().iter().any(|c| c == next));
        (!is_elsewhere).then_some((line, path, *target))
    });
    resolved.filter(|(_, _, target)| target.path != source.path).collect()
}

/// Converts a path that begins with `crate`, `super` or `self` to a path from the root.
fn absolute(module: &[String], path: &[String]) -> Vec<String> {
    let mut full = module.to_vec();
    for part in path {
        match part.as_str() {
            "crate" => full.clear(),
            "super" => drop(full.pop()),
            "self" => {}
            name => full.push(name.to_owned()),
        }
    }
    full
}

fn cycles(sources: &[Source]) -> Vec<String> {
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        let imported = imports(source, sources).into_iter().map(|(_, _, target)| target);
        let children = source.children();
        let declared = sources.iter().filter(|other| children.contains(&other.module));
        edges
            .entry(&source.path)
            .or_default()
            .extend(imported.chain(declared).map(|target| target.path.as_str()));
    }
    let led_to: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|path| (*path, reachable(path, &edges))).collect();
    let leads = |from: &str, to: &str| led_to.get(from).is_some_and(|paths| paths.contains(to));
    let mut complaints = Vec::new();
    for (path, targets) in &edges {
        let back: Vec<&str> =
            targets.iter().copied().filter(|target| leads(target, path)).collect();
        if !back.is_empty() {
            complaints.push(format!("{path}: in a cycle with {}", back.join(", ")));
        }
    }
    complaints
}

/// All nodes that can be reached from this one.
fn reachable<'p>(from: &'p str, edges: &BTreeMap<&'p str, BTreeSet<&'p str>>) -> BTreeSet<&'p str> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&'p str> = vec![from];
    while let Some(path) = waiting.pop() {
        let targets = edges.get(path).into_iter().flatten();
        waiting.extend(targets.filter(|target| found.insert(**target)));
    }
    found
}

/// Words that code below the edge does not need. `OnceCell` is not in the list, because it cannot
/// be global.
const ACTS: [&str; 23] = [
    "async",
    "await",
    "SystemTime",
    "Instant",
    "Mutex",
    "RwLock",
    "OnceLock",
    "Condvar",
    "thread_local",
    "AtomicUsize",
    "AtomicU64",
    "AtomicBool",
    "TcpStream",
    "UdpSocket",
    "tokio",
    "tracing",
    "spawn",
    "block_on",
    "println",
    "eprintln",
    "print",
    "eprint",
    "dbg",
];
/// Modules of `std` with side effects.
const ACTING: [&str; 6] = ["fs", "net", "thread", "process", "env", "task"];
const LOG_CALLS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

fn impurities(sources: &[Source]) -> Vec<String> {
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|source| is_pure(source)) {
        // A strategy awaits the answers that it asks for.
        let asks = source.path.starts_with("strategy/");
        let mut complain = |line: usize, name: &str| {
            complaints.push(format!("{}:{line}: names {name} below the edge", source.path));
        };
        for (index, token) in source.tokens.iter().enumerate() {
            let next = source.tokens.get(index + 1).map_or("", |token| token.text.as_str());
            let global = token.text == "static" && next == "mut";
            let logs = LOG_CALLS.contains(&token.text.as_str()) && next == "!";
            if asks && matches!(token.text.as_str(), "async" | "await") {
                continue;
            }
            if global || logs || ACTS.contains(&token.text.as_str()) {
                complain(token.line, &token.text);
            }
        }
        for (line, path) in source.paths(&["std"]) {
            if path.get(1).is_some_and(|module| ACTING.contains(&module.as_str())) {
                complain(line, &path.join("::"));
            }
        }
    }
    complaints
}

/// Complains about each `#[path]` that leads out of the package with this folder.
fn foreign_files(folder: &str, sources: &[Source]) -> Vec<String> {
    let package = |path: &Path| {
        path.ancestors().find(|above| above.join("Cargo.toml").exists()).map(Path::to_owned)
    };
    let mut complaints = Vec::new();
    for source in sources {
        let file = root().join(folder).join(&source.path);
        let attributes = source.text.split("#[path = \"").skip(1);
        for name in attributes.filter_map(|rest| rest.split('"').next()) {
            let beside = file.parent().unwrap().join(name);
            // Its folder must exist, or else it does not compile.
            let Ok(there) = beside.parent().unwrap().canonicalize() else { continue };
            if package(&there) != package(&file) {
                complaints.push(format!("{folder}/{}: takes {name}", source.path));
            }
        }
    }
    complaints
}

fn missing_heads(sources: &[Source]) -> Vec<String> {
    let headless = sources.iter().filter(|source| !source.text.starts_with("//! "));
    headless.map(|source| format!("{}: begins without `//!`", source.path)).collect()
}

/// Returns the files that no other file declares, so that they are not compiled.
fn left_out(sources: &[Source]) -> Vec<String> {
    let declared: BTreeSet<_> = sources.iter().flat_map(Source::children).collect();
    let lost = sources
        .iter()
        .filter(|source| !source.module.is_empty() && !declared.contains(&source.module));
    lost.map(|source| format!("{}: no file declares it", source.path)).collect()
}

fn made_up(files: &[(&str, &str)]) -> Vec<Source> {
    files.iter().map(|(path, text)| Source::new(path, text)).collect()
}

#[test]
fn an_upward_import_is_found_in_any_form() {
    let forms = [
        "use crate::strategy::Attempt;",
        "use crate::{message::Text, strategy::{self, Attempt}};",
        "pub use super::super::strategy::Attempt as A;",
        "fn f(_: crate::strategy::Attempt) {}",
        "use crate::Request;",
        "pub(crate) use crate::strategy::*;",
    ];
    for form in forms {
        let complaints = upward_imports(&made_up(&[
            ("lib.rs", "pub mod compact; pub mod strategy; pub mod message;"),
            ("message/mod.rs", ""),
            ("compact/mod.rs", "mod plan;"),
            ("compact/plan.rs", form),
            ("strategy/mod.rs", "use crate::compact::Plan;"),
        ]));
        assert_eq!(complaints.len(), if form.contains("self") { 2 } else { 1 }, "{form}");
        assert!(
            complaints.iter().all(|text| text.starts_with("compact/plan.rs:1: imports upwards"))
        );
    }
    let homeless = upward_imports(&made_up(&[("utils.rs", "")]));
    assert_eq!(homeless, ["utils.rs: its room has no floor"]);
}

#[test]
fn a_path_in_a_comment_or_string_is_no_import() {
    let text = "//! See [`crate::strategy`].\n/* use crate::strategy::X; /* nested */ */\n\
        /// `use crate::strategy::X`\nconst A: &str = \"use crate::strategy::X; \\\" \";\n\
        const B: &str = r#\"crate::strategy::\"X\"#; const C: char = '\"'; fn f<'a>(x: &'a u8) {}\n\
        pub(crate) const D: u8 = b'\\'';\n#[cfg(test)]\nmod tests { use crate::strategy::X; }";
    let files = [("compact/mod.rs", text), ("strategy/mod.rs", ""), ("lib.rs", "")];
    assert_none(upward_imports(&made_up(&files)));
}

#[test]
fn a_cycle_is_found() {
    let files = |parent: &'static str| {
        made_up(&[
            ("lib.rs", "mod wire;"),
            ("wire/mod.rs", "mod a; mod b; pub use a::A;"),
            ("wire/a.rs", "use super::b::B;"),
            ("wire/b.rs", parent),
        ])
    };
    assert_none(cycles(&files("")));
    let two = cycles(&files("use super::a;"));
    assert_eq!(
        two,
        ["wire/a.rs: in a cycle with wire/b.rs", "wire/b.rs: in a cycle with wire/a.rs"]
    );
    let through_the_parent = cycles(&files("use super::A;"));
    assert_eq!(through_the_parent.len(), 3, "{through_the_parent:?}");
}

#[test]
fn side_effects_are_found_only_below_the_edge() {
    let forms = [
        "async fn f() {}",
        "use std::{fmt, time::{Duration, Instant}};",
        "use std::{collections::HashMap, fs};",
        "fn f() { std::thread::yield_now() }",
        "static mut COUNT: u8 = 0;",
        "fn f() { warn!(\"x\") }",
        "fn f() { println!(\"x\") }",
    ];
    for form in forms {
        let found = impurities(&made_up(&[("log/mod.rs", form), ("store/mod.rs", form)]));
        assert_eq!(found.len(), 1, "{form}: {found:?}");
        assert!(found.iter().all(|text| text.starts_with("log/mod.rs:1: names ")), "{found:?}");
    }
    let pure = "static A: LazyLock<u8> = LazyLock::new(|| 1); /// Unlike `async`.\nfn error() {}\n\
        use std::time::Duration; mod thread; const B: &str = \"SystemTime\";";
    assert_none(impurities(&made_up(&[("log/mod.rs", pure)])));
}

#[test]
fn a_file_of_another_package_is_found() {
    let own = "#[path = \"../../../examples/cost/mod.rs\"]\nmod cost;";
    let foreign = "#[path = \"../../../crates/threadfold-edl/src/lib.rs\"]\nmod edl;";
    let files = [("it/support/one.rs", own), ("it/support/two.rs", foreign)];
    let expected = "tests/it/support/two.rs: takes ../../../crates/threadfold-edl/src/lib.rs";
    assert_eq!(foreign_files("tests", &made_up(&files)), [expected]);
}

#[test]
fn missing_module_docs_are_found() {
    let files = [("a.rs", "//! What it is.\n"), ("b.rs", "// What it is.\n"), ("c.rs", "")];
    assert_eq!(missing_heads(&made_up(&files)).len(), 2);
}

#[test]
fn a_file_that_no_module_declares_is_found() {
    for root in ["lib.rs", "main.rs"] {
        let text = "pub mod wire;\n#[cfg(feature = \"x\")]\nmod x;\n// mod y;";
        let files = [(root, text), ("wire/mod.rs", "mod a;"), ("wire/a.rs", ""), ("x.rs", "")];
        assert_none(left_out(&made_up(&files)));
        let lost = [files.as_slice(), &[("y.rs", ""), ("a.rs", "")]].concat();
        let complaints = left_out(&made_up(&lost));
        assert_eq!(complaints, ["y.rs: no file declares it", "a.rs: no file declares it"]);
    }
}
