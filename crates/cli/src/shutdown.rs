//! Ending on a signal: the first asks, the second insists.

use tokio::signal;

/// The exit code of a process that a terminal interrupted: 128 and the number of the signal.
const INTERRUPTED: i32 = 130;

/// Waits for the first signal. The second one ends the process at once.
pub(crate) async fn requested() {
    next_signal().await;
    eprintln!("ending; interrupt again to end at once");
    tokio::spawn(async {
        next_signal().await;
        #[expect(
            clippy::exit,
            reason = "the user insists, and nothing is lost: writes are durable"
        )]
        std::process::exit(INTERRUPTED);
    });
}

#[cfg(unix)]
async fn next_signal() {
    use signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return interrupted().await;
    };
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        () = interrupted() => {}
    }
}

#[cfg(not(unix))]
async fn next_signal() {
    interrupted().await;
}

async fn interrupted() {
    if let Err(error) = signal::ctrl_c().await {
        tracing::warn!(%error, "signals cannot be heard");
        std::future::pending::<()>().await;
    }
}
