//! The form of the examples in READMEs and in the guide.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The pages of packages and repositories show lines that the documentation of the crate hides.
#[test]
fn the_code_of_a_readme_is_a_program_without_hidden_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let readmes = crates.chain([root.to_owned()]).map(|folder| folder.join("README.md"));
    let blocks: Vec<(PathBuf, String)> = readmes.flat_map(visible_code).collect();
    assert!(blocks.len() >= 8, "{}", blocks.len());
    for (path, code) in blocks {
        assert!(code.contains("fn main()"), "{}: {code}", path.display());
    }
}

/// The crate of the adapter compiles the program with its documentation. This crate cannot, because
/// it does not depend on the adapter.
#[test]
fn the_program_of_the_readme_is_that_of_the_http_adapter() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let blocks = |page: &str| {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let block = |fence: &str| {
            let (_, rest) = text.split_once(fence).unwrap();
            rest.split_once("\n```").unwrap().0.to_owned()
        };
        [block("\n```toml"), block("\n```rust").split_once('\n').unwrap().1.to_owned()]
    };
    let [dependencies, program] = blocks("README.md");
    assert!(program.contains("async fn main()"), "{program}");
    assert_eq!(blocks("crates/threadfold-http/README.md"), [dependencies, program]);
}

/// Readers copy the code of a chapter as a whole.
#[test]
fn the_code_of_the_guide_has_no_hidden_lines() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide");
    let chapters = fs::read_dir(guide).unwrap().map(|entry| entry.unwrap().path());
    let blocks = chapters.flat_map(visible_code).count();
    assert!(blocks >= 40, "{blocks}");
}

/// Returns the Rust code of a page, after a check that it has no hidden line.
fn visible_code(page: PathBuf) -> Vec<(PathBuf, String)> {
    let text = fs::read_to_string(&page).unwrap();
    let blocks = text.split("\n```rust").skip(1).map(|block| block.split_once("\n```").unwrap().0);
    for code in blocks.clone() {
        let mut lines = code.lines().map(str::trim_start);
        let hidden = lines.find(|line| *line == "#" || line.starts_with("# "));
        assert_eq!(hidden, None, "{}", page.display());
    }
    blocks.map(|code| (page.clone(), code.to_owned())).collect()
}
