//! What the pages of the repository show is true: their commands are read by the programs that they
//! name, their settings by the types that they are for, their paths exist, and the output on the
//! page about the command line is printed again.
//!
//! `THREADFOLD_WRITE_DOCS=1 cargo test -p threadfold-cli --test it docs` writes the printed lines
//! into that page.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use threadfold::{StrategyRegistry, auto::AutoPolicy};
use threadfold_testing::shared::Folder;

use crate::writer;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A page, by its path from the root of the repository.
struct Page {
    path: String,
    text: String,
}

/// A fenced block of a page.
struct Block<'p> {
    language: &'p str,
    text: String,
}

impl Page {
    fn blocks(&self) -> Vec<Block<'_>> {
        let (mut blocks, mut open): (Vec<Block<'_>>, Option<Block<'_>>) = (Vec::new(), None);
        for line in self.text.lines() {
            let fence = line.trim_start().strip_prefix("```");
            match (fence, open.take()) {
                (Some(language), None) => {
                    let language = language.split(',').next().unwrap().trim();
                    open = Some(Block { language, text: String::new() });
                }
                (Some(_), Some(block)) => blocks.push(block),
                (None, Some(block)) => {
                    open = Some(Block { text: format!("{}{line}\n", block.text), ..block });
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a fence is not closed", self.path);
        blocks
    }

    /// The inline code outside of its blocks.
    fn code(&self) -> Vec<&str> {
        let mut in_block = false;
        let mut code = Vec::new();
        for line in self.text.lines() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
            } else if !in_block {
                code.extend(line.split('`').skip(1).step_by(2));
            }
        }
        code
    }
}

/// All pages that are written for readers.
fn pages() -> Vec<Page> {
    let root = Path::new(ROOT);
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["docs", "crates", "benches", "examples"].map(|folder| root.join(folder)).into();
    folders.extend([root.join("fuzz"), root.join("tests")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !["target", "src", "testdata"].contains(&name) {
                folders.push(path);
            } else if name.ends_with(".md") {
                files.push(path);
            }
        }
    }
    for entry in fs::read_dir(root).unwrap() {
        files.extend(
            Some(entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "md")),
        );
    }
    files.sort();
    assert!(files.len() > 20, "{files:?}");
    let page = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        Page { path: path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), text }
    };
    files.into_iter().map(page).collect()
}

fn exists(path: &str) -> bool {
    Path::new(ROOT).join(path).exists()
}

/// The manifest of a package of the repository.
fn manifest(package: &str) -> Option<(PathBuf, String)> {
    let root = Path::new(ROOT);
    let mut folders = vec![root.to_owned()];
    for folder in ["crates", "examples", "benches"] {
        folders.extend(fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    folders.into_iter().find_map(|folder| {
        let text = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        text.contains(&format!("name = \"{package}\"")).then_some((folder, text))
    })
}

#[test]
fn every_command_of_the_pages_is_read_by_its_program() {
    let (mut commands, mut complaints) = (0, Vec::new());
    for page in pages() {
        let mut lines: Vec<String> = page.blocks().iter().flat_map(command_lines).collect();
        let inline = page
            .code()
            .into_iter()
            .filter(|code| code.starts_with("cargo ") || code.starts_with("threadfold "));
        lines.extend(inline.map(str::to_owned));
        for line in lines {
            commands += 1;
            if let Err(complaint) = check_command(&line) {
                complaints.push(format!("{}: {line}: {complaint}", page.path));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    assert!(commands > 60, "{commands}");
}

/// The commands of a block: all lines, or those with a prompt if one has a prompt.
fn command_lines(block: &Block<'_>) -> Vec<String> {
    let first = block.text.split_whitespace().next().unwrap_or_default();
    let is_shell = ["console", "sh", "bash", "shell"].contains(&block.language);
    let is_command = block.language == "text" && ["threadfold", "cargo"].contains(&first);
    if !(is_shell || is_command) {
        return Vec::new();
    }
    let lines = || block.text.lines().map(str::trim).filter(|line| !line.is_empty());
    let prompted: Vec<String> =
        lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned).collect();
    if prompted.is_empty() { lines().map(str::to_owned).collect() } else { prompted }
}

fn check_command(line: &str) -> Result<(), String> {
    let line = line.split(" # ").next().unwrap_or(line);
    let line = line.split(" > ").next().unwrap_or(line);
    let line = line.split(" | ").next().unwrap_or(line).trim();
    let words = words_of(line);
    let is_variable = |word: &&String| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        })
    };
    let words: Vec<String> = words.iter().skip_while(is_variable).cloned().collect();
    let Some(program) = words.first() else { return Ok(()) };
    match program.as_str() {
        "threadfold" => {
            // Words in capitals stand for a value of the reader's choice.
            let example = |word: &String| match word.as_str() {
                "SHELL" => "bash".to_owned(),
                "COMMAND" => "context".to_owned(),
                _ => word.clone(),
            };
            let words = words.iter().map(|word| example(word).into());
            // The name of a command alone stands for all of its forms.
            let more = (words.len() == 2).then(|| "--help".into());
            threadfold_cli::check(words.chain(more))
        }
        "cargo" => check_cargo(&words[1..]),
        "curl" | "npx" => Ok(()),
        "just" => {
            let recipe = words.get(1).map_or("default", String::as_str);
            let found = recipes().iter().any(|(name, _)| name == recipe);
            found.then_some(()).ok_or_else(|| format!("the justfile has no recipe {recipe}"))
        }
        path if path.contains('/') && exists(path) => match words.iter().position(|w| w == "cargo")
        {
            Some(at) => check_cargo(&words[at + 1..]),
            None => Ok(()),
        },
        other => Err(format!("{other} is not a program that this test knows, nor a file")),
    }
}

/// The recipes of the justfile, each with its commands.
fn recipes() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(Path::new(ROOT).join("justfile")).unwrap();
    let mut recipes: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        match (line.strip_prefix("    "), recipes.last_mut()) {
            (Some(command), Some((_, commands))) => {
                commands.push(command.trim_start_matches('@').to_owned());
            }
            _ => recipes.push((line.split(':').next().unwrap().to_owned(), Vec::new())),
        }
    }
    recipes
}

#[test]
fn every_command_of_the_justfile_is_read_by_its_program() {
    let recipes = recipes();
    for name in ["quick", "full", "release"] {
        let (_, commands) = recipes.iter().find(|(recipe, _)| recipe == name).unwrap();
        assert!(!commands.is_empty(), "{name}");
        for command in commands {
            check_command(command).unwrap_or_else(|error| panic!("{name}: {command}: {error}"));
        }
    }
    // Those who have no `just` find the same commands on the page.
    let page = fs::read_to_string(Path::new(ROOT).join("CONTRIBUTING.md")).unwrap();
    for command in recipes.iter().flat_map(|(_, commands)| commands) {
        assert!(command.starts_with("just ") || page.contains(command), "{command}");
    }
}

/// The words of a line, as a shell divides it.
fn words_of(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut is_open) = (vec![String::new()], None, false);
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            None if c == '"' || c == '\'' => (quote, is_open) = (Some(c), true),
            None if c.is_whitespace() => {
                if is_open || !words.last().unwrap().is_empty() {
                    words.push(String::new());
                }
                is_open = false;
            }
            Some(_) | None => words.last_mut().unwrap().push(c),
        }
    }
    if !is_open && words.last().unwrap().is_empty() {
        words.pop();
    }
    words
}

fn check_cargo(words: &[String]) -> Result<(), String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (own, passed) = words.split_at(end);
    let after = |flag: &str| {
        let at = own.iter().position(|word| word == flag)?;
        own.get(at + 1).map(String::as_str)
    };
    let command = own.iter().find(|word| !word.starts_with('+')).map_or("", String::as_str);
    let known = [
        "bench",
        "build",
        "clippy",
        "deny",
        "fmt",
        "fuzz",
        "install",
        "mutants",
        "publish",
        "run",
        "semver-checks",
        "test",
        "tree",
    ];
    if !known.contains(&command) {
        return Err(format!("cargo {command} is not known to this test"));
    }
    let (folder, text) = match (after("-p"), after("--manifest-path"), after("--path")) {
        (Some(package), ..) => {
            manifest(package).ok_or_else(|| format!("there is no package {package}"))?
        }
        (None, Some(path), _) => {
            let path = Path::new(ROOT).join(path);
            let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
            (path.parent().unwrap().to_owned(), text)
        }
        (None, None, Some(path)) if !exists(path) => return Err(format!("{path} does not exist")),
        (None, None, _) => {
            let root = PathBuf::from(ROOT);
            let text = fs::read_to_string(root.join("Cargo.toml")).unwrap();
            (root, text)
        }
    };
    for (flag, kind) in [("--example", "examples"), ("--bench", "benches"), ("--test", "tests")] {
        let Some(name) = after(flag) else { continue };
        let found = folder.join(kind).join(format!("{name}.rs")).exists()
            || folder.join(kind).join(name).join("main.rs").exists();
        if !found {
            return Err(format!("there is no {kind}/{name} in {}", folder.display()));
        }
    }
    if command == "fuzz"
        && let Some(target) = after("run")
        && !exists(&format!("fuzz/fuzz_targets/{target}.rs"))
    {
        return Err(format!("there is no fuzz target {target}"));
    }
    if command == "test"
        && let Some(filter) = own.last().filter(|word| is_filter(word, own))
    {
        let names = filter.trim_end_matches(':').rsplit("::").next().unwrap_or_default();
        if names != "NAME" && !sources(&folder).iter().any(|source| source.contains(names)) {
            return Err(format!("no test is named {filter}"));
        }
    }
    if let Some(features) = after("--features") {
        for feature in features.split(',') {
            let name = feature.rsplit('/').next().unwrap();
            if !text.contains(&format!("\n{name} = ")) {
                return Err(format!("there is no feature {name}"));
            }
        }
    }
    if ["clippy", "fmt"].contains(&command) {
        // What follows is for the compiler and for rustfmt.
        return Ok(());
    }
    for flag in passed.iter().filter_map(|word| word.strip_prefix("--")).filter(|w| !w.is_empty()) {
        let field = flag.replace('-', "_");
        let is_harness = ["nocapture", "ignored", "test"].contains(&flag);
        let is_read = |source: &String| {
            source.contains(&format!("--{flag}")) || source.contains(&format!("{field}: "))
        };
        if !is_harness && !sources(&folder).iter().any(is_read) {
            return Err(format!("nothing reads --{flag}"));
        }
    }
    Ok(())
}

/// Whether the last word of `cargo test` is the name of tests.
fn is_filter(word: &str, own: &[String]) -> bool {
    let before = own.len().checked_sub(2).and_then(|at| own.get(at));
    !word.starts_with('-')
        && word != "test"
        && !before.is_some_and(|word| {
            ["-p", "--test", "--features", "--manifest-path"].contains(&word.as_str())
        })
}

/// The names of the Rust files of a package and their texts.
fn sources(folder: &Path) -> Vec<String> {
    let (mut texts, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts.push(path.display().to_string());
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    texts
}

#[test]
fn every_setting_of_the_pages_is_read_by_its_type() {
    let (mut settings, mut complaints) = (0, Vec::new());
    for page in pages() {
        let blocks = page.blocks();
        let blocks = blocks.iter().filter(|block| block.language == "json");
        let fenced: Vec<&str> = blocks.map(|block| block.text.as_str()).collect();
        let inline = page.code().into_iter().filter(|code| code.starts_with("{\""));
        for text in fenced.into_iter().chain(inline) {
            settings += 1;
            if let Err(complaint) = check_setting(text) {
                complaints.push(format!("{}: {text}: {complaint}", page.path));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    assert!(settings > 1, "{settings}");
}

/// Checks the setting of a strategy, a policy, or a server for tools.
fn check_setting(text: &str) -> Result<(), String> {
    let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if let Some(servers) = json.get("mcpServers").and_then(Value::as_object) {
        return servers.values().try_for_each(|server| {
            let arguments = server["args"].as_array().into_iter().flatten();
            let words = std::iter::once(&server["command"]).chain(arguments);
            threadfold_cli::check(words.filter_map(Value::as_str).map(Into::into))
        });
    }
    let registry = StrategyRegistry::default();
    let names: Vec<&String> =
        json.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    if let [name] = names.as_slice()
        && registry.names().any(|known| known == *name)
    {
        return registry.build(&json).map(drop).map_err(|error| error.to_string());
    }
    // The input of a tool, as a page shows it, or a policy.
    if ["replacements", "message", "from", "query", "call"]
        .iter()
        .any(|key| json.get(key).is_some())
    {
        return Ok(());
    }
    serde_json::from_value::<AutoPolicy>(json).map(drop).map_err(|error| error.to_string())
}

#[test]
fn every_dependency_of_the_pages_can_be_declared() {
    let (mut manifests, folder) = (0, Folder::new());
    let locked = fs::read_to_string(Path::new(ROOT).join("Cargo.lock")).unwrap();
    for page in pages() {
        for block in page.blocks().iter().filter(|block| block.language == "toml") {
            manifests += 1;
            let place = format!("{}:\n{}", page.path, block.text);
            // Cargo itself reads the block.
            let head = "[workspace]\n[package]\nname = \"page\"\nversion = \"0.1.0\"\n[lib]\npath = \"lib.rs\"\n";
            fs::write(folder.join("Cargo.toml"), format!("{head}{}", block.text)).unwrap();
            let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let read = Command::new(cargo)
                .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
                .current_dir(&*folder)
                .output()
                .unwrap();
            assert!(read.status.success(), "{place}{}", String::from_utf8_lossy(&read.stderr));
            let read: Value = serde_json::from_slice(&read.stdout).unwrap();
            for dependency in read["packages"][0]["dependencies"].as_array().unwrap() {
                check_dependency(dependency, &locked)
                    .unwrap_or_else(|error| panic!("{place}{error}"));
            }
        }
    }
    assert!(manifests > 10, "{manifests}");
}

/// Checks that a package of the repository has this version and these features, and that another
/// one has this version in the lock file.
fn check_dependency(dependency: &Value, locked: &str) -> Result<(), String> {
    let (name, wanted) =
        (dependency["name"].as_str().unwrap(), dependency["req"].as_str().unwrap());
    let wanted = wanted.trim_start_matches('^');
    let fits = |version: &str| version == wanted || version.starts_with(&format!("{wanted}."));
    let Some((_, text)) = manifest(name) else {
        let mut versions = locked.split("[[package]]").filter_map(|package| {
            let rest = package.split_once(&format!("name = \"{name}\"\nversion = \""))?.1;
            rest.split('"').next()
        });
        let fits = versions.any(fits);
        return fits.then_some(()).ok_or_else(|| format!("{name} {wanted} is not in Cargo.lock"));
    };
    let version = text.split("\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    if !version.is_some_and(fits) {
        return Err(format!("{name} has version {version:?}; the page declares {wanted}"));
    }
    let features = dependency["features"].as_array().into_iter().flatten();
    for feature in features.filter_map(Value::as_str) {
        if !text.contains(&format!("\n{feature} = ")) {
            return Err(format!("{name} has no feature {feature}"));
        }
    }
    Ok(())
}

#[test]
fn every_path_of_the_pages_exists() {
    const TOPS: [&str; 9] = [
        ".ci/",
        "benches/",
        "crates/",
        "docs/",
        "examples/",
        "fuzz/",
        "src/",
        "testdata/",
        "tests/",
    ];
    let mut complaints = Vec::new();
    for page in pages() {
        let folder = Path::new(ROOT).join(&page.path).parent().unwrap().to_owned();
        for code in page.code() {
            let path = code.split([' ', ':', '*', '#']).next().unwrap().trim_end_matches('/');
            // The file of the reader's own crate.
            let is_path = TOPS.iter().any(|top| code.starts_with(top)) && code != "src/main.rs";
            if is_path && !exists(path) && !folder.join(path).exists() {
                complaints.push(format!("{}: {code}", page.path));
            }
        }
        for link in page.text.split("](").skip(1) {
            let link = link.split([')', '#']).next().unwrap();
            let is_file = !link.is_empty() && !link.contains(':') && !link.starts_with('<');
            // The links of a page that is part of the documentation of a crate may name items.
            if is_file && !folder.join(link).exists() {
                complaints.push(format!("{}: a link to {link}", page.path));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// What a newcomer reads first is short, and the rest is where it is looked up.
#[test]
fn the_pages_that_are_read_first_are_short() {
    let page = |name: &str| fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
    let readme = page("README.md");
    let (before_tables, _) = readme.split_once("\n## Crates\n").unwrap();
    assert!(before_tables.len() <= 6 * 1_024, "README.md: {} bytes", before_tables.len());
    let architecture = page("ARCHITECTURE.md").len();
    assert!(architecture <= 12 * 1_024, "ARCHITECTURE.md: {architecture} bytes");
    let chapters = fs::read_dir(Path::new(ROOT).join("docs/guide")).unwrap().count() - 1;
    assert!(chapters <= 9, "the guide has {chapters} chapters");
}

/// Readers of another registry, or of a mirror, do not need its address.
#[test]
fn no_page_names_the_host_of_a_registry() {
    let hosts = [["crates", "io"], ["npmjs", "com"], ["npmjs", "org"], ["pypi", "org"]];
    for page in pages() {
        for host in hosts.map(|host| host.join(".")) {
            let line = page.text.lines().find(|line| line.contains(&host));
            assert_eq!(line, None, "{}", page.path);
        }
    }
}

/// The Rust code of a page runs only if the documentation of a crate includes the page.
#[test]
fn every_page_with_code_is_part_of_a_documentation() {
    let included: BTreeSet<String> = ["src", "crates"]
        .iter()
        .flat_map(|folder| sources(&Path::new(ROOT).join(folder)))
        .flat_map(|source| {
            let names = source.split("include_str!(\"").skip(1);
            names
                .filter_map(|name| Some(name.split('"').next()?.rsplit('/').next()?.to_owned()))
                .collect::<Vec<_>>()
        })
        .collect();
    for page in pages() {
        let has_code = page.blocks().iter().any(|block| block.language == "rust");
        let name = page.path.rsplit('/').next().unwrap();
        assert!(!has_code || included.contains(name), "{}", page.path);
    }
}

/// The figure beside `cargo tree` on the pages that show this command.
#[test]
fn the_number_of_packages_is_that_of_cargo_tree() {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--offline", "-p", "threadfold", "-e", "normal", "--prefix", "none"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    let lines = String::from_utf8(tree.stdout).unwrap();
    let packages: BTreeSet<&str> = lines.lines().filter(|line| !line.contains("(*)")).collect();
    let count = format!("{} packages", packages.len());
    let pages = pages();
    let counting =
        pages.iter().filter(|page| page.text.contains("cargo tree -p threadfold -e normal"));
    let counting: Vec<&Page> = counting.collect();
    assert_eq!(counting.len(), 2);
    for page in counting {
        assert!(page.text.contains(&count), "{} does not say {count}", page.path);
    }
}

#[test]
fn the_program_is_built_without_the_test_kit() {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--offline", "-p", "threadfold-cli", "-e", "normal,build,features"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let lines = String::from_utf8(tree.stdout).unwrap();
    assert!(lines.contains("threadfold feature \"recall\""), "{lines}");
    // Of the feature `testing`, `hindsight` has the model that picks sentences; it adds no crate.
    for part in ["threadfold-core feature \"testing\"", "threadfold-testing", "proptest"] {
        assert!(!lines.contains(part), "{part}");
    }
}

/// A line without its figures, rules and bars.
fn form(line: &str) -> String {
    line.chars()
        .filter(|c| !c.is_ascii_digit() && !c.is_whitespace() && !",.─█░".contains(*c))
        .collect()
}

#[test]
fn the_page_about_the_command_line_shows_what_the_program_prints() {
    let path = Path::new(ROOT).join("docs/guide/command-line.md");
    let page = fs::read_to_string(&path).unwrap();
    let printed = printed_again(&page);
    if env::var_os("THREADFOLD_WRITE_DOCS").is_some() {
        fs::write(path, printed).unwrap();
        return;
    }
    for (shown, printed) in page.lines().zip(printed.lines()) {
        assert_eq!(shown, printed, "`THREADFOLD_WRITE_DOCS=1` writes the page");
    }
    assert_eq!(page, printed);
}

/// The page with each line of output as the program prints it now.
fn printed_again(page: &str) -> String {
    let folder = prepared();
    let (mut again, mut is_shell, mut commands) = (String::new(), false, 0);
    let mut printed: Vec<String> = Vec::new();
    for line in page.lines() {
        let mut shown = line.to_owned();
        if line.starts_with("```") {
            is_shell = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_shell) {
            if let Some(command) = command.strip_prefix("threadfold ") {
                printed = run(&folder, command);
                commands += 1;
            }
        } else if is_shell && !line.trim().is_empty() {
            let at = printed.iter().position(|printed| form(printed) == form(line));
            let at = at.unwrap_or_else(|| panic!("not printed: {line}\n{printed:#?}"));
            shown = printed.drain(..=at).next_back().unwrap();
        }
        again.push_str(shown.trim_end());
        again.push('\n');
    }
    assert!(commands > 9, "{commands}");
    again
}

/// A folder with the files that the commands of the page name.
fn prepared() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.join("examples/data")).unwrap();
    let thread = "examples/data/coding-thread.json";
    fs::copy(Path::new(ROOT).join(thread), folder.join(thread)).unwrap();
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/pi-session.jsonl");
    fs::copy(log, folder.join("pi-session.jsonl")).unwrap();
    fs::write(folder.join("notes.md"), "status: open\n").unwrap();
    let script = "file `notes.md`\nselect /status: \\w+/\nreplace \"status: done\"\n";
    fs::write(folder.join("script.edl"), script).unwrap();
    folder
}

/// The lines that a command prints: first those of standard error.
fn run(folder: &Folder, command: &str) -> Vec<String> {
    let (command, file) = command.split_once(" > ").map_or((command, None), |(a, b)| (a, Some(b)));
    let mut program = Command::new(env!("CARGO_BIN_EXE_threadfold"));
    let mut words: Vec<&str> = command.split(' ').collect();
    if words.contains(&"--model") {
        words.extend_from_slice(&writer::model()[2..]);
    }
    let output = program.args(words).current_dir(&**folder).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{command}: {errors}");
    let out = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<String> = errors.lines().map(str::to_owned).collect();
    match file {
        Some(file) => fs::write(folder.join(file), out).unwrap(),
        None => lines.extend(out.lines().map(str::to_owned)),
    }
    lines
}
