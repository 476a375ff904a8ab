# The commands of the repository. Each is plain shell: `CONTRIBUTING.md` has them without `just`.

# Lists the recipes.
default:
    @just --list

# The checks of about one minute, once the crates are built: format, lints, structure, unit tests.
quick:
    cargo fmt --all -- --check
    cargo clippy --lib --tests -- -D warnings
    cargo test --lib
    cargo test --test it architecture::

# Every check that a change must pass, on a clone of the last commit.
full:
    .ci/run

# A program for Linux, with packages for PyPI and npm and their checksums, in target/dist.
dist:
    packaging/dist

# What comes before a release: every check, the licences, the interface against the last release, and the packages.
release: full
    cargo deny check
    cargo semver-checks --workspace
    cargo publish --workspace --dry-run
