//! The end of a proxy: Ctrl-C, or another program that ends it.

use std::io;

/// What asks this program to end.
pub(super) struct Stop {
    #[cfg(unix)]
    signals: Vec<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Stop {
    /// From now on these signals no longer end the program by themselves. One that the program was
    /// started to ignore, as by `nohup`, is still ignored.
    pub(super) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = (!ignores_hangup()).then(SignalKind::hangup);
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()].into_iter().chain(hangup);
        Ok(Self { signals: kinds.map(signal).collect::<io::Result<_>>()? })
    }

    /// Waits for the first of them.
    pub(super) async fn asked(mut self) -> io::Result<()> {
        let signals = self.signals.iter_mut().map(|signal| Box::pin(signal.recv()));
        futures::future::select_all(signals).await;
        Ok(())
    }
}

/// Whether this program was started to ignore a hangup, where the system says so.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The signals are numbered from 1, and the hangup is the first.
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(not(unix))]
impl Stop {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for Ctrl-C.
    pub(super) async fn asked(self) -> io::Result<()> {
        tokio::signal::ctrl_c().await
    }
}
