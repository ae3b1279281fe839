//! Ending on a signal: the first asks, the second insists.

use tokio::signal;

/// The exit code of a process that a terminal interrupted: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;

/// The signals that end this process. From the moment this exists none of them is lost.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: signal::unix::Signal,
    #[cfg(unix)]
    terminate: signal::unix::Signal,
}

impl Signals {
    /// Starts to listen.
    #[cfg(unix)]
    pub(crate) fn listen() -> std::io::Result<Self> {
        use signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Starts to listen.
    #[cfg(not(unix))]
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the first signal. The second one ends the process at once.
    pub(crate) async fn requested(mut self) {
        self.next().await;
        eprintln!("ending; interrupt again to end at once");
        tokio::spawn(async move {
            self.next().await;
            #[allow(
                clippy::exit,
                reason = "the user insists, and nothing is lost: writes are durable"
            )]
            std::process::exit(INTERRUPTED);
        });
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        if signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
