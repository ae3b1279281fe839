//! `windlass version`.

use clap::Args;

use super::connect::Connection;
use super::output::print;

/// Options of `version`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Ask no server.
    #[arg(long)]
    client: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Arguments {
    /// Runs the command.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        print(&format!("windlass: {}\n", env!("CARGO_PKG_VERSION")));
        if self.client {
            return Ok(());
        }
        // No cluster is no reason to fail: the program has a version of its own.
        let Ok(session) = self.connection.open().await else {
            return Ok(());
        };
        let version = session.discovery.server_version().await;
        let version = version.map_err(|error| session.explain(error))?;
        print(&format!("server: {}\n", version.str_at("/gitVersion")));
        Ok(())
    }
}
