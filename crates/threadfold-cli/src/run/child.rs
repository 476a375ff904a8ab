//! The agent as a process: it has the terminal, and this program waits for it.

use std::{
    io,
    process::{Command, ExitStatus},
};

/// How the agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Code(u8),
    /// A signal of Unix ended it.
    Signal(u8),
}

impl Ending {
    /// The exit code that shells give: 128 and the number of the signal.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
        }
    }

    pub(super) fn signal(self) -> Option<u8> {
        match self {
            Self::Code(_) => None,
            Self::Signal(signal) => Some(signal),
        }
    }
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Self::Signal(u8::try_from(signal).unwrap_or(u8::MAX));
        }
        // The upper bits, which only Windows has, do not fit an exit code here.
        let code = status.code().unwrap_or(1);
        Self::Code(u8::try_from(code).unwrap_or(1))
    }
}

/// Runs the agent to its end with this program's input, output and terminal. Signals that reach
/// only this program are passed on to it.
///
/// If this future is dropped, the agent goes on.
pub(super) async fn run(command: Command) -> io::Result<Ending> {
    // Before the start: from then on a signal must not end this program and leave the agent.
    let mut signals = signals::Signals::new()?;
    let terminal = signals::Terminal::now();
    let mut child = tokio::process::Command::from(command).spawn()?;
    let process = child.id();
    loop {
        tokio::select! {
            status = child.wait() => {
                let ending = Ending::from(status?);
                if ending.signal().is_some() {
                    terminal.restore();
                }
                return Ok(ending);
            }
            signal = signals.next() => signals::pass_on(process, signal),
        }
    }
}

#[cfg(unix)]
mod signals {
    use std::io::{self, IsTerminal};

    use rustix::{
        process::{Pid, Signal, kill_process},
        termios::{OptionalActions, Termios, tcgetattr, tcsetattr},
    };
    use tokio::signal::unix::{self, SignalKind, signal};

    pub(super) struct Signals {
        interrupt: unix::Signal,
        quit: unix::Signal,
        terminate: unix::Signal,
        hangup: unix::Signal,
        has_terminal: bool,
    }

    impl Signals {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                quit: signal(SignalKind::quit())?,
                terminate: signal(SignalKind::terminate())?,
                hangup: signal(SignalKind::hangup())?,
                has_terminal: io::stdin().is_terminal(),
            })
        }

        /// Returns the next signal that the agent does not get by itself. A terminal sends Ctrl-C to
        /// both, and some agents take a second one for the wish to leave.
        pub(super) async fn next(&mut self) -> Signal {
            loop {
                let (signal, is_of_terminal) = tokio::select! {
                    _ = self.interrupt.recv() => (Signal::INT, true),
                    _ = self.quit.recv() => (Signal::QUIT, true),
                    _ = self.terminate.recv() => (Signal::TERM, false),
                    _ = self.hangup.recv() => (Signal::HUP, false),
                };
                if !(is_of_terminal && self.has_terminal) {
                    return signal;
                }
            }
        }
    }

    /// Sends a signal to the agent. One that has ended in the meantime needs none.
    pub(super) fn pass_on(process: Option<u32>, signal: Signal) {
        let process = process.and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(process) = process {
            let _ = kill_process(process, signal);
        }
    }

    /// The settings of the terminal. An agent that is killed cannot set them back.
    pub(super) struct Terminal(Option<Termios>);

    impl Terminal {
        pub(super) fn now() -> Self {
            let input = io::stdin();
            Self(input.is_terminal().then(|| tcgetattr(&input).ok()).flatten())
        }

        pub(super) fn restore(&self) {
            if let Some(settings) = &self.0 {
                let _ = tcsetattr(io::stdin(), OptionalActions::Now, settings);
            }
        }
    }
}

#[cfg(not(unix))]
mod signals {
    use std::io;

    pub(super) struct Signals;

    /// Ctrl-C, which reaches every program of the console.
    pub(super) struct Interrupted;

    impl Signals {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn next(&mut self) -> Interrupted {
            match tokio::signal::ctrl_c().await {
                Ok(()) => Interrupted,
                Err(_) => std::future::pending().await,
            }
        }
    }

    pub(super) fn pass_on(_: Option<u32>, _: Interrupted) {}

    pub(super) struct Terminal;

    impl Terminal {
        pub(super) fn now() -> Self {
            Self
        }

        pub(super) fn restore(&self) {}
    }
}
