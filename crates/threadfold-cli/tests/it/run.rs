//! `threadfold run`: how an agent is started, and how its end is passed on. `tests/agents.sh` runs
//! real agents.

use std::process::{Command, Output, Stdio};

use threadfold_testing::shared::Folder;

/// Runs a script of the shell as an agent that uses OpenAI's API.
fn run(folder: &Folder, script: &str) -> Output {
    command(folder, &["--openai", "--", "sh", "-c", script]).output().unwrap()
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threadfold"));
    command.args(["run", "--folder"]).arg(folder.join("state")).args(arguments);
    command.env_remove("OPENAI_BASE_URL").env_remove("OPENAI_API_BASE").stdin(Stdio::null());
    command
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_agent_gets_an_address_and_its_exit_code_is_passed_on() {
    let folder = Folder::new();
    let output = run(&folder, "echo $OPENAI_BASE_URL; test -z \"$ANTHROPIC_BASE_URL\" && exit 7");
    let address = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(address.starts_with("http://127.0.0.1:") && address.ends_with("/v1\n"), "{address}");
    assert_eq!(output.status.code(), Some(7), "{}", errors(&output));
    assert!(errors(&output).contains("no request came through"), "{}", errors(&output));
    assert_eq!(std::fs::read_to_string(folder.join("state/.gitignore")).unwrap(), "*\n");
}

#[test]
fn arguments_and_input_are_the_agents() {
    let folder = Folder::new();
    let arguments = ["--openai", "sh", "-c", "cat; echo \"$@\"", "--", "--help", "-x", "--", "y"];
    let mut agent = command(&folder, &arguments);
    agent.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut agent = agent.spawn().unwrap();
    std::io::Write::write_all(&mut agent.stdin.take().unwrap(), b"typed ").unwrap();
    let output = agent.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "typed --help -x -- y\n");
}

#[test]
fn an_agent_that_a_signal_ends_gives_its_number() {
    let output = run(&Folder::new(), "kill -KILL $$");
    assert_eq!(output.status.code(), Some(128 + 9), "{}", errors(&output));
    assert!(errors(&output).contains("ended by signal 9"), "{}", errors(&output));
}

#[test]
fn signals_to_the_program_reach_the_agent() {
    for (signal, code) in [("INT", 3), ("TERM", 4), ("HUP", 5)] {
        // The agent sends it to the program that runs it, as a shell or a supervisor would.
        let script = format!(
            "trap 'exit 3' INT; trap 'exit 4' TERM; trap 'exit 5' HUP; kill -{signal} $PPID; \
             while :; do sleep 0.05; done"
        );
        let output = run(&Folder::new(), &script);
        assert_eq!(output.status.code(), Some(code), "{signal}: {}", errors(&output));
    }
}

#[test]
fn what_cannot_be_run_is_named() {
    let folder = Folder::new();
    let missing = command(&folder, &["--openai", "--", "no-such-agent"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(127));
    assert!(errors(&missing).contains("no-such-agent: there is no such program in PATH"));
    let folder_as_program = folder.to_str().unwrap();
    let denied = command(&folder, &["--openai", "--", folder_as_program]).output().unwrap();
    assert_eq!(denied.status.code(), Some(126), "{}", errors(&denied));
    let unknown = command(&folder, &["--", "sh", "-c", "exit 0"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(1));
    assert!(errors(&unknown).contains("sh: not one of aider, claude"), "{}", errors(&unknown));
}

#[test]
fn a_port_that_is_taken_is_an_error_before_anything_runs() {
    let (folder, taken) = (Folder::new(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.local_addr().unwrap().to_string();
    let arguments = ["--openai", "--listen", &address, "--", "sh", "-c", "echo ran"];
    let output = command(&folder, &arguments).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &[][..]));
    assert!(errors(&output).contains(&format!("--listen {address}: ")), "{}", errors(&output));
}
