//! The signal to stop.

use std::fmt;

use tokio::sync::watch;

/// A signal to stop that any number of tasks can wait for. Clones share it.
///
/// Once requested it stays so. A [`child`](Self::child) is stopped with its parent, and can be
/// stopped before it.
#[derive(Clone)]
pub struct Shutdown {
    requested: watch::Sender<bool>,
    parent: Option<Box<Self>>,
}

impl Shutdown {
    /// A signal that only [`trigger`](Self::trigger) gives.
    #[must_use]
    pub fn new() -> Self {
        Self {
            requested: watch::Sender::new(false),
            parent: None,
        }
    }

    /// A signal that comes with this one, or before it.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            requested: watch::Sender::new(false),
            parent: Some(Box::new(self.clone())),
        }
    }

    /// Asks everybody to stop.
    pub fn trigger(&self) {
        self.requested.send_replace(true);
    }

    /// Returns true if everybody was asked to stop.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.requested.borrow()
            || self
                .parent
                .as_ref()
                .is_some_and(|parent| parent.is_requested())
    }

    /// Waits for the signal. Safe to drop and call again.
    pub async fn requested(&self) {
        let mut own = self.requested.subscribe();
        // An error would mean that the sender is gone, but it is held here.
        let own = async {
            let _ = own.wait_for(|requested| *requested).await;
        };
        match &self.parent {
            None => own.await,
            Some(parent) => {
                tokio::select! {
                    biased;
                    () = own => {}
                    () = Box::pin(parent.requested()) => {}
                }
            }
        }
    }

    /// A signal from the operating system: the first SIGINT or SIGTERM asks to stop, a second one
    /// ends the process at once with exit code 1.
    ///
    /// # Errors
    /// When the operating system does not let us listen.
    pub fn on_signals() -> std::io::Result<Self> {
        let shutdown = Self::new();
        let mut signals = Signals::listen()?;
        let trigger = shutdown.clone();
        tokio::spawn(async move {
            let signal = signals.next().await;
            tracing::info!(
                signal,
                "shutting down, a second signal ends the process at once"
            );
            trigger.trigger();
            let signal = signals.next().await;
            tracing::error!(signal, "stopped by a second signal");
            exit_at_once();
        });
        Ok(shutdown)
    }
}

#[expect(
    clippy::exit,
    reason = "a second signal is an order to end without ceremony"
)]
fn exit_at_once() -> ! {
    std::process::exit(1)
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> &'static str {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "interrupt"
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shutdown")
            .field("is_requested", &self.is_requested())
            .finish()
    }
}
